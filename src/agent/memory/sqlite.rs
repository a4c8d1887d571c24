//! The backend in SQLite files: one of notes, with their index, and one of conversations. The index that `search`
//! builds for other backends has the same layout as the file of notes.

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

/// Selects the number and the searched text of every note.
pub const TEXTS: &str = "SELECT number, title || ' ' || tags || ' ' || content FROM notes";

const NOTES: &str = "
    CREATE TABLE notes (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, category TEXT NOT NULL,
        content TEXT NOT NULL, tags TEXT NOT NULL, files TEXT NOT NULL, run TEXT NOT NULL, created INTEGER NOT NULL,
        updated INTEGER NOT NULL);
";

const CONVERSATIONS: &str = "
    CREATE TABLE exchanges (
        number INTEGER PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, run TEXT NOT NULL, asked TEXT NOT NULL,
        answered TEXT NOT NULL, active INTEGER NOT NULL DEFAULT 1, UNIQUE (session, agent, run));
    CREATE TABLE summaries (
        session TEXT NOT NULL, agent TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (session, agent)) WITHOUT ROWID;
";

const VERSION: i64 = 1;

/// Returns the statements that create the tables of notes and their index.
pub fn layout() -> String {
    format!("{NOTES}{}", INDEX.layout())
}

/// Notes in one file and conversations in another beside it, so that either can be deleted alone.
#[derive(Debug)]
pub struct Sqlite {
    notes: PathBuf,
    conversations: PathBuf,
}

impl Sqlite {
    /// Uses the notes in `file`, which need not exist, and the conversations in `conversations.db` beside it.
    pub fn new(file: PathBuf) -> Self {
        Self { conversations: file.with_file_name("conversations.db"), notes: file }
    }

    fn writer(&self) -> Result<Connection, LibraryError> {
        Ok(file::write(&self.notes, &Layout { tables: &layout(), version: VERSION })?)
    }

    fn reader(&self) -> Result<Option<Connection>, LibraryError> {
        Ok(file::read(&self.notes, &Layout { tables: "", version: VERSION })?)
    }

    fn conversations_writer(&self) -> Result<Connection, LibraryError> {
        Ok(file::write(&self.conversations, &Layout { tables: CONVERSATIONS, version: VERSION })?)
    }
}

/// Repairs damaged files of notes and of the conversations beside them; returns each file with its result.
///
/// # Errors
/// If a file cannot be repaired.
pub fn repair(notes: &Path) -> Result<Vec<(PathBuf, Repaired)>, LibraryError> {
    let Sqlite { notes: file, conversations } = Sqlite::new(notes.to_owned());
    let rebuild_index = |sql: &Connection| {
        for StoredNote { number, note } in select_notes(sql, "ORDER BY number", [])? {
            INDEX.put(sql, &passage(number, &note.draft, &title(&note.draft)))?;
        }
        Ok(())
    };
    let repaired_notes =
        repair::repair(&file, &Layout { tables: &layout(), version: VERSION }, |_| Ok(()), rebuild_index)?;
    let layout = Layout { tables: CONVERSATIONS, version: VERSION };
    let repaired_conversations = repair::repair(&conversations, &layout, |_| Ok(()), |_| Ok(()))?;
    Ok(vec![(file, repaired_notes), (conversations, repaired_conversations)])
}

/// Begins a transaction that holds the write lock.
fn write_transaction(sql: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    sql.transaction_with_behavior(TransactionBehavior::Immediate)
}

impl Backend for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn exists(&self) -> bool {
        self.notes.exists()
    }

    fn save(&self, note: &Note) -> Result<Note, LibraryError> {
        error::on(&self.notes, || {
            let mut sql = self.writer()?;
            let tx = write_transaction(&mut sql)?;
            let known =
                select_notes(&tx, "WHERE title = ?1 AND content = ?2", params![note.draft.title, note.draft.content])?;
            let stored = match known.into_iter().next() {
                Some(StoredNote { number, note: mut known }) => {
                    known.merge(note);
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
            Ok(stored)
        })
    }

    fn notes(&self, limit: usize) -> Result<Vec<Note>, LibraryError> {
        error::on(&self.notes, || {
            let Some(sql) = self.reader()? else { return Ok(Vec::new()) };
            let notes = select_notes(&sql, "ORDER BY updated DESC, number DESC LIMIT ?1", [file::int(limit)])?;
            Ok(notes.into_iter().map(|numbered| numbered.note).collect())
        })
    }

    fn remove(&self, note: &Note) -> Result<bool, LibraryError> {
        error::on(&self.notes, || {
            let mut sql = self.writer()?;
            let tx = write_transaction(&mut sql)?;
            let Some(found) = select_notes(&tx, "WHERE id = ?1", [&note.id])?.into_iter().next() else {
                return Ok(false);
            };
            INDEX.remove(&tx, found.number)?;
            tx.execute("DELETE FROM notes WHERE number = ?1", [found.number])?;
            INDEX.purge(&tx)?;
            tx.commit()?;
            database::checkpoint(&sql);
            Ok(true)
        })
    }

    fn without_vectors(&self, embedder: &str, limit: usize) -> Result<Vec<StoredNote>, LibraryError> {
        error::on(&self.notes, || {
            let Some(sql) = self.reader()? else { return Ok(Vec::new()) };
            let clause = match INDEX.embedder(&sql)?.as_deref() == Some(embedder) {
                true => "WHERE number NOT IN (SELECT id FROM notes_vectors) ORDER BY number DESC LIMIT ?1",
                false => "ORDER BY number DESC LIMIT ?1",
            };
            Ok(select_notes(&sql, clause, [file::int(limit)])?)
        })
    }

    fn embed(&self, embedder: &str, vectors: &[(i64, Vec<f32>)]) -> Result<(), LibraryError> {
        error::on(&self.notes, || {
            let mut sql = self.writer()?;
            let tx = write_transaction(&mut sql)?;
            INDEX.use_embedder(&tx, embedder)?;
            for (number, vector) in vectors {
                if tx.prepare_cached("SELECT 1 FROM notes WHERE number = ?1")?.exists([number])? {
                    INDEX.put_vector(&tx, *number, vector)?;
                }
            }
            Ok(tx.commit()?)
        })
    }

    fn search_source(&self, _: Option<u64>) -> Result<SearchSource, LibraryError> {
        error::on(&self.notes, || Ok(self.reader()?.map_or(SearchSource::Nothing, SearchSource::Index)))
    }

    fn add_exchange(&self, key: ConversationKey<'_>, exchange: &Exchange) -> Result<(), LibraryError> {
        error::on(&self.conversations, || {
            let Exchange { run, asked, answered } = exchange;
            self.conversations_writer()?.execute(
                "INSERT INTO exchanges (session, agent, run, asked, answered) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET asked = ?4, answered = ?5, active = 1",
                [key.session, key.agent, run, asked, answered],
            )?;
            Ok(())
        })
    }

    fn past(&self, key: ConversationKey<'_>, limit: usize) -> Result<Past, LibraryError> {
        error::on(&self.conversations, || {
            let layout = Layout { tables: "", version: VERSION };
            let Some(sql) = file::read(&self.conversations, &layout)? else { return Ok(Past::default()) };
            // one transaction, so that exchanges and summary are consistent; none other is open on this new connection
            let tx = sql.unchecked_transaction()?;
            let mut find = tx.prepare(
                "SELECT run, asked, answered FROM exchanges WHERE session = ?1 AND agent = ?2 AND active
                 ORDER BY number DESC LIMIT ?3",
            )?;
            let rows = find.query_map(params![key.session, key.agent, file::int(limit)], |row| {
                let text = |column| file::text(row, column);
                Ok(Exchange { run: text("run")?, asked: text("asked")?, answered: text("answered")? })
            })?;
            let mut exchanges: Vec<Exchange> = rows.collect::<rusqlite::Result<_>>()?;
            exchanges.reverse();
            let summary = "SELECT text FROM summaries WHERE session = ?1 AND agent = ?2";
            let summary = tx.query_row(summary, [key.session, key.agent], |row| row.get(0)).optional()?;
            Ok(Past { summary: summary.unwrap_or_default(), exchanges })
        })
    }

    fn fold(&self, key: ConversationKey<'_>, fold: Fold<'_>) -> Result<(), LibraryError> {
        error::on(&self.conversations, || {
            let mut sql = self.conversations_writer()?;
            let tx = write_transaction(&mut sql)?;
            if let Some(summary) = fold.summary {
                tx.execute("INSERT OR REPLACE INTO summaries VALUES (?1, ?2, ?3)", [key.session, key.agent, summary])?;
            }
            let statement = match fold.originals {
                Originals::Keep => "UPDATE exchanges SET active = 0 WHERE session = ?1 AND agent = ?2 AND run = ?3",
                Originals::Delete => "DELETE FROM exchanges WHERE session = ?1 AND agent = ?2 AND run = ?3",
            };
            for run in fold.runs {
                tx.execute(statement, [key.session, key.agent, run])?;
            }
            tx.commit()?;
            if fold.originals == Originals::Delete {
                database::checkpoint(&sql);
            }
            Ok(())
        })
    }

    fn forget_session(&self, session: &str) -> Result<bool, LibraryError> {
        error::on(&self.conversations, || {
            if !self.conversations.exists() {
                return Ok(false);
            }
            let mut sql = self.conversations_writer()?;
            let count = database::delete_on_full_disk(&mut sql, |sql| {
                let tx = write_transaction(sql)?;
                let exchanges = tx.execute("DELETE FROM exchanges WHERE session = ?1", [session])?;
                let summaries = tx.execute("DELETE FROM summaries WHERE session = ?1", [session])?;
                tx.commit()?;
                Ok(exchanges + summaries)
            })?;
            database::checkpoint(&sql);
            Ok(count > 0)
        })
    }
}

/// Inserts a note and its index entry, under the given number or the next one.
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

/// Returns the indexed text of a note.
fn passage<'a>(id: i64, draft: &'a Draft, title: &'a str) -> Passage<'a> {
    Passage { id, title, body: &draft.content, vector: None }
}

/// Returns a note's title with its tags, which are indexed together.
fn title(draft: &Draft) -> String {
    format!("{} {}", draft.title, draft.tags.join(" "))
}

/// Selects notes; `clause` is the rest of the query after `FROM notes`.
///
/// # Errors
/// If SQLite fails.
pub fn select_notes(
    sql: &Connection,
    clause: &str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<Vec<StoredNote>> {
    let lines = |row: &Row<'_>, column: &str| -> rusqlite::Result<Vec<String>> {
        Ok(file::text(row, column)?.lines().map(str::to_owned).collect())
    };
    let mut find = sql.prepare_cached(&format!("SELECT * FROM notes {clause}"))?;
    let rows = find.query_map(params, |row| {
        let draft = Draft {
            title: file::text(row, "title")?,
            category: Category::from_name(&file::text(row, "category")?),
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
    fn forgotten_text_is_in_no_file_even_while_readers_are_open() {
        let dir = tempfile::tempdir().unwrap();
        let backend = Sqlite::new(dir.path().join("memory.db"));
        let holds = |word: &str| database::test_support::contains_bytes(dir.path(), word).unwrap();
        let draft = Draft { content: "qwzkoba7".into(), ..Draft::default() }.tidy().unwrap();
        let note = backend.save(&Note { id: "note_1".into(), draft, created: 1, updated: 1 }).unwrap();
        let key = ConversationKey { session: "s", agent: "chat" };
        let exchange = Exchange { run: "run_1".into(), asked: "vjxmuri3".into(), answered: "a".into() };
        backend.add_exchange(key, &exchange).unwrap();
        assert!(holds("qwzkoba7") && holds("vjxmuri3"));
        let reader = |file: &PathBuf| file::read(file, &Layout { tables: "", version: VERSION }).unwrap().unwrap();
        let readers = (reader(&backend.notes), reader(&backend.conversations));
        assert!(backend.remove(&note).unwrap());
        backend.forget_session("s").unwrap();
        assert!(!holds("qwzkoba7") && !holds("vjxmuri3"));
        drop(readers);
    }

    #[test]
    fn a_damaged_note_does_not_hide_the_others_and_can_be_removed() {
        let dir = tempfile::tempdir().unwrap();
        let backend = Sqlite::new(dir.path().join("memory.db"));
        for id in ["note_1", "note_2"] {
            let draft = Draft { content: format!("the words of {id}"), ..Draft::default() }.tidy().unwrap();
            backend.save(&Note { id: id.into(), draft, created: 1, updated: 1 }).unwrap();
        }
        let damage = "UPDATE notes SET content = CAST(x'6162ff6364' AS TEXT) WHERE id = 'note_1'";
        assert_eq!(backend.writer().unwrap().execute(damage, []), Ok(1));
        let notes = backend.notes(9).unwrap();
        let contents: Vec<&str> = notes.iter().map(|note| note.draft.content.as_str()).collect();
        assert_eq!(contents, ["the words of note_2", "ab\u{fffd}cd"]);
        assert!(backend.remove(&notes[1]).unwrap());
        assert_eq!(backend.notes(9).unwrap().len(), 1);
    }

    #[test]
    fn a_damaged_exchange_does_not_hide_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let backend = Sqlite::new(dir.path().join("notes.db"));
        let key = ConversationKey { session: "s", agent: "chat" };
        for run in ["run_1", "run_2"] {
            backend.add_exchange(key, &Exchange { run: run.into(), asked: "q".into(), answered: "a".into() }).unwrap();
        }
        let damage = "UPDATE exchanges SET answered = CAST(x'6162ff6364' AS TEXT) WHERE run = 'run_1'";
        assert_eq!(backend.conversations_writer().unwrap().execute(damage, []), Ok(1));
        let past = backend.past(key, 9).unwrap();
        let answers: Vec<&str> = past.exchanges.iter().map(|exchange| exchange.answered.as_str()).collect();
        assert_eq!(answers, ["ab\u{fffd}cd", "a"]);
    }

    #[test]
    fn folded_exchanges_are_deleted_or_marked_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let backend = Sqlite::new(dir.path().join("notes.db"));
        let key = ConversationKey { session: "s", agent: "chat" };
        for run in ["run_1", "run_2", "run_3"] {
            backend.add_exchange(key, &Exchange { run: run.into(), asked: "q".into(), answered: "a".into() }).unwrap();
        }
        for (run, originals) in [("run_1", Originals::Keep), ("run_2", Originals::Delete)] {
            backend.fold(key, Fold { summary: None, runs: &[run.to_owned()], originals }).unwrap();
        }
        let sql = Connection::open(dir.path().join("conversations.db")).unwrap();
        let mut find = sql.prepare("SELECT run, active FROM exchanges ORDER BY run").unwrap();
        let rows = find.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?))).unwrap();
        let rows: Vec<(String, bool)> = rows.collect::<rusqlite::Result<_>>().unwrap();
        assert_eq!(rows, [("run_1".to_owned(), false), ("run_3".into(), true)]);
    }
}
