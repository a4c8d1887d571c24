//! Has a model make the plan of a run, where the person wants it.

use super::Runtime;
use super::request::{Asked, Purpose};
use crate::assemble::{Fixed, Query};
use crate::blueprint::{Blueprint, Part};
use crate::event::{Draft, Kind};
use crate::plan::model::{Ask, TOKENS};
use crate::tool::ToolSpec;
use crate::turn::{AgentRun, Step, prompt_tokens};
use caro_model::{Request, Sampling};
use serde_json::json;
use std::sync::Arc;

/// What the events of this request belong to.
const SPAN: &str = "plan";

/// The tools for who plans, a line each. Who calls them has the list of the grammar ([`crate::action::describe`]), with arguments
/// and an example; a second one beside it would only be longer.
fn available(tools: &[ToolSpec]) -> String {
    let line = |tool: &ToolSpec| {
        let words: Vec<&str> = tool.description.split_whitespace().collect();
        format!("- {}: {}", tool.shown(), words.join(" "))
    };
    let lines: Vec<String> = tools.iter().map(line).collect();
    format!("<available_tools>\n{}\n</available_tools>", lines.join("\n"))
}

impl Runtime {
    /// The turn with its plan made and nothing else done; still without one if that was stopped. Needs a Tokio runtime.
    pub async fn planned(&self, mut turn: AgentRun) -> AgentRun {
        if let Step::Plan(ask) = turn.next() {
            self.plan(&mut turn, *ask).await;
        }
        turn
    }

    /// What the model would be asked for a plan; nothing where none is to be made. Asks no model.
    pub fn preview_plan(&self, turn: &AgentRun) -> Option<Ask> {
        let Step::Plan(ask) = turn.next() else { return None };
        Some(self.informed(turn, *ask))
    }

    /// The question with what a planner knows beside the task: the role, how it is gone about, and with which tools.
    fn informed(&self, turn: &AgentRun, ask: Ask) -> Ask {
        let limit = self.model.limits().context.saturating_sub(TOKENS);
        let room = limit.saturating_sub(prompt_tokens(&ask.prompt, &self.count()));
        let task = turn.task();
        let query = Query { task: task.text.clone(), session: task.session.clone() };
        // who it is it was told, and what the task is about is for who does it
        let mut providers = self.parts(&[Blueprint::Planner]);
        providers.retain(|one| one.name() != "persona" && Part::of(one.name()).is_some());
        let text = available(&self.shown(&task.text));
        providers.push(Arc::new(Fixed { name: "tools", priority: 20, text }));
        ask.with(&self.layers(&providers, &query, room / 2).layers)
    }

    /// Asks the model for the plan. One that cannot be had costs nothing but the attempt: the words of the task make one,
    /// too.
    pub(super) async fn plan(&self, turn: &mut AgentRun, ask: Ask) {
        let Ask { prompt, shape } = self.informed(turn, ask);
        let cancel = self.cancel.clone();
        let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: TOKENS, cancel };
        let purpose = Purpose { span: SPAN, recipe: Some("plan"), lost: |_| false };
        match self.request(turn, purpose, request).await {
            Asked::Stopped => return,
            Asked::Failed(_) => turn.planned(None, &self.guards),
            Asked::Said(completion, tokens) => {
                turn.planned(Some((&completion.text, completion.finish, tokens)), &self.guards);
            }
        }
        self.tell_plan(turn);
        self.notice(turn);
    }

    /// Says which plan the run has.
    pub(super) fn tell_plan(&self, turn: &AgentRun) {
        let plan = &turn.task().plan;
        let about = json!({"steps": plan.steps, "parts": plan.parts, "source": plan.source});
        self.emitter.emit(Draft::new(Kind::PlanningStep).metadata(about));
    }
}
