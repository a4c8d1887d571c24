//! Requests the plan of a run from the model, if the user wants that.

use super::Runtime;
use super::request::{Purpose, RequestOutcome};
use crate::assemble::{Fixed, Query};
use crate::blueprint::{Blueprint, Part};
use crate::event::{Draft, Kind};
use crate::plan::model::{MAX_TOKENS, PlanRequest};
use crate::tool::ToolSpec;
use crate::turn::{AgentRun, Step, prompt_tokens};
use caro_model::{Request, Sampling};
use serde_json::json;
use std::sync::Arc;

/// The span of the request's events.
const SPAN: &str = "plan";

/// Lists the tools for the planner, one per line. The model that calls them sees the longer list with arguments and
/// examples ([`crate::action::describe`]).
fn tool_list(tools: &[ToolSpec]) -> String {
    let line = |tool: &ToolSpec| {
        let words: Vec<&str> = tool.description.split_whitespace().collect();
        format!("- {}: {}", tool.shown(), words.join(" "))
    };
    let lines: Vec<String> = tools.iter().map(line).collect();
    format!("<available_tools>\n{}\n</available_tools>", lines.join("\n"))
}

impl Runtime {
    /// Makes only the plan of a turn and returns the turn; without a plan if that was stopped. Needs a Tokio runtime.
    pub async fn planned(&self, mut turn: AgentRun) -> AgentRun {
        if let Step::Plan(plan_request) = turn.next() {
            self.plan(&mut turn, *plan_request).await;
        }
        turn
    }

    /// Returns the request for a plan; `None` if none is to be made. Makes no request to the model.
    pub fn preview_plan(&self, turn: &AgentRun) -> Option<PlanRequest> {
        let Step::Plan(plan_request) = turn.next() else { return None };
        Some(self.with_layers(turn, *plan_request))
    }

    /// Adds the layers of the planner's prompt to the request, and the list of tools.
    fn with_layers(&self, turn: &AgentRun, plan_request: PlanRequest) -> PlanRequest {
        let limit = self.model.limits().context.saturating_sub(MAX_TOKENS);
        let room = limit.saturating_sub(prompt_tokens(&plan_request.prompt, &self.count()));
        let task = turn.task();
        let query = Query { task: task.text.clone(), session: task.session.clone() };
        // the planner has a persona of its own, and layers about the subject are for the run itself
        let mut providers = self.parts(&[Blueprint::Planner]);
        providers.retain(|one| one.name() != "persona" && Part::of(one.name()).is_some());
        let text = tool_list(&self.selected_tools(&task.text));
        providers.push(Arc::new(Fixed { name: "tools", priority: 20, text }));
        plan_request.with(&self.layers(&providers, &query, room / 2).layers)
    }

    /// Asks the model for the plan. On failure the plan made from the words of the task is kept.
    pub(super) async fn plan(&self, turn: &mut AgentRun, plan_request: PlanRequest) {
        let PlanRequest { prompt, shape } = self.with_layers(turn, plan_request);
        let cancel = self.cancel.clone();
        let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: MAX_TOKENS, cancel };
        let purpose = Purpose { span: SPAN, recipe: Some("plan"), stop_when: |_| false };
        match self.request(turn, purpose, request).await {
            RequestOutcome::Stopped => return,
            RequestOutcome::Unreachable(why) => return turn.interrupt(why),
            RequestOutcome::Failed(_) => turn.planned(None, &self.guards),
            RequestOutcome::Said(completion, tokens) => {
                turn.planned(Some((&completion.text, completion.finish, tokens)), &self.guards);
            }
        }
        self.emit_plan(turn);
        self.report_findings(turn);
    }

    /// Emits the event with the plan of the run.
    pub(super) fn emit_plan(&self, turn: &AgentRun) {
        let plan = &turn.task().plan;
        let about = json!({"steps": plan.steps, "parts": plan.parts, "source": plan.source});
        self.emitter.emit(Draft::new(Kind::PlanningStep).metadata(about));
    }
}
