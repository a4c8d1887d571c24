//! Runs background tasks: once, at an interval, at times of the calendar, or by hand. Tasks are stored, and a perpetual
//! loop of the same folder runs them between two of its turns. Each run of a task is a normal run of the agent.
//!
//! - [`Schedule`]: when a task runs. [`cron`]: times of the calendar.
//! - [`run_due`], [`run_now`]: run a task and store the result: its state, its files (`background/AGENT/TASK/RUN` of
//!   the workspaces), its events, and the next attempt if the run failed.
//!
//! A task that runs once runs again, once, if its process ended before it did.
//!
//! While a task is running its next run is skipped. The user is never asked: what needs permission is refused, unless
//! it was allowed beforehand.

pub mod cron;

use super::clock::{parse_time, stamp};
use super::event::{Draft, Kind, Sink};
use super::harness::{Harness, HarnessError};
use super::runtime::Driven;
use super::store::{Claim, StoreError, StoredTask, TaskRun, TaskState, is_alive};
use super::turn::{AgentRun, Report};
use super::workspace::{Mode, Workspaces};
use caro_base::id;
use caro_model::Cancel;
use chrono::{Local, TimeZone};
use cron::Cron;
use serde_json::json;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Seconds before another attempt, by default.
pub const DELAY: u64 = 30;

/// Seconds that a run may take, by default.
pub const TIMEOUT: u64 = 600;

/// The session in the workspaces that holds the files of all runs.
const FILES_SESSION: &str = "background";

/// The times at which a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// Only by hand.
    Manual,
    /// Once, at a time: milliseconds since 1970, UTC.
    Once(u64),
    /// At an interval.
    Every(Duration),
    /// At times of the calendar: the notation and its parsed form.
    Cron(String, Cron),
}

impl Schedule {
    /// Returns the next time after `time` (milliseconds since 1970, UTC), if there is one.
    pub fn after(&self, time: u64) -> Option<u64> {
        match self {
            Self::Manual => None,
            Self::Once(at) => (*at > time).then_some(*at),
            Self::Every(interval) => Some(time + u64::try_from(interval.as_millis()).ok()?),
            Self::Cron(_, cron) => {
                let time = Local.timestamp_millis_opt(i64::try_from(time).ok()?).earliest()?;
                u64::try_from(cron.after(time)?.timestamp_millis()).ok()
            }
        }
    }

    /// Returns the first time of a new task. One whose only time has passed is due at once.
    pub fn first(&self, now: u64) -> Option<u64> {
        if let Self::Once(at) = self { Some(*at) } else { self.after(now) }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manual => f.write_str("manual"),
            Self::Once(at) => write!(f, "at {}", stamp(*at)),
            Self::Every(interval) => write!(f, "every {}s", interval.as_secs()),
            Self::Cron(text, _) => write!(f, "cron {text}"),
        }
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "manual" => Ok(Self::Manual),
            "at" => parse_time(rest).map(Self::Once).ok_or_else(|| "a time, as in `2026-11-27 08:00`".into()),
            "every" => interval(rest).map(Self::Every),
            "cron" => Ok(Self::Cron(rest.split_whitespace().collect::<Vec<_>>().join(" "), rest.parse()?)),
            other => Err(format!("manual, at, every or cron, and not `{other}`")),
        }
    }
}

/// Parses an interval such as `90`, `90s`, `10m`, `2h` or `1d`.
fn interval(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        _ => None,
    };
    let seconds = unit.and_then(|unit| digits.parse::<u64>().ok()?.checked_mul(unit));
    let seconds = seconds.filter(|seconds| (1..=366 * 86_400).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| "from a second to 366 days, as in 90s, 10m, 2h, 1d".into())
}

/// Runs the next task that is due in the harness's folder. Returns its run; `None` if no task is due, or it is running.
///
/// # Errors
/// If the store cannot be used. A failed run is no error.
pub async fn run_due(
    harness: &Harness,
    cancel: &Cancel,
    sinks: Vec<Arc<dyn Sink>>,
) -> Result<Option<TaskRun>, HarnessError> {
    let now = id::millis(SystemTime::now());
    if !harness.events().is_task_due(harness.root(), now, is_alive)? {
        return Ok(None);
    }
    let next = |task: &StoredTask| task.schedule.parse::<Schedule>().ok()?.after(now);
    match harness.events().claim_due(harness.root(), now, next, is_alive)? {
        Claim::Have(task, run) => Ok(Some(execute(harness, &task, run, cancel, sinks).await?)),
        Claim::Busy(_) | Claim::Nothing => Ok(None),
    }
}

/// Runs a task at once, even if it is not due. Returns its run; `None` if it is running, or no task has this name.
///
/// # Errors
/// As [`run_due`].
pub async fn run_now(
    harness: &Harness,
    name: &str,
    cancel: &Cancel,
    sinks: Vec<Arc<dyn Sink>>,
) -> Result<Option<TaskRun>, HarnessError> {
    match harness.events().claim_task(name, is_alive)? {
        Claim::Have(task, run) => Ok(Some(execute(harness, &task, run, cancel, sinks).await?)),
        Claim::Busy(_) | Claim::Nothing => Ok(None),
    }
}

/// Runs a claimed task and stores the result.
async fn execute(
    harness: &Harness,
    task: &StoredTask,
    mut run: TaskRun,
    cancel: &Cancel,
    sinks: Vec<Arc<dyn Sink>>,
) -> Result<TaskRun, HarnessError> {
    let store = harness.events();
    let result = attempt(harness, task, &mut run, cancel, sinks).await;
    let (state, note, report) = match result {
        // the errors: it was stopped while it waited for its session, in this process or in another
        Ok(Driven::Stopped(_)) | Err(HarnessError::Stopped(_) | HarnessError::Store(StoreError::Occupied { .. }))
            if cancel.is_cancelled() =>
        {
            let run = store.interrupt_task(task, run)?;
            write_files(harness, task, &run, None);
            return Ok(run);
        }
        Ok(Driven::Done(report)) if report.status == "completed" => (TaskState::Completed, String::new(), Some(report)),
        Ok(Driven::Done(report)) => (TaskState::Failed, report.termination_reason.clone(), Some(report)),
        Ok(Driven::Stopped(_)) => (TaskState::Timeout, format!("after {} s", task.timeout), None),
        Err(error) => (TaskState::Failed, error.to_string(), None),
    };
    let run = TaskRun { state, note, ..run };
    write_files(harness, task, &run, report.as_deref());
    store.set_task_run(&run.id, state, &run.run, &run.note)?;
    if matches!(state, TaskState::Failed | TaskState::Timeout) && run.attempt <= task.retries {
        store.queue_task(&task.name, run.attempt + 1, id::millis(SystemTime::now()) + 1000 * task.delay)?;
    }
    Ok(run)
}

/// Makes one attempt: a run of the agent in the task's own session, once no other run is active in it. The run gets the
/// id of the agent's run as soon as there is one.
async fn attempt(
    harness: &Harness,
    task: &StoredTask,
    run: &mut TaskRun,
    cancel: &Cancel,
    sinks: Vec<Arc<dyn Sink>>,
) -> Result<Driven, HarnessError> {
    let job = harness.task(&task.text, &session_of(&task.name));
    let _turn = harness.enter(&job.session).await;
    if cancel.is_cancelled() {
        return Err(HarnessError::Stopped(job.run));
    }
    let started = Instant::now();
    let cancel = cancel.with_deadline(started + Duration::from_secs(task.timeout));
    let mut prepared = harness.prepare(&job, cancel, &mut |_| {})?;
    let turn = AgentRun::new(job);
    prepared.begin_in_turn(&turn).await?;
    turn.task().run.clone_into(&mut run.run);
    harness.events().set_task_run(&run.id, TaskState::Running, &run.run, "")?;
    prepared.recall()?;
    let runtime = prepared.runtime(1, sinks, None);
    let about = json!({"task": task.name, "run": run.id, "attempt": run.attempt, "schedule": task.schedule});
    runtime.emitter.emit(Draft::new(Kind::BackgroundStart).metadata(about.clone()));
    let driven = runtime.run(turn).await;
    runtime.emitter.emit(Draft::new(Kind::BackgroundEnd).took(started.elapsed()).metadata(about));
    Ok(driven)
}

/// Returns the session of a task's runs.
pub fn session_of(task: &str) -> String {
    format!("task-{task}")
}

/// Deletes the files with the results of a task's runs.
///
/// # Errors
/// If one cannot be deleted.
pub fn forget_files(workspaces: &Workspaces, task: &str) -> std::io::Result<()> {
    workspaces.forget_folders(FILES_SESSION, task)
}

/// Writes the result of a run into files. A failure to write is ignored.
fn write_files(harness: &Harness, task: &StoredTask, run: &TaskRun, report: Option<&Report>) {
    let Some(workspaces) = harness.workspaces() else { return };
    let files = workspaces.open(FILES_SESSION);
    let agent = report.map_or("agent", |report| report.agent_name.as_str());
    let folder = format!("{agent}/{}/{}", task.name, run.id);
    let document = json!({"task": task.name, "state": run.state, "attempt": run.attempt, "note": run.note,
                          "agent_run": run.run, "report": report});
    let answer = report.map_or("", |report| report.response.as_str());
    for (name, text) in [("run.json", document.to_string()), ("answer.md", answer.to_owned())] {
        if !text.is_empty() {
            let _ = files.write(&format!("{folder}/{name}"), &text, Mode::Create);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_parses_to_its_own_notation() {
        for text in ["manual", "at 2026-11-27 08:00:00", "every 600s", "cron 0 8 * * 1-5"] {
            assert_eq!(text.parse::<Schedule>().unwrap().to_string(), text);
        }
        assert_eq!("every 10m".parse(), Ok(Schedule::Every(Duration::from_secs(600))));
        for wrong in ["", "daily", "every", "every 0", "every 5x", "at noon", "cron 0 8"] {
            assert!(wrong.parse::<Schedule>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_schedule_has_its_next_time() {
        let of = |text: &str| text.parse::<Schedule>().unwrap();
        let at = parse_time("2026-11-27 08:00:00").unwrap();
        assert_eq!((of("manual").first(5), of("manual").after(5)), (None, None));
        let once = of("at 2026-11-27 08:00");
        assert_eq!((once.first(at + 1), once.after(at), once.after(at - 1)), (Some(at), None, Some(at)));
        assert_eq!(of("every 60").after(1000), Some(61_000));
        assert_eq!(of("cron 0 8 * * *").after(at), Some(at + 86_400_000));
    }
}
