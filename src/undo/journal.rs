//! The record of one command, and the states that it goes through. Pure but for [`Entry::read`] and `write`.

use super::UndoError;
use super::node::name;
use super::plan::Plan;
use caro_base::files::{self, Access};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of records that this program writes.
const VERSION: u32 = 1;
/// Bytes of a record at most: its targets are paths.
const RECORD: u64 = 64 << 20;
/// The file of a record in its folder.
pub(super) const FILE: &str = "entry.json";

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is being prepared; nothing has run.
    Planned,
    /// All is kept, and it may have run.
    Ready,
    /// It ran to its end, with this exit code.
    Ran(i32),
    /// It was undone, by the entry of this number.
    Undone(u64),
}

/// An event in the life of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// All is on the disk.
    Kept,
    /// The command ended.
    Ended(i32),
    /// All was put back.
    PutBack(u64),
}

impl State {
    /// The state after an event; `None` where that cannot happen.
    pub fn after(self, event: Event) -> Option<Self> {
        match (self, event) {
            (Self::Planned, Event::Kept) => Some(Self::Ready),
            (Self::Ready, Event::Ended(code)) => Some(Self::Ran(code)),
            (Self::Ready | Self::Ran(_), Event::PutBack(by)) => Some(Self::Undone(by)),
            _ => None,
        }
    }

    /// True if what it touched can be put back.
    pub fn can_be_undone(self) -> bool {
        matches!(self, Self::Ready | Self::Ran(_))
    }
}

/// A thing in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trashed {
    /// The thing.
    #[serde(with = "name")]
    pub file: PathBuf,
    /// Says where it comes from.
    #[serde(with = "name")]
    pub info: PathBuf,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    version: u32,
    /// Its number.
    pub id: u64,
    /// The command, as it was run.
    pub command: String,
    /// Where it ran.
    #[serde(with = "name")]
    pub cwd: PathBuf,
    /// When it was planned: seconds since 1970.
    pub began: u64,
    /// How far it has come.
    pub state: State,
    /// The entry that it undoes, if it is an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// Where what it deleted lies in the desktop's trash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trashed: Vec<Trashed>,
    /// The targets that it touches.
    pub plan: Plan,
    /// Files, folders and links that are kept.
    #[serde(default)]
    pub count: u64,
    /// Bytes of files that are kept, however they are.
    #[serde(default)]
    pub bytes: u64,
}

impl Entry {
    /// A command that is planned now.
    pub fn new(id: u64, command: &str, cwd: &Path, plan: Plan) -> Self {
        let began = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_secs());
        Self {
            version: VERSION,
            id,
            command: command.to_owned(),
            cwd: cwd.to_path_buf(),
            began,
            state: State::Planned,
            undoes: None,
            trashed: Vec::new(),
            plan,
            count: 0,
            bytes: 0,
        }
    }

    /// Takes note of an event; one that cannot happen changes nothing.
    pub fn note(&mut self, event: Event) {
        if let Some(state) = self.state.after(event) {
            self.state = state;
        }
    }

    /// The record in a folder.
    ///
    /// # Errors
    /// If there is none that is whole and of this version.
    pub fn read(folder: &Path) -> Result<Self, UndoError> {
        let damaged = |why: String| UndoError::Damaged { path: folder.to_path_buf(), why };
        let text = files::read_text(&folder.join(FILE), RECORD).map_err(|e| damaged(e.to_string()))?;
        let entry: Self = serde_json::from_str(&text).map_err(|e| damaged(e.to_string()))?;
        if entry.version != VERSION {
            return Err(damaged(format!("it is of version {}, and this program knows {VERSION}", entry.version)));
        }
        Ok(entry)
    }

    /// Writes it into its folder, whole or not at all, and brings it to the disk.
    pub(super) fn write(&self, folder: &Path) -> Result<(), UndoError> {
        let failed = |e: std::io::Error| UndoError::writing(folder, e);
        let text = serde_json::to_vec(self).map_err(|e| failed(e.into()))?;
        files::replace(&folder.join(FILE), &text, Access::Private).map_err(failed)?;
        super::content::sync_folder(folder).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![Just(Event::Kept), any::<i32>().prop_map(Event::Ended), any::<u64>().prop_map(Event::PutBack)]
    }

    proptest! {
        /// In any order of events nothing can be undone that was not kept whole, and nothing twice.
        #[test]
        fn what_can_be_undone_was_kept_and_is_not_undone(events in prop::collection::vec(event(), 0..8)) {
            let mut entry = Entry::new(1, "x", Path::new("/"), Plan::default());
            let mut kept = false;
            for event in events {
                let before = entry.state;
                entry.note(event);
                kept |= event == Event::Kept;
                prop_assert!(kept || entry.state == State::Planned);
                if let State::Undone(_) = before {
                    prop_assert_eq!(entry.state, before);
                }
                prop_assert_eq!(entry.state.can_be_undone(), !matches!(entry.state, State::Planned | State::Undone(_)));
            }
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_damaged_one_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut entry = Entry::new(7, "rm 'a b'\n", Path::new("/w"), Plan::default());
        entry.note(Event::Kept);
        entry.write(dir.path()).unwrap();
        assert_eq!(Entry::read(dir.path()).unwrap(), entry);
        std::fs::write(dir.path().join(FILE), "{\"version\":1").unwrap();
        assert!(matches!(Entry::read(dir.path()), Err(UndoError::Damaged { .. })));
        entry.version = 9;
        entry.write(dir.path()).unwrap();
        assert!(Entry::read(dir.path()).unwrap_err().to_string().contains("version 9"));
    }
}
