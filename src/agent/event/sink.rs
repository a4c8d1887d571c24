//! Where events go.

use super::Event;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Takes events as they happen, each once and in order.
pub trait Sink: Send + Sync {
    /// Takes one event. A sink that cannot (a full disk) keeps that to itself and tells it when it is asked: a run is not
    /// stopped because nobody can write about it.
    fn take(&self, event: &Event);
}

/// Keeps events in memory, for tests and for a summary at the end.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Vec<Event>>);

impl Memory {
    /// What has happened so far.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for Memory {
    fn take(&self, event: &Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
    }
}

/// Writes each event as one line of JSON, whole or not at all.
pub struct Jsonl<W: Write + Send>(Mutex<W>);

impl<W: Write + Send> Jsonl<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self(Mutex::new(out))
    }
}

impl<W: Write + Send> Sink for Jsonl<W> {
    fn take(&self, event: &Event) {
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One write a line, so that a reader never sees half of one; a reader that went away is no reason to stop.
        let _ = out.write_all(&line).and_then(|()| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Draft, Emitter, Kind, Redactor};
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_line_is_an_event() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let sink: Arc<dyn Sink> = Arc::new(Jsonl::new(file.reopen().unwrap()));
        let emitter = Emitter::new("r", 1, Redactor::default(), vec![sink]);
        emitter.emit(Draft::new(Kind::UserMessage).input("two\nlines"));
        emitter.emit(Draft::new(Kind::AgentEnd));
        let text = std::fs::read_to_string(file.path()).unwrap();
        let kinds: Vec<Kind> = text.lines().map(|l| serde_json::from_str::<Event>(l).unwrap().event_type).collect();
        assert_eq!(kinds, [Kind::UserMessage, Kind::AgentEnd]);
    }
}
