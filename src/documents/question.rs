//! A question to an index: its words, its vector, and the scores of passages.

use super::index::{Index, Match};
use super::words::{Terms, is_unspaced};
use caro_database::file;
use caro_model::embed::Embedder;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A question.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Its words.
    pub terms: Terms,
    /// Its vector, if the index has vectors to compare it with.
    pub vector: Option<Vec<f32>>,
    /// The reason why it has none, if an embedder failed.
    pub failed: Option<String>,
    /// The time to load the embedder, if this was its first use.
    pub load: Duration,
    /// The time to compute the vector.
    pub embed: Duration,
}

/// The weight of a prefix match, below the threshold for passages that are shown to a model: `rustic` is not about
/// `rust`.
const PREFIX_WEIGHT: f64 = 0.3;

/// Most passages that are scanned as a last resort.
const MAX_SCANNED: usize = 100_000;

/// A passage that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The passage, with its ranks.
    pub at: Match,
    /// The share of the question's words that it contains, from 0 to 1.
    pub covered: f64,
    /// True if it only contains them as prefixes.
    pub widened: bool,
}

impl Found {
    /// Returns its score from 0 to 1: the cosine, or the share of the words if that is greater.
    pub fn score(&self) -> f64 {
        let covered = if self.widened { self.covered * PREFIX_WEIGHT } else { self.covered };
        let score = covered.max(f64::from(self.at.cosine.unwrap_or_default())).clamp(0.0, 1.0);
        (score * 1e4).round() / 1e4
    }
}

impl Question {
    /// Creates the question of a text. If the embedder fails, it has words only.
    ///
    /// # Errors
    /// If SQLite fails; the same holds for the functions below.
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

    /// Returns at most `limit` passages that match best.
    pub fn ask(&self, index: Index, sql: &Connection, limit: usize) -> rusqlite::Result<Vec<Found>> {
        self.search(&self.terms, index, sql, limit)
    }

    /// Like [`Self::ask`], with words as prefixes; returns only passages that contain any.
    pub fn ask_wider(&self, index: Index, sql: &Connection, limit: usize) -> rusqlite::Result<Vec<Found>> {
        let mut found = self.search(&self.terms.widened(), index, sql, limit)?;
        found.retain(|f| f.covered > 0.0);
        found.iter_mut().for_each(|f| f.widened = true);
        Ok(found)
    }

    /// As a last resort, returns the passages that contain those words whose language has no spaces between words;
    /// other words would also match inside of longer ones. Reads the ids and texts that `all` selects. Passages with
    /// the most words come first.
    pub fn scan(&self, index: Index, sql: &Connection, all: &str) -> rusqlite::Result<Vec<Found>> {
        let known = self.terms.words();
        let words: Vec<&String> = known.iter().filter(|word| word.contains(is_unspaced)).collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let near = self.vector.as_ref().map_or(Ok(Vec::new()), |vector| index.nearest(sql, vector, MAX_SCANNED))?;
        let cosines: BTreeMap<i64, f32> = near.into_iter().collect();
        let mut read = sql.prepare(&format!("{all} LIMIT ?1"))?;
        let mut rows = read.query([file::int(MAX_SCANNED)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let text = row.get_ref(1)?.as_str().unwrap_or_default().to_lowercase();
            let held = words.iter().filter(|word| text.contains(word.as_str())).count();
            if held > 0 {
                let id = row.get(0)?;
                let at = Match { id, fused: 0.0, cosine: cosines.get(&id).copied() };
                found.push(Found { at, covered: held as f64 / known.len() as f64, widened: false });
            }
        }
        found.sort_by(|a, b| b.covered.total_cmp(&a.covered));
        Ok(found)
    }

    fn search(&self, terms: &Terms, index: Index, sql: &Connection, limit: usize) -> rusqlite::Result<Vec<Found>> {
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
