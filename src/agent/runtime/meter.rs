//! Meters the requests that a suggester makes to the model: checks the budget before each, emits an event, and counts
//! the cost.

use crate::event::{Draft, Emitter, Kind, Tokens};
use crate::guard::Guards;
use crate::state::{Cost, RunState};
use crate::turn::prompt_tokens;
use caro_model::metered::Meter;
use caro_model::{Model, ModelError, Prompt, Usage};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The meter of one suggestion.
pub(super) struct SuggestionMeter {
    pub(super) model: Arc<dyn Model>,
    pub(super) guards: Guards,
    pub(super) emitter: Arc<Emitter>,
    pub(super) span: String,
    /// The input of each request's event.
    pub(super) input: Value,
    /// The metadata of each request's event, besides its size.
    pub(super) metadata: Value,
    counts: Mutex<Counts>,
}

struct Counts {
    /// The run's state with the cost so far.
    state: RunState,
    cost: Cost,
    /// The tokens of the next prompt.
    tokens: usize,
}

impl SuggestionMeter {
    pub(super) fn new(
        (model, guards, emitter): (Arc<dyn Model>, Guards, Arc<Emitter>),
        state: &RunState,
        span: &str,
        (input, metadata): (Value, Value),
    ) -> Self {
        let counts = Mutex::new(Counts { state: state.clone(), cost: Cost::default(), tokens: 0 });
        Self { model, guards, emitter, span: span.to_owned(), input, metadata, counts }
    }

    /// Returns the cost so far.
    pub(super) fn cost(&self) -> Cost {
        self.counts().cost
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter for SuggestionMeter {
    fn admit(&self, prompt: &Prompt, room: usize) -> Result<usize, ModelError> {
        let tokens = prompt_tokens(prompt, &|text| self.model.count(text));
        let mut counts = self.counts();
        if self.guards.spent(&counts.state).is_some() {
            return Ok(0);
        }
        if tokens > room {
            return Err(ModelError::TooLong { tokens, limit: room });
        }
        counts.tokens = tokens;
        let limit = counts.state.limits.requests;
        let left = if limit == 0 { u64::MAX } else { limit.saturating_sub(counts.state.requests) };
        Ok(usize::try_from(left).unwrap_or(usize::MAX))
    }

    fn on_request(&self, prompt: &Prompt, room: usize) {
        let mut input = self.input.clone();
        // without the stable messages, which are the same in every request
        input["turns"] = json!(prompt.messages.get(prompt.stable_messages..).unwrap_or_default());
        let mut metadata = self.metadata.clone();
        (metadata["tokens"], metadata["limit"]) = (json!(self.counts().tokens), json!(room));
        self.emitter.emit(Draft::new(Kind::ModelCall).span(&self.span).input(input).metadata(metadata));
    }

    fn on_completed(&self, requests: u64, usage: Usage) {
        let (request, cached) = (usage.prompt_tokens as u64, usage.cached_tokens as u64);
        let added = Cost { requests, tokens: Tokens { request, cached, response: usage.completion_tokens as u64 } };
        let mut counts = self.counts();
        counts.state.charge(added);
        counts.cost += added;
    }
}
