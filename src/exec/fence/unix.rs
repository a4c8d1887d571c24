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

/// The sandbox launcher of macOS.
#[cfg(target_os = "macos")]
pub(super) const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// Set in every captured child, to find the processes of a job.
const TAG: &str = "CARO_JOB";
/// The largest file that a sandboxed child may write, in bytes.
const FILE_SIZE: u64 = 64 << 20;
/// The least limit of a sandboxed child's private memory, in bytes; on a large machine it is an eighth of the memory.
const MIN_DATA: u64 = 1 << 30;

/// Everything that is decided before the child exists, so that nothing is allocated between fork and exec.
pub(crate) struct Fence {
    tag: String,
    limits: Vec<(Resource, Rlimit)>,
    /// See [`Job::spawns_nothing`].
    spawns_nothing: bool,
    #[cfg(target_os = "macos")]
    profile: Option<String>,
    #[cfg(target_os = "linux")]
    linux: Sandboxed,
    /// True if the child is the first to be killed when memory runs out.
    #[cfg(target_os = "linux")]
    raises_oom_score: bool,
}

impl Fence {
    /// Prepares the fence for a job whose own directory is `scratch`.
    pub(crate) fn prepare(job: &Job, scratch: Option<&Path>) -> Self {
        static JOBS: AtomicU64 = AtomicU64::new(0);
        let sandboxed = job.sandbox.is_closed();
        // unused on systems that cannot confine writes
        let _ = scratch;
        Self {
            tag: format!("{}.{}", std::process::id(), JOBS.fetch_add(1, Ordering::Relaxed)),
            limits: if sandboxed { resource_limits(job) } else { vec![(Resource::Core, limit(0))] },
            spawns_nothing: job.spawns_nothing,
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
            raises_oom_score: sandboxed,
        }
    }

    /// Returns the program to start and its arguments: the job's own, or the system's sandbox around it.
    pub(crate) fn command_line(&self, job: &Job) -> (PathBuf, Vec<OsString>) {
        #[cfg(target_os = "macos")]
        if let Some(profile) = &self.profile {
            let before = [OsString::from("-p"), OsString::from(profile), job.program.clone().into_os_string()];
            return (PathBuf::from(SANDBOX_EXEC), before.into_iter().chain(job.args.iter().cloned()).collect());
        }
        (job.program.clone(), job.args.clone())
    }

    /// Returns the variables by which the fence finds its processes.
    pub(crate) fn variables(&self) -> [(&'static OsStr, &OsStr); 1] {
        [(OsStr::new(TAG), OsStr::new(&self.tag))]
    }

    /// Makes the child apply the fence before its program begins.
    pub(crate) fn arm(&self, command: &mut Command) {
        let limits = self.limits.clone();
        #[cfg(target_os = "linux")]
        let raises_oom_score = self.raises_oom_score;
        let max_files = inherited::max_files();
        #[cfg(target_os = "linux")]
        let parent = rustix::process::getpid();
        #[cfg(target_os = "linux")]
        let linux = self.linux.clone();
        let hook = move || -> io::Result<()> {
            // a new session is also a new process group, and has no controlling terminal
            rustix::process::setsid()?;
            inherited::close_on_exec(max_files);
            // the child ends when we end; its own children are left to `reaper`
            #[cfg(target_os = "linux")]
            {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                if rustix::process::getppid() != Some(parent) {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
            }
            for (resource, limit) in &limits {
                // a limit that may not be set is stricter already
                let _ = rustix::process::setrlimit(*resource, *limit);
            }
            #[cfg(target_os = "linux")]
            {
                if raises_oom_score {
                    raise_oom_score();
                }
                linux.apply()?;
            }
            Ok(())
        };
        // SAFETY: the hook runs in the forked child of a process with threads, so it must neither allocate nor take a
        // lock. It makes system calls alone, on memory that was prepared before the fork; io::Error from an errno
        // does not allocate.
        unsafe {
            command.pre_exec(hook);
        }
    }

    /// Returns the processes of the child `id`.
    pub(crate) fn members(&self, id: Option<u32>) -> Members {
        #[cfg(target_os = "linux")]
        let spawns_nothing = self.spawns_nothing || self.linux.keeps_group();
        #[cfg(not(target_os = "linux"))]
        let spawns_nothing = self.spawns_nothing;
        let leader = id.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Members { leader, tag: if spawns_nothing { None } else { Some(format!("{TAG}={}", self.tag)) } }
    }
}

/// The processes of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Members {
    leader: Option<Pid>,
    /// Identifies processes that left the group; `None` if none can.
    tag: Option<String>,
}

impl Members {
    /// Kills the whole group, and on Linux the processes that left it.
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

/// Returns the places where a child may write: those allowed, and its own directory.
fn places(allowed: &[PathBuf], scratch: Option<&Path>) -> Vec<PathBuf> {
    allowed.iter().cloned().chain(scratch.map(Path::to_path_buf)).collect()
}

fn limit(value: u64) -> Rlimit {
    Rlimit { current: Some(value), maximum: Some(value) }
}

/// Returns the limits: CPU time a little above the wall time, small files, no core dumps, a few hundred more
/// processes than exist now, and a part of the memory.
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
        limits.push((Resource::Data, limit(MIN_DATA.max(memory / 8))));
    }
    limits
}

/// Returns the memory of this machine in bytes, if known.
#[cfg(target_os = "linux")]
fn memory() -> Option<u64> {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).checked_mul(info.mem_unit.into())
}

#[cfg(not(target_os = "linux"))]
fn memory() -> Option<u64> {
    None
}

/// Makes the calling process the first to be killed when memory runs out. Allocates nothing.
#[cfg(target_os = "linux")]
pub(crate) fn raise_oom_score() {
    use rustix::fs::{Mode, OFlags, open};
    // on failure another process may be killed first
    if let Ok(score) = open(c"/proc/self/oom_score_adj", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::io::write(score, b"1000");
    }
}

/// Returns the number of threads on the machine, an upper bound for those of the user, for whom the limit counts.
/// Source: proc_loadavg(5), fourth field.
fn running_tasks() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Returns a profile that allows reading everything and writing below `places` and to harmless devices; if `closed`,
/// it denies the network and access to other processes. Source: sandbox-exec(1) and the profiles under
/// /System/Library/Sandbox.
#[cfg(target_os = "macos")]
fn seatbelt_profile(places: &[PathBuf], closed: bool) -> String {
    let mut profile = String::from("(version 1)(allow default)(deny file-write*)");
    if closed {
        profile.push_str("(deny network*)(deny process-info* (target others))(deny signal (target others))");
    }
    profile.push_str("(allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\")");
    // the kernel compares resolved paths, and /var is a link there
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
    fn there_is_no_search_if_no_process_can_leave() {
        let looked_for = |spawns_nothing| {
            let job = Job { sandbox: Sandbox::None, spawns_nothing, ..Job::new("/bin/true") };
            Fence::prepare(&job, None).members(Some(1)).tag.is_some()
        };
        assert_eq!((looked_for(false), looked_for(true)), (true, false));
    }
}
