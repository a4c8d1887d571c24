//! Gives a text to a program that may keep running when we end, as those of a clipboard do to serve it.

use super::ExecError;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The interval between two checks whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Starts a program of the user, writes `text` to its standard input, and waits up to `timeout` for it to end. True
/// if it succeeded or has read the text and is still running; it is left alone then. It has our environment, and no
/// terminal to write to.
///
/// # Errors
/// If it cannot be started, or does not take the text.
pub fn hand_over(program: &Path, args: &[OsString], text: &[u8], timeout: Duration) -> Result<bool, ExecError> {
    let failed = |source| ExecError::Start { program: program.display().to_string(), source };
    let mut command = Command::new(program);
    command.args(args).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C in our terminal is not meant for it
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(failed)?;
    let stdin = child.stdin.take();
    let text = text.to_vec();
    // a program that does not read would block us with a long text
    let writer = std::thread::Builder::new().name("hand-over".into()).spawn(move || match stdin {
        Some(mut stdin) => stdin.write_all(&text),
        None => Ok(()),
    });
    let writer = writer.map_err(failed)?;
    let until = Instant::now() + timeout;
    let ended = wait(&mut child, until).map_err(failed)?;
    // the last bytes may still be in the pipe
    while ended.is_some() && !writer.is_finished() && Instant::now() < until {
        std::thread::sleep(POLL_INTERVAL);
    }
    let is_taken = writer.is_finished() && writer.join().is_ok_and(|written| written.is_ok());
    if ended.is_none() && !is_taken {
        let _ = child.kill();
        let _ = child.wait();
        return Ok(false);
    }
    Ok(is_taken && ended.is_none_or(|status| status.success()))
}

/// Waits until `until` for the child to end.
fn wait(child: &mut Child, until: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() >= until => return Ok(None),
            None => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn sh(script: &str, text: &[u8], timeout: Duration) -> bool {
        hand_over(Path::new("/bin/sh"), &["-c".into(), script.into()], text, timeout).unwrap()
    }

    #[test]
    fn a_text_arrives_completely_and_a_running_program_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("taken");
        let long = Duration::from_secs(60);
        assert!(sh(&format!("cat > {}", file.display()), b"ls -a\n", long));
        assert_eq!(std::fs::read(&file).unwrap(), b"ls -a\n");
        assert!(!sh("cat > /dev/null; exit 3", b"x", long));
        // it reads the text and keeps running, as a clipboard does
        let begun = Instant::now();
        assert!(sh("cat > /dev/null; exec sleep 60 < /dev/null", b"x", Duration::from_millis(300)));
        assert!(begun.elapsed() < Duration::from_secs(30));
        // it never reads, so a long text is not accepted
        assert!(!sh("exec sleep 30", &vec![b'x'; 1 << 20], Duration::from_millis(200)));
        assert!(hand_over(Path::new("/no/such/program"), &[], b"", long).is_err());
    }
}
