//! One request to the model for a run: told in events, and what it cost known whatever comes of it.

use super::parts::Runtime;
use crate::event::{Actor, Draft, Kind, Tokens};
use crate::state::Cost;
use crate::turn::{AgentRun, prompt_tokens};
use caro_inference::generate_until;
use caro_model::{Completion, Finish, Request, Usage};
use serde_json::{Value, json};
use std::time::Instant;

/// The cost of a request that failed: it was made all the same, and its tokens are not known.
const UNKNOWN: Cost = Cost { requests: 1, tokens: Tokens { request: 0, cached: 0, response: 0 } };

/// What a request is for.
pub(super) struct Purpose<'a> {
    /// What its events belong to.
    pub(super) span: &'a str,
    /// What it is, where it is no decision of the run's own.
    pub(super) recipe: Option<&'a str>,
    /// True of a text that nothing will come of any more: it is ended there, and was cut off.
    pub(super) lost: fn(&str) -> bool,
}

/// What came of a request.
pub(super) enum Asked {
    /// The model's words. What they cost is the caller's to charge.
    Said(Box<Completion>, Tokens),
    /// The run was stopped meanwhile. What was written is lost, though not what it cost, and it is made again on resume.
    Stopped,
    /// Why there are no words; what the attempt cost is charged.
    Failed(String),
}

impl Purpose<'_> {
    /// What an event says of it, and what else.
    fn about(&self, mut more: Value) -> Value {
        if let Some(recipe) = self.recipe {
            more["recipe"] = recipe.into();
        }
        more
    }
}

impl Runtime {
    /// Asks the model. A prompt that no room is left for is not sent.
    pub(super) async fn request(&self, turn: &mut AgentRun, purpose: Purpose<'_>, request: Request) -> Asked {
        let span = purpose.span;
        let tokens = prompt_tokens(&request.prompt, &self.count());
        let limit = self.model.limits().context.saturating_sub(request.max_tokens);
        // a decision was made to fit, as far as it could be: what the model says to it is said
        if let Some(recipe) = purpose.recipe.filter(|_| tokens > limit) {
            let why = format!("there is too much for a {recipe}: {tokens} tokens, and {limit} are the most");
            self.emitter.emit(Draft::new(Kind::ModelError).span(span).error(why.clone()));
            return Asked::Failed(why);
        }
        let about = purpose.about(json!({"tokens": tokens, "limit": limit, "model": self.model.id()}));
        self.emitter.emit(Draft::new(Kind::ModelCall).span(span).input(json!(request.prompt.messages)).metadata(about));
        let begun = Instant::now();
        match generate_until(self.model.clone(), request, purpose.lost, |_| {}).await {
            Ok(Completion { finish: Finish::Cancelled, usage, .. }) => {
                turn.charge(Cost { requests: 1, tokens: tokens_of(&usage) });
                Asked::Stopped
            }
            Ok(completion) => {
                let tokens = tokens_of(&completion.usage);
                let mut event = Draft::new(Kind::ModelResponse)
                    .by(Actor::Model)
                    .span(span)
                    .output(completion.text.clone())
                    .took(begun.elapsed())
                    .tokens(tokens);
                if purpose.recipe.is_some() {
                    event = event.metadata(purpose.about(json!({})));
                }
                self.emitter.emit(event);
                Asked::Said(Box::new(completion), tokens)
            }
            Err(error) => {
                turn.charge(UNKNOWN);
                if self.cancel.is_cancelled() {
                    return Asked::Stopped;
                }
                let why = error.to_string();
                self.emitter.emit(Draft::new(Kind::ModelError).span(span).error(why.clone()).took(begun.elapsed()));
                Asked::Failed(why)
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
