//! An answer that is no answer: what a tool of ours said of its own failure, or a guard to the model, in the model's mouth.

use super::AgentRun;
use crate::guard::WARNING;
use crate::tool::{Outcome, ToolResult};

/// Texts that are remembered.
const MOST: usize = 8;
/// Characters of each.
const LONGEST: usize = 300;
/// Shorter ones may stand in any answer.
const SHORTEST: usize = 16;
const SHORTEST_OF_A_GUARD: usize = 8;
/// Characters that an answer may have beside such a text and still be nothing but that.
const MORE: usize = 40;

/// What a doubted answer is told.
pub(super) const WHY: &str = "Not accepted: that is only what a tool said when it failed. Look in another way, or say in your own words what is not there.";

/// What is missing where it is all there is.
pub(super) const MISSING: &str = "The answer is only what a tool said when it failed.";

impl AgentRun {
    /// Takes note of what failed. What a command of the shell prints is the task's own, also where it is an error.
    pub(super) fn note_failures(&mut self, batch: &[ToolResult]) {
        let said = batch.iter().filter(|one| match one.outcome {
            Outcome::Failed => one.call.tool != "shell",
            Outcome::Blocked => true,
            _ => false,
        });
        self.failures.extend(said.map(|one| squeezed(&one.text)));
        let over = self.failures.len().saturating_sub(MOST);
        self.failures.drain(..over);
    }

    /// True for an answer that says what a tool said of its failure, and hardly anything else.
    pub(super) fn is_echo(&self, answer: &str) -> bool {
        let answer = squeezed(answer);
        let length = answer.chars().count();
        self.failures.iter().filter(|text| text.chars().count() >= SHORTEST).any(|text| {
            // of a guard's word to the model each part is one
            let least = if text.starts_with(&squeezed(WARNING)) { SHORTEST_OF_A_GUARD } else { SHORTEST };
            let is_part = length >= least && text.contains(&answer);
            is_part || answer.contains(text.as_str()) && length <= text.chars().count() + MORE
        })
    }
}

/// The beginning of a text in one line of lower case.
fn squeezed(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    line.trim_matches(['.', '"']).chars().take(LONGEST).collect()
}
