//! Questions to the library.

use super::error::{self, LibraryError};
use super::format::Format;
use super::question::{Found, Question, nothing_shared};
use super::{INDEX, Librarian};
use caro_database::file;
use rusqlite::{Connection, params};
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, Instant};

/// How much wider the second look is.
const WIDER: usize = 5;

/// A passage that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// Its document.
    pub path: String,
    /// Its first line, from 1.
    pub first: usize,
    /// Its last line.
    pub last: usize,
    /// What it is about; often empty.
    pub title: String,
    /// Its text.
    pub text: String,
    /// How well it fits, 0 to 1: the cosine with the question, or, where that is more, the part of the question's words
    /// that it holds (rare ones weigh more, and those that only begin so little).
    pub score: f64,
}

impl Hit {
    /// Where it stands: its lines, or of a form that has none (a page, a word processor's file) its page or headings.
    pub fn place(&self) -> String {
        match (Format::of(Path::new(&self.path)), self.title.as_str()) {
            (None, _) => format!("{}:{}-{}", self.path, self.first, self.last),
            (Some(_), "") => self.path.clone(),
            (Some(_), title) => format!("{} ({title})", self.path),
        }
    }
}

/// Where the time went, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Times {
    /// Loading the embedder, where this was its first text.
    pub load: f64,
    /// The question's vector.
    pub embed: f64,
    /// Everything else: opening, both rankings, reading the passages.
    pub search: f64,
}

/// What was found, the best first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Answer {
    /// The passages.
    pub hits: Vec<Hit>,
    /// True if meaning had a part in it, and not words alone.
    pub by_meaning: bool,
    /// Why it had none, if an embedder was there and failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_vectors: Option<String>,
    /// Where the time went.
    pub ms: Times,
}

impl Librarian {
    /// The passages that fit a question best, at most `limit`.
    ///
    /// If none of them shares a word with it, the search is widened: words stand for what begins with them, and in the last
    /// resort every passage is read for the letters of words of languages that are written without spaces.
    ///
    /// # Errors
    /// [`LibraryError::Empty`] if nothing was ever ingested; otherwise if the library cannot be read.
    pub fn query(&self, text: &str, limit: usize) -> Result<Answer, LibraryError> {
        error::on(&self.file, || {
            let begun = Instant::now();
            let sql = self.reader()?.ok_or(LibraryError::Empty("nothing has been ingested yet"))?;
            let question = Question::of(text, INDEX, &sql, self.embedder.as_deref())?;
            // one moment of the library, even if another process goes on writing
            let sql = sql.unchecked_transaction()?;
            let mut found = question.ask(INDEX, &sql, limit)?;
            if nothing_shared(&found) {
                found = widened(&sql, &question, text, found, limit)?;
            }
            let hits = passages(&sql, &found)?;
            let search = begun.elapsed().saturating_sub(question.load + question.embed);
            let ms = Times { load: millis(question.load), embed: millis(question.embed), search: millis(search) };
            Ok(Answer { hits, by_meaning: question.vector.is_some(), without_vectors: question.failed, ms })
        })
    }

    /// The passages that share words with a text, the best first, at most `limit`: for whoever has no time for meaning or
    /// for a second look. None where nothing was ever ingested.
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

/// What was found, read.
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

/// The wider search. Its ranking is (the exact phrase, words in common, nearness); where nothing has anything in common with
/// the question, what was found before stays.
fn widened(
    sql: &Connection,
    question: &Question,
    text: &str,
    before: Vec<Found>,
    limit: usize,
) -> Result<Vec<Found>, LibraryError> {
    let mut found = question.ask_wider(INDEX, sql, limit * WIDER)?;
    if found.is_empty() {
        found = question.scan(INDEX, sql, "SELECT id, text FROM chunks")?;
    }
    if found.is_empty() {
        return Ok(before);
    }
    let mut ranked = ranked(sql, text, found)?;
    ranked.truncate(limit);
    Ok(ranked)
}

/// Sorts by the exact phrase, then by words in common, then by nearness.
fn ranked(sql: &Connection, text: &str, found: Vec<Found>) -> Result<Vec<Found>, LibraryError> {
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
