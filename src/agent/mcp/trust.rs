//! Which project files the person trusts: a server is a program that is started, and a project's file may come from anybody.
//!
//! Trust is for a file at a path with exactly this text: another text has to be trusted again.

use crate::agent::id;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

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
        self.read().get(&key(path)).is_some_and(|sum| *sum == id::hash(text))
    }

    /// Trusts this text at this path; `None` takes the trust back.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn set(&self, path: &Path, text: Option<&str>) -> std::io::Result<()> {
        let mut all = self.read();
        match text {
            Some(text) => all.insert(key(path), id::hash(text)),
            None => all.remove(&key(path)),
        };
        let folder = self.file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        // whole or not at all: half a record would trust nothing
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(serde_json::to_string_pretty(&all)?.as_bytes())?;
        new.persist(&self.file).map_err(|e| e.error)?;
        Ok(())
    }

    /// What cannot be read trusts nothing.
    fn read(&self) -> BTreeMap<String, String> {
        std::fs::read(&self.file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }
}

/// A path as it is recorded.
fn key(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf()).display().to_string()
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
    }
}
