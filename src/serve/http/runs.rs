//! Runs of the agent: starts them, streams their events, passes on the answers to their questions, and stops them
//! when the client disconnects. The harness drives them; their events are read from the store, to which each is
//! written before any subscriber is notified.

use super::body::Document;
use super::commands::CancelOnDrop;
use super::extract::Path;
use super::live::{ApproveOrder, CANCEL_POLL_INTERVAL};
use super::sse::{self, Disconnected, Events};
use super::{Engine, Problem, Server, blocking};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use caro_agent::Harness;
use caro_agent::event::Sink;
use caro_agent::harness::{HarnessError, Watch};
use caro_agent::runtime::Driven;
use caro_agent::store::StoreError;
use caro_agent::turn::{Report, Task};
use caro_model::Cancel;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};

/// Most calls in one step of a run.
const MAX_CALLS: usize = 5;
/// Seconds that a question of a streamed run waits for an answer by default.
const DEFAULT_APPROVAL_TIMEOUT: f64 = 60.0;
/// Most seconds that a question may wait for an answer.
const MAX_APPROVAL_TIMEOUT: f64 = 3600.0;
/// Interval of checks for events that another process may have written.
pub const EVENT_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// An order for a run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOrder {
    /// The task, in plain words.
    pub query: String,
    /// The session that it belongs to; a new one by default.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Most steps; by default the plan decides.
    #[serde(default)]
    pub max_steps: Option<u32>,
    /// Most calls in one step, 1 to 5.
    #[serde(default)]
    pub batch: Option<usize>,
    /// Seconds that a question waits for `POST /runs/{id}/approve` before it is denied.
    #[serde(default)]
    pub approval_timeout: Option<f64>,
}

impl RunOrder {
    /// Converts the order to a task.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn task(&self, harness: &Harness) -> Result<Task, Problem> {
        if self.batch.is_some_and(|batch| !(1..=MAX_CALLS).contains(&batch)) {
            return Err(Problem::unprocessable(format!("`batch` must be a number from 1 to {MAX_CALLS}")));
        }
        let task = harness.admit(&self.query, self.session_id.as_deref())?;
        Ok(task.limited(self.max_steps, self.batch))
    }

    /// Returns the time that a question waits; by default `default` seconds.
    fn approval_timeout(&self, default: f64) -> Result<Duration, Problem> {
        let seconds = self.approval_timeout.unwrap_or(default);
        if !(0.0..=MAX_APPROVAL_TIMEOUT).contains(&seconds) {
            return Err(Problem::unprocessable(format!(
                "`approval_timeout` must be seconds from 0 to {MAX_APPROVAL_TIMEOUT}"
            )));
        }
        Ok(Duration::from_secs_f64(seconds))
    }
}

impl From<HarnessError> for Problem {
    fn from(error: HarnessError) -> Self {
        let hint = error.hint();
        match error {
            HarnessError::Unclear(_)
            | HarnessError::Input(_)
            | HarnessError::Session
            | HarnessError::NamedAsRun(_)
            | HarnessError::Skill(_) => Self::unprocessable(error).detail(hint),
            HarnessError::Store(error) => error.into(),
            HarnessError::Stopped(_) => Self::stopped(),
            _ => Self::internal(error).detail(hint),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let hint = error.hint();
        match error {
            StoreError::Missing { .. } | StoreError::Empty => Self::not_found(error),
            error if error.is_busy() => Self::conflict(error).detail(hint),
            _ => Self::internal(error).detail(hint),
        }
    }
}

/// A run that was started.
struct StartedRun {
    task: Task,
    cancel: Cancel,
    result: JoinHandle<Result<Report, Problem>>,
}

/// Starts a run. It goes on until it ends or is cancelled, even if nothing waits for its result.
fn start(
    server: &Arc<Server>,
    engine: Arc<Engine>,
    task: Task,
    approval_timeout: Duration,
    sinks: Vec<Arc<dyn Sink>>,
) -> StartedRun {
    let limit = server.parts.settings.timeout;
    let cancel = Cancel::new();
    let bounded = limit.map_or(cancel.clone(), |limit| cancel.with_deadline(Instant::now() + limit));
    let (guard, approver) = server.live.enter(&task, cancel.clone(), bounded.clone(), approval_timeout);
    let mut all: Vec<Arc<dyn Sink>> = vec![server.live.clone()];
    all.extend(sinks);
    let watch = Watch { cancel: bounded.clone(), limits: None, sinks: all, approver: Some(Arc::new(approver)) };
    let job = task.clone();
    let result = blocking::spawn(async move {
        let _guard = guard;
        conduct(&engine.harness, job, watch, limit).await
    });
    StartedRun { task, cancel, result }
}

/// Runs a task to its end. `limit` is the time from which the deadline of `watch.cancel` was computed, for the error.
///
/// # Errors
/// If it cannot be started, takes too long, or is stopped.
pub async fn conduct(harness: &Harness, task: Task, watch: Watch, limit: Option<Duration>) -> Result<Report, Problem> {
    let deadline = watch.cancel.deadline();
    let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    match harness.conduct(task, watch).await {
        Ok(Driven::Done(report)) => Ok(*report),
        Ok(Driven::Stopped(_)) | Err(HarnessError::Stopped(_)) => Err(match limit {
            Some(limit) if is_late() => Problem::timeout(limit.as_secs_f64()),
            _ => Problem::stopped(),
        }),
        Err(error) => Err(error.into()),
    }
}

/// The result of a run whose task panicked.
fn panicked(error: JoinError) -> Result<Report, Problem> {
    Err(Problem::internal(format!("the run broke: {error}")))
}

/// Runs a task to its end without a user: calls that need approval are denied.
///
/// # Errors
/// If the order is invalid, or the run cannot be started or is stopped.
pub async fn run_unattended(
    server: &Arc<Server>,
    order: RunOrder,
    cancel: &Cancel,
    sink: Arc<dyn Sink>,
) -> Result<Report, Problem> {
    let engine = server.engine()?;
    let task = order.task(&engine.harness)?;
    let run = start(server, engine, task, Duration::ZERO, vec![sink]);
    let on_drop = CancelOnDrop(run.cancel);
    let mut result = run.result;
    loop {
        tokio::select! {
            ended = &mut result => return ended.unwrap_or_else(panicked),
            () = tokio::time::sleep(CANCEL_POLL_INTERVAL) => {
                if cancel.is_cancelled() {
                    on_drop.0.cancel();
                }
            }
        }
    }
}

/// `POST /run/sync`: runs a task and returns its report.
pub async fn run_sync(
    State(server): State<Arc<Server>>,
    Document(order): Document<RunOrder>,
) -> Result<Json<Report>, Problem> {
    let engine = server.engine()?;
    // a client sees a question before the end only if it follows the session's events, so the default is not to wait
    let (task, timeout) = (order.task(&engine.harness)?, order.approval_timeout(0.0)?);
    let StartedRun { cancel, result, .. } = start(&server, engine, task, timeout, Vec::new());
    let _cancel = CancelOnDrop(cancel);
    result.await.unwrap_or_else(panicked).map(Json)
}

/// `POST /run`: runs a task, and streams its events and then its report.
pub async fn run(State(server): State<Arc<Server>>, Document(order): Document<RunOrder>) -> Result<Response, Problem> {
    let engine = server.engine()?;
    let (task, timeout) = (order.task(&engine.harness)?, order.approval_timeout(DEFAULT_APPROVAL_TIMEOUT)?);
    let (events, response) = sse::stream();
    let changes = server.live.subscribe();
    let run = start(&server, engine.clone(), task, timeout, Vec::new());
    tokio::spawn(async move {
        let _cancel = CancelOnDrop(run.cancel.clone());
        let closed = events.clone();
        tokio::select! {
            // fails only if the client has disconnected
            _ = stream_run(&engine, run, &events, changes) => {}
            () = closed.closed() => {}
        }
    });
    Ok(response)
}

/// Streams a run to its end: a `session` event, the run's events, its result, and another `session` event.
async fn stream_run(
    engine: &Arc<Engine>,
    run: StartedRun,
    events: &Events,
    mut changes: watch::Receiver<u64>,
) -> Result<(), Disconnected> {
    let StartedRun { task, mut result, .. } = run;
    let about = |status: &str| json!({"status": status, "session_id": task.session, "run_id": task.run});
    events.send("session", None, &about("started")).await?;
    let mut seen = 0;
    let result = loop {
        let ended = tokio::select! {
            ended = &mut result => Some(ended),
            _ = changes.changed() => None,
        };
        seen = send_new_events(engine, &task.run, seen, events).await?;
        if let Some(ended) = ended {
            break ended.unwrap_or_else(panicked);
        }
    };
    match result {
        Ok(report) => events.send("complete", None, &json!(report)).await?,
        Err(problem) => events.send("error", None, &problem.document()).await?,
    }
    events.send("session", None, &about("ended")).await
}

/// Sends the events of a run after number `seen`; returns the number of the last one.
pub async fn send_new_events(engine: &Arc<Engine>, run: &str, seen: u64, events: &Events) -> Result<u64, Disconnected> {
    let mut last = seen;
    let (engine, run) = (engine.clone(), run.to_owned());
    let new = tokio::task::spawn_blocking(move || engine.harness.events().events(&run, seen)).await;
    // events that cannot be read now are read the next time
    for event in new.into_iter().flatten().flatten() {
        last = event.sequence_number;
        events.send(event.event_type.name(), Some(&event.event_id), &json!(event)).await?;
    }
    Ok(last)
}

/// `POST /runs/{id}/approve`: answers the question of a run.
pub async fn approve(
    State(server): State<Arc<Server>>,
    Path(run): Path<String>,
    Document(order): Document<ApproveOrder>,
) -> Result<Json<Value>, Problem> {
    let tools = server.engine()?.harness.tools()?;
    let (call, approved) = server.live.answer(&run, order, &tools)?;
    Ok(Json(json!({"run_id": run, "call_id": call, "approved": approved})))
}
