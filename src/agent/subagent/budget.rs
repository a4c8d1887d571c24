//! The budget shared by a run and its workers. Workers reserve each request beforehand, so that concurrent workers
//! cannot exceed the limit. Tokens are only known afterwards, so the last request of each worker may exceed the limit.

use crate::event::Tokens;
use crate::guard::{Guard, GuardError, Halt, LIMIT_PREFIX, Verdict};
use crate::runtime::UsageLedger;
use crate::state::{Cost, Limits, RunState};
use crate::tool::Call;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The shared budget.
#[derive(Default)]
pub(super) struct SharedBudget(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    limits: Limits,
    /// The usage of the lead, including the workers' usage that it was charged for.
    lead: Spent,
    /// The usage of each running worker, including the request it is about to make.
    workers: BTreeMap<String, Spent>,
    /// The usage of ended workers that the lead has not been charged for yet.
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

    /// Reserves a request for a worker; returns the reason if a limit is reached.
    fn reserve(&self, worker: &str, state: &RunState) -> Option<Halt> {
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
        let halt_with = |reason: &str, what: String| {
            let text = format!("{LIMIT_PREFIX}{what} were allowed to the run and its workers, and are used.");
            Some(Halt { reason: reason.into(), text })
        };
        if most > 0 && requests >= most {
            return halt_with("request_limit", format!("{most} request(s) to the model"));
        }
        if most_tokens > 0 && tokens >= most_tokens {
            return halt_with("total_tokens_limit", format!("{most_tokens} tokens"));
        }
        inner.workers.insert(worker.to_owned(), Spent { requests: state.requests + 1, tokens: state.tokens });
        None
    }

    /// Accounts for a worker that ended, and returns its cost: `cost`, or its last known usage if that is unknown.
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

/// The lead's guard: updates the shared budget before each call. Other guards enforce the lead's own limits.
pub(super) struct LeadGuard(pub(super) Arc<SharedBudget>);

impl Guard for LeadGuard {
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

/// A worker's guard: reserves each request in the shared budget.
pub(super) struct WorkerGuard {
    pub(super) budget: Arc<SharedBudget>,
    pub(super) run: String,
}

impl Guard for WorkerGuard {
    fn name(&self) -> &'static str {
        "purse"
    }

    fn spent(&self, state: &RunState) -> Option<Halt> {
        self.budget.reserve(&self.run, state)
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
    fn concurrent_workers_cannot_exceed_the_request_limit() {
        let budget = budget(Limits { requests: 4, tokens: 0 }, 2);
        assert!(budget.reserve("a", &state(0)).is_none());
        let again = budget.reserve("a", &state(0));
        assert!(again.is_none(), "asked again before the request was made, it is the same one");
        assert!(budget.reserve("b", &state(0)).is_none());
        assert_eq!(budget.reserve("c", &state(0)).unwrap().reason, "request_limit");
        assert_eq!(budget.reserve("a", &state(1)).unwrap().reason, "request_limit");
        // usage is counted whether it is the worker's, owed, or charged to the lead
        assert_eq!(budget.close("a", None).requests, 1);
        assert!(budget.reserve("c", &state(0)).is_some());
        assert_eq!(budget.take().requests, 1);
        assert!(budget.reserve("c", &state(0)).is_some());
        assert_eq!(budget.take(), Cost::default(), "nothing is charged twice");
    }

    #[test]
    fn tokens_count_once_they_are_spent_and_zero_is_no_limit() {
        let tokens = |n| budget(Limits { requests: 0, tokens: n }, 2).reserve("a", &state(1)).map(|halt| halt.reason);
        assert_eq!((tokens(30).as_deref(), tokens(31), tokens(0)), (Some("total_tokens_limit"), None, None));
    }
}
