//! Ends a run whose means are spent.

use super::{Guard, RunState};

/// Why a run is ended from outside.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Halt {
    /// `consecutive_errors`, `request_limit`, `total_tokens_limit`.
    pub reason: String,
    /// What the person is told.
    pub text: String,
}

/// `budget`: errors in a row, requests and tokens. The number of steps is the turn's own business.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// So many steps in a row that only failed end the run.
    pub errors: u32,
    /// Requests to the model; 0 for any number.
    pub requests: u64,
    /// Tokens, prompts and completions; 0 for any number.
    pub tokens: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { errors: 3, requests: 0, tokens: 0 }
    }
}

impl Budget {
    /// Why the model may not be asked again; looked at before every request.
    pub fn spent(&self, state: &RunState) -> Option<Halt> {
        let halt = |reason: &str, text: String| Some(Halt { reason: reason.into(), text });
        if self.requests > 0 && state.requests >= self.requests {
            return halt(
                "request_limit",
                format!("Usage limit error: {} request(s) to the model were allowed, and all are used.", self.requests),
            );
        }
        if self.tokens > 0 && state.tokens >= self.tokens {
            return halt(
                "total_tokens_limit",
                format!("Usage limit error: {} of {} allowed tokens are used.", state.tokens, self.tokens),
            );
        }
        None
    }
}

impl Guard for Budget {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn settle(&self, state: &mut RunState) -> Option<Halt> {
        if state.errors_in_a_row >= self.errors {
            let n = state.errors_in_a_row;
            return Some(Halt {
                reason: "consecutive_errors".into(),
                text: format!("{n} steps in a row failed, so the run was ended."),
            });
        }
        self.spent(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_ends_the_run_and_zero_is_none() {
        let budget = Budget { errors: 3, requests: 2, tokens: 100 };
        let reason = |state: RunState| budget.clone().settle(&mut state.clone()).map(|h| h.reason);
        assert_eq!(reason(RunState { requests: 1, tokens: 99, errors_in_a_row: 2, ..RunState::default() }), None);
        assert_eq!(reason(RunState { requests: 2, ..RunState::default() }).unwrap(), "request_limit");
        assert_eq!(reason(RunState { tokens: 100, ..RunState::default() }).unwrap(), "total_tokens_limit");
        assert_eq!(reason(RunState { errors_in_a_row: 3, ..RunState::default() }).unwrap(), "consecutive_errors");
        let none = Budget::default();
        assert_eq!(none.spent(&RunState { requests: 1 << 40, tokens: 1 << 40, ..RunState::default() }), None);
    }
}
