//! That no child outlives us but those that are to: they are started by a thread that lives as long as we do, and whoever
//! ends this process from within kills them all first.
//!
//! | what ends us | who ends the children |
//! | --- | --- |
//! | the end of a job, its limits, a dropped future | [`Group`] |
//! | Ctrl-C, SIGTERM, SIGHUP | whoever hears it, by [`kill_all`] |
//! | SIGKILL, a crash | Linux: the kernel, for the child itself; what that has started lives on to its own end |
#![cfg_attr(unix, allow(unsafe_code))] // What the system does with two signals.

use super::fence::Members;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

/// The jobs that run now.
static LIVE: Mutex<Vec<Members>> = Mutex::new(Vec::new());

fn live() -> std::sync::MutexGuard<'static, Vec<Members>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The jobs' own directories; `None` once this process ends, and no more are made.
static OWN: Mutex<Option<Vec<PathBuf>>> = Mutex::new(Some(Vec::new()));

/// Kills every process of every job, and removes what the jobs had for themselves. For whoever is about to end this process
/// without unwinding it.
pub fn kill_all() {
    let all = std::mem::take(&mut *live());
    all.iter().for_each(Members::kill);
    let own = OWN.lock().unwrap_or_else(PoisonError::into_inner).take();
    for folder in own.into_iter().flatten() {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// A directory of a job's own. It goes when this is dropped, or by [`kill_all`].
pub(super) struct Scratch(tempfile::TempDir);

impl Scratch {
    /// A new one; nothing where there is no place for it.
    pub(super) fn new() -> Option<Self> {
        Self::named(JOB).ok()
    }

    /// A new one whose name begins so. The first one in a process looks for those that killed processes have left.
    pub(super) fn named(prefix: &'static str) -> io::Result<Self> {
        static SWEPT: std::sync::Once = std::sync::Once::new();
        SWEPT.call_once(|| sweep(&std::env::temp_dir()));
        // made while the list is held: whoever ends this process sees it, or it is not made
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        let all = own.as_mut().ok_or_else(|| io::Error::other("this process is about to end"))?;
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        all.push(folder.path().to_path_buf());
        Ok(Self(folder))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = own.as_mut() {
            all.retain(|folder| folder != self.0.path());
        }
    }
}

/// How the names of such directories begin.
const NAMES: [&str; 2] = [JOB, VIEW];
const JOB: &str = "caro-job-";
pub(super) const VIEW: &str = "caro-view-";

/// How old a folder is that nobody uses any more: no job takes nearly as long.
const LEFT: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// Removes the directories that processes left when they were killed.
fn sweep(temporary: &Path) {
    for entry in std::fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_ours = NAMES.iter().any(|prefix| entry.file_name().to_string_lossy().starts_with(prefix));
        let modified = || entry.metadata().and_then(|meta| meta.modified());
        let is_old = || modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > LEFT));
        if is_ours && is_old() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The processes of one job. Dropping it kills them.
pub(super) struct Group(Option<Members>);

impl Group {
    /// Takes note of a job that has just been started.
    pub(super) fn new(members: Members) -> Self {
        live().push(members.clone());
        Self(Some(members))
    }

    /// Kills them all.
    pub(super) fn kill(&self) {
        if let Some(members) = &self.0 {
            members.kill();
        }
    }

    /// Says that every process is dead.
    pub(super) fn disarm(mut self) {
        self.forget();
    }

    fn forget(&mut self) -> Option<Members> {
        let members = self.0.take()?;
        let mut live = live();
        if let Some(at) = live.iter().position(|one| *one == members) {
            live.swap_remove(at);
        }
        Some(members)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(members) = self.forget() {
            members.kill();
        }
    }
}

type Order = (Command, Handle, mpsc::SyncSender<io::Result<Child>>);

/// Starts the program from a thread that never ends: on Linux a child is told of the end of the *thread* that started it,
/// and the caller's may be one that a runtime keeps for a while.
///
/// Needs a Tokio runtime with IO enabled.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    static STARTER: Mutex<Option<mpsc::Sender<Order>>> = Mutex::new(None);
    let handle = Handle::try_current().map_err(io::Error::other)?;
    let (answer, child) = mpsc::sync_channel(1);
    {
        let mut starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
        let mut order = (command, handle, answer);
        if let Some(orders) = &*starter {
            match orders.send(order) {
                Ok(()) => return child.recv().map_err(io::Error::other)?,
                // it has ended, by a panic
                Err(mpsc::SendError(back)) => order = back,
            }
        }
        let (orders, taken) = mpsc::channel();
        std::thread::Builder::new().name("caro-start".into()).spawn(move || start_all(taken))?;
        orders.send(order).map_err(|_| io::Error::other("the thread that starts programs is gone"))?;
        *starter = Some(orders);
    }
    child.recv().map_err(io::Error::other)?
}

fn start_all(orders: mpsc::Receiver<Order>) {
    for (mut command, handle, answer) in orders {
        let _inside = handle.enter();
        // who asked may be gone: the child is killed as it is dropped
        let _ = answer.send(command.spawn());
    }
}

/// True if we were started to outlive the terminal (`nohup`): SIGHUP is to be left alone then.
#[cfg(unix)]
pub fn hangup_is_ignored() -> bool {
    is_ignored(libc::SIGHUP)
}

/// True if whoever started us has the system ignore a signal.
#[cfg(unix)]
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all zeros is a valid `sigaction`: the default handler with an empty mask.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks only; `now` is ours and large enough.
    let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &mut now) };
    asked == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// Has what goes beyond the largest file allowed (`ulimit -f`) fail as on a full disk, and not end us. By a handler, which
/// our children do not inherit: they end as they always do.
#[cfg(unix)]
pub fn outlive_large_files() {
    extern "C" fn nothing(_: libc::c_int) {}
    if is_ignored(libc::SIGXFSZ) {
        return;
    }
    // SAFETY: all zeros is a valid `sigaction`, see above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` is ours, and its handler takes one number and does nothing at all.
    let _ = unsafe { libc::sigaction(libc::SIGXFSZ, &action, std::ptr::null_mut()) };
}

#[cfg(not(unix))]
pub fn outlive_large_files() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_long_ago_is_swept_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let long_ago = std::time::SystemTime::now() - 2 * LEFT;
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
