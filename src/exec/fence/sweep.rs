//! Kills the processes of a job that left its process group (daemons), found by an environment variable that they
//! inherited.

use rustix::process::{Pid, Signal};
use std::fs;

/// Most passes; a process may fork during one.
const MAX_PASSES: usize = 8;

/// Kills every process whose environment contains `tag` (`NAME=value`), until none is found. A process that cleared
/// its environment, or runs as another user, is not found.
pub(super) fn kill_tagged(tag: &[u8]) {
    for _ in 0..MAX_PASSES {
        if !kill_once(tag) {
            return;
        }
    }
}

/// Makes one pass; true if a process was found.
fn kill_once(tag: &[u8]) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let mut found = false;
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| Pid::from_raw(name.parse().ok()?)) else {
            continue;
        };
        let Ok(environment) = fs::read(process.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == tag) {
            found = true;
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    found
}
