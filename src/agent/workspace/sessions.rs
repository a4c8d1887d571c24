//! The workspaces of all sessions: a folder each, side by side.

use super::{NEW, Workspace};
use crate::agent::id;
use crate::agent::observe::{Artifact, Artifacts};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long an artifact is kept.
pub const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// An artifact, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Kept {
    /// The name of the workspace.
    pub session: String,
    /// Where its text is.
    pub path: PathBuf,
    /// What is known about it.
    #[serde(flatten)]
    pub artifact: Artifact,
}

/// Why one was not found by the beginning of its name.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// There is none.
    #[error("there is no {what} `{name}`")]
    Missing {
        /// `artifact` or `workspace`.
        what: &'static str,
        /// What was asked for.
        name: String,
    },
    /// There are several.
    #[error("`{name}` is the beginning of several: {all}")]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// Some of those there are.
        all: String,
    },
    /// The system's word.
    #[error("the workspaces in {folder}: {source}")]
    Io {
        /// Where they are.
        folder: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl LookupError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { what: "artifact", .. } => "`caro artifacts list` shows those there are",
            Self::Missing { .. } => "`caro workspace ls` shows those there are",
            Self::Ambiguous { .. } => "write more of it",
            Self::Io { .. } => "check that the folder can be read",
        }
    }
}

/// The folder of all workspaces.
#[derive(Debug, Clone)]
pub struct Workspaces {
    root: PathBuf,
}

impl Workspaces {
    /// Those in `root`, which need not exist yet.
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder of a session's workspace, whether or not it exists.
    pub fn folder(&self, session: &str) -> PathBuf {
        self.root.join(safe(session))
    }

    /// The workspace of that name.
    fn named(&self, name: &str) -> Workspace {
        Workspace::open(self.root.join(name))
    }

    /// The names of all workspaces, in their order.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, LookupError> {
        let entries = match fs::read_dir(&self.root) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|e| self.io(e))?,
        };
        let folders = entries.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut names: Vec<String> = folders.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }

    /// The workspace of a session, or the one whose name begins so.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn find(&self, session: &str) -> Result<(String, Workspace), LookupError> {
        let names = self.names()?;
        let exact = names.iter().find(|name| **name == safe(session));
        let name = match exact {
            Some(name) => name.clone(),
            None => one(begins(names, session, |n| n), session, "workspace", |n| n)?,
        };
        let workspace = self.named(&name);
        Ok((name, workspace))
    }

    /// Every artifact, oldest first; of one session alone if it is named.
    ///
    /// # Errors
    /// If there is no such session, or a folder cannot be read.
    pub fn artifacts(&self, session: Option<&str>) -> Result<Vec<Kept>, LookupError> {
        let names = match session {
            Some(session) => vec![self.find(session)?.0],
            None => self.names()?,
        };
        let mut all = Vec::new();
        for session in names {
            let workspace = self.named(&session);
            for artifact in workspace.list().map_err(|e| self.io(e))? {
                let path = workspace.text_of(&artifact);
                all.push(Kept { session: session.clone(), path, artifact });
            }
        }
        all.sort_by(|a, b| (a.artifact.created, &a.artifact.id).cmp(&(b.artifact.created, &b.artifact.id)));
        Ok(all)
    }

    /// The one artifact whose id begins so.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn artifact(&self, beginning: &str) -> Result<(Kept, Workspace), LookupError> {
        let mut found = self.artifacts(None)?;
        // one whose whole id this is has others behind it, perhaps
        let exact = found.iter().position(|kept| kept.artifact.id == beginning);
        let kept = match exact {
            Some(at) => found.swap_remove(at),
            None => {
                let matching = begins(found, beginning, |k| &k.artifact.id);
                one(matching, beginning, "artifact", |k| &k.artifact.id)?
            }
        };
        let workspace = self.named(&kept.session);
        Ok((kept, workspace))
    }

    /// Deletes the workspace of a session, if there is one.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub fn forget(&self, session: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.folder(session)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Deletes the artifacts that are older than `age`, and what a process that was killed left of one. How many went.
    /// One that cannot be deleted stays, and hinders nothing: the next sweep comes to it again.
    pub fn sweep(&self, age: Duration) -> usize {
        let Some(before) = SystemTime::now().checked_sub(age) else { return 0 };
        let of = |name: String| self.named(&name).sweep(before);
        self.names().unwrap_or_default().into_iter().map(of).sum()
    }

    fn io(&self, source: io::Error) -> LookupError {
        LookupError::Io { folder: self.root.clone(), source }
    }
}

impl Workspace {
    /// Deletes artifacts, and strays of them, from before a moment; how many artifacts went.
    fn sweep(&self, before: SystemTime) -> usize {
        let all = self.list().unwrap_or_default();
        let count = all.len();
        let goes = |artifact: &Artifact| artifact.created < id::millis(before) && self.remove(&artifact.id).is_ok();
        let left: Vec<Artifact> = all.into_iter().filter(|artifact| !goes(artifact)).collect();
        let known: BTreeSet<OsString> = left
            .iter()
            .flat_map(|a| [self.text_of(a), self.meta_of(&a.id)])
            .filter_map(|p| Some(p.file_name()?.into()))
            .collect();
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
        let is_new = |e: &fs::DirEntry| e.file_name().to_string_lossy().starts_with(NEW);
        let halves = entries(&self.root).filter(is_new).chain(entries(&self.artifacts()));
        for half in halves.filter(|e| !known.contains(&e.file_name())).map(|e| e.path()) {
            if modified(&half).is_some_and(|time| time < before) {
                // it is tried again by the next sweep
                let _ = fs::remove_file(half);
            }
        }
        count - left.len()
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|meta| meta.modified()).ok()
}

/// Those whose name begins so. An empty beginning names none: it is what a variable holds that was never set.
fn begins<T>(mut all: Vec<T>, beginning: &str, id: impl Fn(&T) -> &String) -> Vec<T> {
    all.retain(|one| !beginning.is_empty() && id(one).starts_with(beginning));
    all
}

/// The only one of those that were found.
fn one<T>(mut found: Vec<T>, name: &str, what: &'static str, id: impl Fn(&T) -> &String) -> Result<T, LookupError> {
    if found.len() > 1 {
        let all: Vec<&str> = found.iter().take(5).map(|one| id(one).as_str()).collect();
        return Err(LookupError::Ambiguous { name: name.into(), all: all.join(", ") });
    }
    found.pop().ok_or_else(|| LookupError::Missing { what, name: name.into() })
}

/// A session's id as a folder's name.
fn safe(id: &str) -> String {
    let clean: String = id.chars().map(|c| if c.is_alphanumeric() || "_-".contains(c) { c } else { '_' }).collect();
    // two ids that look the same once cleaned are still two
    // and one without a name is not all of them
    if clean == id && !id.is_empty() { clean } else { format!("{clean}_{}", &id::hash(id)[..8]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(id: &str, created: u64) -> Artifact {
        let (tool, call) = ("shell".into(), "s1c1".into());
        Artifact { id: id.into(), extension: "txt".into(), tool, call, bytes: 1, tokens: 1, lines: 1, created }
    }

    #[test]
    fn a_session_cannot_name_a_folder_elsewhere() {
        assert_eq!(safe("session_1-a"), "session_1-a");
        let odd = safe("../../etc");
        assert!(odd.starts_with("______etc_") && !odd.contains('/'), "{odd}");
        assert_ne!(safe("a/b"), safe("a:b"));
        assert!(!safe("").is_empty());
    }

    #[test]
    fn what_is_old_is_swept_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let all = Workspaces::at(dir.path().join("workspace"));
        assert_eq!(all.sweep(RETENTION), 0, "there is nothing yet");
        let now = SystemTime::now();
        let old = now - RETENTION - Duration::from_secs(60);
        let (one, two) = (all.named("one"), all.named("two"));
        one.put(&artifact("shell_old", id::millis(old)), "x").unwrap();
        one.put(&artifact("shell_new", id::millis(now)), "x").unwrap();
        two.put(&artifact("read_old", id::millis(old)), "x").unwrap();
        two.write("note.md", "mine", crate::agent::workspace::Mode::Create).unwrap();
        let stray = |name: &str, time: SystemTime| {
            let path = dir.path().join("workspace/one").join(name);
            fs::write(&path, "half").unwrap();
            fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            path
        };
        let (torn, under_way) = (stray("artifacts/shell_9.txt", old), stray(".new-X", now));
        let half = stray(".new-Y", old);
        // a description is as old as its artifact is, whatever the clock of the disk says
        let meta = dir.path().join("workspace/one/artifacts/shell_new.meta.json");
        fs::File::options().write(true).open(&meta).unwrap().set_modified(old).unwrap();
        assert_eq!(all.sweep(RETENTION), 2);
        let left: Vec<String> = all.artifacts(None).unwrap().into_iter().map(|k| k.artifact.id).collect();
        assert_eq!(left, ["shell_new"]);
        assert_eq!(one.get("shell_new").unwrap(), "x");
        assert!(!torn.exists() && !half.exists() && under_way.exists());
        assert_eq!(two.view("note.md").unwrap(), "mine\n", "the agent's own files stay");
    }

    #[test]
    fn one_is_found_by_the_beginning_of_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let all = Workspaces::at(dir.path().into());
        all.named("session_1").put(&artifact("shell_1", 1), "first").unwrap();
        all.named("session_1").put(&artifact("shell_12", 2), "second").unwrap();
        all.named("session_2").put(&artifact("read_3", 3), "third").unwrap();
        let (kept, workspace) = all.artifact("read").unwrap();
        assert_eq!((kept.session.as_str(), workspace.get(&kept.artifact.id).unwrap().as_str()), ("session_2", "third"));
        assert_eq!(all.artifact("shell_1").unwrap().0.artifact.id, "shell_1", "its whole id");
        assert!(matches!(all.artifact("shell"), Err(LookupError::Ambiguous { .. })));
        assert!(matches!(all.artifact("write"), Err(LookupError::Missing { what: "artifact", .. })));
        assert_eq!(all.artifacts(Some("session_1")).unwrap().len(), 2);
        assert!(matches!(all.find("session"), Err(LookupError::Ambiguous { .. })));
        all.forget("session_1").unwrap();
        all.forget("session_1").unwrap();
        all.forget("").unwrap();
        assert!(matches!(all.find(""), Err(LookupError::Missing { .. })));
        assert!(matches!(all.artifact(""), Err(LookupError::Missing { .. })));
        assert_eq!(all.names().unwrap(), ["session_2"]);
    }
}
