//! Lets the person type a line, or change one in place, with the keys of a shell.

use super::{Exit, Failure};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Behavior, Config, Editor};
use std::path::PathBuf;

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
    /// Ctrl-C.
    Interrupted,
    /// The end of the input.
    End,
}

/// Entries of a history file that are kept.
const HISTORY: usize = 1000;
/// The longest line that is read from a pipe, bytes.
const LONGEST: u64 = 1 << 20;

/// Lines that a person types, one after the other: with an editor and a history on a terminal, as they come from a pipe.
pub struct Lines {
    editor: Option<Editor<(), MemHistory>>,
    file: Option<PathBuf>,
}

impl Lines {
    /// Lines of this process' input, with a history in a file on a terminal.
    ///
    /// # Errors
    /// If the terminal cannot be used.
    pub fn open(terminal: bool, file: Option<PathBuf>) -> Result<Self, Failure> {
        if !terminal {
            return Ok(Self { editor: None, file: None });
        }
        let mut lines = Self { editor: Some(editor()?), file };
        for line in lines.kept() {
            if let Some(editor) = &mut lines.editor {
                // one that is the same as the last is not taken
                let _ = editor.add_history_entry(line);
            }
        }
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
        if !line.trim().is_empty() && editor.add_history_entry(line.as_str()).unwrap_or(false) {
            self.keep(&line);
        }
        Ok(Typed::Line(line))
    }

    /// The lines of the history file.
    fn kept(&self) -> Vec<String> {
        let text = self.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[lines.len().saturating_sub(HISTORY)..].to_vec()
    }

    /// Adds a line to the history file. Not to be able to costs the line, nothing else.
    fn keep(&self, line: &str) {
        let Some(file) = &self.file else { return };
        let mut lines = self.kept();
        lines.push(line.replace(['\n', '\r'], " "));
        let write = || -> std::io::Result<()> {
            use std::io::Write;
            let folder = file.parent().unwrap_or(std::path::Path::new("."));
            std::fs::create_dir_all(folder)?;
            // a new file of tempfile is its owner's alone: what one says is nobody else's business
            let mut new = tempfile::NamedTempFile::new_in(folder)?;
            new.write_all((lines.join("\n") + "\n").as_bytes())?;
            new.persist(file).map_err(|e| e.error)?;
            Ok(())
        };
        let _ = write();
    }
}

/// A line from a pipe.
fn piped() -> Result<Typed, Failure> {
    use std::io::{BufRead, Read};
    let mut line = Vec::new();
    let read = std::io::stdin().lock().take(LONGEST).read_until(b'\n', &mut line);
    match read.map_err(|e| Failure::no(format!("no line can be read: {e}")))? {
        0 => Ok(Typed::End),
        _ => Ok(Typed::Line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned())),
    }
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
