//! Stores what a session still remembers: which of its runs are shown to a model, and the summary of the others.
//!
//! The tables were added without a new layout version: older programs ignore them.

use super::{Store, StoreError, int, now};
use crate::chat::{Exchange, Fold, Keeps, Originals, Past};
use crate::known::Known;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS inactive_runs (run TEXT PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE);
    CREATE TABLE IF NOT EXISTS summaries (
        session TEXT PRIMARY KEY REFERENCES sessions(id) ON DELETE CASCADE, text TEXT NOT NULL,
        updated INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS kept_apart (since INTEGER NOT NULL);
";

/// Creates the tables if they do not exist.
pub(super) fn tables(sql: &mut Connection) -> rusqlite::Result<()> {
    // looking takes no lock, so that only the first opening writes
    let known = "SELECT COUNT(*) FROM sqlite_master WHERE name IN ('inactive_runs', 'summaries', 'kept_apart')";
    if sql.query_row(known, [], |row| row.get::<_, i64>(0))? == 3 {
        return Ok(());
    }
    let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute_batch(TABLES)?;
    // conversations from this time on are stored by `crate::memory`
    tx.execute("INSERT INTO kept_apart SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM kept_apart)", [now()])?;
    tx.commit()
}

/// The number of latest runs of a session whose texts are reused.
const MAX_RUNS: i64 = 8;

impl Store {
    /// Returns the texts that the latest runs of a session have read, latest first. The caller checks if they are
    /// still valid.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_before(&self, session: &str) -> Result<Vec<Known>, StoreError> {
        let query = "SELECT CASE WHEN json_valid(turn) THEN json_extract(turn, '$.state.read') END AS read FROM runs
             WHERE session = ?1 ORDER BY created DESC, rowid DESC LIMIT ?2";
        let sql = self.sql();
        let mut find = sql.prepare(query)?;
        let rows = find.query_map(params![session, MAX_RUNS], |row| row.get::<_, Option<String>>("read"))?;
        let mut all = Vec::new();
        for text in rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten() {
            // unreadable data of another version is skipped
            let known: Vec<Known> = serde_json::from_str(&text).unwrap_or_default();
            all.extend(known.into_iter().rev());
        }
        Ok(all)
    }

    /// Returns the model's summary of a session; empty if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn summary(&self, session: &str) -> Result<String, StoreError> {
        let query = "SELECT text FROM summaries WHERE session = ?1";
        let found = self.sql().query_row(query, [session], |row| row.get(0)).optional()?;
        Ok(found.unwrap_or_default())
    }

    /// Returns the conversation with an agent from before conversations were stored by [`crate::memory`], taken from
    /// the runs: at most `limit` answered exchanges that are still remembered, and the summary of the others.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn history_of_runs(&self, session: &str, agent: &str, limit: usize) -> Result<Past, StoreError> {
        let query = "SELECT id, task, answer FROM runs
             WHERE session = ?1 AND status IN ('completed', 'incomplete') AND TRIM(answer) <> ''
                   AND id NOT IN (SELECT run FROM inactive_runs) AND created < (SELECT since FROM kept_apart)
                   AND CASE WHEN json_valid(turn) THEN json_extract(turn, '$.task.agent') END = ?2
             ORDER BY created DESC, rowid DESC LIMIT ?3";
        let mut exchanges: Vec<Exchange> = {
            let sql = self.sql();
            let mut find = sql.prepare(query)?;
            let rows = find.query_map(params![session, agent, int(limit)], |row| {
                Ok(Exchange { run: row.get(0)?, asked: row.get(1)?, answered: row.get(2)? })
            })?;
            rows.collect::<rusqlite::Result<_>>()?
        };
        exchanges.reverse();
        Ok(Past { summary: self.summary(session)?, exchanges })
    }

    fn store_fold(&self, session: &str, fold: Fold<'_>) -> rusqlite::Result<()> {
        let mut sql = self.sql();
        let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if let Some(summary) = fold.summary {
            tx.execute(
                "INSERT INTO summaries VALUES (?1, ?2, ?3) ON CONFLICT(session) DO UPDATE SET text = ?2, updated = ?3",
                params![session, summary, now()],
            )?;
        }
        for run in fold.runs {
            match fold.originals {
                Originals::Keep => tx.execute(
                    "INSERT OR IGNORE INTO inactive_runs SELECT id FROM runs WHERE id = ?1 AND session = ?2",
                    params![run, session],
                )?,
                Originals::Delete => {
                    // the session of its workers is named after the run and could not be found any more
                    tx.execute("DELETE FROM sessions WHERE id = ?1", [run])?;
                    tx.execute("DELETE FROM runs WHERE id = ?1 AND session = ?2", params![run, session])?
                }
            };
        }
        tx.commit()?;
        if fold.originals == Originals::Delete {
            caro_database::checkpoint(&sql);
        }
        Ok(())
    }
}

impl Keeps for Store {
    fn fold(&self, session: &str, fold: Fold<'_>) -> Result<(), String> {
        self.store_fold(session, fold).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::runtime::Checkpoints;
    use crate::turn::Task;
    use std::path::Path;

    fn store() -> Store {
        let store = Store::in_memory().unwrap();
        for (run, session) in
            [("run_1", "s"), ("run_2", "s"), ("run_3", "s"), ("run_9", "other"), ("worker_1", "run_1")]
        {
            let plan = Plan::heuristic("count");
            let (text, place) = ("count".to_owned(), String::new());
            let (run, session, agent) = (run.to_owned(), session.to_owned(), "chat".to_owned());
            let task = Task { run, session, agent, text, plan, max_steps: 5, batch: 1, place };
            store.begin(&task, "count", "", Path::new("/"), |_| false).unwrap();
        }
        store
    }

    fn fold(store: &Store, summary: Option<&str>, originals: Originals) {
        let runs = ["run_1".to_owned(), "run_2".into(), "run_9".into()];
        store.fold("s", Fold { summary, runs: &runs, originals }).unwrap();
    }

    fn active(store: &Store, session: &str) -> Vec<(String, bool)> {
        store.session(session).unwrap().runs.into_iter().map(|run| (run.id, run.active)).collect()
    }

    #[test]
    fn folded_runs_are_marked_or_deleted() {
        let kept = store();
        fold(&kept, None, Originals::Keep);
        let expected = [("run_1".to_owned(), false), ("run_2".into(), false), ("run_3".into(), true)];
        assert_eq!(active(&kept, "s"), expected);
        assert_eq!(active(&kept, "other"), [("run_9".to_owned(), true)], "it is another session's");
        let deleted = store();
        fold(&deleted, None, Originals::Delete);
        assert_eq!(active(&deleted, "s"), [("run_3".to_owned(), true)]);
        assert!(deleted.run("worker_1").is_err() && deleted.run("run_9").is_ok());
    }

    #[test]
    fn an_older_conversation_is_read_from_its_runs() {
        let store = store();
        let keep = |run: &str, agent: &str, status: &str, answer: &str| {
            store.keep(run, &serde_json::json!({"task": {"agent": agent}}).to_string()).unwrap();
            store.set_status(run, status, answer).unwrap();
        };
        keep("run_1", "chat", "completed", "one");
        keep("run_2", "agent", "completed", "two");
        keep("run_3", "chat", "incomplete", "three");
        keep("run_9", "chat", "completed", "nine");
        let said = |limit| -> Vec<(String, String)> {
            let past = store.history_of_runs("s", "chat", limit).unwrap();
            past.exchanges.into_iter().map(|e| (e.run, e.answered)).collect()
        };
        let of = |run: &str, answer: &str| (run.to_owned(), answer.to_owned());
        assert_eq!(said(9), [], "since then they are kept elsewhere");
        store.sql().execute("UPDATE kept_apart SET since = since + 1000000", []).unwrap();
        assert_eq!(said(9), [of("run_1", "one"), of("run_3", "three")]);
        assert_eq!(said(1), [of("run_3", "three")]);
        keep("run_3", "chat", "failed", "no model");
        assert_eq!(said(9), [of("run_1", "one")]);
        fold(&store, Some("- the first"), Originals::Keep);
        assert_eq!(
            store.history_of_runs("s", "chat", 9).unwrap(),
            Past { summary: "- the first".into(), exchanges: Vec::new() }
        );
    }

    #[test]
    fn the_latest_summary_is_stored_and_deleted_with_its_session() {
        let store = store();
        assert_eq!(store.summary("s").unwrap(), "");
        for (text, expected) in [(Some("- one"), "- one"), (None, "- one"), (Some("- two"), "- two")] {
            fold(&store, text, Originals::Keep);
            assert_eq!(store.session("s").unwrap().summary, expected);
        }
        store.delete_session("s", |_| false).unwrap();
        assert_eq!(store.summary("s").unwrap(), "");
        assert_eq!(store.sql().query_row("SELECT COUNT(*) FROM inactive_runs", [], |row| row.get(0)), Ok(0));
    }

    #[test]
    fn an_older_file_gets_the_tables_and_keeps_its_runs() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agent.db");
        let mut old = Connection::open(&file).unwrap();
        caro_database::create_tables(&mut old, super::super::TABLES, 1).unwrap();
        old.execute_batch(
            "INSERT INTO sessions VALUES ('s', 1, 1);
             INSERT INTO runs (id, session, task, status, root, created, updated) VALUES ('run_1', 's', 't', 'completed', '/', 1, 1);",
        )
        .unwrap();
        drop(old);
        for _ in 0..2 {
            let store = Store::open(&file).unwrap();
            assert_eq!(active(&store, "s"), [("run_1".to_owned(), true)]);
            store.keep("run_1", r#"{"task": {"agent": "chat"}}"#).unwrap();
            store.set_status("run_1", "completed", "fine").unwrap();
            assert_eq!(store.history_of_runs("s", "chat", 9).unwrap().exchanges.len(), 1, "it was there before");
        }
    }
}
