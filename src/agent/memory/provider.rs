//! The prompt layer `memory`: notes that match the task.

use super::{Memory, Recalled};
use crate::assemble::{ContextProvider, Provided, ProviderError, Query};
use crate::blueprint::guidance::MEMORY;
use crate::clock::day;
use crate::event::{Draft, Kind};
use caro_policy as policy;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Most notes in the layer.
const MAX_NOTES: usize = 5;
/// Most characters shown of a note.
const MAX_NOTE_CHARS: usize = 300;
/// Smallest budget for all layers, in tokens, with which notes are added.
const MIN_BUDGET: usize = 300;
/// Lowest score of a note in the layer. A small model takes whatever it reads for a part of the task.
const MIN_SCORE: f64 = 0.4;

/// The provider of the layer `memory`.
pub struct Recall {
    memory: Arc<Memory>,
    /// The event of the last search, until it is fetched.
    record: Mutex<Option<Draft>>,
}

impl Recall {
    /// Searches the notes of `memory`.
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
        if budget < MIN_BUDGET || !self.memory.exists() {
            return Ok(None);
        }
        let started = Instant::now();
        let mut found = self.memory.query(&query.task, MAX_NOTES).map_err(|e| ProviderError(e.to_string()))?;
        found.retain(|f| f.score >= MIN_SCORE && !policy::screen(&shown(f)).blocks());
        let ids: Vec<&str> = found.iter().map(|f| f.note.id.as_str()).collect();
        let scores: Vec<f64> = found.iter().map(|f| f.score).collect();
        let record =
            Draft::new(Kind::MemoryRead).took(started.elapsed()).metadata(json!({"notes": ids, "scores": scores}));
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

/// Returns the text of a note that the model may see, on one line.
fn shown(found: &Recalled) -> String {
    let note = &found.note.draft;
    // a title made from the content is not repeated
    let text = if note.content.starts_with(&note.title) {
        note.content.clone()
    } else {
        format!("{}: {}", note.title, note.content)
    };
    policy::normalise(&text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Formats a note as a list item with its day, cut to its limit.
fn line(found: &Recalled) -> String {
    let text = shown(found);
    let mut line: String = text.chars().take(MAX_NOTE_CHARS).collect();
    if line.len() < text.len() {
        line.push('…');
    }
    format!("- ({}) {line}", day(found.note.updated))
}
