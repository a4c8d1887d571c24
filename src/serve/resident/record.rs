//! The record that a resident writes beside its socket (`SLOT.PID.json`), by which its process is found when it stops
//! answering or its socket is removed.
//!
//! A process id may have been reused. A process is taken for the resident only if it belongs to this user, was started
//! at the recorded time, runs the recorded program, and was started as a resident.

use super::WORD;
use super::folder::Folder;
use caro_base::files;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most bytes read of a record or of a file of `/proc`.
const MAX_BYTES: u64 = 1 << 16;
/// The interval at which a process that should end is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The file extension of records.
const EXTENSION: &str = "json";

/// A resident's process.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Record {
    /// Its process id.
    pub pid: u32,
    /// The time at which it started, in clock ticks since boot.
    began: u64,
    /// The program it runs.
    program: PathBuf,
    /// True once it will end by itself after the requests in progress.
    pub leaving: bool,
}

impl Record {
    /// Returns the record of this process; `None` if the system does not report its start time and program.
    pub fn of_current_process() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// Returns the record of any process.
    fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, began: stat(pid)?.began, program: program(pid)?, leaving: false })
    }

    /// Returns the record of the process that the kernel names as a socket's listener, if it is a resident: until a
    /// new resident calls listen(2), the kernel names the caller that starts it.
    pub fn of_peer(pid: u32) -> Option<Self> {
        let record = Self::of(pid)?;
        record.is_running_resident().then_some(record)
    }

    /// Returns a copy with `leaving` set.
    pub fn with_leaving(&self, leaving: bool) -> Self {
        Self { leaving, ..self.clone() }
    }

    /// Writes the record beside a socket. Errors are ignored: the resident works without it.
    pub fn write(&self, socket: &Path) {
        let _ = serde_json::to_vec(self).map(|text| files::replace(&self.file(socket), &text, files::Access::Private));
    }

    /// Removes the record.
    pub fn remove(&self, socket: &Path) {
        let _ = std::fs::remove_file(self.file(socket));
    }

    fn file(&self, socket: &Path) -> PathBuf {
        socket.with_extension(format!("{}.{EXTENSION}", self.pid))
    }

    /// True if the recorded process is running and is a resident of this user.
    pub fn is_running_resident(&self) -> bool {
        let is_mine = std::fs::metadata(format!("/proc/{}", self.pid))
            .is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw());
        // proc_pid_cmdline(5)
        let line = files::read(Path::new(&format!("/proc/{}/cmdline", self.pid)), MAX_BYTES).unwrap_or_default();
        let is_resident = line.split(|byte| *byte == 0).nth(1) == Some(WORD.as_bytes());
        self.is_running() && is_mine && is_resident && program(self.pid).as_ref() == Some(&self.program)
    }

    /// True if the process is stopped (SIGSTOP, a debugger): it can neither answer nor end by itself.
    pub fn is_stopped(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.began == self.began && matches!(stat.state, 'T' | 't'))
    }

    /// Terminates the process: sends SIGTERM, and SIGKILL if it has not ended within `timeout`; waits up to `timeout`
    /// for each. True if it has ended, or is no resident of this user.
    pub fn terminate(&self, timeout: Duration) -> bool {
        if !self.is_running_resident() {
            return true;
        }
        // a stopped process receives SIGTERM only once it continues
        for signals in [&[Signal::TERM, Signal::CONT][..], &[Signal::KILL]] {
            signals.iter().for_each(|signal| self.signal(*signal));
            if self.wait_until_ended(timeout) {
                return true;
            }
        }
        false
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid
            && self.is_running()
        {
            let _ = kill_process(pid, signal);
        }
    }

    /// True if the process with this id has the recorded start time and has not ended. The program is not compared: an
    /// ending process no longer has one while its socket is still open.
    fn is_running(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.began == self.began && !stat.has_ended())
    }

    /// Waits until the process has ended; false if it has not within `timeout`.
    pub fn wait_until_ended(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        while self.is_running() {
            if start.elapsed() > timeout {
                return false;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        true
    }
}

/// Returns the records of running residents, of one slot or all, and removes all other records.
pub(super) fn all(folder: &Folder, slot: Option<&str>) -> Vec<Record> {
    let of_slot = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        slot.is_none_or(|slot| name.strip_prefix(slot).is_some_and(|rest| rest.starts_with('.')))
    };
    let read = |path: PathBuf| {
        let record: Option<Record> = serde_json::from_slice(&files::read(&path, MAX_BYTES).ok()?).ok();
        if record.as_ref().is_none_or(|record| !record.is_running_resident()) {
            let _ = std::fs::remove_file(&path);
            return None;
        }
        record
    };
    folder.files(EXTENSION).into_iter().filter(of_slot).filter_map(read).collect()
}

/// The fields used of `/proc/PID/stat`.
struct Stat {
    state: char,
    threads: u64,
    began: u64,
}

impl Stat {
    /// True if the process has ended and only waits for its parent to reap it. While other threads run after the first
    /// has ended, the process still has its files open.
    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }
}

/// Reads the state of a process; `None` on systems without `/proc`. Source: proc_pid_stat(5), fields 3, 20 and 22;
/// field 2 may contain spaces and brackets.
fn stat(pid: u32) -> Option<Stat> {
    let stat = files::read(Path::new(&format!("/proc/{pid}/stat")), MAX_BYTES).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some(Stat { state, threads: fields.nth(16)?.parse().ok()?, began: fields.nth(1)?.parse().ok()? })
}

/// Returns the path of the program that a process runs, even if that file was replaced. Source: proc_pid_exe(5).
fn program(pid: u32) -> Option<PathBuf> {
    let link = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = link.to_str()?;
    Some(name.strip_suffix(" (deleted)").unwrap_or(name).into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A process that reuses a recorded id, or any other process, is never taken for the resident.
    #[test]
    fn a_process_that_is_no_resident_is_neither_listed_nor_ended() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let folder = Folder::existing(dir.path()).unwrap().unwrap();
        let socket = folder.socket("s").unwrap();
        let this = Record::of_current_process().unwrap();
        assert!(!this.is_running_resident(), "a test is not a resident");
        for record in [this.clone(), Record { pid: 1, ..this.clone() }, Record { pid: 4_194_305, ..this.clone() }] {
            record.write(&socket);
            assert!(record.terminate(Duration::ZERO), "there is nothing to end");
            assert_eq!(all(&folder, None), []);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nor are their records kept");
        assert_eq!(Record::of_peer(std::process::id()), None);
    }

    #[test]
    fn only_the_recorded_process_counts_as_stopped() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let began = stat(child.id()).unwrap().began;
        let record = Record { pid: child.id(), began, ..Record::of_current_process().unwrap() };
        let reused = Record { began: began + 1, ..record.clone() };
        assert!(!record.is_stopped(), "it sleeps");
        record.signal(Signal::STOP);
        let start = Instant::now();
        while !record.is_stopped() {
            assert!(start.elapsed() < Duration::from_secs(30));
            std::thread::sleep(POLL_INTERVAL);
        }
        assert!(!reused.is_stopped(), "another process has the recorded id now");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!record.is_stopped(), "it has ended");
    }

    #[test]
    fn a_process_has_ended_once_its_last_thread_has() {
        // the first thread ends, by exit(2), before the other one
        let code = "import ctypes, platform, threading, time\n\
                    threading.Thread(target=time.sleep, args=(3,)).start()\n\
                    ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)";
        let Ok(mut child) = std::process::Command::new("python3").args(["-c", code]).spawn() else {
            println!("skipped: there is no python3");
            return;
        };
        let wait_until = |holds: &dyn Fn(&Stat) -> bool| {
            let start = Instant::now();
            while !stat(child.id()).is_some_and(|stat| holds(&stat)) {
                assert!(start.elapsed() < Duration::from_secs(30));
                std::thread::sleep(POLL_INTERVAL);
            }
        };
        wait_until(&|stat| stat.state == 'Z');
        assert!(!stat(child.id()).unwrap().has_ended());
        wait_until(&Stat::has_ended);
        child.wait().unwrap();
    }

    #[test]
    fn records_are_selected_by_slot() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let folder = Folder::existing(dir.path()).unwrap().unwrap();
        Record::of_current_process().unwrap().write(&folder.socket("ab").unwrap());
        for (slot, left) in [(Some("a"), 1), (Some("abc"), 1), (Some("ab"), 0)] {
            all(&folder, slot);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), left, "{slot:?}");
        }
    }
}
