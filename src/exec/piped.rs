//! Runs a child that we exchange data with while both run: its three streams are ours, and it does not outlive us.

use super::fence::Fence;
use super::reaper::{self, Group};
use super::{ExecError, Job, Status, capture, environment};
use std::process::Stdio;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// A running child with its streams.
pub struct Piped {
    /// Its standard input.
    pub stdin: ChildStdin,
    /// Its standard output.
    pub stdout: ChildStdout,
    /// Its standard error. It has to be read, or the child blocks once the pipe is full.
    pub stderr: ChildStderr,
    /// The child itself.
    pub process: Process,
}

/// A running child. Dropping it kills it with all of its process group.
pub struct Process {
    child: Child,
    group: Option<Group>,
}

impl Process {
    /// Returns how it ended, once it has, and kills what it left running.
    pub fn ended(&mut self) -> Option<Status> {
        let status = self.child.try_wait().ok().flatten()?;
        if let Some(group) = self.group.take() {
            // at once, before the group's number can be reused
            group.kill();
            group.disarm();
        }
        Some(capture::status_of(status))
    }
}

/// Starts a program with the scrubbed environment and the job's own variables, in a process group of its own. The
/// job's input and limits are ignored: the caller limits the exchange.
///
/// Needs a Tokio runtime with IO enabled, which must live as long as the streams.
///
/// # Errors
/// If the program cannot be started.
pub fn piped(job: &Job) -> Result<Piped, ExecError> {
    let failed = |source| ExecError::Start { program: job.program.display().to_string(), source };
    let fence = Fence::prepare(job, None);
    let (program, args) = fence.command_line(job);
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(environment::scrubbed(job.profile, None))
        .envs(fence.variables())
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .current_dir(capture::working_directory(job, None))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    fence.arm(&mut command);
    let mut child = reaper::spawn(command).map_err(failed)?;
    let group = Some(reaper::Group::new(fence.members(child.id())));
    let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let process = Process { child, group };
    let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
        return Err(failed(std::io::Error::other("it has no pipes")));
    };
    Ok(Piped { stdin, stdout, stderr, process })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    fn sh(script: &str) -> Job {
        let mut job = Job::new("/bin/sh").args(["-c", script]).env("MINE", "yes");
        job.sandbox = crate::Sandbox::None;
        job
    }

    #[tokio::test]
    async fn data_is_exchanged_and_only_own_variables_are_set() {
        let mut one = piped(&sh("while read line; do echo \"$line $MINE ${CARO_RESIDENT:-none}\"; done")).unwrap();
        let mut lines = BufReader::new(one.stdout).lines();
        for word in ["a", "b"] {
            one.stdin.write_all(format!("{word}\n").as_bytes()).await.unwrap();
            assert_eq!(lines.next_line().await.unwrap().unwrap(), format!("{word} yes none"));
        }
        assert_eq!(one.process.ended(), None);
        drop(one.stdin);
        assert_eq!(lines.next_line().await.unwrap(), None);
        let begun = Instant::now();
        let status = loop {
            match one.process.ended() {
                None if begun.elapsed() < Duration::from_secs(60) => tokio::time::sleep(Duration::from_millis(5)).await,
                other => break other,
            }
        };
        assert_eq!(status, Some(Status::Exited(0)));
    }

    #[tokio::test]
    async fn dropping_it_kills_its_group() {
        let one = piped(&sh("sleep 600 & echo $!; wait")).unwrap();
        let mut lines = BufReader::new(one.stdout).lines();
        let grandchild: i32 = lines.next_line().await.unwrap().unwrap().parse().unwrap();
        let grandchild = rustix::process::Pid::from_raw(grandchild).unwrap();
        assert!(rustix::process::test_kill_process(grandchild).is_ok());
        drop(one.process);
        let begun = Instant::now();
        let gone = |pid: rustix::process::Pid| {
            // a zombie that init has not collected yet counts as dead
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
            rustix::process::test_kill_process(pid).is_err() || stat.contains(") Z ")
        };
        while !gone(grandchild) {
            assert!(begun.elapsed() < Duration::from_secs(60), "the grandchild lives on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
