//! Requests and calls outside of an agent's own steps, by a loop that is no run of it: the same request to the model, the
//! same guards, consent, sandbox, pipeline and events.

use super::Runtime;
use super::request::{Asked, Purpose};
use crate::state::Cost;
use crate::tool::{Call, ToolResult};
use crate::turn::{AgentRun, goes_round};
use caro_model::Request;

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Consulted {
    /// The model's words.
    Said(String),
    /// It was stopped meanwhile.
    Stopped,
    /// Why there are no words.
    Failed(String),
}

impl Runtime {
    /// Asks the model once. `turn` is charged; `span` is what the events belong to, and `recipe` what it is.
    pub(crate) async fn consult(&self, turn: &mut AgentRun, span: &str, recipe: &str, request: Request) -> Consulted {
        let purpose = Purpose { span, recipe: Some(recipe), lost: goes_round };
        match self.request(turn, purpose, request).await {
            Asked::Said(completion, tokens) => {
                turn.charge(Cost { requests: 1, tokens });
                Consulted::Said(completion.text)
            }
            Asked::Stopped => Consulted::Stopped,
            Asked::Failed(why) => Consulted::Failed(why),
        }
    }

    /// Makes one call; nothing if it was stopped at a question about it.
    pub(crate) async fn perform(&self, turn: &mut AgentRun, call: Call) -> Option<ToolResult> {
        let (settled, _) = self.act(turn, vec![call], false).await?;
        settled.into_iter().next()
    }
}
