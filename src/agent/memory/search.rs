//! Searches notes by words and meaning, with the index of documents, in the same way for every backend. For backends
//! without an index of their own, one is built in memory and rebuilt when the notes have changed.

use super::backend::{Backend, SearchSource, Snapshot};
use super::note::Recalled;
use super::sqlite::{self, INDEX};
use caro_documents::LibraryError;
use caro_documents::question::{Question, nothing_shared};
use caro_model::embed::Embedder;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The index built from a backend's notes, with their revision.
#[derive(Default)]
pub struct Search(Mutex<Option<(u64, Connection)>>);

impl Search {
    /// Returns at most `limit` notes that match a text best. If no note shares a word with it, words also match as
    /// prefixes; failing that, every note is scanned for the characters of languages written without spaces.
    ///
    /// # Errors
    /// If the notes cannot be read.
    pub fn find(
        &self,
        backend: &dyn Backend,
        text: &str,
        embedder: Option<&dyn Embedder>,
        limit: usize,
    ) -> Result<Vec<Recalled>, LibraryError> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match backend.search_source(cached.as_ref().map(|(revision, _)| *revision))? {
            SearchSource::Nothing => return Ok(Vec::new()),
            SearchSource::Index(sql) => {
                return find(&sql, text, embedder, limit)
                    .map_err(|error| error.at(Path::new(sql.path().unwrap_or_default())));
            }
            SearchSource::Notes(snapshot) => *cached = Some((snapshot.revision, build_index(&snapshot)?)),
            SearchSource::Unchanged => {}
        }
        match cached.as_ref() {
            Some((_, sql)) => find(sql, text, embedder, limit),
            None => Ok(Vec::new()),
        }
    }
}

/// Builds the index of a snapshot in memory.
fn build_index(snapshot: &Snapshot) -> rusqlite::Result<Connection> {
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
        let notes = sqlite::select_notes(&sql, "WHERE number = ?1", [found.at.id])?;
        recalled.extend(notes.into_iter().map(|n| (n.number, Recalled { note: n.note, score: found.score() })));
    }
    prefer_later(&mut recalled);
    Ok(recalled.into_iter().map(|(_, recalled)| recalled).collect())
}

/// Most difference between the scores of notes that count as equally near: a later one may correct an earlier one, and
/// is seldom worded alike.
const NEAR: f64 = 0.1;

/// Puts the latest first among notes, each with its number, that follow each other with nearly the same score.
fn prefer_later(recalled: &mut [(i64, Recalled)]) {
    let mut rest = recalled;
    while let Some(first) = rest.first().map(|(_, one)| one.score) {
        let count = rest.iter().take_while(|(_, one)| (one.score - first).abs() <= NEAR).count().max(1);
        let (equal, others) = rest.split_at_mut(count);
        equal.sort_by_key(|(number, one)| std::cmp::Reverse((one.note.updated, *number)));
        rest = others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Draft, Note};

    #[test]
    fn of_notes_that_are_equally_near_the_latest_is_first() {
        let one = |number: i64, updated, score| {
            let draft = Draft { content: "x".into(), ..Draft::default() };
            (number, Recalled { note: Note { id: String::new(), draft, created: updated, updated }, score })
        };
        let mut all = [one(1, 1, 0.8), one(2, 3, 0.78), one(3, 3, 0.74), one(4, 9, 0.5), one(5, 4, f64::NAN)];
        prefer_later(&mut all);
        assert_eq!(all.map(|(number, _)| number), [3, 2, 1, 4, 5]);
    }
}
