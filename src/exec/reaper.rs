//! Makes sure that no captured child outlives us. Children are started by a thread that lives as long as we do, and
//! code that ends this process kills them all first.
//!
//! | we end by | the children are ended by |
//! | --- | --- |
//! | the end of a job, its limits, a dropped future | [`Group`] |
//! | Ctrl-C, SIGTERM, SIGHUP | the signal's handler, with [`kill_all`] |
//! | SIGKILL, a crash | Linux: the kernel, for the child itself; its own children run to their end |
#![cfg_attr(unix, allow(unsafe_code))] // Two signal handlers.

use super::fence::Members;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

/// The running jobs.
static RUNNING: Mutex<Vec<Members>> = Mutex::new(Vec::new());

fn running() -> std::sync::MutexGuard<'static, Vec<Members>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The jobs' own directories; `None` once this process is ending, so that no more are created.
static SCRATCH_FOLDERS: Mutex<Option<Vec<PathBuf>>> = Mutex::new(Some(Vec::new()));

/// Kills every process of every job, and removes the jobs' directories. For code that ends this process without
/// unwinding it.
pub fn kill_all() {
    let all = std::mem::take(&mut *running());
    all.iter().for_each(Members::kill);
    let folders = SCRATCH_FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).take();
    for folder in folders.into_iter().flatten() {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// A directory for a job. It is removed when this is dropped, or by [`kill_all`].
pub(super) struct Scratch(tempfile::TempDir);

impl Scratch {
    /// Creates one; `None` if that fails.
    pub(super) fn new() -> Option<Self> {
        Self::named(JOB).ok()
    }

    /// Creates one with a prefix in its name. The first call in a process removes those that killed processes left
    /// behind.
    pub(super) fn named(prefix: &'static str) -> io::Result<Self> {
        static SWEPT: std::sync::Once = std::sync::Once::new();
        SWEPT.call_once(|| sweep(&std::env::temp_dir()));
        // created while the list is locked: either code that ends this process sees it, or it is not created
        let mut folders = SCRATCH_FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        let all = folders.as_mut().ok_or_else(|| io::Error::other("this process is about to end"))?;
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        all.push(folder.path().to_path_buf());
        Ok(Self(folder))
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut folders = SCRATCH_FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = folders.as_mut() {
            all.retain(|folder| folder != self.0.path());
        }
    }
}

/// Prefixes of the names of such directories.
const PREFIXES: [&str; 2] = [JOB, VIEW];
const JOB: &str = "caro-job-";
pub(super) const VIEW: &str = "caro-view-";

/// Age at which a directory counts as abandoned: no job takes nearly as long.
const ABANDONED_AFTER: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// Removes the directories left by killed processes.
fn sweep(temporary: &Path) {
    for entry in std::fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_ours = PREFIXES.iter().any(|prefix| entry.file_name().to_string_lossy().starts_with(prefix));
        let modified = || entry.metadata().and_then(|meta| meta.modified());
        let is_old = || modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED_AFTER));
        if is_ours && is_old() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The processes of one job. Dropping it kills them.
pub(super) struct Group(Option<Members>);

impl Group {
    /// Registers a job that has just been started.
    pub(super) fn new(members: Members) -> Self {
        running().push(members.clone());
        Self(Some(members))
    }

    /// Kills them.
    pub(super) fn kill(&self) {
        if let Some(members) = &self.0 {
            members.kill();
        }
    }

    /// Unregisters the job without killing: every process is dead.
    pub(super) fn disarm(mut self) {
        self.unregister();
    }

    fn unregister(&mut self) -> Option<Members> {
        let members = self.0.take()?;
        let mut running = running();
        if let Some(at) = running.iter().position(|one| *one == members) {
            running.swap_remove(at);
        }
        Some(members)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(members) = self.unregister() {
            members.kill();
        }
    }
}

type StartRequest = (Command, Handle, mpsc::SyncSender<io::Result<Child>>);

/// Starts the program from a thread that never ends. On Linux a child gets its death signal when the *thread* that
/// started it ends, and the caller's thread may belong to a runtime that ends it.
///
/// Needs a Tokio runtime with IO enabled.
/// Needs a Tokio runtime with IO enabled.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    static START_THREAD: Mutex<Option<mpsc::Sender<StartRequest>>> = Mutex::new(None);
    let handle = Handle::try_current().map_err(io::Error::other)?;
    let (answer, child) = mpsc::sync_channel(1);
    {
        let mut thread = START_THREAD.lock().unwrap_or_else(PoisonError::into_inner);
        let mut request = (command, handle, answer);
        if let Some(requests) = &*thread {
            match requests.send(request) {
                Ok(()) => return child.recv().map_err(io::Error::other)?,
                // the thread has ended by a panic
                Err(mpsc::SendError(back)) => request = back,
            }
        }
        let (requests, taken) = mpsc::channel();
        std::thread::Builder::new().name("caro-start".into()).spawn(move || start_all(taken))?;
        requests.send(request).map_err(|_| io::Error::other("the thread that starts programs is gone"))?;
        *thread = Some(requests);
    }
    child.recv().map_err(io::Error::other)?
}

fn start_all(requests: mpsc::Receiver<StartRequest>) {
    for (mut command, handle, answer) in requests {
        let _inside = handle.enter();
        // if the caller is gone, the child is killed when dropped
        let _ = answer.send(command.spawn());
    }
}

/// True if we were started to outlive the terminal (`nohup`), so that SIGHUP must be ignored.
#[cfg(unix)]
pub fn hangup_is_ignored() -> bool {
    is_ignored(libc::SIGHUP)
}

/// True if our parent made the system ignore a signal for us.
#[cfg(unix)]
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all zeros is a valid `sigaction`: the default handler with an empty mask.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only queries; `now` is ours and large enough.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), &mut now) };
    result == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// Makes writing beyond the largest file size (`ulimit -f`) fail like on a full disk, instead of ending us. Uses a
/// handler, which our children do not inherit, so they end as usual.
#[cfg(unix)]
pub fn survive_file_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    if is_ignored(libc::SIGXFSZ) {
        return;
    }
    // SAFETY: all zeros is a valid `sigaction`, see above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` is ours, and its handler takes one number and does nothing.
    let _ = unsafe { libc::sigaction(libc::SIGXFSZ, &action, std::ptr::null_mut()) };
}

#[cfg(not(unix))]
pub fn survive_file_size_limit() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_abandoned_directories_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let long_ago = std::time::SystemTime::now() - 2 * ABANDONED_AFTER;
        let all = [("caro-view-old", true), ("caro-job-old", true), ("caro-view-new", false), ("caro-old", true)];
        for (name, old) in all {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            if old {
                std::fs::File::open(dir.path().join(name)).unwrap().set_modified(long_ago).unwrap();
            }
        }
        sweep(dir.path());
        let left: Vec<&str> =
            all.map(|(name, _)| name).into_iter().filter(|name| dir.path().join(name).exists()).collect();
        assert_eq!(left, ["caro-view-new", "caro-old"]);
    }
}
