//! Ends a run that has used up its budget.

use super::{Guard, RunState};

/// The start of the message to the user when a limit ends a run.
pub const LIMIT_PREFIX: &str = "Usage limit error: ";

/// The reason why a guard ends a run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Halt {
    /// The reason: `consecutive_errors`, `request_limit` or `total_tokens_limit`.
    pub reason: String,
    /// The message to the user.
    pub text: String,
}

/// `budget`: limits errors in a row, and enforces the run's [`Limits`](crate::state::Limits). The turn limits the
/// number of steps.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The number of failed steps in a row that ends the run.
    pub errors: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { errors: 3 }
    }
}

impl Guard for Budget {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn spent(&self, state: &RunState) -> Option<Halt> {
        let halt = |reason: &str, text: String| Some(Halt { reason: reason.into(), text });
        let limits = state.limits;
        if limits.requests > 0 && state.requests >= limits.requests {
            return halt(
                "request_limit",
                format!("{LIMIT_PREFIX}{} request(s) to the model were allowed, and all are used.", limits.requests),
            );
        }
        if limits.tokens > 0 && state.tokens >= limits.tokens {
            return halt(
                "total_tokens_limit",
                format!("{LIMIT_PREFIX}{} of {} allowed tokens are used.", state.tokens, limits.tokens),
            );
        }
        None
    }

    fn settle(&self, state: &mut RunState) -> Option<Halt> {
        let n = state.errors_in_a_row;
        (n >= self.errors).then(|| Halt {
            reason: "consecutive_errors".into(),
            text: format!("{n} steps in a row failed, so the run was ended."),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Limits;

    #[test]
    fn each_limit_ends_the_run_and_zero_is_no_limit() {
        let budget = Budget { errors: 3 };
        let limits = Limits { requests: 2, tokens: 100 };
        let spent = |state: RunState| budget.spent(&state).map(|h| h.reason);
        assert_eq!(spent(RunState { requests: 1, tokens: 99, limits, ..RunState::default() }), None);
        assert_eq!(spent(RunState { requests: 2, limits, ..RunState::default() }).unwrap(), "request_limit");
        assert_eq!(spent(RunState { tokens: 100, limits, ..RunState::default() }).unwrap(), "total_tokens_limit");
        assert_eq!(spent(RunState { requests: 1 << 40, tokens: 1 << 40, ..RunState::default() }), None);
        let settled = |errors_in_a_row| budget.settle(&mut RunState { errors_in_a_row, ..RunState::default() });
        assert_eq!(settled(2), None);
        assert_eq!(settled(3).unwrap().reason, "consecutive_errors");
    }
}
