//! What is remembered of tasks like this one, as a layer of its prompt.

use super::{Memory, Recalled};
use crate::assemble::{ContextProvider, Provided, ProviderError, Query};
use crate::blueprint::guidance::MEMORY;
use crate::event::{Draft, Kind};
use caro_policy as policy;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The most notes.
const LIMIT: usize = 5;
/// The most characters of a note.
const EACH: usize = 300;
/// With less than so many tokens for all layers there is no room for memories.
const ROOM: usize = 300;
/// What fits less well is left out: a small model takes whatever it is told for a part of the task.
const THRESHOLD: f64 = 0.4;

/// The layer `memory`.
pub struct Recall {
    memory: Arc<Memory>,
    /// What the event log is to have of the last search.
    record: Mutex<Option<Draft>>,
}

impl Recall {
    /// Looks into these notes.
    pub fn new(memory: Arc<Memory>) -> Self {
        Self { memory, record: Mutex::default() }
    }
}

impl ContextProvider for Recall {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn priority(&self) -> u16 {
        40
    }

    fn provide(&self, query: &Query, budget: usize) -> Result<Option<Provided>, ProviderError> {
        if budget < ROOM || !self.memory.exists() {
            return Ok(None);
        }
        let begun = Instant::now();
        let mut found = self.memory.query(&query.task, LIMIT).map_err(|e| ProviderError(e.to_string()))?;
        found.retain(|f| f.score >= THRESHOLD && !policy::screen(&shown(f)).blocks());
        let ids: Vec<&str> = found.iter().map(|f| f.note.id.as_str()).collect();
        let scores: Vec<f64> = found.iter().map(|f| f.score).collect();
        let record =
            Draft::new(Kind::MemoryRead).took(begun.elapsed()).metadata(json!({"notes": ids, "scores": scores}));
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
        if found.is_empty() {
            return Ok(None);
        }
        let lines: Vec<String> = found.iter().map(line).collect();
        Ok(Some(Provided { text: lines.join("\n"), trusted: false }))
    }

    fn rule(&self) -> Option<&'static str> {
        Some(MEMORY)
    }

    fn record(&self) -> Option<Draft> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A note as the model may see it.
fn shown(found: &Recalled) -> String {
    let note = &found.note.draft;
    // a title that was made of the content says nothing twice
    let text = if note.content.starts_with(&note.title) {
        note.content.clone()
    } else {
        format!("{}: {}", note.title, note.content)
    };
    policy::normalise(&text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A note in one line.
fn line(found: &Recalled) -> String {
    let text = shown(found);
    let mut line: String = text.chars().take(EACH).collect();
    if line.len() < text.len() {
        line.push('…');
    }
    format!("- {line}")
}
