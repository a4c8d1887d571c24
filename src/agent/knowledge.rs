//! Provides the layer `knowledge`: passages from the user's own documents that match the task.

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

/// Most passages by default.
pub const LIMIT: usize = 3;
/// Least score of a passage by default; see [`Hit::score`].
pub const THRESHOLD: f64 = 0.5;
/// Most passages for a question about documents. As the answer may use other words than the question, a score of
/// [`LOWERED_THRESHOLD`] is enough once one passage reaches [`BEST_SCORE`].
const QUESTION_LIMIT: usize = 5;
const BEST_SCORE: f64 = 0.35;
const LOWERED_THRESHOLD: f64 = 0.2;
/// Characters per token, estimated low so that the layer stays within its budget.
const CHARS_PER_TOKEN: usize = 3;

/// The provider of the layer `knowledge`. The library is opened only for a task that needs it.
pub struct Knowledge {
    librarian: Arc<Librarian>,
    limit: usize,
    threshold: f64,
    /// The event about the last search.
    record: Mutex<Option<Draft>>,
}

impl Knowledge {
    /// Creates a provider that searches this library with the default limits.
    pub fn new(librarian: Arc<Librarian>) -> Self {
        Self { librarian, limit: LIMIT, threshold: THRESHOLD, record: Mutex::default() }
    }

    /// Returns the provider with at most `limit` passages, each with a score of at least `threshold`.
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
        let started = Instant::now();
        let is_question = asks_documents(&query.task);
        let limit = if is_question && self.limit == LIMIT { QUESTION_LIMIT } else { self.limit };
        let answer = self.librarian.query(&query.task, limit).map_err(|e| ProviderError(e.to_string()))?;
        let has_good_hit = answer.hits.iter().any(|hit| hit.score >= BEST_SCORE);
        let lowered = is_question && has_good_hit;
        let threshold = if lowered { LOWERED_THRESHOLD.min(self.threshold) } else { self.threshold };
        let hits: Vec<Hit> = answer.hits.into_iter().filter(|hit| hit.score >= threshold).collect();
        // documents and their names are untrusted: a passage with instructions for the model is withheld. The check
        // sees the text exactly as it would be shown
        let harmless = |hit: &Hit| !screen(&format!("{}\n{}", source(hit), normalise(&hit.text))).blocks();
        let (hits, withheld): (Vec<Hit>, Vec<Hit>) = hits.into_iter().partition(harmless);
        let scores: Vec<f64> = hits.iter().map(|hit| hit.score).collect();
        let sources: Vec<String> = hits.iter().map(source).collect();
        let record = Draft::new(Kind::KnowledgeRetrieved).took(started.elapsed()).metadata(json!({
            "hits": hits.len(), "scores": scores, "ms": started.elapsed().as_micros() as f64 / 1e3,
            "sources": sources, "withheld": withheld.len(), "by_meaning": answer.by_meaning
        }));
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
        if hits.is_empty() {
            return Ok(None);
        }
        // at most half of the budget: the layers of the task itself come first
        let each = budget / 2 * CHARS_PER_TOKEN / hits.len();
        Ok(Some(Provided { text: text(&hits, &query.task, each), trusted: false }))
    }

    fn record(&self) -> Option<Draft> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The place that a passage is from, on one line.
fn source(hit: &Hit) -> String {
    normalise(&hit.place()).replace(['\n', '\t'], " ")
}

/// The text of the layer, with about `each` characters per passage.
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
