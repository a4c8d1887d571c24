//! What outlives a run: notes of what the person wants remembered and of what runs have learnt, and what was said in
//! conversations. Notes are searched by the same index as documents.
//!
//! - [`Memory`]: remember, query, forget, list; say, past, fold, unsay.
//! - [`backend`]: where all of it is kept: one trait. `sqlite`: a file, the default; `in_memory`: this process; `redis`: a
//!   server, with the feature of that name. `search`: what is found, the same on each of them. `note`: what a note is.
//! - `taker`: what of a run is worth a note. `provider`: the layer of a prompt. [`Conversation`]: what is kept of a run's
//!   question and answer.
//!
//! Notes are data. They may hold words of files and models, so they enter a prompt fenced like any other text of others.

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
pub use note::{CONTENT, Category, Draft, Note, Recalled, TITLE};
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

/// Notes without a vector that one new note makes up for.
const CATCH_UP: usize = 50;

/// The notes and conversations of a backend.
#[derive(Clone)]
pub struct Memory {
    backend: Arc<dyn Backend>,
    embedder: Option<Arc<dyn Embedder>>,
    search: Arc<Search>,
}

impl Memory {
    /// Those of a backend. Without an embedder notes are found by their words alone.
    pub fn new(backend: Arc<dyn Backend>, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { backend, embedder, search: Arc::default() }
    }

    /// Those of this process, forgotten with it, found by their words.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(in_memory::InMemory::default()), None)
    }

    /// The name of the backend, as in the configuration.
    pub fn backend(&self) -> &'static str {
        self.backend.name()
    }

    /// False if it is known, without opening anything, that nothing was ever remembered.
    pub fn exists(&self) -> bool {
        self.backend.exists()
    }

    /// Keeps a note. What was said before in the same words is not kept twice: its time is renewed, and it gets the tags and
    /// files that it did not have.
    ///
    /// # Errors
    /// If it is empty or cannot be written.
    pub fn remember(&self, draft: Draft) -> Result<Note, LibraryError> {
        let (draft, now) = (draft.tidy()?, id::millis(SystemTime::now()));
        let note = self.backend.keep(&Note { id: id::fresh("note"), draft, created: now, updated: now })?;
        self.catch_up()?;
        Ok(note)
    }

    /// The notes that fit a text best, at most `limit`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn query(&self, text: &str, limit: usize) -> Result<Vec<Recalled>, LibraryError> {
        self.search.find(&*self.backend, text, self.embedder.as_deref(), limit)
    }

    /// Every note, the latest first, at most `limit`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn list(&self, limit: usize) -> Result<Vec<Note>, LibraryError> {
        self.backend.notes(limit)
    }

    /// Forgets the one note whose id begins so.
    ///
    /// # Errors
    /// If there is none or several, or it cannot be written.
    pub fn forget(&self, beginning: &str) -> Result<Note, LibraryError> {
        let missing = || LibraryError::Missing(beginning.into());
        let note = match id::begun(self.backend.notes(usize::MAX)?, beginning, |note| &note.id) {
            id::Begun::One(note) => note,
            id::Begun::None => return Err(missing()),
            id::Begun::Several(mut found) => {
                found.sort();
                found.truncate(6);
                return Err(LibraryError::Ambiguous { id: beginning.into(), found });
            }
        };
        if self.backend.remove(&note)? { Ok(note) } else { Err(missing()) }
    }

    /// Adds an exchange to a conversation.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn say(&self, whose: ConversationKey<'_>, exchange: &Exchange) -> Result<(), LibraryError> {
        self.backend.say(whose, exchange)
    }

    /// What is remembered of a conversation: its summary, and the latest exchanges, at most `limit`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn past(&self, whose: ConversationKey<'_>, limit: usize) -> Result<Past, LibraryError> {
        self.backend.past(whose, limit)
    }

    /// Has exchanges fall out of a conversation.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn fold(&self, whose: ConversationKey<'_>, fold: Fold<'_>) -> Result<(), LibraryError> {
        self.backend.fold(whose, fold)
    }

    /// Forgets what was said in a session, to whichever agent.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn unsay(&self, session: &str) -> Result<(), LibraryError> {
        self.backend.unsay(session)
    }

    /// Gives vectors to notes that have none: the one just kept, and those that were kept while there was no embedder.
    fn catch_up(&self) -> Result<(), LibraryError> {
        let Some(embedder) = &self.embedder else { return Ok(()) };
        let bare = self.backend.bare(embedder.id(), CATCH_UP)?;
        if bare.is_empty() {
            return Ok(());
        }
        let texts: Vec<String> =
            bare.iter().map(|n| format!("{}\n{}", n.note.draft.title, n.note.draft.content)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        // an embedder that fails costs meaning, not the note
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
