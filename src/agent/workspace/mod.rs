//! The agent's own files, apart from the person's: `files/` is the agent's, `artifacts/` the runtime's. The one place in
//! which the harness keeps files; memory is something else and is elsewhere.
//!
//! - [`path`]: which paths are inside. `artifacts`: results that were too long for a prompt.
//! - `sessions`: each session's workspace, listed, found, swept and forgotten.

mod artifacts;
mod path;
mod sessions;

pub use path::inside;
pub use sessions::{Kept, LookupError, RETENTION, Workspaces};

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A new file; refuses where there is one.
    Create,
    /// At the end of a file that must be there.
    Append,
    /// In the place of a file that must be there.
    Overwrite,
}

impl Mode {
    /// By its name; `create` for any other.
    pub fn named(name: &str) -> Self {
        match name {
            "append" => Self::Append,
            "overwrite" => Self::Overwrite,
            _ => Self::Create,
        }
    }
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path leads out.
    #[error("`{0}` is outside of the workspace")]
    Outside(String),
    /// There is a file already.
    #[error("`{path}` exists already and begins: {preview}. Use mode append or overwrite.")]
    Exists {
        /// Its path.
        path: String,
        /// How it begins.
        preview: String,
    },
    /// There is no such file.
    #[error("there is no `{0}` in the workspace")]
    Missing(String),
    /// The text to replace is not there.
    #[error("`{old}` does not stand in `{path}`")]
    NotFound {
        /// The file.
        path: String,
        /// The text.
        old: String,
    },
    /// The system's word.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The reason.
        source: io::Error,
    },
}

impl WorkspaceError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Outside(_) => "name a file without leading / and without ..",
            Self::Exists { .. } => "use mode append or overwrite, or another name",
            Self::Missing(_) | Self::NotFound { .. } => "look at what is there with workspace_view",
            Self::Io { .. } => "check that the disk is not full and the folder can be written",
        }
    }
}

/// One name in a folder of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Entry {
    /// The name; a folder's ends with a slash.
    pub name: String,
    /// The size of a file.
    pub bytes: Option<u64>,
}

/// The workspace on this machine's disk.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// One writer at a time: an append reads before it writes.
    writing: Mutex<()>,
}

impl Workspace {
    /// The workspace in `root`, which need not exist yet.
    pub fn open(root: PathBuf) -> Self {
        Self { root, writing: Mutex::new(()) }
    }

    /// Where the agent's files are.
    pub fn files(&self) -> PathBuf {
        self.root.join("files")
    }

    /// Where the runtime's artifacts are.
    fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// The place of a file of the agent.
    ///
    /// # Errors
    /// If the path leads out of the workspace, by its words or through a link.
    pub fn file(&self, path: &str) -> Result<PathBuf, WorkspaceError> {
        let outside = || WorkspaceError::Outside(path.to_owned());
        let file = self.files().join(inside(path).ok_or_else(outside)?);
        // a link may lead anywhere: what exists of the path must still be below the root
        let existing = file.ancestors().find(|p| p.exists());
        if let (Some(existing), Ok(root)) = (existing, self.root.canonicalize()) {
            let real = existing.canonicalize().map_err(|_| outside())?;
            if !real.starts_with(&root) && !root.starts_with(&real) {
                return Err(outside());
            }
        }
        Ok(file)
    }

    /// The text of a file; of a folder, or of nothing, the names in it.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn view(&self, path: &str) -> Result<String, WorkspaceError> {
        let file = self.file(path)?;
        if file == self.files() || file.is_dir() {
            let names: Vec<String> = self.entries(path)?.into_iter().map(|entry| entry.name).collect();
            return Ok(if names.is_empty() { "(the workspace is empty)".into() } else { names.join("\n") });
        }
        self.read(&file, path)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn text(&self, path: &str) -> Result<String, WorkspaceError> {
        self.read(&self.file(path)?, path)
    }

    /// Writes a file; whole or not at all.
    ///
    /// # Errors
    /// As [`Mode`] says, or if it cannot be written.
    pub fn write(&self, path: &str, content: &str, mode: Mode) -> Result<String, WorkspaceError> {
        let file = self.file(path)?;
        let _writing = self.writing.lock();
        let before = match (mode, file.exists()) {
            (Mode::Create, true) => {
                let preview: String = self.read(&file, path)?.chars().take(80).collect();
                return Err(WorkspaceError::Exists { path: path.into(), preview });
            }
            (Mode::Append | Mode::Overwrite, false) => return Err(WorkspaceError::Missing(path.into())),
            (Mode::Append, true) => self.read(&file, path)?,
            _ => String::new(),
        };
        let mut text = before;
        text.push_str(content);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        put(&file, text.as_bytes()).map_err(|e| failed(path, e))?;
        Ok(format!("wrote `{path}` ({} bytes)", text.len()))
    }

    /// Replaces every `old` by `new`.
    ///
    /// # Errors
    /// If there is no such file or text.
    pub fn replace(&self, path: &str, old: &str, new: &str) -> Result<String, WorkspaceError> {
        self.change(path, |text| {
            let count = if old.is_empty() { 0 } else { text.matches(old).count() };
            if count == 0 {
                return Err(WorkspaceError::NotFound { path: path.into(), old: old.into() });
            }
            Ok((text.replace(old, new), format!("replaced {count} in `{path}`")))
        })
    }

    /// Inserts text before a line, counted from 1; beyond the end it is added there.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn insert(&self, path: &str, line: usize, content: &str) -> Result<String, WorkspaceError> {
        self.change(path, |text| {
            let mut lines: Vec<&str> = text.lines().collect();
            let at = line.clamp(1, lines.len() + 1) - 1;
            lines.splice(at..at, content.lines());
            Ok((lines.join("\n") + "\n", format!("inserted at line {} of `{path}`", at + 1)))
        })
    }

    /// Deletes a file, or a folder with what is in it.
    ///
    /// # Errors
    /// If there is none.
    pub fn delete(&self, path: &str) -> Result<String, WorkspaceError> {
        let file = self.file(path)?;
        let done = match file.is_dir() {
            true if file == self.files() => return Err(WorkspaceError::Missing(path.into())),
            true => fs::remove_dir_all(&file),
            false => fs::remove_file(&file),
        };
        done.map_err(|e| failed(path, e))?;
        Ok(format!("deleted `{path}`"))
    }

    /// Renames a file.
    ///
    /// # Errors
    /// If there is none, or the new name is taken.
    pub fn rename(&self, path: &str, to: &str) -> Result<String, WorkspaceError> {
        let (from, target) = (self.file(path)?, self.file(to)?);
        if target.exists() {
            return Err(WorkspaceError::Exists { path: to.into(), preview: "(not shown)".into() });
        }
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(|e| failed(to, e))?;
        }
        fs::rename(from, target).map_err(|e| failed(path, e))?;
        Ok(format!("renamed `{path}` to `{to}`"))
    }

    /// Deletes every file of the agent; artifacts stay.
    ///
    /// # Errors
    /// If they cannot be deleted.
    pub fn clear(&self) -> Result<String, WorkspaceError> {
        match fs::remove_dir_all(self.files()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed("", e)),
            _ => Ok("the workspace is empty now".into()),
        }
    }

    fn change(
        &self,
        path: &str,
        work: impl FnOnce(String) -> Result<(String, String), WorkspaceError>,
    ) -> Result<String, WorkspaceError> {
        let file = self.file(path)?;
        let _writing = self.writing.lock();
        let (text, said) = work(self.read(&file, path)?)?;
        put(&file, text.as_bytes()).map_err(|e| failed(path, e))?;
        Ok(said)
    }

    fn read(&self, file: &Path, path: &str) -> Result<String, WorkspaceError> {
        fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|e| failed(path, e))
    }

    /// What is in a folder of the agent, not in the folders below it, by name; nothing of a workspace without files.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn entries(&self, path: &str) -> Result<Vec<Entry>, WorkspaceError> {
        let folder = self.file(path)?;
        let entries = match fs::read_dir(&folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && folder == self.files() => return Ok(Vec::new()),
            other => other.map_err(|e| failed(path, e))?,
        };
        let entry = |e: fs::DirEntry| {
            let (slash, bytes) = match e.path().is_dir() {
                true => ("/", None),
                false => ("", Some(e.metadata().map_or(0, |meta| meta.len()))),
            };
            Entry { name: format!("{}{slash}", e.file_name().to_string_lossy()), bytes }
        };
        let mut all: Vec<Entry> = entries.flatten().map(entry).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}

/// Writes a file whole or not at all: beside it first, then in its place.
fn put(file: &Path, content: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(content)?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|e| e.error)?;
    Ok(())
}

fn failed(path: &str, source: io::Error) -> WorkspaceError {
    match source.kind() {
        io::ErrorKind::NotFound => WorkspaceError::Missing(path.into()),
        _ => WorkspaceError::Io { path: path.into(), source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_link_does_not_lead_out() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path().join("ws"));
        workspace.write("a", "x", Mode::Create).unwrap();
        std::os::unix::fs::symlink("/etc", dir.path().join("ws/files/etc")).unwrap();
        assert!(matches!(workspace.view("etc/hostname"), Err(WorkspaceError::Outside(_))));
        assert!(matches!(workspace.write("etc/new", "x", Mode::Create), Err(WorkspaceError::Outside(_))));
    }
}
