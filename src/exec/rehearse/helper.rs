//! The processes of the helper: this one creates the view, watches the time and reports. Its child is process 1 of
//! the namespace, whose child becomes the shell.

use super::mounts::View;
use super::sys::{self, Fork};
use super::wire::{End, Report, ScriptStatus, Spec, path};
use super::{changes, confine};
use crate::fence::{raise_oom_score, restrict_writes};
use std::ffi::OsString;
use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// All namespaces except the user namespace.
const NAMESPACES: i32 =
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Reads the specification from standard input, carries it out and writes the report. Returns the exit code, which
/// only says whether there is a report.
pub(super) fn main() -> u8 {
    if sys::close_others().is_err() {
        return 2;
    }
    let Ok(spec) = serde_json::from_reader::<_, Spec>(io::stdin().lock()) else { return 2 };
    let report = run_rehearsal(&spec).unwrap_or_else(|why| Report {
        end: End::Failed(why),
        changes: Vec::new(),
        unlisted: 0,
        micros: 0,
    });
    u8::from(report.write(&path(&spec.private)).is_err())
}

fn context(what: &'static str) -> impl Fn(io::Error) -> String {
    move |e| format!("{what}: {e}")
}

fn run_rehearsal(spec: &Spec) -> Result<Report, String> {
    let privileged = enter_namespaces().map_err(context("namespaces"))?;
    let cwd = path(&spec.cwd).canonicalize().map_err(context("working directory"))?;
    let writable = spec.writable.as_deref().map(path);
    let view = View::build(&path(&spec.private), &cwd, writable.as_deref())?;

    let wall = Duration::from_micros(spec.wall_micros);
    let pipe = || io::pipe().map_err(context("pipe"));
    let ((go, start), (mut events, event_writer)) = (pipe()?, pipe()?);
    let init_pid = match sys::fork().map_err(context("process"))? {
        Fork::Child => {
            drop((start, events));
            let init =
                InitProcess { root: &view.root, cwd: &cwd, privileged, wall, places: view.writable_places(writable) };
            sys::exit_now(init.run_as_init(spec, go, event_writer))
        }
        Fork::Parent(init_pid) => init_pid,
    };
    drop((go, event_writer));
    let since = Instant::now();
    let end = watch(init_pid, start, &mut events, privileged, since + wall);
    let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
    sys::kill(init_pid);
    sys::wait(init_pid);
    let (changes, unlisted) = match &end {
        Ok(_) => changes::of(&view.layers, spec.digests),
        Err(_) => Default::default(),
    };
    Ok(Report { end: End::Ended(end?), changes, unlisted, micros })
}

/// Enters new namespaces; true if no user namespace was needed.
fn enter_namespaces() -> io::Result<bool> {
    if sys::unshare(NAMESPACES).is_ok() {
        return Ok(true);
    }
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    sys::unshare(NAMESPACES | libc::CLONE_NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(false)
}

/// Lets process 1 start, sets its user map, and waits for the end of the script.
fn watch(
    init_pid: libc::pid_t,
    mut start: PipeWriter,
    events: &mut PipeReader,
    privileged: bool,
    deadline: Instant,
) -> Result<ScriptStatus, String> {
    let gone = |e: io::Error| format!("process 1 of the view ended early: {e}");
    start.write_all(b"g").map_err(gone)?;
    loop {
        if !sys::readable(events.as_fd(), deadline) {
            return Ok(ScriptStatus::TimedOut);
        }
        let mut kind = [0; 1];
        events.read_exact(&mut kind).map_err(gone)?;
        match kind[0] {
            // it has entered a user namespace that has no map yet
            b'm' if privileged => {
                map_to_same(init_pid, "uid_map")
                    .and_then(|()| map_to_same(init_pid, "gid_map"))
                    .map_err(context("user map"))?;
                start.write_all(b"g").map_err(gone)?;
            }
            b'e' => {
                let mut status = [0; 4];
                events.read_exact(&mut status).map_err(gone)?;
                return Ok(script_status(i32::from_ne_bytes(status)));
            }
            _ => {
                let mut why = String::new();
                let _ = events.read_to_string(&mut why);
                return Err(why);
            }
        }
    }
}

/// Maps the numbers of a process in a new user namespace to themselves.
fn map_to_same(process: libc::pid_t, map: &str) -> io::Result<()> {
    let own = fs::read_to_string(format!("/proc/self/{map}"))?;
    let mut same = String::new();
    for line in own.lines() {
        if let [inside, _, count] = line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            same.push_str(&format!("{inside} {inside} {count}\n"));
        }
    }
    fs::write(format!("/proc/{process}/{map}"), same)
}

fn script_status(status: i32) -> ScriptStatus {
    if libc::WIFSIGNALED(status) {
        ScriptStatus::Signaled(libc::WTERMSIG(status))
    } else {
        ScriptStatus::Exited(libc::WEXITSTATUS(status))
    }
}

/// The parameters of process 1.
struct InitProcess<'a> {
    root: &'a Path,
    cwd: &'a Path,
    privileged: bool,
    wall: Duration,
    /// The places that the script may write to, if not all of the view is an overlay.
    places: Option<Vec<PathBuf>>,
}

impl InitProcess<'_> {
    /// Runs process 1: enters the view, starts the shell, and reaps processes until the shell ends.
    fn run_as_init(&self, spec: &Spec, mut go: PipeReader, mut event_writer: PipeWriter) -> i32 {
        // here, as `/proc` is read-only in the view
        raise_oom_score();
        // if the helper dies, so does this process, and with it the namespace
        let prepared = sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64)
            .and_then(|()| go.read_exact(&mut [0]))
            .and_then(|()| self.enter_view(&mut go, &mut event_writer));
        let shell = match prepared.and_then(|()| sys::fork()) {
            Ok(Fork::Child) => {
                drop(go);
                let why = self.shell(spec);
                let _ = event_writer.write_all(format!("!{why}").as_bytes());
                sys::exit_now(127)
            }
            Ok(Fork::Parent(shell)) => shell,
            Err(e) => {
                let _ = event_writer.write_all(format!("!moving into the view: {e}").as_bytes());
                return 1;
            }
        };
        while let Some((who, status)) = sys::wait(-1) {
            if who == shell {
                let mut word = vec![b'e'];
                word.extend(status.to_ne_bytes());
                let _ = event_writer.write_all(&word);
                break;
            }
        }
        0
    }

    fn enter_view(&self, go: &mut PipeReader, event_writer: &mut PipeWriter) -> io::Result<()> {
        // the helper itself must still see the machine's mounts
        sys::unshare(libc::CLONE_NEWNS)?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        sys::mount(Path::new("proc"), &self.root.join("proc"), "proc", flags, "")?;
        sys::become_root(self.root)?;
        // Since Linux 6.14 this is set for the namespace alone; before, it would be for the whole machine.
        if kernel_version() >= (6, 14) {
            let _ = fs::write("/proc/sys/kernel/pid_max", confine::PID_MAX);
        }
        if self.privileged {
            // rights over these namespaces only, in which the mounts are locked; if even root may not create them,
            // the capabilities are still dropped
            if sys::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS).is_ok() {
                event_writer.write_all(b"m")?;
                go.read_exact(&mut [0])?;
                let _ = fs::write("/proc/sys/user/max_user_namespaces", "0");
            }
        } else {
            let _ = fs::write("/proc/sys/user/max_user_namespaces", "0");
        }
        sys::set_attributes(Path::new("/proc"), libc::MOUNT_ATTR_RDONLY, true)?;
        std::env::set_current_dir(self.cwd)
    }

    /// Becomes the shell; returns only the reason why it cannot.
    fn shell(&self, spec: &Spec) -> String {
        let words: Vec<PathBuf> = spec.shell.iter().map(|word| path(word)).collect();
        let Some((program, before)) = words.split_first() else { return "no shell is named".into() };
        // a read-only mount does not prevent writing to a pipe on it
        let restricted = self.places.as_deref().map_or(Ok(()), restrict_writes);
        if let Err(e) = restricted.and_then(|()| confine::confine(self.wall)) {
            return format!("the script cannot be confined: {e}");
        }
        let mut command = Command::new(program);
        let args = spec.args.iter().map(|word| OsString::from_vec(word.clone()));
        command.args(before).arg(OsString::from_vec(spec.script.clone())).args(args).stdin(Stdio::null());
        for name in ["TMPDIR", "TEMP", "TMP"] {
            command.env(name, "/tmp");
        }
        format!("{}: {}", program.display(), command.exec())
    }
}

/// Returns the major and minor version of the running kernel.
fn kernel_version() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
