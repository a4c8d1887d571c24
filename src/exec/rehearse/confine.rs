//! Confines the script itself by limits, capabilities and a filter of system calls, as the last step before its shell
//! begins.

use super::sys;
use crate::fence::view_filter;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io;
use std::time::Duration;

/// Most bytes of writable private memory of a process; reserved memory is not counted.
const MAX_DATA: u64 = 1 << 30;
/// The largest file, in bytes.
const MAX_FILE_SIZE: u64 = 64 << 20;
/// Most processes and threads.
const MAX_PROCESSES: u64 = 256;
/// Most open files.
const MAX_FILES: u64 = 1024;
/// Capabilities that root keeps: over files, its own processes and user numbers. Source: capabilities(7).
const KEPT_CAPABILITIES: [u32; 7] = [CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID];
const CHOWN: u32 = 0;
const DAC_OVERRIDE: u32 = 1;
const FOWNER: u32 = 3;
const FSETID: u32 = 4;
const KILL: u32 = 5;
const SETGID: u32 = 6;
const SETUID: u32 = 7;
/// The highest possible number of a capability.
const LAST_CAPABILITY: u32 = 63;

/// The highest process number in the namespace; the kernel requires at least 301.
pub(super) const PID_MAX: &str = "400";

/// Confines the calling process, irrevocably.
pub(super) fn confine(wall: Duration) -> io::Result<()> {
    rustix::process::setsid()?;
    let cpu = wall.as_secs().saturating_add(2);
    for (resource, value) in [
        (Resource::Core, 0),
        (Resource::Cpu, cpu),
        (Resource::Data, MAX_DATA),
        (Resource::Fsize, MAX_FILE_SIZE),
        (Resource::Nproc, MAX_PROCESSES),
        (Resource::Nofile, MAX_FILES),
    ] {
        // a limit that may not be set is stricter already
        let _ = setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) });
    }
    let root = rustix::process::geteuid().is_root();
    for capability in 0..=LAST_CAPABILITY {
        if !(root && KEPT_CAPABILITIES.contains(&capability)) {
            // an error means that this kernel has no such capability
            let _ = sys::prctl(libc::PR_CAPBSET_DROP, u64::from(capability));
        }
    }
    let _ = sys::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64);
    rustix::thread::set_no_new_privs(true)?;
    match view_filter() {
        Some(filter) => seccompiler::apply_filter(&filter).map_err(|e| io::Error::other(e.to_string())),
        None => Err(io::Error::other("this kernel does not filter system calls")),
    }
}
