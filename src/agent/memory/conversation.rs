//! Records the question and answer of a run in its conversation when the run ends, however it ends. It acts on the end
//! event, so that the exchange is stored before a waiting run of the same session starts.

use super::{ConversationKey, Memory};
use crate::chat::{Exchange, Fold, Keeps};
use crate::event::{Event, Kind, Sink};
use crate::turn::own_words;
use std::sync::Arc;

/// The conversation that a run belongs to.
pub struct Conversation {
    /// The memory that stores it.
    pub memory: Arc<Memory>,
    /// The session.
    pub session: String,
    /// The agent's name.
    pub agent: String,
    /// The question, without secrets.
    pub asked: String,
    /// The storage of the runs: exchanges that leave the conversation are marked or deleted there too.
    pub runs: Arc<dyn Keeps>,
}

impl Conversation {
    fn key(&self) -> ConversationKey<'_> {
        ConversationKey { session: &self.session, agent: &self.agent }
    }
}

/// The states of a run that is over. A stopped one is recorded when it is resumed and ends.
const ENDED: [&str; 3] = ["completed", "incomplete", "failed"];

impl Sink for Conversation {
    /// Stores the exchange. A failure is ignored: it must not cost the answer.
    fn take(&self, event: &Event) {
        let text = |value: &serde_json::Value, name: &str| {
            value.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
        };
        let status = text(&event.metadata, "status");
        if event.event_type != Kind::AgentEnd || !ENDED.contains(&status.as_str()) {
            return;
        }
        // only the model's own text: it would imitate a limit or an error that the harness reports in place of an answer
        let answered = match text(&event.output, "termination_reason").as_str() {
            reason if status != "failed" || reason == "cannot" => {
                own_words(&text(&event.output, "response")).to_owned()
            }
            _ => String::new(),
        };
        let exchange = Exchange { run: event.trace_id.clone(), asked: self.asked.clone(), answered };
        let _ = self.memory.add_exchange(self.key(), &exchange);
    }
}

impl Keeps for Conversation {
    fn fold(&self, session: &str, fold: Fold<'_>) -> Result<(), String> {
        // the runs first: if the memory were changed first and this failed, the runs would stay for good
        self.runs.fold(session, fold)?;
        let key = ConversationKey { session, agent: &self.agent };
        self.memory.fold(key, fold).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Originals;
    use crate::event::{Draft, Emitter};
    use caro_policy::Redactor;
    use serde_json::json;
    use std::sync::Mutex;

    /// A storage of runs that fails the first time.
    #[derive(Default)]
    struct FailsOnce(Mutex<Vec<Vec<String>>>);

    impl Keeps for FailsOnce {
        fn fold(&self, _: &str, fold: Fold<'_>) -> Result<(), String> {
            let mut asked = self.0.lock().unwrap();
            asked.push(fold.runs.to_vec());
            if asked.len() == 1 { Err("held".into()) } else { Ok(()) }
        }
    }

    /// Returns what is stored of a run that ended with this status, reason and response.
    fn stored(status: &str, reason: &str, response: &str) -> Vec<(String, String)> {
        let memory = Arc::new(Memory::in_memory());
        let (session, agent, asked) = ("s".to_owned(), "chat".to_owned(), "how many?".to_owned());
        let runs = Arc::<FailsOnce>::default();
        let conversation = Arc::new(Conversation { memory: memory.clone(), session, agent, asked, runs });
        let emitter = Emitter::new("run_1", 1, Redactor::default(), vec![conversation.clone()]);
        let end = Draft::new(Kind::AgentEnd).output(json!({ "response": response, "termination_reason": reason }));
        emitter.emit(end.metadata(json!({ "status": status })));
        let past = memory.past(conversation.key(), 9).unwrap();
        past.exchanges.into_iter().map(|exchange| (exchange.asked, exchange.answered)).collect()
    }

    #[test]
    fn every_end_of_a_run_is_stored_without_words_of_the_harness() {
        let marked = "[SYSTEM_CONTEXT: MAX_STEPS_REACHED - Agent hit 5 step limit]\nThere are 3.";
        for (status, reason, response, answered) in [
            ("completed", "answered", "There are 3.", "There are 3."),
            ("incomplete", "max_steps", marked, "There are 3."),
            ("failed", "cannot", "There is no such cat.", "There is no such cat."),
            ("failed", "cannot", "", ""),
            ("failed", "request_limit", "Usage limit error: 1 request(s) were allowed. I look", ""),
            ("failed", "model_error", "The model failed: out of memory", ""),
        ] {
            assert_eq!(stored(status, reason, response), [("how many?".to_owned(), answered.to_owned())], "{reason}");
        }
        assert_eq!(stored("stopped", "", ""), [], "it may still be resumed");
    }

    #[test]
    fn a_fold_whose_runs_failed_can_be_repeated() {
        let (memory, runs) = (Arc::new(Memory::in_memory()), Arc::new(FailsOnce::default()));
        let (session, agent, asked) = ("s".to_owned(), "chat".to_owned(), "q".to_owned());
        let conversation = Conversation { memory: memory.clone(), session, agent, asked, runs: runs.clone() };
        let exchange = Exchange { run: "run_1".into(), asked: "q".into(), answered: "a".into() };
        memory.add_exchange(conversation.key(), &exchange).unwrap();
        let known = || memory.past(conversation.key(), 9).unwrap().exchanges.len();
        let out = ["run_1".to_owned()];
        let fold = Fold { summary: None, runs: &out, originals: Originals::Delete };
        assert!(conversation.fold("s", fold).is_err());
        assert_eq!(known(), 1, "it is still there to be folded again");
        conversation.fold("s", fold).unwrap();
        assert_eq!((known(), runs.0.lock().unwrap().len()), (0, 2));
    }
}
