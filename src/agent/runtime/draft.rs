//! Requests a text from the model: a file that a skill has rules for, or an answer from texts already read.

use super::Runtime;
use super::request::{Purpose, RequestOutcome};
use crate::event::{Draft, Kind};
use crate::turn::{AgentRun, Reply, Text, is_repetitive};
use caro_model::{Prompt, Request, Sampling, Shape};
use serde_json::json;

impl Runtime {
    /// Requests the text of a file. If the file already exists, none is written: the model decides instead.
    pub(super) async fn draft(&self, turn: &mut AgentRun, text: Text) {
        let Text { file, prompt, sampling } = text;
        if self.config.root.join(file).exists() {
            return turn.drafted(None, &self.guards);
        }
        match self.request_text(turn, "draft", prompt, sampling).await {
            RequestOutcome::Stopped => {}
            RequestOutcome::Unreachable(why) => turn.interrupt(why),
            RequestOutcome::Failed(_) => turn.drafted(None, &self.guards),
            RequestOutcome::Said(completion, tokens) => {
                turn.drafted(Some((&completion.text, completion.finish, tokens)), &self.guards);
            }
        }
    }

    /// Requests an answer.
    pub(super) async fn reply(&self, turn: &mut AgentRun, Reply { prompt, sampling }: Reply) {
        match self.request_text(turn, "reply", prompt, sampling).await {
            RequestOutcome::Stopped => {}
            RequestOutcome::Unreachable(why) => turn.interrupt(why),
            RequestOutcome::Failed(_) => turn.replied(None, &self.guards),
            RequestOutcome::Said(completion, tokens) => {
                turn.replied(Some((&completion.text, completion.finish, tokens)), &self.guards);
            }
        }
    }

    async fn request_text(
        &self,
        turn: &mut AgentRun,
        recipe: &'static str,
        prompt: Prompt,
        sampling: Sampling,
    ) -> RequestOutcome {
        let span = format!("s{}", turn.step());
        let about = json!({"recipe": recipe, "step": turn.step(), "max_steps": turn.task().max_steps});
        self.emitter.emit(Draft::new(Kind::AgentStep).span(&span).metadata(about));
        let (shape, max_tokens) = (Shape::Text { stop: Vec::new() }, self.config.decision_tokens);
        let request = Request { prompt, shape, sampling, max_tokens, cancel: self.cancel.clone() };
        self.request(turn, Purpose { span: &span, recipe: Some(recipe), stop_when: is_repetitive }, request).await
    }
}
