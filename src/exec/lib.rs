//! Starts every child process of this program: process group, time limit, output limit, scrubbed environment,
//! sandbox. No other module uses `Command` (`tests/architecture.rs` checks that).
//!
//! - [`capture`]: runs a child and returns its output. `truncation`: limits the output.
//! - [`foreground`]: runs a command line of the user in the terminal.
//! - `handover`: gives a text to a program that keeps running on its own, as those of a clipboard do.
//! - [`piped`]: a child that we exchange data with while both run.
//! - [`rehearse`]: runs a script in a throw-away view of this machine and reports what it would change.
//! - `detach`: a child that keeps running when we end. `reaper`: makes sure that no other child does.
//! - `environment`: the variables of a captured child.
//! - `fence`: confines a child before its program begins, with one file per system.
//! - `inherited`: closes files that we were started with, in children. `standard`: whether we were started with a
//!   standard output.
//!
//! Other crates decide what a command means and whether it may run.
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
pub use reaper::{kill_all, survive_file_size_limit};
pub use standard::output_was_closed;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A child process whose output is captured.
#[derive(Debug, Clone)]
pub struct Job {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory; an empty temporary directory if `None`.
    pub cwd: Option<PathBuf>,
    /// Variables in addition to the scrubbed environment (PATH, HOME, LANG ...).
    pub env: Vec<(OsString, OsString)>,
    /// Its standard input.
    pub stdin: Vec<u8>,
    /// The limits at which it is stopped.
    pub limits: Limits,
    /// The files and the network that it may access.
    pub sandbox: Sandbox,
    /// The environment that it gets.
    pub profile: EnvProfile,
    /// True if no process that it starts can outlive it, so that there is no search for processes that left its
    /// group.
    pub spawns_nothing: bool,
}

impl Job {
    /// Creates a job in the sandbox with the default limits: no arguments, no input, an empty working directory.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            env: Vec::new(),
            stdin: Vec::new(),
            limits: Limits::default(),
            sandbox: Sandbox::ReadOnly,
            profile: EnvProfile::Neutral,
            spawns_nothing: false,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

/// The limits at which a child is stopped, with all of its process group.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Wall time.
    pub wall: Duration,
    /// Most bytes of each stream that are returned. The rest is read, counted and dropped; a flood of output ends the
    /// child.
    pub output: usize,
}

impl Default for Limits {
    /// One second and 256 KiB: plenty for a program that prints its version or help.
    fn default() -> Self {
        Self { wall: Duration::from_secs(1), output: 256 << 10 }
    }
}

/// The access of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// Everything that the user may.
    None,
    /// No network, no writes outside its own temporary directory, where this system can enforce it (see [`support`]).
    ReadOnly,
    /// Like [`Sandbox::ReadOnly`], but netlink sockets are allowed, as commands that show interfaces, routes and
    /// sockets need them. Root could change the network through them, so this is only for commands known to be
    /// read-only.
    AskKernel,
    /// Like [`Sandbox::ReadOnly`], but it may write below these files and folders.
    Offline(Vec<PathBuf>),
    /// No writes except below these files and folders and its own temporary directory, where this system can enforce
    /// it. The network is available. On Linux nothing inside can gain rights (`sudo` fails).
    Within(Vec<PathBuf>),
}

impl Sandbox {
    /// True if it allows no changes.
    pub fn only_reads(&self) -> bool {
        matches!(self, Self::ReadOnly | Self::AskKernel)
    }

    /// True if it blocks everything but writes to given places.
    pub(crate) fn is_closed(&self) -> bool {
        self.only_reads() || matches!(self, Self::Offline(_))
    }
}

/// The environment of a captured child. None of them has tokens or keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EnvProfile {
    /// For a program that is asked about itself: the same on every machine (UTC, English, no colours).
    #[default]
    Neutral,
    /// For a script written by others: what a program needs to run, and no more about the user.
    Script,
    /// For work on behalf of the user: with the user's time zone and tools.
    Work,
    /// For commands that the user has approved: with the user's proxies, key agents and services too.
    Approved,
}

/// The way in which a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// It was ended by a signal that we did not send.
    Signaled(i32),
    /// We stopped it at [`Limits::wall`].
    TimedOut,
    /// We stopped it because it kept writing.
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

/// The result of a child.
#[derive(Debug, Clone)]
pub struct Output {
    /// The way in which it ended.
    pub status: Status,
    /// Standard output, at most [`Limits::output`] bytes.
    pub stdout: Vec<u8>,
    /// Standard error, likewise.
    pub stderr: Vec<u8>,
    /// The missing part of standard output; `None` if it is complete.
    pub stdout_cut: Option<Cut>,
    /// The missing part of standard error, likewise.
    pub stderr_cut: Option<Cut>,
    /// Wall time.
    pub took: Duration,
}

/// The missing part of a stream that was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Its position in the returned bytes.
    pub at: usize,
    /// The number of its bytes.
    pub bytes: usize,
    /// The number of its line ends.
    pub lines: usize,
    /// Bytes of the whole stream, up to where the child was stopped.
    pub of_bytes: usize,
    /// Lines of the whole stream.
    pub of_lines: usize,
}

/// The reason why a child could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// It could not be started.
    #[error("could not start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// It was started, but the system does not report how it ended.
    #[error("lost track of {program}: {source}")]
    Lost {
        /// The program.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
}

impl ExecError {
    /// Advice to the user.
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
