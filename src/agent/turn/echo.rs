//! Detects answers that only repeat an error message of a tool or a guard's warning to the model.

use super::AgentRun;
use crate::guard::WARNING;
use crate::tool::{Outcome, ToolResult};

/// Most error messages remembered.
const MAX_FAILURES: usize = 8;
/// Most characters kept of each.
const MAX_LENGTH: usize = 300;
/// Least characters of a message that counts: a shorter one may be part of any answer.
const MIN_LENGTH: usize = 16;
/// Least characters of an answer that repeats a part of a guard's warning.
const MIN_LENGTH_OF_WARNING: usize = 8;
/// Most characters that an answer may have beyond such a message and still be an echo.
const MAX_EXTRA: usize = 40;

/// The message to the model when it gives such an answer.
pub(super) const WHY: &str = "Not accepted: that is only what a tool said when it failed. Look in another way, or say in your own words what is not there.";

/// The reported gap if such an answer is final.
pub(super) const MISSING: &str = "The answer is only what a tool said when it failed.";

impl AgentRun {
    /// Remembers error messages, except the output of shell commands, which is about the task even if it is an error.
    pub(super) fn note_failures(&mut self, batch: &[ToolResult]) {
        let failed = batch.iter().filter(|one| match one.outcome {
            Outcome::Failed => one.call.tool != "shell",
            Outcome::Blocked => true,
            _ => false,
        });
        self.failures.extend(failed.map(|one| normalized(&one.text)));
        let excess = self.failures.len().saturating_sub(MAX_FAILURES);
        self.failures.drain(..excess);
    }

    /// True if the answer is an error message of a tool and hardly anything else.
    pub(super) fn is_echo(&self, answer: &str) -> bool {
        let answer = normalized(answer);
        let length = answer.chars().count();
        self.failures.iter().filter(|text| text.chars().count() >= MIN_LENGTH).any(|text| {
            // a part of a guard's warning is an echo, too
            let least = if text.starts_with(&normalized(WARNING)) { MIN_LENGTH_OF_WARNING } else { MIN_LENGTH };
            let is_part = length >= least && text.contains(&answer);
            is_part || answer.contains(text.as_str()) && length <= text.chars().count() + MAX_EXTRA
        })
    }
}

/// Returns the beginning of a text as one lower-case line.
fn normalized(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    line.trim_matches(['.', '"']).chars().take(MAX_LENGTH).collect()
}
