//! A command line that the person runs: it has the terminal, the signals and the last word.

use super::ExecError;
use std::path::Path;
use std::process::ExitStatus;
use tokio::process::Command;

/// Runs `line` in `shell` with our own terminal, environment and working directory (or `cwd`), and returns its exit
/// code: 128 + N if signal N ended it.
///
/// The child stays in our process group, so that the terminal sends Ctrl-C and Ctrl-Z to it as to any command; we
/// outlive Ctrl-C to report how it ended, and pass SIGTERM and SIGHUP on.
///
/// Needs a Tokio runtime with IO enabled.
///
/// # Errors
/// If the shell cannot be started.
pub async fn foreground(shell: &Path, line: &str, cwd: Option<&Path>) -> Result<i32, ExecError> {
    let failed = |source| ExecError::Start { program: shell.display().to_string(), source };
    let lost = |source| ExecError::Lost { program: shell.display().to_string(), source };
    // Before the child exists: from here on a signal cannot end us and leave it alone. Handlers, unlike ignored
    // signals, are reset in the child by exec.
    let mut signals = Signals::listen().map_err(failed)?;
    let mut command = Command::new(shell);
    command.args(shell_options(shell)).arg(line);
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    let mut child = command.spawn().map_err(failed)?;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(code_of(status.map_err(lost)?)),
            signal = signals.recv() => pass_on(child.id(), signal),
        }
    }
}

/// The words by which a shell program is told that one line follows. `busybox` is called by its own name and told which
/// applet.
pub fn shell_options(shell: &Path) -> &'static [&'static str] {
    let name = shell.file_stem().map(|stem| stem.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    match name.as_str() {
        "pwsh" | "powershell" => &["-NoProfile", "-Command"],
        "cmd" => &["/C"],
        "busybox" => &["sh", "-c"],
        _ => &["-c"],
    }
}

/// The code a shell would report.
fn code_of(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(1)
}

/// The signals that would end us before the child.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next signal that the child may not have got by itself.
    async fn recv(&mut self) -> Option<rustix::process::Signal> {
        tokio::select! {
            // The terminal sends these two to the whole foreground group.
            _ = self.interrupt.recv() => None,
            _ = self.quit.recv() => None,
            _ = self.terminate.recv() => Some(rustix::process::Signal::TERM),
            _ = self.hangup.recv() => Some(rustix::process::Signal::HUP),
        }
    }
}

#[cfg(unix)]
fn pass_on(child: Option<u32>, signal: Option<rustix::process::Signal>) {
    let pid = child.and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
    if let (Some(pid), Some(signal)) = (pid, signal) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// On Windows the console sends Ctrl-C to every process attached to it.
#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn recv(&mut self) {
        let _ = self.0.recv().await;
    }
}

#[cfg(windows)]
fn pass_on(_child: Option<u32>, (): ()) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_is_told_in_its_own_way() {
        for (shell, options) in [
            ("/bin/bash", &["-c"][..]),
            ("/usr/bin/fish", &["-c"]),
            ("/usr/bin/pwsh", &["-NoProfile", "-Command"]),
            ("/bin/busybox", &["sh", "-c"]),
            ("cmd.exe", &["/C"]),
        ] {
            assert_eq!(shell_options(Path::new(shell)), options, "{shell}");
            // in a rehearsal too
            let play = crate::rehearse::RehearsalJob::new(Path::new(shell), "ls", ".");
            assert_eq!(play.shell[1..], *options, "{shell}");
        }
    }
}
