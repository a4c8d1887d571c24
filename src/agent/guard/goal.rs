//! A task that names a file to be written is not done before that file is written.

use super::{Guard, RunState};
use crate::agent::action::ActionSet;
use crate::agent::tool::{Outcome, normal};
use regex::Regex;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// `goal`: takes `answer` out of the choice while a file that the task asks for is not written. A small model likes to
/// say that it has done what it has not.
#[derive(Debug)]
pub struct GoalGuard {
    files: Vec<PathBuf>,
}

/// Verbs that make a file, then `to`, `into`, `in`, `as`, `called`, `named` and a name with an extension.
static ASKED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)\b(?:write|save|put|store|export|create|make|output|generate|record)\b(?:[^.;?!\n]|\.\S){0,80}?\b(?:to|into|in|as|called|named|file)\s+["'`]?([\p{L}0-9_./~-]*[\p{L}0-9_-]\.[A-Za-z0-9]{1,5})\b"#,
    )
    .ok()
});

/// The files that a task asks to be written, as it names them.
pub fn asked_for(task: &str) -> Vec<String> {
    let Some(form) = &*ASKED else { return Vec::new() };
    let mut files: Vec<String> = Vec::new();
    for found in form.captures_iter(task).filter_map(|c| c.get(1)) {
        let name = found.as_str().to_owned();
        if !files.contains(&name) {
            files.push(name);
        }
    }
    files
}

impl GoalGuard {
    /// A guard for a task whose relative paths start at `root`.
    pub fn new(task: &str, root: &Path) -> Self {
        let files = asked_for(task).into_iter().filter(|f| !f.starts_with('~'));
        Self { files: files.map(|file| normal(root, &file)).collect() }
    }

    fn missing(&self, state: &RunState) -> bool {
        // a command whose effects nobody foresaw may have written it; who was not allowed to write cannot be asked to
        let denied = state.calls.iter().any(|call| call.outcome == Outcome::Denied);
        let written =
            |file: &PathBuf| state.modified.contains(&*file.to_string_lossy()) || state.unforeseen > 0 && file.exists();
        !denied && !self.files.iter().all(written)
    }
}

impl Guard for GoalGuard {
    fn name(&self) -> &'static str {
        "goal"
    }

    fn admit(&self, set: &mut ActionSet, state: &RunState) {
        if !set.tools.is_empty() && self.missing(state) {
            set.answer = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_to_be_written_are_recognised() {
        for (task, files) in [
            ("find the three largest log files, and write a summary to report.md", &["report.md"][..]),
            ("save the list of users in out/users.txt", &["out/users.txt"]),
            ("create a file named notes.md with today's date", &["notes.md"]),
            ("write a summary of main.rs to a.md and put the count into b.txt", &["a.md", "b.txt"]),
            ("read report.md and tell me what is in it", &[]),
            ("count the lines in main.rs", &[]),
            ("how many errors are in app.log?", &[]),
        ] {
            assert_eq!(asked_for(task), files, "{task}");
        }
    }

    #[test]
    fn the_answer_waits_for_the_file() {
        let guard = GoalGuard::new("write it to report.md", Path::new("/w"));
        let all = ActionSet { tools: vec!["write".into()], answer: true, cannot: true, batch: 1, path: None };
        let mut state = RunState::default();
        let ends = |state: &RunState| {
            let mut set = all.clone();
            guard.admit(&mut set, state);
            set.answer
        };
        assert!(!ends(&state));
        state.modified.insert("/w/report.md".into());
        assert!(ends(&state));
    }
}
