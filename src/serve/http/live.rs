//! The runs of the agent that are under way in this process, and the questions that they wait with.

use super::Problem;
use caro_agent::Args;
use caro_agent::event::{Event, Sink};
use caro_agent::runtime::{Approval, Approver, Question};
use caro_agent::tool::Hazard;
use caro_agent::turn::Task;
use caro_model::Cancel;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Between two looks whether a run that waits for an answer was stopped.
pub const LOOK: Duration = Duration::from_millis(50);

/// The runs that are under way in this process.
pub struct Runs {
    all: Mutex<HashMap<String, Live>>,
    /// Rings with every event.
    bell: watch::Sender<u64>,
}

/// One of them.
struct Live {
    session: String,
    cancel: Cancel,
    asks: Option<Pending>,
}

/// A question that waits for an answer.
struct Pending {
    call: String,
    danger: bool,
    lasting: bool,
    answer: mpsc::Sender<(Approval, Option<Args>)>,
}

impl Default for Runs {
    fn default() -> Self {
        Self { all: Mutex::default(), bell: watch::Sender::new(0) }
    }
}

impl Runs {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Live>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Heard with every event.
    pub fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    fn ring(&self) {
        self.bell.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// True while a run of the session is under way here.
    pub fn works_in(&self, session: &str) -> bool {
        self.all().values().any(|live| live.session == session)
    }

    /// True if none is under way.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Stops all of them.
    pub fn stop(&self) {
        self.all().values().for_each(|live| live.cancel.cancel());
    }

    /// Puts a run on the list, until what is returned is dropped, and asks for it whoever answers here. `stops` ends the waiting.
    pub fn enter(
        self: &Arc<Self>,
        task: &Task,
        cancel: Cancel,
        stops: Cancel,
        patience: Duration,
    ) -> (Leaves, Waiting) {
        let live = Live { session: task.session.clone(), cancel, asks: None };
        self.all().insert(task.run.clone(), live);
        let waiting = Waiting { runs: self.clone(), run: task.run.clone(), patience, cancel: stops };
        (Leaves(self.clone(), task.run.clone()), waiting)
    }

    /// Answers what a run asks; the call that it is about, and whether it may be done.
    ///
    /// # Errors
    /// If there is no such run or question, or the answer does not do for it.
    pub fn answer(&self, run: &str, order: ApproveOrder) -> Result<(String, bool), Problem> {
        let mut all = self.all();
        let live = all.get_mut(run).ok_or_else(|| Problem::not_found("there is no such run under way"))?;
        let asks = live.asks.as_ref().ok_or_else(|| Problem::conflict("the run asks nothing now"))?;
        if order.call_id.as_ref().is_some_and(|call| *call != asks.call) {
            return Err(Problem::conflict(format!("the run asks about {}", asks.call)));
        }
        let approval = match order.decision {
            Decision::No => Approval::No,
            Decision::Yes | Decision::Always if asks.danger => {
                return Err(Problem::conflict("this may destroy something").detail("the decision `danger` allows it"));
            }
            Decision::Yes | Decision::Danger => Approval::Yes,
            Decision::Always if asks.lasting => Approval::Always,
            Decision::Always => {
                return Err(
                    Problem::conflict("this is asked for each time").detail("the decision `yes` allows it once")
                );
            }
        };
        let Some(asks) = live.asks.take() else { return Err(Problem::conflict("the run asks nothing now")) };
        asks.answer
            .send((approval, order.args))
            .map_err(|_| Problem::conflict("the run does not wait for an answer any more"))?;
        Ok((asks.call, approval != Approval::No))
    }
}

impl Sink for Runs {
    fn take(&self, _: &Event) {
        self.ring();
    }
}

/// Asks whoever wanted the run, for a while.
pub struct Waiting {
    runs: Arc<Runs>,
    run: String,
    patience: Duration,
    cancel: Cancel,
}

impl Approver for Waiting {
    fn ask(&self, question: Question) -> (Approval, Option<Args>) {
        let (answer, answered) = mpsc::channel();
        let danger = question.call.effects.hazard == Hazard::Danger;
        let pending = Pending { call: question.call.id, danger, lasting: question.lasting, answer };
        if let Some(live) = self.runs.all().get_mut(&self.run) {
            live.asks = Some(pending);
        }
        let until = Instant::now() + self.patience;
        let said = loop {
            let left = until.saturating_duration_since(Instant::now());
            match answered.recv_timeout(left.min(LOOK)) {
                Ok(answer) => break answer,
                Err(RecvTimeoutError::Timeout) if !left.is_zero() && !self.cancel.is_cancelled() => {}
                Err(_) => break (Approval::No, None),
            }
        };
        if let Some(live) = self.runs.all().get_mut(&self.run) {
            live.asks = None;
        }
        said
    }
}

/// Takes a run off the list once it is over, however it ends.
pub struct Leaves(Arc<Runs>, String);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.all().remove(&self.1);
        // whoever follows looks once more
        self.0.ring();
    }
}

/// An answer to a question of a run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproveOrder {
    /// `yes`, `no`, `always` (for every such call of this run), `danger` (yes to what may destroy something).
    pub decision: Decision,
    /// The call that is meant; the one that waits without.
    #[serde(default)]
    pub call_id: Option<String>,
    /// Other arguments for the call, which is judged anew then.
    #[serde(default)]
    pub args: Option<Args>,
}

/// The answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// This once.
    Yes,
    /// No.
    No,
    /// This, and every one of its kind in this run.
    Always,
    /// Yes to a dangerous one.
    Danger,
}
