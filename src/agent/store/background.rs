//! Stores background tasks and their runs: which process runs one, its result, and the next time it is due.
//!
//! The tables were added without a new layout version: older programs ignore them.

use super::{Owner, Store, StoreError, count, int, now};
use caro_base::id;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde::Serialize;
use std::path::{Path, PathBuf};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS background_tasks (
        name TEXT PRIMARY KEY, text TEXT NOT NULL, schedule TEXT NOT NULL, root TEXT NOT NULL, retries INTEGER NOT NULL,
        delay INTEGER NOT NULL, timeout INTEGER NOT NULL, next INTEGER, created INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS background_runs (
        id TEXT PRIMARY KEY, task TEXT NOT NULL REFERENCES background_tasks(name) ON DELETE CASCADE, state TEXT NOT NULL,
        attempt INTEGER NOT NULL, due INTEGER NOT NULL, updated INTEGER NOT NULL, owner INTEGER NOT NULL DEFAULT 0,
        run TEXT NOT NULL DEFAULT '', note TEXT NOT NULL DEFAULT '');
";

/// Creates the tables if they do not exist.
pub(super) fn tables(sql: &Connection) -> rusqlite::Result<()> {
    // looking takes no lock, so that only the first opening writes
    if sql.table_exists(None, "background_runs")? { Ok(()) } else { sql.execute_batch(TABLES) }
}

/// The state of a run of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It is another attempt that waits for its time.
    Queued,
    /// A process has claimed it.
    Claimed,
    /// It is running.
    Running,
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
    /// It exceeded its timeout.
    Timeout,
    /// The user stopped it.
    Cancelled,
    /// It was skipped because the previous run was still running.
    Skipped,
}

impl TaskState {
    const ALL: [(&'static str, Self); 8] = [
        ("queued", Self::Queued),
        ("claimed", Self::Claimed),
        ("running", Self::Running),
        ("completed", Self::Completed),
        ("failed", Self::Failed),
        ("timeout", Self::Timeout),
        ("cancelled", Self::Cancelled),
        ("skipped", Self::Skipped),
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// Returns the state of that name; an unknown one is [`TaskState::Failed`].
    fn of(name: &str) -> Self {
        Self::ALL.iter().find(|(known, _)| *known == name).map_or(Self::Failed, |(_, state)| *state)
    }
}

/// A stored background task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredTask {
    /// Its name, unique.
    pub name: String,
    /// The task, in plain words.
    pub text: String,
    /// The text form of its [`Schedule`](crate::background::Schedule).
    pub schedule: String,
    /// Its working folder.
    pub root: PathBuf,
    /// The number of further attempts after a failed one.
    pub retries: u32,
    /// The delay before each of them, in seconds.
    pub delay: u64,
    /// The timeout of a run, in seconds.
    pub timeout: u64,
    /// The time it is due, milliseconds since 1970, UTC; `None` if it no longer starts by itself.
    pub next: Option<u64>,
    /// The time it was added, likewise.
    pub created: u64,
}

/// A run of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskRun {
    /// Its id.
    pub id: String,
    /// The task.
    pub task: String,
    /// Its state.
    pub state: TaskState,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The time it was due, milliseconds since 1970, UTC.
    pub due: u64,
    /// The time of its latest change, likewise.
    pub updated: u64,
    /// The id of the agent's run, once there is one.
    pub run: String,
    /// The reason for its state, if any.
    pub note: String,
}

/// The result of claiming a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// This process has claimed the task.
    Have(Box<StoredTask>, TaskRun),
    /// This previous run is still running.
    Busy(String),
    /// The task does not exist, or none is due.
    Nothing,
}

fn task_of(row: &Row<'_>) -> rusqlite::Result<StoredTask> {
    Ok(StoredTask {
        name: row.get("name")?,
        text: row.get("text")?,
        schedule: row.get("schedule")?,
        root: PathBuf::from(row.get::<_, String>("root")?),
        retries: count(row, "retries")?,
        delay: count(row, "delay")?,
        timeout: count(row, "timeout")?,
        next: row.get::<_, Option<i64>>("next")?.map(i64::unsigned_abs),
        created: count(row, "created")?,
    })
}

fn run_of(row: &Row<'_>) -> rusqlite::Result<TaskRun> {
    Ok(TaskRun {
        id: row.get("id")?,
        task: row.get("task")?,
        state: TaskState::of(&row.get::<_, String>("state")?),
        attempt: count(row, "attempt")?,
        due: count(row, "due")?,
        updated: count(row, "updated")?,
        run: row.get("run")?,
        note: row.get("note")?,
    })
}

/// Inserts a run in a state. This process owns it if it is claimed.
fn insert_run(tx: &Transaction<'_>, task: &str, state: TaskState, attempt: u32, due: u64) -> rusqlite::Result<TaskRun> {
    let run = TaskRun {
        id: id::fresh("task"),
        task: task.into(),
        state,
        attempt,
        due,
        updated: id::millis(std::time::SystemTime::now()),
        run: String::new(),
        note: String::new(),
    };
    let owner = if state == TaskState::Claimed { std::process::id() } else { 0 };
    tx.execute(
        "INSERT INTO background_runs (id, task, state, attempt, due, updated, owner) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![run.id, task, state.name(), attempt, int(due), int(run.updated), owner],
    )?;
    Ok(run)
}

/// Returns the run of a task that is still running. Runs whose process has ended are marked as failed.
fn running_run(
    tx: &Transaction<'_>,
    task: &str,
    is_alive: &impl Fn(Owner) -> bool,
) -> rusqlite::Result<Option<String>> {
    let mut query = tx.prepare(
        "SELECT id, owner, updated FROM background_runs WHERE task = ?1 AND state IN ('claimed', 'running')",
    )?;
    let rows = query.query_map([task], |row| Ok((row.get(0)?, Owner { pid: row.get(1)?, heard: count(row, 2)? })))?;
    let found: Vec<(String, Owner)> = rows.collect::<rusqlite::Result<_>>()?;
    let mut living = None;
    for (run, owner) in found {
        if owner.is_this() || is_alive(owner) {
            living = Some(run);
        } else {
            tx.execute(
                "UPDATE background_runs SET state = 'failed', note = 'its process was ended', updated = ?2 WHERE id = ?1",
                params![run, now()],
            )?;
        }
    }
    Ok(living)
}

impl Store {
    /// Stores a task; returns false if one of that name exists.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add_task(&self, task: &StoredTask) -> Result<bool, StoreError> {
        let added = self.sql().execute(
            "INSERT OR IGNORE INTO background_tasks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                task.name,
                task.text,
                task.schedule,
                task.root.display().to_string(),
                task.retries,
                int(task.delay),
                int(task.timeout),
                task.next.map(int),
                int(task.created)
            ],
        )?;
        Ok(added == 1)
    }

    /// Returns every task, by name.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn tasks(&self) -> Result<Vec<StoredTask>, StoreError> {
        let sql = self.sql();
        let mut query = sql.prepare("SELECT * FROM background_tasks ORDER BY name")?;
        Ok(query.query_map([], task_of)?.collect::<Result<_, _>>()?)
    }

    /// Removes a task and its runs; returns false if none of that name exists.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remove_task(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.sql().execute("DELETE FROM background_tasks WHERE name = ?1", [name])? == 1)
    }

    /// Returns at most `limit` of the latest runs of a task, latest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn task_runs(&self, task: &str, limit: usize) -> Result<Vec<TaskRun>, StoreError> {
        let sql = self.sql();
        let mut query = sql.prepare("SELECT * FROM background_runs WHERE task = ?1 ORDER BY rowid DESC LIMIT ?2")?;
        Ok(query.query_map(params![task, int(limit)], run_of)?.collect::<Result<_, _>>()?)
    }

    /// True if a task of that folder is due at `time`. It is cheap enough to be called at every turn.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn is_task_due(&self, root: &Path, time: u64) -> Result<bool, StoreError> {
        let sql = self.sql();
        let mut query = sql.prepare_cached(
            "SELECT 1 FROM background_tasks WHERE root = ?1 AND (next <= ?2 OR EXISTS (
                 SELECT 1 FROM background_runs WHERE task = name AND state = 'queued' AND due <= ?2)) LIMIT 1",
        )?;
        Ok(query.exists(params![root.display().to_string(), int(time)])?)
    }

    /// Claims the next due run in a folder for this process. `next` returns the next time a task is due. A task whose
    /// previous run is still running gets a run in the state [`TaskState::Skipped`].
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn claim_due(
        &self,
        root: &Path,
        time: u64,
        next: impl Fn(&StoredTask) -> Option<u64>,
        is_alive: impl Fn(Owner) -> bool,
    ) -> Result<Claim, StoreError> {
        let mut sql = self.sql();
        let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let folder = root.display().to_string();
        let queued = "SELECT r.* FROM background_runs r JOIN background_tasks t ON t.name = r.task
                      WHERE t.root = ?1 AND r.state = 'queued' AND r.due <= ?2 ORDER BY r.due LIMIT 1";
        if let Some(run) = tx.query_row(queued, params![folder, int(time)], run_of).optional()? {
            tx.execute(
                "UPDATE background_runs SET state = 'claimed', owner = ?2, updated = ?3 WHERE id = ?1",
                params![run.id, std::process::id(), now()],
            )?;
            let task = tx.query_row("SELECT * FROM background_tasks WHERE name = ?1", [&run.task], task_of)?;
            tx.commit()?;
            return Ok(Claim::Have(Box::new(task), TaskRun { state: TaskState::Claimed, ..run }));
        }
        let due: Vec<StoredTask> = {
            let mut query =
                tx.prepare("SELECT * FROM background_tasks WHERE root = ?1 AND next <= ?2 ORDER BY next")?;
            query.query_map(params![folder, int(time)], task_of)?.collect::<Result<_, _>>()?
        };
        let mut claim = Claim::Nothing;
        for task in due {
            let when = task.next.unwrap_or(time);
            tx.execute(
                "UPDATE background_tasks SET next = ?2 WHERE name = ?1",
                params![task.name, next(&task).map(int)],
            )?;
            let busy = running_run(&tx, &task.name, &is_alive)?;
            let state = if busy.is_some() { TaskState::Skipped } else { TaskState::Claimed };
            let run = insert_run(&tx, &task.name, state, 1, when)?;
            if busy.is_none() {
                claim = Claim::Have(Box::new(task), run);
                break;
            }
        }
        tx.commit()?;
        Ok(claim)
    }

    /// Claims a run of a task for this process at once, regardless of its schedule.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn claim_task(&self, name: &str, is_alive: impl Fn(Owner) -> bool) -> Result<Claim, StoreError> {
        let mut sql = self.sql();
        let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = tx.query_row("SELECT * FROM background_tasks WHERE name = ?1", [name], task_of).optional()?;
        let Some(task) = found else { return Ok(Claim::Nothing) };
        let busy = running_run(&tx, name, &is_alive)?;
        let time = id::millis(std::time::SystemTime::now());
        let claim = match busy {
            Some(run) => {
                insert_run(&tx, name, TaskState::Skipped, 1, time)?;
                Claim::Busy(run)
            }
            None => Claim::Have(Box::new(task), insert_run(&tx, name, TaskState::Claimed, 1, time)?),
        };
        tx.commit()?;
        Ok(claim)
    }

    /// Sets the state of a run, the id of the agent's run, and a note.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn set_task_run(&self, id: &str, state: TaskState, run: &str, note: &str) -> Result<(), StoreError> {
        self.sql().execute(
            "UPDATE background_runs SET state = ?2, run = ?3, note = ?4, updated = ?5 WHERE id = ?1",
            params![id, state.name(), run, note, now()],
        )?;
        Ok(())
    }

    /// Queues another attempt, due at that time.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn queue_task(&self, task: &str, attempt: u32, due: u64) -> Result<(), StoreError> {
        let mut sql = self.sql();
        let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        insert_run(&tx, task, TaskState::Queued, attempt, due)?;
        tx.commit()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> Store {
        let store = Store::in_memory().unwrap();
        for (name, root, next) in [("a", "/w", Some(100)), ("b", "/w", None), ("c", "/other", Some(50))] {
            let task = StoredTask {
                name: name.into(),
                text: "count".into(),
                schedule: "every 60s".into(),
                root: root.into(),
                retries: 0,
                delay: 30,
                timeout: 600,
                next,
                created: 1,
            };
            assert!(store.add_task(&task).unwrap());
            assert!(!store.add_task(&task).unwrap(), "the name is taken");
        }
        store
    }

    fn states(store: &Store, task: &str) -> Vec<&'static str> {
        store.task_runs(task, 9).unwrap().iter().map(|run| run.state.name()).collect()
    }

    #[test]
    fn a_due_task_is_claimed_once_and_skipped_while_its_run_is_running() {
        let store = store();
        let root = Path::new("/w");
        let claim = |time| store.claim_due(root, time, |task| task.next.map(|next| next + 60), |_| false).unwrap();
        assert!(!store.is_task_due(root, 99).unwrap());
        assert_eq!(claim(99), Claim::Nothing);
        assert!(store.is_task_due(root, 100).unwrap());
        let Claim::Have(task, run) = claim(100) else { panic!("it is due") };
        assert_eq!((task.name.as_str(), run.state, run.attempt, run.due), ("a", TaskState::Claimed, 1, 100));
        assert_eq!(claim(100), Claim::Nothing);
        assert_eq!(claim(160), Claim::Nothing, "skipped");
        assert_eq!(states(&store, "a"), ["skipped", "claimed"]);
        assert_eq!(store.claim_task("a", |_| false).unwrap(), Claim::Busy(run.id.clone()));
        store.set_task_run(&run.id, TaskState::Completed, "run_1", "").unwrap();
        assert!(matches!(claim(220), Claim::Have(..)));
        assert_eq!(store.claim_task("none", |_| false).unwrap(), Claim::Nothing);
        assert!(matches!(store.claim_task("b", |_| false).unwrap(), Claim::Have(..)), "whenever it is due");
    }

    #[test]
    fn the_run_of_an_ended_process_does_not_block_the_task() {
        let store = store();
        let Claim::Have(_, run) = store.claim_task("a", |_| false).unwrap() else { panic!() };
        store.sql().execute("UPDATE background_runs SET owner = 999999999", []).unwrap();
        assert_eq!(store.claim_task("a", |_| true).unwrap(), Claim::Busy(run.id));
        assert!(matches!(store.claim_task("a", |_| false).unwrap(), Claim::Have(..)));
        assert_eq!(states(&store, "a"), ["claimed", "skipped", "failed"]);
    }

    #[test]
    fn another_attempt_waits_for_its_time() {
        let store = store();
        store.queue_task("b", 2, 500).unwrap();
        let claim = |time| store.claim_due(Path::new("/w"), time, |_| None, |_| false).unwrap();
        assert!(matches!(claim(100), Claim::Have(task, _) if task.name == "a"));
        assert!(!store.is_task_due(Path::new("/w"), 499).unwrap());
        assert_eq!(claim(499), Claim::Nothing);
        let Claim::Have(_, run) = claim(500) else { panic!() };
        assert_eq!((run.task.as_str(), run.attempt), ("b", 2));
        assert!(store.remove_task("b").unwrap() && !store.remove_task("b").unwrap());
        assert!(store.task_runs("b", 9).unwrap().is_empty());
    }
}
