//! Notes and conversations that last as long as the process.

use super::backend::{Backend, Numbered, Searched, Snapshot, Whose};
use super::note::Note;
use crate::agent::chat::Exchange;
use crate::agent::librarian::file::LibraryError;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The notes of this process.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    revision: u64,
    last: i64,
    notes: Vec<Numbered>,
    embedder: Option<String>,
    vectors: BTreeMap<i64, Vec<f32>>,
    /// By session and agent.
    said: BTreeMap<(String, String), Vec<Exchange>>,
}

impl InMemory {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for InMemory {
    fn name(&self) -> &'static str {
        "in_memory"
    }

    fn exists(&self) -> bool {
        self.held().revision > 0
    }

    fn keep(&self, note: &Note) -> Result<Note, LibraryError> {
        let mut held = self.held();
        held.revision += 1;
        let same =
            |n: &&mut Numbered| n.note.draft.title == note.draft.title && n.note.draft.content == note.draft.content;
        if let Some(known) = held.notes.iter_mut().find(same) {
            known.note.updated = note.updated;
            return Ok(known.note.clone());
        }
        held.last += 1;
        let number = held.last;
        held.notes.push(Numbered { number, note: note.clone() });
        Ok(note.clone())
    }

    fn notes(&self, limit: usize) -> Result<Vec<Note>, LibraryError> {
        let mut notes = self.held().notes.clone();
        notes.sort_by_key(|n| Reverse((n.note.updated, n.number)));
        Ok(notes.into_iter().take(limit).map(|n| n.note).collect())
    }

    fn remove(&self, note: &Note) -> Result<bool, LibraryError> {
        let mut held = self.held();
        let Some(at) = held.notes.iter().position(|n| n.note.id == note.id) else { return Ok(false) };
        let gone = held.notes.remove(at);
        held.vectors.remove(&gone.number);
        held.revision += 1;
        Ok(true)
    }

    fn bare(&self, embedder: &str, limit: usize) -> Result<Vec<Numbered>, LibraryError> {
        let held = self.held();
        let known = held.embedder.as_deref() == Some(embedder);
        let bare = held.notes.iter().rev().filter(|n| !known || !held.vectors.contains_key(&n.number));
        Ok(bare.take(limit).cloned().collect())
    }

    fn embed(&self, embedder: &str, vectors: &[(i64, Vec<f32>)]) -> Result<(), LibraryError> {
        let mut held = self.held();
        held.revision += 1;
        if held.embedder.as_deref() != Some(embedder) {
            held.vectors.clear();
            held.embedder = Some(embedder.to_owned());
        }
        for (number, vector) in vectors {
            if held.notes.iter().any(|n| n.number == *number) {
                held.vectors.insert(*number, vector.clone());
            }
        }
        Ok(())
    }

    fn searched(&self, known: Option<u64>) -> Result<Searched, LibraryError> {
        let held = self.held();
        Ok(match known {
            Some(known) if known == held.revision => Searched::Unchanged,
            _ => Searched::Notes(Snapshot {
                revision: held.revision,
                notes: held.notes.clone(),
                embedder: held.embedder.clone(),
                vectors: held.vectors.iter().map(|(number, vector)| (*number, vector.clone())).collect(),
            }),
        })
    }

    fn say(&self, whose: Whose<'_>, exchange: &Exchange) -> Result<(), LibraryError> {
        let key = (whose.session.to_owned(), whose.agent.to_owned());
        self.held().said.entry(key).or_default().push(exchange.clone());
        Ok(())
    }

    fn said(&self, whose: Whose<'_>, limit: usize) -> Result<Vec<Exchange>, LibraryError> {
        let key = (whose.session.to_owned(), whose.agent.to_owned());
        let held = self.held();
        let said = held.said.get(&key).map(Vec::as_slice).unwrap_or_default();
        Ok(said[said.len().saturating_sub(limit)..].to_vec())
    }

    fn unsay(&self, session: &str) -> Result<(), LibraryError> {
        self.held().said.retain(|(of, _), _| of != session);
        Ok(())
    }
}
