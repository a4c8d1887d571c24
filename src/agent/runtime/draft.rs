//! Has a model write a text: one that a skill has rules for, or an answer out of texts that there are.

use super::Runtime;
use super::request::{Asked, Purpose};
use crate::event::{Draft, Kind};
use crate::turn::{AgentRun, Reply, Text, goes_round};
use caro_model::{Prompt, Request, Sampling, Shape};
use serde_json::json;

impl Runtime {
    /// Asks for a text. For a file that is there already none is written unseen: the model decides about it.
    pub(super) async fn draft(&self, turn: &mut AgentRun, text: Text) {
        let Text { file, prompt, sampling } = text;
        if self.config.root.join(file).exists() {
            return turn.drafted(None, &self.guards);
        }
        match self.text(turn, "draft", prompt, sampling).await {
            Asked::Stopped => {}
            Asked::Failed(_) => turn.drafted(None, &self.guards),
            Asked::Said(completion, tokens) => {
                turn.drafted(Some((&completion.text, completion.finish, tokens)), &self.guards);
            }
        }
    }

    /// Asks for an answer.
    pub(super) async fn reply(&self, turn: &mut AgentRun, Reply { prompt, sampling }: Reply) {
        match self.text(turn, "reply", prompt, sampling).await {
            Asked::Stopped => {}
            Asked::Failed(_) => turn.replied(None, &self.guards),
            Asked::Said(completion, tokens) => {
                turn.replied(Some((&completion.text, completion.finish, tokens)), &self.guards);
            }
        }
    }

    async fn text(&self, turn: &mut AgentRun, recipe: &'static str, prompt: Prompt, sampling: Sampling) -> Asked {
        let span = format!("s{}", turn.step());
        let about = json!({"recipe": recipe, "step": turn.step(), "max_steps": turn.task().max_steps});
        self.emitter.emit(Draft::new(Kind::AgentStep).span(&span).metadata(about));
        let (shape, max_tokens) = (Shape::Text { stop: Vec::new() }, self.config.decision_tokens);
        let request = Request { prompt, shape, sampling, max_tokens, cancel: self.cancel.clone() };
        self.request(turn, Purpose { span: &span, recipe: Some(recipe), lost: goes_round }, request).await
    }
}
