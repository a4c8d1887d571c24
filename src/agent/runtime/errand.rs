//! Has a model write what providers of context want of it before they bring their layers.

use super::{Runtime, UNKNOWN, generate, tokens_of};
use crate::agent::assemble::{Errand, Query};
use crate::agent::event::{Actor, Draft, Kind, Tokens};
use crate::agent::state::Cost;
use crate::agent::turn::{Turn, prompt_tokens};
use crate::model::{Completion, Finish, Flow, Request, Sampling};
use serde_json::json;
use std::time::Instant;

impl Runtime {
    /// Does the errands of all providers, one after the other. False if the run was stopped meanwhile: they are done again
    /// on resume.
    pub(super) async fn prepare(&self, turn: &mut Turn, query: &Query) -> bool {
        for provider in &self.providers {
            let written = match provider.errand(query, self.budget()) {
                Some(errand) if self.affords(turn) => self.write(turn, errand).await,
                _ => None,
            };
            if self.cancel.is_cancelled() {
                return false;
            }
            if let Some(record) = provider.settle(written.as_deref()) {
                self.emitter.emit(record);
            }
        }
        true
    }

    /// True if the run may ask for more than its answer alone: an errand must not cost that.
    fn affords(&self, turn: &Turn) -> bool {
        let state = turn.state();
        let limit = state.limits.requests;
        self.guards.spent(state).is_none() && (limit == 0 || state.requests + 2 <= limit)
    }

    /// One request; nothing if it failed, was cut off in its first line, or does not fit.
    async fn write(&self, turn: &mut Turn, errand: Errand) -> Option<String> {
        let Errand { name, prompt, shape, max_tokens } = errand;
        let tokens = prompt_tokens(&prompt, &self.count());
        let limit = self.model.limits().context.saturating_sub(max_tokens);
        if tokens > limit {
            let why = format!("there is too much for a {name}: {tokens} tokens, and {limit} are the most");
            self.emitter.emit(Draft::new(Kind::ModelError).span(name).error(why));
            return None;
        }
        self.emitter.emit(
            Draft::new(Kind::ModelCall)
                .span(name)
                .input(json!(prompt.turns))
                .metadata(json!({"recipe": name, "tokens": tokens, "limit": limit, "model": self.model.id()})),
        );
        let cancel = self.cancel.clone();
        let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens, cancel };
        let begun = Instant::now();
        match generate(self.model.clone(), request, |_| Flow::Continue).await {
            Ok(Completion { text, finish, usage, .. }) => {
                let (request, cached, response) = tokens_of(&usage);
                let tokens = Tokens { request, cached, response };
                turn.charge(Cost { requests: 1, tokens });
                if finish == Finish::Cancelled {
                    return None;
                }
                self.emitter.emit(
                    Draft::new(Kind::ModelResponse)
                        .by(Actor::Model)
                        .span(name)
                        .output(text.clone())
                        .took(begun.elapsed())
                        .tokens(tokens)
                        .metadata(json!({"recipe": name})),
                );
                // the last line of one that was cut off says half of what it was to say
                let whole = match finish {
                    Finish::Length => text.rsplit_once('\n').map_or("", |(lines, _)| lines),
                    _ => &text,
                };
                Some(whole.trim().to_owned()).filter(|text| !text.is_empty())
            }
            Err(error) => {
                turn.charge(UNKNOWN);
                self.emitter
                    .emit(Draft::new(Kind::ModelError).span(name).error(error.to_string()).took(begun.elapsed()));
                None
            }
        }
    }
}
