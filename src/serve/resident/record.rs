//! What a resident leaves beside its socket about its process, so that one that does not answer any more, or has lost its
//! socket, is still found: `SLOT.PID.json`.
//!
//! A number alone may be another process by now. One is taken for the resident only if it is this user's, began when the
//! record says, runs the program that the record says, and was started as a resident.

use super::WORD;
use super::folder::Folder;
use caro_base::files;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most bytes of a record.
const LARGEST: u64 = 1 << 16;
/// How often a process that is to end is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// A resident's process.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Record {
    /// Its number.
    pub pid: u32,
    /// When it began, in the system's own count.
    began: u64,
    /// The program it runs.
    program: PathBuf,
    /// True once it ends by itself, when what is under way is done.
    pub leaving: bool,
}

impl Record {
    /// The record of this process; nothing where the system does not say when it began.
    pub fn of_this() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// That of any process.
    fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, began: stat(pid)?.began, program: program(pid)?, leaving: false })
    }

    /// That of a process which the kernel names as the one behind a socket, if it is a resident. Until one that is just
    /// being started begins, the kernel names who starts it: somebody's call.
    pub fn of_peer(pid: u32) -> Option<Self> {
        let record = Self::of(pid)?;
        record.is_there().then_some(record)
    }

    /// The same of one that ends by itself, or does not.
    pub fn with(&self, leaving: bool) -> Self {
        Self { leaving, ..self.clone() }
    }

    /// Writes it beside a socket. Where that fails the resident works all the same.
    pub fn write(&self, socket: &Path) {
        let _ = serde_json::to_vec(self).map(|text| files::replace(&self.file(socket), &text, files::Access::Private));
    }

    /// Takes it away.
    pub fn remove(&self, socket: &Path) {
        let _ = std::fs::remove_file(self.file(socket));
    }

    fn file(&self, socket: &Path) -> PathBuf {
        socket.with_extension(format!("{}.{ENDING}", self.pid))
    }

    /// True if that very process runs, and is a resident of this user's.
    pub fn is_there(&self) -> bool {
        let is_mine = std::fs::metadata(format!("/proc/{}", self.pid))
            .is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw());
        // proc_pid_cmdline(5)
        let line = files::read(Path::new(&format!("/proc/{}/cmdline", self.pid)), LARGEST).unwrap_or_default();
        let is_resident = line.split(|byte| *byte == 0).nth(1) == Some(WORD.as_bytes());
        self.runs() && is_mine && is_resident && program(self.pid).as_ref() == Some(&self.program)
    }

    /// True if somebody has stopped it: it can neither answer nor end by itself.
    pub fn stands_still(&self) -> bool {
        stat(self.pid).is_some_and(|stat| matches!(stat.state, 'T' | 't'))
    }

    /// Has it end: tells it to, and ends it where it has not within `wait`, for which is waited as long again. True if it
    /// is gone, or was none of ours.
    pub fn end(&self, wait: Duration) -> bool {
        // one that stands still hears the first only when it goes on
        let ways = [&[Signal::TERM, Signal::CONT][..], &[Signal::KILL]];
        !self.is_there()
            || ways.into_iter().any(|signals| {
                signals.iter().for_each(|signal| self.signal(*signal));
                self.is_gone_within(wait)
            })
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid
            && self.runs()
        {
            let _ = kill_process(pid, signal);
        }
    }

    /// True if the process of that number is the one that began then, and has not ended. It ends in steps: it knows its
    /// program no more when its socket is still open.
    fn runs(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.began == self.began && !stat.is_over())
    }

    /// Waits until it is gone, for so long.
    pub fn is_gone_within(&self, wait: Duration) -> bool {
        let begun = Instant::now();
        while self.runs() {
            if begun.elapsed() > wait {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }
}

/// The ending of a record's name.
const ENDING: &str = "json";

/// The records of processes that are there, those of one slot or all. What others have left is taken away.
pub(super) fn all(folder: &Folder, slot: Option<&str>) -> Vec<Record> {
    let of_slot = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        slot.is_none_or(|slot| name.strip_prefix(slot).is_some_and(|rest| rest.starts_with('.')))
    };
    let read = |path: PathBuf| {
        let record: Option<Record> = serde_json::from_slice(&files::read(&path, LARGEST).ok()?).ok();
        if record.as_ref().is_none_or(|record| !record.is_there()) {
            let _ = std::fs::remove_file(&path);
            return None;
        }
        record
    };
    folder.files(ENDING).into_iter().filter(of_slot).filter_map(read).collect()
}

/// What the system says of a process.
struct Stat {
    state: char,
    threads: u64,
    began: u64,
}

impl Stat {
    /// True if it has ended, and only its parent has not taken note of it. Where the first thread has ended before the others,
    /// the process still has its files.
    fn is_over(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }
}

/// Source: proc_pid_stat(5), the third field, the 20th and the 22nd; the second may have spaces and brackets in it. Where there is no
/// such file, no process is known.
fn stat(pid: u32) -> Option<Stat> {
    let stat = files::read(Path::new(&format!("/proc/{pid}/stat")), LARGEST).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some(Stat { state, threads: fields.nth(16)?.parse().ok()?, began: fields.nth(1)?.parse().ok()? })
}

/// The file that a process runs, also where that was replaced. Source: proc_pid_exe(5).
fn program(pid: u32) -> Option<PathBuf> {
    let link = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = link.to_str()?;
    Some(name.strip_suffix(" (deleted)").unwrap_or(name).into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A number that was given to another process, and anybody's own process, are never taken for the resident.
    #[test]
    fn what_is_no_resident_of_ours_is_neither_shown_nor_ended() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let folder = Folder::existing(dir.path()).unwrap().unwrap();
        let socket = folder.socket("s").unwrap();
        let this = Record::of_this().unwrap();
        assert!(!this.is_there(), "a test is no resident");
        for record in [this.clone(), Record { pid: 1, ..this.clone() }, Record { pid: 4_194_305, ..this.clone() }] {
            record.write(&socket);
            assert!(record.end(Duration::ZERO), "there is nothing to end");
            assert_eq!(all(&folder, None), []);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nor are their records kept");
        assert_eq!(Record::of_peer(std::process::id()), None);
    }

    #[test]
    fn a_process_is_over_once_its_last_thread_is() {
        // its first thread ends, by exit(2), before the other one
        let code = "import ctypes, platform, threading, time\n\
                    threading.Thread(target=time.sleep, args=(3,)).start()\n\
                    ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)";
        let Ok(mut child) = std::process::Command::new("python3").args(["-c", code]).spawn() else {
            println!("skipped: there is no python3");
            return;
        };
        let until = |holds: &dyn Fn(&Stat) -> bool| {
            let begun = Instant::now();
            while !stat(child.id()).is_some_and(|stat| holds(&stat)) {
                assert!(begun.elapsed() < Duration::from_secs(30));
                std::thread::sleep(LOOK);
            }
        };
        until(&|stat| stat.state == 'Z');
        assert!(!stat(child.id()).unwrap().is_over());
        until(&Stat::is_over);
        child.wait().unwrap();
    }

    #[test]
    fn records_are_of_their_slot() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let folder = Folder::existing(dir.path()).unwrap().unwrap();
        Record::of_this().unwrap().write(&folder.socket("ab").unwrap());
        for (slot, left) in [(Some("a"), 1), (Some("abc"), 1), (Some("ab"), 0)] {
            all(&folder, slot);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), left, "{slot:?}");
        }
    }
}
