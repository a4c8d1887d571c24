//! Every child process this program ever starts, and nothing else: process group, time limit, output cap, scrubbed
//! environment, sandbox. No other module names `Command` (`tests/architecture.rs` holds that).
//!
//! - [`capture`]: a child whose output is wanted, not its terminal. `truncation`: what of it there is room for.
//! - [`foreground`]: a command line that the person runs, with the terminal.
//! - `handover`: a program that takes over a text and goes on by itself: the clipboard's.
//! - [`piped`]: a child that we talk with as long as both live.
//! - [`rehearse`]: a script that runs in a throw-away view of this machine, and what it would change.
//! - `detach`: a child that goes on when we end. `reaper`: that no other does.
//! - `environment`: what variables a captured child sees.
//! - `fence`: how a child is tied down before its program begins, one file a system.
//! - `inherited`: that no child has files open that we were started with. `standard`: whether we were started with an output.
//!
//! What a command means, and whether it may run, is decided elsewhere.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod capture;
#[cfg(unix)]
mod detach;
mod environment;
mod fence;
mod foreground;
mod handover;
#[cfg(unix)]
mod inherited;
mod piped;
mod reaper;
pub mod rehearse;
mod standard;
mod truncation;

pub use capture::{capture, capture_blocking, capture_ends};
#[cfg(unix)]
pub use detach::detach;
pub use environment::find;
pub use fence::{Support, support};
pub use foreground::{foreground, shell_options};
pub use handover::hand_over;
pub use piped::{Piped, Process, piped};
#[cfg(unix)]
pub use reaper::hangup_is_ignored;
pub use reaper::{kill_all, outlive_large_files};
pub use standard::output_was_closed;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A child process whose output is wanted, not its terminal.
#[derive(Debug, Clone)]
pub struct Job {
    /// Absolute path of the program: what it is named was decided before.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs; an empty temporary directory if `None`.
    pub cwd: Option<PathBuf>,
    /// Variables on top of the scrubbed environment (PATH, HOME, LANG ...).
    pub env: Vec<(OsString, OsString)>,
    /// What it reads on standard input; end of file at once if empty.
    pub stdin: Vec<u8>,
    /// When it is stopped.
    pub limits: Limits,
    /// What it may touch.
    pub sandbox: Sandbox,
    /// Whose environment it sees.
    pub profile: EnvProfile,
    /// True if nothing that it starts can outlive it, so that nobody has to look for what left its process group.
    pub closed: bool,
}

impl Job {
    /// A job in the sandbox with the default limits: no arguments, no input, an empty working directory.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            env: Vec::new(),
            stdin: Vec::new(),
            limits: Limits::default(),
            sandbox: Sandbox::ReadOnly,
            profile: EnvProfile::Asked,
            closed: false,
        }
    }

    /// The same job with these arguments added.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The same job with a variable added.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

/// When a child is stopped, with all of its process group.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Wall time.
    pub wall: Duration,
    /// Bytes kept of each stream; the rest is read, counted and dropped, and a flood ends the child.
    pub output: usize,
}

impl Default for Limits {
    /// One second and 256 KiB: plenty for a program that says something about itself.
    fn default() -> Self {
        Self { wall: Duration::from_secs(1), output: 256 << 10 }
    }
}

/// What a child may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// Whatever the user may.
    None,
    /// No network, no writes outside its own temporary directory, where this system can enforce it (see [`support`]).
    ReadOnly,
    /// As [`Sandbox::ReadOnly`], but it may ask the kernel (netlink), as what shows interfaces, routes and sockets has to.
    /// Who is root could change them so: for commands of which it is known that they only show.
    AskKernel,
    /// As [`Sandbox::ReadOnly`], but it may write below these files and folders.
    Offline(Vec<PathBuf>),
    /// No writes but below these files and folders and its own temporary directory, where this system can enforce it. The
    /// network stays open. On Linux nothing inside can gain rights (`sudo` fails).
    Within(Vec<PathBuf>),
}

impl Sandbox {
    /// True if it lets nothing change.
    pub fn only_reads(&self) -> bool {
        matches!(self, Self::ReadOnly | Self::AskKernel)
    }

    /// True if it is closed on every side, but for where it may write.
    pub(crate) fn is_closed(&self) -> bool {
        self.only_reads() || matches!(self, Self::Offline(_))
    }
}

/// Whose environment a captured child sees. Tokens and keys are in none of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EnvProfile {
    /// Everybody's: it is asked about itself, and is to say the same everywhere (UTC, English, no colours).
    #[default]
    Asked,
    /// A script that others wrote: what a program needs to run, and nothing that says more of the person.
    Script,
    /// It works in the person's place: the person's time zone and tools.
    Work,
    /// The person agreed to it: the person's proxies, key agents and services too.
    Agreed,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that was not ours.
    Signaled(i32),
    /// Stopped by us at [`Limits::wall`].
    TimedOut,
    /// Stopped by us because it never ceased to write.
    Flooded,
}

impl Status {
    /// True if it ended by itself and reported success.
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signaled(number) => write!(f, "signal {number}"),
            Self::TimedOut => f.write_str("no end in time"),
            Self::Flooded => f.write_str("output without end"),
        }
    }
}

/// What a child left.
#[derive(Debug, Clone)]
pub struct Output {
    /// How it ended.
    pub status: Status,
    /// Standard output, at most [`Limits::output`] bytes.
    pub stdout: Vec<u8>,
    /// Standard error, likewise.
    pub stderr: Vec<u8>,
    /// What is missing of standard output; `None` if all of it is there.
    pub stdout_cut: Option<Cut>,
    /// What is missing of standard error, likewise.
    pub stderr_cut: Option<Cut>,
    /// Wall time.
    pub took: Duration,
}

/// What is missing of a stream for which there was no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Where in what was kept it would stand.
    pub at: usize,
    /// Its bytes.
    pub bytes: usize,
    /// Ends of lines in it.
    pub lines: usize,
    /// Bytes of the whole stream, as far as the child came.
    pub of_bytes: usize,
    /// Lines of it.
    pub of_lines: usize,
}

/// Why a child could not be run at all.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// It could not be started.
    #[error("could not start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// It was started, but the system does not tell how it ended.
    #[error("lost track of {program}: {source}")]
    Lost {
        /// The program.
        program: String,
        /// The system's word.
        source: std::io::Error,
    },
}

impl ExecError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Start { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => "install it, or check that its folder is on PATH",
                std::io::ErrorKind::PermissionDenied => "check that the file is a program you may run (chmod +x)",
                std::io::ErrorKind::OutOfMemory | std::io::ErrorKind::WouldBlock => {
                    "the system is out of memory or processes: close something and try again"
                }
                _ => "check that the file is a program for this system",
            },
            Self::Lost { .. } => "try again; if it goes on, the system is short of something (see dmesg)",
        }
    }
}
