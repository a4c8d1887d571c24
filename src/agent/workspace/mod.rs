//! The workspace: the agent's own files, apart from the user's. `files/` is the agent's, `artifacts/` the runtime's.
//! Memory is stored elsewhere.
//!
//! - [`path`]: normalises paths. `artifacts`: results that were too long for a prompt.
//! - `sessions`: lists, finds, sweeps and deletes the workspaces of sessions.
//! - `storage`: the interface of a place for files. `local`: the local disk. `remote`: a bucket, with the crate
//!   `object_store`; `s3`: connects to buckets of S3 and R2. [`place`]: opens the configured one.

mod artifacts;
mod local;
mod path;
pub mod place;
#[cfg(feature = "s3")]
mod remote;
#[cfg(feature = "s3")]
mod s3;
mod sessions;
mod storage;

pub use path::inside;
pub use place::{Kind, Place, PlaceError};
pub use sessions::{Kept, LookupError, RETENTION, Workspaces};

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::Storage;

/// The folder of the agent's files.
const FILES: &str = "files";
/// The folder of the runtime's files.
const ARTIFACTS: &str = "artifacts";

/// The mode of writing a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Creates a new file; fails if it exists.
    Create,
    /// Appends to an existing file.
    Append,
    /// Replaces an existing file.
    Overwrite,
}

impl Mode {
    /// Returns the mode of that name; `create` for any other.
    pub fn named(name: &str) -> Self {
        match name {
            "append" => Self::Append,
            "overwrite" => Self::Overwrite,
            _ => Self::Create,
        }
    }
}

/// The reason an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path leads out of the workspace.
    #[error("`{0}` is outside of the workspace")]
    Outside(String),
    /// The file exists.
    #[error("`{path}` exists already and begins: {preview}. Use mode append or overwrite.")]
    Exists {
        /// Its path.
        path: String,
        /// Its beginning.
        preview: String,
    },
    /// There is no such file.
    #[error("there is no `{0}` in the workspace")]
    Missing(String),
    /// The text to replace does not occur in the file.
    #[error("`{old}` does not stand in `{path}`")]
    NotFound {
        /// The file.
        path: String,
        /// The text.
        old: String,
    },
    /// An error of the system.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
}

impl WorkspaceError {
    /// Returns the next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Outside(_) => "name a file without leading / and without ..",
            Self::Exists { .. } => "use mode append or overwrite, or another name",
            Self::Missing(_) | Self::NotFound { .. } => "look at what is there with workspace_view",
            Self::Io { .. } => "check that its place can be reached and written, and is not full",
        }
    }
}

/// One name in a folder of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The name; a folder's ends with a slash.
    pub name: String,
    /// The size of a file in bytes.
    pub bytes: Option<u64>,
}

/// A workspace, local or remote.
#[derive(Debug)]
pub struct Workspace {
    storage: Arc<dyn Storage>,
}

impl Workspace {
    /// Opens the workspace in a local folder, which need not exist yet.
    pub fn open(root: PathBuf) -> Self {
        Self { storage: Arc::new(local::Local::new(root)) }
    }

    /// Returns the address of the agent's files.
    pub fn files(&self) -> PathBuf {
        self.storage.address(Path::new(FILES))
    }

    /// Returns the address of a file of the agent: a path of the disk, or a URL.
    ///
    /// # Errors
    /// If the path leads out of the workspace, by itself or through a link.
    pub fn file(&self, path: &str) -> Result<PathBuf, WorkspaceError> {
        Ok(self.storage.address(&self.key(path)?))
    }

    /// Returns the key of a file of the agent.
    fn key(&self, path: &str) -> Result<PathBuf, WorkspaceError> {
        let outside = || WorkspaceError::Outside(path.to_owned());
        let key = Path::new(FILES).join(inside(path).ok_or_else(outside)?);
        if self.storage.leads_out(&key) { Err(outside()) } else { Ok(key) }
    }

    /// Returns the text of a file, or the names in a folder; the empty path stands for the folder of all files.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn view(&self, path: &str) -> Result<String, WorkspaceError> {
        let key = self.key(path)?;
        if is_root(&key) || self.storage.metadata(&key).map_err(|e| failed(path, e))?.is_some_and(|item| item.folder) {
            let names: Vec<String> = self.entries(path)?.into_iter().map(|entry| entry.name).collect();
            return Ok(if names.is_empty() { "(the workspace is empty)".into() } else { names.join("\n") });
        }
        self.text(path)
    }

    /// Returns the text of a file.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn text(&self, path: &str) -> Result<String, WorkspaceError> {
        self.storage.read(&self.key(path)?).map(|bytes| text(&bytes)).map_err(|e| failed(path, e))
    }

    /// Returns the size of a file in bytes; `None` if it does not exist.
    pub fn size(&self, path: &str) -> Option<u64> {
        let item = self.storage.metadata(&self.key(path).ok()?).ok()??;
        (!item.folder).then_some(item.bytes)
    }

    /// Writes a file atomically; returns a message.
    ///
    /// # Errors
    /// As [`Mode`] says, or if it cannot be written.
    pub fn write(&self, path: &str, content: &str, mode: Mode) -> Result<String, WorkspaceError> {
        self.change(path, |before| {
            let mut text = match (mode, before) {
                (Mode::Create, Some(text)) => {
                    let preview = text.chars().take(80).collect();
                    return Err(WorkspaceError::Exists { path: path.into(), preview });
                }
                (Mode::Append | Mode::Overwrite, None) => return Err(WorkspaceError::Missing(path.into())),
                (Mode::Append, Some(text)) => text,
                _ => String::new(),
            };
            text.push_str(content);
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            let message = format!("wrote `{path}` ({} bytes)", text.len());
            Ok((text, message))
        })
    }

    /// Replaces every `old` by `new`; returns a message.
    ///
    /// # Errors
    /// If there is no such file or text.
    pub fn replace(&self, path: &str, old: &str, new: &str) -> Result<String, WorkspaceError> {
        self.change(path, |before| {
            let text = before.ok_or_else(|| WorkspaceError::Missing(path.into()))?;
            let count = if old.is_empty() { 0 } else { text.matches(old).count() };
            if count == 0 {
                return Err(WorkspaceError::NotFound { path: path.into(), old: old.into() });
            }
            Ok((text.replace(old, new), format!("replaced {count} in `{path}`")))
        })
    }

    /// Inserts text before a line, counted from 1, or at the end if there is no such line; returns a message.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn insert(&self, path: &str, line: usize, content: &str) -> Result<String, WorkspaceError> {
        self.change(path, |before| {
            let text = before.ok_or_else(|| WorkspaceError::Missing(path.into()))?;
            let mut lines: Vec<&str> = text.lines().collect();
            let at = line.clamp(1, lines.len() + 1) - 1;
            lines.splice(at..at, content.lines());
            Ok((lines.join("\n") + "\n", format!("inserted at line {} of `{path}`", at + 1)))
        })
    }

    /// Deletes a file, or a folder with its content; returns a message.
    ///
    /// # Errors
    /// If there is none.
    pub fn delete(&self, path: &str) -> Result<String, WorkspaceError> {
        let key = self.key(path)?;
        if is_root(&key) {
            return Err(WorkspaceError::Missing(path.into()));
        }
        self.storage.remove(&key).map_err(|e| failed(path, e))?;
        Ok(format!("deleted `{path}`"))
    }

    /// Renames a file; returns a message.
    ///
    /// # Errors
    /// If there is none, or the new name is taken.
    pub fn rename(&self, path: &str, to: &str) -> Result<String, WorkspaceError> {
        let (from, target) = (self.key(path)?, self.key(to)?);
        self.storage.rename(&from, &target).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => WorkspaceError::Exists { path: to.into(), preview: "(not shown)".into() },
            _ => failed(path, e),
        })?;
        Ok(format!("renamed `{path}` to `{to}`"))
    }

    /// Deletes every file of the agent, but no artifacts; returns a message.
    ///
    /// # Errors
    /// If they cannot be deleted.
    pub fn clear(&self) -> Result<String, WorkspaceError> {
        match self.storage.remove(Path::new(FILES)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed("", e)),
            _ => Ok("the workspace is empty now".into()),
        }
    }

    /// Changes a file atomically: `work` gets its text, if it exists, and returns the new text and a message.
    fn change(
        &self,
        path: &str,
        work: impl Fn(Option<String>) -> Result<(String, String), WorkspaceError> + Sync,
    ) -> Result<String, WorkspaceError> {
        let key = self.key(path)?;
        let mut outcome = Err(WorkspaceError::Missing(path.into()));
        let done = self.storage.change(&key, &mut |before| {
            let (new, message) = match work(before.map(text)) {
                Ok((text, message)) => (Some(text.into_bytes()), Ok(message)),
                Err(error) => (None, Err(error)),
            };
            outcome = message;
            new
        });
        done.map_err(|e| failed(path, e))?;
        outcome
    }

    /// Lists a folder of the agent, not recursively, by name; empty for a workspace without files.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn entries(&self, path: &str) -> Result<Vec<Entry>, WorkspaceError> {
        let key = self.key(path)?;
        let items = match self.storage.list(&key) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && is_root(&key) => return Ok(Vec::new()),
            other => other.map_err(|e| failed(path, e))?,
        };
        let entry = |(name, item): (String, storage::Item)| match item.folder {
            true => Entry { name: format!("{name}/"), bytes: None },
            false => Entry { name, bytes: Some(item.bytes) },
        };
        let mut all: Vec<Entry> = items.into_iter().map(entry).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}

/// True for the folder of the agent's files itself.
fn is_root(key: &Path) -> bool {
    key == Path::new(FILES)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn failed(path: &str, source: io::Error) -> WorkspaceError {
    match source.kind() {
        io::ErrorKind::NotFound => WorkspaceError::Missing(path.into()),
        _ => WorkspaceError::Io { path: path.into(), source },
    }
}

#[cfg(test)]
mod contract_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_link_cannot_leave_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path().join("ws"));
        workspace.write("a", "x", Mode::Create).unwrap();
        std::os::unix::fs::symlink("/etc", dir.path().join("ws/files/etc")).unwrap();
        assert!(matches!(workspace.view("etc/hostname"), Err(WorkspaceError::Outside(_))));
        assert!(matches!(workspace.write("etc/new", "x", Mode::Create), Err(WorkspaceError::Outside(_))));
        // not even to a folder that contains the workspace
        for (name, leads_to) in [("up", dir.path()), ("top", Path::new("/")), ("files", Path::new("../.."))] {
            std::os::unix::fs::symlink(leads_to, dir.path().join("ws/files").join(name)).unwrap();
            let planted = workspace.write(&format!("files/{name}/planted"), "x", Mode::Create);
            assert!(matches!(planted, Err(WorkspaceError::Outside(_))), "{name}: {planted:?}");
        }
        assert!(!dir.path().join("planted").exists());
        std::os::unix::fs::symlink("sub", dir.path().join("ws/files/within")).unwrap();
        workspace.write("sub/b", "x", Mode::Create).unwrap();
        workspace.write("within/c", "x", Mode::Create).unwrap();
        assert_eq!(workspace.view("sub").unwrap(), "b\nc", "a link within leads nowhere else");
    }
}
