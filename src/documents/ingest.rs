//! Reading documents in: what is new, what has changed, what is gone.
//!
//! The manifest is the SHA-256 of each document. Documents are stored whole: a process that is killed leaves the old version
//! of a document or the new one, and the next run goes on with the others.

use super::chunk::{self, Kind};
use super::error::{self, LibraryError};
use super::format::Programs;
use super::index::Passage;
use super::walk::{self, Document, Found};
use super::{INDEX, Known, Librarian, forget, leave, manifest, roots as named_roots};
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

/// How many files that are no documents are named one by one.
const NAMED: usize = 20;

/// How to ingest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Forget everything else, once what is new is there.
    pub clean: bool,
    /// Cut every document so, instead of by its name.
    pub kind: Option<Kind>,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// So many files are to be looked at.
    Found(usize),
    /// So many of them are done, and so many passages stored.
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
    /// Why.
    pub reason: String,
}

/// What came of it. A second run over the same files has nothing but zeros, `unchanged` and `skipped` apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Ingested {
    /// Files read in, because they are new or have changed.
    pub files_processed: usize,
    /// Their passages.
    pub chunks_indexed: usize,
    /// Files and folders that could not be read; what was known of them stays.
    pub errors: usize,
    /// Of the files read in, those that had been before.
    pub updated: usize,
    /// Documents that are gone, or are none any more.
    pub removed: usize,
    /// Passages of unchanged documents that got a vector now.
    pub vectors_added: usize,
    /// Files that are as they were.
    pub unchanged: usize,
    /// Files that are no documents.
    pub skipped: usize,
    /// The first errors.
    pub failed: Vec<Skipped>,
    /// The first of the skipped.
    pub passed_over: Vec<Skipped>,
    /// Why there are no vectors, if an embedder was there and failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_vectors: Option<String>,
}

/// A document that is waiting to be stored.
struct Waiting {
    path: String,
    hash: String,
    kind: Kind,
    text: String,
    chunks: Vec<chunk::Chunk>,
    /// The number of its older version.
    replaces: Option<i64>,
}

impl Librarian {
    /// Reads in what is new or has changed below `roots`, and forgets what is gone from there.
    ///
    /// # Errors
    /// If a root cannot be read, the library cannot be written, or it is stopped; what was stored until then stays, but
    /// with [`Options::clean`] everything is as it was before, and so it is if anything could not be read.
    pub fn ingest(
        &self,
        roots: &[PathBuf],
        options: Options,
        cancel: &Cancel,
        on: &mut dyn FnMut(Progress),
    ) -> Result<Ingested, LibraryError> {
        error::on(&self.file, || self.read_in(roots, options, cancel, on))
    }

    fn read_in(
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
            named_below(&sql, roots, &mut found)?;
        }
        on(Progress::Found(found.files.len()));
        let mut work = Work {
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
            // one transaction: whoever asks meanwhile is answered from what was there before
            sql.execute_batch("BEGIN IMMEDIATE")?;
        }
        let end = work.all(roots, found);
        let done = work.done;
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
            leave(&sql);
        } else {
            // also where it was stopped: the next time there is nothing left to remove
            if done.updated + done.removed > 0 {
                INDEX.purge(&sql)?;
                leave(&sql);
            }
            end?;
        }
        Ok(done)
    }
}

struct Work<'a> {
    sql: &'a Connection,
    embedder: Option<&'a dyn Embedder>,
    options: Options,
    cancel: &'a Cancel,
    programs: Programs,
    on: &'a mut dyn FnMut(Progress),
    done: Ingested,
    files: usize,
    /// What the library has and the walk has not come to yet.
    known: BTreeMap<String, Known>,
}

impl Work<'_> {
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
            self.failed(path, reason.clone());
        }
        for path in found.secret.difference(&found.files) {
            self.pass_over(path, "it may hold keys or passwords; name the file itself to read it in");
        }
        let mut waiting = Vec::new();
        for path in &found.files {
            self.check()?;
            waiting.extend(self.look(path));
            if waiting.iter().map(|w: &Waiting| w.chunks.len()).sum::<usize>() >= BATCH {
                self.store(std::mem::take(&mut waiting))?;
            }
            self.files += 1;
            self.tell();
        }
        self.store(waiting)?;
        self.purge(roots, &found)?;
        self.fill()
    }

    fn check(&self) -> Result<(), LibraryError> {
        if self.cancel.is_cancelled() { Err(LibraryError::Cancelled) } else { Ok(()) }
    }

    fn tell(&mut self) {
        (self.on)(Progress::At { files: self.files, chunks: self.done.chunks_indexed });
    }

    fn failed(&mut self, path: &Path, reason: String) {
        self.done.errors += 1;
        if self.done.failed.len() < NAMED {
            self.done.failed.push(Skipped { path: path.display().to_string(), reason });
        }
    }

    fn pass_over(&mut self, path: &Path, reason: &str) {
        self.done.skipped += 1;
        if self.done.passed_over.len() < NAMED {
            self.done.passed_over.push(Skipped { path: path.display().to_string(), reason: reason.into() });
        }
    }

    /// Looks at one file: a document to be stored, if it is one and is not known as it is.
    fn look(&mut self, path: &Path) -> Option<Waiting> {
        let skipped = |work: &mut Self, reason: &str| {
            work.pass_over(path, reason);
            None
        };
        let Some(name) = path.to_str() else { return skipped(self, "its name is not UTF-8") };
        let text = match walk::read(path, &self.programs) {
            Ok(Document::Text(text)) => text,
            Ok(Document::Skipped(reason)) => return skipped(self, reason),
            Err(error) => {
                // what was known of it stays
                self.known.remove(name);
                self.failed(path, error.to_string());
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
        Some(Waiting { path: name.to_owned(), hash, kind, text, chunks, replaces })
    }

    /// Embeds and stores documents, all of them or none.
    fn store(&mut self, waiting: Vec<Waiting>) -> Result<(), LibraryError> {
        let mut vectors = Vec::new();
        let texts: Vec<String> = waiting
            .iter()
            .flat_map(|w| w.chunks.iter().map(|c| meaning(&w.path, &c.title, &w.text[c.range.clone()])))
            .collect();
        for batch in texts.chunks(BATCH) {
            self.check()?;
            let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
            vectors.extend(self.embed(&batch));
        }
        self.transaction(|work| {
            let mut vectors = vectors.iter();
            for document in &waiting {
                work.put(document, &mut vectors)?;
            }
            Ok(())
        })?;
        for document in &waiting {
            self.done.files_processed += 1;
            self.done.chunks_indexed += document.chunks.len();
            self.done.updated += usize::from(document.replaces.is_some());
        }
        Ok(())
    }

    fn put<'v>(
        &self,
        document: &Waiting,
        vectors: &mut impl Iterator<Item = &'v Vec<f32>>,
    ) -> Result<(), LibraryError> {
        let Waiting { path, hash, kind, text, chunks, replaces } = document;
        if let Some(old) = replaces {
            forget(self.sql, *old)?;
        }
        // another process may have stored it meanwhile
        let other: Option<i64> = {
            use rusqlite::OptionalExtension;
            let mut find = self.sql.prepare_cached("SELECT id FROM documents WHERE path = ?1")?;
            find.query_row([path], |row| row.get(0)).optional()?
        };
        if let Some(other) = other {
            forget(self.sql, other)?;
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

    /// The vectors of some texts; none if there is no embedder, or it failed once.
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

    /// Forgets what was not come to below the roots, unless that could not be looked into.
    fn purge(&mut self, roots: &[PathBuf], found: &Found) -> Result<(), LibraryError> {
        let hidden = |path: &Path| found.errors.iter().any(|(closed, _)| path.starts_with(closed));
        let gone: Vec<i64> = self
            .known
            .values()
            .filter(|d| roots.iter().any(|root| Path::new(&d.path).starts_with(root)) && !hidden(Path::new(&d.path)))
            .map(|d| d.id)
            .collect();
        self.transaction(|work| {
            for id in &gone {
                forget(work.sql, *id)?;
            }
            Ok(())
        })?;
        self.done.removed = gone.len();
        Ok(())
    }

    /// Gives vectors to passages that were stored without one.
    fn fill(&mut self) -> Result<(), LibraryError> {
        let mut last = 0;
        while self.embedder.is_some() {
            self.check()?;
            let bare: Vec<(i64, String)> = {
                let mut find = self.sql.prepare_cached(
                    "SELECT chunks.id, documents.path, chunks.title, chunks.text FROM chunks
                     JOIN documents ON documents.id = chunks.document
                     WHERE chunks.id > ?1 AND chunks.id NOT IN (SELECT id FROM chunks_vectors) ORDER BY chunks.id LIMIT ?2",
                )?;
                let rows = find.query_map([last, int(BATCH)], |row| {
                    let (path, title, text): (String, String, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
                    Ok((row.get(0)?, meaning(&path, &title, &text)))
                })?;
                rows.collect::<Result<_, _>>()?
            };
            let Some((highest, _)) = bare.last() else { break };
            last = *highest;
            let vectors = self.embed(&bare.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>());
            self.done.vectors_added += vectors.len();
            self.transaction(|work| {
                for ((id, _), vector) in bare.iter().zip(&vectors) {
                    INDEX.put_vector(work.sql, *id, vector)?;
                }
                Ok(())
            })?;
            self.tell();
        }
        Ok(())
    }

    /// Does something wholly or not at all; inside the one transaction where there is one.
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

/// Finds what a person once named itself below the roots, though a walk from there leaves it out.
fn named_below(sql: &Connection, roots: &[PathBuf], found: &mut Found) -> Result<(), LibraryError> {
    for named in named_roots(sql)?.into_iter().map(PathBuf::from) {
        let below = roots.iter().any(|root| named.starts_with(root) && named != *root);
        // what a link leads to is something else
        let is_there = below && std::fs::symlink_metadata(&named).is_ok_and(|meta| meta.is_file() || meta.is_dir());
        if is_there && let Err(error) = walk::find(&named, found) {
            found.errors.push((named, error.to_string()));
        }
    }
    Ok(())
}

/// What a passage means: its text under its title, or under its file's name if it has none.
fn meaning(path: &str, title: &str, text: &str) -> String {
    let title = if title.is_empty() { file_words(path) } else { title.to_owned() };
    format!("{title}\n{}", text.trim())
}

/// The words of a file's name and of the folder it is in.
pub(super) fn file_words(path: &str) -> String {
    let path = Path::new(path);
    let name = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let folder = name(path.parent().and_then(Path::file_name));
    format!("{folder} {}", name(path.file_stem())).replace(['_', '-', '.'], " ").trim().to_owned()
}
