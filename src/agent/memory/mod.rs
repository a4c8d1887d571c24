//! Memory that outlives a run: notes of the user and notes made from runs, and conversations. Notes are searched with
//! the same index as documents.
//!
//! - [`Memory`]: stores, finds, lists and removes notes; stores, reads, folds and removes conversations.
//! - [`backend`]: the storage trait. `sqlite`: files, the default; `in_memory`: this process; `redis`: a server, with
//!   the feature of that name. `search`: the search, the same for every backend. `note`: the note types and limits.
//! - `taker`: makes notes from runs. `provider`: the prompt layer. [`Conversation`]: records a run's question and
//!   answer.
//!
//! Notes are untrusted data: they may contain text of files and models, so prompts fence them like other foreign text.

pub mod backend;
mod conversation;
mod in_memory;
mod note;
mod place;
mod provider;
#[cfg(feature = "redis")]
mod redis;
mod search;
mod sqlite;
mod taker;

pub use backend::{Backend, ConversationKey};
pub use conversation::Conversation;
pub use note::{Category, Draft, MAX_CONTENT_CHARS, MAX_TITLE_CHARS, Note, Recalled};
pub use place::{KINDS, Kind, Place};
pub use provider::Recall;
pub use sqlite::repair;
pub use taker::{NoteTaker, distil};

use super::chat::{Exchange, Fold, Past};
use caro_base::id;
use caro_documents::LibraryError;
use caro_model::embed::Embedder;
use search::Search;
use std::sync::Arc;
use std::time::SystemTime;

/// Most notes without a vector that are embedded when a note is stored.
const MAX_CATCH_UP: usize = 50;

/// Notes and conversations, stored in a backend.
#[derive(Clone)]
pub struct Memory {
    backend: Arc<dyn Backend>,
    embedder: Option<Arc<dyn Embedder>>,
    search: Arc<Search>,
}

impl Memory {
    /// Uses a backend. Without an embedder, notes are found by their words only.
    pub fn new(backend: Arc<dyn Backend>, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { backend, embedder, search: Arc::default() }
    }

    /// Uses the memory of this process; notes are found by their words.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(in_memory::InMemory::default()), None)
    }

    /// Returns the backend's name in the configuration.
    pub fn backend(&self) -> &'static str {
        self.backend.name()
    }

    /// False if it is known, without opening anything, that no note was ever stored.
    pub fn exists(&self) -> bool {
        self.backend.exists()
    }

    /// Stores a note. If a note with the same title and content exists, it is merged instead: its time is renewed,
    /// and it gets the new tags and files.
    ///
    /// # Errors
    /// If the note is empty or cannot be written.
    pub fn remember(&self, draft: Draft) -> Result<Note, LibraryError> {
        let (draft, now) = (draft.tidy()?, id::millis(SystemTime::now()));
        let note = self.backend.save(&Note { id: id::fresh("note"), draft, created: now, updated: now })?;
        self.catch_up()?;
        Ok(note)
    }

    /// Returns at most `limit` notes that match a text best.
    ///
    /// # Errors
    /// If the notes cannot be read.
    pub fn query(&self, text: &str, limit: usize) -> Result<Vec<Recalled>, LibraryError> {
        self.search.find(&*self.backend, text, self.embedder.as_deref(), limit)
    }

    /// Returns at most `limit` notes, the latest first.
    ///
    /// # Errors
    /// If the notes cannot be read.
    pub fn list(&self, limit: usize) -> Result<Vec<Note>, LibraryError> {
        self.backend.notes(limit)
    }

    /// Removes the only note whose id begins with `beginning`.
    ///
    /// # Errors
    /// If there is none or several, or the change cannot be written.
    pub fn forget(&self, beginning: &str) -> Result<Note, LibraryError> {
        let missing = || LibraryError::Missing(beginning.into());
        let note = match id::find_by_prefix(self.backend.notes(usize::MAX)?, beginning, |note| &note.id) {
            id::PrefixMatch::One(note) => note,
            id::PrefixMatch::None => return Err(missing()),
            id::PrefixMatch::Several(mut found) => {
                found.sort();
                found.truncate(6);
                return Err(LibraryError::Ambiguous { id: beginning.into(), found });
            }
        };
        if self.backend.remove(&note)? { Ok(note) } else { Err(missing()) }
    }

    /// Adds an exchange to a conversation, or replaces the one of the same run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add_exchange(&self, key: ConversationKey<'_>, exchange: &Exchange) -> Result<(), LibraryError> {
        self.backend.add_exchange(key, exchange)
    }

    /// Returns a conversation's summary and its latest exchanges, at most `limit`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn past(&self, key: ConversationKey<'_>, limit: usize) -> Result<Past, LibraryError> {
        self.backend.past(key, limit)
    }

    /// Removes exchanges from a conversation and sets its summary.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn fold(&self, key: ConversationKey<'_>, fold: Fold<'_>) -> Result<(), LibraryError> {
        self.backend.fold(key, fold)
    }

    /// Deletes all conversations of a session, of every agent. Returns true if there were any.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn forget_session(&self, session: &str) -> Result<bool, LibraryError> {
        self.backend.forget_session(session)
    }

    /// Embeds notes that have no vector: the new one, and those stored while there was no embedder.
    fn catch_up(&self) -> Result<(), LibraryError> {
        let Some(embedder) = &self.embedder else { return Ok(()) };
        let bare = self.backend.without_vectors(embedder.id(), MAX_CATCH_UP)?;
        if bare.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> =
            bare.iter().map(|n| format!("{}\n{}", n.note.draft.title, n.note.draft.content)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        // if embedding fails, the note is kept and found by its words only
        match embedder.embed(&texts) {
            Ok(vectors) if vectors.len() == bare.len() => {
                let vectors: Vec<_> = bare.iter().map(|n| n.number).zip(vectors).collect();
                self.backend.embed(embedder.id(), &vectors)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod tests;
