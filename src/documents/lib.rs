//! The person's own documents, cut into passages, kept in one SQLite file and searched by words and by
//! meaning. Works without an embedder too, by words alone.
//!
//! ```text
//! walk -> read -> (unchanged? by SHA-256) -> chunk -> embed, 50 at a time -> store, whole documents in one transaction
//! question -> words + vector -> two rankings -> fused -> (no word in common? widen) -> passages with their source
//! ```
//!
//! - [`walk`]: which files are documents. [`format`](mod@format): those that are no plain text. [`chunk`]: passages. `ingest`: what is new, changed or gone.
//! - [`index`], [`words`], [`question`]: the search itself, which the agent's notes use too; [`caro_database`] opens the file.
//! - `query`: questions and answers. [`needs`]: whether a task asks one.
//!
//! Prints nothing; asks no language model. Nothing is opened before it is asked for.
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

/// Documents and their passages. A document's number never comes back, and with it its passages go.
const TABLES: &str = "
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, hash TEXT NOT NULL, kind TEXT NOT NULL,
        bytes INTEGER NOT NULL, indexed INTEGER NOT NULL);
    CREATE TABLE chunks (
        id INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
        first INTEGER NOT NULL, last INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL);
    CREATE INDEX chunks_of_document ON chunks(document);
";

/// What a person has named to be read in. The table came later than the others and stands beside them.
const ROOTS: &str = "CREATE TABLE IF NOT EXISTS roots (path TEXT PRIMARY KEY) WITHOUT ROWID;";

/// The layout of the file.
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

/// What there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Documents.
    pub documents: usize,
    /// Their passages.
    pub chunks: usize,
    /// Passages that can be found by meaning.
    pub vectors: usize,
    /// Bytes of the documents.
    pub bytes: u64,
    /// Documents by kind: `markdown`, `code`, `text`.
    pub kinds: std::collections::BTreeMap<String, usize>,
    /// Whose vectors they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedder: Option<String>,
    /// Bytes of the library itself, with what its write-ahead log has.
    pub file_bytes: u64,
}

impl Librarian {
    /// The library of `file`, which need not exist. Without an embedder it searches by words alone.
    pub fn new(file: PathBuf, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { file, embedder }
    }

    /// True if something was ever ingested. Looks at the name only.
    pub fn exists(&self) -> bool {
        self.file.exists()
    }

    /// Saves what can be read of a damaged file; the words of its passages are indexed anew.
    ///
    /// # Errors
    /// If the disk does not let it be done.
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

    /// What there is.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn stats(&self) -> Result<Stats, LibraryError> {
        error::on(&self.file, || self.counted())
    }

    fn counted(&self) -> Result<Stats, LibraryError> {
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

    /// How many documents are known at or below `path`, whether they are still there or not.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn known_below(&self, path: &Path) -> Result<usize, LibraryError> {
        error::on(&self.file, || {
            let Some(sql) = self.reader()? else { return Ok(0) };
            Ok(manifest(&sql)?.iter().filter(|known| Path::new(&known.path).starts_with(path)).count())
        })
    }

    /// Removes every document at or below `path`, all there are for an empty one; tells how many.
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
            let gone: Vec<i64> =
                manifest(&tx)?.into_iter().filter(|d| Path::new(&d.path).starts_with(path)).map(|d| d.id).collect();
            for id in &gone {
                forget(&tx, *id)?;
            }
            for root in roots(&tx)?.iter().filter(|root| Path::new(root).starts_with(path)) {
                tx.execute("DELETE FROM roots WHERE path = ?1", [root])?;
            }
            if !gone.is_empty() {
                INDEX.purge(&tx)?;
            }
            tx.commit()?;
            if !gone.is_empty() {
                leave(&sql);
            }
            Ok(gone.len())
        })
    }

    fn writer(&self) -> Result<Connection, LibraryError> {
        let sql = file::write(&self.file, &Layout { tables: &tables(), version: VERSION })?;
        // a look takes no lock: only who finds nothing writes
        if !sql.table_exists(None, "roots")? {
            sql.execute_batch(ROOTS)?;
        }
        Ok(sql)
    }

    fn reader(&self) -> Result<Option<Connection>, LibraryError> {
        Ok(file::read(&self.file, &Layout { tables: "", version: VERSION })?)
    }
}

/// A document as the manifest has it.
struct Known {
    id: i64,
    path: String,
    hash: String,
    kind: String,
}

/// Every document.
fn manifest(sql: &Connection) -> rusqlite::Result<Vec<Known>> {
    let mut all = sql.prepare("SELECT id, path, hash, kind FROM documents")?;
    let rows = all
        .query_map([], |row| Ok(Known { id: row.get(0)?, path: row.get(1)?, hash: row.get(2)?, kind: row.get(3)? }))?;
    rows.collect()
}

/// What a person has named to be read in.
fn roots(sql: &Connection) -> rusqlite::Result<Vec<String>> {
    sql.prepare("SELECT path FROM roots")?.query_map([], |row| row.get(0))?.collect()
}

/// Has what was removed leave the files of the library.
fn leave(sql: &Connection) {
    database::shrink(sql);
    database::settle(sql);
}

/// Removes a document with its passages.
fn forget(sql: &Connection, document: i64) -> rusqlite::Result<()> {
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
