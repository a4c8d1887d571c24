//! Stores the lines typed into conversations, for the arrow keys: in one file, without secrets. Also hands the
//! accepted command to the calling shell, for its history.

use crate::{Cx, Dirs, Failure, env};
use caro_base::files;
use caro_policy::Redactor;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Most lines stored.
const MAX_LINES: usize = 1000;

/// Most bytes read from the file.
const MAX_FILE: u64 = 16 << 20;

/// The history file.
#[derive(Debug, Clone)]
pub struct History {
    file: PathBuf,
}

impl History {
    /// The history of this user; `None` if there is no folder for it. Opens nothing.
    pub fn of(dirs: &Dirs) -> Option<Self> {
        Some(Self { file: dirs.state.as_ref()?.join("chat-history") })
    }

    /// Returns its lines, the oldest first.
    pub fn lines(&self) -> Vec<String> {
        let text = files::read_text(&self.file, MAX_FILE).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[lines.len().saturating_sub(MAX_LINES)..].to_vec()
    }

    /// Adds a line, with its secrets redacted. If it cannot be written, the line is dropped.
    pub fn add(&self, line: &str) {
        let mut lines = self.lines();
        lines.push(Redactor::default().text(line).replace(['\n', '\r'], " "));
        let _ = self.write(&lines);
    }

    /// Removes these lines; differences in spacing do not matter.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn forget<T: AsRef<str>>(&self, lines: &[T]) -> Result<(), Failure> {
        let redactor = Redactor::default();
        let words = |line: &str| redactor.text(line).split_whitespace().collect::<Vec<_>>().join(" ");
        let gone: HashSet<String> = lines.iter().map(|line| words(line.as_ref())).collect();
        let before = self.lines();
        let left: Vec<String> = before.iter().filter(|line| !gone.contains(&words(line))).cloned().collect();
        if left.len() == before.len() {
            return Ok(());
        }
        self.write(&left).map_err(|e| {
            let file = self.file.display();
            Failure::internal(format!("what was typed stays in {file}: {e}")).hint("delete that file yourself")
        })
    }

    fn write(&self, lines: &[String]) -> std::io::Result<()> {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        files::replace(&self.file, text.as_bytes(), files::Access::Private)
    }
}

/// Writes a command to the file that the calling shell has created for it. A missing file is not created: it would
/// never be removed.
pub fn hand_to_shell(command: &str, cx: &Cx) {
    let Some(file) = cx.env.get(env::TAKEN).map(Path::new) else { return };
    if file.is_absolute() && file.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() == 0) {
        // on failure the history only lacks a line
        let _ = std::fs::write(file, command);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_stored_without_secrets_and_removed_whatever_their_spacing() {
        let dir = tempfile::tempdir().unwrap();
        let history = History { file: dir.path().join("state/chat-history") };
        assert_eq!(history.lines(), [""; 0]);
        history.forget(&["nothing there"]).unwrap();
        let token = format!("ghp_{}", "a1".repeat(18));
        history.add(&format!("log in with {token}"));
        history.add("what is\nthe  time?");
        history.add("good bye");
        assert_eq!(history.lines(), ["log in with [redacted]", "what is the  time?", "good bye"]);
        // with its secret, and with other spacing
        history.forget(&[format!("log in with {token}"), "what is the time?".into()]).unwrap();
        assert_eq!(history.lines(), ["good bye"]);
    }

    #[test]
    fn the_oldest_lines_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let history = History { file: dir.path().join("chat-history") };
        history.write(&(0..MAX_LINES).map(|n| n.to_string()).collect::<Vec<_>>()).unwrap();
        for line in ["a", "b"] {
            history.add(line);
        }
        let kept = history.lines();
        assert_eq!((kept.len(), kept[0].as_str(), kept[MAX_LINES - 1].as_str()), (MAX_LINES, "2", "b"));
    }
}
