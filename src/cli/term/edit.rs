//! Lets the person type a line, or change one in place, with the keys of a shell.

use super::history::History;
use super::piped::next_line;
use crate::{Exit, Failure};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Behavior, Config, Editor};

/// The command after editing; `None` if the person gave it up with the end of the input.
///
/// # Errors
/// If the terminal cannot be used, or Ctrl-C was typed.
pub fn line(cmd: &str) -> Result<Option<String>, Failure> {
    match editor()?.readline_with_initial("> ", (cmd, "")) {
        Ok(line) => Ok(Some(line)),
        Err(ReadlineError::Eof) => Ok(None),
        Err(ReadlineError::Interrupted) => Err(Failure::silent(Exit::Interrupted)),
        Err(e) => Err(failure(e)),
    }
}

/// Words after a prompt; `None` if the person gave them up with the end of the input.
///
/// # Errors
/// As [`line()`].
pub fn words(prompt: &str) -> Result<Option<String>, Failure> {
    match editor()?.readline(prompt) {
        Ok(line) => Ok(Some(line)),
        Err(ReadlineError::Eof) => Ok(None),
        Err(ReadlineError::Interrupted) => Err(Failure::silent(Exit::Interrupted)),
        Err(e) => Err(failure(e)),
    }
}

/// An editor on the terminal itself: stdout may be a pipe that waits for the command's own output.
fn editor() -> Result<Editor<(), MemHistory>, Failure> {
    let config = Config::builder().behavior(Behavior::PreferTerm).build();
    Editor::with_history(config, MemHistory::new()).map_err(failure)
}

fn failure(e: ReadlineError) -> Failure {
    Failure::no(format!("the command cannot be edited here: {e}")).hint("without -x it is printed, to be copied")
}

/// What came of asking for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// A line.
    Line(String),
    /// One that cannot be taken, all of it, and why.
    Refused(Failure),
    /// Ctrl-C.
    Interrupted,
    /// The end of the input.
    End,
}

/// The longest line that is read from a pipe, bytes.
const LONGEST: usize = 1 << 20;

/// Lines that a person types, one after the other: with an editor and a history on a terminal, as they come from a pipe.
pub struct Lines {
    editor: Option<Editor<(), MemHistory>>,
    history: Option<History>,
}

impl Lines {
    /// Lines of this process' input, with a history on a terminal.
    ///
    /// # Errors
    /// If the terminal cannot be used.
    pub fn open(terminal: bool, history: Option<History>) -> Result<Self, Failure> {
        if !terminal {
            return Ok(Self { editor: None, history });
        }
        let mut lines = Self { editor: Some(editor()?), history };
        lines.recall();
        Ok(lines)
    }

    /// True if a person types.
    pub fn is_terminal(&self) -> bool {
        self.editor.is_some()
    }

    /// The next line.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn next(&mut self, prompt: &str) -> Result<Typed, Failure> {
        let Some(editor) = &mut self.editor else { return piped() };
        let line = match editor.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Eof) => return Ok(Typed::End),
            Err(ReadlineError::Interrupted) => return Ok(Typed::Interrupted),
            Err(e) => {
                return Err(Failure::no(format!("no line can be read: {e}")).hint("messages can come from a pipe, too"));
            }
        };
        if !line.trim().is_empty()
            && editor.add_history_entry(line.as_str()).unwrap_or(false)
            && let Some(history) = &self.history
        {
            history.keep(&line);
        }
        Ok(Typed::Line(line))
    }

    /// Forgets lines that were typed, in the editor and in the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget(&mut self, lines: &[String]) -> Result<(), Failure> {
        if let Some(history) = &self.history {
            history.forget(lines)?;
        }
        if let Some(editor) = &mut self.editor {
            // what the editor has is not told apart from what was typed: it begins again with what is left
            let _ = editor.clear_history();
        }
        self.recall();
        Ok(())
    }

    /// Gives the editor what the file has.
    fn recall(&mut self) {
        let (Some(editor), Some(history)) = (&mut self.editor, &self.history) else { return };
        for line in history.kept() {
            // one that is the same as the last is not taken
            let _ = editor.add_history_entry(line);
        }
    }
}

/// A line from a pipe.
fn piped() -> Result<Typed, Failure> {
    let read = next_line(&mut std::io::stdin().lock(), LONGEST);
    Ok(match read.map_err(|e| Failure::no(format!("no line can be read: {e}")))? {
        None => Typed::End,
        Some(Ok(line)) => Typed::Line(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned()),
        Some(Err(why)) => Typed::Refused(why),
    })
}

/// A reply to a question while Ctrl-C belongs to what asks; `None` for Ctrl-C and the end of the input.
///
/// # Errors
/// If the terminal cannot be used.
pub fn reply() -> Result<Option<String>, Failure> {
    match editor()?.readline("> ") {
        Ok(line) => Ok(Some(line.trim().to_owned())),
        Err(ReadlineError::Eof | ReadlineError::Interrupted) => Ok(None),
        Err(e) => Err(failure(e)),
    }
}
