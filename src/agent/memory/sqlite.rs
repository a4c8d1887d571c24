//! One SQLite file, with the index of its notes in it. The layout of notes is also that of the index that the other
//! backends' notes are searched in.

use super::backend::{Backend, Numbered, Searched, Whose};
use super::note::{Category, Draft, Note};
use crate::agent::chat::Exchange;
use crate::agent::librarian::file::{self, Layout, LibraryError};
use crate::agent::librarian::index::{Index, Passage};
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};
use std::path::PathBuf;

/// The index of the notes.
pub const INDEX: Index = Index("notes");

const NOTES: &str = "
    CREATE TABLE notes (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, category TEXT NOT NULL,
        content TEXT NOT NULL, tags TEXT NOT NULL, files TEXT NOT NULL, run TEXT NOT NULL, created INTEGER NOT NULL,
        updated INTEGER NOT NULL);
";

/// Not in the first files of version 1, so it is made where it is missing.
const EXCHANGES: &str = "
    CREATE TABLE IF NOT EXISTS exchanges (
        number INTEGER PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, exchange TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS exchanges_of ON exchanges (session, agent, number);
";

const VERSION: i64 = 1;

/// The statements that make the tables of notes and their index.
pub fn layout() -> String {
    format!("{NOTES}{}", INDEX.layout())
}

/// The notes in a file.
#[derive(Debug)]
pub struct Sqlite {
    file: PathBuf,
}

impl Sqlite {
    /// The notes of `file`, which need not exist.
    pub fn new(file: PathBuf) -> Self {
        Self { file }
    }

    fn writer(&self) -> Result<Connection, LibraryError> {
        let sql = file::write(&self.file, &Layout { tables: &layout(), version: VERSION })?;
        sql.execute_batch(EXCHANGES)?;
        Ok(sql)
    }

    fn reader(&self) -> Result<Option<Connection>, LibraryError> {
        file::read(&self.file, &Layout { tables: "", version: VERSION })
    }
}

/// A transaction that nobody else writes in.
fn alone(sql: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    sql.transaction_with_behavior(TransactionBehavior::Immediate)
}

impl Backend for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn exists(&self) -> bool {
        self.file.exists()
    }

    fn keep(&self, note: &Note) -> Result<Note, LibraryError> {
        let mut sql = self.writer()?;
        let tx = alone(&mut sql)?;
        let known = notes(&tx, "WHERE title = ?1 AND content = ?2", params![note.draft.title, note.draft.content])?;
        let kept = match known.into_iter().next() {
            Some(Numbered { number, note: mut known }) => {
                tx.execute(
                    "UPDATE notes SET updated = ?2 WHERE number = ?1",
                    params![number, file::int(note.updated)],
                )?;
                known.updated = note.updated;
                known
            }
            None => {
                insert(&tx, None, note)?;
                note.clone()
            }
        };
        tx.commit()?;
        Ok(kept)
    }

    fn notes(&self, limit: usize) -> Result<Vec<Note>, LibraryError> {
        let Some(sql) = self.reader()? else { return Ok(Vec::new()) };
        let notes = notes(&sql, "ORDER BY updated DESC, number DESC LIMIT ?1", [file::int(limit)])?;
        Ok(notes.into_iter().map(|numbered| numbered.note).collect())
    }

    fn remove(&self, note: &Note) -> Result<bool, LibraryError> {
        let mut sql = self.writer()?;
        let tx = alone(&mut sql)?;
        let Some(found) = notes(&tx, "WHERE id = ?1", [&note.id])?.into_iter().next() else { return Ok(false) };
        INDEX.remove(&tx, found.number)?;
        tx.execute("DELETE FROM notes WHERE number = ?1", [found.number])?;
        tx.commit()?;
        Ok(true)
    }

    fn bare(&self, embedder: &str, limit: usize) -> Result<Vec<Numbered>, LibraryError> {
        let Some(sql) = self.reader()? else { return Ok(Vec::new()) };
        let bare = match INDEX.embedder(&sql)?.as_deref() == Some(embedder) {
            true => "WHERE number NOT IN (SELECT id FROM notes_vectors) ORDER BY number DESC LIMIT ?1",
            false => "ORDER BY number DESC LIMIT ?1",
        };
        Ok(notes(&sql, bare, [file::int(limit)])?)
    }

    fn embed(&self, embedder: &str, vectors: &[(i64, Vec<f32>)]) -> Result<(), LibraryError> {
        let mut sql = self.writer()?;
        let tx = alone(&mut sql)?;
        INDEX.use_embedder(&tx, embedder)?;
        for (number, vector) in vectors {
            if tx.prepare_cached("SELECT 1 FROM notes WHERE number = ?1")?.exists([number])? {
                INDEX.put_vector(&tx, *number, vector)?;
            }
        }
        Ok(tx.commit()?)
    }

    fn searched(&self, _: Option<u64>) -> Result<Searched, LibraryError> {
        Ok(self.reader()?.map_or(Searched::Nothing, Searched::Index))
    }

    fn say(&self, whose: Whose<'_>, exchange: &Exchange) -> Result<(), LibraryError> {
        let json = serde_json::json!(exchange).to_string();
        self.writer()?.execute(
            "INSERT INTO exchanges (session, agent, exchange) VALUES (?1, ?2, ?3)",
            [whose.session, whose.agent, &json],
        )?;
        Ok(())
    }

    fn said(&self, whose: Whose<'_>, limit: usize) -> Result<Vec<Exchange>, LibraryError> {
        let Some(sql) = self.reader()?.filter(|sql| sql.table_exists(None, "exchanges").unwrap_or(false)) else {
            return Ok(Vec::new());
        };
        let mut find = sql.prepare(
            "SELECT exchange FROM exchanges WHERE session = ?1 AND agent = ?2 ORDER BY number DESC LIMIT ?3",
        )?;
        let rows = find.query_map(params![whose.session, whose.agent, file::int(limit)], |row| row.get(0))?;
        let said: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
        // what another version has written is passed over
        Ok(said.iter().rev().filter_map(|json| serde_json::from_str(json).ok()).collect())
    }

    fn unsay(&self, session: &str) -> Result<(), LibraryError> {
        if self.file.exists() {
            self.writer()?.execute("DELETE FROM exchanges WHERE session = ?1", [session])?;
        }
        Ok(())
    }
}

/// Adds a note and its words, under its number or the next one.
///
/// # Errors
/// If SQLite fails.
pub fn insert(sql: &Connection, number: Option<i64>, note: &Note) -> rusqlite::Result<()> {
    let Note { id, draft, created, updated } = note;
    sql.prepare_cached("INSERT INTO notes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?.execute(params![
        number,
        id,
        draft.title,
        draft.category.name(),
        draft.content,
        draft.tags.join("\n"),
        draft.related_files.join("\n"),
        draft.run,
        file::int(*created),
        file::int(*updated)
    ])?;
    let title = format!("{} {}", draft.title, draft.tags.join(" "));
    INDEX.put(sql, &Passage { id: sql.last_insert_rowid(), title: &title, body: &draft.content, vector: None })
}

/// Notes with their numbers, as the end of a query says.
///
/// # Errors
/// If SQLite fails.
pub fn notes(sql: &Connection, end: &str, params: impl rusqlite::Params) -> rusqlite::Result<Vec<Numbered>> {
    let lines = |row: &Row<'_>, column: &str| -> rusqlite::Result<Vec<String>> {
        Ok(row.get::<_, String>(column)?.lines().map(str::to_owned).collect())
    };
    let mut find = sql.prepare_cached(&format!("SELECT * FROM notes {end}"))?;
    let rows = find.query_map(params, |row| {
        let draft = Draft {
            title: row.get("title")?,
            category: Category::of(&row.get::<_, String>("category")?),
            content: row.get("content")?,
            tags: lines(row, "tags")?,
            related_files: lines(row, "files")?,
            run: row.get("run")?,
        };
        let (created, updated) = (file::count(row, "created")?, file::count(row, "updated")?);
        Ok(Numbered { number: row.get("number")?, note: Note { id: row.get("id")?, draft, created, updated } })
    })?;
    rows.collect()
}
