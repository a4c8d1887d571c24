//! Stores sessions, runs, events and checkpoints in one SQLite file (WAL), so that what was recorded survives a crash.
//!
//! Every event is its own transaction: a killed process loses at most the one it was writing.
//!
//! The session of workers is named after the run that they work for. It is not listed, and is deleted with that run.

mod background;
mod model;
mod perpetual;
mod process;
mod remembered;
mod stats;

pub use background::{Claim, StoredTask, TaskRun, TaskState};
pub use perpetual::Outgoing;
pub use process::{Owner, is_alive};
pub use stats::Stats;

use super::event::{Event, Kind, Sink};
use super::runtime::Checkpoints;
use super::turn::{AgentRun, Task};
use caro_base::id;
use caro_database as database;
use caro_database::file::{self, DatabaseError, Layout, count, int};
use caro_database::repair::{self, Repaired};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The file's name in the data folder.
pub const FILE: &str = "agent.db";

/// The tables. `user_version` is the number of the layout.
const TABLES: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY, created INTEGER NOT NULL, updated INTEGER NOT NULL);
    CREATE TABLE runs (
        id TEXT PRIMARY KEY, session TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, task TEXT NOT NULL,
        status TEXT NOT NULL, answer TEXT NOT NULL DEFAULT '', root TEXT NOT NULL, created INTEGER NOT NULL,
        updated INTEGER NOT NULL, turn TEXT NOT NULL DEFAULT '', owner INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX runs_of_session ON runs(session, created);
    CREATE TABLE events (
        run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE, seq INTEGER NOT NULL, event TEXT NOT NULL,
        PRIMARY KEY (run, seq)) WITHOUT ROWID;
";

const LAYOUT: Layout<'_> = Layout { tables: TABLES, version: 1 };

/// Most ids listed if the beginning of an id is ambiguous.
const MAX_LISTED: i64 = 6;

/// The reason a request to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be used.
    #[error(transparent)]
    Database(DatabaseError),
    /// There is no such run or session.
    #[error("there is no {what} `{id}`")]
    Missing {
        /// `run` or `session`.
        what: &'static str,
        /// The id, or its beginning.
        id: String,
    },
    /// There are no runs yet.
    #[error("no run has been kept yet")]
    Empty,
    /// The beginning of an id fits several.
    #[error("`{id}` fits several: {}", found.join(", "))]
    Ambiguous {
        /// The beginning.
        id: String,
        /// The ids that begin with it.
        found: Vec<String>,
    },
    /// Another process drives that run.
    #[error("the run `{0}` is being worked on by another process")]
    Busy(String),
    /// Another process drives a run of that session.
    #[error("the run `{run}` of the session `{session}` is under way in another process")]
    Occupied {
        /// The session.
        session: String,
        /// Its run.
        run: String,
    },
    /// The stored state of a run or loop cannot be read.
    #[error("the state that `{id}` would go on from cannot be read: {reason}")]
    Damaged {
        /// The run, or the session of the loop.
        id: String,
        /// Why.
        reason: String,
    },
    /// Any other error of SQLite.
    #[error("the store failed: {0}")]
    Sql(rusqlite::Error),
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Sql(error) => Self::Sql(error),
            other => Self::Database(other),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        DatabaseError::from(error).at(Path::new(FILE)).into()
    }
}

impl StoreError {
    /// Returns the next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Database(error) => error.hint(),
            Self::Missing { .. } => "`caro session list` shows what there is",
            Self::Empty => "`caro agent \"TASK\"` begins one",
            Self::Ambiguous { .. } => "give more of the id",
            Self::Busy(_) | Self::Occupied { .. } => "wait for it, or stop that process first",
            Self::Damaged { .. } => "use the version that kept it, or start again; `caro events` shows what was done",
            Self::Sql(_) => "check that the disk is not full and the data folder can be written",
        }
    }

    /// True if another process is using the file, the run or the session.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Database(DatabaseError::Busy(_)) | Self::Busy(_) | Self::Occupied { .. })
    }
}

/// A session with its runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// The time it was created, milliseconds since 1970, UTC.
    pub created: u64,
    /// The time its latest run began, likewise.
    pub updated: u64,
    /// Its runs, oldest first.
    pub runs: Vec<Run>,
    /// The model's summary of the runs that are no longer remembered; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
}

/// A run without its checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// Its session.
    pub session: String,
    /// The text of the task.
    pub task: String,
    /// `running`, `stopped`, `completed`, `incomplete` or `failed`. A running one whose process has ended is shown as
    /// stopped.
    pub status: String,
    /// The answer.
    pub answer: String,
    /// The working directory.
    pub root: PathBuf,
    /// The time it began, milliseconds since 1970, UTC.
    pub created: u64,
    /// The time of its latest change, likewise.
    pub updated: u64,
    /// False once the session no longer remembers it: it is listed, but not shown to a model.
    #[serde(default = "active_by_default")]
    pub active: bool,
}

fn active_by_default() -> bool {
    true
}

impl Run {
    /// True if it has ended and cannot be resumed.
    pub fn is_over(&self) -> bool {
        ENDED.contains(&self.status.as_str())
    }
}

/// The status of a run that a process drives.
const RUNNING: &str = "running";

/// The status of a run that can be resumed.
const STOPPED: &str = "stopped";

/// The statuses of a run that has ended.
const ENDED: [&str; 3] = ["completed", "incomplete", "failed"];

/// The store.
pub struct Store {
    connection: Mutex<Connection>,
}

impl Store {
    /// Opens the store in a file, creating it if it does not exist.
    ///
    /// # Errors
    /// If it cannot be opened or created.
    pub fn open(file: &Path) -> Result<Self, StoreError> {
        Self::with_connection(file::write(file, &LAYOUT)?).map_err(|e| DatabaseError::from(e).at(file).into())
    }

    /// Repairs a damaged file: copies what can be read.
    ///
    /// # Errors
    /// If the disk does not allow it.
    pub fn repair(file: &Path) -> Result<Repaired, StoreError> {
        let prepare = |sql: &mut Connection| {
            remembered::tables(sql)?;
            perpetual::tables(sql)?;
            background::tables(sql)?;
            model::table(sql)
        };
        Ok(repair::repair(file, &LAYOUT, prepare, |_| Ok(()))?)
    }

    /// Creates a store in memory.
    ///
    /// # Errors
    /// If SQLite fails.
    pub fn in_memory() -> Result<Self, StoreError> {
        let mut connection = Connection::open_in_memory()?;
        connection.pragma_update(None, "foreign_keys", true)?;
        database::create_tables(&mut connection, LAYOUT.tables, LAYOUT.version)?;
        Ok(Self::with_connection(connection)?)
    }

    fn with_connection(mut connection: Connection) -> rusqlite::Result<Self> {
        remembered::tables(&mut connection)?;
        model::table(&connection)?;
        perpetual::tables(&connection)?;
        background::tables(&connection)?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// True if nothing can be stored, since the file or its folder cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.sql().is_readonly("main").unwrap_or_default()
    }

    fn sql(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run, and its session if it is the first in it. A session has one run at a time. `turn` is the run's
    /// first checkpoint, redacted like the text, so that a process killed right after this can be resumed.
    ///
    /// # Errors
    /// [`StoreError::Occupied`] while another living process drives a run of the session, or if it cannot be written.
    pub fn begin(
        &self,
        task: &Task,
        redacted_text: &str,
        turn: &str,
        root: &Path,
        is_alive: impl Fn(Owner) -> bool,
    ) -> Result<(), StoreError> {
        let now = now();
        let mut sql = self.sql();
        // no other process can begin a run between the check and the insert
        let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        ensure_idle(&tx, &task.session, is_alive)?;
        tx.execute(
            "INSERT INTO sessions VALUES (?1, ?2, ?2) ON CONFLICT(id) DO UPDATE SET updated = ?2",
            params![task.session, now],
        )?;
        tx.execute(
            "INSERT INTO runs (id, session, task, status, turn, root, created, updated, owner)
             VALUES (?1, ?2, ?3, 'running', ?4, ?5, ?6, ?6, ?7)",
            params![task.run, task.session, redacted_text, turn, root.display().to_string(), now, std::process::id()],
        )?;
        tx.commit()?;
        Ok(())
    }

    /// Sets the status and the answer of a run, which then has no owner.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn set_status(&self, run: &str, status: &str, answer: &str) -> Result<(), StoreError> {
        self.sql().execute(
            "UPDATE runs SET status = ?2, answer = ?3, updated = ?4, owner = 0 WHERE id = ?1",
            params![run, status, answer, now()],
        )?;
        Ok(())
    }

    /// Takes over a run to resume it. Returns its turn and the number of its next event. If it is the run of a task, it
    /// is not repeated.
    ///
    /// # Errors
    /// If it does not exist, its checkpoint is unreadable, or another living process drives it or another run of its
    /// session.
    pub fn take_over(&self, run: &str, is_alive: impl Fn(Owner) -> bool) -> Result<(AgentRun, u64), StoreError> {
        let mut sql = self.sql();
        // no other process can take it or begin another run of its session between the check and the update
        let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (session, text): (String, String) = tx
            .query_row("SELECT session, turn FROM runs WHERE id = ?1", [run], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?
            .ok_or_else(|| StoreError::Missing { what: "run", id: run.into() })?;
        ensure_idle(&tx, &session, is_alive).map_err(|error| match error {
            StoreError::Occupied { run: this, .. } if this == run => StoreError::Busy(this),
            other => other,
        })?;
        let turn: AgentRun =
            serde_json::from_str(&text).map_err(|e| StoreError::Damaged { id: run.into(), reason: e.to_string() })?;
        tx.execute(
            "UPDATE runs SET status = 'running', owner = ?2, updated = ?3 WHERE id = ?1",
            params![run, std::process::id(), now()],
        )?;
        background::drop_repetition(&tx, run)?;
        let query = "SELECT COALESCE(MAX(seq), 0) + 1 AS next FROM events WHERE run = ?1";
        let next = tx.query_row(query, [run], |row| count(row, "next"))?;
        tx.commit()?;
        Ok((turn, next))
    }

    /// Returns the only run whose id begins with `beginning`; for an empty one the latest run that is not a worker's.
    ///
    /// # Errors
    /// If there is none or several.
    pub fn run(&self, beginning: &str) -> Result<Run, StoreError> {
        if beginning.is_empty() {
            let latest = "WHERE session NOT IN (SELECT id FROM runs)
                          ORDER BY created DESC, rowid DESC LIMIT 1";
            let latest = self.runs(latest, [])?;
            return latest.into_iter().next().ok_or(StoreError::Empty);
        }
        let id = self.full_id("run", "SELECT id, created FROM runs", beginning)?;
        let found = self.runs("WHERE id = ?1", [&id])?.into_iter().next();
        found.ok_or(StoreError::Missing { what: "run", id })
    }

    /// Returns the runs that have a checkpoint and have not ended, latest first, without those of workers.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn unfinished(&self) -> Result<Vec<Run>, StoreError> {
        let open = "WHERE status NOT IN (?1, ?2, ?3) AND turn <> '' AND session NOT IN (SELECT id FROM runs)
                    ORDER BY created DESC, rowid DESC";
        self.runs(open, ENDED)
    }

    /// Returns at most `limit` sessions, latest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn sessions(&self, limit: usize) -> Result<Vec<Session>, StoreError> {
        let latest = "WHERE id NOT IN (SELECT id FROM runs) ORDER BY updated DESC LIMIT ?1";
        self.session_heads(latest, [int(limit)])?.into_iter().map(|head| self.with_runs(head)).collect()
    }

    /// Returns the only session whose id begins with `beginning`; a run's id finds its session too.
    ///
    /// # Errors
    /// If there is none or several.
    pub fn session(&self, beginning: &str) -> Result<Session, StoreError> {
        let of_run = if beginning.starts_with("run_") { self.run(beginning).ok().map(|r| r.session) } else { None };
        let beginning = of_run.as_deref().unwrap_or(beginning);
        let listed = "SELECT id, created FROM sessions WHERE id NOT IN (SELECT id FROM runs)";
        let id = self.full_id("session", listed, beginning)?;
        let head = self.session_heads("WHERE id = ?1", [&id])?.into_iter().next();
        self.with_runs(head.ok_or(StoreError::Missing { what: "session", id })?)
    }

    /// Returns the only id of a query that begins with `beginning`.
    fn full_id(&self, what: &'static str, all: &str, beginning: &str) -> Result<String, StoreError> {
        let sql = self.sql();
        // an exact match comes first, so that the limit cannot cut it off
        let matching = format!(
            "SELECT id FROM ({all}) WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id <> ?1, created LIMIT {MAX_LISTED}"
        );
        let found = sql.prepare(&matching)?.query_map([beginning], |row| row.get(0))?.collect::<Result<Vec<_>, _>>()?;
        only_match(found, beginning, what)
    }

    /// Returns sessions without their runs; `condition` is the end of the query.
    fn session_heads(&self, condition: &str, params: impl rusqlite::Params) -> Result<Vec<Session>, StoreError> {
        let sql = self.sql();
        let mut query = sql.prepare(&format!("SELECT id, created, updated FROM sessions {condition}"))?;
        let rows = query.query_map(params, |row| {
            let (id, created, updated) = (row.get(0)?, count(row, 1)?, count(row, 2)?);
            Ok(Session { id, created, updated, runs: Vec::new(), summary: String::new() })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Adds the runs and the summary of a session.
    fn with_runs(&self, head: Session) -> Result<Session, StoreError> {
        let runs = self.runs("WHERE session = ?1 ORDER BY created, rowid", [&head.id])?;
        Ok(Session { runs, summary: self.summary(&head.id)?, ..head })
    }

    /// Fails while another living process drives a run of the session.
    ///
    /// # Errors
    /// [`StoreError::Occupied`] in that case, or if it cannot be read.
    pub fn check_idle(&self, session: &str, is_alive: impl Fn(Owner) -> bool) -> Result<(), StoreError> {
        ensure_idle(&self.sql(), session, is_alive)
    }

    /// Deletes a session with its runs and events and those of its workers.
    ///
    /// # Errors
    /// If it does not exist or cannot be deleted, or another living process drives a run of it.
    pub fn delete_session(&self, id: &str, is_alive: impl Fn(Owner) -> bool) -> Result<(), StoreError> {
        let mut sql = self.sql();
        let count = database::delete_on_full_disk(&mut sql, |sql| {
            let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if let Err(error) = ensure_idle(&tx, id, &is_alive) {
                return Ok(Err(error));
            }
            tx.execute("DELETE FROM sessions WHERE id IN (SELECT id FROM runs WHERE session = ?1)", [id])?;
            let count = tx.execute("DELETE FROM sessions WHERE id = ?1", [id])?;
            tx.commit()?;
            Ok(Ok(count))
        })??;
        if count == 0 {
            return Err(StoreError::Missing { what: "session", id: id.into() });
        }
        database::checkpoint(&sql);
        Ok(())
    }

    /// True while a living process drives the run, so that more events may follow.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn is_driven(&self, run: &str, is_alive: impl Fn(Owner) -> bool) -> Result<bool, StoreError> {
        let sql = self.sql();
        let session = sql.query_row("SELECT session FROM runs WHERE id = ?1", [run], |row| row.get(0)).optional()?;
        let Some(session): Option<String> = session else { return Ok(false) };
        let living = driven_runs(&sql, &session, |owner| owner.is_this() || is_alive(owner))?;
        Ok(living.iter().any(|living| living == run))
    }

    /// Returns the events of a run with numbers above `after`, in order.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn events(&self, run: &str, after: u64) -> Result<Vec<Event>, StoreError> {
        let sql = self.sql();
        let mut query = sql.prepare("SELECT event FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq")?;
        let rows = query.query_map(params![run, int(after)], |row| row.get::<_, String>(0))?;
        let mut events = Vec::new();
        for row in rows {
            // an event that is damaged or of a later version is skipped
            events.extend(serde_json::from_str(&row?).ok());
        }
        Ok(events)
    }

    /// Returns runs; `condition` is the end of the query.
    fn runs<P: rusqlite::Params>(&self, condition: &str, params: P) -> Result<Vec<Run>, StoreError> {
        let sql = self.sql();
        // checkpoints may be long and are not read here
        let mut query = sql.prepare(&format!(
            "SELECT id, session, task, status, answer, root, created, updated, owner,
                    id NOT IN (SELECT run FROM inactive_runs) AS active FROM runs {condition}"
        ))?;
        let rows = query.query_map(params, |row| {
            let mut status: String = row.get("status")?;
            if status == RUNNING && process::is_gone(Owner { pid: row.get("owner")?, heard: count(row, "updated")? }) {
                STOPPED.clone_into(&mut status);
            }
            Ok(Run {
                id: row.get("id")?,
                session: row.get("session")?,
                task: row.get("task")?,
                status,
                answer: row.get("answer")?,
                root: PathBuf::from(row.get::<_, String>("root")?),
                created: count(row, "created")?,
                updated: count(row, "updated")?,
                active: row.get("active")?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Returns the running runs of a session whose owner satisfies `is_alive`.
fn driven_runs(sql: &Connection, session: &str, is_alive: impl Fn(Owner) -> bool) -> Result<Vec<String>, StoreError> {
    let mut query =
        sql.prepare("SELECT id, owner, updated FROM runs WHERE session = ?1 AND status = 'running' AND owner <> 0")?;
    let rows =
        query.query_map([session], |row| Ok((row.get(0)?, Owner { pid: row.get(1)?, heard: count(row, 2)? })))?;
    let mut found: Vec<(String, Owner)> = rows.collect::<Result<_, _>>()?;
    found.retain(|(_, owner)| is_alive(*owner));
    Ok(found.into_iter().map(|(run, _)| run).collect())
}

/// Fails while another living process drives a run of the session.
fn ensure_idle(sql: &Connection, session: &str, is_alive: impl Fn(Owner) -> bool) -> Result<(), StoreError> {
    let others = driven_runs(sql, session, |owner| !owner.is_this() && is_alive(owner))?;
    let first = others.into_iter().next();
    first.map_or(Ok(()), |run| Err(StoreError::Occupied { session: session.into(), run }))
}

/// Returns the only one of the found ids that begins with `beginning`.
fn only_match(found: Vec<String>, beginning: &str, what: &'static str) -> Result<String, StoreError> {
    match id::find_by_prefix(found, beginning, |id| id) {
        id::PrefixMatch::One(one) => Ok(one),
        id::PrefixMatch::None => Err(StoreError::Missing { what, id: beginning.into() }),
        id::PrefixMatch::Several(found) => Err(StoreError::Ambiguous { id: beginning.into(), found }),
    }
}

impl Sink for Store {
    fn take(&self, event: &Event) {
        let Ok(text) = serde_json::to_string(event) else { return };
        // a full disk must not end the run; the failing checkpoint reports it
        let _ = self.sql().execute(
            "INSERT INTO events (run, seq, event) VALUES (?1, ?2, ?3)",
            params![event.trace_id, int(event.sequence_number), text],
        );
        if event.event_type == Kind::AgentEnd {
            let status = event.metadata.get("status").and_then(serde_json::Value::as_str).unwrap_or("failed");
            let answer = event.output.get("response").and_then(serde_json::Value::as_str).unwrap_or_default();
            let _ = self.set_status(&event.trace_id, status, answer);
        }
    }
}

impl Checkpoints for Store {
    fn keep(&self, run: &str, redacted: &str) -> Result<(), String> {
        let updated = self
            .sql()
            .execute("UPDATE runs SET turn = ?2, updated = ?3 WHERE id = ?1", params![run, redacted, now()])
            .map_err(|e| e.to_string())?;
        if updated == 1 { Ok(()) } else { Err(format!("there is no run {run}")) }
    }

    fn may_have_begun(&self, run: &str, call: &str) -> bool {
        let Ok(events) = self.events(run, 0) else { return true };
        let has = |kind: Kind| events.iter().any(|event| event.span_id == call && event.event_type == kind);
        has(Kind::ToolCall) || has(Kind::ApprovalGranted) || !has(Kind::ApprovalRequest)
    }
}

/// Returns the current time in milliseconds since 1970, as an SQLite integer.
fn now() -> i64 {
    int(id::millis(SystemTime::now()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Draft, Emitter};
    use crate::plan::Plan;
    use caro_policy::Redactor;
    use std::sync::Arc;

    pub(super) fn task(run: &str, session: &str) -> Task {
        Task {
            run: run.into(),
            session: session.into(),
            agent: "agent".into(),
            text: "count".into(),
            plan: Plan::heuristic("count"),
            max_steps: 5,
            batch: 1,
            place: String::new(),
        }
    }

    #[test]
    fn stored_data_is_read_by_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data/agent.db");
        let turn = AgentRun::new(task("run_a1", "s_1"));
        {
            let store = Arc::new(Store::open(&file).unwrap());
            store.begin(turn.task(), "count", "", Path::new("/w"), |_| false).unwrap();
            let emitter = Emitter::new("run_a1", 1, Redactor::default(), vec![store.clone()]);
            emitter.emit(Draft::new(Kind::AgentStart));
            emitter.emit(Draft::new(Kind::UserMessage).input("count"));
            store.keep("run_a1", &serde_json::to_string(&turn).unwrap()).unwrap();
        }
        let store = Store::open(&file).unwrap();
        assert_eq!(store.events("run_a1", 1).unwrap().len(), 1);
        let (again, next) = store.take_over("run_a1", |_| false).unwrap();
        assert_eq!((again, next), (turn, 3));
        let run = store.run("run_a").unwrap();
        assert_eq!((run.status.as_str(), run.root.as_path()), ("running", Path::new("/w")));
        assert_eq!(store.session("run_a1").unwrap().runs, [run]);
    }

    #[test]
    fn a_session_has_one_run_at_a_time() {
        let store = Store::in_memory().unwrap();
        store.begin(&task("run_1", "s_1"), "x", "", Path::new("/"), |_| true).unwrap();
        // as if another process had begun it
        store.sql().execute("UPDATE runs SET owner = 1", []).unwrap();
        let second = |alive: bool| store.begin(&task("run_2", "s_1"), "x", "", Path::new("/"), |_| alive);
        assert!(matches!(second(true), Err(StoreError::Occupied { run, .. }) if run == "run_1"));
        assert!(matches!(store.run("run_2"), Err(StoreError::Missing { .. })), "nothing of it was written");
        store.begin(&task("run_3", "s_2"), "x", "", Path::new("/"), |_| true).unwrap();
        second(false).unwrap();
        store.set_status("run_1", "completed", "").unwrap();
        store.begin(&task("run_4", "s_1"), "x", "", Path::new("/"), |_| true).unwrap();
    }

    #[test]
    fn workers_are_found_only_by_id_and_deleted_with_their_lead() {
        let store = Store::in_memory().unwrap();
        store.begin(&task("run_1", "s_1"), "x", "", Path::new("/"), |_| false).unwrap();
        store.begin(&task("worker_1", "run_1"), "x", "", Path::new("/"), |_| true).unwrap();
        assert_eq!(store.run("").unwrap().id, "run_1");
        assert_eq!(store.run("worker").unwrap().session, "run_1");
        let listed: Vec<String> = store.sessions(9).unwrap().into_iter().map(|s| s.id).collect();
        assert_eq!(listed, ["s_1"]);
        store.delete_session("s_1", |_| false).unwrap();
        assert!(matches!(store.run("worker_1"), Err(StoreError::Missing { .. })));
    }

    #[test]
    fn an_unambiguous_beginning_of_an_id_is_enough() {
        let store = Store::in_memory().unwrap();
        for run in ["run_a1", "run_a2", "run_b"] {
            store.begin(&task(run, "s_1"), "x", "", Path::new("/"), |_| false).unwrap();
        }
        assert_eq!(store.run("run_b").unwrap().id, "run_b");
        assert!(matches!(store.run("run_a"), Err(StoreError::Ambiguous { found, .. }) if found.len() == 2));
        assert!(matches!(store.run("x"), Err(StoreError::Missing { .. })));
        assert_eq!(store.run("").unwrap().id, "run_b");
        store.begin(&task("run_c", "s_1"), "x", "", Path::new("/"), |_| false).unwrap();
        for run in ["run_a1", "run_a2", "run_b"] {
            store.keep(run, "{}").unwrap();
        }
        store.set_status("run_b", "completed", "").unwrap();
        store.set_status("run_a1", "stopped", "").unwrap();
        let open: Vec<String> = store.unfinished().unwrap().into_iter().map(|run| run.id).collect();
        assert_eq!(open, ["run_a2", "run_a1"]);
        store.delete_session("s_1", |_| false).unwrap();
        assert!(matches!(store.run("run_b"), Err(StoreError::Missing { .. })));
        assert!(store.sessions(9).unwrap().is_empty());
    }

    #[test]
    fn a_run_driven_by_another_process_is_not_taken_over() {
        let store = Store::in_memory().unwrap();
        store.begin(&task("run_1", "s_1"), "x", "", Path::new("/"), |_| false).unwrap();
        store.keep("run_1", &serde_json::to_string(&AgentRun::new(task("run_1", "s_1"))).unwrap()).unwrap();
        store.sql().execute("UPDATE runs SET owner = 4000000", []).unwrap();
        assert!(matches!(store.take_over("run_1", |_| true), Err(StoreError::Busy(_))));
        assert!(store.take_over("run_1", |_| false).is_ok());
        store.keep("run_1", "{}").unwrap();
        assert!(matches!(store.take_over("run_1", |_| false), Err(StoreError::Damaged { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn a_running_run_whose_process_has_ended_is_shown_as_stopped() {
        let store = Store::in_memory().unwrap();
        for run in ["run_1", "run_2"] {
            store.begin(&task(run, "s_1"), "x", "", Path::new("/"), |_| false).unwrap();
        }
        store.sql().execute("UPDATE runs SET owner = 4194305 WHERE id = 'run_1'", []).unwrap();
        let listed = store.sessions(9).unwrap().remove(0).runs;
        let status: Vec<&str> = listed.iter().map(|run| run.status.as_str()).collect();
        assert_eq!(status, [STOPPED, RUNNING]);
        assert_eq!((store.run("run_1").unwrap().status.as_str(), listed[0].is_over()), (STOPPED, false));
    }

    #[test]
    fn a_call_that_was_not_approved_has_not_begun() {
        let store = Arc::new(Store::in_memory().unwrap());
        store.begin(&task("run_1", "s_1"), "x", "", Path::new("/"), |_| false).unwrap();
        let emitter = Emitter::new("run_1", 1, Redactor::default(), vec![store.clone()]);
        for (call, kinds) in [
            ("s1c1", &[Kind::ApprovalRequest][..]),
            ("s1c2", &[Kind::ApprovalRequest, Kind::ApprovalGranted]),
            ("s1c3", &[Kind::ToolCall]),
        ] {
            kinds.iter().for_each(|kind| _ = emitter.emit(Draft::new(*kind).span(call)));
        }
        let begun = ["s1c1", "s1c2", "s1c3", "s1c4"].map(|call| store.may_have_begun("run_1", call));
        assert_eq!(begun, [false, true, true, true], "who is not known may have");
    }

    #[test]
    fn of_two_processes_that_resume_at_once_one_gets_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agent.db");
        let (one, other) = (Store::open(&file).unwrap(), Store::open(&file).unwrap());
        one.begin(&task("run_1", "s_1"), "x", "", Path::new("/"), |_| false).unwrap();
        one.keep("run_1", &serde_json::to_string(&AgentRun::new(task("run_1", "s_1"))).unwrap()).unwrap();
        one.sql().execute("UPDATE runs SET owner = 4000000", []).unwrap();
        // while one process checks, the other cannot take the run
        other.sql().busy_timeout(std::time::Duration::from_millis(20)).unwrap();
        let slow = one.take_over("run_1", |_| {
            assert!(matches!(other.take_over("run_1", |_| false), Err(StoreError::Database(DatabaseError::Busy(file))) if file == FILE));
            false
        });
        assert!(slow.is_ok(), "{slow:?}");
    }

    #[test]
    fn a_session_driven_by_another_process_is_not_changed() {
        let store = Store::in_memory().unwrap();
        let turn = |run: &str| serde_json::to_string(&AgentRun::new(task(run, "s_1"))).unwrap();
        for run in ["run_1", "run_2"] {
            store.begin(&task(run, "s_1"), "x", "", Path::new("/"), |_| false).unwrap();
            store.keep(run, &turn(run)).unwrap();
        }
        store.set_status("run_1", "running", "").unwrap();
        store.sql().execute("UPDATE runs SET owner = 4000000 WHERE id = 'run_2'", []).unwrap();
        assert!(matches!(store.take_over("run_1", |_| true), Err(StoreError::Occupied { run, .. }) if run == "run_2"));
        assert!(matches!(store.delete_session("s_1", |_| true), Err(StoreError::Occupied { .. })));
        assert!(store.is_driven("run_2", |_| true).unwrap() && !store.is_driven("run_1", |_| true).unwrap());
        assert!(matches!(store.check_idle("s_1", |_| true), Err(StoreError::Occupied { .. })));
        // the owner has the time of the last update, since its process id may belong to another process by now
        store.sql().execute("UPDATE runs SET updated = 1 WHERE id = 'run_2'", []).unwrap();
        let heard = |owner: Owner| (owner.pid, owner.heard) != (4_000_000, 1);
        store.check_idle("s_1", heard).unwrap();
        assert!(store.take_over("run_2", heard).is_ok());
        store.delete_session("s_1", |_| true).unwrap();
        assert!(matches!(store.session(""), Err(StoreError::Missing { .. })));
    }

    #[test]
    fn a_file_that_is_not_a_store_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        std::fs::write(&file, "this is not a database, and long enough to be looked at").unwrap();
        assert!(
            matches!(Store::open(&file), Err(StoreError::Database(DatabaseError::Open { path, .. })) if path.ends_with("x.db"))
        );
    }

    #[test]
    fn a_full_disk_is_reported_as_such() {
        let store = Store::in_memory().unwrap();
        store.sql().execute_batch("PRAGMA max_page_count = 1").unwrap();
        let mut long = task("run_1", "s_1");
        long.session = "s".repeat(1 << 20);
        let error = store.begin(&long, "x", "", Path::new("/"), |_| false).unwrap_err();
        assert!(matches!(&error, StoreError::Database(DatabaseError::Disk { path, .. }) if path == FILE), "{error}");
        assert!(!error.hint().contains("move the file away"));
    }

    #[test]
    fn a_file_of_a_later_version_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agent.db");
        let later = Connection::open(&file).unwrap();
        later.execute_batch("CREATE TABLE other (x); PRAGMA user_version = 2;").unwrap();
        assert!(
            matches!(Store::open(&file), Err(StoreError::Database(DatabaseError::Newer(path))) if path.ends_with("agent.db"))
        );
        assert_eq!(later.query_row("SELECT COUNT(*) FROM sqlite_master", [], |row| row.get(0)), Ok(1));
    }

    #[test]
    fn an_ambiguous_beginning_lists_a_few_ids_without_reading_checkpoints() {
        let store = Store::in_memory().unwrap();
        for n in 0..20 {
            store.begin(&task(&format!("run_1{n}"), &format!("s_1{n}")), "x", "", Path::new("/"), |_| false).unwrap();
        }
        store.begin(&task("run_1", "s_1"), "x", "", Path::new("/"), |_| false).unwrap();
        for error in [store.session("s_").unwrap_err(), store.run("run_").unwrap_err()] {
            assert!(matches!(&error, StoreError::Ambiguous { found, .. } if found.len() == 6), "{error}");
        }
        assert_eq!((store.session("s_1").unwrap().id, store.run("run_1").unwrap().id), ("s_1".into(), "run_1".into()));
        // renaming the column proves that the listing does not read it
        store.sql().execute_batch("ALTER TABLE runs RENAME COLUMN turn TO checkpoint").unwrap();
        assert_eq!(store.session("s_15").unwrap().runs[0].id, "run_15");
    }
}
