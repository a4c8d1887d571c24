//! What is kept of a run for the conversation it belongs to: what was asked and answered, once it has ended. It goes by the
//! event of the end, so whoever waits for the session to be free finds it.

use super::{ConversationKey, Memory};
use crate::chat::{Exchange, Fold, Keeps};
use crate::event::{Event, Kind, Sink};
use crate::turn::own_words;
use std::sync::Arc;

/// The conversation that a run belongs to.
pub struct Conversation {
    /// Where it is kept.
    pub memory: Arc<Memory>,
    /// The session.
    pub session: String,
    /// The agent's name.
    pub agent: String,
    /// What was asked, without secrets.
    pub asked: String,
    /// Where the runs themselves are: what falls out of the conversation is marked or deleted there too.
    pub runs: Arc<dyn Keeps>,
}

impl Conversation {
    fn whose(&self) -> ConversationKey<'_> {
        ConversationKey { session: &self.session, agent: &self.agent }
    }
}

impl Sink for Conversation {
    /// A place that cannot be written costs the memory, not the answer: the next run does without.
    fn take(&self, event: &Event) {
        let text = |value: &serde_json::Value, name: &str| {
            value.get(name).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
        };
        // a mark that stands in the conversation is soon written by the model too
        let answered = own_words(&text(&event.output, "response")).to_owned();
        let counts = ["completed", "incomplete"].contains(&text(&event.metadata, "status").as_str());
        if event.event_type != Kind::AgentEnd || !counts || answered.trim().is_empty() {
            return;
        }
        let exchange = Exchange { run: event.trace_id.clone(), asked: self.asked.clone(), answered };
        let _ = self.memory.say(self.whose(), &exchange);
    }
}

impl Keeps for Conversation {
    fn fold(&self, session: &str, fold: Fold<'_>) -> Result<(), String> {
        // the runs first: what is gone from the memory is not asked for a second time, and its runs would stay
        self.runs.fold(session, fold)?;
        let whose = ConversationKey { session, agent: &self.agent };
        self.memory.fold(whose, fold).map_err(|e| e.to_string())
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

    /// Runs that cannot be folded the first time.
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
    fn what_is_remembered_is_what_the_model_said() {
        let memory = Arc::new(Memory::in_memory());
        let (session, agent, asked) = ("s".to_owned(), "chat".to_owned(), "how many?".to_owned());
        let runs = Arc::<FailsOnce>::default();
        let conversation = Arc::new(Conversation { memory: memory.clone(), session, agent, asked, runs });
        let emitter = Emitter::new("run_1", 1, Redactor::default(), vec![conversation.clone()]);
        let marked = "[SYSTEM_CONTEXT: MAX_STEPS_REACHED - Agent hit 5 step limit]\nThere are 3.";
        let end = Draft::new(Kind::AgentEnd).output(json!({ "response": marked }));
        emitter.emit(end.metadata(json!({"status": "incomplete"})));
        let past = memory.past(conversation.whose(), 9).unwrap();
        assert_eq!(past.exchanges[0].answered, "There are 3.");
    }

    #[test]
    fn what_could_not_be_folded_with_its_runs_can_be_the_next_time() {
        let (memory, runs) = (Arc::new(Memory::in_memory()), Arc::new(FailsOnce::default()));
        let (session, agent, asked) = ("s".to_owned(), "chat".to_owned(), "q".to_owned());
        let conversation = Conversation { memory: memory.clone(), session, agent, asked, runs: runs.clone() };
        let exchange = Exchange { run: "run_1".into(), asked: "q".into(), answered: "a".into() };
        memory.say(conversation.whose(), &exchange).unwrap();
        let known = || memory.past(conversation.whose(), 9).unwrap().exchanges.len();
        let out = ["run_1".to_owned()];
        let fold = Fold { summary: None, runs: &out, originals: Originals::Delete };
        assert!(conversation.fold("s", fold).is_err());
        assert_eq!(known(), 1, "it is still there to be folded again");
        conversation.fold("s", fold).unwrap();
        assert_eq!((known(), runs.0.lock().unwrap().len()), (0, 2));
    }
}
