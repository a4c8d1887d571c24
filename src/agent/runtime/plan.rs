//! Has a model make the plan of a run, where the person wants it.

use super::{Runtime, UNKNOWN, generate, tokens_of};
use crate::agent::assemble::{Fixed, Query};
use crate::agent::blueprint::{Blueprint, Part};
use crate::agent::event::{Actor, Draft, Kind, Tokens};
use crate::agent::plan::model::{Ask, TOKENS};
use crate::agent::state::Cost;
use crate::agent::turn::{Step, Turn, prompt_tokens};
use crate::model::{Completion, Finish, Flow, Request, Sampling};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// What the events of this request belong to.
const SPAN: &str = "plan";

impl Runtime {
    /// The turn with its plan made and nothing else done; still without one if that was stopped. Needs a Tokio runtime.
    pub async fn planned(&self, mut turn: Turn) -> Turn {
        if let Step::Plan(ask) = turn.next() {
            self.plan(&mut turn, *ask).await;
        }
        turn
    }

    /// What the model would be asked for a plan; nothing where none is to be made. Asks no model.
    pub fn preview_plan(&self, turn: &Turn) -> Option<Ask> {
        let Step::Plan(ask) = turn.next() else { return None };
        Some(self.informed(turn, *ask))
    }

    /// The question with what a planner knows beside the task: the role, how it is gone about, and with which tools.
    fn informed(&self, turn: &Turn, ask: Ask) -> Ask {
        let limit = self.model.limits().context.saturating_sub(TOKENS);
        let room = limit.saturating_sub(prompt_tokens(&ask.prompt, &self.count()));
        let task = turn.task();
        let query = Query { task: task.text.clone(), session: task.session.clone() };
        // who it is it was told, and what the task is about is for who does it
        let mut providers = self.parts(&[Blueprint::Planner]);
        providers.retain(|one| one.name() != "persona" && Part::of(one.name()).is_some());
        let names: Vec<String> = self.shown(&task.text).into_iter().map(|tool| tool.name).collect();
        let text = format!("The agent's tools: {}.", names.join(", "));
        providers.push(Arc::new(Fixed { name: "tools", priority: 20, text }));
        ask.with(&self.layers(&providers, &query, room / 2).layers)
    }

    /// Asks the model for the plan. One that cannot be had costs nothing but the attempt: the words of the task make one,
    /// too.
    pub(super) async fn plan(&self, turn: &mut Turn, ask: Ask) {
        let Ask { prompt, shape } = self.informed(turn, ask);
        let tokens = prompt_tokens(&prompt, &self.count());
        let limit = self.model.limits().context.saturating_sub(TOKENS);
        if tokens > limit {
            let why = format!("the task is too long for a plan: {tokens} tokens, and {limit} are the most");
            self.emitter.emit(Draft::new(Kind::ModelError).span(SPAN).error(why));
            turn.planned(None, &self.guards);
            return self.tell_plan(turn);
        }
        self.emitter.emit(
            Draft::new(Kind::ModelCall)
                .span(SPAN)
                .input(json!(prompt.turns))
                .metadata(json!({"recipe": "plan", "tokens": tokens, "limit": limit, "model": self.model.id()})),
        );
        let cancel = self.cancel.clone();
        let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: TOKENS, cancel };
        let begun = Instant::now();
        match generate(self.model.clone(), request, |_| Flow::Continue).await {
            // stopped: it is asked for again on resume
            Ok(Completion { finish: Finish::Cancelled, usage, .. }) => {
                let (request, cached, response) = tokens_of(&usage);
                return turn.charge(Cost { requests: 1, tokens: Tokens { request, cached, response } });
            }
            Err(_) if self.cancel.is_cancelled() => return turn.charge(UNKNOWN),
            Ok(completion) => {
                let (request, cached, response) = tokens_of(&completion.usage);
                self.emitter.emit(
                    Draft::new(Kind::ModelResponse)
                        .by(Actor::Model)
                        .span(SPAN)
                        .output(completion.text.clone())
                        .took(begun.elapsed())
                        .tokens(Tokens { request, cached, response })
                        .metadata(json!({"recipe": "plan"})),
                );
                let reply = (completion.text.as_str(), completion.finish, (request, cached, response));
                turn.planned(Some(reply), &self.guards);
            }
            Err(error) => {
                self.emitter
                    .emit(Draft::new(Kind::ModelError).span(SPAN).error(error.to_string()).took(begun.elapsed()));
                turn.charge(UNKNOWN);
                turn.planned(None, &self.guards);
            }
        }
        self.tell_plan(turn);
        self.notice(turn);
    }

    /// Says which plan the run has.
    pub(super) fn tell_plan(&self, turn: &Turn) {
        let plan = &turn.task().plan;
        let about = json!({"steps": plan.steps, "parts": plan.parts, "source": plan.source});
        self.emitter.emit(Draft::new(Kind::PlanningStep).metadata(about));
    }
}
