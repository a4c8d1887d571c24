//! Requests and calls for loops that are not runs of an agent, with the same request to the model, guards, consent,
//! sandbox, pipeline and events.

use super::Runtime;
use super::request::{Purpose, RequestOutcome};
use crate::state::Cost;
use crate::tool::{Call, ToolResult};
use crate::turn::{AgentRun, is_repetitive};
use caro_model::Request;

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Consulted {
    /// The model's answer.
    Said(String),
    /// The loop was stopped meanwhile.
    Stopped,
    /// The reason why there is no answer.
    Failed(String),
}

impl Runtime {
    /// Asks the model once and charges `turn`. `span` and `recipe` go into the events.
    pub(crate) async fn consult(&self, turn: &mut AgentRun, span: &str, recipe: &str, request: Request) -> Consulted {
        let purpose = Purpose { span, recipe: Some(recipe), stop_when: is_repetitive };
        match self.request(turn, purpose, request).await {
            RequestOutcome::Said(completion, tokens) => {
                turn.charge(Cost { requests: 1, tokens });
                Consulted::Said(completion.text)
            }
            RequestOutcome::Stopped => Consulted::Stopped,
            RequestOutcome::Failed(why) | RequestOutcome::Unreachable(why) => Consulted::Failed(why),
        }
    }

    /// Executes one call; `None` if it was stopped at a question about it.
    pub(crate) async fn perform(&self, turn: &mut AgentRun, call: Call) -> Option<ToolResult> {
        let (results, _) = self.act(turn, vec![call], false).await?;
        results.into_iter().next()
    }
}
