//! The record of one command and its states. Pure except for [`Entry::read`] and `write`.

use super::UndoError;
use super::node::name;
use super::plan::{Plan, Target};
use caro_base::files::{self, Access};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The version of records that this program writes.
const VERSION: u32 = 1;
/// Most bytes of a record, which contains the paths of its targets.
const MAX_BYTES: u64 = 64 << 20;
/// The file of a record in its folder.
pub(super) const FILE: &str = "entry.json";

/// The state of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is being prepared; nothing has run.
    Planned,
    /// Everything is saved, and it may have run.
    Ready,
    /// It ended with this exit code.
    Ran(i32),
    /// It was undone, by the entry of this number.
    Undone(u64),
}

/// An event in the life of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Everything is saved on the disk.
    Kept,
    /// The command ended.
    Ended(i32),
    /// Everything was restored, by the entry of this number.
    PutBack(u64),
}

impl State {
    /// Returns the state after an event; `None` if the event cannot happen in this state.
    pub fn after(self, event: Event) -> Option<Self> {
        match (self, event) {
            (Self::Planned, Event::Kept) => Some(Self::Ready),
            (Self::Ready, Event::Ended(code)) => Some(Self::Ran(code)),
            (Self::Ready | Self::Ran(_), Event::PutBack(by)) => Some(Self::Undone(by)),
            _ => None,
        }
    }

    /// True if its files can be restored.
    pub fn can_be_undone(self) -> bool {
        matches!(self, Self::Ready | Self::Ran(_))
    }
}

/// An item in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trashed {
    /// The item.
    #[serde(with = "name")]
    pub file: PathBuf,
    /// Its info file.
    #[serde(with = "name")]
    pub info: PathBuf,
}

/// A record of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    version: u32,
    /// Its number.
    pub id: u64,
    /// The command, as it was run.
    pub command: String,
    /// Its working directory.
    #[serde(with = "name")]
    pub cwd: PathBuf,
    /// The time it was planned, in seconds since 1970.
    pub began: u64,
    /// Its state.
    pub state: State,
    /// The entry that it undoes, if it is an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// The items in the desktop's trash that it deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trashed: Vec<Trashed>,
    /// The targets that it touches.
    pub plan: Plan,
    /// The number of saved files, folders and links.
    #[serde(default)]
    pub count: u64,
    /// The bytes of saved files, including links and clones.
    #[serde(default)]
    pub bytes: u64,
}

impl Entry {
    /// Creates the record of a command planned now.
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

    /// True if it belongs to a folder: it ran there or below, or touches the folder itself or something below. In a
    /// folder that holds the whole `home`, so that everything is below it, only what ran or touches something right
    /// there.
    pub fn belongs_to(&self, folder: &Path, home: Option<&Path>) -> bool {
        let is_wide = home.is_some_and(|home| home.starts_with(folder));
        let is_below = |path: &Path| if is_wide { path == folder } else { path.starts_with(folder) };
        let touches = |target: &Target| {
            let holds_folder = target.deep && folder.starts_with(&target.path);
            let is_right_here = target.path.parent() == Some(folder);
            holds_folder || is_right_here || is_below(&target.path)
        };
        is_below(&self.cwd) || self.plan.targets.iter().any(touches)
    }

    /// Applies an event; one that cannot happen is ignored.
    pub fn note(&mut self, event: Event) {
        if let Some(state) = self.state.after(event) {
            self.state = state;
        }
    }

    /// Reads the record in a folder.
    ///
    /// # Errors
    /// If there is no complete record of this version.
    pub fn read(folder: &Path) -> Result<Self, UndoError> {
        let damaged = |why: String| UndoError::Damaged { path: folder.to_path_buf(), why };
        let text = files::read_text(&folder.join(FILE), MAX_BYTES).map_err(|e| damaged(e.to_string()))?;
        let entry: Self = serde_json::from_str(&text).map_err(|e| damaged(e.to_string()))?;
        if entry.version != VERSION {
            return Err(damaged(format!("it is of version {}, and this program knows {VERSION}", entry.version)));
        }
        Ok(entry)
    }

    /// Writes the record into its folder atomically and syncs it to the disk.
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
        /// In any order of events an entry can be undone only if its files were saved, and only once.
        #[test]
        fn only_saved_entries_can_be_undone_and_only_once(events in prop::collection::vec(event(), 0..8)) {
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
    fn an_entry_belongs_to_the_folders_that_it_ran_in_or_touches() {
        use crate::plan::{Cover, Touch};
        let home = Path::new("/home/me");
        let entry = |cwd: &str, path: &str, touch| {
            Entry::new(1, "x", Path::new(cwd), Plan::new(vec![Target::new(path, touch)], Cover::Whole, Vec::new()))
        };
        for (cwd, path, folder, belongs) in [
            ("/home/me/a", "/home/me/a/f", "/home/me/a", true),
            ("/home/me/a", "/home/me/a/f", "/home/me/b", false),
            ("/home/me/a", "/home/me/a/f", "/home/me/ab", false),
            // from a folder within, or after going up
            ("/home/me/a", "/home/me/a/src/f", "/home/me/a/src", true),
            ("/home/me/a", "/home/me/a/f", "/home/me/a/src", false),
            ("/home/me/a/src", "/home/me/a/src/f", "/home/me/a", true),
            // run elsewhere, and the other way round
            ("/home/me/a", "/home/me/b/f", "/home/me/b", true),
            ("/home/me/a", "/home/me/b/f", "/home/me/a", true),
            ("/home/me", "/home/me/a", "/home/me/a/src", true),
            // everything is below home
            ("/home/me/a", "/home/me/a/f", "/home/me", false),
            ("/home/me/a", "/home/me/f", "/home/me", true),
            ("/home/me", "/etc/f", "/home/me", true),
            ("/home/me/a", "/home/me/a/f", "/", false),
            ("/tmp/a", "/tmp/a/f", "/tmp", true),
        ] {
            let entry = entry(cwd, path, Touch::Delete);
            assert_eq!(entry.belongs_to(Path::new(folder), Some(home)), belongs, "{path} from {cwd}, in {folder}");
        }
        let rights = entry("/home", "/home/me", Touch::Surface);
        assert!(!rights.belongs_to(Path::new("/home/me/a"), None), "only the rights of the folder above change");
    }

    #[test]
    fn a_record_is_read_as_written_and_a_damaged_one_is_an_error() {
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
