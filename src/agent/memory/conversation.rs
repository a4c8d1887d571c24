//! Records the question and answer of a run in its conversation when the run ends. It acts on the end event, so that
//! the exchange is stored before a waiting run of the same session starts.

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

impl Sink for Conversation {
    /// Stores the exchange. A failure is ignored: it must not cost the answer.
    fn take(&self, event: &Event) {
        let text = |value: &serde_json::Value, name: &str| {
            value.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
        };
        // without marks of the harness: the model would imitate them
        let answered = own_words(&text(&event.output, "response")).to_owned();
        let counts = ["completed", "incomplete"].contains(&text(&event.metadata, "status").as_str());
        if event.event_type != Kind::AgentEnd || !counts || answered.trim().is_empty() {
            return;
        }
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

    #[test]
    fn marks_of_the_harness_are_not_stored() {
        let memory = Arc::new(Memory::in_memory());
        let (session, agent, asked) = ("s".to_owned(), "chat".to_owned(), "how many?".to_owned());
        let runs = Arc::<FailsOnce>::default();
        let conversation = Arc::new(Conversation { memory: memory.clone(), session, agent, asked, runs });
        let emitter = Emitter::new("run_1", 1, Redactor::default(), vec![conversation.clone()]);
        let marked = "[SYSTEM_CONTEXT: MAX_STEPS_REACHED - Agent hit 5 step limit]\nThere are 3.";
        let end = Draft::new(Kind::AgentEnd).output(json!({ "response": marked }));
        emitter.emit(end.metadata(json!({"status": "incomplete"})));
        let past = memory.past(conversation.key(), 9).unwrap();
        assert_eq!(past.exchanges[0].answered, "There are 3.");
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
