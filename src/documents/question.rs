//! A question put to an index: its words, its vector, and how well a passage answers it.

use super::index::{Index, Match};
use super::words::Terms;
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

/// The most passages that are read one by one, in the last resort.
const SCANNED: usize = 100_000;

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

    /// In the last resort: what holds the letters of those of its words whose language has no spaces between words; of
    /// others they may be in any longer word. Reads whatever `all` selects, a passage's number and its text. Who holds most
    /// of the words comes first.
    pub fn scan(&self, index: Index, sql: &Connection, all: &str) -> rusqlite::Result<Vec<Found>> {
        let known = self.terms.words();
        let words: Vec<&String> = known.iter().filter(|word| word.contains(is_unspaced)).collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let near = self.vector.as_ref().map_or(Ok(Vec::new()), |vector| index.nearest(sql, vector, SCANNED))?;
        let cosines: BTreeMap<i64, f32> = near.into_iter().collect();
        let mut read = sql.prepare(&format!("{all} LIMIT ?1"))?;
        let mut rows = read.query([file::int(SCANNED)])?;
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

    fn found(&self, terms: &Terms, index: Index, sql: &Connection, limit: usize) -> rusqlite::Result<Vec<Found>> {
        let matches = index.search(sql, terms, self.vector.as_deref(), limit)?;
        let ids: Vec<i64> = matches.iter().map(|m| m.id).collect();
        let covered = index.coverage(sql, terms, &ids)?;
        Ok(matches.into_iter().zip(covered).map(|(at, covered)| Found { at, covered, widened: false }).collect())
    }
}

/// True for a letter of a script that is written without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}')
        || matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// True if no passage shares a word with the question.
pub fn nothing_shared(found: &[Found]) -> bool {
    found.iter().all(|f| f.covered == 0.0)
}
