//! Reads lines that the user types in reply to a question.

use super::edit;
use super::interrupt::{Phase, has_terminal, read_terminal_line};
use crate::{Cx, Failure};
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Time between two checks if a waiting run was stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Asks a question; true if the reply is `y` or `yes`.
///
/// # Errors
/// As [`typed`].
pub fn agreed(question: &str, cx: &Cx) -> Result<bool, Failure> {
    cx.ui.ask(question);
    Ok(typed(cx)?.is_some_and(|reply| is_yes(&reply)))
}

/// True for a reply that agrees.
pub fn is_yes(reply: &str) -> bool {
    ["y", "yes"].contains(&reply.to_lowercase().as_str())
}

/// Reads a line; `None` at the end of the input. Ctrl-C ends the process.
///
/// # Errors
/// If stdin cannot be read.
pub fn typed(cx: &Cx) -> Result<Option<String>, Failure> {
    let _phase = cx.interrupt().during(Phase::Ends);
    let typed = line();
    cx.ui.answered();
    typed
}

/// Reads a line that a run waits for; `None` at the end of the input, and for Ctrl-C, which stops the run.
///
/// # Errors
/// As [`typed`].
pub fn typed_in_a_run(cx: &Cx) -> Result<Option<String>, Failure> {
    let interrupt = cx.interrupt();
    if interrupt.has_turns() && cx.ui.can_ask_at_terminal() {
        // the editor redraws its line, so the question stays on the one above
        cx.ui.tell("");
        let reply = edit::reply()?;
        if reply.is_none() {
            interrupt.cancel_current();
        }
        return Ok(reply);
    }
    let (send, receive) = mpsc::channel();
    // a read cannot be interrupted: if the run is stopped, this thread ends with the process
    std::thread::spawn(move || send.send(line()));
    loop {
        match receive.recv_timeout(POLL_INTERVAL) {
            Ok(line) => return line,
            Err(RecvTimeoutError::Timeout) if !interrupt.is_cancelled() => {}
            Err(_) => return Ok(None),
        }
    }
}

/// Reads a line from stdin, or from the terminal itself if stdin is data; `None` without a terminal. Data is never
/// taken for a reply: `yes | caro ...` agrees to nothing.
fn line() -> Result<Option<String>, Failure> {
    let failed = |e| Failure::no(format!("no answer: {e}"));
    match source(std::io::stdin().is_terminal(), has_terminal) {
        Source::Stdin => {
            let mut line = String::new();
            let n = std::io::stdin().read_line(&mut line).map_err(failed)?;
            Ok((n > 0).then(|| line.trim().to_string()))
        }
        Source::Terminal => read_terminal_line().map_err(failed),
        Source::Nobody => Ok(None),
    }
}

/// The source of a reply.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    Stdin,
    Terminal,
    Nobody,
}

/// Chooses the source of a reply: a terminal, if there is one.
fn source(stdin_is_terminal: bool, has_terminal: impl Fn() -> bool) -> Source {
    match stdin_is_terminal {
        true => Source::Stdin,
        false if has_terminal() => Source::Terminal,
        false => Source::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_gives_a_reply() {
        assert_eq!(source(true, || false), Source::Stdin);
        assert_eq!(source(false, || true), Source::Terminal);
        assert_eq!(source(false, || false), Source::Nobody);
    }
}
