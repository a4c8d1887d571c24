//! The lines that were typed into conversations, for the arrow keys: one file, a line each, without secrets. And the command that was run or
//! taken, for the history of the shell that asks for it.

use crate::{Cx, Dirs, Failure, env};
use caro_base::files;
use caro_policy::Redactor;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Lines that are kept.
const MOST: usize = 1000;

/// The most bytes that are read of them.
const LARGEST: u64 = 16 << 20;

/// The file of lines.
#[derive(Debug, Clone)]
pub struct History {
    file: PathBuf,
}

impl History {
    /// The history of this person; nothing where there is no place for it. Opens nothing.
    pub fn of(dirs: &Dirs) -> Option<Self> {
        Some(Self { file: dirs.state.as_ref()?.join("chat-history") })
    }

    /// Its lines, the oldest first.
    pub fn kept(&self) -> Vec<String> {
        let text = files::read_text(&self.file, LARGEST).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[lines.len().saturating_sub(MOST)..].to_vec()
    }

    /// Adds a line, its secrets taken out. Not to be able to costs the line, nothing else.
    pub fn keep(&self, line: &str) {
        let mut lines = self.kept();
        lines.push(Redactor::default().text(line).replace(['\n', '\r'], " "));
        let _ = self.write(&lines);
    }

    /// Takes out lines that say the same as these, however they are spaced.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget<T: AsRef<str>>(&self, lines: &[T]) -> Result<(), Failure> {
        let redactor = Redactor::default();
        let words = |line: &str| redactor.text(line).split_whitespace().collect::<Vec<_>>().join(" ");
        let gone: HashSet<String> = lines.iter().map(|line| words(line.as_ref())).collect();
        let kept = self.kept();
        let left: Vec<String> = kept.iter().filter(|line| !gone.contains(&words(line))).cloned().collect();
        if left.len() == kept.len() {
            return Ok(());
        }
        self.write(&left).map_err(|e| {
            let file = self.file.display();
            Failure::internal(format!("what was typed stays in {file}: {e}")).hint("delete that file yourself")
        })
    }

    fn write(&self, lines: &[String]) -> std::io::Result<()> {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        // what one says is nobody else's business
        files::replace(&self.file, text.as_bytes(), files::Access::Private)
    }
}

/// Hands a command to the shell that has asked for it, in the file that it has made for that. One that is gone is not made anew:
/// nobody would remove it.
pub fn hand_to_shell(command: &str, cx: &Cx) {
    let Some(file) = cx.env.get(env::TAKEN).map(Path::new) else { return };
    if file.is_absolute() && file.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
        // without it the history lacks a line
        let _ = std::fs::write(file, command);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_without_secrets_and_forgotten_by_what_they_say() {
        let dir = tempfile::tempdir().unwrap();
        let history = History { file: dir.path().join("state/chat-history") };
        assert_eq!(history.kept(), [""; 0]);
        history.forget(&["nothing there"]).unwrap();
        let token = format!("ghp_{}", "a1".repeat(18));
        history.keep(&format!("log in with {token}"));
        history.keep("what is\nthe  time?");
        history.keep("good bye");
        assert_eq!(history.kept(), ["log in with [redacted]", "what is the  time?", "good bye"]);
        // with its secret, and as a run has it
        history.forget(&[format!("log in with {token}"), "what is the time?".into()]).unwrap();
        assert_eq!(history.kept(), ["good bye"]);
    }

    #[test]
    fn the_oldest_lines_go() {
        let dir = tempfile::tempdir().unwrap();
        let history = History { file: dir.path().join("chat-history") };
        history.write(&(0..MOST).map(|n| n.to_string()).collect::<Vec<_>>()).unwrap();
        for line in ["a", "b"] {
            history.keep(line);
        }
        let kept = history.kept();
        assert_eq!((kept.len(), kept[0].as_str(), kept[MOST - 1].as_str()), (MOST, "2", "b"));
    }
}
