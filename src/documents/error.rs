//! Why documents and notes have no answer.

use caro_database::DatabaseError;
use std::path::Path;

/// Why a library has no answer.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// Its file has none.
    #[error(transparent)]
    File(#[from] DatabaseError),
    /// Nothing was ever put into it.
    #[error("{0}")]
    Empty(&'static str),
    /// Nothing was found that could take the place of what is there.
    #[error("nothing to read in was found, so what was there before is kept")]
    Nothing,
    /// The file or folder to be read is not there, or may not be read.
    #[error("{path}: {reason}")]
    Input {
        /// The file or folder.
        path: String,
        /// Why.
        reason: String,
    },
    /// There is nothing of that name.
    #[error("there is no note `{0}`")]
    Missing(String),
    /// The beginning of an id fits several.
    #[error("`{id}` fits several: {}", found.join(", "))]
    Ambiguous {
        /// The beginning.
        id: String,
        /// The ids that it fits.
        found: Vec<String>,
    },
    /// The text to be kept says nothing.
    #[error("{0}")]
    Blank(&'static str),
    /// It was stopped.
    #[error("stopped; what was finished until then is kept")]
    Cancelled,
    /// A server does not do what it should.
    #[error("{place}: {reason}")]
    Remote {
        /// Which server, without passwords.
        place: String,
        /// Why.
        reason: String,
    },
    /// A part of the program that is not in this build.
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
    /// The next thing to do.
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

    /// The same of this file: SQLite does not say which one it is about.
    #[must_use]
    pub fn at(self, file: &Path) -> Self {
        match self {
            Self::File(error) => Self::File(error.at(file)),
            other => other,
        }
    }
}

/// Does work on a file; what fails names it.
///
/// # Errors
/// As the work.
pub fn on<T>(file: &Path, work: impl FnOnce() -> Result<T, LibraryError>) -> Result<T, LibraryError> {
    work().map_err(|error| error.at(file))
}
