//! Errors of documents and notes.

use caro_database::DatabaseError;
use std::path::Path;

/// An error of a library.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// Its file cannot be used.
    #[error(transparent)]
    File(#[from] DatabaseError),
    /// It is empty.
    #[error("{0}")]
    Empty(&'static str),
    /// Nothing was found to replace the current content.
    #[error("nothing to read in was found, so what was there before is kept")]
    Nothing,
    /// The file or folder to be read does not exist, or may not be read.
    #[error("{path}: {reason}")]
    Input {
        /// The file or folder.
        path: String,
        /// The reason.
        reason: String,
    },
    /// There is no note with that name.
    #[error("there is no note `{0}`")]
    Missing(String),
    /// The prefix of an id matches several.
    #[error("`{id}` fits several: {}", found.join(", "))]
    Ambiguous {
        /// The prefix.
        id: String,
        /// The matching ids.
        found: Vec<String>,
    },
    /// The text to be stored is blank.
    #[error("{0}")]
    Blank(&'static str),
    /// It was stopped.
    #[error("stopped; what was finished until then is kept")]
    Cancelled,
    /// A server failed.
    #[error("{place}: {reason}")]
    Remote {
        /// The server, without passwords.
        place: String,
        /// The reason.
        reason: String,
    },
    /// A part of the program is not in this build.
    #[error("`{what}` is not in this build of caro")]
    NotBuilt {
        /// The part.
        what: &'static str,
    },
}

impl From<rusqlite::Error> for LibraryError {
    fn from(error: rusqlite::Error) -> Self {
        Self::File(error.into())
    }
}

impl LibraryError {
    /// Advice to the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File(error) => error.hint(),
            Self::Empty(_) => "`caro knowledge ingest DIR` reads a folder in",
            Self::Nothing => "name a folder that has documents; `caro knowledge rm --all` forgets everything",
            Self::Blank(_) => "`caro memory remember \"...\"` keeps a note, in plain words",
            Self::Input { .. } => "give a folder or file that exists and that you can read",
            Self::Missing(_) => "`caro memory list` shows what there is",
            Self::Ambiguous { .. } => "give more of the id",
            Self::Cancelled => "run it again: it goes on where it stopped",
            Self::Remote { .. } => "check that the server runs and memory_url names it: `caro config` shows it",
            Self::NotBuilt { .. } => "build it in with `cargo build --release --features redis`, or choose another",
        }
    }

    /// Adds the file's path, which SQLite does not report.
    #[must_use]
    pub fn at(self, file: &Path) -> Self {
        match self {
            Self::File(error) => Self::File(error.at(file)),
            other => other,
        }
    }
}

/// Runs an operation on a file; errors get the file's path.
///
/// # Errors
/// As the work.
pub fn on<T>(file: &Path, operation: impl FnOnce() -> Result<T, LibraryError>) -> Result<T, LibraryError> {
    operation().map_err(|error| error.at(file))
}
