//! What a run and its workers may spend together. Workers ask before each request, and set one aside for it: of several that
//! ask at once, no more go through than requests are left. Tokens are known once they are spent, so the last request of
//! each worker may go beyond.

use crate::event::Tokens;
use crate::guard::{Guard, GuardError, Halt, LIMIT, Verdict};
use crate::runtime::UsageLedger;
use crate::state::{Cost, Limits, RunState};
use crate::tool::Call;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The purse.
#[derive(Default)]
pub(super) struct SharedBudget(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    limits: Limits,
    /// What the lead has spent by its own account, with all that was charged to it.
    lead: Spent,
    /// What each worker under way has, with the request it is about to make.
    workers: BTreeMap<String, Spent>,
    /// What workers that ended have, and the lead has not been charged yet.
    owed: Cost,
}

#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    requests: u64,
    tokens: u64,
}

impl SharedBudget {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a worker may not ask the model again; else one request is set aside for it.
    fn ask(&self, worker: &str, state: &RunState) -> Option<Halt> {
        let mut inner = self.inner();
        let others = inner.workers.iter().filter(|(name, _)| *name != worker).map(|(_, spent)| *spent);
        let (mut requests, mut tokens) = (state.requests, state.tokens);
        for spent in others.chain([inner.lead]) {
            requests += spent.requests;
            tokens += spent.tokens;
        }
        requests += inner.owed.requests;
        tokens += inner.owed.tokens.request + inner.owed.tokens.response;
        let Limits { requests: most, tokens: most_tokens } = inner.limits;
        let halt = |reason: &str, what: String| {
            let text = format!("{LIMIT}{what} were allowed to the run and its workers, and are used.");
            Some(Halt { reason: reason.into(), text })
        };
        if most > 0 && requests >= most {
            return halt("request_limit", format!("{most} request(s) to the model"));
        }
        if most_tokens > 0 && tokens >= most_tokens {
            return halt("total_tokens_limit", format!("{most_tokens} tokens"));
        }
        inner.workers.insert(worker.to_owned(), Spent { requests: state.requests + 1, tokens: state.tokens });
        None
    }

    /// A worker has ended, and cost this; where nobody knows, what it had when it last asked.
    pub(super) fn close(&self, worker: &str, cost: Option<Cost>) -> Cost {
        let mut inner = self.inner();
        let last = inner.workers.remove(worker).unwrap_or_default();
        let known = Tokens { request: last.tokens, ..Tokens::default() };
        let cost = cost.unwrap_or(Cost { requests: last.requests, tokens: known });
        inner.owed += cost;
        cost
    }
}

impl UsageLedger for SharedBudget {
    fn take(&self) -> Cost {
        let mut inner = self.inner();
        let owed = std::mem::take(&mut inner.owed);
        inner.lead.requests += owed.requests;
        inner.lead.tokens += owed.tokens.request + owed.tokens.response;
        owed
    }
}

/// Of the lead: tells the purse how it stands before each call. Its own limits are its own guards' business.
pub(super) struct Lead(pub(super) Arc<SharedBudget>);

impl Guard for Lead {
    fn name(&self) -> &'static str {
        "purse"
    }

    fn check(&self, _: &Call, state: &RunState) -> Result<Verdict, GuardError> {
        let mut inner = self.0.inner();
        inner.limits = state.limits;
        inner.lead = Spent { requests: state.requests, tokens: state.tokens };
        Ok(Verdict::Allow)
    }
}

/// Of a worker: asks the purse before each request.
pub(super) struct Shares {
    pub(super) budget: Arc<SharedBudget>,
    pub(super) run: String,
}

impl Guard for Shares {
    fn name(&self) -> &'static str {
        "purse"
    }

    fn spent(&self, state: &RunState) -> Option<Halt> {
        self.budget.ask(&self.run, state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limits: Limits, lead: u64) -> SharedBudget {
        let budget = SharedBudget::default();
        let inner = Inner { limits, lead: Spent { requests: lead, tokens: lead * 10 }, ..Inner::default() };
        *budget.inner() = inner;
        budget
    }

    fn state(requests: u64) -> RunState {
        RunState { requests, tokens: requests * 10, ..RunState::default() }
    }

    #[test]
    fn of_those_that_ask_at_once_no_more_go_through_than_are_left() {
        let budget = budget(Limits { requests: 4, tokens: 0 }, 2);
        assert!(budget.ask("a", &state(0)).is_none());
        assert!(budget.ask("a", &state(0)).is_none(), "asked again before the request was made, it is the same one");
        assert!(budget.ask("b", &state(0)).is_none());
        assert_eq!(budget.ask("c", &state(0)).unwrap().reason, "request_limit");
        assert_eq!(budget.ask("a", &state(1)).unwrap().reason, "request_limit");
        // what was spent stays spent, whoever has it: the worker, the bill, the lead
        assert_eq!(budget.close("a", None).requests, 1);
        assert!(budget.ask("c", &state(0)).is_some());
        assert_eq!(budget.take().requests, 1);
        assert!(budget.ask("c", &state(0)).is_some());
        assert_eq!(budget.take(), Cost::default(), "nothing is charged twice");
    }

    #[test]
    fn tokens_count_once_they_are_spent_and_zero_is_no_limit() {
        let tokens = |n| budget(Limits { requests: 0, tokens: n }, 2).ask("a", &state(1)).map(|halt| halt.reason);
        assert_eq!((tokens(30).as_deref(), tokens(31), tokens(0)), (Some("total_tokens_limit"), None, None));
    }
}
