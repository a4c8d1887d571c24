//! Stores background tasks and their runs: which process runs one, its result, and the next time it is due.
//!
//! The tables were added without a new layout version: older programs ignore them.

use super::{Owner, Store, StoreError, count, int, now, process};
use crate::clock::parse_time;
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
    /// Its process ended before it did.
    Interrupted,
}

impl TaskState {
    const ALL: [(&'static str, Self); 9] = [
        ("queued", Self::Queued),
        ("claimed", Self::Claimed),
        ("running", Self::Running),
        ("completed", Self::Completed),
        ("failed", Self::Failed),
        ("timeout", Self::Timeout),
        ("cancelled", Self::Cancelled),
        ("skipped", Self::Skipped),
        ("interrupted", Self::Interrupted),
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// True if a process is at work on the run.
    fn is_active(self) -> bool {
        matches!(self, Self::Claimed | Self::Running)
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

/// Reads a run from a row that has its task's timeout, too.
fn run_of(row: &Row<'_>) -> rusqlite::Result<TaskRun> {
    let mut run = TaskRun {
        id: row.get("id")?,
        task: row.get("task")?,
        state: TaskState::of(&row.get::<_, String>("state")?),
        attempt: count(row, "attempt")?,
        due: count(row, "due")?,
        updated: count(row, "updated")?,
        run: row.get("run")?,
        note: row.get("note")?,
    };
    // the store has it as running until the next claim
    let owner = Owner { pid: row.get("owner")?, heard: run.updated };
    if run.state.is_active() && is_interrupted(count(row, "timeout")?, owner, &process::is_alive) {
        run.state = TaskState::Interrupted;
        run.note = ENDED.into();
    }
    Ok(run)
}

/// The note of a run whose process has ended.
const ENDED: &str = "its process was ended";

/// The note of such a run of a task that runs once.
const QUEUED_AGAIN: &str = "its process was ended: it is queued again";

/// The note of the second such run.
const ENDED_AGAIN: &str = "its process was ended again, so it is not repeated";

/// The note of an interrupted run that needs no repetition, and of the repetition.
const RESUMED: &str = "the run was resumed by hand";

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

/// Returns the active runs of the tasks in a folder with their tasks and processes.
fn active_runs(sql: &Connection, root: &str) -> rusqlite::Result<Vec<(StoredTask, TaskRun, Owner)>> {
    let mut query = sql.prepare_cached(
        "SELECT r.*, t.name, t.text, t.schedule, t.root, t.retries, t.delay, t.timeout, t.next, t.created
         FROM background_runs r JOIN background_tasks t ON t.name = r.task
         WHERE t.root = ?1 AND r.state IN ('claimed', 'running')",
    )?;
    let all = query.query_map([root], |row| {
        Ok((task_of(row)?, run_of(row)?, Owner { pid: row.get("owner")?, heard: count(row, "updated")? }))
    })?;
    all.collect()
}

/// True if the process of an active run has ended.
fn is_interrupted(timeout: u64, owner: Owner, is_alive: &impl Fn(Owner) -> bool) -> bool {
    let silence = id::millis(std::time::SystemTime::now()).saturating_sub(owner.heard);
    !owner.is_this() && !is_alive(owner) && counts_as_ended(process::tells_end(owner), timeout, silence)
}

/// True if a process that is not known to be alive counts as ended: it is known to have ended, or its run has not been
/// updated for longer than the timeout lets it run. A run is not updated while it is running.
fn counts_as_ended(is_known: bool, timeout: u64, silence: u64) -> bool {
    is_known || silence > timeout.saturating_mul(1000)
}

/// Interrupts the runs in a folder whose process has ended.
fn sweep(tx: &Transaction<'_>, root: &str, is_alive: &impl Fn(Owner) -> bool) -> rusqlite::Result<()> {
    for (task, run, owner) in active_runs(tx, root)? {
        if is_interrupted(task.timeout, owner, is_alive) {
            interrupt(tx, &task, run, (TaskState::Interrupted, ENDED))?;
        }
    }
    Ok(())
}

/// Ends a run that was interrupted, queues it again if its task runs once, and returns it. `otherwise` is its state and
/// note if it needs no repetition.
fn interrupt(
    tx: &Transaction<'_>,
    task: &StoredTask,
    run: TaskRun,
    otherwise: (TaskState, &str),
) -> rusqlite::Result<TaskRun> {
    let (state, note) = match requeue(tx, task, &run)? {
        Requeued::Done => (TaskState::Interrupted, QUEUED_AGAIN),
        Requeued::Refused => (TaskState::Failed, ENDED_AGAIN),
        Requeued::Needless => otherwise,
    };
    tx.execute(
        "UPDATE background_runs SET state = ?2, run = ?3, note = ?4, updated = ?5 WHERE id = ?1",
        params![run.id, state.name(), run.run, note, now()],
    )?;
    Ok(TaskRun { state, note: note.into(), ..run })
}

/// The result of queueing an interrupted run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Requeued {
    Done,
    /// It was queued again before.
    Refused,
    /// Its task runs again by itself, or it was started by hand.
    Needless,
}

/// Queues an interrupted run again if its task runs once, at a time. It does so once: a task that ends its process must
/// not do so forever.
fn requeue(tx: &Transaction<'_>, task: &StoredTask, run: &TaskRun) -> rusqlite::Result<Requeued> {
    // a run by hand is due at its own time
    let is_due_at = |at: &str| run.attempt > 1 || parse_time(at) == Some(run.due);
    if !task.schedule.strip_prefix("at ").is_some_and(is_due_at) {
        return Ok(Requeued::Needless);
    }
    let mut earlier = tx.prepare_cached(
        "SELECT 1 FROM background_runs
         WHERE task = ?1 AND due = ?2 AND attempt = ?3 AND id <> ?4 AND state <> 'skipped'",
    )?;
    if earlier.exists(params![task.name, int(run.due), run.attempt, run.id])? {
        return Ok(Requeued::Refused);
    }
    insert_run(tx, &task.name, TaskState::Queued, run.attempt, run.due)?;
    Ok(Requeued::Done)
}

/// Keeps an interrupted run of a task from being repeated, since the agent's run is resumed.
pub(super) fn drop_repetition(tx: &Transaction<'_>, run: &str) -> rusqlite::Result<()> {
    // before it was found to be interrupted, and after
    tx.execute(
        "UPDATE background_runs SET state = 'interrupted', note = ?2, updated = ?3
         WHERE run = ?1 AND state IN ('claimed', 'running')",
        params![run, RESUMED, now()],
    )?;
    tx.execute(
        "UPDATE background_runs SET state = 'cancelled', note = ?2, updated = ?3
         WHERE state = 'queued' AND (task, due, attempt) IN
               (SELECT task, due, attempt FROM background_runs WHERE run = ?1)",
        params![run, RESUMED, now()],
    )?;
    Ok(())
}

/// Claims the first queued run that fulfils a condition for this process, if there is one.
fn claim_queued(
    tx: &Transaction<'_>,
    condition: &str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<Option<TaskRun>> {
    let query = format!(
        "SELECT r.*, t.timeout FROM background_runs r JOIN background_tasks t ON t.name = r.task
         WHERE r.state = 'queued' AND {condition} ORDER BY r.due LIMIT 1"
    );
    let Some(run) = tx.query_row(&query, params, run_of).optional()? else { return Ok(None) };
    tx.execute(
        "UPDATE background_runs SET state = 'claimed', owner = ?2, updated = ?3 WHERE id = ?1",
        params![run.id, std::process::id(), now()],
    )?;
    Ok(Some(TaskRun { state: TaskState::Claimed, ..run }))
}

/// Returns the active run of a task, if there is one.
fn active_run(tx: &Transaction<'_>, task: &str) -> rusqlite::Result<Option<String>> {
    let query = "SELECT id FROM background_runs WHERE task = ?1 AND state IN ('claimed', 'running')";
    tx.query_row(query, [task], |row| row.get(0)).optional()
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
        let mut query = sql.prepare(
            "SELECT r.*, t.timeout FROM background_runs r JOIN background_tasks t ON t.name = r.task
             WHERE r.task = ?1 ORDER BY r.rowid DESC LIMIT ?2",
        )?;
        Ok(query.query_map(params![task, int(limit)], run_of)?.collect::<Result<_, _>>()?)
    }

    /// True if a task of that folder is due at `time`, or one of its runs was interrupted. It is cheap enough to be
    /// called at every turn.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn is_task_due(&self, root: &Path, time: u64, is_alive: impl Fn(Owner) -> bool) -> Result<bool, StoreError> {
        let sql = self.sql();
        let root = root.display().to_string();
        let mut query = sql.prepare_cached(
            "SELECT 1 FROM background_tasks WHERE root = ?1 AND (next <= ?2 OR EXISTS (
                 SELECT 1 FROM background_runs WHERE task = name AND state = 'queued' AND due <= ?2)) LIMIT 1",
        )?;
        let is_due = query.exists(params![root, int(time)])?;
        let active = if is_due { Vec::new() } else { active_runs(&sql, &root)? };
        Ok(is_due || active.iter().any(|(task, _, owner)| is_interrupted(task.timeout, *owner, &is_alive)))
    }

    /// Claims the next due run in a folder for this process. `next` returns the next time a task is due. A task whose
    /// previous run is still running gets a run in the state [`TaskState::Skipped`]. A task that runs once and was
    /// interrupted is due again, once.
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
        sweep(&tx, &folder, &is_alive)?;
        if let Some(run) = claim_queued(&tx, "t.root = ?1 AND r.due <= ?2", params![folder, int(time)])? {
            let task = tx.query_row("SELECT * FROM background_tasks WHERE name = ?1", [&run.task], task_of)?;
            tx.commit()?;
            return Ok(Claim::Have(Box::new(task), run));
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
            let busy = active_run(&tx, &task.name)?;
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

    /// Claims a run of a task for this process at once, regardless of its schedule: the queued one, if there is one, so
    /// that it is not run again at its time.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn claim_task(&self, name: &str, is_alive: impl Fn(Owner) -> bool) -> Result<Claim, StoreError> {
        let mut sql = self.sql();
        let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = tx.query_row("SELECT * FROM background_tasks WHERE name = ?1", [name], task_of).optional()?;
        let Some(task) = found else { return Ok(Claim::Nothing) };
        sweep(&tx, &task.root.display().to_string(), &is_alive)?;
        let busy = active_run(&tx, name)?;
        let time = id::millis(std::time::SystemTime::now());
        let claim = match busy {
            Some(run) => {
                insert_run(&tx, name, TaskState::Skipped, 1, time)?;
                Claim::Busy(run)
            }
            None => {
                let run = match claim_queued(&tx, "r.task = ?1", [name])? {
                    Some(run) => run,
                    None => insert_run(&tx, name, TaskState::Claimed, 1, time)?,
                };
                Claim::Have(Box::new(task), run)
            }
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

    /// Ends a run that was stopped with its process, and returns it. It is queued again if its task runs once and it was
    /// not queued again before.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn interrupt_task(&self, task: &StoredTask, run: TaskRun) -> Result<TaskRun, StoreError> {
        let mut sql = self.sql();
        let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let run = interrupt(&tx, task, run, (TaskState::Cancelled, ""))?;
        tx.commit()?;
        Ok(run)
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
    use crate::turn::AgentRun;

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
        assert!(!store.is_task_due(root, 99, |_| true).unwrap());
        assert_eq!(claim(99), Claim::Nothing);
        assert!(store.is_task_due(root, 100, |_| true).unwrap());
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
        store.sql().execute("UPDATE background_runs SET owner = 999999999, updated = 1", []).unwrap();
        assert_eq!(store.claim_task("a", |_| true).unwrap(), Claim::Busy(run.id));
        assert!(matches!(store.claim_task("a", |_| false).unwrap(), Claim::Have(..)));
        assert_eq!(states(&store, "a"), ["claimed", "skipped", "interrupted"]);
    }

    /// Adds a task that runs once, at a time that has passed, and returns that time.
    fn add_once(store: &Store) -> u64 {
        let at = parse_time("2026-11-27 08:00:00").unwrap();
        let [task, ..] = &store.tasks().unwrap()[..] else { panic!() };
        let (name, root, schedule) = ("once".into(), "/once".into(), "at 2026-11-27 08:00:00".into());
        assert!(store.add_task(&StoredTask { name, root, schedule, next: Some(at), ..task.clone() }).unwrap());
        at
    }

    #[test]
    fn an_interrupted_task_that_runs_once_is_due_again_once() {
        let store = store();
        let (root, at) = (Path::new("/once"), add_once(&store));
        let claim = |is_alive: bool| store.claim_due(root, at, |_| None, |_| is_alive).unwrap();
        let kill = || {
            let killed = "UPDATE background_runs SET owner = 999999999, updated = 1 WHERE owner <> 0";
            store.sql().execute(killed, []).unwrap();
        };
        let Claim::Have(_, first) = claim(false) else { panic!("it is due") };
        store.set_task_run(&first.id, TaskState::Running, "run_1", "").unwrap();
        assert!(!store.is_task_due(root, at, |_| false).unwrap(), "this process runs it");
        kill();
        assert_eq!(states(&store, "once"), ["interrupted"], "it is shown as such before the next claim");
        assert!(!store.is_task_due(root, at, |_| true).unwrap());
        assert_eq!(claim(true), Claim::Nothing, "its process is alive");
        assert!(store.is_task_due(root, at, |_| false).unwrap());
        let Claim::Have(_, second) = claim(false) else { panic!("it is due again") };
        assert_eq!((second.attempt, second.due, second.id == first.id), (1, at, false));
        assert_eq!(states(&store, "once"), ["claimed", "interrupted"]);
        kill();
        assert_eq!(claim(false), Claim::Nothing);
        assert_eq!(states(&store, "once"), ["failed", "interrupted"]);
        assert!(!store.is_task_due(root, at, |_| false).unwrap());
    }

    #[test]
    fn a_run_that_is_resumed_by_hand_is_not_repeated() {
        for is_swept in [true, false] {
            let store = store();
            let (root, at) = (Path::new("/once"), add_once(&store));
            let Claim::Have(task, run) = store.claim_due(root, at, |_| None, |_| true).unwrap() else { panic!() };
            store.set_task_run(&run.id, TaskState::Running, "run_1", "").unwrap();
            if is_swept {
                store.interrupt_task(&task, TaskRun { run: "run_1".into(), ..run }).unwrap();
            } else {
                store.sql().execute("UPDATE background_runs SET owner = 999999999, updated = 1", []).unwrap();
            }
            for (resumed, is_due) in [("run_2", true), ("run_1", false)] {
                let turn = AgentRun::new(crate::store::tests::task(resumed, resumed));
                let first = serde_json::to_string(&turn).unwrap();
                store.begin(turn.task(), "count", &first, root, |_| false).unwrap();
                store.take_over(resumed, |_| false).unwrap();
                assert_eq!(store.is_task_due(root, at, |_| false).unwrap(), is_due, "{resumed} {is_swept}");
            }
            let expected: &[&str] = if is_swept { &["cancelled", "interrupted"] } else { &["interrupted"] };
            assert_eq!(states(&store, "once"), expected);
        }
    }

    #[test]
    fn an_interruption_ends_alike_whether_the_process_was_stopped_or_has_died() {
        let at = parse_time("2026-11-27 08:00:00").unwrap();
        let ends = |is_stopped: bool| {
            let store = store();
            let root = Path::new("/once");
            add_once(&store);
            for number in 1..=2 {
                let Claim::Have(task, run) = store.claim_due(root, at, |_| None, |_| false).unwrap() else { panic!() };
                let run = TaskRun { run: format!("run_{number}"), ..run };
                store.set_task_run(&run.id, TaskState::Running, &run.run, "").unwrap();
                if is_stopped {
                    store.interrupt_task(&task, run).unwrap();
                } else {
                    store
                        .sql()
                        .execute("UPDATE background_runs SET owner = 999999999, updated = 1 WHERE owner <> 0", [])
                        .unwrap();
                }
            }
            assert_eq!(store.claim_due(root, at, |_| None, |_| false).unwrap(), Claim::Nothing);
            let runs = store.task_runs("once", 9).unwrap().into_iter();
            runs.map(|run| (run.state, run.run, run.note)).collect::<Vec<_>>()
        };
        let expected = [
            (TaskState::Failed, "run_2".to_owned(), ENDED_AGAIN.to_owned()),
            (TaskState::Interrupted, "run_1".into(), QUEUED_AGAIN.into()),
        ];
        assert_eq!(ends(true), expected);
        assert_eq!(ends(false), expected);
    }

    #[test]
    fn a_run_that_is_stopped_is_cancelled_if_its_task_needs_no_repetition() {
        let store = store();
        add_once(&store);
        let Claim::Have(once, by_hand) = store.claim_task("once", |_| true).unwrap() else { panic!() };
        let Claim::Have(task, run) = store.claim_due(Path::new("/w"), 100, |_| Some(160), |_| true).unwrap() else {
            panic!()
        };
        for (task, run) in [(once, by_hand), (task, run)] {
            let ended = store.interrupt_task(&task, run).unwrap();
            assert_eq!((ended.state, ended.note.as_str()), (TaskState::Cancelled, ""), "{}", task.name);
            assert_eq!(states(&store, &task.name), ["cancelled"]);
        }
    }

    #[test]
    fn a_task_that_is_run_by_hand_takes_its_queued_run() {
        let store = store();
        let (root, at) = (Path::new("/once"), add_once(&store));
        let Claim::Have(task, run) = store.claim_due(root, at, |_| None, |_| true).unwrap() else { panic!() };
        store.interrupt_task(&task, run).unwrap();
        store.queue_task("b", 2, u64::MAX >> 1).unwrap();
        for (name, due, attempt) in [("once", at, 1), ("b", u64::MAX >> 1, 2)] {
            let Claim::Have(_, run) = store.claim_task(name, |_| true).unwrap() else { panic!("{name}") };
            assert_eq!((run.due, run.attempt, run.state), (due, attempt, TaskState::Claimed), "{name}");
            assert_eq!(store.claim_task(name, |_| true).unwrap(), Claim::Busy(run.id.clone()));
            store.set_task_run(&run.id, TaskState::Completed, "", "").unwrap();
        }
        assert!(!store.is_task_due(root, at, |_| true).unwrap(), "it is not run twice");
        assert_eq!(states(&store, "once"), ["skipped", "completed", "interrupted"]);
    }

    #[test]
    fn a_silent_process_counts_as_ended_after_the_timeout_unless_its_end_is_known() {
        let hour = 3_600_000;
        for (is_known, timeout, silence, expected) in [
            (true, 600, 0, true),
            (false, 36_000, 7 * hour, false),
            (false, 36_000, 11 * hour, true),
            (false, u64::MAX, u64::MAX - 1, false),
        ] {
            assert_eq!(counts_as_ended(is_known, timeout, silence), expected, "{is_known} {timeout} {silence}");
        }
    }

    #[test]
    fn another_attempt_waits_for_its_time() {
        let store = store();
        store.queue_task("b", 2, 500).unwrap();
        let claim = |time| store.claim_due(Path::new("/w"), time, |_| None, |_| false).unwrap();
        assert!(matches!(claim(100), Claim::Have(task, _) if task.name == "a"));
        assert!(!store.is_task_due(Path::new("/w"), 499, |_| true).unwrap());
        assert_eq!(claim(499), Claim::Nothing);
        let Claim::Have(_, run) = claim(500) else { panic!() };
        assert_eq!((run.task.as_str(), run.attempt), ("b", 2));
        assert!(store.remove_task("b").unwrap() && !store.remove_task("b").unwrap());
        assert!(store.task_runs("b", 9).unwrap().is_empty());
    }
}
