//! Notes found by their words and their meaning, in the same way whichever backend keeps them: by the index of documents.
//! Where the backend has no such index, one is made of its notes in memory, and again when they have changed.

use super::backend::{Backend, SearchSource, Snapshot};
use super::note::Recalled;
use super::sqlite::{self, INDEX};
use caro_documents::LibraryError;
use caro_documents::question::{Question, nothing_shared};
use caro_model::embed::Embedder;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The index that was made of a backend's notes, and of which revision.
#[derive(Default)]
pub struct Search(Mutex<Option<(u64, Connection)>>);

impl Search {
    /// The notes of a backend that fit a text best, at most `limit`. If none of them shares a word with it, words stand for
    /// what begins with them, and in the last resort every note is read for the letters of words of languages that are
    /// written without spaces.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn find(
        &self,
        backend: &dyn Backend,
        text: &str,
        embedder: Option<&dyn Embedder>,
        limit: usize,
    ) -> Result<Vec<Recalled>, LibraryError> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match backend.searched(made.as_ref().map(|(revision, _)| *revision))? {
            SearchSource::Nothing => return Ok(Vec::new()),
            SearchSource::Index(sql) => {
                return find(&sql, text, embedder, limit)
                    .map_err(|error| error.at(Path::new(sql.path().unwrap_or_default())));
            }
            SearchSource::Notes(snapshot) => *made = Some((snapshot.revision, indexed(&snapshot)?)),
            SearchSource::Unchanged => {}
        }
        match made.as_ref() {
            Some((_, sql)) => find(sql, text, embedder, limit),
            None => Ok(Vec::new()),
        }
    }
}

/// The index of these notes.
fn indexed(snapshot: &Snapshot) -> rusqlite::Result<Connection> {
    let mut sql = Connection::open_in_memory()?;
    sql.execute_batch(&sqlite::layout())?;
    let tx = sql.transaction()?;
    for numbered in &snapshot.notes {
        sqlite::insert(&tx, Some(numbered.number), &numbered.note)?;
    }
    if let Some(embedder) = &snapshot.embedder {
        INDEX.use_embedder(&tx, embedder)?;
        for (number, vector) in &snapshot.vectors {
            INDEX.put_vector(&tx, *number, vector)?;
        }
    }
    tx.commit()?;
    Ok(sql)
}

fn find(
    sql: &Connection,
    text: &str,
    embedder: Option<&dyn Embedder>,
    limit: usize,
) -> Result<Vec<Recalled>, LibraryError> {
    let question = Question::of(text, INDEX, sql, embedder)?;
    let sql = sql.unchecked_transaction()?;
    let mut found = question.ask(INDEX, &sql, limit)?;
    if nothing_shared(&found) {
        let mut wider = question.ask_wider(INDEX, &sql, limit)?;
        if wider.is_empty() {
            wider = question.scan(INDEX, &sql, sqlite::TEXTS)?;
            wider.truncate(limit);
        }
        found = if wider.is_empty() { found } else { wider };
    }
    let mut recalled = Vec::new();
    for found in &found {
        let notes = sqlite::notes(&sql, "WHERE number = ?1", [found.at.id])?;
        recalled.extend(notes.into_iter().map(|n| Recalled { note: n.note, score: found.score() }));
    }
    Ok(recalled)
}
