//! Runs of the agent: begun, shown as they happen, answered where they ask, and stopped when whoever wanted them has gone.
//! The harness drives them; what is shown of them is read from the store, in which every event is before anybody is told of it.

use super::body::Document;
use super::commands::CancelOnDrop;
use super::live::{ApproveOrder, LOOK};
use super::sse::{self, Events, Gone};
use super::{Engine, Problem, Server};
use axum::Json;
use axum::extract::{Path, State};
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

/// The most calls in one step of a run.
const MOST_CALLS: usize = 5;
/// How long a question waits for an answer where nothing is said, and at most, seconds.
const ANSWER_WITHIN: f64 = 60.0;
const LONGEST_WAIT: f64 = 3600.0;
/// Between two looks for events that another process may have written.
pub const POLL: Duration = Duration::from_millis(500);

/// A run that is wanted.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOrder {
    /// The task, in plain words.
    pub query: String,
    /// The session that it belongs to; a new one without.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The most steps; the plan decides without.
    #[serde(default)]
    pub max_steps: Option<u32>,
    /// The most calls in one step, 1 to 5.
    #[serde(default)]
    pub batch: Option<usize>,
    /// How many seconds a question waits for `POST /runs/{id}/approve` before it counts as a no.
    #[serde(default)]
    pub approval_timeout: Option<f64>,
}

impl RunOrder {
    /// The task that it is.
    ///
    /// # Errors
    /// If it is none.
    pub fn task(&self, harness: &Harness) -> Result<Task, Problem> {
        if self.batch.is_some_and(|batch| !(1..=MOST_CALLS).contains(&batch)) {
            return Err(Problem::unfit(format!("`batch` must be a number from 1 to {MOST_CALLS}")));
        }
        let task = harness.admit(&self.query, self.session_id.as_deref())?;
        Ok(task.limited(self.max_steps, self.batch))
    }

    /// How long a question waits, where `usual` is said for none.
    fn patience(&self, usual: f64) -> Result<Duration, Problem> {
        let seconds = self.approval_timeout.unwrap_or(usual);
        if !(0.0..=LONGEST_WAIT).contains(&seconds) {
            return Err(Problem::unfit(format!("`approval_timeout` must be seconds from 0 to {LONGEST_WAIT}")));
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
            | HarnessError::Skill(_) => Self::unfit(error).detail(hint),
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
            StoreError::Busy(_) | StoreError::Locked(_) | StoreError::Occupied { .. } => {
                Self::conflict(error).detail(hint)
            }
            _ => Self::internal(error).detail(hint),
        }
    }
}

/// A run that was begun.
struct Begun {
    task: Task,
    cancel: Cancel,
    done: JoinHandle<Result<Report, Problem>>,
}

/// Begins a run. It goes on until it ends or its switch is pulled, whoever waits for it.
fn begin(
    server: &Arc<Server>,
    engine: Arc<Engine>,
    task: Task,
    patience: Duration,
    sinks: Vec<Arc<dyn Sink>>,
) -> Begun {
    let limit = server.parts.settings.timeout;
    let cancel = Cancel::new();
    let bounded = limit.map_or(cancel.clone(), |limit| cancel.with_deadline(Instant::now() + limit));
    let (leaves, approver) = server.live.enter(&task, cancel.clone(), bounded.clone(), patience);
    let mut all: Vec<Arc<dyn Sink>> = vec![server.live.clone()];
    all.extend(sinks);
    let watch = Watch { cancel: bounded.clone(), limits: None, sinks: all, approver: Some(Arc::new(approver)) };
    let job = task.clone();
    let done = tokio::spawn(async move {
        let _leaves = leaves;
        conducted(&engine.harness, job, watch, limit).await
    });
    Begun { task, cancel, done }
}

/// Works on a task to its end. `limit` is how long it may take, as the deadline of the switch has it.
///
/// # Errors
/// If it cannot be begun, takes too long, or is stopped.
pub async fn conducted(
    harness: &Harness,
    task: Task,
    watch: Watch,
    limit: Option<Duration>,
) -> Result<Report, Problem> {
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
fn broke(error: JoinError) -> Result<Report, Problem> {
    Err(Problem::internal(format!("the run broke: {error}")))
}

/// Works on a task to its end with nobody to ask: what would be asked for is refused.
///
/// # Errors
/// If it is no task, cannot be begun, or is stopped.
pub async fn unattended(
    server: &Arc<Server>,
    order: RunOrder,
    cancel: &Cancel,
    sink: Arc<dyn Sink>,
) -> Result<Report, Problem> {
    let engine = server.engine()?;
    let task = order.task(&engine.harness)?;
    let begun = begin(server, engine, task, Duration::ZERO, vec![sink]);
    let gone = CancelOnDrop(begun.cancel);
    let mut done = begun.done;
    loop {
        tokio::select! {
            ended = &mut done => return ended.unwrap_or_else(broke),
            () = tokio::time::sleep(LOOK) => {
                if cancel.is_cancelled() {
                    gone.0.cancel();
                }
            }
        }
    }
}

/// `POST /run/sync`: the report of the run, when it is over.
pub async fn run_sync(
    State(server): State<Arc<Server>>,
    Document(order): Document<RunOrder>,
) -> Result<Json<Report>, Problem> {
    let engine = server.engine()?;
    // nobody sees the question before the run is over, unless they follow the session's events
    let (task, patience) = (order.task(&engine.harness)?, order.patience(0.0)?);
    let Begun { cancel, done, .. } = begin(&server, engine, task, patience, Vec::new());
    let _cancel = CancelOnDrop(cancel);
    done.await.unwrap_or_else(broke).map(Json)
}

/// `POST /run`: the events of the run as they happen, and its report.
pub async fn run(State(server): State<Arc<Server>>, Document(order): Document<RunOrder>) -> Result<Response, Problem> {
    let engine = server.engine()?;
    let (task, patience) = (order.task(&engine.harness)?, order.patience(ANSWER_WITHIN)?);
    let (events, response) = sse::stream();
    let bell = server.live.bell();
    let begun = begin(&server, engine.clone(), task, patience, Vec::new());
    tokio::spawn(async move {
        let _cancel = CancelOnDrop(begun.cancel.clone());
        let closed = events.clone();
        tokio::select! {
            // whoever reads no more is not told anything more either
            _ = tell(&engine, begun, &events, bell) => {}
            () = closed.closed() => {}
        }
    });
    Ok(response)
}

/// Tells a run to its end: the session, its events, what came of it, the session again.
async fn tell(engine: &Engine, begun: Begun, events: &Events, mut bell: watch::Receiver<u64>) -> Result<(), Gone> {
    let Begun { task, mut done, .. } = begun;
    let about = |status: &str| json!({"status": status, "session_id": task.session, "run_id": task.run});
    events.send("session", None, &about("started")).await?;
    let mut seen = 0;
    let ended = loop {
        let ended = tokio::select! {
            ended = &mut done => Some(ended),
            _ = bell.changed() => None,
        };
        seen = pass_on(engine, &task.run, seen, events).await?;
        if let Some(ended) = ended {
            break ended.unwrap_or_else(broke);
        }
    };
    match ended {
        Ok(report) => events.send("complete", None, &json!(report)).await?,
        Err(problem) => events.send("error", None, &problem.document()).await?,
    }
    events.send("session", None, &about("ended")).await
}

/// Sends what is new of a run; the number of its last event.
pub async fn pass_on(engine: &Engine, run: &str, seen: u64, events: &Events) -> Result<u64, Gone> {
    let mut last = seen;
    // one that cannot be read now is read with the next ones
    for event in engine.harness.events().events(run, seen).unwrap_or_default() {
        last = event.sequence_number;
        events.send(event.event_type.name(), Some(&event.event_id), &json!(event)).await?;
    }
    Ok(last)
}

/// `POST /runs/{id}/approve`.
pub async fn approve(
    State(server): State<Arc<Server>>,
    Path(run): Path<String>,
    Document(order): Document<ApproveOrder>,
) -> Result<Json<Value>, Problem> {
    server.engine()?;
    let (call, approved) = server.live.answer(&run, order)?;
    Ok(Json(json!({"run_id": run, "call_id": call, "approved": approved})))
}
