//! Stores the model of a run, so that a resumed run uses the same one, and tells if it can be resumed.
//!
//! The table was added without a new layout version: older programs ignore it.

use super::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension};

/// Creates the table if it does not exist.
pub(super) fn table(sql: &Connection) -> rusqlite::Result<()> {
    // looking takes no lock, so that only the first opening writes
    if sql.table_exists(None, "run_models")? {
        return Ok(());
    }
    sql.execute_batch(
        "CREATE TABLE IF NOT EXISTS run_models (
             run TEXT PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE, spec TEXT NOT NULL)",
    )
}

impl Store {
    /// Stores the name of a run's model, in the form of `--model`. The caller makes sure that it contains no secret.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_model(&self, run: &str, spec: &str) -> Result<(), StoreError> {
        let upsert = "INSERT INTO run_models VALUES (?1, ?2) ON CONFLICT(run) DO UPDATE SET spec = ?2";
        self.sql().execute(upsert, [run, spec])?;
        Ok(())
    }

    /// Returns the name of a run's model; `None` for a run setup before models were stored.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn model_of(&self, run: &str) -> Result<Option<String>, StoreError> {
        let query = "SELECT spec FROM run_models WHERE run = ?1";
        Ok(self.sql().query_row(query, [run], |row| row.get(0)).optional()?)
    }

    /// True if a run has a checkpoint. Only the run of a task has: a loop, the making of a skill and a reading in parts
    /// are recorded as runs, too.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn has_checkpoint(&self, run: &str) -> Result<bool, StoreError> {
        let query = "SELECT turn <> '' FROM runs WHERE id = ?1";
        Ok(self.sql().query_row(query, [run], |row| row.get(0)).optional()?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_that_keeps_its_state_has_a_checkpoint() {
        let store = Store::in_memory().unwrap();
        for (run, turn) in [("run_1", "{}"), ("run_2", "")] {
            let task = super::super::tests::task(run, run);
            store.begin(&task, "x", turn, std::path::Path::new("/"), |_| false).unwrap();
            assert_eq!(store.has_checkpoint(run).unwrap(), !turn.is_empty());
        }
        assert!(!store.has_checkpoint("run_3").unwrap());
    }

    #[test]
    fn the_latest_model_is_stored_and_deleted_with_its_run() {
        let store = Store::in_memory().unwrap();
        let setup = "INSERT INTO sessions VALUES ('s', 0, 0);
                     INSERT INTO runs (id, session, task, status, root, created, updated)
                     VALUES ('run_1', 's', 't', 'stopped', '/', 0, 0);";
        store.sql().execute_batch(setup).unwrap();
        assert_eq!(store.model_of("run_1").unwrap(), None);
        for spec in ["script:/a.json", "qwen3-4b"] {
            store.keep_model("run_1", spec).unwrap();
            assert_eq!(store.model_of("run_1").unwrap().as_deref(), Some(spec));
        }
        store.delete_session("s", |_| false).unwrap();
        assert_eq!(store.model_of("run_1").unwrap(), None);
        assert!(store.keep_model("run_1", "x").is_err(), "there is no such run");
    }
}
