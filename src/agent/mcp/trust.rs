//! Which project files the person trusts: a server is a program that is started, and a project's file may come from anybody.
//!
//! Trust is for a file at a path with exactly this text: another text has to be trusted again. The path is where the file is
//! named and not where a link leads: what it starts is looked for from there.

use caro_base::files;
use caro_base::id;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// The most bytes of the record.
const LARGEST: u64 = 16 << 20;

/// The record of what is trusted: a file of the person's own.
#[derive(Debug, Clone)]
pub struct Trust {
    file: PathBuf,
}

impl Trust {
    /// The record in a file, which need not exist yet.
    pub fn new(file: PathBuf) -> Self {
        Self { file }
    }

    /// True if this text at this path was trusted.
    pub fn holds(&self, path: &Path, text: &str) -> bool {
        // what cannot be read trusts nothing
        self.read().unwrap_or_default().get(&key(path)).is_some_and(|sum| *sum == id::hash(text))
    }

    /// Trusts this text at this path; `None` takes the trust back.
    ///
    /// # Errors
    /// If the record cannot be written, or is there and cannot be read: then it is left as it is.
    pub fn set(&self, path: &Path, text: Option<&str>) -> std::io::Result<()> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let lock =
            OpenOptions::new().write(true).create(true).truncate(false).open(self.file.with_extension("lock"))?;
        // two at once would each write without the other's; some network file systems have no locks
        let _held = lock.lock();
        let mut all = self.read()?;
        match text {
            Some(text) => all.insert(key(path), id::hash(text)),
            None => all.remove(&key(path)),
        };
        // whole or not at all: half a record would trust nothing
        files::replace(&self.file, serde_json::to_string_pretty(&all)?.as_bytes(), files::Access::Private)
    }

    /// All that is trusted; nothing where there is no record yet.
    fn read(&self) -> std::io::Result<BTreeMap<String, String>> {
        match files::read(&self.file, LARGEST) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|e| Error::new(ErrorKind::InvalidData, format!("{}: {e}", self.file.display()))),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(e) => Err(e),
        }
    }
}

/// A path as it is recorded: its folder with all links resolved, and its own name.
fn key(path: &Path) -> String {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let whole = folder.zip(path.file_name()).map(|(folder, name)| folder.join(name));
    whole.unwrap_or_else(|| path.to_path_buf()).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_for_this_text_at_this_path() {
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
    fn agreements_at_the_same_time_are_all_kept() {
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
    fn a_link_inherits_no_trust() {
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
