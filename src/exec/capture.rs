//! Runs a child behind the fence and captures its output, up to its end or its limits.

use super::fence::Fence;
use super::truncation::{Flood, Part, StreamBuffer};
use super::{ExecError, Job, Output, Status, environment, reaper};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

/// The time that the pipes may stay open after all known processes are dead.
const DRAIN: Duration = Duration::from_millis(100);
/// The time that a killed child may take to end; one stuck in the kernel is abandoned.
const REAP: Duration = Duration::from_secs(1);

/// Runs the job to its end or its limits. When it returns, or its future is dropped, every process of the job is
/// dead, including those left in the background.
///
/// Needs a Tokio runtime with time and IO enabled.
///
/// # Errors
/// If the program cannot be started. A program that fails, hangs or floods is no error: see [`Output::status`].
pub async fn capture(job: &Job) -> Result<Output, ExecError> {
    run(job, Part::Head).await
}

/// Like [`capture`], but keeps both ends of a long stream: half of [`Limits::output`](super::Limits::output) each.
/// The child may write up to `flood` bytes to a stream.
///
/// # Errors
/// As [`capture`].
pub async fn capture_ends(job: &Job, flood: usize) -> Result<Output, ExecError> {
    run(job, Part::Ends { flood }).await
}

async fn run(job: &Job, part: Part) -> Result<Output, ExecError> {
    let started = Instant::now();
    let failed = |source| ExecError::Start { program: job.program.display().to_string(), source };
    // if no directory can be created, the child runs without a place to write
    let scratch = reaper::Scratch::new();
    let scratch_path = scratch.as_ref().map(reaper::Scratch::path);
    let fence = Fence::prepare(job, scratch_path);

    let (program, args) = fence.command_line(job);
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(environment::scrubbed(job.profile, scratch_path))
        .envs(fence.variables())
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .current_dir(working_directory(job, scratch_path))
        .stdin(if job.stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    fence.arm(&mut command);
    let mut child = reaper::spawn(command).map_err(failed)?;
    let group = reaper::Group::new(fence.members(child.id()));

    let new = || StreamBuffer::new(job.limits.output, part);
    let (mut stdout, mut stderr) = (new(), new());
    let stdin = child.stdin.take();
    // the pipes stay open until the group is dead: a shell whose `yes` gets SIGPIPE would continue with its next
    // command
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let end = {
        let mut pump = pin!(pump(job, stdin, (&mut out, &mut stdout), (&mut err, &mut stderr)));
        let mut timer = pin!(tokio::time::sleep(job.limits.wall));
        let mut open = true;
        let end = loop {
            tokio::select! {
                status = child.wait() => break End::Waited(status),
                result = &mut pump, if open => match result {
                    Ok(()) => open = false,
                    Err(Flood) => break End::Stopped(Status::Flooded),
                },
                () = &mut timer => break End::Stopped(Status::TimedOut),
            }
        };
        // right after the wait, before the group's number can be reused
        group.kill();
        if open && !matches!(end, End::Stopped(Status::Flooded)) {
            let _ = tokio::time::timeout(DRAIN, pump).await;
        }
        end
    };
    let status = match end {
        End::Waited(status) => {
            status_of(status.map_err(|source| ExecError::Lost { program: job.program.display().to_string(), source })?)
        }
        End::Stopped(why) => {
            let _ = tokio::time::timeout(REAP, child.wait()).await;
            why
        }
    };
    group.disarm();
    let ((stdout, stdout_cut), (stderr, stderr_cut)) = (stdout.finish(), stderr.finish());
    Ok(Output { status, stdout, stderr, stdout_cut, stderr_cut, took: started.elapsed() })
}

/// Like [`capture`], for a caller outside of a runtime (and harmless inside of one): waits on a thread of its own.
///
/// # Errors
/// As [`capture`].
pub fn capture_blocking(job: &Job) -> Result<Output, ExecError> {
    let lost = |source| ExecError::Lost { program: job.program.display().to_string(), source };
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(lost)?;
        runtime.block_on(capture(job))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("capture".into()).spawn_scoped(scope, run).map_err(lost)?;
        thread.join().unwrap_or_else(|_| Err(lost(std::io::Error::other("the capturing thread panicked"))))
    })
}

/// The reason why the loop of [`capture`] ended.
enum End {
    /// The child ended by itself.
    Waited(std::io::Result<ExitStatus>),
    /// We stop it, with this status.
    Stopped(Status),
}

/// A stream, and the buffer for it.
type Reading<'a, R> = (&'a mut Option<R>, &'a mut StreamBuffer);

/// Feeds standard input and reads both outputs until they close.
async fn pump(
    job: &Job,
    stdin: Option<ChildStdin>,
    out: Reading<'_, ChildStdout>,
    err: Reading<'_, ChildStderr>,
) -> Result<(), Flood> {
    let feed = async {
        if let Some(mut stdin) = stdin {
            // a child need not read all of its input
            let _ = stdin.write_all(&job.stdin).await;
        }
        Ok(())
    };
    tokio::try_join!(feed, drain(out), drain(err)).map(|_| ())
}

/// Reads a stream to its end.
async fn drain<R: AsyncRead + Unpin>((stream, buffer): Reading<'_, R>) -> Result<(), Flood> {
    let Some(stream) = stream else { return Ok(()) };
    let mut chunk = vec![0u8; 16 << 10];
    loop {
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(read) => buffer.add(&chunk[..read])?,
        }
    }
}

/// Returns the working directory: that of the job, else its own empty directory, else the root directory.
pub(super) fn working_directory(job: &Job, scratch: Option<&Path>) -> PathBuf {
    match (&job.cwd, scratch) {
        (Some(cwd), _) => cwd.clone(),
        (None, Some(scratch)) => scratch.to_path_buf(),
        (None, None) => PathBuf::from(OsString::from(std::path::MAIN_SEPARATOR_STR)),
    }
}

/// Translates the system's exit status.
pub(super) fn status_of(status: ExitStatus) -> Status {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Status::Signaled(signal);
    }
    Status::Exited(status.code().unwrap_or(-1))
}
