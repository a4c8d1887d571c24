//! A worker is not done before it has left its output.

use crate::action::ActionSet;
use crate::guard::Guard;
use crate::state::RunState;
use std::path::PathBuf;

/// `output`: takes `answer` out of the choice while the worker's file is not written. Where no step is left for it, it may
/// answer all the same, and has failed.
pub(super) struct Leaves(pub(super) PathBuf);

impl Guard for Leaves {
    fn name(&self) -> &'static str {
        "output"
    }

    fn admit(&self, set: &mut ActionSet, state: &RunState) {
        if !set.tools.is_empty() && !state.modified.contains(&*self.0.to_string_lossy()) {
            set.answer = false;
        }
    }
}
