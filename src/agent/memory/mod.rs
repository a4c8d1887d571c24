//! Notes that outlive a run: what the person wants remembered, and what runs have learnt. Kept in one SQLite file of their
//! own, searched by the same index as documents.
//!
//! - [`Memory`]: remember, query, forget, list. `taker`: what of a run is worth a note. `provider`: the layer of a prompt.
//!
//! Notes are data. They may hold words of files and models, so they enter a prompt fenced like any other text of others.

mod provider;
mod taker;

pub use provider::Recall;
pub use taker::{NoteTaker, distil};

use super::id;
use super::librarian::file::{self, Layout, LibraryError};
use super::librarian::index::{Index, Passage};
use super::librarian::question::{Question, nothing_shared};
use crate::model::embed::Embedder;
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// The most characters of a title.
pub const TITLE: usize = 80;

/// The most characters of a note.
pub const CONTENT: usize = 4000;

/// Notes without a vector that one new note makes up for.
const CATCH_UP: usize = 50;

const INDEX: Index = Index("notes");

const TABLES: &str = "
    CREATE TABLE notes (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, category TEXT NOT NULL,
        content TEXT NOT NULL, tags TEXT NOT NULL, files TEXT NOT NULL, run TEXT NOT NULL, created INTEGER NOT NULL,
        updated INTEGER NOT NULL);
";

const VERSION: i64 = 1;

/// What kind of thing a note tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Something that is so.
    #[default]
    Insight,
    /// Something that one knew too late.
    Hindsight,
    /// What was wrong, and what mended it.
    BugFix,
    /// How something is built.
    Architecture,
    /// Text to be used again.
    Snippet,
}

impl Category {
    /// Every category by its name.
    pub const ALL: [(&'static str, Self); 5] = [
        ("insight", Self::Insight),
        ("hindsight", Self::Hindsight),
        ("bug_fix", Self::BugFix),
        ("architecture", Self::Architecture),
        ("snippet", Self::Snippet),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    fn of(name: &str) -> Self {
        Self::ALL.iter().find(|(n, _)| *n == name).map_or(Self::default(), |(_, category)| *category)
    }
}

/// A note that is not kept yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// At most [`TITLE`] characters; made of the content if it is empty.
    pub title: String,
    /// What kind of thing it tells.
    pub category: Category,
    /// What it tells, at most [`CONTENT`] characters.
    pub content: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Files it is about.
    pub related_files: Vec<String>,
    /// The run it comes from, if it comes from one.
    pub run: String,
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Its id, `note_...`.
    pub id: String,
    /// What it says.
    #[serde(flatten)]
    pub draft: Draft,
    /// Milliseconds since 1970, UTC.
    pub created: u64,
    /// When it was said last, likewise.
    pub updated: u64,
}

/// A note that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recalled {
    /// The note.
    #[serde(flatten)]
    pub note: Note,
    /// How well it fits, 0 to 1, as in [`Hit::score`](super::librarian::Hit::score).
    pub score: f64,
}

/// The notes in a file.
#[derive(Clone)]
pub struct Memory {
    file: PathBuf,
    embedder: Option<Arc<dyn Embedder>>,
}

impl Memory {
    /// The notes of `file`, which need not exist. Without an embedder they are found by their words alone.
    pub fn new(file: PathBuf, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { file, embedder }
    }

    /// True if something was ever remembered. Looks at the name only.
    pub fn exists(&self) -> bool {
        self.file.exists()
    }

    /// Keeps a note. What was said before in the same words is not kept twice: its time is renewed.
    ///
    /// # Errors
    /// If it is empty or cannot be written.
    pub fn remember(&self, draft: Draft) -> Result<Note, LibraryError> {
        let draft = tidy(draft)?;
        let mut sql = self.writer()?;
        let now = id::millis(SystemTime::now());
        let known = notes(&sql, "WHERE title = ?1 AND content = ?2", params![draft.title, draft.content])?;
        if let Some((number, mut note)) = known.into_iter().next() {
            sql.execute("UPDATE notes SET updated = ?2 WHERE number = ?1", params![number, file::int(now)])?;
            note.updated = now;
            return Ok(note);
        }
        let note = Note { id: id::fresh("note"), draft, created: now, updated: now };
        // computed before the file is locked
        let vector = self.vectors(&[&note]).and_then(|mut vectors| vectors.pop());
        let tx = sql.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        if let Some(embedder) = &self.embedder {
            INDEX.use_embedder(&tx, embedder.id())?;
        }
        let Note { id, draft, created, updated } = &note;
        tx.execute(
            "INSERT INTO notes (id, title, category, content, tags, files, run, created, updated)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                id,
                draft.title,
                draft.category.name(),
                draft.content,
                draft.tags.join("\n"),
                draft.related_files.join("\n"),
                draft.run,
                file::int(*created),
                file::int(*updated)
            ],
        )?;
        let title = format!("{} {}", draft.title, draft.tags.join(" "));
        let number = tx.last_insert_rowid();
        INDEX.put(&tx, &Passage { id: number, title: &title, body: &draft.content, vector: vector.as_deref() })?;
        tx.commit()?;
        self.catch_up(&mut sql)?;
        Ok(note)
    }

    /// The notes that fit a text best, at most `limit`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn query(&self, text: &str, limit: usize) -> Result<Vec<Recalled>, LibraryError> {
        let Some(sql) = self.reader()? else { return Ok(Vec::new()) };
        let question = Question::of(text, INDEX, &sql, self.embedder.as_deref())?;
        let sql = sql.unchecked_transaction()?;
        let mut found = question.ask(INDEX, &sql, limit)?;
        if nothing_shared(&found) {
            let wider = question.ask_wider(INDEX, &sql, limit)?;
            found = if wider.is_empty() { found } else { wider };
        }
        let mut recalled = Vec::new();
        for found in &found {
            let notes = notes(&sql, "WHERE number = ?1", [found.at.id])?;
            recalled.extend(notes.into_iter().map(|(_, note)| Recalled { note, score: found.score() }));
        }
        Ok(recalled)
    }

    /// Every note, the latest first, at most `limit`.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn list(&self, limit: usize) -> Result<Vec<Note>, LibraryError> {
        let Some(sql) = self.reader()? else { return Ok(Vec::new()) };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let notes = notes(&sql, "ORDER BY updated DESC, number DESC LIMIT ?1", [limit])?;
        Ok(notes.into_iter().map(|(_, note)| note).collect())
    }

    /// Forgets the one note whose id begins so.
    ///
    /// # Errors
    /// If there is none or several, or it cannot be written.
    pub fn forget(&self, beginning: &str) -> Result<Note, LibraryError> {
        let missing = || LibraryError::Missing(beginning.into());
        if !self.exists() || beginning.is_empty() {
            return Err(missing());
        }
        let mut sql = self.writer()?;
        let tx = sql.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let mut found = notes(&tx, "WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT 6", [beginning])?;
        let at = match found.iter().position(|(_, note)| note.id == beginning) {
            Some(exact) => exact,
            None if found.len() > 1 => {
                let found = found.into_iter().map(|(_, note)| note.id).collect();
                return Err(LibraryError::Ambiguous { id: beginning.into(), found });
            }
            None if found.is_empty() => return Err(missing()),
            None => 0,
        };
        let (number, note) = found.swap_remove(at);
        INDEX.remove(&tx, number)?;
        tx.execute("DELETE FROM notes WHERE number = ?1", [number])?;
        tx.commit()?;
        Ok(note)
    }

    /// Gives vectors to notes that were kept while there was no embedder.
    fn catch_up(&self, sql: &mut Connection) -> Result<(), LibraryError> {
        if self.embedder.is_none() {
            return Ok(());
        }
        let bare = notes(sql, "WHERE number NOT IN (SELECT id FROM notes_vectors) LIMIT ?1", [file::int(CATCH_UP)])?;
        let Some(vectors) = self.vectors(&bare.iter().map(|(_, note)| note).collect::<Vec<_>>()) else { return Ok(()) };
        let tx = sql.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for ((number, _), vector) in bare.iter().zip(vectors) {
            INDEX.put_vector(&tx, *number, &vector)?;
        }
        Ok(tx.commit()?)
    }

    /// The vectors of notes, if there is an embedder and it works.
    fn vectors(&self, notes: &[&Note]) -> Option<Vec<Vec<f32>>> {
        let embedder = self.embedder.as_ref()?;
        let texts: Vec<String> = notes.iter().map(|n| format!("{}\n{}", n.draft.title, n.draft.content)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        embedder.embed(&texts).ok().filter(|vectors| vectors.len() == texts.len())
    }

    fn writer(&self) -> Result<Connection, LibraryError> {
        file::write(&self.file, &Layout { tables: &format!("{TABLES}{}", INDEX.layout()), version: VERSION })
    }

    fn reader(&self) -> Result<Option<Connection>, LibraryError> {
        file::read(&self.file, &Layout { tables: "", version: VERSION })
    }
}

/// A draft within its limits.
fn tidy(mut draft: Draft) -> Result<Draft, LibraryError> {
    let cut = |text: &str, limit: usize| text.trim().chars().take(limit).collect::<String>();
    draft.content = cut(&draft.content, CONTENT);
    if draft.content.is_empty() {
        return Err(LibraryError::Empty("there is nothing to remember"));
    }
    let first = draft.content.lines().next().unwrap_or_default();
    draft.title =
        cut(if draft.title.trim().is_empty() { first } else { draft.title.lines().next().unwrap_or_default() }, TITLE);
    for list in [&mut draft.tags, &mut draft.related_files] {
        for item in list.iter_mut() {
            *item = cut(&item.replace(['\n', '\r'], " "), 200);
        }
        list.retain(|item| !item.is_empty());
        list.truncate(20);
    }
    Ok(draft)
}

/// Notes with their numbers, as the end of a query says.
fn notes(sql: &Connection, end: &str, params: impl rusqlite::Params) -> rusqlite::Result<Vec<(i64, Note)>> {
    let lines = |row: &Row<'_>, column: &str| -> rusqlite::Result<Vec<String>> {
        Ok(row.get::<_, String>(column)?.lines().map(str::to_owned).collect())
    };
    let mut find = sql.prepare(&format!("SELECT * FROM notes {end}"))?;
    let rows = find.query_map(params, |row| {
        let draft = Draft {
            title: row.get("title")?,
            category: Category::of(&row.get::<_, String>("category")?),
            content: row.get("content")?,
            tags: lines(row, "tags")?,
            related_files: lines(row, "files")?,
            run: row.get("run")?,
        };
        Ok((
            row.get("number")?,
            Note {
                id: row.get("id")?,
                draft,
                created: file::count(row, "created")?,
                updated: file::count(row, "updated")?,
            },
        ))
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests;
