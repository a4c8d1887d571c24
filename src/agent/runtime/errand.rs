//! Has a model write what providers of context want of it before they bring their layers, and sum up what falls out of a
//! prompt.

use super::Runtime;
use super::request::{Asked, Purpose};
use crate::assemble::{ProviderRequest, Query};
use crate::event::{Draft, Kind};
use crate::state::Cost;
use crate::turn::{AgentRun, Strategy};
use caro_model::{Finish, Request, Sampling};
use serde_json::json;

impl Runtime {
    /// Does the errands of all providers, one after the other. False if the run was stopped meanwhile: they are done again
    /// on resume.
    pub(super) async fn prepare(&self, turn: &mut AgentRun, query: &Query) -> bool {
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

    /// Has the prompt of the next decision fit; with a summary of the steps that it loses, where a model is to make one.
    /// False if the run was stopped meanwhile.
    pub(super) async fn shorten(&self, turn: &mut AgentRun) -> bool {
        let (room, window, mut how) = (self.room(), self.model.limits().context, self.config.fitting);
        if let Some(falling) = turn.falls_out(room, window, &how, &self.count()) {
            let written = if self.affords(turn) { self.write(turn, falling.errand.clone()).await } else { None };
            if self.cancel.is_cancelled() {
                return false;
            }
            match written {
                Some(text) => turn.sum_up(&falling, &text),
                None => how.strategy = Strategy::Truncate,
            }
        }
        if let Some(compression) = turn.fit(room, &how, &self.count()) {
            let span = format!("s{}", turn.step());
            self.emitter.emit(Draft::new(Kind::ContextCompression).span(span).metadata(json!(compression)));
        }
        true
    }

    /// True if the run may ask for more than its answer alone: an errand must not cost that.
    fn affords(&self, turn: &AgentRun) -> bool {
        let state = turn.state();
        let limit = state.limits.requests;
        self.guards.spent(state).is_none() && (limit == 0 || state.requests + 2 <= limit)
    }

    /// One request; nothing if it failed, was cut off in its first line, or does not fit.
    async fn write(&self, turn: &mut AgentRun, errand: ProviderRequest) -> Option<String> {
        let ProviderRequest { name, prompt, shape, max_tokens } = errand;
        let cancel = self.cancel.clone();
        let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens, cancel };
        let purpose = Purpose { span: name, recipe: Some(name), lost: |_| false };
        let Asked::Said(completion, tokens) = self.request(turn, purpose, request).await else { return None };
        turn.charge(Cost { requests: 1, tokens });
        // the last line of one that was cut off says half of what it was to say
        let whole = match completion.finish {
            Finish::Length => completion.text.rsplit_once('\n').map_or("", |(lines, _)| lines),
            _ => &completion.text,
        };
        Some(whole.trim().to_owned()).filter(|text| !text.is_empty())
    }
}
