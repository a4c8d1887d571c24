//! Unix: a session of its own, resource limits, and the system's sandbox.
#![allow(unsafe_code)] // `pre_exec`: the only place between fork and exec, where limits for the child alone are set.

#[cfg(target_os = "linux")]
use super::linux::Sandboxed;
use crate::{Job, Sandbox, inherited};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::process::Command;

/// macOS' own sandbox launcher.
#[cfg(target_os = "macos")]
pub(super) const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// Set in every captured child: who of the processes of this machine belongs to which job.
const TAG: &str = "CARO_JOB";
/// The largest file a sandboxed child may write, bytes.
const FILE_SIZE: u64 = 64 << 20;
/// The least of private memory that a sandboxed child may have, bytes; on a large machine an eighth of what there is.
const DATA: u64 = 1 << 30;

/// Everything that is decided before the child exists, so that nothing is allocated between fork and exec.
pub(crate) struct Fence {
    tag: String,
    limits: Vec<(Resource, Rlimit)>,
    /// See [`Job::closed`].
    closed: bool,
    #[cfg(target_os = "macos")]
    profile: Option<String>,
    #[cfg(target_os = "linux")]
    linux: Sandboxed,
    /// Where memory is short.
    #[cfg(target_os = "linux")]
    goes_first: bool,
}

impl Fence {
    /// Prepares the fence for one job whose own directory is `scratch`.
    pub(crate) fn prepare(job: &Job, scratch: Option<&Path>) -> Self {
        static JOBS: AtomicU64 = AtomicU64::new(0);
        let sandboxed = job.sandbox.is_closed();
        // Only some systems can confine writes to it.
        let _ = scratch;
        Self {
            tag: format!("{}.{}", std::process::id(), JOBS.fetch_add(1, Ordering::Relaxed)),
            limits: if sandboxed { resource_limits(job) } else { vec![(Resource::Core, limit(0))] },
            closed: job.closed,
            #[cfg(target_os = "macos")]
            profile: match &job.sandbox {
                Sandbox::None => None,
                _ if !super::support().writes => None,
                Sandbox::ReadOnly | Sandbox::AskKernel => Some(seatbelt_profile(&places(&[], scratch), true)),
                Sandbox::Offline(allowed) => Some(seatbelt_profile(&places(allowed, scratch), true)),
                Sandbox::Within(allowed) => Some(seatbelt_profile(&places(allowed, scratch), false)),
            },
            #[cfg(target_os = "linux")]
            linux: match &job.sandbox {
                Sandbox::None => Sandboxed::default(),
                Sandbox::ReadOnly => Sandboxed::closed(&places(&[], scratch), false),
                Sandbox::AskKernel => Sandboxed::closed(&places(&[], scratch), true),
                Sandbox::Offline(allowed) => Sandboxed::closed(&places(allowed, scratch), false),
                Sandbox::Within(allowed) => Sandboxed::within(&places(allowed, scratch)),
            },
            #[cfg(target_os = "linux")]
            goes_first: sandboxed,
        }
    }

    /// The program to start and its arguments: the job's own, or the system's sandbox around it.
    pub(crate) fn command_line(&self, job: &Job) -> (PathBuf, Vec<OsString>) {
        #[cfg(target_os = "macos")]
        if let Some(profile) = &self.profile {
            let before = [OsString::from("-p"), OsString::from(profile), job.program.clone().into_os_string()];
            return (PathBuf::from(SANDBOX_EXEC), before.into_iter().chain(job.args.iter().cloned()).collect());
        }
        (job.program.clone(), job.args.clone())
    }

    /// Variables by which the fence finds its processes again.
    pub(crate) fn variables(&self) -> [(&'static OsStr, &OsStr); 1] {
        [(OsStr::new(TAG), OsStr::new(&self.tag))]
    }

    /// Has the fence put up in the child before its program begins.
    pub(crate) fn arm(&self, command: &mut Command) {
        let limits = self.limits.clone();
        #[cfg(target_os = "linux")]
        let goes_first = self.goes_first;
        let most = inherited::most();
        #[cfg(target_os = "linux")]
        let parent = rustix::process::getpid();
        #[cfg(target_os = "linux")]
        let linux = self.linux.clone();
        let hook = move || -> io::Result<()> {
            // A new session is a new process group too, and has no controlling terminal.
            rustix::process::setsid()?;
            inherited::close_on_exec(most);
            // Whatever ends us ends it; what it started itself is ours to end (`reaper`).
            #[cfg(target_os = "linux")]
            {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                if rustix::process::getppid() != Some(parent) {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
            }
            for (resource, limit) in &limits {
                // A limit we may not set is one that is stricter already.
                let _ = rustix::process::setrlimit(*resource, *limit);
            }
            #[cfg(target_os = "linux")]
            {
                if goes_first {
                    go_first();
                }
                linux.enter()?;
            }
            Ok(())
        };
        // SAFETY: the hook runs in the forked child of a process with threads, so it must neither allocate nor take
        // a lock. It makes system calls alone, over memory that was prepared before the fork; io::Error from an
        // errno does not allocate.
        unsafe {
            command.pre_exec(hook);
        }
    }

    /// The processes of the child `id`.
    pub(crate) fn members(&self, id: Option<u32>) -> Members {
        #[cfg(target_os = "linux")]
        let closed = self.closed || self.linux.keeps_group();
        #[cfg(not(target_os = "linux"))]
        let closed = self.closed;
        let leader = id.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Members { leader, tag: if closed { None } else { Some(format!("{TAG}={}", self.tag)) } }
    }
}

/// The processes of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Members {
    leader: Option<Pid>,
    /// How to recognise a process that left the group; `None` where none can.
    tag: Option<String>,
}

impl Members {
    /// Kills the whole group, and on Linux whoever left it.
    pub(crate) fn kill(&self) {
        if let Some(leader) = self.leader {
            let _ = rustix::process::kill_process_group(leader, Signal::KILL);
        }
        #[cfg(target_os = "linux")]
        if let Some(tag) = &self.tag {
            super::sweep::kill_tagged(tag.as_bytes());
        }
        #[cfg(not(target_os = "linux"))]
        let _ = &self.tag;
    }
}

/// Where a child may write: what is allowed, and its own directory.
fn places(allowed: &[PathBuf], scratch: Option<&Path>) -> Vec<PathBuf> {
    allowed.iter().cloned().chain(scratch.map(Path::to_path_buf)).collect()
}

fn limit(value: u64) -> Rlimit {
    Rlimit { current: Some(value), maximum: Some(value) }
}

/// CPU time a little above the wall limit, small files, no core dumps, some hundred processes more than there are, and not
/// all of the memory.
fn resource_limits(job: &Job) -> Vec<(Resource, Rlimit)> {
    let mut limits = vec![
        (Resource::Core, limit(0)),
        (Resource::Cpu, limit(job.limits.wall.as_secs().saturating_mul(4).saturating_add(2))),
        (Resource::Fsize, limit(FILE_SIZE)),
    ];
    if let Some(running) = running_tasks() {
        limits.push((Resource::Nproc, limit(running.saturating_add(256))));
    }
    if let Some(memory) = memory() {
        limits.push((Resource::Data, limit(DATA.max(memory / 8))));
    }
    limits
}

/// Bytes of memory that this machine has, where it says so.
#[cfg(target_os = "linux")]
fn memory() -> Option<u64> {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).checked_mul(info.mem_unit.into())
}

#[cfg(not(target_os = "linux"))]
fn memory() -> Option<u64> {
    None
}

/// Makes the calling process the first to go where memory is short. Allocates nothing.
#[cfg(target_os = "linux")]
pub(crate) fn go_first() {
    use rustix::fs::{Mode, OFlags, open};
    // The worst is that another goes first.
    if let Ok(score) = open(c"/proc/self/oom_score_adj", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::io::write(score, b"1000");
    }
}

/// Threads of the whole machine, an upper bound for the person's own: the limit counts by user.
/// Source: proc_loadavg(5), fourth field.
fn running_tasks() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Read everything, write beneath `places` and to the harmless devices; where it is `closed`, no network and nothing to do
/// with other processes.
/// Source: sandbox-exec(1) and the profiles under /System/Library/Sandbox.
#[cfg(target_os = "macos")]
fn seatbelt_profile(places: &[PathBuf], closed: bool) -> String {
    let mut profile = String::from("(version 1)(allow default)(deny file-write*)");
    if closed {
        profile.push_str("(deny network*)(deny process-info* (target others))(deny signal (target others))");
    }
    profile.push_str("(allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\")");
    // The kernel compares resolved paths, and /var is a link there.
    for path in places.iter().filter_map(|path| path.canonicalize().ok()) {
        let quoted = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
        profile.push_str(&format!(" (subpath \"{quoted}\")"));
    }
    profile.push(')');
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_looked_for_where_nobody_can_be() {
        let looked_for = |closed| {
            let job = Job { sandbox: Sandbox::None, closed, ..Job::new("/bin/true") };
            Fence::prepare(&job, None).members(Some(1)).tag.is_some()
        };
        assert_eq!((looked_for(false), looked_for(true)), (true, false));
    }
}
