//! The tables of a perpetual loop: its state, its history, its position in each source of messages, received messages
//! that it has not processed, and texts to send. All rows belong to a session and are deleted with it.
//!
//! The tables were added without a new layout version: older programs ignore them.

use super::{Store, StoreError, count, int};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS loops (
        session TEXT PRIMARY KEY REFERENCES sessions(id) ON DELETE CASCADE, state TEXT NOT NULL DEFAULT '',
        cursor TEXT NOT NULL DEFAULT '');
    CREATE TABLE IF NOT EXISTS loop_history (
        session TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, number INTEGER NOT NULL, entry TEXT NOT NULL,
        PRIMARY KEY (session, number)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS loop_inbox (
        number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
        text TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS loop_outbox (
        number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
        text TEXT NOT NULL, mark TEXT);
    CREATE TABLE IF NOT EXISTS loop_cursors (
        session TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, source TEXT NOT NULL, cursor TEXT NOT NULL,
        PRIMARY KEY (session, source)) WITHOUT ROWID;
";

/// Creates the tables if they do not exist.
pub(super) fn tables(sql: &Connection) -> rusqlite::Result<()> {
    // looking takes no lock, so that only the first opening writes
    if sql.table_exists(None, "loop_cursors")? { Ok(()) } else { sql.execute_batch(TABLES) }
}

/// A text to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Its number; later texts have higher ones.
    pub number: i64,
    /// The text.
    pub text: String,
    /// The channel's position when sending was first attempted, if it was.
    pub mark: Option<String>,
}

impl Store {
    /// Returns the stored state of a session's loop; empty for a new loop.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn loop_state(&self, session: &str) -> Result<String, StoreError> {
        let query = "SELECT state FROM loops WHERE session = ?1";
        Ok(self.sql().query_row(query, [session], |row| row.get(0)).optional()?.unwrap_or_default())
    }

    /// Returns a session's position in a source of messages; empty if it has none. Older versions stored one position
    /// for all sources: it is taken for that of the first one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn loop_cursor(&self, session: &str, source: &str) -> Result<String, StoreError> {
        if source.is_empty() {
            return Ok(String::new());
        }
        let query = "SELECT COALESCE(
            (SELECT cursor FROM loop_cursors WHERE session = ?1 AND source = ?2),
            (SELECT cursor FROM loops WHERE session = ?1
                AND NOT EXISTS (SELECT 1 FROM loop_cursors WHERE session = ?1)), '')";
        Ok(self.sql().prepare_cached(query)?.query_row([session, source], |row| row.get(0))?)
    }

    /// Stores the state of a loop, its new history entries and the texts to send, and removes processed messages up to
    /// number `seen`, in one transaction.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_loop(
        &self,
        session: &str,
        state: &str,
        seen: u64,
        entries: &[String],
        outgoing: &[String],
    ) -> Result<(), StoreError> {
        let mut sql = self.sql();
        let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute(
            "INSERT INTO loops (session, state) VALUES (?1, ?2) ON CONFLICT(session) DO UPDATE SET state = ?2",
            [session, state],
        )?;
        tx.execute("DELETE FROM loop_inbox WHERE session = ?1 AND number <= ?2", params![session, int(seen)])?;
        for entry in entries {
            tx.execute(
                "INSERT INTO loop_history
                 SELECT ?1, COALESCE(MAX(number), 0) + 1, ?2 FROM loop_history WHERE session = ?1",
                [session, entry],
            )?;
        }
        for text in outgoing {
            tx.execute("INSERT INTO loop_outbox (session, text) VALUES (?1, ?2)", [session, text])?;
        }
        tx.commit()?;
        Ok(())
    }

    /// Stores messages that were received and the position behind them in their source, in one transaction. A source
    /// without a name has no position.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_messages(
        &self,
        session: &str,
        source: &str,
        messages: &[String],
        cursor: &str,
    ) -> Result<(), StoreError> {
        let mut sql = self.sql();
        let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if !source.is_empty() {
            tx.execute("INSERT OR REPLACE INTO loop_cursors VALUES (?1, ?2, ?3)", [session, source, cursor])?;
        }
        for text in messages {
            tx.execute("INSERT INTO loop_inbox (session, text) VALUES (?1, ?2)", [session, text])?;
        }
        tx.commit()?;
        Ok(())
    }

    /// Returns the messages of a session with numbers above `seen`, in order.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn messages(&self, session: &str, seen: u64) -> Result<Vec<(u64, String)>, StoreError> {
        let sql = self.sql();
        let mut query = sql
            .prepare_cached("SELECT number, text FROM loop_inbox WHERE session = ?1 AND number > ?2 ORDER BY number")?;
        let rows = query.query_map(params![session, int(seen)], |row| Ok((count(row, 0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the texts that a session has to send, in order.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn outgoing(&self, session: &str) -> Result<Vec<Outgoing>, StoreError> {
        let sql = self.sql();
        let mut query =
            sql.prepare_cached("SELECT number, text, mark FROM loop_outbox WHERE session = ?1 ORDER BY number")?;
        let rows = query
            .query_map([session], |row| Ok(Outgoing { number: row.get(0)?, text: row.get(1)?, mark: row.get(2)? }))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Stores the channel's position before a text is sent.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn mark_sending(&self, number: i64, mark: &str) -> Result<(), StoreError> {
        self.sql().execute("UPDATE loop_outbox SET mark = ?2 WHERE number = ?1", params![number, mark])?;
        Ok(())
    }

    /// Removes a text that was sent.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remove_sent(&self, number: i64) -> Result<(), StoreError> {
        self.sql().execute("DELETE FROM loop_outbox WHERE number = ?1", [number])?;
        Ok(())
    }

    /// Returns at most `limit` of the latest history entries of a loop, oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn loop_history(&self, session: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let sql = self.sql();
        let mut query =
            sql.prepare_cached("SELECT entry FROM loop_history WHERE session = ?1 ORDER BY number DESC LIMIT ?2")?;
        let rows = query.query_map(params![session, int(limit)], |row| row.get(0))?;
        let mut entries = rows.collect::<Result<Vec<String>, _>>()?;
        entries.reverse();
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Store {
        let store = Store::in_memory().unwrap();
        store.sql().execute_batch("INSERT INTO sessions VALUES ('s', 0, 0), ('other', 0, 0);").unwrap();
        store
    }

    #[test]
    fn a_message_stays_until_the_state_that_processed_it_is_stored() {
        let store = store();
        assert_eq!((store.loop_state("s").unwrap().as_str(), store.loop_cursor("s", "a").unwrap().as_str()), ("", ""));
        store.keep_messages("s", "a", &["one".into(), "two".into()], "7").unwrap();
        store.keep_messages("other", "a", &["three".into()], "9").unwrap();
        assert_eq!(store.messages("s", 0).unwrap(), [(1, "one".to_owned()), (2, "two".into())]);
        store.keep_loop("s", "{}", 1, &["e1".into()], &["hi".into()]).unwrap();
        assert_eq!(store.messages("s", 0).unwrap(), [(2, "two".to_owned())]);
        assert_eq!(
            (store.loop_state("s").unwrap().as_str(), store.loop_cursor("s", "a").unwrap().as_str()),
            ("{}", "7")
        );
        // numbers are never reused, or a new message would count as processed
        store.keep_loop("s", "{}", 2, &["e2".into()], &[]).unwrap();
        store.keep_messages("s", "a", &["four".into()], "8").unwrap();
        assert_eq!(store.messages("s", 2).unwrap(), [(4, "four".to_owned())]);
        assert_eq!(store.loop_history("s", 9).unwrap(), ["e1", "e2"]);
        assert_eq!(store.loop_history("s", 1).unwrap(), ["e2"]);
        let out = store.outgoing("s").unwrap();
        assert_eq!((out.len(), out[0].text.as_str(), out[0].mark.as_deref()), (1, "hi", None));
        store.mark_sending(out[0].number, "3").unwrap();
        assert_eq!(store.outgoing("s").unwrap()[0].mark.as_deref(), Some("3"));
        store.remove_sent(out[0].number).unwrap();
        assert_eq!(store.outgoing("s").unwrap(), []);
    }

    #[test]
    fn each_source_has_its_position() {
        let store = store();
        let cursors = |store: &Store| ["a", "b", ""].map(|source| store.loop_cursor("s", source).unwrap());
        store.keep_messages("s", "a", &["one".into()], "7").unwrap();
        store.keep_messages("s", "", &["two".into()], "").unwrap();
        assert_eq!(cursors(&store), ["7", "", ""]);
        store.keep_messages("s", "b", &[], "9").unwrap();
        assert_eq!(cursors(&store), ["7", "9", ""]);
        assert_eq!(store.messages("s", 0).unwrap().len(), 2);
    }

    #[test]
    fn a_store_of_an_older_version_has_one_position_and_the_first_source_takes_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agent.db");
        let sql = |store: &Store, text: &str| store.sql().execute_batch(text).unwrap();
        sql(
            &Store::open(&file).unwrap(),
            "INSERT INTO sessions VALUES ('s', 0, 0); DROP TABLE loop_cursors;
             INSERT INTO loops VALUES ('s', '{}', '7'); INSERT INTO loop_inbox VALUES (1, 's', 'one');",
        );
        let store = Store::open(&file).unwrap();
        assert_eq!(store.loop_state("s").unwrap(), "{}");
        assert_eq!(store.messages("s", 0).unwrap(), [(1, "one".to_owned())]);
        assert_eq!(["", "a"].map(|source| store.loop_cursor("s", source).unwrap()), ["", "7"]);
        store.keep_messages("s", "a", &[], "7 x").unwrap();
        assert_eq!(["a", "b"].map(|source| store.loop_cursor("s", source).unwrap()), ["7 x", ""]);
    }

    #[test]
    fn a_loop_is_deleted_with_its_session() {
        let store = store();
        store.keep_messages("s", "a", &["one".into()], "7").unwrap();
        store.keep_loop("s", "{}", 0, &["e1".into()], &["hi".into()]).unwrap();
        store.delete_session("s", |_| false).unwrap();
        assert_eq!((store.loop_state("s").unwrap().as_str(), store.loop_cursor("s", "a").unwrap().as_str()), ("", ""));
        assert!(store.loop_history("s", 9).unwrap().is_empty() && store.outgoing("s").unwrap().is_empty());
        assert!(store.messages("s", 0).unwrap().is_empty());
    }
}
