//! The record of changes that calls made below the working folder.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A file or folder that was created or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path, relative to the working folder.
    pub path: String,
    /// True for a folder.
    pub folder: bool,
    /// Its new text, if it is a small text file.
    pub text: Option<String>,
}

/// The changes that calls made below the working folder, to which paths are relative.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Files and folders that did not exist before.
    pub created: Vec<Entry>,
    /// Paths that no longer exist.
    pub removed: Vec<String>,
    /// Files whose text changed.
    pub changed: Vec<Entry>,
    /// Paths of which only the permissions changed.
    pub modes: Vec<String>,
    /// Paths that existed before.
    pub before: BTreeSet<String>,
}

impl Changes {
    /// True if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.created.is_empty() && self.removed.is_empty() && self.changed.is_empty() && self.modes.is_empty()
    }

    /// Adds `later` changes to these. The result has no texts of files, and no paths that existed before.
    #[must_use]
    pub fn then(&self, later: &Self) -> Self {
        let bare = |entry: &Entry| Entry { text: None, ..entry.clone() };
        let mut all = Self { created: self.created.iter().map(bare).collect(), ..Self::default() };
        all.removed.clone_from(&self.removed);
        all.changed = self.changed.iter().map(bare).collect();
        all.modes.clone_from(&self.modes);
        for path in &later.removed {
            let made = all.created.iter().position(|entry| entry.path == *path);
            match made {
                Some(at) => _ = all.created.remove(at),
                None => all.removed.push(path.clone()),
            }
            all.changed.retain(|entry| entry.path != *path);
            all.modes.retain(|mode| mode != path);
        }
        for entry in &later.created {
            match all.removed.iter().position(|path| *path == entry.path) {
                Some(at) => {
                    all.removed.remove(at);
                    all.changed.push(bare(entry));
                }
                None => all.created.push(bare(entry)),
            }
        }
        let known = |all: &[Entry], path: &str| all.iter().any(|entry| entry.path == path);
        for entry in &later.changed {
            if !known(&all.created, &entry.path) && !known(&all.changed, &entry.path) {
                all.changed.push(bare(entry));
            }
        }
        all.modes.extend(later.modes.iter().filter(|path| !self.modes.contains(path)).cloned());
        all
    }

    /// Returns the entries that were created or changed.
    pub fn made(&self) -> impl Iterator<Item = &Entry> {
        self.created.iter().chain(&self.changed)
    }
}
