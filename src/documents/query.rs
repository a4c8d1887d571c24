//! Queries to the library.

use super::error::{self, LibraryError};
use super::format::Format;
use super::question::{Found, Question, nothing_shared};
use super::{INDEX, Librarian};
use caro_database::file;
use rusqlite::{Connection, params};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// The factor by which the limit of the wider search is greater.
const WIDER_FACTOR: usize = 5;

/// A passage that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// The path of its document.
    pub path: String,
    /// Its first line, from 1.
    pub first: usize,
    /// Its last line.
    pub last: usize,
    /// Its topic; often empty.
    pub title: String,
    /// Its text.
    pub text: String,
    /// Its score from 0 to 1: the cosine with the question, or the share of the question's words in it if that is
    /// greater (rare words weigh more, prefix matches less).
    pub score: f64,
}

impl Hit {
    /// Returns its place: the lines, or the page or headings of a format without lines.
    pub fn place(&self) -> String {
        match (Format::of(Path::new(&self.path)), self.title.as_str()) {
            (None, _) => format!("{}:{}-{}", self.path, self.first, self.last),
            (Some(_), "") => self.path.clone(),
            (Some(_), title) => format!("{} ({title})", self.path),
        }
    }
}

/// Durations in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Times {
    /// Loading the embedder, if this was its first use.
    pub load: f64,
    /// Computing the vector.
    pub embed: f64,
    /// Everything else: opening, both rankings, reading the passages.
    pub search: f64,
}

/// The passages found, best first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Answer {
    /// The passages.
    pub hits: Vec<Hit>,
    /// True if meaning was used, and not words alone.
    pub by_meaning: bool,
    /// The reason why it was not used, if an embedder failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_vectors: Option<String>,
    /// Durations.
    pub ms: Times,
}

impl Librarian {
    /// Returns at most `limit` passages that match a question best.
    ///
    /// If none of them shares a word with it, the search is widened: words match as prefixes, and as a last resort
    /// every passage is scanned for words of languages that are written without spaces.
    ///
    /// # Errors
    /// [`LibraryError::Empty`] if nothing was ever ingested; otherwise if the library cannot be read.
    pub fn query(&self, text: &str, limit: usize) -> Result<Answer, LibraryError> {
        error::on(&self.file, || {
            let begun = Instant::now();
            let sql = self.reader()?.ok_or(LibraryError::Empty("nothing has been ingested yet"))?;
            let question = Question::of(text, INDEX, &sql, self.embedder.as_deref())?;
            // a consistent view, even if another process is writing
            let sql = sql.unchecked_transaction()?;
            let mut found = question.ask(INDEX, &sql, limit)?;
            if nothing_shared(&found) {
                found = search_wider(&sql, &question, text, found, limit)?;
            }
            let hits = passages(&sql, &found)?;
            let search = begun.elapsed().saturating_sub(question.load + question.embed);
            let ms = Times { load: millis(question.load), embed: millis(question.embed), search: millis(search) };
            Ok(Answer { hits, by_meaning: question.vector.is_some(), without_vectors: question.failed, ms })
        })
    }

    /// Returns at most `limit` passages that share words with a text, best first: a fast search without meaning and
    /// without a wider search. None if nothing was ingested.
    ///
    /// # Errors
    /// If the library cannot be read.
    pub fn glance(&self, text: &str, limit: usize) -> Result<Vec<Hit>, LibraryError> {
        error::on(&self.file, || {
            let Some(sql) = self.reader()? else { return Ok(Vec::new()) };
            let sql = sql.unchecked_transaction()?;
            let question = Question::of(text, INDEX, &sql, None)?;
            let mut found = question.ask(INDEX, &sql, limit)?;
            found.retain(|f| f.covered > 0.0);
            Ok(passages(&sql, &found)?)
        })
    }
}

/// Reads the passages found.
fn passages(sql: &Connection, found: &[Found]) -> rusqlite::Result<Vec<Hit>> {
    let mut read = sql.prepare_cached(
        "SELECT documents.path, first, last, title, text FROM chunks
         JOIN documents ON documents.id = chunks.document WHERE chunks.id = ?1",
    )?;
    let hit = |found: &Found| {
        read.query_row([found.at.id], |row| {
            Ok(Hit {
                path: row.get(0)?,
                first: file::count(row, 1)?,
                last: file::count(row, 2)?,
                title: row.get(3)?,
                text: row.get(4)?,
                score: found.score(),
            })
        })
    };
    found.iter().map(hit).collect()
}

/// The wider search, sorted by exact phrase, common words and nearness. If nothing has a word in common with the
/// question, the earlier results stay.
fn search_wider(
    sql: &Connection,
    question: &Question,
    text: &str,
    before: Vec<Found>,
    limit: usize,
) -> Result<Vec<Found>, LibraryError> {
    let mut found = question.ask_wider(INDEX, sql, limit * WIDER_FACTOR)?;
    if found.is_empty() {
        found = question.scan(INDEX, sql, "SELECT id, text FROM chunks")?;
    }
    if found.is_empty() {
        return Ok(before);
    }
    let mut sorted = rank(sql, text, found)?;
    sorted.truncate(limit);
    Ok(sorted)
}

/// Sorts by exact phrase, then by common words, then by nearness.
fn rank(sql: &Connection, text: &str, found: Vec<Found>) -> Result<Vec<Found>, LibraryError> {
    let phrase = text.trim().to_lowercase();
    let mut read = sql.prepare_cached("SELECT instr(lower(text), ?2) > 0 FROM chunks WHERE id = ?1")?;
    let mut keyed: Vec<(bool, Found)> = Vec::with_capacity(found.len());
    for found in found {
        keyed.push((read.query_row(params![found.at.id, phrase], |row| row.get(0))?, found));
    }
    keyed.sort_by(|(exact_a, a), (exact_b, b)| {
        let near = |f: &Found| f.at.cosine.unwrap_or_default();
        let by_words = exact_b.cmp(exact_a).then(b.covered.total_cmp(&a.covered));
        by_words.then(b.at.fused.total_cmp(&a.at.fused)).then(near(b).total_cmp(&near(a))).then(a.at.id.cmp(&b.at.id))
    });
    Ok(keyed.into_iter().map(|(_, found)| found).collect())
}

fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}
