//! A task that names a file to be written is not done before that file is written; and one that renames files changes
//! nothing in them.

use super::{Finding, Guard, GuardError, RunState, Verdict};
use crate::action::ActionSet;
use crate::tool::{Call, Outcome, normal};
use caro_intent::to_be_made;
use caro_shell::asked::only_moves;
use std::path::{Path, PathBuf};

/// `goal`: takes `answer` out of the choice while a file that the task asks for is not written. A small model likes to
/// say that it has done what it has not. Where files are only moved, it refuses to change what is in them: the same model
/// takes `sed -i` for a way to rename.
#[derive(Debug)]
pub struct GoalGuard {
    files: Vec<PathBuf>,
    only_moves: bool,
}

impl GoalGuard {
    /// A guard for a task whose relative paths start at `root`.
    pub fn new(task: &str, root: &Path) -> Self {
        let files = to_be_made(task).into_iter().filter(|f| !f.starts_with('~'));
        let only_moves = only_moves(task, |word| normal(root, word).exists());
        Self { files: files.map(|file| normal(root, &file)).collect(), only_moves }
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

    fn check(&self, call: &Call, _: &RunState) -> Result<Verdict, GuardError> {
        if !(self.only_moves && call.effects.edits) {
            return Ok(Verdict::Allow);
        }
        let text = "The task moves or renames files; this would change the text in one. `mv OLD NEW` renames a file.";
        Ok(Verdict::Deny(Finding { id: "goal-text".into(), text: text.into() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Args, Effects};

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

    #[test]
    fn what_renames_a_file_leaves_its_text_alone() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("app1.log"), "x\n").unwrap();
        let call = |edits| Call {
            id: "s1c1".into(),
            tool: "shell".into(),
            args: Args::new(),
            effects: Effects { edits, ..Effects::default() },
        };
        for (task, denied) in [("rename app1.log to first.log", true), ("replace x by y in app1.log", false)] {
            let guard = GoalGuard::new(task, root.path());
            let verdict = guard.check(&call(true), &RunState::default()).unwrap();
            assert_eq!(matches!(verdict, Verdict::Deny(_)), denied, "{task}");
            assert_eq!(guard.check(&call(false), &RunState::default()).unwrap(), Verdict::Allow);
        }
    }
}
