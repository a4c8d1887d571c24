//! Data exchanged between the caller and the helper: files of the private folder and standard input.

use super::report::Change;
use crate::Status;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The task of the helper. Paths are bytes, as a working directory need not be UTF-8.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Spec {
    pub shell: Vec<Vec<u8>>,
    pub script: Vec<u8>,
    pub args: Vec<Vec<u8>>,
    pub cwd: Vec<u8>,
    pub private: Vec<u8>,
    pub writable: Option<Vec<u8>>,
    pub digests: bool,
    pub wall_micros: u64,
}

impl Spec {
    pub(super) fn of(rehearsal: &super::RehearsalJob, private: &Path) -> Self {
        let bytes = |text: &std::ffi::OsStr| text.to_owned().into_vec();
        Self {
            shell: rehearsal.shell.iter().map(|word| bytes(word)).collect(),
            script: bytes(&rehearsal.script),
            args: rehearsal.args.iter().map(|word| bytes(word)).collect(),
            cwd: bytes(rehearsal.cwd.as_os_str()),
            private: bytes(private.as_os_str()),
            writable: rehearsal.writable.as_ref().map(|path| bytes(path.as_os_str())),
            digests: rehearsal.digests,
            wall_micros: u64::try_from(rehearsal.limits.wall.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

/// Converts a path of a [`Spec`].
pub(super) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

/// The result that the helper writes to the private folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub end: End,
    pub changes: Vec<Change>,
    pub unlisted: u64,
    /// Wall time of the script in microseconds.
    pub micros: u64,
}

/// The outcome.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum End {
    /// The view could not be created, for this reason.
    Failed(String),
    /// The script ended.
    Ended(ScriptStatus),
}

/// The part of [`Status`] that the helper can determine.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum ScriptStatus {
    Exited(i32),
    Signaled(i32),
    TimedOut,
}

impl From<ScriptStatus> for Status {
    fn from(status: ScriptStatus) -> Self {
        match status {
            ScriptStatus::Exited(code) => Self::Exited(code),
            ScriptStatus::Signaled(signal) => Self::Signaled(signal),
            ScriptStatus::TimedOut => Self::TimedOut,
        }
    }
}

impl Report {
    const FILE: &'static str = "report.json";

    /// Reads the report in a folder; `None` if it is missing or incomplete.
    pub(super) fn read(private: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(private.join(Self::FILE)).ok()?).ok()
    }

    /// Writes the report to a folder.
    pub(super) fn write(&self, private: &Path) -> std::io::Result<()> {
        std::fs::write(private.join(Self::FILE), serde_json::to_vec(self)?)
    }
}
