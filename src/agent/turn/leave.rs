//! Runs that write their result into a file of the workspace as their last part, as workers do. The output of commands
//! is written as it is, without the model; the model writes anything else.

use super::{AgentRun, BEGINS_WITH, NOT_SHOWN, PLACE};
use caro_intent::{Kind, composes, kind};
use std::path::Path;

/// The tool that writes a file of the user.
pub(super) const WRITE: &str = "write";
/// The tool that writes a file of the workspace.
const NOTE: &str = "workspace_write";

impl AgentRun {
    /// Adds a last part that writes the result to this file of the workspace. For a run at its beginning.
    #[must_use]
    pub fn with_output(mut self, path: &str) -> Self {
        self.task.plan.parts.push(format!("write what was found to {path}"));
        self.leaves = Some(path.to_owned());
        self
    }

    /// Returns the kind of the part with this number.
    pub(super) fn kind_of(&self, at: usize) -> Kind {
        let parts = &self.task.plan.parts;
        let Some(part) = parts.get(at) else { return Kind::Free };
        let output = if at + 1 == parts.len() { self.leaves.as_ref() } else { None };
        match output {
            None => match composes(part) {
                Some(file) if self.sources_are_shown() => Kind::Compose(file),
                _ => kind(part, at > 0),
            },
            Some(path) => {
                let looks = |at: usize| matches!(self.kind_of(at), Kind::Command | Kind::Tell);
                if (0..at).all(looks) { Kind::Save(path.clone()) } else { Kind::Compose(path.clone()) }
            }
        }
    }

    /// True if the prompt has the files that the task names, each as a whole.
    fn sources_are_shown(&self) -> bool {
        let shown = self.layers.iter().filter(|l| l.name == PLACE && !l.trusted && !l.text.is_empty());
        shown.clone().next().is_some()
            && shown.flat_map(|l| l.text.lines()).all(|line| !line.contains(BEGINS_WITH) && !line.ends_with(NOT_SHOWN))
    }

    /// Returns the tool that writes the file of the current part.
    pub(super) fn write_tool(&self) -> &'static str {
        if self.is_output_part() { NOTE } else { WRITE }
    }

    /// True if the current part is the last one, which writes the result.
    pub(super) fn is_output_part(&self) -> bool {
        self.leaves.is_some() && self.progress.part + 1 == self.task.plan.parts.len()
    }

    /// True if the result was already written, which the model may have done by itself.
    pub(super) fn has_written_output(&self) -> bool {
        let is_written = |path: &String| self.state.modified.iter().any(|file| Path::new(file).ends_with(path));
        self.is_output_part() && self.leaves.as_ref().is_some_and(is_written)
    }
}
