//! Lets the user type a line, or edit one, with the keys of a shell.

use super::history::History;
use super::piped::next_line;
use super::ui::visible;
use crate::{Exit, Failure};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Behavior, Config, Editor};

/// Lets the user edit a command and returns it; `None` if they cancelled with Ctrl-D.
///
/// # Errors
/// If the command cannot be shown as it is, the terminal cannot be used, or Ctrl-C was pressed.
pub fn line(cmd: &str) -> Result<Option<String>, Failure> {
    check(cmd)?;
    match editor()?.readline_with_initial("> ", (cmd, "")) {
        Ok(line) => Ok(Some(line)),
        Err(ReadlineError::Eof) => Ok(None),
        Err(ReadlineError::Interrupted) => Err(Failure::silent(Exit::Interrupted)),
        Err(e) => Err(failure(e)),
    }
}

/// Refuses a command with characters that the terminal would interpret: the editor writes them as they are, and in
/// another form the command would be another one.
///
/// # Errors
/// If there are such characters.
pub fn check(cmd: &str) -> Result<(), Failure> {
    if visible(cmd) == cmd {
        return Ok(());
    }
    Err(Failure::no("the command cannot be edited: it has characters that are not shown as they are")
        .hint("they stand above as `\\x1b` and the like; without them it can be typed anew"))
}

/// Asks for words with a prompt; `None` if the user cancelled with Ctrl-D.
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

/// Creates an editor on the terminal itself: stdout may be a pipe for the command's output.
fn editor() -> Result<Editor<(), MemHistory>, Failure> {
    let config = Config::builder().behavior(Behavior::PreferTerm).build();
    Editor::with_history(config, MemHistory::new()).map_err(failure)
}

fn failure(e: ReadlineError) -> Failure {
    Failure::no(format!("the command cannot be edited here: {e}")).hint("without -x it is printed, to be copied")
}

/// The result of asking for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// A line.
    Line(String),
    /// A line that is refused as a whole, with the reason.
    Refused(Failure),
    /// Ctrl-C.
    Interrupted,
    /// The end of the input.
    End,
}

/// Most bytes of a line from a pipe.
const MAX_LINE: usize = 1 << 20;

/// Reads lines one after the other: with an editor and a history at a terminal, else from a pipe.
pub struct Lines {
    editor: Option<Editor<(), MemHistory>>,
    history: Option<History>,
}

impl Lines {
    /// Opens the input of this process, with an editor and a history if it is a terminal.
    ///
    /// # Errors
    /// If the terminal cannot be used.
    pub fn open(terminal: bool, history: Option<History>) -> Result<Self, Failure> {
        if !terminal {
            return Ok(Self { editor: None, history });
        }
        let mut lines = Self { editor: Some(editor()?), history };
        lines.load_history();
        Ok(lines)
    }

    /// True if the lines are typed at a terminal.
    pub fn is_terminal(&self) -> bool {
        self.editor.is_some()
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn next(&mut self, prompt: &str) -> Result<Typed, Failure> {
        let Some(editor) = &mut self.editor else { return read_piped() };
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
            history.add(&line);
        }
        Ok(Typed::Line(line))
    }

    /// Removes typed lines from the history, in the editor and in the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget(&mut self, lines: &[String]) -> Result<(), Failure> {
        if let Some(history) = &self.history {
            history.forget(lines)?;
        }
        if let Some(editor) = &mut self.editor {
            // the editor cannot remove single lines: its history is loaded anew
            let _ = editor.clear_history();
        }
        self.load_history();
        Ok(())
    }

    /// Loads the lines of the file into the editor.
    fn load_history(&mut self) {
        let (Some(editor), Some(history)) = (&mut self.editor, &self.history) else { return };
        for line in history.lines() {
            // the editor skips a line that repeats the last one
            let _ = editor.add_history_entry(line);
        }
    }
}

/// Reads a line from a pipe.
fn read_piped() -> Result<Typed, Failure> {
    let read = next_line(&mut std::io::stdin().lock(), MAX_LINE);
    Ok(match read.map_err(|e| Failure::no(format!("no line can be read: {e}")))? {
        None => Typed::End,
        Some(Ok(line)) => Typed::Line(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned()),
        Some(Err(why)) => Typed::Refused(why),
    })
}

/// Reads the reply to a question of a run; `None` for Ctrl-C, which the caller handles, and for the end of the input.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_a_terminal_would_interpret_is_not_edited() {
        for cmd in ["echo a\x1b[8m; rm b", "echo a\rls", "ls \u{202e}fr-", "ls \u{9b}31m"] {
            assert!(check(cmd).is_err() && line(cmd).is_err_and(|why| why.exit == Exit::No), "{cmd:?}");
        }
        for cmd in ["ls -a", "for f in *\ndo\techo $f\ndone", "echo 日本"] {
            assert_eq!(check(cmd), Ok(()), "{cmd:?}");
        }
    }
}
