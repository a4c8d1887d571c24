//! Notes and conversations that last as long as the process.

use super::backend::{Backend, ConversationKey, SearchSource, Snapshot, StoredNote};
use super::note::Note;
use crate::chat::{Exchange, Fold, Originals, Past};
use caro_documents::LibraryError;
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
    notes: Vec<StoredNote>,
    embedder: Option<String>,
    vectors: BTreeMap<i64, Vec<f32>>,
    /// By session and agent.
    said: BTreeMap<(String, String), Said>,
}

#[derive(Debug, Default)]
struct Said {
    summary: String,
    /// Exchanges, and whether they are told.
    exchanges: Vec<(Exchange, bool)>,
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
            |n: &&mut StoredNote| n.note.draft.title == note.draft.title && n.note.draft.content == note.draft.content;
        if let Some(known) = held.notes.iter_mut().find(same) {
            known.note.again(note);
            return Ok(known.note.clone());
        }
        held.last += 1;
        let number = held.last;
        held.notes.push(StoredNote { number, note: note.clone() });
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

    fn bare(&self, embedder: &str, limit: usize) -> Result<Vec<StoredNote>, LibraryError> {
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

    fn searched(&self, known: Option<u64>) -> Result<SearchSource, LibraryError> {
        let held = self.held();
        Ok(match known {
            Some(known) if known == held.revision => SearchSource::Unchanged,
            _ => SearchSource::Notes(Snapshot {
                revision: held.revision,
                notes: held.notes.clone(),
                embedder: held.embedder.clone(),
                vectors: held.vectors.iter().map(|(number, vector)| (*number, vector.clone())).collect(),
            }),
        })
    }

    fn say(&self, whose: ConversationKey<'_>, exchange: &Exchange) -> Result<(), LibraryError> {
        let mut held = self.held();
        let said = held.said.entry(key(whose)).or_default();
        match said.exchanges.iter_mut().find(|(known, _)| known.run == exchange.run) {
            Some(known) => *known = (exchange.clone(), true),
            None => said.exchanges.push((exchange.clone(), true)),
        }
        Ok(())
    }

    fn past(&self, whose: ConversationKey<'_>, limit: usize) -> Result<Past, LibraryError> {
        let held = self.held();
        let Some(said) = held.said.get(&key(whose)) else { return Ok(Past::default()) };
        let told: Vec<&Exchange> = said.exchanges.iter().filter(|(_, told)| *told).map(|(e, _)| e).collect();
        let exchanges = told[told.len().saturating_sub(limit)..].iter().map(|e| (*e).clone()).collect();
        Ok(Past { summary: said.summary.clone(), exchanges })
    }

    fn fold(&self, whose: ConversationKey<'_>, fold: Fold<'_>) -> Result<(), LibraryError> {
        let mut held = self.held();
        let said = held.said.entry(key(whose)).or_default();
        if let Some(summary) = fold.summary {
            said.summary = summary.to_owned();
        }
        match fold.originals {
            Originals::Keep => {
                said.exchanges.iter_mut().filter(|(e, _)| fold.runs.contains(&e.run)).for_each(|e| e.1 = false)
            }
            Originals::Delete => said.exchanges.retain(|(e, _)| !fold.runs.contains(&e.run)),
        }
        Ok(())
    }

    fn unsay(&self, session: &str) -> Result<(), LibraryError> {
        self.held().said.retain(|(of, _), _| of != session);
        Ok(())
    }
}

fn key(whose: ConversationKey<'_>) -> (String, String) {
    (whose.session.to_owned(), whose.agent.to_owned())
}
