//! The backend that keeps notes and conversations in this process only.

use super::backend::{Backend, ConversationKey, SearchSource, Snapshot, StoredNote};
use super::note::Note;
use crate::chat::{Exchange, Fold, Originals, Past};
use caro_documents::LibraryError;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Notes and conversations in memory.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    revision: u64,
    last: i64,
    notes: Vec<StoredNote>,
    embedder: Option<String>,
    vectors: BTreeMap<i64, Vec<f32>>,
    /// By session and agent.
    conversations: BTreeMap<(String, String), StoredConversation>,
}

#[derive(Debug, Default)]
struct StoredConversation {
    summary: String,
    /// Exchanges, and whether they are still part of the conversation.
    exchanges: Vec<(Exchange, bool)>,
}

impl InMemory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for InMemory {
    fn name(&self) -> &'static str {
        "in_memory"
    }

    fn exists(&self) -> bool {
        self.state().revision > 0
    }

    fn save(&self, note: &Note) -> Result<Note, LibraryError> {
        let mut state = self.state();
        state.revision += 1;
        let same =
            |n: &&mut StoredNote| n.note.draft.title == note.draft.title && n.note.draft.content == note.draft.content;
        if let Some(known) = state.notes.iter_mut().find(same) {
            known.note.merge(note);
            return Ok(known.note.clone());
        }
        state.last += 1;
        let number = state.last;
        state.notes.push(StoredNote { number, note: note.clone() });
        Ok(note.clone())
    }

    fn notes(&self, limit: usize) -> Result<Vec<Note>, LibraryError> {
        let mut notes = self.state().notes.clone();
        notes.sort_by_key(|n| Reverse((n.note.updated, n.number)));
        Ok(notes.into_iter().take(limit).map(|n| n.note).collect())
    }

    fn remove(&self, note: &Note) -> Result<bool, LibraryError> {
        let mut state = self.state();
        let Some(at) = state.notes.iter().position(|n| n.note.id == note.id) else { return Ok(false) };
        let removed = state.notes.remove(at);
        state.vectors.remove(&removed.number);
        state.revision += 1;
        Ok(true)
    }

    fn without_vectors(&self, embedder: &str, limit: usize) -> Result<Vec<StoredNote>, LibraryError> {
        let state = self.state();
        let known = state.embedder.as_deref() == Some(embedder);
        let bare = state.notes.iter().rev().filter(|n| !known || !state.vectors.contains_key(&n.number));
        Ok(bare.take(limit).cloned().collect())
    }

    fn embed(&self, embedder: &str, vectors: &[(i64, Vec<f32>)]) -> Result<(), LibraryError> {
        let mut state = self.state();
        state.revision += 1;
        if state.embedder.as_deref() != Some(embedder) {
            state.vectors.clear();
            state.embedder = Some(embedder.to_owned());
        }
        for (number, vector) in vectors {
            if state.notes.iter().any(|n| n.number == *number) {
                state.vectors.insert(*number, vector.clone());
            }
        }
        Ok(())
    }

    fn search_source(&self, known: Option<u64>) -> Result<SearchSource, LibraryError> {
        let state = self.state();
        Ok(match known {
            Some(known) if known == state.revision => SearchSource::Unchanged,
            _ => SearchSource::Notes(Snapshot {
                revision: state.revision,
                notes: state.notes.clone(),
                embedder: state.embedder.clone(),
                vectors: state.vectors.iter().map(|(number, vector)| (*number, vector.clone())).collect(),
            }),
        })
    }

    fn add_exchange(&self, key: ConversationKey<'_>, exchange: &Exchange) -> Result<(), LibraryError> {
        let mut state = self.state();
        let conversation = state.conversations.entry(owned_key(key)).or_default();
        match conversation.exchanges.iter_mut().find(|(known, _)| known.run == exchange.run) {
            Some(known) => *known = (exchange.clone(), true),
            None => conversation.exchanges.push((exchange.clone(), true)),
        }
        Ok(())
    }

    fn past(&self, key: ConversationKey<'_>, limit: usize) -> Result<Past, LibraryError> {
        let state = self.state();
        let Some(conversation) = state.conversations.get(&owned_key(key)) else { return Ok(Past::default()) };
        let active = conversation.exchanges.iter().filter(|(_, active)| *active).map(|(exchange, _)| exchange);
        let active: Vec<&Exchange> = active.collect();
        let exchanges = active[active.len().saturating_sub(limit)..].iter().map(|e| (*e).clone()).collect();
        Ok(Past { summary: conversation.summary.clone(), exchanges })
    }

    fn fold(&self, key: ConversationKey<'_>, fold: Fold<'_>) -> Result<(), LibraryError> {
        let mut state = self.state();
        let conversation = state.conversations.entry(owned_key(key)).or_default();
        if let Some(summary) = fold.summary {
            conversation.summary = summary.to_owned();
        }
        match fold.originals {
            Originals::Keep => {
                let out = conversation.exchanges.iter_mut().filter(|(e, _)| fold.runs.contains(&e.run));
                out.for_each(|e| e.1 = false);
            }
            Originals::Delete => conversation.exchanges.retain(|(e, _)| !fold.runs.contains(&e.run)),
        }
        Ok(())
    }

    fn forget_session(&self, session: &str) -> Result<bool, LibraryError> {
        let mut state = self.state();
        let count = state.conversations.len();
        state.conversations.retain(|(of, _), _| of != session);
        Ok(state.conversations.len() < count)
    }
}

fn owned_key(key: ConversationKey<'_>) -> (String, String) {
    (key.session.to_owned(), key.agent.to_owned())
}
