//! Lines that the person types as an answer to a question.

use super::edit;
use super::interrupt::{Phase, has_terminal, line_of_terminal};
use crate::{Cx, Failure};
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Between two looks whether a run that waits was stopped.
const LOOK: Duration = Duration::from_millis(20);

/// Reads what the person types, up to the end of the line; `None` at the end of the input. Ctrl-C ends the process.
///
/// # Errors
/// If stdin cannot be read.
pub fn typed(cx: &Cx) -> Result<Option<String>, Failure> {
    let _phase = cx.interrupt().during(Phase::Ends);
    let typed = line();
    cx.ui.answered();
    typed
}

/// The same while a run waits for it: Ctrl-C stops that run, and nothing was typed then.
///
/// # Errors
/// As [`typed`].
pub fn typed_in_a_run(cx: &Cx) -> Result<Option<String>, Failure> {
    let interrupt = cx.interrupt();
    if interrupt.has_turns() && cx.ui.can_ask_at_terminal() {
        // the editor takes the whole line: the question stays above it
        cx.ui.tell("");
        let reply = edit::reply()?;
        if reply.is_none() {
            interrupt.pull();
        }
        return Ok(reply);
    }
    let (send, receive) = mpsc::channel();
    // nobody can be called back from reading: where the run is stopped, this thread goes with the process
    std::thread::spawn(move || send.send(line()));
    loop {
        match receive.recv_timeout(LOOK) {
            Ok(line) => return line,
            Err(RecvTimeoutError::Timeout) if !interrupt.is_pulled() => {}
            Err(_) => return Ok(None),
        }
    }
}

/// A line of the person's: of stdin, or of the terminal itself where stdin is data.
fn line() -> Result<Option<String>, Failure> {
    let failed = |e| Failure::no(format!("no answer: {e}"));
    if !std::io::stdin().is_terminal() && has_terminal() {
        return line_of_terminal().map_err(failed);
    }
    let mut line = String::new();
    let n = std::io::stdin().read_line(&mut line).map_err(failed)?;
    Ok((n > 0).then(|| line.trim().to_string()))
}
