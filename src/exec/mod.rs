//! Every child process this program ever starts, and nothing else: process group, time limit, output cap, scrubbed
//! environment, sandbox. No other module names `Command` (`tests/architecture.rs` holds that).

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
}

/// When a child is stopped, with all of its process group.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Wall time.
    pub wall: Duration,
    /// Bytes kept of each stream; the rest is read and dropped, and a flood ends the child.
    pub output: usize,
}

/// What a child may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    /// Whatever the user may.
    None,
    /// No network, no writes outside its own temporary directory, where this system can enforce it.
    ReadOnly,
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

/// What a child left.
#[derive(Debug, Clone)]
pub struct Output {
    /// How it ended.
    pub status: Status,
    /// Standard output, at most [`Limits::output`] bytes.
    pub stdout: Vec<u8>,
    /// Standard error, likewise.
    pub stderr: Vec<u8>,
    /// Wall time.
    pub took: Duration,
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
}

/// Runs the job to its end or its limits.
///
/// # Errors
/// If the program cannot be started. A program that fails, hangs or floods is no error: see [`Output::status`].
pub async fn capture(job: &Job) -> Result<Output, ExecError> {
    let _ = job;
    todo!()
}
