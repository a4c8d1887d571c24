//! What goes between the caller and the helper, and what the caller is told: plain data.

use crate::exec::Status;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::Path};

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
    /// What is there now; `None` if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub now: Option<Entry>,
    /// True if nothing but the time of change differs.
    #[serde(default)]
    pub time_only: bool,
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

/// What the helper is to do. Names are bytes: a working directory need not be UTF-8.
#[cfg(target_os = "linux")]
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Spec {
    pub shell: Vec<Vec<u8>>,
    pub script: Vec<u8>,
    pub after: Vec<Vec<u8>>,
    pub cwd: Vec<u8>,
    pub private: Vec<u8>,
    pub writable: Option<Vec<u8>>,
    pub digests: bool,
    pub wall_micros: u64,
}

#[cfg(target_os = "linux")]
impl Spec {
    pub(super) fn of(play: &super::Play, private: &Path) -> Self {
        let bytes = |text: &std::ffi::OsStr| text.to_owned().into_vec();
        Self {
            shell: play.shell.iter().map(|word| bytes(word)).collect(),
            script: bytes(&play.script),
            after: play.after.iter().map(|word| bytes(word)).collect(),
            cwd: bytes(play.cwd.as_os_str()),
            private: bytes(private.as_os_str()),
            writable: play.writable.as_ref().map(|path| bytes(path.as_os_str())),
            digests: play.digests,
            wall_micros: u64::try_from(play.limits.wall.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

/// A name out of a [`Spec`].
#[cfg(target_os = "linux")]
pub(super) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

/// What the helper leaves in the private folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub end: End,
    pub changes: Vec<Change>,
    pub unlisted: u64,
    /// Wall time of the script.
    pub micros: u64,
}

/// How it went.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum End {
    /// There is no view, for this reason.
    Failed(String),
    /// The script ended.
    Ended(How),
}

/// [`Status`] as far as the helper can tell.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum How {
    Exited(i32),
    Signaled(i32),
    TimedOut,
}

impl From<How> for Status {
    fn from(how: How) -> Self {
        match how {
            How::Exited(code) => Self::Exited(code),
            How::Signaled(signal) => Self::Signaled(signal),
            How::TimedOut => Self::TimedOut,
        }
    }
}

#[cfg(target_os = "linux")]
impl Report {
    const FILE: &'static str = "report.json";

    /// The report in that folder, if there is a whole one.
    pub(super) fn read(private: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(private.join(Self::FILE)).ok()?).ok()
    }

    /// Leaves the report in that folder.
    pub(super) fn write(&self, private: &Path) -> std::io::Result<()> {
        std::fs::write(private.join(Self::FILE), serde_json::to_vec(self)?)
    }
}
