//! A run that leaves what it comes to in a file of the workspace, as its last part: what a helper is there for. What commands
//! showed is left as it is, without a model; about anything else the model writes.

use super::{AgentRun, BEGINS_WITH, NOT_SHOWN, PLACE};
use caro_intent::{Kind, composes, kind};
use std::path::Path;

/// The tool that writes a file of the person's.
pub(super) const WRITE: &str = "write";
/// The tool that writes one of the workspace.
const NOTE: &str = "workspace_write";

impl AgentRun {
    /// Has the run leave what it comes to in this file of the workspace. For a run at its beginning.
    #[must_use]
    pub fn leaving(mut self, path: &str) -> Self {
        self.task.plan.parts.push(format!("write what was found to {path}"));
        self.leaves = Some(path.to_owned());
        self
    }

    /// The kind of a part by its number.
    pub(super) fn kind_of(&self, at: usize) -> Kind {
        let parts = &self.task.plan.parts;
        let Some(part) = parts.get(at) else { return Kind::Free };
        match self.leaves.as_ref().filter(|_| at + 1 == parts.len()) {
            None => match composes(part).filter(|_| self.sources_are_shown()) {
                Some(file) => Kind::Compose(file),
                None => kind(part, at > 0),
            },
            Some(path) => {
                let looks = |at: usize| matches!(self.kind_of(at), Kind::Command | Kind::Tell);
                if (0..at).all(looks) { Kind::Save(path.clone()) } else { Kind::Compose(path.clone()) }
            }
        }
    }

    /// True if the files that the task names stand in the prompt, each as a whole.
    fn sources_are_shown(&self) -> bool {
        let shown = self.layers.iter().filter(|l| l.name == PLACE && !l.trusted && !l.text.is_empty());
        shown.clone().next().is_some()
            && shown.flat_map(|l| l.text.lines()).all(|line| !line.contains(BEGINS_WITH) && !line.ends_with(NOT_SHOWN))
    }

    /// The tool that writes what the part under way is to write.
    pub(super) fn writer(&self) -> &'static str {
        if self.is_leaving() { NOTE } else { WRITE }
    }

    /// True if what is left to do is to leave what was found.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaves.is_some() && self.progress.part + 1 == self.task.plan.parts.len()
    }

    /// True if that is done already: a model may have done it of its own accord.
    pub(super) fn has_left(&self) -> bool {
        let left = |path: &String| self.state.modified.iter().any(|file| Path::new(file).ends_with(path));
        self.is_leaving() && self.leaves.as_ref().is_some_and(left)
    }
}
