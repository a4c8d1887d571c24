//! The helper's processes: this one makes the view, watches the clock and reports; its child is process 1 of the
//! namespace; that one's child becomes the shell.

use super::mounts::View;
use super::sys::{self, Fork};
use super::wire::{End, How, Report, Spec, path};
use super::{changes, confine};
use crate::fence::{go_first, hold_to};
use std::ffi::OsString;
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Everything but the user namespace.
const SPACES: i32 =
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Reads the order from standard input, carries it out, leaves the report. The exit code says only whether one was left.
pub(super) fn main() -> u8 {
    if sys::close_others().is_err() {
        return 2;
    }
    let Ok(spec) = serde_json::from_reader::<_, Spec>(io::stdin().lock()) else { return 2 };
    let report = rehearsed(&spec).unwrap_or_else(|why| Report {
        end: End::Failed(why),
        changes: Vec::new(),
        unlisted: 0,
        micros: 0,
    });
    u8::from(report.write(&path(&spec.private)).is_err())
}

fn told(what: &'static str) -> impl Fn(io::Error) -> String {
    move |e| format!("{what}: {e}")
}

fn rehearsed(spec: &Spec) -> Result<Report, String> {
    let privileged = enter_spaces().map_err(told("namespaces"))?;
    let cwd = path(&spec.cwd).canonicalize().map_err(told("working directory"))?;
    let writable = spec.writable.as_deref().map(path);
    let view = View::build(&path(&spec.private), &cwd, writable.as_deref())?;

    let wall = Duration::from_micros(spec.wall_micros);
    let pipe = || io::pipe().map_err(told("pipe"));
    let ((go, start), (mut news, tell)) = (pipe()?, pipe()?);
    let first = match sys::fork().map_err(told("process"))? {
        Fork::Child => {
            drop((start, news));
            let room = Room { root: &view.root, cwd: &cwd, privileged, wall, places: view.places(writable) };
            sys::leave(room.first(spec, go, tell))
        }
        Fork::Parent(first) => first,
    };
    drop((go, tell));
    let since = Instant::now();
    let end = watch(first, start, &mut news, privileged, since + wall);
    let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
    sys::kill(first);
    sys::wait(first);
    let (changes, unlisted) = match &end {
        Ok(_) => changes::of(&view.layers, spec.digests),
        Err(_) => Default::default(),
    };
    Ok(Report { end: End::Ended(end?), changes, unlisted, micros })
}

/// Leaves this machine's namespaces; true if that took no user namespace.
fn enter_spaces() -> io::Result<bool> {
    if sys::unshare(SPACES).is_ok() {
        return Ok(true);
    }
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    sys::unshare(SPACES | libc::CLONE_NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(false)
}

/// Lets process 1 go, gives it its user map, and waits for the script's end.
fn watch(
    first: libc::pid_t,
    mut start: PipeWriter,
    news: &mut PipeReader,
    privileged: bool,
    deadline: Instant,
) -> Result<How, String> {
    let gone = |e: io::Error| format!("process 1 of the view ended early: {e}");
    start.write_all(b"g").map_err(gone)?;
    loop {
        if !sys::readable(news.as_fd(), deadline) {
            return Ok(How::TimedOut);
        }
        let mut kind = [0; 1];
        news.read_exact(&mut kind).map_err(gone)?;
        match kind[0] {
            // It stands in a user namespace of its own, as nobody yet.
            b'm' if privileged => {
                same_map(first, "uid_map").and_then(|()| same_map(first, "gid_map")).map_err(told("user map"))?;
                start.write_all(b"g").map_err(gone)?;
            }
            b'e' => {
                let mut status = [0; 4];
                news.read_exact(&mut status).map_err(gone)?;
                return Ok(how(i32::from_ne_bytes(status)));
            }
            _ => {
                let mut why = String::new();
                let _ = news.read_to_string(&mut why);
                return Err(why);
            }
        }
    }
}

/// Gives a process in a new user namespace the numbers it had before.
fn same_map(process: libc::pid_t, map: &str) -> io::Result<()> {
    let own = fs::read_to_string(format!("/proc/self/{map}"))?;
    let mut same = String::new();
    for line in own.lines() {
        if let [inside, _, count] = line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            same.push_str(&format!("{inside} {inside} {count}\n"));
        }
    }
    fs::write(format!("/proc/{process}/{map}"), same)
}

fn how(status: i32) -> How {
    if libc::WIFSIGNALED(status) {
        How::Signaled(libc::WTERMSIG(status))
    } else {
        How::Exited(libc::WEXITSTATUS(status))
    }
}

/// What process 1 needs to know.
struct Room<'a> {
    root: &'a Path,
    cwd: &'a Path,
    privileged: bool,
    wall: Duration,
    /// Where the script may write, where that is not for the view to say.
    places: Option<Vec<PathBuf>>,
}

impl Room<'_> {
    /// Process 1: moves into the view, starts the shell, buries the dead until the shell is among them.
    fn first(&self, spec: &Spec, mut go: PipeReader, mut tell: PipeWriter) -> i32 {
        // Here, since in the view `/proc` cannot be written.
        go_first();
        // If the helper dies, so does this, and with it the namespace.
        let prepared = sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64)
            .and_then(|()| go.read_exact(&mut [0]))
            .and_then(|()| self.move_in(&mut go, &mut tell));
        let shell = match prepared.and_then(|()| sys::fork()) {
            Ok(Fork::Child) => {
                drop(go);
                let why = self.shell(spec);
                let _ = tell.write_all(format!("!{why}").as_bytes());
                sys::leave(127)
            }
            Ok(Fork::Parent(shell)) => shell,
            Err(e) => {
                let _ = tell.write_all(format!("!moving into the view: {e}").as_bytes());
                return 1;
            }
        };
        while let Some((who, status)) = sys::wait(-1) {
            if who == shell {
                let mut word = vec![b'e'];
                word.extend(status.to_ne_bytes());
                let _ = tell.write_all(&word);
                break;
            }
        }
        0
    }

    fn move_in(&self, go: &mut PipeReader, tell: &mut PipeWriter) -> io::Result<()> {
        // The helper goes on to see the machine as it is.
        sys::unshare(libc::CLONE_NEWNS)?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        sys::mount(Path::new("proc"), &self.root.join("proc"), "proc", flags, "")?;
        sys::become_root(self.root)?;
        // Since Linux 6.14 these hold for the namespace alone; before, for everybody: then they are left as they are.
        if kernel() >= (6, 14) {
            let _ = fs::write("/proc/sys/kernel/pid_max", confine::PID_MAX);
        }
        if self.privileged {
            // Rights over nothing but these namespaces, in which what is mounted is locked. Where root may not even have
            // them, the capabilities still go.
            if sys::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS).is_ok() {
                tell.write_all(b"m")?;
                go.read_exact(&mut [0])?;
                let _ = fs::write("/proc/sys/user/max_user_namespaces", "0");
            }
        } else {
            let _ = fs::write("/proc/sys/user/max_user_namespaces", "0");
        }
        sys::set_attributes(Path::new("/proc"), libc::MOUNT_ATTR_RDONLY, true)?;
        std::env::set_current_dir(self.cwd)
    }

    /// Becomes the shell; returns only why it cannot.
    fn shell(&self, spec: &Spec) -> String {
        let words: Vec<PathBuf> = spec.shell.iter().map(|word| path(word)).collect();
        let Some((program, before)) = words.split_first() else { return "no shell is named".into() };
        // a read-only mount stops no writing into a pipe that lies on it
        let held = self.places.as_deref().map_or(Ok(()), hold_to);
        if let Err(e) = held.and_then(|()| confine::confine(self.wall)) {
            return format!("the script cannot be confined: {e}");
        }
        let mut command = Command::new(program);
        let after = spec.after.iter().map(|word| OsString::from_vec(word.clone()));
        command.args(before).arg(OsString::from_vec(spec.script.clone())).args(after).stdin(Stdio::null());
        for name in ["TMPDIR", "TEMP", "TMP"] {
            command.env(name, "/tmp");
        }
        format!("{}: {}", program.display(), command.exec())
    }
}

/// Major and minor number of the running kernel.
fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
