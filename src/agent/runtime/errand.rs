//! Requests to the model for context providers, before they supply their layers, and for summaries of steps that are
//! dropped from a prompt.

use super::Runtime;
use super::request::{Purpose, RequestOutcome};
use crate::assemble::{ProviderRequest, Query};
use crate::event::{Draft, Kind};
use crate::state::Cost;
use crate::turn::{AgentRun, Strategy};
use caro_model::{Finish, Request, Sampling};
use serde_json::json;

impl Runtime {
    /// Makes the requests of all providers, one after the other. Returns false if the run was stopped meanwhile; they
    /// are repeated on resume.
    pub(super) async fn prepare(&self, turn: &mut AgentRun, query: &Query) -> bool {
        for provider in &self.providers {
            let written = match provider.request(query, self.budget()) {
                Some(provider_request) if self.can_afford(turn) => self.make_request(turn, provider_request).await,
                _ => None,
            };
            if self.cancel.is_cancelled() {
                return false;
            }
            if let Some(record) = provider.accept(written.as_deref()) {
                self.emitter.emit(record);
            }
        }
        true
    }

    /// Makes the prompt of the next decision fit, replacing dropped steps by a summary if the model is to write one.
    /// Returns false if the run was stopped meanwhile.
    pub(super) async fn fit_prompt(&self, turn: &mut AgentRun) -> bool {
        let (room, window, mut fitting) = (self.room(), self.model.limits().context, self.config.fitting);
        if let Some(dropped) = turn.steps_to_drop(room, window, &fitting, &self.count()) {
            let written =
                if self.can_afford(turn) { self.make_request(turn, dropped.request.clone()).await } else { None };
            if self.cancel.is_cancelled() {
                return false;
            }
            match written {
                Some(text) => turn.add_summary(&dropped, &text),
                None => fitting.strategy = Strategy::Truncate,
            }
        }
        if let Some(compression) = turn.fit(room, &fitting, &self.count()) {
            let span = format!("s{}", turn.step());
            self.emitter.emit(Draft::new(Kind::ContextCompression).span(span).metadata(json!(compression)));
        }
        true
    }

    /// True if the run may make this request and still one for its answer.
    fn can_afford(&self, turn: &AgentRun) -> bool {
        let state = turn.state();
        let limit = state.limits.requests;
        self.guards.spent(state).is_none() && (limit == 0 || state.requests + 2 <= limit)
    }

    /// Makes one request; `None` if it failed, was cut off in its first line, is empty, or does not fit.
    async fn make_request(&self, turn: &mut AgentRun, provider_request: ProviderRequest) -> Option<String> {
        let ProviderRequest { name, prompt, shape, max_tokens } = provider_request;
        let cancel = self.cancel.clone();
        let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens, cancel };
        let purpose = Purpose { span: name, recipe: Some(name), stop_when: |_| false };
        let RequestOutcome::Said(completion, tokens) = self.request(turn, purpose, request).await else { return None };
        turn.charge(Cost { requests: 1, tokens });
        // of a text that was cut off, the incomplete last line is dropped
        let whole = match completion.finish {
            Finish::Length => completion.text.rsplit_once('\n').map_or("", |(lines, _)| lines),
            _ => &completion.text,
        };
        Some(whole.trim().to_owned()).filter(|text| !text.is_empty())
    }
}
