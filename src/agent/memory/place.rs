//! Selects the backend for notes and conversations from the configuration.

use super::backend::Backend;
use super::in_memory::InMemory;
use super::sqlite::Sqlite;
use caro_documents::LibraryError;
use std::path::PathBuf;
use std::sync::Arc;

/// The kinds of backends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// Files of this user.
    #[default]
    Sqlite,
    /// The memory of this process.
    InMemory,
    /// A Redis server, which several machines may share.
    Redis,
}

/// All kinds with their names in the configuration.
pub const KINDS: [(&str, Kind); 3] = [("sqlite", Kind::Sqlite), ("in_memory", Kind::InMemory), ("redis", Kind::Redis)];

/// The configured backend.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The kind of backend.
    pub kind: Kind,
    /// The file of notes for [`Kind::Sqlite`]; conversations are stored beside it. Without it, memory lasts as long
    /// as the process.
    pub file: Option<PathBuf>,
    /// The server for [`Kind::Redis`]: `redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]` or `redis+unix:///SOCKET`.
    pub url: Option<String>,
}

impl Place {
    /// Returns the backend, and a warning for the user if the file or URL is missing and memory therefore lasts only
    /// as long as the process. Does not connect yet.
    ///
    /// # Errors
    /// If this program was built without the backend, or the URL is invalid.
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
