//! Keeps a worker from answering before it has written its output.

use crate::action::ActionSet;
use crate::guard::Guard;
use crate::state::RunState;
use std::path::PathBuf;

/// The guard `output`: withholds `answer` while the worker's file is not written. If no tool is left, the worker may
/// answer all the same, and has failed.
pub(super) struct OutputGuard(pub(super) PathBuf);

impl Guard for OutputGuard {
    fn name(&self) -> &'static str {
        "output"
    }

    fn admit(&self, set: &mut ActionSet, state: &RunState) {
        if !set.tools.is_empty() && !state.modified.contains(&*self.0.to_string_lossy()) {
            set.answer = false;
        }
    }
}
