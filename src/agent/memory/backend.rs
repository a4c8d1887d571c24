//! The storage interface for notes and conversations.
//!
//! A backend only stores and returns data. What a note is, search results and their order, and which exchanges of a
//! conversation are returned are the same for every backend. Nothing is copied from one backend to another.

use super::note::Note;
use crate::chat::{Exchange, Fold, Past};
use caro_documents::LibraryError;
use rusqlite::Connection;

/// A note with its number; later notes have higher numbers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StoredNote {
    /// The number, from 1.
    pub number: i64,
    /// The note.
    #[serde(flatten)]
    pub note: Note,
}

/// Identifies a conversation. Several agents may share a session; each has its own conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationKey<'a> {
    /// The session.
    pub session: &'a str,
    /// The agent's name.
    pub agent: &'a str,
}

/// All notes of a backend, for searching.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Changes with every change of the notes.
    pub revision: u64,
    /// The notes.
    pub notes: Vec<StoredNote>,
    /// The embedder that made the vectors.
    pub embedder: Option<String>,
    /// The vectors, with the numbers of their notes.
    pub vectors: Vec<(i64, Vec<f32>)>,
}

/// The data that a search reads.
#[derive(Debug)]
pub enum SearchSource {
    /// No note was ever stored.
    Nothing,
    /// The notes with an index that the backend maintains.
    Index(Connection),
    /// The current notes.
    Notes(Snapshot),
    /// The notes have not changed since the revision that the caller knows.
    Unchanged,
}

/// A store for notes and conversations. Several processes may use it concurrently; each method is atomic.
///
/// # Errors
/// Every method fails if the store cannot be reached, read or written.
pub trait Backend: Send + Sync {
    /// Returns the backend's name in the configuration.
    fn name(&self) -> &'static str;

    /// False if it is known, without opening anything, that no note was ever stored.
    fn exists(&self) -> bool;

    /// Stores a note. If there is one with the same title and content, both are merged. Returns the stored note.
    fn save(&self, note: &Note) -> Result<Note, LibraryError>;

    /// Returns at most `limit` notes, the latest first; of the same time, the higher number first.
    fn notes(&self, limit: usize) -> Result<Vec<Note>, LibraryError>;

    /// Removes a note; false if it does not exist.
    fn remove(&self, note: &Note) -> Result<bool, LibraryError>;

    /// Returns at most `limit` notes that have no vector of this embedder, the latest first.
    fn without_vectors(&self, embedder: &str, limit: usize) -> Result<Vec<StoredNote>, LibraryError>;

    /// Stores the vectors of notes, given by number. Vectors of another embedder are deleted; those of removed notes
    /// are ignored.
    fn embed(&self, embedder: &str, vectors: &[(i64, Vec<f32>)]) -> Result<(), LibraryError>;

    /// Returns the data for a search; `known` is the revision of the snapshot that the caller has.
    fn search_source(&self, known: Option<u64>) -> Result<SearchSource, LibraryError>;

    /// Adds an exchange to a conversation, or replaces the one of the same run.
    fn add_exchange(&self, key: ConversationKey<'_>, exchange: &Exchange) -> Result<(), LibraryError>;

    /// Returns a conversation's summary and its latest exchanges, at most `limit`.
    fn past(&self, key: ConversationKey<'_>, limit: usize) -> Result<Past, LibraryError>;

    /// Removes exchanges from a conversation and sets its summary, atomically. With [`crate::chat::Originals::Keep`]
    /// the exchanges stay stored but are no longer returned.
    fn fold(&self, key: ConversationKey<'_>, fold: Fold<'_>) -> Result<(), LibraryError>;

    /// Deletes all conversations of a session, of every agent.
    fn forget_session(&self, session: &str) -> Result<bool, LibraryError>;
}
