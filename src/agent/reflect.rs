//! Sums up a finished run without a model: outcome, confidence, next action.

use super::state::RunState;
use super::tool::Outcome;
use serde::{Deserialize, Serialize};

/// Most characters of an objective.
pub const OBJECTIVE: usize = 160;

/// The way in which a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The model chose to answer.
    Answered,
    /// There is an answer, but the results of the calls do not confirm it; holds what is missing.
    Unverified(Vec<String>),
    /// The model says that the task cannot be done.
    Cannot,
    /// No step was left, and the model had to answer.
    MaxSteps,
    /// The run repeated itself, and the model had to answer.
    Stuck,
    /// A guard ended it, with this reason ([`Halt::reason`](super::guard::Halt::reason)).
    Halted(String),
    /// The model failed with this error.
    Failed(String),
}

impl End {
    /// Returns `completed`, `incomplete` or `failed`.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Answered => "completed",
            Self::MaxSteps | Self::Stuck | Self::Unverified(_) => "incomplete",
            Self::Cannot | Self::Halted(_) | Self::Failed(_) => "failed",
        }
    }

    /// Returns the reason: `answered`, `unverified`, `max_steps`, `consecutive_errors` and others.
    pub fn reason(&self) -> &str {
        match self {
            Self::Answered => "answered",
            Self::Unverified(_) => "unverified",
            Self::Cannot => "cannot",
            Self::MaxSteps => "max_steps",
            Self::Stuck => "stuck",
            Self::Halted(reason) => reason,
            Self::Failed(_) => "model_error",
        }
    }
}

/// The summary of a finished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reflection {
    /// The task, at most [`OBJECTIVE`] characters.
    pub objective: String,
    /// The answer, at most 220 characters.
    pub result: String,
    /// `success`, `partial` or `failure`.
    pub outcome: String,
    /// The confidence in the result, 0 to 1.
    pub confidence: f64,
    /// Advice to the user.
    pub next_action: String,
}

/// Sums up a finished run.
pub fn reflect(task: &str, response: &str, end: &End, state: &RunState) -> Reflection {
    let cut = |text: &str, limit: usize| text.chars().take(limit).collect::<String>();
    let errors = state.calls.iter().filter(|c| c.outcome.is_error()).count();
    let refused = state.calls.iter().filter(|c| matches!(c.outcome, Outcome::Blocked | Outcome::Denied)).count();
    let (outcome, base, next_action) = match end {
        End::Answered if errors == 0 => ("success", 0.82, "none"),
        End::Answered => ("success", 0.82, "check the steps that failed"),
        End::Unverified(_) => ("partial", 0.28, "look at what is missing, and ask for that"),
        End::MaxSteps => ("partial", 0.28, "run it again with more steps (--max-steps), or split the task"),
        End::Stuck => ("partial", 0.28, "say it differently, or name the files and commands to use"),
        End::Cannot => ("failure", 0.28, "read the reason, and give what is missing"),
        End::Halted(why) if why == "context_limit" => ("failure", 0.28, "take a model with a larger window (--model)"),
        End::Halted(_) => ("failure", 0.28, "begin again with a higher limit, or split the task"),
        End::Failed(_) => ("failure", 0.28, "`caro events --json` shows what the model was told"),
    };
    let penalty = 0.08 * errors as f64 + 0.04 * refused as f64;
    Reflection {
        objective: cut(task, OBJECTIVE),
        result: cut(response, 220),
        outcome: outcome.into(),
        confidence: ((base - penalty).max(0.05) * 100.0).round() / 100.0,
        next_action: next_action.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Record;

    #[test]
    fn errors_cost_confidence() {
        let record = |outcome| Record { signature: "x".into(), output: "y".into(), changes: 0, outcome, folded: false };
        let mut state = RunState::default();
        let clean = reflect(&"t".repeat(500), &"r".repeat(500), &End::Answered, &state);
        assert_eq!((clean.outcome.as_str(), clean.confidence), ("success", 0.82));
        assert_eq!((clean.objective.len(), clean.result.len()), (160, 220));
        state.calls = vec![record(Outcome::Failed), record(Outcome::Blocked)];
        assert_eq!(reflect("t", "r", &End::Answered, &state).confidence, 0.7);
        assert_eq!(reflect("t", "r", &End::Cannot, &RunState::default()).confidence, 0.28);
        state.calls = vec![record(Outcome::TimedOut); 40];
        assert_eq!(reflect("t", "r", &End::MaxSteps, &state).confidence, 0.05);
    }
}
