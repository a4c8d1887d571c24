//! What the caller is told: plain data.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It was not there.
    Created,
    /// Its content, mode, owner, target or time is another.
    Changed,
    /// It is gone, with all below it.
    Deleted,
}

/// One difference that a script made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// The absolute path; what is no UTF-8 in it is replaced.
    pub path: PathBuf,
    /// The bytes of that path where it is no UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<Vec<u8>>,
    /// What is there now; `None` if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub now: Option<Entry>,
    /// True if nothing but the time of change differs.
    #[serde(default)]
    pub time_only: bool,
}

impl Change {
    /// The path by which it is found on the disk.
    pub fn place(&self) -> PathBuf {
        match &self.raw {
            #[cfg(unix)]
            Some(raw) => <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(raw.clone()).into(),
            _ => self.path.clone(),
        }
    }
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket.
    Other,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits.
    pub mode: u32,
    /// The owner's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
    /// Bytes.
    pub size: u64,
    /// Seconds since 1970.
    pub modified: i64,
    /// Where a symbolic link leads.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// SHA-256 of a file's content, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<String>,
}
