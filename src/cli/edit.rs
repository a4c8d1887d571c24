//! Lets the person change a command in place, with the keys of a shell.

use super::{Exit, Failure};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Behavior, Config, Editor};

/// The command after editing; `None` if the person gave it up with the end of the input.
///
/// # Errors
/// If the terminal cannot be used, or Ctrl-C was typed.
pub fn line(cmd: &str) -> Result<Option<String>, Failure> {
    // On the terminal itself: stdout may be a pipe that waits for the command's own output.
    let config = Config::builder().behavior(Behavior::PreferTerm).build();
    let mut editor = Editor::<(), MemHistory>::with_history(config, MemHistory::new()).map_err(failure)?;
    match editor.readline_with_initial("> ", (cmd, "")) {
        Ok(line) => Ok(Some(line)),
        Err(ReadlineError::Eof) => Ok(None),
        Err(ReadlineError::Interrupted) => Err(Failure::silent(Exit::Interrupted)),
        Err(e) => Err(failure(e)),
    }
}

fn failure(e: ReadlineError) -> Failure {
    Failure::no(format!("the command cannot be edited here: {e}")).hint("without -x it is printed, to be copied")
}
