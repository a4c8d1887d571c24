//! Tells if the process that drives a run is still alive.

/// The process that drives a run, or drove it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Its process id.
    pub pid: u32,
    /// The time of the run's last update, milliseconds since 1970, UTC.
    pub heard: u64,
}

impl Owner {
    /// True if it is this process.
    pub(super) fn is_this(self) -> bool {
        self.pid == std::process::id()
    }
}

/// True if the process is alive. A process that started after the run's last update has only got the same id.
#[cfg(unix)]
pub fn is_alive(owner: Owner) -> bool {
    exists(owner) && !is_another(owner)
}

/// True if there is a process with that id.
#[cfg(unix)]
fn exists(owner: Owner) -> bool {
    let pid = i32::try_from(owner.pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Always false: a crashed process cannot be told from a running one here, and the user who resumes knows.
#[cfg(not(unix))]
pub fn is_alive(_: Owner) -> bool {
    false
}

/// True if the process is known to have ended.
#[cfg(unix)]
pub(super) fn is_gone(owner: Owner) -> bool {
    !is_alive(owner)
}

/// Always false: it cannot be known here.
#[cfg(not(unix))]
pub(super) fn is_gone(_: Owner) -> bool {
    false
}

/// True if it can be told that a process that is not alive has ended: always here, where each process has its age.
#[cfg(target_os = "linux")]
pub(super) fn tells_end(_: Owner) -> bool {
    true
}

/// True if it can be told that a process that is not alive has ended. One with its id may be it, after a long silence.
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn tells_end(owner: Owner) -> bool {
    !exists(owner)
}

/// Always false: it cannot be told here.
#[cfg(not(unix))]
pub(super) fn tells_end(_: Owner) -> bool {
    false
}

/// Seconds by which a run's last update may precede its process: clocks are set and count in steps.
#[cfg(target_os = "linux")]
const SLACK: f64 = 60.0;

/// True if the process with this id is known to be younger than the run's last update. Both are compared as ages, so
/// that a clock that was wrong at boot does not matter.
#[cfg(target_os = "linux")]
fn is_another(owner: Owner) -> bool {
    use caro_base::id::millis;
    let silence = millis(std::time::SystemTime::now()).saturating_sub(owner.heard) as f64 / 1000.0;
    age(owner.pid).is_some_and(|age| age + SLACK < silence)
}

/// Returns the age of a process in seconds.
#[cfg(target_os = "linux")]
fn age(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // proc_pid_stat(5): the 22nd field, in ticks since boot; the second field may contain spaces and brackets
    let began: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    // the clock of that field; /proc/uptime may be that of a container
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec as f64;
    Some(now - began / rustix::param::clock_ticks_per_second() as f64)
}

/// Milliseconds since its last update after which a run's process counts as another one, if its start time is unknown.
#[cfg(all(unix, not(target_os = "linux")))]
const STALE_AFTER: u64 = 6 * 60 * 60 * 1000;

#[cfg(all(unix, not(target_os = "linux")))]
fn is_another(owner: Owner) -> bool {
    caro_base::id::millis(std::time::SystemTime::now()).saturating_sub(owner.heard) > STALE_AFTER
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use caro_base::id::millis;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_process_younger_than_its_run_is_not_its_owner() {
        let at = |pid, ago| Owner { pid, heard: millis(SystemTime::now() - Duration::from_secs(ago)) };
        let this = std::process::id();
        assert!(is_alive(at(this, 0)));
        assert!(!is_alive(at(this, 86_400 * 365)), "this one has not run for a year");
        // the first process is as old as the machine, and a run may have been idle for just as long
        let machine = age(1).unwrap();
        assert!(machine >= age(this).unwrap(), "{machine}");
        assert!(is_alive(at(1, machine as u64)) && !is_alive(at(4_194_305, 0)));
    }
}
