//! Ingests documents: adds what is new or changed, and removes what is gone.
//!
//! The manifest has the SHA-256 of each document. Documents are stored as a whole: if the process is killed, each
//! document is in its old or its new version, and the next run continues with the others.

use super::chunk::{self, Kind};
use super::error::{self, LibraryError};
use super::format::Programs;
use super::index::Passage;
use super::walk::{self, Document, Found};
use super::{INDEX, KnownDocument, Librarian, compact, delete_document, manifest, roots as named_roots};
use caro_base::id;
use caro_database::file::int;
use caro_model::embed::Embedder;
use caro_model::{Cancel, ModelError};
use rusqlite::{Connection, TransactionBehavior, params};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Passages that are embedded and stored together.
const BATCH: usize = 50;

/// Most skipped files or errors that are listed individually.
const MAX_LISTED: usize = 20;

/// Options of an ingestion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Remove everything else once the new documents are stored.
    pub clean: bool,
    /// The kind of all documents, instead of that by their names.
    pub kind: Option<Kind>,
}

/// Progress reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The number of files to read.
    Found(usize),
    /// The numbers of files that are done and of passages that are stored.
    At {
        /// Files.
        files: usize,
        /// Passages.
        chunks: usize,
    },
}

/// A file that is no document, or could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The file.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// The result. For a second run over the same files everything but `unchanged` and `skipped` is zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Ingested {
    /// The number of files that were ingested, because they are new or changed.
    pub files_processed: usize,
    /// The number of their passages.
    pub chunks_indexed: usize,
    /// The number of files and folders that could not be read; what is stored of them stays.
    pub errors: usize,
    /// The number of ingested files that replaced an older version.
    pub updated: usize,
    /// The number of documents that are gone, or are no documents any more.
    pub removed: usize,
    /// The number of passages of unchanged documents that got a vector.
    pub vectors_added: usize,
    /// The number of unchanged files.
    pub unchanged: usize,
    /// The number of files that are no documents.
    pub skipped: usize,
    /// The first errors.
    pub failed: Vec<Skipped>,
    /// The first skipped files.
    pub passed_over: Vec<Skipped>,
    /// The reason why there are no vectors, if an embedder failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_vectors: Option<String>,
}

/// A document to be stored.
struct Pending {
    path: String,
    hash: String,
    kind: Kind,
    text: String,
    chunks: Vec<chunk::Chunk>,
    /// The id of its older version.
    replaces: Option<i64>,
}

impl Librarian {
    /// Ingests what is new or changed below `roots`, and removes what is gone from there.
    ///
    /// # Errors
    /// If a root cannot be read, the library cannot be written, or it is stopped. What was stored until then stays;
    /// with [`Options::clean`] everything is unchanged, also if any file could not be read.
    pub fn ingest(
        &self,
        roots: &[PathBuf],
        options: Options,
        cancel: &Cancel,
        on: &mut dyn FnMut(Progress),
    ) -> Result<Ingested, LibraryError> {
        error::on(&self.file, || self.ingest_all(roots, options, cancel, on))
    }

    fn ingest_all(
        &self,
        roots: &[PathBuf],
        options: Options,
        cancel: &Cancel,
        on: &mut dyn FnMut(Progress),
    ) -> Result<Ingested, LibraryError> {
        let mut found = Found::default();
        for root in roots {
            walk::find(root, &mut found)?;
        }
        let sql = self.writer()?;
        if !options.clean {
            find_named(&sql, roots, &mut found)?;
        }
        on(Progress::Found(found.files.len()));
        let mut run = Run {
            sql: &sql,
            embedder: self.embedder.as_deref(),
            options,
            cancel,
            programs: Programs::find(),
            on,
            done: Ingested::default(),
            files: 0,
            known: BTreeMap::new(),
        };
        if options.clean {
            // one transaction, so that readers see the old content meanwhile
            sql.execute_batch("BEGIN IMMEDIATE")?;
        }
        let end = run.all(roots, found);
        let done = run.done;
        if options.clean {
            let keep = end.is_ok() && done.errors == 0 && done.chunks_indexed > 0;
            sql.execute_batch(if keep { "COMMIT" } else { "ROLLBACK" })?;
            end?;
            if let Some(Skipped { path, reason }) = done.failed.first() {
                let reason = format!("{reason}; what was there before is kept");
                return Err(LibraryError::Input { path: path.clone(), reason });
            }
            if !keep {
                return Err(LibraryError::Nothing);
            }
            compact(&sql);
        } else {
            // even if it was stopped, as the next run would find nothing to remove
            if done.updated + done.removed > 0 {
                INDEX.purge(&sql)?;
                compact(&sql);
            }
            end?;
        }
        Ok(done)
    }
}

struct Run<'a> {
    sql: &'a Connection,
    embedder: Option<&'a dyn Embedder>,
    options: Options,
    cancel: &'a Cancel,
    programs: Programs,
    on: &'a mut dyn FnMut(Progress),
    done: Ingested,
    files: usize,
    /// The documents in the library that the walk has not reached yet.
    known: BTreeMap<String, KnownDocument>,
}

impl Run<'_> {
    fn all(&mut self, roots: &[PathBuf], found: Found) -> Result<(), LibraryError> {
        if self.options.clean {
            INDEX.clear(self.sql)?;
            self.sql.execute_batch("DELETE FROM chunks; DELETE FROM documents; DELETE FROM roots;")?;
        }
        self.transaction(|work| {
            for root in roots.iter().filter_map(|root| root.to_str()) {
                work.sql.execute("INSERT OR IGNORE INTO roots VALUES (?1)", [root])?;
            }
            Ok(())
        })?;
        if let Some(embedder) = self.embedder {
            let id = embedder.id().to_owned();
            self.transaction(|work| Ok(INDEX.use_embedder(work.sql, &id)?))?;
        }
        self.known = manifest(self.sql)?.into_iter().map(|d| (d.path.clone(), d)).collect();
        for (path, reason) in &found.errors {
            self.add_failure(path, reason.clone());
        }
        for path in found.secret.difference(&found.files) {
            self.skip(path, "it may hold keys or passwords; name the file itself to read it in");
        }
        let mut pending = Vec::new();
        for path in &found.files {
            self.check_cancelled()?;
            pending.extend(self.read(path));
            if pending.iter().map(|w: &Pending| w.chunks.len()).sum::<usize>() >= BATCH {
                self.store(std::mem::take(&mut pending))?;
            }
            self.files += 1;
            self.report();
        }
        self.store(pending)?;
        self.purge(roots, &found)?;
        self.add_missing_vectors()
    }

    fn check_cancelled(&self) -> Result<(), LibraryError> {
        if self.cancel.is_cancelled() { Err(LibraryError::Cancelled) } else { Ok(()) }
    }

    fn report(&mut self) {
        (self.on)(Progress::At { files: self.files, chunks: self.done.chunks_indexed });
    }

    fn add_failure(&mut self, path: &Path, reason: String) {
        self.done.errors += 1;
        if self.done.failed.len() < MAX_LISTED {
            self.done.failed.push(Skipped { path: path.display().to_string(), reason });
        }
    }

    fn skip(&mut self, path: &Path, reason: &str) {
        self.done.skipped += 1;
        if self.done.passed_over.len() < MAX_LISTED {
            self.done.passed_over.push(Skipped { path: path.display().to_string(), reason: reason.into() });
        }
    }

    /// Reads a file and returns the document to be stored, if it is one and has changed.
    fn read(&mut self, path: &Path) -> Option<Pending> {
        let skipped = |work: &mut Self, reason: &str| {
            work.skip(path, reason);
            None
        };
        let Some(name) = path.to_str() else { return skipped(self, "its name is not UTF-8") };
        let text = match walk::read(path, &self.programs) {
            Ok(Document::Text(text)) => text,
            Ok(Document::Skipped(reason)) => return skipped(self, reason),
            Err(error) => {
                // its stored version stays
                self.known.remove(name);
                self.add_failure(path, error.to_string());
                return None;
            }
        };
        let kind = self.options.kind.unwrap_or_else(|| Kind::of(path));
        let hash = id::hash(&text);
        let known = self.known.remove(name);
        if known.as_ref().is_some_and(|k| k.hash == hash && k.kind == kind.name()) {
            self.done.unchanged += 1;
            return None;
        }
        let chunks = chunk::chunks(kind, &text);
        let replaces = known.map(|k| k.id);
        Some(Pending { path: name.to_owned(), hash, kind, text, chunks, replaces })
    }

    /// Embeds and stores documents in one transaction.
    fn store(&mut self, pending: Vec<Pending>) -> Result<(), LibraryError> {
        let mut vectors = Vec::new();
        let texts: Vec<String> = pending
            .iter()
            .flat_map(|w| w.chunks.iter().map(|c| embedded_text(&w.path, &c.title, &w.text[c.range.clone()])))
            .collect();
        for batch in texts.chunks(BATCH) {
            self.check_cancelled()?;
            let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
            vectors.extend(self.embed(&batch));
        }
        self.transaction(|work| {
            let mut vectors = vectors.iter();
            for document in &pending {
                work.put(document, &mut vectors)?;
            }
            Ok(())
        })?;
        for document in &pending {
            self.done.files_processed += 1;
            self.done.chunks_indexed += document.chunks.len();
            self.done.updated += usize::from(document.replaces.is_some());
        }
        Ok(())
    }

    fn put<'v>(
        &self,
        document: &Pending,
        vectors: &mut impl Iterator<Item = &'v Vec<f32>>,
    ) -> Result<(), LibraryError> {
        let Pending { path, hash, kind, text, chunks, replaces } = document;
        if let Some(old) = replaces {
            delete_document(self.sql, *old)?;
        }
        // another process may have stored it meanwhile
        let other: Option<i64> = {
            use rusqlite::OptionalExtension;
            let mut find = self.sql.prepare_cached("SELECT id FROM documents WHERE path = ?1")?;
            find.query_row([path], |row| row.get(0)).optional()?
        };
        if let Some(other) = other {
            delete_document(self.sql, other)?;
        }
        let now = id::millis(SystemTime::now());
        self.sql
            .prepare_cached("INSERT INTO documents (path, hash, kind, bytes, indexed) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![path, hash, kind.name(), int(text.len()), int(now)])?;
        let number = self.sql.last_insert_rowid();
        for chunk in chunks {
            let body = text[chunk.range.clone()].trim_end().trim_start_matches(['\n', '\r']);
            self.sql
                .prepare_cached("INSERT INTO chunks (document, first, last, title, text) VALUES (?1, ?2, ?3, ?4, ?5)")?
                .execute(params![number, int(chunk.first), int(chunk.last), chunk.title, body])?;
            let id = self.sql.last_insert_rowid();
            let title = format!("{} {}", file_words(path), chunk.title);
            let vector = vectors.next().map(Vec::as_slice);
            INDEX.put(self.sql, &Passage { id, title: &title, body, vector })?;
        }
        Ok(())
    }

    /// Returns the vectors of texts; none if there is no embedder, or it has failed before.
    fn embed(&mut self, texts: &[&str]) -> Vec<Vec<f32>> {
        let Some(embedder) = self.embedder else { return Vec::new() };
        let vectors = embedder.embed(texts).and_then(|vectors| match vectors.len() == texts.len() {
            true => Ok(vectors),
            false => Err(ModelError::Engine("it returned another number of vectors".into())),
        });
        vectors.unwrap_or_else(|error| {
            self.embedder = None;
            self.done.without_vectors = Some(error.to_string());
            Vec::new()
        })
    }

    /// Removes documents below the roots that the walk did not find, except in folders that could not be read.
    fn purge(&mut self, roots: &[PathBuf], found: &Found) -> Result<(), LibraryError> {
        let hidden = |path: &Path| found.errors.iter().any(|(closed, _)| path.starts_with(closed));
        let removed: Vec<i64> = self
            .known
            .values()
            .filter(|d| roots.iter().any(|root| Path::new(&d.path).starts_with(root)) && !hidden(Path::new(&d.path)))
            .map(|d| d.id)
            .collect();
        self.transaction(|work| {
            for id in &removed {
                delete_document(work.sql, *id)?;
            }
            Ok(())
        })?;
        self.done.removed = removed.len();
        Ok(())
    }

    /// Adds vectors to passages that were stored without one.
    fn add_missing_vectors(&mut self) -> Result<(), LibraryError> {
        let mut last = 0;
        while self.embedder.is_some() {
            self.check_cancelled()?;
            let without_vector: Vec<(i64, String)> = {
                let mut find = self.sql.prepare_cached(
                    "SELECT chunks.id, documents.path, chunks.title, chunks.text FROM chunks
                     JOIN documents ON documents.id = chunks.document
                     WHERE chunks.id > ?1 AND chunks.id NOT IN (SELECT id FROM chunks_vectors) ORDER BY chunks.id LIMIT ?2",
                )?;
                let rows = find.query_map([last, int(BATCH)], |row| {
                    let (path, title, text): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
                    Ok((row.get(0)?, embedded_text(&path, &title, &text)))
                })?;
                rows.collect::<Result<_, _>>()?
            };
            let Some((highest, _)) = without_vector.last() else { break };
            last = *highest;
            let vectors = self.embed(&without_vector.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>());
            self.done.vectors_added += vectors.len();
            self.transaction(|work| {
                for ((id, _), vector) in without_vector.iter().zip(&vectors) {
                    INDEX.put_vector(work.sql, *id, vector)?;
                }
                Ok(())
            })?;
            self.report();
        }
        Ok(())
    }

    /// Runs an operation in a transaction, or as part of the single one of a clean run.
    fn transaction(&mut self, work: impl FnOnce(&mut Self) -> Result<(), LibraryError>) -> Result<(), LibraryError> {
        if self.options.clean {
            return work(self);
        }
        let sql = self.sql;
        let tx = rusqlite::Transaction::new_unchecked(sql, TransactionBehavior::Immediate)?;
        work(self)?;
        Ok(tx.commit()?)
    }
}

/// Adds paths below the roots that the user once ingested explicitly, though a walk from there skips them.
fn find_named(sql: &Connection, roots: &[PathBuf], found: &mut Found) -> Result<(), LibraryError> {
    for named in named_roots(sql)?.into_iter().map(PathBuf::from) {
        let below = roots.iter().any(|root| named.starts_with(root) && named != *root);
        // a symbolic link is something else
        let is_there = below && std::fs::symlink_metadata(&named).is_ok_and(|meta| meta.is_file() || meta.is_dir());
        if is_there && let Err(error) = walk::find(&named, found) {
            found.errors.push((named, error.to_string()));
        }
    }
    Ok(())
}

/// Returns the text to embed for a passage: its text under its title, or under its file's name if it has none.
fn embedded_text(path: &str, title: &str, text: &str) -> String {
    let title = if title.is_empty() { file_words(path) } else { title.to_owned() };
    format!("{title}\n{}", text.trim())
}

/// Returns the words of a file's name and of its folder.
pub(super) fn file_words(path: &str) -> String {
    let path = Path::new(path);
    let name = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let folder = name(path.parent().and_then(Path::file_name));
    format!("{folder} {}", name(path.file_stem())).replace(['_', '-', '.'], " ").trim().to_owned()
}
