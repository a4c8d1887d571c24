//! The work of a place for notes and conversations.
//!
//! A backend stores and gives back, and decides nothing: what is a note, what is found and in which order, and what of a
//! conversation is told is the same on each of them. Nothing is copied from one to another.

use super::note::Note;
use crate::chat::{Exchange, Fold, Past};
use caro_documents::LibraryError;
use rusqlite::Connection;

/// A note, and its number: of two notes the later one has the higher.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct StoredNote {
    /// The number, from 1.
    pub number: i64,
    /// The note.
    #[serde(flatten)]
    pub note: Note,
}

/// Whose conversation: one session may be several agents', and each knows its own alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationKey<'a> {
    /// The session.
    pub session: &'a str,
    /// The agent's name.
    pub agent: &'a str,
}

/// Every note of a backend, to be searched.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Another one after each change.
    pub revision: u64,
    /// The notes.
    pub notes: Vec<StoredNote>,
    /// The embedder that the vectors are of.
    pub embedder: Option<String>,
    /// Vectors by the number of their note.
    pub vectors: Vec<(i64, Vec<f32>)>,
}

/// What a search reads.
#[derive(Debug)]
pub enum SearchSource {
    /// Nothing was ever kept.
    Nothing,
    /// The notes and their index, which the backend keeps itself.
    Index(Connection),
    /// The notes as they are now.
    Notes(Snapshot),
    /// The notes as they were at the revision that was known.
    Unchanged,
}

/// A place for notes and conversations. Several processes may use it at once; each method is one change, or none.
///
/// # Errors
/// Every method fails if the place cannot be reached, read or written.
pub trait Backend: Send + Sync {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// False if it is known, without opening anything, that no note was ever kept.
    fn exists(&self) -> bool;

    /// Keeps a note. One with the same title and content is there but once: it is said [`again`](Note::again), and is what
    /// returns.
    fn keep(&self, note: &Note) -> Result<Note, LibraryError>;

    /// The notes, the latest first, at most `limit`; of two of the same time, the one with the higher number.
    fn notes(&self, limit: usize) -> Result<Vec<Note>, LibraryError>;

    /// Removes a note; false if it is not there.
    fn remove(&self, note: &Note) -> Result<bool, LibraryError>;

    /// Notes that have no vector of this embedder, the last ones first, at most `limit`.
    fn bare(&self, embedder: &str, limit: usize) -> Result<Vec<StoredNote>, LibraryError>;

    /// Gives notes vectors by their numbers. Those of another embedder are dropped; a note that is gone gets none.
    fn embed(&self, embedder: &str, vectors: &[(i64, Vec<f32>)]) -> Result<(), LibraryError>;

    /// What a search reads; `known` is the revision of the snapshot that the caller has.
    fn searched(&self, known: Option<u64>) -> Result<SearchSource, LibraryError>;

    /// Adds an exchange to a conversation; that of a run that is there already takes its place.
    fn say(&self, whose: ConversationKey<'_>, exchange: &Exchange) -> Result<(), LibraryError>;

    /// What is remembered of a conversation: its summary, and the latest exchanges, at most `limit`.
    fn past(&self, whose: ConversationKey<'_>, limit: usize) -> Result<Past, LibraryError>;

    /// Has exchanges fall out of a conversation: all that the fold says or nothing. Those that are kept stay stored, and
    /// are told no more.
    fn fold(&self, whose: ConversationKey<'_>, fold: Fold<'_>) -> Result<(), LibraryError>;

    /// Forgets what was said in a session, to whichever agent.
    fn unsay(&self, session: &str) -> Result<(), LibraryError>;
}
