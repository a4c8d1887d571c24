//! Whether the process that drove a run is still there.

/// The process that a run belongs to, or did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// When the run was last heard of, milliseconds since 1970, UTC.
    pub heard: u64,
}

impl Owner {
    /// True if it is this process.
    pub(super) fn is_this(self) -> bool {
        self.pid == std::process::id()
    }
}

/// True if that process runs: one of its number that began after the run was heard of is another one.
#[cfg(unix)]
pub fn is_alive(owner: Owner) -> bool {
    let pid = i32::try_from(owner.pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok()) && !is_another(owner)
}

/// A process that crashed cannot be told from one that works: the person who resumes knows.
#[cfg(not(unix))]
pub fn is_alive(_: Owner) -> bool {
    false
}

/// True if that process is known to be gone.
#[cfg(unix)]
pub(super) fn is_gone(owner: Owner) -> bool {
    !is_alive(owner)
}

/// Nobody can know.
#[cfg(not(unix))]
pub(super) fn is_gone(_: Owner) -> bool {
    false
}

/// How long before its process a run may seem to have been heard of: clocks are set, and count in steps.
#[cfg(target_os = "linux")]
const SLACK: f64 = 60.0;

/// True if the process of this number is known to be younger than what was heard of the run. Both are ages, so that a clock
/// which was wrong when the machine began does not matter.
#[cfg(target_os = "linux")]
fn is_another(owner: Owner) -> bool {
    use caro_base::id::millis;
    let silence = millis(std::time::SystemTime::now()).saturating_sub(owner.heard) as f64 / 1000.0;
    age(owner.pid).is_some_and(|age| age + SLACK < silence)
}

/// How long a process runs, seconds.
#[cfg(target_os = "linux")]
fn age(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // proc_pid_stat(5): the 22nd field, in ticks since the system began; the second may have spaces and brackets in it
    let began: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    // the same clock; /proc/uptime may be that of a container
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec as f64;
    Some(now - began / rustix::param::clock_ticks_per_second() as f64)
}

/// How long ago a run must have been heard of where a process does not say when it began, milliseconds.
#[cfg(all(unix, not(target_os = "linux")))]
const HEARD: u64 = 6 * 60 * 60 * 1000;

#[cfg(all(unix, not(target_os = "linux")))]
fn is_another(owner: Owner) -> bool {
    caro_base::id::millis(std::time::SystemTime::now()).saturating_sub(owner.heard) > HEARD
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use caro_base::id::millis;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_process_that_is_younger_than_its_run_is_another_one() {
        let at = |pid, ago| Owner { pid, heard: millis(SystemTime::now() - Duration::from_secs(ago)) };
        let this = std::process::id();
        assert!(is_alive(at(this, 0)));
        assert!(!is_alive(at(this, 86_400 * 365)), "this one has not run for a year");
        // the first process is as old as the machine: a question may be left open for as long
        let machine = age(1).unwrap();
        assert!(machine >= age(this).unwrap(), "{machine}");
        assert!(is_alive(at(1, machine as u64)) && !is_alive(at(4_194_305, 0)));
    }
}
