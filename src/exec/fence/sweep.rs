//! Finds the processes of a job that left its process group (daemons), by the variable they inherited.

use rustix::process::{Pid, Signal};
use std::fs;

/// Passes at most: a process may fork while we look.
const PASSES: usize = 8;

/// Kills every process whose environment holds `tag` (`NAME=value`), until there is none. One that wiped its
/// environment, or runs as somebody else, is out of reach.
pub(super) fn kill_tagged(tag: &[u8]) {
    for _ in 0..PASSES {
        if !kill_once(tag) {
            return;
        }
    }
}

/// One pass; true if somebody was found.
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
