//! SQLite files: one of notes, with their index in it, and one of conversations. The layout of notes is also that of the index that the other
//! backends' notes are searched in.

use super::backend::{Backend, ConversationKey, SearchSource, StoredNote};
use super::note::{Category, Draft, Note};
use crate::chat::{Exchange, Fold, Originals, Past};
use caro_database as database;
use caro_database::file::{self, Layout};
use caro_database::repair::{self, Repaired};
use caro_documents::error::{self, LibraryError};
use caro_documents::index::{Index, Passage};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::path::{Path, PathBuf};

/// The index of the notes.
pub const INDEX: Index = Index("notes");

/// Selects every note, by its number, with all that it is searched by.
pub const TEXTS: &str = "SELECT number, title || ' ' || tags || ' ' || content FROM notes";

const NOTES: &str = "
    CREATE TABLE notes (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, category TEXT NOT NULL,
        content TEXT NOT NULL, tags TEXT NOT NULL, files TEXT NOT NULL, run TEXT NOT NULL, created INTEGER NOT NULL,
        updated INTEGER NOT NULL);
";

const SAID: &str = "
    CREATE TABLE exchanges (
        number INTEGER PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, run TEXT NOT NULL, asked TEXT NOT NULL,
        answered TEXT NOT NULL, active INTEGER NOT NULL DEFAULT 1, UNIQUE (session, agent, run));
    CREATE TABLE summaries (
        session TEXT NOT NULL, agent TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (session, agent)) WITHOUT ROWID;
";

const VERSION: i64 = 1;

/// The statements that make the tables of notes and their index.
pub fn layout() -> String {
    format!("{NOTES}{}", INDEX.layout())
}

/// Notes in a file, conversations in another beside it: who throws one away keeps the other.
#[derive(Debug)]
pub struct Sqlite {
    notes: PathBuf,
    said: PathBuf,
}

impl Sqlite {
    /// The notes of `file`, which need not exist, and the conversations of `conversations.db` in its folder.
    pub fn new(file: PathBuf) -> Self {
        Self { said: file.with_file_name("conversations.db"), notes: file }
    }

    fn writer(&self) -> Result<Connection, LibraryError> {
        Ok(file::write(&self.notes, &Layout { tables: &layout(), version: VERSION })?)
    }

    fn reader(&self) -> Result<Option<Connection>, LibraryError> {
        Ok(file::read(&self.notes, &Layout { tables: "", version: VERSION })?)
    }

    fn teller(&self) -> Result<Connection, LibraryError> {
        Ok(file::write(&self.said, &Layout { tables: SAID, version: VERSION })?)
    }
}

/// Saves what can be read of damaged notes and of damaged conversations beside them; each with its file.
///
/// # Errors
/// If the disk does not let it be done.
pub fn repair(notes: &Path) -> Result<Vec<(PathBuf, Repaired)>, LibraryError> {
    let Sqlite { notes: file, said } = Sqlite::new(notes.to_owned());
    let words = |sql: &Connection| {
        for StoredNote { number, note } in self::notes(sql, "ORDER BY number", [])? {
            INDEX.put(sql, &passage(number, &note.draft, &title(&note.draft)))?;
        }
        Ok(())
    };
    let kept = repair::repair(&file, &Layout { tables: &layout(), version: VERSION }, |_| Ok(()), words)?;
    let told = repair::repair(&said, &Layout { tables: SAID, version: VERSION }, |_| Ok(()), |_| Ok(()))?;
    Ok(vec![(file, kept), (said, told)])
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
        self.notes.exists()
    }

    fn keep(&self, note: &Note) -> Result<Note, LibraryError> {
        error::on(&self.notes, || {
            let mut sql = self.writer()?;
            let tx = alone(&mut sql)?;
            let known = notes(&tx, "WHERE title = ?1 AND content = ?2", params![note.draft.title, note.draft.content])?;
            let kept = match known.into_iter().next() {
                Some(StoredNote { number, note: mut known }) => {
                    known.again(note);
                    let Note { draft, updated, .. } = &known;
                    let (category, tags, files) =
                        (draft.category.name(), draft.tags.join("\n"), draft.related_files.join("\n"));
                    tx.execute(
                        "UPDATE notes SET updated = ?2, category = ?3, tags = ?4, files = ?5 WHERE number = ?1",
                        params![number, file::int(*updated), category, tags, files],
                    )?;
                    INDEX.reword(&tx, &passage(number, draft, &title(draft)))?;
                    known
                }
                None => {
                    insert(&tx, None, note)?;
                    note.clone()
                }
            };
            tx.commit()?;
            Ok(kept)
        })
    }

    fn notes(&self, limit: usize) -> Result<Vec<Note>, LibraryError> {
        error::on(&self.notes, || {
            let Some(sql) = self.reader()? else { return Ok(Vec::new()) };
            let notes = notes(&sql, "ORDER BY updated DESC, number DESC LIMIT ?1", [file::int(limit)])?;
            Ok(notes.into_iter().map(|numbered| numbered.note).collect())
        })
    }

    fn remove(&self, note: &Note) -> Result<bool, LibraryError> {
        error::on(&self.notes, || {
            let mut sql = self.writer()?;
            let tx = alone(&mut sql)?;
            let Some(found) = notes(&tx, "WHERE id = ?1", [&note.id])?.into_iter().next() else { return Ok(false) };
            INDEX.remove(&tx, found.number)?;
            tx.execute("DELETE FROM notes WHERE number = ?1", [found.number])?;
            INDEX.purge(&tx)?;
            tx.commit()?;
            database::settle(&sql);
            Ok(true)
        })
    }

    fn bare(&self, embedder: &str, limit: usize) -> Result<Vec<StoredNote>, LibraryError> {
        error::on(&self.notes, || {
            let Some(sql) = self.reader()? else { return Ok(Vec::new()) };
            let bare = match INDEX.embedder(&sql)?.as_deref() == Some(embedder) {
                true => "WHERE number NOT IN (SELECT id FROM notes_vectors) ORDER BY number DESC LIMIT ?1",
                false => "ORDER BY number DESC LIMIT ?1",
            };
            Ok(notes(&sql, bare, [file::int(limit)])?)
        })
    }

    fn embed(&self, embedder: &str, vectors: &[(i64, Vec<f32>)]) -> Result<(), LibraryError> {
        error::on(&self.notes, || {
            let mut sql = self.writer()?;
            let tx = alone(&mut sql)?;
            INDEX.use_embedder(&tx, embedder)?;
            for (number, vector) in vectors {
                if tx.prepare_cached("SELECT 1 FROM notes WHERE number = ?1")?.exists([number])? {
                    INDEX.put_vector(&tx, *number, vector)?;
                }
            }
            Ok(tx.commit()?)
        })
    }

    fn searched(&self, _: Option<u64>) -> Result<SearchSource, LibraryError> {
        error::on(&self.notes, || Ok(self.reader()?.map_or(SearchSource::Nothing, SearchSource::Index)))
    }

    fn say(&self, whose: ConversationKey<'_>, exchange: &Exchange) -> Result<(), LibraryError> {
        error::on(&self.said, || {
            let Exchange { run, asked, answered } = exchange;
            self.teller()?.execute(
                "INSERT INTO exchanges (session, agent, run, asked, answered) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET asked = ?4, answered = ?5, active = 1",
                [whose.session, whose.agent, run, asked, answered],
            )?;
            Ok(())
        })
    }

    fn past(&self, whose: ConversationKey<'_>, limit: usize) -> Result<Past, LibraryError> {
        error::on(&self.said, || {
            let layout = Layout { tables: "", version: VERSION };
            let Some(sql) = file::read(&self.said, &layout)? else { return Ok(Past::default()) };
            // both of one moment
            let tx = sql.unchecked_transaction()?;
            let mut find = tx.prepare(
                "SELECT run, asked, answered FROM exchanges WHERE session = ?1 AND agent = ?2 AND active
                 ORDER BY number DESC LIMIT ?3",
            )?;
            let rows = find.query_map(params![whose.session, whose.agent, file::int(limit)], |row| {
                Ok(Exchange { run: row.get(0)?, asked: row.get(1)?, answered: row.get(2)? })
            })?;
            let mut exchanges: Vec<Exchange> = rows.collect::<rusqlite::Result<_>>()?;
            exchanges.reverse();
            let summary = "SELECT text FROM summaries WHERE session = ?1 AND agent = ?2";
            let summary = tx.query_row(summary, [whose.session, whose.agent], |row| row.get(0)).optional()?;
            Ok(Past { summary: summary.unwrap_or_default(), exchanges })
        })
    }

    fn fold(&self, whose: ConversationKey<'_>, fold: Fold<'_>) -> Result<(), LibraryError> {
        error::on(&self.said, || {
            let mut sql = self.teller()?;
            let tx = alone(&mut sql)?;
            if let Some(summary) = fold.summary {
                tx.execute(
                    "INSERT OR REPLACE INTO summaries VALUES (?1, ?2, ?3)",
                    [whose.session, whose.agent, summary],
                )?;
            }
            let out = match fold.originals {
                Originals::Keep => "UPDATE exchanges SET active = 0 WHERE session = ?1 AND agent = ?2 AND run = ?3",
                Originals::Delete => "DELETE FROM exchanges WHERE session = ?1 AND agent = ?2 AND run = ?3",
            };
            for run in fold.runs {
                tx.execute(out, [whose.session, whose.agent, run])?;
            }
            tx.commit()?;
            if fold.originals == Originals::Delete {
                database::settle(&sql);
            }
            Ok(())
        })
    }

    fn unsay(&self, session: &str) -> Result<(), LibraryError> {
        error::on(&self.said, || {
            if self.said.exists() {
                let mut sql = self.teller()?;
                let tx = alone(&mut sql)?;
                tx.execute("DELETE FROM exchanges WHERE session = ?1", [session])?;
                tx.execute("DELETE FROM summaries WHERE session = ?1", [session])?;
                tx.commit()?;
                database::settle(&sql);
            }
            Ok(())
        })
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
    INDEX.put(sql, &passage(sql.last_insert_rowid(), draft, &title(draft)))
}

/// What a note is searched by.
fn passage<'a>(id: i64, draft: &'a Draft, title: &'a str) -> Passage<'a> {
    Passage { id, title, body: &draft.content, vector: None }
}

/// Its title, with its tags.
fn title(draft: &Draft) -> String {
    format!("{} {}", draft.title, draft.tags.join(" "))
}

/// Notes with their numbers, as the end of a query says.
///
/// # Errors
/// If SQLite fails.
pub fn notes(sql: &Connection, end: &str, params: impl rusqlite::Params) -> rusqlite::Result<Vec<StoredNote>> {
    let lines = |row: &Row<'_>, column: &str| -> rusqlite::Result<Vec<String>> {
        Ok(file::text(row, column)?.lines().map(str::to_owned).collect())
    };
    let mut find = sql.prepare_cached(&format!("SELECT * FROM notes {end}"))?;
    let rows = find.query_map(params, |row| {
        let draft = Draft {
            title: file::text(row, "title")?,
            category: Category::of(&file::text(row, "category")?),
            content: file::text(row, "content")?,
            tags: lines(row, "tags")?,
            related_files: lines(row, "files")?,
            run: file::text(row, "run")?,
        };
        let (created, updated) = (file::count(row, "created")?, file::count(row, "updated")?);
        Ok(StoredNote {
            number: row.get("number")?,
            note: Note { id: file::text(row, "id")?, draft, created, updated },
        })
    })?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_is_in_no_file_though_a_reader_closes_last() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Sqlite::new(dir.path().join("memory.db"));
        let holds = |word: &str| database::holds(dir.path(), word).unwrap();
        let draft = Draft { content: "qwzkoba7".into(), ..Draft::default() }.tidy().unwrap();
        let note = kept.keep(&Note { id: "note_1".into(), draft, created: 1, updated: 1 }).unwrap();
        let whose = ConversationKey { session: "s", agent: "chat" };
        kept.say(whose, &Exchange { run: "run_1".into(), asked: "vjxmuri3".into(), answered: "a".into() }).unwrap();
        assert!(holds("qwzkoba7") && holds("vjxmuri3"));
        let reader = |file: &PathBuf| file::read(file, &Layout { tables: "", version: VERSION }).unwrap().unwrap();
        let readers = (reader(&kept.notes), reader(&kept.said));
        assert!(kept.remove(&note).unwrap());
        kept.unsay("s").unwrap();
        drop(readers);
        assert!(!holds("qwzkoba7") && !holds("vjxmuri3"));
    }

    #[test]
    fn a_damaged_note_does_not_hide_the_others_and_can_be_removed() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Sqlite::new(dir.path().join("memory.db"));
        for id in ["note_1", "note_2"] {
            let draft = Draft { content: format!("the words of {id}"), ..Draft::default() }.tidy().unwrap();
            kept.keep(&Note { id: id.into(), draft, created: 1, updated: 1 }).unwrap();
        }
        let damage = "UPDATE notes SET content = CAST(x'6162ff6364' AS TEXT) WHERE id = 'note_1'";
        assert_eq!(kept.writer().unwrap().execute(damage, []), Ok(1));
        let notes = kept.notes(9).unwrap();
        let contents: Vec<&str> = notes.iter().map(|note| note.draft.content.as_str()).collect();
        assert_eq!(contents, ["the words of note_2", "ab\u{fffd}cd"]);
        assert!(kept.remove(&notes[1]).unwrap());
        assert_eq!(kept.notes(9).unwrap().len(), 1);
    }

    #[test]
    fn what_is_deleted_is_no_longer_in_the_file_and_what_is_marked_is() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Sqlite::new(dir.path().join("notes.db"));
        let whose = ConversationKey { session: "s", agent: "chat" };
        for run in ["run_1", "run_2", "run_3"] {
            kept.say(whose, &Exchange { run: run.into(), asked: "q".into(), answered: "a".into() }).unwrap();
        }
        for (run, originals) in [("run_1", Originals::Keep), ("run_2", Originals::Delete)] {
            kept.fold(whose, Fold { summary: None, runs: &[run.to_owned()], originals }).unwrap();
        }
        let sql = Connection::open(dir.path().join("conversations.db")).unwrap();
        let mut find = sql.prepare("SELECT run, active FROM exchanges ORDER BY run").unwrap();
        let rows = find.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?))).unwrap();
        let rows: Vec<(String, bool)> = rows.collect::<rusqlite::Result<_>>().unwrap();
        assert_eq!(rows, [("run_1".to_owned(), false), ("run_3".into(), true)]);
    }
}
