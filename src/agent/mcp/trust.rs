//! Records which projects' server lists the user trusts: servers are programs that are started, and a project's file
//! may come from anybody.
//!
//! Trust is given to a path with exactly one text; a changed text must be trusted again. The path is the file's own,
//! not the target of a link, because relative commands start from the file's folder.

use caro_base::files;
use caro_base::id;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// Largest record read, bytes.
const MAX_RECORD_BYTES: u64 = 16 << 20;

/// The record of trusted files, in a file of the user's own.
#[derive(Debug, Clone)]
pub struct Trust {
    file: PathBuf,
}

impl Trust {
    /// Opens the record in `file`, which need not exist yet.
    pub fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// True if this text at this path is trusted.
    pub fn holds(&self, path: &Path, text: &str) -> bool {
        // an unreadable record trusts nothing
        self.read().unwrap_or_default().get(&key(path)).is_some_and(|sum| *sum == id::hash(text))
    }

    /// Trusts this text at this path; `None` revokes the trust in the path.
    ///
    /// # Errors
    /// If the record cannot be written, or exists but cannot be read; then it is left unchanged.
    pub fn set(&self, path: &Path, text: Option<&str>) -> std::io::Result<()> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).open(self.file.with_extension("lock"))?;
        // concurrent writers would lose each other's changes; a failed lock is ignored: some network file systems
        // have none
        let _held = lock.lock();
        let mut all = self.read()?;
        match text {
            Some(text) => all.insert(key(path), id::hash(text)),
            None => all.remove(&key(path)),
        };
        // written atomically: a partial record would trust nothing
        files::replace(&self.file, serde_json::to_string_pretty(&all)?.as_bytes(), files::Access::Private)
    }

    /// Reads the record; empty if it does not exist.
    fn read(&self) -> std::io::Result<BTreeMap<String, String>> {
        match files::read(&self.file, MAX_RECORD_BYTES) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|e| Error::new(ErrorKind::InvalidData, format!("{}: {e}", self.file.display()))),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(e) => Err(e),
        }
    }
}

/// Returns the form of a path used in the record: its folder with all links resolved, and its own name.
fn key(path: &Path) -> String {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let whole = folder.zip(path.file_name()).map(|(folder, name)| folder.join(name));
    whole.unwrap_or_else(|| path.to_path_buf()).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_covers_one_text_at_one_path() {
        let dir = tempfile::tempdir().unwrap();
        let trust = Trust::new(dir.path().join("data/trusted.json"));
        let (one, other) = (dir.path().join("a.json"), dir.path().join("b.json"));
        assert!(!trust.holds(&one, "text"));
        trust.set(&one, Some("text")).unwrap();
        assert!(trust.holds(&one, "text"));
        assert!(!trust.holds(&one, "text with a new server") && !trust.holds(&other, "text"));
        trust.set(&one, None).unwrap();
        assert!(!trust.holds(&one, "text"));
        std::fs::write(dir.path().join("data/trusted.json"), "no json").unwrap();
        assert!(!trust.holds(&one, "text"));
        let failed = trust.set(&one, Some("text")).unwrap_err();
        assert!(failed.to_string().contains("trusted.json"), "{failed}");
        assert_eq!(std::fs::read(dir.path().join("data/trusted.json")).unwrap(), b"no json", "nothing is overwritten");
    }

    #[test]
    fn concurrent_changes_are_all_recorded() {
        let dir = tempfile::tempdir().unwrap();
        let trust = Trust::new(dir.path().join("data/trusted.json"));
        let files: Vec<PathBuf> = (0..16).map(|n| dir.path().join(format!("{n}.json"))).collect();
        std::thread::scope(|scope| {
            for file in &files {
                scope.spawn(|| trust.set(file, Some("text")).unwrap());
            }
        });
        assert!(files.iter().all(|file| trust.holds(file, "text")));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_does_not_inherit_trust() {
        let dir = tempfile::tempdir().unwrap();
        let file = |folder: &str| dir.path().join(folder).join(".mcp.json");
        for folder in ["a", "b"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        std::fs::write(file("a"), "text").unwrap();
        std::os::unix::fs::symlink("../a/.mcp.json", file("b")).unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("same")).unwrap();
        let trust = Trust::new(dir.path().join("trusted.json"));
        trust.set(&file("a"), Some("text")).unwrap();
        assert!(!trust.holds(&file("b"), "text"), "its command is another program there");
        assert!(trust.holds(&file("same"), "text"));
    }
}
