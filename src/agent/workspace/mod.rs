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

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How a file is named until it is whole.
const NEW: &str = ".new-";

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
}

impl Workspace {
    /// The workspace in `root`, which need not exist yet.
    pub fn open(root: PathBuf) -> Self {
        Self { root }
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
        // (in one look: another process may take it away between two)
        let existing = file.ancestors().find_map(|p| p.canonicalize().ok());
        if let (Some(real), Ok(root)) = (existing, self.root.canonicalize())
            && !real.starts_with(&root)
            && !root.starts_with(&real)
        {
            return Err(outside());
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

    /// The bytes of a file; nothing where there is none.
    pub fn size(&self, path: &str) -> Option<u64> {
        let meta = fs::metadata(self.file(path).ok()?).ok()?;
        meta.is_file().then_some(meta.len())
    }

    /// Writes a file; whole or not at all.
    ///
    /// # Errors
    /// As [`Mode`] says, or if it cannot be written.
    pub fn write(&self, path: &str, content: &str, mode: Mode) -> Result<String, WorkspaceError> {
        let file = self.file(path)?;
        let _alone = self.alone()?;
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
        self.put_file(&file, text.as_bytes()).map_err(|e| failed(path, e))?;
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
        let _alone = self.alone()?;
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
        let _alone = self.alone()?;
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
        let _alone = self.alone()?;
        match fs::remove_dir_all(self.files()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed("", e)),
            _ => Ok("the workspace is empty now".into()),
        }
    }

    /// Keeps every other writer out, of this process and of others, until it is dropped; the system lets go of it when a
    /// process ends, however it ends. Each writer takes it: an append reads before it writes.
    fn alone(&self) -> Result<File, WorkspaceError> {
        let taken = fs::create_dir_all(&self.root).and_then(|()| {
            let lock = File::options().create(true).append(true).open(self.root.join(".lock"))?;
            match lock.lock() {
                // a file system without locks has nobody else on it but by accident
                Err(e) if e.kind() != io::ErrorKind::Unsupported => Err(e),
                _ => Ok(lock),
            }
        });
        taken.map_err(|e| failed(".lock", e))
    }

    /// Writes a file whole or not at all: where nobody looks for files first, then in its place.
    fn put_file(&self, file: &Path, content: &[u8]) -> io::Result<()> {
        fs::create_dir_all(file.parent().unwrap_or(&self.root))?;
        let mut new = tempfile::Builder::new().prefix(NEW).tempfile_in(&self.root)?;
        new.write_all(content)?;
        new.as_file().sync_all()?;
        new.persist(file).map_err(|e| e.error)?;
        Ok(())
    }

    fn change(
        &self,
        path: &str,
        work: impl FnOnce(String) -> Result<(String, String), WorkspaceError>,
    ) -> Result<String, WorkspaceError> {
        let file = self.file(path)?;
        let _alone = self.alone()?;
        let (text, said) = work(self.read(&file, path)?)?;
        self.put_file(&file, text.as_bytes()).map_err(|e| failed(path, e))?;
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

    #[test]
    fn every_case_has_its_words() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path().join("ws"));
        let write = |path: &str, text: &str, mode: &str| workspace.write(path, text, Mode::named(mode));
        let cases = [
            (workspace.view(""), "(the workspace is empty)"),
            (write("a.md", "one", "append"), "there is no `a.md` in the workspace"),
            (write("a.md", "one", "overwrite"), "there is no `a.md` in the workspace"),
            (write("a.md", "one", "create"), "wrote `a.md` (4 bytes)"),
            (write("a.md", "two", "create"), "`a.md` exists already and begins: one\n. Use mode append or overwrite."),
            (write("a.md", "two", "append"), "wrote `a.md` (8 bytes)"),
            (write("a.md", "two\ntwo", "overwrite"), "wrote `a.md` (8 bytes)"),
            (workspace.replace("a.md", "two", "2"), "replaced 2 in `a.md`"),
            (workspace.replace("a.md", "two", "2"), "`two` does not stand in `a.md`"),
            (workspace.replace("a.md", "", "2"), "`` does not stand in `a.md`"),
            (workspace.replace("b.md", "two", "2"), "there is no `b.md` in the workspace"),
            // counted from 1; what is before the first or behind the last line is there
            (workspace.insert("a.md", 0, "first"), "inserted at line 1 of `a.md`"),
            (workspace.insert("a.md", 2, "second"), "inserted at line 2 of `a.md`"),
            (workspace.insert("a.md", 5, "fifth"), "inserted at line 5 of `a.md`"),
            (workspace.insert("a.md", 999, "last\nof all"), "inserted at line 6 of `a.md`"),
            (workspace.insert("b.md", 1, "x"), "there is no `b.md` in the workspace"),
            (workspace.view("a.md"), "first\nsecond\n2\n2\nfifth\nlast\nof all\n"),
            (workspace.rename("a.md", "sub/c.md"), "renamed `a.md` to `sub/c.md`"),
            (workspace.rename("a.md", "d.md"), "there is no `a.md` in the workspace"),
            (write("d.md", "", "create"), "wrote `d.md` (0 bytes)"),
            (
                workspace.rename("d.md", "sub/c.md"),
                "`sub/c.md` exists already and begins: (not shown). Use mode append or overwrite.",
            ),
            // a folder shows what is in it, and not what is below that
            (workspace.view("/"), "d.md\nsub/"),
            (workspace.view("sub"), "c.md"),
            (workspace.view("b.md"), "there is no `b.md` in the workspace"),
            (workspace.delete("b.md"), "there is no `b.md` in the workspace"),
            (workspace.delete(""), "there is no `` in the workspace"),
            (workspace.delete("sub"), "deleted `sub`"),
            (workspace.delete("../ws"), "`../ws` is outside of the workspace"),
            (workspace.clear(), "the workspace is empty now"),
            (workspace.clear(), "the workspace is empty now"),
            (workspace.view("files"), "(the workspace is empty)"),
        ];
        for (at, (said, golden)) in cases.into_iter().enumerate() {
            assert_eq!(said.unwrap_or_else(|e| e.to_string()), golden, "case {at}");
        }
    }

    /// Two workspaces on one folder are what two processes have.
    #[test]
    fn writers_do_not_lose_each_others_words() {
        let dir = tempfile::tempdir().unwrap();
        Workspace::open(dir.path().into()).write("log", "0 0", Mode::Create).unwrap();
        std::thread::scope(|scope| {
            for writer in 1..=3 {
                let workspace = Workspace::open(dir.path().into());
                scope.spawn(move || {
                    for n in 0..40 {
                        workspace.write("log", &format!("{writer} {n}"), Mode::Append).unwrap();
                        // of two who find a name free, one gets it
                        let taken = workspace.write(&format!("name {n}"), "mine", Mode::Create);
                        assert!(matches!(taken, Ok(_) | Err(WorkspaceError::Exists { .. })));
                        let _ = workspace.rename(&format!("name {n}"), &format!("other {n}"));
                    }
                });
            }
        });
        let workspace = Workspace::open(dir.path().into());
        assert_eq!(workspace.view("log").unwrap().lines().count(), 121);
        let names = workspace.entries("").unwrap();
        assert!(names.iter().all(|e| !e.name.starts_with(NEW) && e.name != ".lock"), "{names:?}");
    }
}
