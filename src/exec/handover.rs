//! A program that takes over a text and may go on when we end, as those of a clipboard do: they answer for it from then on.

use super::ExecError;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Starts a program of the person's, hands it `text` on standard input, and waits so long for it to end. True if it ended well
/// or is still at it: it goes on by itself then. It has our environment, and no terminal to write to.
///
/// # Errors
/// If it cannot be started, or does not take the text.
pub fn hand_over(program: &Path, args: &[OsString], text: &[u8], patience: Duration) -> Result<bool, ExecError> {
    let failed = |source| ExecError::Start { program: program.display().to_string(), source };
    let mut command = Command::new(program);
    command.args(args).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // a Ctrl-C at our terminal is not meant for it
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(failed)?;
    let stdin = child.stdin.take();
    let text = text.to_vec();
    // one that does not read would hold us up with a long text
    let writer = std::thread::Builder::new().name("hand-over".into()).spawn(move || match stdin {
        Some(mut stdin) => stdin.write_all(&text),
        None => Ok(()),
    });
    let writer = writer.map_err(failed)?;
    let until = Instant::now() + patience;
    let ended = wait(&mut child, until).map_err(failed)?;
    // the last of it may be on its way still
    while ended.is_some() && !writer.is_finished() && Instant::now() < until {
        std::thread::sleep(LOOK);
    }
    let is_taken = writer.is_finished() && writer.join().is_ok_and(|written| written.is_ok());
    if ended.is_none() && !is_taken {
        let _ = child.kill();
        let _ = child.wait();
        return Ok(false);
    }
    Ok(is_taken && ended.is_none_or(|status| status.success()))
}

/// Waits for its end until then.
fn wait(child: &mut Child, until: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() >= until => return Ok(None),
            None => std::thread::sleep(LOOK),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn sh(script: &str, text: &[u8], patience: Duration) -> bool {
        hand_over(Path::new("/bin/sh"), &["-c".into(), script.into()], text, patience).unwrap()
    }

    #[test]
    fn a_text_arrives_whole_and_one_who_goes_on_holds_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("taken");
        let long = Duration::from_secs(60);
        assert!(sh(&format!("cat > {}", file.display()), b"ls -a\n", long));
        assert_eq!(std::fs::read(&file).unwrap(), b"ls -a\n");
        assert!(!sh("cat > /dev/null; exit 3", b"x", long));
        // it has read, and stays: as a clipboard does
        let begun = Instant::now();
        assert!(sh("cat > /dev/null; exec sleep 5 < /dev/null", b"x", Duration::from_millis(300)));
        assert!(begun.elapsed() < Duration::from_secs(4));
        // it never reads: a long text is not taken
        assert!(!sh("exec sleep 30", &vec![b'x'; 1 << 20], Duration::from_millis(200)));
        assert!(hand_over(Path::new("/no/such/program"), &[], b"", long).is_err());
    }
}
