//! The typed record of everything that happens in a run, read by history, resume, replay and the terminal view.
//!
//! An [`Emitter`] numbers an [`Event`], removes secrets from it ([`Redactor`]) and passes it to its [`Sink`]s in
//! order, so that no sink ever sees a secret. All types of events are in [`Kind`].

mod kind;
mod sink;

pub use kind::Kind;
pub use sink::{Memory, Sink};

use caro_base::id;
use caro_policy::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The originator of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Actor {
    /// The user.
    User,
    /// The model.
    Model,
    /// A tool.
    Tool,
    /// The harness.
    Runtime,
}

/// Counts of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Tokens of the prompt.
    pub request: u64,
    /// The part of them that was cached from the call before.
    pub cached: u64,
    /// Tokens of the completion.
    pub response: u64,
}

/// One entry of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its unique id: `RUN-SEQUENCE`.
    pub event_id: String,
    /// The run.
    pub trace_id: String,
    /// The step (`s3`) or call (`s3c1`) that it belongs to, or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub span_id: String,
    /// Its position in the run, from 1, without gaps.
    pub sequence_number: u64,
    /// The time, milliseconds since 1970, UTC.
    pub timestamp: u64,
    /// The type.
    pub event_type: Kind,
    /// The originator.
    pub actor: Actor,
    /// The input.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// The output.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The duration, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The cost in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_usage: Option<Tokens>,
    /// Other data.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
}

/// An event that is not numbered yet.
#[derive(Debug, Clone)]
pub struct Draft(Event);

impl Draft {
    /// Creates a draft whose originator is the runtime.
    pub fn new(kind: Kind) -> Self {
        Self(Event {
            event_id: String::new(),
            trace_id: String::new(),
            span_id: String::new(),
            sequence_number: 0,
            timestamp: 0,
            event_type: kind,
            actor: Actor::Runtime,
            input: Value::Null,
            output: Value::Null,
            error: None,
            duration_ms: None,
            token_usage: None,
            metadata: Value::Null,
        })
    }

    /// Returns the type.
    pub fn kind(&self) -> Kind {
        self.0.event_type
    }

    /// Sets the originator.
    #[must_use]
    pub fn by(mut self, actor: Actor) -> Self {
        self.0.actor = actor;
        self
    }

    /// Sets the step or call that it belongs to.
    #[must_use]
    pub fn span(mut self, span: impl Into<String>) -> Self {
        self.0.span_id = span.into();
        self
    }

    /// Sets the input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Value>) -> Self {
        self.0.input = input.into();
        self
    }

    /// Sets the output.
    #[must_use]
    pub fn output(mut self, output: impl Into<Value>) -> Self {
        self.0.output = output.into();
        self
    }

    /// Sets the error.
    #[must_use]
    pub fn error(mut self, error: impl Into<String>) -> Self {
        self.0.error = Some(error.into());
        self
    }

    /// Sets the duration.
    #[must_use]
    pub fn took(mut self, time: std::time::Duration) -> Self {
        self.0.duration_ms = Some(time.as_micros() as f64 / 1e3);
        self
    }

    /// Sets the cost in tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.0.token_usage = Some(tokens);
        self
    }

    /// Sets the other data.
    #[must_use]
    pub fn metadata(mut self, metadata: impl Into<Value>) -> Self {
        self.0.metadata = metadata.into();
        self
    }
}

/// Numbers and redacts the events of one run, and passes them to its sinks.
pub struct Emitter {
    run: String,
    next: AtomicU64,
    redactor: Redactor,
    sinks: Vec<Arc<dyn Sink>>,
}

impl Emitter {
    /// Creates an emitter for `run` whose first event has the number `first` (1 for a new run).
    pub fn new(run: impl Into<String>, first: u64, redactor: Redactor, sinks: Vec<Arc<dyn Sink>>) -> Self {
        Self { run: run.into(), next: AtomicU64::new(first), redactor, sinks }
    }

    /// Creates an emitter for another run, with the same secrets.
    #[must_use]
    pub fn sibling(&self, run: impl Into<String>, sinks: Vec<Arc<dyn Sink>>) -> Self {
        Self::new(run, 1, self.redactor.clone(), sinks)
    }

    /// Records an event and returns its number. A failing sink never stops a run, see [`Sink::take`].
    pub fn emit(&self, Draft(mut event): Draft) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        event.event_id = format!("{}-{number}", self.run);
        event.trace_id.clone_from(&self.run);
        event.sequence_number = number;
        event.timestamp = id::millis(SystemTime::now());
        self.redactor.value(&mut event.input);
        self.redactor.value(&mut event.output);
        self.redactor.value(&mut event.metadata);
        if let Some(error) = &mut event.error {
            *error = self.redactor.text(error);
        }
        for sink in &self.sinks {
            sink.take(&event);
        }
        number
    }

    /// Returns the text with its secrets redacted, as it may be stored.
    pub fn redacted(&self, text: &str) -> String {
        self.redactor.text(text)
    }

    /// Returns a document as JSON with its secrets redacted.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub fn document(&self, document: &impl Serialize) -> serde_json::Result<String> {
        self.redactor.document(document)
    }

    /// Returns the id of the run.
    pub fn run(&self) -> &str {
        &self.run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_numbered_without_a_gap_and_survive_json() {
        let memory = Arc::new(Memory::default());
        let emitter = Emitter::new("run_x", 1, Redactor::default(), vec![memory.clone()]);
        emitter.emit(Draft::new(Kind::AgentStart).input("do it"));
        emitter.emit(Draft::new(Kind::ToolCall).by(Actor::Model).span("s1c1").error("no"));
        let events = memory.events();
        let numbers: Vec<u64> = events.iter().map(|e| e.sequence_number).collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(events[1].event_id, "run_x-2");
        let text = serde_json::to_string(&events[1]).unwrap();
        assert!(text.contains(r#""event_type":"tool_call""#) && !text.contains("input"), "{text}");
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), events[1]);
    }

    #[test]
    fn a_secret_never_reaches_a_sink() {
        let memory = Arc::new(Memory::default());
        let emitter =
            Emitter::new("run_x", 1, Redactor::with_secrets(["canary-4711".to_string()]), vec![memory.clone()]);
        let nested = serde_json::json!({"a": ["x canary-4711 y"], "canary-4711": 1});
        emitter.emit(
            Draft::new(Kind::ToolResult)
                .input(nested.clone())
                .output(nested)
                .error("canary-4711")
                .metadata("canary-4711"),
        );
        let stored = serde_json::to_string(&memory.events()).unwrap();
        assert!(!stored.contains("canary-4711"), "{stored}");
    }
}
