//! The model that a run is driven with, so that whoever goes on with it asks the same one.
//!
//! The table came later than the first ones and stands beside them: a program that does not know it goes on as before.

use super::{Store, StoreError};
use rusqlite::{Connection, OptionalExtension};

/// Makes the table where there is none.
pub(super) fn table(sql: &Connection) -> rusqlite::Result<()> {
    // a look takes no lock: only who finds nothing writes
    if sql.table_exists(None, "run_models")? {
        return Ok(());
    }
    sql.execute_batch(
        "CREATE TABLE IF NOT EXISTS run_models (
             run TEXT PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE, spec TEXT NOT NULL)",
    )
}

impl Store {
    /// Keeps what names the model of a run, as `--model` has it. The caller sees to it that no secret is in it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_model(&self, run: &str, spec: &str) -> Result<(), StoreError> {
        let keep = "INSERT INTO run_models VALUES (?1, ?2) ON CONFLICT(run) DO UPDATE SET spec = ?2";
        self.sql().execute(keep, [run, spec])?;
        Ok(())
    }

    /// What names the model of a run; nothing of one that was begun before that was kept.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn model_of(&self, run: &str) -> Result<Option<String>, StoreError> {
        let query = "SELECT spec FROM run_models WHERE run = ?1";
        Ok(self.sql().query_row(query, [run], |row| row.get(0)).optional()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_kept_and_goes_with_its_run() {
        let store = Store::in_memory().unwrap();
        let begun = "INSERT INTO sessions VALUES ('s', 0, 0);
                     INSERT INTO runs (id, session, task, status, root, created, updated)
                     VALUES ('run_1', 's', 't', 'stopped', '/', 0, 0);";
        store.sql().execute_batch(begun).unwrap();
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
