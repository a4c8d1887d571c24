//! The places for notes and conversations that there are, by their names in the configuration.

use super::backend::Backend;
use super::in_memory::InMemory;
use super::sqlite::Sqlite;
use caro_documents::LibraryError;
use std::path::PathBuf;
use std::sync::Arc;

/// The backends by their names in the configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// One file of this person.
    #[default]
    Sqlite,
    /// As long as the process lives.
    InMemory,
    /// A server, which several machines may share.
    Redis,
}

/// Every backend by its name.
pub const KINDS: [(&str, Kind); 3] = [("sqlite", Kind::Sqlite), ("in_memory", Kind::InMemory), ("redis", Kind::Redis)];

/// The place, as the configuration has it.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Which backend.
    pub kind: Kind,
    /// The file of notes of [`Kind::Sqlite`], conversations go beside it; without one, memory lasts as long as the process.
    pub file: Option<PathBuf>,
    /// The server of [`Kind::Redis`]: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]` or `redis+unix:///SOCKET`.
    pub url: Option<String>,
}

impl Place {
    /// The backend, and what the person is to be warned of: where the place is not named, notes and conversations last as
    /// long as the process. Connects to nothing.
    ///
    /// # Errors
    /// If this program was built without the backend, or the URL is none.
    pub fn open(&self) -> Result<(Arc<dyn Backend>, Option<&'static str>), LibraryError> {
        let ephemeral =
            |why: &'static str| -> Result<(Arc<dyn Backend>, _), _> { Ok((Arc::new(InMemory::default()), Some(why))) };
        match (self.kind, &self.file, &self.url) {
            (Kind::InMemory, ..) => Ok((Arc::new(InMemory::default()), None)),
            (Kind::Sqlite, Some(file), _) => Ok((Arc::new(Sqlite::new(file.clone())), None)),
            (Kind::Sqlite, None, _) => {
                ephemeral("this user has no home folder: what is remembered is forgotten when this ends")
            }
            (Kind::Redis, _, None) => {
                ephemeral("memory = redis, but no memory_url: what is remembered is forgotten when this ends")
            }
            (Kind::Redis, _, Some(url)) => redis(url),
        }
    }
}

#[cfg(feature = "redis")]
fn redis(url: &str) -> Result<(Arc<dyn Backend>, Option<&'static str>), LibraryError> {
    Ok((Arc::new(super::redis::Redis::new(url)?), None))
}

#[cfg(not(feature = "redis"))]
fn redis(_: &str) -> Result<(Arc<dyn Backend>, Option<&'static str>), LibraryError> {
    Err(LibraryError::NotBuilt { what: "memory = redis" })
}
