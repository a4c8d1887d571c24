//! The cache on disk: one SQLite file with the entries and a full-text index of their option lines. An unusable file
//! is moved aside and created anew, or replaced by a cache in memory.

use super::{Entry, ManualError};
use caro_database as database;
use rusqlite::{Connection, ErrorCode, OptionalExtension, params};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Increased whenever the tables, [`Entry`] or the parsing of texts change. Another number in the file means that
/// another version wrote it.
const SCHEMA: i64 = 5;
/// The time to wait for another process to finish writing.
const BUSY_TIMEOUT: Duration = Duration::from_millis(250);
/// The file's name in the cache folder.
const FILE: &str = "manual.db";

const TABLES: &str = "
    CREATE TABLE entries (
        key TEXT PRIMARY KEY, mtime INTEGER NOT NULL, size INTEGER NOT NULL, fetched INTEGER NOT NULL,
        first INTEGER NOT NULL, last INTEGER NOT NULL, body TEXT NOT NULL);
    CREATE VIRTUAL TABLE lines USING fts5(
        command, names, text, usage UNINDEXED, tokenize = 'porter unicode61');";

/// The state of the file that an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Modification time, in nanoseconds since 1970.
    pub(super) mtime: i64,
    /// Size in bytes.
    pub(super) size: i64,
}

/// A cached entry with the data that decides about its freshness.
#[derive(Debug, Clone)]
pub(super) struct CacheRow<E> {
    /// The state of the file it is about.
    pub(super) stamp: Stamp,
    /// The time when it was fetched, in seconds since 1970.
    pub(super) fetched: i64,
    /// The entry.
    pub(super) entry: E,
}

/// A line found by [`search`](super::Manual::search).
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Hit {
    /// The program.
    pub command: String,
    /// The option as its manual shows it; empty if the program as a whole matches.
    pub option: String,
    /// Its effect.
    pub text: String,
    /// The score (BM25 of SQLite); smaller is better.
    pub score: f64,
}

/// The open cache.
#[derive(Debug)]
pub(super) struct Store {
    connection: Connection,
    /// The path; `None` if in memory only.
    path: Option<PathBuf>,
}

impl Store {
    /// Opens the cache in `dir`, creating both if necessary; in memory if that fails.
    pub(super) fn open(dir: Option<&Path>) -> Result<Self, ManualError> {
        if let Some(dir) = dir
            && std::fs::create_dir_all(dir).is_ok()
        {
            let path = dir.join(FILE);
            let opened = connect(&path).or_else(|why| {
                if !is_unusable(&why) {
                    return Err(why);
                }
                set_aside(&path);
                connect(&path)
            });
            if let Ok(connection) = opened {
                return Ok(Self { connection, path: Some(path) });
            }
        }
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(TABLES)?;
        Ok(Self { connection, path: None })
    }

    /// The path; `None` if in memory only.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Runs an operation. If the file turns out to be damaged, creates it anew and repeats the operation once.
    fn with_recovery<T>(&mut self, work: impl Fn(&mut Connection) -> rusqlite::Result<T>) -> Result<T, ManualError> {
        match work(&mut self.connection) {
            Err(why) if is_unusable(&why) => {
                let dir = self.path.as_deref().and_then(Path::parent).map(Path::to_path_buf);
                if let Some(path) = &self.path {
                    set_aside(path);
                }
                *self = Self::open(dir.as_deref())?;
                Ok(work(&mut self.connection)?)
            }
            done => Ok(done?),
        }
    }

    /// Returns the entry stored under a key, however old.
    pub(super) fn get(&mut self, key: &str) -> Result<Option<CacheRow<Entry>>, ManualError> {
        self.with_recovery(|connection| {
            let mut query =
                connection.prepare_cached("SELECT mtime, size, fetched, body FROM entries WHERE key = ?1")?;
            let row = query
                .query_row([key], |row| {
                    let stamp = Stamp { mtime: row.get(0)?, size: row.get(1)? };
                    Ok((stamp, row.get::<_, i64>(2)?, row.get::<_, String>(3)?))
                })
                .optional()?;
            // an unreadable body counts as absent
            Ok(row.and_then(|(stamp, fetched, body)| {
                Some(CacheRow { stamp, fetched, entry: serde_json::from_str(&body).ok()? })
            }))
        })
    }

    /// Stores an entry, replacing an older one.
    pub(super) fn put(&mut self, key: &str, row: &CacheRow<&Entry>) -> Result<(), ManualError> {
        let entry = row.entry;
        let body = serde_json::to_string(entry).map_err(|why| ManualError::Store(why.to_string()))?;
        self.with_recovery(|connection| {
            let work = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            work.execute(
                "DELETE FROM lines WHERE rowid BETWEEN (SELECT first FROM entries WHERE key = ?1) \
                 AND (SELECT last FROM entries WHERE key = ?1)",
                [key],
            )?;
            let first: i64 = work.query_row("SELECT coalesce(max(last), 0) + 1 FROM entries", [], |row| row.get(0))?;
            let mut last = first;
            {
                let mut insert =
                    work.prepare_cached("INSERT INTO lines (rowid, command, names, text, usage) VALUES (?1, ?2, ?3, ?4, ?5)")?;
                let about = entry.man_summary.as_deref().unwrap_or_default();
                let about = if about.starts_with(&entry.title) { about.to_string() } else { format!("{}. {about}", entry.title) };
                insert.execute(params![last, entry.command, "", about, ""])?;
                for option in entry.options.iter().flat_map(|option| std::iter::once(option).chain(&option.forms)) {
                    last += 1;
                    let names = option.names().collect::<Vec<_>>().join(" ");
                    insert.execute(params![last, entry.command, names, option.text, option.usage()])?;
                }
            }
            work.execute(
                "INSERT OR REPLACE INTO entries (key, mtime, size, fetched, first, last, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![key, row.stamp.mtime, row.stamp.size, row.fetched, first, last, body],
            )?;
            work.commit()
        })
    }

    /// Returns the lines that share words with the text, best first.
    pub(super) fn search(&mut self, text: &str, limit: usize) -> Result<Vec<Hit>, ManualError> {
        let words: Vec<String> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .take(32)
            .map(|word| format!("\"{word}\""))
            .collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let query = words.join(" OR ");
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.with_recovery(|connection| {
            let mut search = connection.prepare_cached(
                "SELECT command, usage, text, bm25(lines, 2.0, 2.0, 1.0, 0.0) AS score FROM lines \
                 WHERE lines MATCH ?1 ORDER BY score LIMIT ?2",
            )?;
            let hits = search.query_map(params![query, limit], |row| {
                Ok(Hit { command: row.get(0)?, option: row.get(1)?, text: row.get(2)?, score: row.get(3)? })
            })?;
            hits.collect()
        })
    }

    /// Deletes all entries and returns their number.
    pub(super) fn clear(&mut self) -> Result<usize, ManualError> {
        self.with_recovery(|connection| {
            let work = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            work.execute("DELETE FROM lines", [])?;
            let count = work.execute("DELETE FROM entries", [])?;
            work.commit()?;
            connection.execute_batch("VACUUM")?;
            Ok(count)
        })
    }

    /// Returns the number of entries.
    pub(super) fn count(&mut self) -> Result<usize, ManualError> {
        let count: i64 = self
            .with_recovery(|connection| connection.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

/// Opens a file as a cache of this schema.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(path)?;
    database::enable_sharing(&connection, BUSY_TIMEOUT)?;
    match database::create_tables(&mut connection, TABLES, SCHEMA)? {
        SCHEMA => Ok(connection),
        _ => Err(rusqlite::Error::InvalidQuery),
    }
}

/// True if the file is unusable: damaged, no database, or of another schema.
fn is_unusable(why: &rusqlite::Error) -> bool {
    match why {
        rusqlite::Error::SqliteFailure(failure, message) => {
            matches!(failure.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
                || message
                    .as_deref()
                    .is_some_and(|m| m.starts_with("no such table") || m.starts_with("vtable constructor"))
        }
        rusqlite::Error::SqlInputError { msg, .. } => {
            msg.starts_with("no such table") || msg.starts_with("vtable constructor")
        }
        rusqlite::Error::InvalidQuery | rusqlite::Error::InvalidColumnType(..) => true,
        _ => false,
    }
}

/// Moves the file aside, with its log, replacing an older damaged file.
fn set_aside(path: &Path) {
    let aside = path.with_extension("db.damaged");
    if std::fs::rename(path, &aside).is_err() {
        let _ = std::fs::remove_file(path);
    }
    for log in ["db-wal", "db-shm"] {
        let _ = std::fs::remove_file(path.with_extension(log));
    }
}
