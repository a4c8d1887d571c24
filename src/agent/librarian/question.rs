//! A question put to an index: its words, its vector, and how well a passage answers it.

use super::index::{Index, Match};
use super::words::Terms;
use crate::model::embed::Embedder;
use rusqlite::Connection;
use std::time::{Duration, Instant};

/// A question.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Its words.
    pub terms: Terms,
    /// Its meaning, where the index has vectors it can be compared with.
    pub vector: Option<Vec<f32>>,
    /// Why it has none, if an embedder was there and failed.
    pub failed: Option<String>,
    /// What loading the embedder took, where this was its first text.
    pub load: Duration,
    /// What the vector took.
    pub embed: Duration,
}

/// What a word counts for that only begins as one of the question does: less than whoever shows passages to a model asks
/// for. `rust` is not what `rustic` is about.
const BEGINNING: f64 = 0.3;

/// A passage that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The passage, and its places in the rankings.
    pub at: Match,
    /// The part of the question's words that it holds, 0 to 1.
    pub covered: f64,
    /// True if it holds them only where a word stands for every word that begins with it.
    pub widened: bool,
}

impl Found {
    /// How well it fits, 0 to 1: the cosine, or the part of the words where that is more.
    pub fn score(&self) -> f64 {
        let covered = if self.widened { self.covered * BEGINNING } else { self.covered };
        let score = covered.max(f64::from(self.at.cosine.unwrap_or_default())).clamp(0.0, 1.0);
        (score * 1e4).round() / 1e4
    }
}

impl Question {
    /// The question that a text asks. An embedder that fails costs meaning, not words.
    ///
    /// # Errors
    /// If SQLite fails; likewise below.
    pub fn of(text: &str, index: Index, sql: &Connection, embedder: Option<&dyn Embedder>) -> rusqlite::Result<Self> {
        let mut question = Self { terms: Terms::of(text), ..Self::default() };
        let Some(embedder) = embedder else { return Ok(question) };
        if !index.knows(sql, embedder.id())? {
            return Ok(question);
        }
        let begun = Instant::now();
        let loaded = embedder.prepare();
        question.load = begun.elapsed();
        let begun = Instant::now();
        match loaded.and_then(|()| embedder.embed(&[text])) {
            Ok(mut vectors) => question.vector = vectors.pop(),
            Err(error) => question.failed = Some(error.to_string()),
        }
        question.embed = begun.elapsed();
        Ok(question)
    }

    /// What fits best, at most `limit`.
    pub fn ask(&self, index: Index, sql: &Connection, limit: usize) -> rusqlite::Result<Vec<Found>> {
        self.found(&self.terms, index, sql, limit)
    }

    /// The same, where a word stands for every word that begins with it; only what then shares one.
    pub fn ask_wider(&self, index: Index, sql: &Connection, limit: usize) -> rusqlite::Result<Vec<Found>> {
        let mut found = self.found(&self.terms.widened(), index, sql, limit)?;
        found.retain(|f| f.covered > 0.0);
        found.iter_mut().for_each(|f| f.widened = true);
        Ok(found)
    }

    fn found(&self, terms: &Terms, index: Index, sql: &Connection, limit: usize) -> rusqlite::Result<Vec<Found>> {
        let matches = index.search(sql, terms, self.vector.as_deref(), limit)?;
        let ids: Vec<i64> = matches.iter().map(|m| m.id).collect();
        let covered = index.coverage(sql, terms, &ids)?;
        Ok(matches.into_iter().zip(covered).map(|(at, covered)| Found { at, covered, widened: false }).collect())
    }
}

/// True if no passage shares a word with the question.
pub fn nothing_shared(found: &[Found]) -> bool {
    found.iter().all(|f| f.covered == 0.0)
}
