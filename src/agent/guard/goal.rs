//! Keeps a run from ending before the files that its task asks for are written, and a task that renames files from
//! changing their content.

use super::{Finding, Guard, GuardError, RunState, Verdict};
use crate::action::ActionSet;
use crate::tool::{Call, Outcome, normal};
use caro_intent::promised_files;
use caro_shell::asked::only_moves;
use std::path::{Path, PathBuf};

/// `goal`: removes the action `answer` while a file that the task asks for is not written, as small models often
/// claim to be done when they are not. If the task only moves files, it refuses calls that change their content, as
/// such models try to rename with `sed -i`.
#[derive(Debug)]
pub struct GoalGuard {
    files: Vec<PathBuf>,
    only_moves: bool,
}

impl GoalGuard {
    /// Creates a guard for a task whose relative paths start at `root`.
    pub fn new(task: &str, root: &Path) -> Self {
        let files = promised_files(task).into_iter().filter(|f| !f.starts_with('~'));
        let only_moves = only_moves(task, |word| normal(root, word).exists());
        Self { files: files.map(|file| normal(root, &file)).collect(), only_moves }
    }

    fn is_missing_file(&self, state: &RunState) -> bool {
        // a command with unforeseen effects may have written the file; after a denied call the run may not be able to
        // write it
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
        if !set.tools.is_empty() && self.is_missing_file(state) {
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
    fn a_task_that_renames_may_not_edit() {
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
