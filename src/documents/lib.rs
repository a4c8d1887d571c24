//! The user's documents, cut into passages, stored in one SQLite file, and searched by words and by meaning. Without
//! an embedder the search uses words alone.
//!
//! ```text
//! walk -> read -> (unchanged? by SHA-256) -> chunk -> embed, 50 at a time -> store, whole documents in one transaction
//! question -> words + vector -> two rankings -> fused -> (no word in common? widen) -> passages with their source
//! ```
//!
//! - [`walk`]: finds documents. [`format`](mod@format): converts those that are not plain text. [`chunk`]: cuts
//!   passages. `ingest`: adds what is new or changed, and removes what is gone.
//! - [`index`], [`words`], [`question`]: the search itself, used by the agent's notes too; [`caro_database`] opens
//!   the file.
//! - `query`: queries and answers. [`needs`]: decides whether a task asks for documents.
//!
//! Prints nothing and uses no language model. Nothing is opened before it is needed.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod chunk;
pub mod error;
pub mod format;
pub mod index;
mod ingest;
pub mod needs;
mod query;
pub mod question;
pub mod walk;
pub mod words;

pub use error::LibraryError;
pub use ingest::{Ingested, Options, Progress, Skipped};
pub use needs::needs_knowledge;
pub use query::{Answer, Hit, Times};

use caro_database::repair::{self, Repaired};
use caro_database::{self as database, Layout, file};
use caro_model::embed::Embedder;
use index::Index;
use rusqlite::{Connection, params};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const INDEX: Index = Index("chunks");

/// Documents and their passages. Numbers of documents are not reused; deleting a document deletes its passages.
const TABLES: &str = "
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, hash TEXT NOT NULL, kind TEXT NOT NULL,
        bytes INTEGER NOT NULL, indexed INTEGER NOT NULL);
    CREATE TABLE chunks (
        id INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
        first INTEGER NOT NULL, last INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL);
    CREATE INDEX chunks_of_document ON chunks(document);
";

/// The paths that the user has ingested. This table was added later, so it is created separately.
const ROOTS: &str = "CREATE TABLE IF NOT EXISTS roots (path TEXT PRIMARY KEY) WITHOUT ROWID;";

/// Returns the statements that create the tables.
fn tables() -> String {
    format!("{TABLES}{}", INDEX.layout())
}

const VERSION: i64 = 1;

/// The library in a file.
#[derive(Clone)]
pub struct Librarian {
    file: PathBuf,
    embedder: Option<Arc<dyn Embedder>>,
}

/// Statistics of a library.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// The number of documents.
    pub documents: usize,
    /// The number of their passages.
    pub chunks: usize,
    /// The number of passages that can be found by meaning.
    pub vectors: usize,
    /// Total size of the documents in bytes.
    pub bytes: u64,
    /// The number of documents by kind: `markdown`, `code`, `text`.
    pub kinds: std::collections::BTreeMap<String, usize>,
    /// The embedder of the vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedder: Option<String>,
    /// Size of the library file in bytes, including its write-ahead log.
    pub file_bytes: u64,
}

impl Librarian {
    /// Creates a handle for the library in `file`, which need not exist. Without an embedder it searches by words
    /// alone.
    pub fn new(file: PathBuf, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { file, embedder }
    }

    /// True if the file exists, so that something was ingested.
    pub fn exists(&self) -> bool {
        self.file.exists()
    }

    /// Recovers what can be read of a damaged file; the word index is rebuilt.
    ///
    /// # Errors
    /// If the disk prevents it.
    pub fn repair(&self) -> Result<Repaired, LibraryError> {
        let layout = tables();
        let words = |sql: &Connection| {
            let mut all = sql.prepare(
                "SELECT c.id, c.title, c.text, d.path FROM chunks c JOIN documents d ON d.id = c.document ORDER BY c.id",
            )?;
            let mut rows = all.query([])?;
            while let Some(row) = rows.next()? {
                let (title, body) = (file::text(row, 1)?, file::text(row, 2)?);
                let title = format!("{} {title}", ingest::file_words(&file::text(row, 3)?));
                INDEX.put(sql, &index::Passage { id: row.get(0)?, title: &title, body: &body, vector: None })?;
            }
            Ok(())
        };
        let prepare = |sql: &mut Connection| sql.execute_batch(ROOTS);
        Ok(repair::repair(&self.file, &Layout { tables: &layout, version: VERSION }, prepare, words)?)
    }

    /// Returns statistics of the library.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn stats(&self) -> Result<Stats, LibraryError> {
        error::on(&self.file, || self.read_stats())
    }

    fn read_stats(&self) -> Result<Stats, LibraryError> {
        let Some(sql) = self.reader()? else { return Ok(Stats::default()) };
        let mut stats = Stats { embedder: INDEX.embedder(&sql)?, ..Stats::default() };
        let mut kinds = sql.prepare("SELECT kind, count(*), sum(bytes) FROM documents GROUP BY kind")?;
        let mut rows = kinds.query([])?;
        while let Some(row) = rows.next()? {
            let count: usize = file::count(row, 1)?;
            stats.documents += count;
            stats.bytes += file::count::<u64>(row, 2)?;
            stats.kinds.insert(row.get(0)?, count);
        }
        (stats.chunks, stats.vectors) = (INDEX.passages(&sql)?, INDEX.vectors(&sql)?);
        let mut log = self.file.clone().into_os_string();
        log.push("-wal");
        let size = |file: &Path| std::fs::metadata(file).map_or(0, |meta| meta.len());
        stats.file_bytes = size(&self.file) + size(Path::new(&log));
        Ok(stats)
    }

    /// Returns the number of documents that are known at or below `path`, whether they still exist or not.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn known_below(&self, path: &Path) -> Result<usize, LibraryError> {
        error::on(&self.file, || {
            let Some(sql) = self.reader()? else { return Ok(0) };
            Ok(manifest(&sql)?.iter().filter(|known| Path::new(&known.path).starts_with(path)).count())
        })
    }

    /// Removes every document at or below `path`, or all for an empty path; returns their number.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remove(&self, path: &Path) -> Result<usize, LibraryError> {
        if !self.exists() {
            return Ok(0);
        }
        error::on(&self.file, || {
            let mut sql = self.writer()?;
            let tx = sql.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let ids: Vec<i64> =
                manifest(&tx)?.into_iter().filter(|d| Path::new(&d.path).starts_with(path)).map(|d| d.id).collect();
            for id in &ids {
                delete_document(&tx, *id)?;
            }
            for root in roots(&tx)?.iter().filter(|root| Path::new(root).starts_with(path)) {
                tx.execute("DELETE FROM roots WHERE path = ?1", [root])?;
            }
            if !ids.is_empty() {
                INDEX.purge(&tx)?;
            }
            tx.commit()?;
            if !ids.is_empty() {
                compact(&sql);
            }
            Ok(ids.len())
        })
    }

    fn writer(&self) -> Result<Connection, LibraryError> {
        let sql = file::write(&self.file, &Layout { tables: &tables(), version: VERSION })?;
        // checking takes no lock; writes only if the table is missing
        if !sql.table_exists(None, "roots")? {
            sql.execute_batch(ROOTS)?;
        }
        Ok(sql)
    }

    fn reader(&self) -> Result<Option<Connection>, LibraryError> {
        Ok(file::read(&self.file, &Layout { tables: "", version: VERSION })?)
    }
}

/// A document in the manifest.
struct KnownDocument {
    id: i64,
    path: String,
    hash: String,
    kind: String,
}

/// Returns all documents.
fn manifest(sql: &Connection) -> rusqlite::Result<Vec<KnownDocument>> {
    let mut all = sql.prepare("SELECT id, path, hash, kind FROM documents")?;
    let rows = all.query_map([], |row| {
        Ok(KnownDocument { id: row.get(0)?, path: row.get(1)?, hash: row.get(2)?, kind: row.get(3)? })
    })?;
    rows.collect()
}

/// Returns the paths that the user has ingested.
fn roots(sql: &Connection) -> rusqlite::Result<Vec<String>> {
    sql.prepare("SELECT path FROM roots")?.query_map([], |row| row.get(0))?.collect()
}

/// Removes deleted data from the files of the library.
fn compact(sql: &Connection) {
    database::shrink(sql);
    database::checkpoint(sql);
}

/// Removes a document with its passages.
fn delete_document(sql: &Connection, document: i64) -> rusqlite::Result<()> {
    let mut of = sql.prepare_cached("SELECT id FROM chunks WHERE document = ?1")?;
    let chunks: Vec<i64> = of.query_map([document], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for chunk in chunks {
        INDEX.remove(sql, chunk)?;
    }
    sql.prepare_cached("DELETE FROM chunks WHERE document = ?1")?.execute(params![document])?;
    sql.prepare_cached("DELETE FROM documents WHERE id = ?1")?.execute(params![document])?;
    Ok(())
}

#[cfg(test)]
mod tests;
