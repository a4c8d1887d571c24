//! Rehearsal: runs a script in a view of this machine that is thrown away afterwards, and reports what it did.
//!
//! **Method.** On Linux this program is started once more with a hidden verb ([`HELPER_VERB`]). That helper creates
//! namespaces (mounts, processes, network, IPC, host name; for an ordinary user also a user namespace), puts an overlay
//! over the file systems with a small tmpfs as its upper layer, runs the script as a child of a process 1 of its own,
//! and reads the changes from the upper layer. Nothing is left when it ends, except in [`RehearsalJob::writable`].
//!
//! - `mounts`: the view. `helper`: the processes. `confine`: the restrictions of the script itself.
//! - `changes`: reads the upper layer. `report`: the result. `wire`: the data exchanged. `sys`: the system calls.
//!
//! **Allowed to the script.** It may read whatever the user may read, secrets included: it cannot send them anywhere
//! itself, and the caller decides who gets its output. It may write wherever the user may write: into the view. It may
//! start processes and signal its own.
//!
//! **Forbidden to the script.**
//!
//! | attempt | prevented by |
//! | --- | --- |
//! | change a file of this machine outside [`RehearsalJob::writable`], by any path, link or mount | overlays and read-only mounts; no mounting (capabilities, seccomp) |
//! | reach the network, other machines, the hypervisor | an empty network namespace; only internet and netlink sockets can be made |
//! | connect to local services (D-Bus, docker, an agent, X) | no unix sockets; in an overlay, sockets and pipes lead nowhere, and elsewhere nothing can be written (Landlock) |
//! | signal, trace or see other processes | a process namespace with its own `/proc` |
//! | gain rights | no new privileges, `nosuid`, capabilities dropped, no nested namespaces |
//! | write devices, `/sys`, `/proc/sys` | a `/dev` of six harmless devices; the others read-only, `nodev` |
//! | outlive the rehearsal | its process 1 is killed, and with it all processes in the namespace |
//! | fill memory, disk, the process table | limits on data, file size, processes, and a tmpfs of [`MAX_WRITTEN_BYTES`] bytes |
//! | run on, or write without end | [`Limits::wall`], [`Limits::output`] |
//!
//! **Limitations.** The kernel limits root's processes only since Linux 6.14 (`pid_max` of a namespace); before, only
//! the time limit stops root's fork bomb. An ordinary user's view covers home, working directory and temporary files;
//! everything else is read-only. There is no defence against exploits of the kernel. Without namespaces (see
//! [`RehearsalError::Unavailable`]), [`read_only`] runs read-only scripts in the read-only sandbox of [`capture`];
//! other systems have only that.
//!
//! The caller decides whether a script may be rehearsed: a command that is *about* the network, services or other
//! processes finds none here, and its failure would mean nothing.

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

/// The first argument that makes this program the helper. No user types it.
pub const HELPER_VERB: &str = "__rehearse";
/// Most bytes that a script may write in total.
pub const MAX_WRITTEN_BYTES: u64 = 128 << 20;

/// A script to be rehearsed.
#[derive(Debug, Clone)]
pub struct RehearsalJob {
    /// The shell and its arguments before the script, such as `/bin/bash -c`.
    pub shell: Vec<OsString>,
    /// The script.
    pub script: OsString,
    /// The arguments after the script: `$0`, `$1` ... of a shell's line, `$1`, `$2` ... of a script's file.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Variables in addition to the scrubbed environment.
    pub env: Vec<(OsString, OsString)>,
    /// The limits at which it is stopped.
    pub limits: Limits,
    /// A folder in which it really writes, for making fixtures; nothing is thrown away there.
    pub writable: Option<PathBuf>,
    /// True if the report has digests of new files.
    pub digests: bool,
    /// The program that has the helper's verb; this program if `None`.
    pub helper: Option<PathBuf>,
}

impl RehearsalJob {
    /// Creates a job that runs a line in a shell for at most one second.
    pub fn new(shell: &Path, script: impl Into<OsString>, cwd: impl Into<PathBuf>) -> Self {
        let mut words = vec![shell.as_os_str().to_owned()];
        words.extend(super::shell_options(shell).iter().map(OsString::from));
        Self { cwd: cwd.into(), ..Self::with_interpreter(words, script) }
    }

    /// Creates a job that runs a script by an interpreter, given with its arguments before the script, for at most one
    /// second in the root folder.
    pub fn with_interpreter(interpreter: Vec<OsString>, script: impl Into<OsString>) -> Self {
        Self {
            shell: interpreter,
            script: script.into(),
            args: Vec::new(),
            cwd: "/".into(),
            env: Vec::new(),
            limits: Limits { wall: Duration::from_secs(1), output: 64 << 10 },
            writable: None,
            digests: false,
            helper: None,
        }
    }
}

/// The result of a rehearsal.
#[derive(Debug, Clone)]
pub struct Rehearsal {
    /// The way in which the script ended.
    pub status: Status,
    /// The head of its standard output.
    pub stdout: Vec<u8>,
    /// The head of its standard error.
    pub stderr: Vec<u8>,
    /// The files that it would have created, changed or deleted, by path; empty if it was stopped for flooding, after
    /// which its changes are not known.
    pub changes: Vec<Change>,
    /// The number of changes that are not listed.
    pub unlisted: u64,
    /// Wall time, including the creation of the view.
    pub took: Duration,
    /// Wall time of the script alone; zero if it was stopped for flooding.
    pub script_took: Duration,
}

impl Rehearsal {
    /// True if it was stopped at its time limit.
    pub fn timed_out(&self) -> bool {
        self.status == Status::TimedOut
    }

    /// True if it deletes a file and makes none with the same content. Needs [`RehearsalJob::digests`].
    pub fn loses_files(&self) -> bool {
        report::loses_files(&self.changes)
    }
}

/// The reason why there was no rehearsal.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// This system lacks something that a rehearsal needs, or the helper wrote no report.
    #[error("no rehearsal on this system: {0}")]
    Unavailable(String),
    /// The helper could not be run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// No private folder could be created.
    #[error("no private folder: {0}")]
    Folder(#[from] std::io::Error),
}

impl RehearsalError {
    /// Advice to the user.
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

/// Runs the script in a view and reports what it did. Nothing of it remains, except in [`RehearsalJob::writable`].
///
/// Needs a Tokio runtime with time and IO enabled.
///
/// # Errors
/// If no view can be created here. A script that fails, hangs or floods is no error.
#[cfg(target_os = "linux")]
pub async fn rehearse(job: &RehearsalJob) -> Result<Rehearsal, RehearsalError> {
    /// The time that the helper may take in addition to the script's.
    const HELPER_TIME: Duration = Duration::from_millis(1500);
    let private = super::reaper::Scratch::named(super::reaper::VIEW)?;
    let spec = wire::Spec::of(job, private.path());
    let helper = job.helper.clone().unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
    let helper_job = Job {
        cwd: Some(PathBuf::from("/")),
        env: job.env.clone(),
        stdin: serde_json::to_vec(&spec).map_err(|e| RehearsalError::Unavailable(e.to_string()))?,
        limits: Limits { wall: job.limits.wall.saturating_add(HELPER_TIME), output: job.limits.output },
        // the helper creates a stricter sandbox itself
        sandbox: super::Sandbox::None,
        // process 1 of the view ends with the helper, and with it all processes in the view
        spawns_nothing: true,
        ..Job::new(helper).args([HELPER_VERB])
    };
    let Output { status, stdout, stderr, took, .. } = capture(&helper_job).await?;
    if status == Status::Flooded {
        let (changes, script_took) = (Vec::new(), Duration::ZERO);
        return Ok(Rehearsal { status, stdout, stderr, changes, unlisted: 0, took, script_took });
    }
    let report = wire::Report::read(private.path()).ok_or_else(|| {
        RehearsalError::Unavailable(format!(
            "the helper wrote no report ({status:?}, {})",
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

/// Fails: there are no views on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub async fn rehearse(_: &RehearsalJob) -> Result<Rehearsal, RehearsalError> {
    Err(RehearsalError::Unavailable("rehearsals need Linux".into()))
}

/// Runs a script in place, without a view, in a sandbox in which every write fails. The caller has made sure that it is
/// read-only. [`RehearsalJob::writable`], `digests` and `helper` are of no use here.
///
/// # Errors
/// If this system has no such sandbox, or the shell cannot be started.
pub async fn read_only(job: &RehearsalJob) -> Result<Rehearsal, RehearsalError> {
    if !super::support().holds_to_reading() {
        return Err(RehearsalError::Unavailable("writes and the network cannot be prevented".into()));
    }
    let Some((program, before)) = job.shell.split_first() else {
        return Err(RehearsalError::Unavailable("no shell is named".into()));
    };
    let script = Job {
        cwd: Some(job.cwd.clone()),
        env: job.env.clone(),
        limits: job.limits,
        sandbox: super::Sandbox::ReadOnly,
        ..Job::new(program).args(before.iter().chain([&job.script]).chain(&job.args).cloned())
    };
    let Output { status, stdout, stderr, took, .. } = capture(&script).await?;
    Ok(Rehearsal { status, stdout, stderr, changes: Vec::new(), unlisted: 0, took, script_took: took })
}

/// Becomes the helper if the arguments say so, and returns its exit code. Must be called at the beginning of `main`,
/// while there is one thread.
pub fn helper_main() -> Option<u8> {
    if std::env::args_os().nth(1).as_deref() != Some(OsStr::new(HELPER_VERB)) {
        return None;
    }
    #[cfg(target_os = "linux")]
    return Some(helper::main());
    #[cfg(not(target_os = "linux"))]
    Some(2)
}
