//! The agent runs in progress in this process, and the questions that they wait with.

use super::Problem;
use caro_agent::Args;
use caro_agent::event::{Event, Sink};
use caro_agent::runtime::{Approval, Approver, Question};
use caro_agent::tool::{Hazard, ToolSpec};
use caro_agent::turn::Task;
use caro_model::Cancel;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Interval at which a waiting run checks for cancellation.
pub const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The runs in progress in this process, by run id.
pub struct Runs {
    all: Mutex<HashMap<String, ActiveRun>>,
    /// Changes with every event.
    event_count: watch::Sender<u64>,
}

/// A run in progress.
struct ActiveRun {
    cancel: Cancel,
    question: Option<PendingQuestion>,
}

/// A question that waits for an answer.
struct PendingQuestion {
    call: String,
    tool: String,
    is_dangerous: bool,
    lasting: bool,
    answer: mpsc::Sender<(Approval, Option<Args>)>,
}

impl Default for Runs {
    fn default() -> Self {
        Self { all: Mutex::default(), event_count: watch::Sender::new(0) }
    }
}

impl Runs {
    fn all(&self) -> MutexGuard<'_, HashMap<String, ActiveRun>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that changes with every event.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.event_count.subscribe()
    }

    fn notify(&self) {
        self.event_count.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// True if no run is in progress.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Stops all runs.
    pub fn stop(&self) {
        self.all().values().for_each(|run| run.cancel.cancel());
    }

    /// Registers a run until the returned guard is dropped. The returned approver waits at most `timeout` for an
    /// answer to [`Runs::answer`], and stops waiting if `stop_waiting` is cancelled.
    pub fn enter(
        self: &Arc<Self>,
        task: &Task,
        cancel: Cancel,
        stop_waiting: Cancel,
        timeout: Duration,
    ) -> (RunGuard, RemoteApprover) {
        let run = ActiveRun { cancel, question: None };
        self.all().insert(task.run.clone(), run);
        let approver = RemoteApprover { runs: self.clone(), run: task.run.clone(), timeout, cancel: stop_waiting };
        (RunGuard(self.clone(), task.run.clone()), approver)
    }

    /// Answers the question of a run. Returns the id of the call that it is about, and true if the call is allowed.
    ///
    /// # Errors
    /// If there is no such run or question, the decision does not fit the question, or new arguments do not fit the
    /// tool, one of `tools`.
    pub fn answer(&self, run: &str, order: ApproveOrder, tools: &[ToolSpec]) -> Result<(String, bool), Problem> {
        let mut all = self.all();
        let active = all.get_mut(run).ok_or_else(|| Problem::not_found("there is no such run under way"))?;
        let question = active.question.as_ref().ok_or_else(|| Problem::conflict("the run asks nothing now"))?;
        if order.call_id.as_ref().is_some_and(|call| *call != question.call) {
            return Err(Problem::conflict(format!("the run asks about {}", question.call)));
        }
        let approval = match order.decision {
            Decision::No => Approval::No,
            Decision::Yes | Decision::Always if question.is_dangerous => {
                return Err(Problem::conflict("this may destroy something").detail("the decision `danger` allows it"));
            }
            Decision::Yes | Decision::Danger => Approval::Yes,
            Decision::Always if question.lasting => Approval::Always,
            Decision::Always => {
                return Err(
                    Problem::conflict("this is asked for each time").detail("the decision `yes` allows it once")
                );
            }
        };
        // the run would lose a step over them
        if let Some(args) = &order.args
            && let Some(spec) = tools.iter().find(|spec| spec.name == question.tool)
        {
            spec.validate(&mut args.clone())
                .map_err(|why| Problem::unprocessable(why).detail("GET /tools lists them"))?;
        }
        let Some(question) = active.question.take() else { return Err(Problem::conflict("the run asks nothing now")) };
        question
            .answer
            .send((approval, order.args))
            .map_err(|_| Problem::conflict("the run does not wait for an answer any more"))?;
        Ok((question.call, approval != Approval::No))
    }
}

impl Sink for Runs {
    fn take(&self, _: &Event) {
        self.notify();
    }
}

/// Waits for a client to answer the questions of a run; without an answer in time, the call is denied.
pub struct RemoteApprover {
    runs: Arc<Runs>,
    run: String,
    timeout: Duration,
    cancel: Cancel,
}

impl Approver for RemoteApprover {
    fn ask(&self, question: Question) -> (Approval, Option<Args>) {
        let (answer, answers) = mpsc::channel();
        let is_dangerous = question.call.effects.hazard == Hazard::Danger;
        let (call, tool) = (question.call.id, question.call.tool);
        let pending = PendingQuestion { call, tool, is_dangerous, lasting: question.lasting, answer };
        if let Some(run) = self.runs.all().get_mut(&self.run) {
            run.question = Some(pending);
        }
        let deadline = Instant::now() + self.timeout;
        let approval = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match answers.recv_timeout(left.min(CANCEL_POLL_INTERVAL)) {
                Ok(answer) => break answer,
                Err(RecvTimeoutError::Timeout) if !left.is_zero() && !self.cancel.is_cancelled() => {}
                Err(_) => break (Approval::No, None),
            }
        };
        if let Some(run) = self.runs.all().get_mut(&self.run) {
            run.question = None;
        }
        approval
    }
}

/// Removes a run from the registry when it is dropped, however the run ends.
pub struct RunGuard(Arc<Runs>, String);

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.all().remove(&self.1);
        // clients that follow the session read its last events
        self.0.notify();
    }
}

/// An answer to a question of a run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproveOrder {
    /// `yes`, `no`, `always` (for every such call of this run), `danger` (yes to a call that may destroy something).
    pub decision: Decision,
    /// The id of the call; by default the one that waits.
    #[serde(default)]
    pub call_id: Option<String>,
    /// Other arguments for the call, which is then checked again.
    #[serde(default)]
    pub args: Option<Args>,
}

/// The decision on a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Allow this call.
    Yes,
    /// Deny it.
    No,
    /// Allow it, and every call of its kind in this run.
    Always,
    /// Allow a dangerous call.
    Danger,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn new_arguments_must_fit_the_tool_that_is_asked_about() {
        let runs = Runs::default();
        let (answer, answers) = mpsc::channel();
        let question = PendingQuestion {
            call: "s1c1".into(),
            tool: "run_command".into(),
            is_dangerous: false,
            lasting: true,
            answer,
        };
        runs.all().insert("r".into(), ActiveRun { cancel: Cancel::new(), question: Some(question) });
        let tools = [ToolSpec::new("run_command", "Runs it.", json!({"command": {"type": "string"}}), &["command"])];
        let order = |args| serde_json::from_value::<ApproveOrder>(json!({"decision": "yes", "args": args})).unwrap();
        for bad in [json!({"command": 5}), json!({}), json!({"command": "ls", "else": 1})] {
            let problem = runs.answer("r", order(bad.clone()), &tools).unwrap_err();
            assert_eq!(problem.status(), axum::http::StatusCode::UNPROCESSABLE_ENTITY, "{bad}");
        }
        assert!(answers.try_recv().is_err(), "the question still waits");
        assert_eq!(runs.answer("r", order(json!({"command": "ls"})), &tools).unwrap(), ("s1c1".into(), true));
        assert!(answers.try_recv().is_ok());
    }
}
