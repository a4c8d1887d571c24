//! What the script itself may not do: limits, capabilities, system calls. Put up last thing before its shell begins.

use super::sys;
use crate::fence::view_filter;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io;
use std::time::Duration;

/// Bytes a process may have in private memory that can be written; what it only reserves is not counted.
const DATA: u64 = 1 << 30;
/// The largest file, bytes.
const FILE_SIZE: u64 = 64 << 20;
/// Processes and threads.
const PROCESSES: u64 = 256;
/// Open files.
const FILES: u64 = 1024;
/// What root keeps of its rights: those over files, its own processes and user numbers. Source: capabilities(7).
const KEPT: [u32; 7] = [CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID];
const CHOWN: u32 = 0;
const DAC_OVERRIDE: u32 = 1;
const FOWNER: u32 = 3;
const FSETID: u32 = 4;
const KILL: u32 = 5;
const SETGID: u32 = 6;
const SETUID: u32 = 7;
/// The highest number a capability can have.
const LAST_CAPABILITY: u32 = 63;

/// The most processes that the namespace may number; the kernel wants at least 301.
pub(super) const PID_MAX: &str = "400";

/// Confines the calling process, for good.
pub(super) fn confine(wall: Duration) -> io::Result<()> {
    rustix::process::setsid()?;
    let cpu = wall.as_secs().saturating_add(2);
    for (resource, value) in [
        (Resource::Core, 0),
        (Resource::Cpu, cpu),
        (Resource::Data, DATA),
        (Resource::Fsize, FILE_SIZE),
        (Resource::Nproc, PROCESSES),
        (Resource::Nofile, FILES),
    ] {
        // A limit we may not set is one that is stricter already.
        let _ = setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) });
    }
    let root = rustix::process::geteuid().is_root();
    for capability in 0..=LAST_CAPABILITY {
        if !(root && KEPT.contains(&capability)) {
            // An error is a number that this kernel does not have.
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
