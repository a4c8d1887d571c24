//! The person's own documents as a layer of a task's prompt.

use crate::assemble::{ContextProvider, Provided, ProviderError, Query};
use crate::event::{Draft, Kind};
use crate::excerpt::excerpt;
use crate::turn::{HEADING, KNOWLEDGE};
use caro_documents::{Hit, Librarian, needs_knowledge};
use caro_intent::asks_documents;
use caro_policy::{normalise, screen};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The most passages, where no other number is given.
pub const LIMIT: usize = 3;
/// The least score of a passage, where no other number is given; see [`Hit::score`].
pub const THRESHOLD: f64 = 0.5;
/// The most passages for a question that a document may answer, which is asked with these alone; how near the nearest of
/// them has to be, and the others: the answer has few of the question's words if the question is put in others.
const WIDE: usize = 5;
const SPOKEN_OF: f64 = 0.35;
const NEAR: f64 = 0.2;
/// Characters a token has at least, on average: what the layer takes of the budget is estimated with it.
const CHARS_A_TOKEN: usize = 3;

/// The layer `knowledge`. The library is not even opened for a task that does not ask for it.
pub struct Knowledge {
    librarian: Arc<Librarian>,
    limit: usize,
    threshold: f64,
    /// What the event log is to have of the last search.
    record: Mutex<Option<Draft>>,
}

impl Knowledge {
    /// Looks into this library.
    pub fn new(librarian: Arc<Librarian>) -> Self {
        Self { librarian, limit: LIMIT, threshold: THRESHOLD, record: Mutex::default() }
    }

    /// The same with at most `limit` passages, each with a score of `threshold` at least.
    #[must_use]
    pub fn within(self, limit: usize, threshold: f64) -> Self {
        Self { limit, threshold, ..self }
    }
}

impl ContextProvider for Knowledge {
    fn name(&self) -> &'static str {
        KNOWLEDGE
    }

    fn priority(&self) -> u16 {
        40
    }

    fn provide(&self, query: &Query, budget: usize) -> Result<Option<Provided>, ProviderError> {
        if needs_knowledge(&query.task).is_none() || !self.librarian.exists() {
            return Ok(None);
        }
        let begun = Instant::now();
        let wide = asks_documents(&query.task);
        let limit = if wide && self.limit == LIMIT { WIDE } else { self.limit };
        let answer = self.librarian.query(&query.task, limit).map_err(|e| ProviderError(e.to_string()))?;
        let spoken_of = answer.hits.iter().any(|hit| hit.score >= SPOKEN_OF);
        let threshold = if wide && spoken_of { NEAR.min(self.threshold) } else { self.threshold };
        let near: Vec<Hit> = answer.hits.into_iter().filter(|hit| hit.score >= threshold).collect();
        // documents are others' words, their names as well: what is addressed to the model does not reach it. Judged is
        // what would be shown
        let harmless = |hit: &Hit| !screen(&format!("{}\n{}", source(hit), normalise(&hit.text))).blocks();
        let (near, kept): (Vec<Hit>, Vec<Hit>) = near.into_iter().partition(harmless);
        let scores: Vec<f64> = near.iter().map(|hit| hit.score).collect();
        let sources: Vec<String> = near.iter().map(source).collect();
        let record = Draft::new(Kind::KnowledgeRetrieved).took(begun.elapsed()).metadata(json!({
            "hits": near.len(), "scores": scores, "ms": begun.elapsed().as_micros() as f64 / 1e3,
            "sources": sources, "withheld": kept.len(), "by_meaning": answer.by_meaning
        }));
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
        if near.is_empty() {
            return Ok(None);
        }
        // half of the budget at most: the task's own layers come first
        let each = budget / 2 * CHARS_A_TOKEN / near.len();
        Ok(Some(Provided { text: text(&near, &query.task, each), trusted: false }))
    }

    fn record(&self) -> Option<Draft> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Where a passage is from, in one line.
fn source(hit: &Hit) -> String {
    normalise(&hit.place()).replace(['\n', '\t'], " ")
}

fn text(hits: &[Hit], task: &str, each: usize) -> String {
    let mut text = String::from("## Relevant Knowledge");
    for (i, hit) in hits.iter().enumerate() {
        let body = excerpt(&normalise(&hit.text), task, each);
        text.push_str(&format!("\n\n{HEADING}Source {}: {}\n{body}", i + 1, source(hit)));
    }
    text
}

#[cfg(test)]
#[path = "knowledge_tests.rs"]
mod tests;
