//! Windows: no console window, and the whole process tree is killed by `taskkill`. There is no sandbox.

use crate::Job;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// Source: Process Creation Flags, CREATE_NO_WINDOW and CREATE_NEW_PROCESS_GROUP.
const FLAGS: u32 = 0x0800_0000 | 0x0000_0200;

/// The fence, which needs no preparation here.
pub(crate) struct Fence;

impl Fence {
    /// Prepares nothing.
    pub(crate) fn prepare(_job: &Job, _scratch: Option<&Path>) -> Self {
        Self
    }

    /// Returns the job's own program and arguments.
    pub(crate) fn command_line(&self, job: &Job) -> (PathBuf, Vec<OsString>) {
        (job.program.clone(), job.args.clone())
    }

    /// Returns no variables.
    pub(crate) fn variables(&self) -> [(&'static OsStr, &OsStr); 0] {
        []
    }

    /// Makes the child start without a console window.
    pub(crate) fn arm(&self, command: &mut Command) {
        command.creation_flags(FLAGS);
    }

    /// Returns the processes of the child `id`.
    pub(crate) fn members(&self, id: Option<u32>) -> Members {
        Members { leader: id }
    }
}

/// The processes of one job, identified by its first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Members {
    leader: Option<u32>,
}

impl Members {
    /// Kills the child and its descendants.
    pub(crate) fn kill(&self) {
        let Some(leader) = self.leader else { return };
        let root = std::env::var_os("SystemRoot").map_or_else(|| PathBuf::from(r"C:\Windows"), PathBuf::from);
        let _ = std::process::Command::new(root.join(r"System32\taskkill.exe"))
            .args(["/T", "/F", "/PID", &leader.to_string()])
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
    }
}
