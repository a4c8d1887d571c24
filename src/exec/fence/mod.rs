//! Confines a child before its program begins: its own session and process group everywhere, and whatever else the
//! system offers. Each system has a file with the same `Fence`. On Linux `seccomp` filters system calls, and `sweep`
//! kills processes that outlive their session.
//!
//! The sandbox in which a command may write to a throw-away copy is `super::rehearse`.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod sweep;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(super) use linux::restrict_writes;
#[cfg(target_os = "linux")]
pub(super) use seccomp::view_filter;
#[cfg(target_os = "linux")]
pub(super) use unix::raise_oom_score;
#[cfg(unix)]
pub(super) use unix::{Fence, Members};
#[cfg(windows)]
pub(super) use windows::{Fence, Members};

use serde::Serialize;

/// The guarantees of [`Sandbox::ReadOnly`](super::Sandbox::ReadOnly) on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Support {
    /// Writes outside the child's own temporary directory fail.
    pub writes: bool,
    /// The network cannot be reached.
    pub network: bool,
    /// Signals to processes outside fail, and no descendant outlives the job.
    pub processes: bool,
}

impl Support {
    /// True if a command that is taken for read-only is forced to be.
    pub fn holds_to_reading(&self) -> bool {
        self.writes && self.network
    }
}

/// Returns what the sandbox can enforce here; the kernel is queried once.
pub fn support() -> Support {
    static SUPPORT: std::sync::LazyLock<Support> = std::sync::LazyLock::new(probe);
    *SUPPORT
}

#[cfg(target_os = "linux")]
fn probe() -> Support {
    let seccomp = seccomp::filter(false).is_some();
    Support { writes: linux::landlock_works(), network: seccomp, processes: seccomp }
}

#[cfg(target_os = "macos")]
fn probe() -> Support {
    let seatbelt = std::path::Path::new(unix::SANDBOX_EXEC).is_file();
    Support { writes: seatbelt, network: seatbelt, processes: false }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn probe() -> Support {
    Support { writes: false, network: false, processes: false }
}
