//! The workspaces of all sessions, one folder each: finds, lists, sweeps and deletes them.

use super::artifacts::{meta_of, text_of};
use super::local::Local;
use super::storage::Storage;
use super::{ARTIFACTS, FILES, Workspace};
use crate::observe::{Artifact, Artifacts};
use caro_base::id;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The age at which an artifact is deleted.
pub const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Most bytes of a session's id in the name of its folder; file systems allow 255.
const MAX_NAME: usize = 200;

/// A stored artifact with its workspace.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Kept {
    /// The name of the workspace.
    pub session: String,
    /// The address of its text.
    pub path: PathBuf,
    /// Its description.
    #[serde(flatten)]
    pub artifact: Artifact,
}

/// The reason a name or its beginning did not identify a workspace or an artifact.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// Nothing has this name.
    #[error("there is no {what} `{name}`")]
    Missing {
        /// `artifact` or `workspace`.
        what: &'static str,
        /// The requested name.
        name: String,
    },
    /// Several names begin with it.
    #[error("`{name}` is the beginning of several: {all}")]
    Ambiguous {
        /// The requested name.
        name: String,
        /// Some of the names.
        all: String,
    },
    /// An error of the system.
    #[error("the workspaces in {folder}: {source}")]
    Io {
        /// The address of the workspaces.
        folder: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl LookupError {
    /// Returns the next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { what: "artifact", .. } => "`caro artifacts list` shows those there are",
            Self::Missing { .. } => "`caro workspace ls` shows those there are",
            Self::Ambiguous { .. } => "write more of it",
            Self::Io { .. } => "check that it can be reached and read",
        }
    }
}

/// The place of all workspaces.
#[derive(Debug, Clone)]
pub struct Workspaces {
    root: Arc<dyn Storage>,
}

impl Workspaces {
    /// The workspaces in a local folder, which need not exist yet.
    pub fn at(root: PathBuf) -> Self {
        Self::of(Arc::new(Local::new(root)))
    }

    /// The workspaces in a storage.
    pub(super) fn of(root: Arc<dyn Storage>) -> Self {
        Self { root }
    }

    /// Returns the address of a session's workspace, whether or not it exists: a folder of the disk, or a URL.
    pub fn folder(&self, session: &str) -> PathBuf {
        self.root.address(Path::new(&folder_name(session)))
    }

    /// True if they are on the local disk.
    pub fn is_local(&self) -> bool {
        self.root.is_local()
    }

    /// Returns the workspace of a session, whether or not it exists.
    pub fn open(&self, session: &str) -> Workspace {
        self.named(&folder_name(session))
    }

    /// Returns the workspace of that name.
    fn named(&self, name: &str) -> Workspace {
        Workspace { storage: self.root.below(name) }
    }

    /// Returns the names of all workspaces, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, LookupError> {
        let items = match self.root.list(Path::new("")) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|e| self.io(e))?,
        };
        let mut names: Vec<String> = items.into_iter().filter(|(_, item)| item.folder).map(|(name, _)| name).collect();
        names.sort();
        Ok(names)
    }

    /// Returns the workspace of a session, or the only one whose name begins with `session`.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn find(&self, session: &str) -> Result<(String, Workspace), LookupError> {
        let names = self.names()?;
        let exact = names.iter().find(|name| **name == folder_name(session));
        let name = match exact {
            Some(name) => name.clone(),
            None => only_match(names, session, "workspace", |n| n)?,
        };
        let workspace = self.named(&name);
        Ok((name, workspace))
    }

    /// Returns every artifact, oldest first; with `session` only those of that session.
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
                let path = workspace.address_of(&artifact);
                all.push(Kept { session: session.clone(), path, artifact });
            }
        }
        all.sort_by(|a, b| (a.artifact.created, &a.artifact.id).cmp(&(b.artifact.created, &b.artifact.id)));
        Ok(all)
    }

    /// Returns the only artifact whose id begins with `beginning`.
    ///
    /// # Errors
    /// If there is none, or several.
    pub fn artifact(&self, beginning: &str) -> Result<(Kept, Workspace), LookupError> {
        let kept = only_match(self.artifacts(None)?, beginning, "artifact", |kept| &kept.artifact.id)?;
        let workspace = self.named(&kept.session);
        Ok((kept, workspace))
    }

    /// Deletes a listed artifact.
    ///
    /// # Errors
    /// If it no longer exists, or cannot be deleted.
    pub fn remove(&self, kept: &Kept) -> io::Result<()> {
        self.named(&kept.session).discard(&kept.artifact)
    }

    /// Deletes the workspace of a session, if there is one. Returns true if there was one on the local disk; a bucket
    /// does not say.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub fn forget(&self, session: &str) -> io::Result<bool> {
        match self.open(session).storage.remove(Path::new("")) {
            Ok(()) => Ok(self.is_local()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Deletes the folders called `name` in the folders of a session's files, if there are any.
    ///
    /// # Errors
    /// If one cannot be deleted.
    pub(crate) fn forget_folders(&self, session: &str, name: &str) -> io::Result<()> {
        let absent = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
        let storage = &self.open(session).storage;
        let items = match storage.list(Path::new(FILES)) {
            Err(e) if absent(&e) => return Ok(()),
            other => other?,
        };
        for (folder, _) in items.into_iter().filter(|(_, item)| item.folder) {
            match storage.remove(&Path::new(FILES).join(folder).join(name)) {
                Err(e) if !absent(&e) => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    /// Deletes the artifacts that are older than `age`, and partial files of killed processes. Returns the number of
    /// deleted artifacts. One that cannot be deleted is tried again by the next sweep.
    pub fn sweep(&self, age: Duration) -> usize {
        let Some(before) = SystemTime::now().checked_sub(age) else { return 0 };
        let of = |name: String| self.named(&name).sweep(before);
        self.names().unwrap_or_default().into_iter().map(of).sum()
    }

    /// Deletes the artifacts older than [`RETENTION`], on the local disk only: a bucket has its own retention rules,
    /// and each listing of it costs a request.
    pub fn sweep_old(&self) {
        if self.is_local() {
            self.sweep(RETENTION);
        }
    }

    fn io(&self, source: io::Error) -> LookupError {
        LookupError::Io { folder: self.root.address(Path::new("")), source }
    }
}

impl Workspace {
    /// Deletes artifacts and partial files from before a time; returns the number of deleted artifacts.
    fn sweep(&self, before: SystemTime) -> usize {
        let all = self.list().unwrap_or_default();
        let count = all.len();
        let is_deleted = |artifact: &Artifact| artifact.created < id::millis(before) && self.discard(artifact).is_ok();
        let left: Vec<Artifact> = all.into_iter().filter(|artifact| !is_deleted(artifact)).collect();
        let known: BTreeSet<String> = left.iter().flat_map(|a| [text_of(a), meta_of(&a.id)]).collect();
        let folder = Path::new(ARTIFACTS);
        for (name, item) in self.storage.list(folder).unwrap_or_default() {
            if !known.contains(&name) && item.modified.is_some_and(|time| time < before) {
                // the next sweep tries again
                let _ = self.storage.remove(&folder.join(name));
            }
        }
        self.storage.sweep(before);
        count - left.len()
    }
}

/// Returns the only item whose id begins with `name`.
fn only_match<T>(all: Vec<T>, name: &str, what: &'static str, id: fn(&T) -> &str) -> Result<T, LookupError> {
    match id::find_by_prefix(all, name, id) {
        id::PrefixMatch::One(one) => Ok(one),
        id::PrefixMatch::None => Err(LookupError::Missing { what, name: name.into() }),
        id::PrefixMatch::Several(mut all) => {
            all.truncate(5);
            Err(LookupError::Ambiguous { name: name.into(), all: all.join(", ") })
        }
    }
}

/// Converts a session's id to a folder name. A changed id gets a hash, so that different ids never share a folder.
fn folder_name(id: &str) -> String {
    let clean: String = id.chars().map(|c| if c.is_alphanumeric() || "_-".contains(c) { c } else { '_' }).collect();
    // an empty name would stand for the folder of all workspaces
    let mut cut = clean.as_str();
    while cut.len() > MAX_NAME {
        cut = &cut[..cut.char_indices().next_back().map_or(0, |(at, _)| at)];
    }
    if cut == id && !id.is_empty() { clean } else { format!("{cut}_{}", &id::hash(id)[..8]) }
}

#[cfg(test)]
mod tests {
    use super::super::storage::{Edit, Item};
    use super::*;
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn artifact(id: &str, created: u64) -> Artifact {
        let (tool, call) = ("shell".into(), "s1c1".into());
        Artifact { id: id.into(), extension: "txt".into(), tool, call, bytes: 1, tokens: 1, lines: 1, created }
    }

    #[test]
    fn a_session_cannot_name_a_folder_elsewhere() {
        assert_eq!(folder_name("session_1-a"), "session_1-a");
        let odd = folder_name("../../etc");
        assert!(odd.starts_with("______etc_") && !odd.contains('/'), "{odd}");
        assert_ne!(folder_name("a/b"), folder_name("a:b"));
        assert!(!folder_name("").is_empty());
        assert_eq!(folder_name(&"a".repeat(200)), "a".repeat(200));
        let (long, other) = (folder_name(&"談".repeat(200)), folder_name(&format!("{}x", "談".repeat(199))));
        assert!(long.len() <= 255 && long.starts_with("談談") && long != other, "{long}");
    }

    #[test]
    fn only_old_artifacts_and_partial_files_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        let all = Workspaces::at(dir.path().join("workspace"));
        assert_eq!(all.sweep(RETENTION), 0, "there is nothing yet");
        let now = SystemTime::now();
        let old = now - RETENTION - Duration::from_secs(60);
        let (one, two) = (all.named("one"), all.named("two"));
        one.put(&artifact("shell_old", id::millis(old)), "x").unwrap();
        one.put(&artifact("shell_new", id::millis(now)), "x").unwrap();
        two.put(&artifact("read_old", id::millis(old)), "x").unwrap();
        two.write("note.md", "mine", crate::workspace::Mode::Create).unwrap();
        let stray = |name: &str, time: SystemTime| {
            let path = dir.path().join("workspace/one").join(name);
            fs::write(&path, "half").unwrap();
            fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            path
        };
        let (torn, unfinished) = (stray("artifacts/shell_9.txt", old), stray(".new-X", now));
        let half = stray(".new-Y", old);
        // the age of a description is that of its artifact, not that of its file
        let meta = dir.path().join("workspace/one/artifacts/shell_new.meta.json");
        fs::File::options().write(true).open(&meta).unwrap().set_modified(old).unwrap();
        assert_eq!(all.sweep(RETENTION), 2);
        let left: Vec<String> = all.artifacts(None).unwrap().into_iter().map(|k| k.artifact.id).collect();
        assert_eq!(left, ["shell_new"]);
        assert_eq!(one.get("shell_new").unwrap(), "x");
        assert!(!torn.exists() && !half.exists() && unfinished.exists());
        assert_eq!(two.view("note.md").unwrap(), "mine\n", "the agent's own files stay");
    }

    /// A folder that counts reads.
    #[derive(Debug)]
    struct Counted(Local, Arc<AtomicUsize>);

    impl Storage for Counted {
        fn metadata(&self, key: &Path) -> io::Result<Option<Item>> {
            self.0.metadata(key)
        }
        fn read(&self, key: &Path) -> io::Result<Vec<u8>> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.read(key)
        }
        fn put(&self, key: &Path, content: &[u8]) -> io::Result<()> {
            self.0.put(key, content)
        }
        fn change(&self, key: &Path, edit: &mut Edit<'_>) -> io::Result<()> {
            self.0.change(key, edit)
        }
        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.0.rename(from, to)
        }
        fn remove(&self, key: &Path) -> io::Result<()> {
            self.0.remove(key)
        }
        fn list(&self, key: &Path) -> io::Result<Vec<(String, Item)>> {
            self.0.list(key)
        }
        fn leads_out(&self, key: &Path) -> bool {
            self.0.leads_out(key)
        }
        fn address(&self, key: &Path) -> PathBuf {
            self.0.address(key)
        }
        fn is_local(&self) -> bool {
            true
        }
        fn below(&self, name: &str) -> Arc<dyn Storage> {
            Arc::new(Self(Local::new(self.0.address(Path::new(name))), self.1.clone()))
        }
        fn sweep(&self, before: SystemTime) {
            self.0.sweep(before);
        }
    }

    #[test]
    fn each_description_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let read = Arc::new(AtomicUsize::new(0));
        let all = Workspaces::of(Arc::new(Counted(Local::new(dir.path().into()), read.clone())));
        for n in 0..20 {
            all.named("one").put(&artifact(&format!("old_{n}"), 1), "x").unwrap();
        }
        assert_eq!((all.sweep(RETENTION), read.swap(0, Ordering::Relaxed)), (20, 20));
        for n in 0..20 {
            all.named("one").put(&artifact(&format!("new_{n}"), n), "x").unwrap();
        }
        all.artifacts(None).unwrap().iter().for_each(|kept| all.remove(kept).unwrap());
        assert_eq!((all.artifacts(None).unwrap().len(), read.load(Ordering::Relaxed)), (0, 20));
    }

    #[test]
    fn an_artifact_is_found_by_the_beginning_of_its_id() {
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
