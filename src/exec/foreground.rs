//! Runs a command line of the user in the foreground: with the terminal and its signals.

use super::ExecError;
use std::path::Path;
use std::process::ExitStatus;
use tokio::process::Command;

/// Runs `line` in `shell` with our own terminal, environment and working directory (or `cwd`), and returns its exit
/// code: 128 + N if signal N ended it.
///
/// The child stays in our process group, so that the terminal sends Ctrl-C and Ctrl-Z to it as to any command. We
/// survive Ctrl-C to report how it ended, and forward SIGTERM and SIGHUP.
///
/// Needs a Tokio runtime with IO enabled.
///
/// # Errors
/// If the shell cannot be started.
pub async fn foreground(shell: &Path, line: &str, cwd: Option<&Path>) -> Result<i32, ExecError> {
    let failed = |source| ExecError::Start { program: shell.display().to_string(), source };
    let lost = |source| ExecError::Lost { program: shell.display().to_string(), source };
    // before the child exists, so that no signal ends us and leaves it running; exec resets handlers in the child,
    // unlike ignored signals
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
            signal = signals.recv() => forward(child.id(), signal),
        }
    }
}

/// Returns the options by which a shell takes one line to run. `busybox` also needs the name of its applet.
pub fn shell_options(shell: &Path) -> &'static [&'static str] {
    let name = shell.file_stem().map(|stem| stem.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    match name.as_str() {
        "pwsh" | "powershell" => &["-NoProfile", "-Command"],
        "cmd" => &["/C"],
        "busybox" => &["sh", "-c"],
        _ => &["-c"],
    }
}

/// Returns the code that a shell would report.
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

    /// Returns the next signal that the child may not have received itself.
    async fn recv(&mut self) -> Option<rustix::process::Signal> {
        tokio::select! {
            // the terminal sends these two to the whole foreground group
            _ = self.interrupt.recv() => None,
            _ = self.quit.recv() => None,
            _ = self.terminate.recv() => Some(rustix::process::Signal::TERM),
            _ = self.hangup.recv() => Some(rustix::process::Signal::HUP),
        }
    }
}

#[cfg(unix)]
fn forward(child: Option<u32>, signal: Option<rustix::process::Signal>) {
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
fn forward(_child: Option<u32>, (): ()) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_its_own_options() {
        for (shell, options) in [
            ("/bin/bash", &["-c"][..]),
            ("/usr/bin/fish", &["-c"]),
            ("/usr/bin/pwsh", &["-NoProfile", "-Command"]),
            ("/bin/busybox", &["sh", "-c"]),
            ("cmd.exe", &["/C"]),
        ] {
            assert_eq!(shell_options(Path::new(shell)), options, "{shell}");
            // the same in a rehearsal
            let play = crate::rehearse::RehearsalJob::new(Path::new(shell), "ls", ".");
            assert_eq!(play.shell[1..], *options, "{shell}");
        }
    }
}
