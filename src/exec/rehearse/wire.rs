//! What goes between the caller and the helper: plain data, in files of the private folder and on standard input.

use super::report::Change;
use crate::Status;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What the helper is to do. Names are bytes: a working directory need not be UTF-8.
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

impl Spec {
    pub(super) fn of(play: &super::RehearsalJob, private: &Path) -> Self {
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
