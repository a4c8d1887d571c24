//! Rehearsal: a script runs for real, in a world that is thrown away afterwards, and what it did is told.
//!
//! **How.** On Linux this program is started once more with a hidden verb ([`HELPER_VERB`]). That helper makes namespaces
//! (mounts, processes, network, IPC, host name; as an ordinary user also a user namespace), puts an overlay over the
//! file systems whose upper side is a small tmpfs, runs the script as a child of a process 1 of its own, and reads the
//! changes off the upper side. Nothing is left when it ends. `mounts`: the view. `helper`: the processes.
//! `confine`: what the script itself may not do. `changes`: what the upper side has; `report`: that, with what was printed. `wire`: what they tell each other. `sys`: the system calls.
//!
//! **What the script may do.** Read whatever the person may read, their secrets too: it has no way to take them
//! anywhere itself; what it prints comes back, and the caller minds who hears it. Write wherever the person may write: into
//! the view. Start processes and signal them: its own.
//!
//! **What it may not do, and what stops it.**
//!
//! | attempt | answer |
//! | --- | --- |
//! | change a file of this machine, by any path, link or mount | overlays and read-only mounts; no mounting (capabilities, seccomp) |
//! | reach the network, other machines, the hypervisor | an empty network namespace; only internet and netlink sockets can be made |
//! | talk to local services (D-Bus, docker, an agent, X) | no unix sockets; in an overlay, sockets and pipes lead nowhere, and elsewhere nothing can be written (Landlock) |
//! | signal, trace or see other processes | a process namespace with its own `/proc` |
//! | gain rights | no new privileges, `nosuid`, capabilities dropped, no nested namespaces |
//! | write devices, `/sys`, `/proc/sys` | a `/dev` of six harmless devices; the others read-only, `nodev` |
//! | outlive the rehearsal | its process 1 is killed, and with it everybody in the namespace |
//! | fill memory, disk, the process table | limits on data, file size, processes, and a tmpfs of [`ROOM`] bytes |
//! | run on, or write without end | [`Limits::wall`], [`Limits::output`] |
//!
//! **Short of that.** Root's processes are counted by the kernel only since Linux 6.14 (`pid_max` of a namespace); before,
//! only time stops a fork bomb of root's. An ordinary user's view covers home, working directory and temporary files;
//! elsewhere it is read-only. An exploit of the kernel itself is not defended against. Where namespaces are refused (see
//! [`RehearsalError::Unavailable`]), [`read_only`] runs what only reads behind the fence of [`capture`]; on other systems
//! there is nothing but that.
//!
//! Whether a script may be rehearsed at all is decided by the caller: a command that is *about* the network, services or
//! other processes finds none here, and its failure would say nothing.

mod report;

#[cfg(target_os = "linux")]
mod changes;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod wire;

pub use report::{Change, ChangeKind, Entry, EntryKind};

use super::{ExecError, Job, Limits, Output, Status, capture};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first argument by which this program knows that it is the helper. Nobody types it.
pub const HELPER_VERB: &str = "__rehearse";
/// Bytes that a script may write in all.
pub const ROOM: u64 = 128 << 20;

/// A script to be rehearsed.
#[derive(Debug, Clone)]
pub struct RehearsalJob {
    /// The shell and its arguments before the script, such as `/bin/bash -c`.
    pub shell: Vec<OsString>,
    /// The script.
    pub script: OsString,
    /// What its `$0`, `$1` ... are.
    pub after: Vec<OsString>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Variables on top of the scrubbed environment.
    pub env: Vec<(OsString, OsString)>,
    /// When it is stopped.
    pub limits: Limits,
    /// A folder in which it writes for real; for making fixtures.
    pub writable: Option<PathBuf>,
    /// True if the report is to tell the content of new files by digest.
    pub digests: bool,
    /// The program that has the helper's verb, if it is not this very program.
    pub helper: Option<PathBuf>,
}

impl RehearsalJob {
    /// A line of this shell program, for at most a second.
    pub fn new(shell: &Path, script: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        let mut words = vec![shell.as_os_str().to_owned()];
        words.extend(super::shell_options(shell).iter().map(OsString::from));
        Self {
            shell: words,
            script: script.into(),
            after: Vec::new(),
            cwd: cwd.into(),
            env: Vec::new(),
            limits: Limits { wall: Duration::from_secs(1), output: 64 << 10 },
            writable: None,
            digests: false,
            helper: None,
        }
    }
}

/// What a rehearsal showed.
#[derive(Debug, Clone)]
pub struct Rehearsal {
    /// How the script ended.
    pub status: Status,
    /// The head of its standard output.
    pub stdout: Vec<u8>,
    /// The head of its standard error.
    pub stderr: Vec<u8>,
    /// What it would have created, changed or deleted, by path.
    pub changes: Vec<Change>,
    /// Changes beyond those listed.
    pub unlisted: u64,
    /// Wall time, the making of the view included.
    pub took: Duration,
    /// Wall time of the script alone; zero if it was stopped for flooding.
    pub script_took: Duration,
}

impl Rehearsal {
    /// True if it was stopped at its time limit.
    pub fn timed_out(&self) -> bool {
        self.status == Status::TimedOut
    }
}

/// Why there was no rehearsal.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// This system does not offer what a view is made of.
    #[error("no rehearsal on this system: {0}")]
    Unavailable(String),
    /// The helper could not be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// There is no private folder to be had.
    #[error("no private folder: {0}")]
    Folder(#[from] std::io::Error),
}

impl RehearsalError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => {
                "Linux 5.12 or newer with user namespaces and overlayfs is needed (in a container, as root: \
                 --privileged or seccomp and AppArmor unconfined; on Ubuntu see kernel.apparmor_restrict_unprivileged_userns)"
            }
            Self::Exec(e) => e.hint(),
            Self::Folder(_) => "make room in the temporary folder, or set TMPDIR to another one",
        }
    }
}

/// Runs the script in a view and tells what it did. Nothing of it is left.
///
/// Needs a Tokio runtime with time and IO enabled.
///
/// # Errors
/// If there can be no view here. A script that fails, hangs or floods is no error.
#[cfg(target_os = "linux")]
pub async fn rehearse(play: &RehearsalJob) -> Result<Rehearsal, RehearsalError> {
    /// What the helper may take on top of the script's time.
    const GRACE: Duration = Duration::from_millis(1500);
    let private = super::reaper::Scratch::named(super::reaper::VIEW)?;
    let spec = wire::Spec::of(play, private.path());
    let helper = play.helper.clone().unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
    let job = Job {
        cwd: Some(PathBuf::from("/")),
        env: play.env.clone(),
        stdin: serde_json::to_vec(&spec).map_err(|e| RehearsalError::Unavailable(e.to_string()))?,
        limits: Limits { wall: play.limits.wall.saturating_add(GRACE), output: play.limits.output },
        // the helper builds the sandbox itself, and a stricter one
        sandbox: super::Sandbox::None,
        // the view's process 1 ends with the helper, and with it everybody in the view
        closed: true,
        ..Job::new(helper).args([HELPER_VERB])
    };
    let Output { status, stdout, stderr, took, .. } = capture(&job).await?;
    if status == Status::Flooded {
        let (changes, script_took) = (Vec::new(), Duration::ZERO);
        return Ok(Rehearsal { status, stdout, stderr, changes, unlisted: 0, took, script_took });
    }
    let report = wire::Report::read(private.path()).ok_or_else(|| {
        RehearsalError::Unavailable(format!(
            "the helper told nothing ({status:?}, {})",
            String::from_utf8_lossy(&stderr)
        ))
    })?;
    match report.end {
        wire::End::Failed(why) => Err(RehearsalError::Unavailable(why)),
        wire::End::Ended(end) => Ok(Rehearsal {
            status: end.into(),
            stdout,
            stderr,
            changes: report.changes,
            unlisted: report.unlisted,
            took,
            script_took: Duration::from_micros(report.micros),
        }),
    }
}

/// There are no views on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub async fn rehearse(_: &RehearsalJob) -> Result<Rehearsal, RehearsalError> {
    Err(RehearsalError::Unavailable("only Linux has them".into()))
}

/// Runs a script that only reads, where it is, behind the fence of [`capture`]: it sees the same, and what it tries to
/// write fails. The caller has made sure that it only reads.
///
/// # Errors
/// If this system has no such fence either, or the shell cannot be started.
pub async fn read_only(play: &RehearsalJob) -> Result<Rehearsal, RehearsalError> {
    if !super::support().holds_to_reading() {
        return Err(RehearsalError::Unavailable("writes and the network cannot be fenced".into()));
    }
    let Some((program, before)) = play.shell.split_first() else {
        return Err(RehearsalError::Unavailable("no shell is named".into()));
    };
    let job = Job {
        cwd: Some(play.cwd.clone()),
        env: play.env.clone(),
        limits: play.limits,
        ..Job::new(program).args(before.iter().chain([&play.script]).chain(&play.after).cloned())
    };
    let Output { status, stdout, stderr, took, .. } = capture(&job).await?;
    Ok(Rehearsal { status, stdout, stderr, changes: Vec::new(), unlisted: 0, took, script_took: took })
}

/// Becomes the helper if the arguments say so, and tells its exit code. To be asked first thing in `main`, while there
/// is one thread.
pub fn helper_main() -> Option<u8> {
    if std::env::args_os().nth(1).as_deref() != Some(OsStr::new(HELPER_VERB)) {
        return None;
    }
    #[cfg(target_os = "linux")]
    return Some(helper::main());
    #[cfg(not(target_os = "linux"))]
    Some(2)
}
