//! Makes one request to the model for a run, with its events and its cost.

use super::parts::Runtime;
use crate::event::{Actor, Draft, Kind, Tokens};
use crate::state::Cost;
use crate::turn::{AgentRun, prompt_tokens};
use caro_inference::generate_until;
use caro_model::{Completion, Finish, ModelError, Request, Usage};
use serde_json::{Value, json};
use std::time::Instant;

/// The cost of a failed request: it counts, but its tokens are unknown.
const FAILED_COST: Cost = Cost { requests: 1, tokens: Tokens { request: 0, cached: 0, response: 0 } };

/// The purpose of a request.
pub(super) struct Purpose<'a> {
    /// The span of its events.
    pub(super) span: &'a str,
    /// The name of the recipe; `None` for a decision of the run.
    pub(super) recipe: Option<&'a str>,
    /// True for a text that has become useless, such as endless repetition: generation stops, and the text counts as
    /// cut off.
    pub(super) stop_when: fn(&str) -> bool,
}

/// The outcome of a request.
pub(super) enum RequestOutcome {
    /// The model's answer. The caller charges its cost.
    Said(Box<Completion>, Tokens),
    /// The run was stopped meanwhile. The cost is charged; the request is repeated on resume.
    Stopped,
    /// The reason why there is no answer. The cost of the attempt is charged.
    Failed(String),
    /// The reason why the server of the model gave no answer. The cost is charged; the request is repeated on resume.
    Unreachable(String),
}

impl Purpose<'_> {
    /// Returns the metadata of an event: `more`, with the recipe if there is one.
    fn event_metadata(&self, mut more: Value) -> Value {
        if let Some(recipe) = self.recipe {
            more["recipe"] = recipe.into();
        }
        more
    }
}

impl Runtime {
    /// Asks the model. A prompt of a recipe that does not fit is not sent.
    pub(super) async fn request(&self, turn: &mut AgentRun, purpose: Purpose<'_>, request: Request) -> RequestOutcome {
        let span = purpose.span;
        let tokens = prompt_tokens(&request.prompt, &self.count());
        let limit = self.model.limits().context.saturating_sub(request.max_tokens);
        // decisions are always sent: their prompt was made to fit as far as possible
        if let Some(recipe) = purpose.recipe
            && tokens > limit
        {
            let why = format!("there is too much for a {recipe}: {tokens} tokens, and {limit} are the most");
            self.emitter.emit(Draft::new(Kind::ModelError).span(span).error(why.clone()));
            return RequestOutcome::Failed(why);
        }
        let metadata = purpose.event_metadata(json!({"tokens": tokens, "limit": limit, "model": self.model.id()}));
        let input = json!(request.prompt.messages);
        self.emitter.emit(Draft::new(Kind::ModelCall).span(span).input(input).metadata(metadata));
        let started = Instant::now();
        match generate_until(self.model.clone(), request, purpose.stop_when, |_| {}).await {
            Ok(Completion { finish: Finish::Cancelled, usage, .. }) => {
                turn.charge(Cost { requests: 1, tokens: tokens_of(&usage) });
                RequestOutcome::Stopped
            }
            Ok(completion) => {
                let tokens = tokens_of(&completion.usage);
                let mut event = Draft::new(Kind::ModelResponse)
                    .by(Actor::Model)
                    .span(span)
                    .output(completion.text.clone())
                    .took(started.elapsed())
                    .tokens(tokens);
                if purpose.recipe.is_some() {
                    event = event.metadata(purpose.event_metadata(json!({})));
                }
                self.emitter.emit(event);
                RequestOutcome::Said(Box::new(completion), tokens)
            }
            // a decision is checked against the admitted actions, whatever wrote it
            Err(ModelError::WrongShape { answer, .. }) if purpose.recipe.is_none() => {
                let tokens = tokens_of(&answer.usage);
                let event = Draft::new(Kind::ModelResponse).by(Actor::Model).span(span).output(answer.text.clone());
                self.emitter.emit(event.took(started.elapsed()).tokens(tokens));
                RequestOutcome::Said(answer, tokens)
            }
            Err(error) => {
                turn.charge(FAILED_COST);
                if self.cancel.is_cancelled() {
                    return RequestOutcome::Stopped;
                }
                let why = error.to_string();
                self.emitter.emit(Draft::new(Kind::ModelError).span(span).error(why.clone()).took(started.elapsed()));
                match error {
                    ModelError::Remote { .. } => RequestOutcome::Unreachable(why),
                    _ => RequestOutcome::Failed(why),
                }
            }
        }
    }
}

fn tokens_of(usage: &Usage) -> Tokens {
    Tokens {
        request: usage.prompt_tokens as u64,
        cached: usage.cached_tokens as u64,
        response: usage.completion_tokens as u64,
    }
}
