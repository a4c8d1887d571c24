//! Whether the process that drove a run is still there.

/// True if a process of that number runs.
#[cfg(unix)]
pub fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// A process that crashed cannot be told from one that works: the person who resumes knows.
#[cfg(not(unix))]
pub fn is_alive(_: u32) -> bool {
    false
}
