//! The changes that a rehearsal reports: plain data.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It did not exist before.
    Created,
    /// Its content, mode, owner, target or time changed.
    Changed,
    /// It was deleted, with everything below it.
    Deleted,
}

/// One difference that a script made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The kind.
    pub kind: ChangeKind,
    /// The absolute path, with invalid UTF-8 replaced.
    pub path: PathBuf,
    /// The bytes of the path if it is not valid UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<Vec<u8>>,
    /// The new state; `None` if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub now: Option<Entry>,
    /// True if only the time of modification differs.
    #[serde(default)]
    pub time_only: bool,
}

impl Change {
    /// Returns the path that identifies the file on disk.
    pub fn place(&self) -> PathBuf {
        match &self.raw {
            #[cfg(unix)]
            Some(raw) => <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(raw.clone()).into(),
            _ => self.path.clone(),
        }
    }
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// Anything else: a pipe, a socket.
    Other,
}

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The kind of file.
    pub kind: EntryKind,
    /// Permission bits.
    pub mode: u32,
    /// The owner's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
    /// Size in bytes.
    pub size: u64,
    /// Time of modification, in seconds since 1970.
    pub modified: i64,
    /// The target of a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// SHA-256 of a file's content, if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<String>,
}
