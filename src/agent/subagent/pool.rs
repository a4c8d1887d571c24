//! Starts the workers of one call, waits for them and reports the output of each.

use super::budget::{SharedBudget, WorkerGuard};
use super::guard::OutputGuard;
use super::order::{Hire, Hired, Order, VIEW, WRITE, show};
use crate::assemble::Fixed;
use crate::event::{Draft, Kind};
use crate::plan::{CAP, FLOOR, Plan};
use crate::runtime::{Approval, Approver, Driven, Question, Runtime};
use crate::skill::role;
use crate::state::Cost;
use crate::tool::Args;
use crate::turn::{AgentRun, Metric, Task};
use crate::workspace::Workspace;
use caro_base::id;
use caro_model::Cancel;
use caro_policy::compress;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinError, JoinSet};

/// Time that cancelled workers have to stop: less than their lead has.
const STOP_TIMEOUT: Duration = Duration::from_millis(250);
/// Interval between two checks for cancellation.
const CANCEL_INTERVAL: Duration = Duration::from_millis(20);
/// Most characters reported of a worker's task, and of the answer of a worker that failed.
const MAX_BRIEF: usize = 200;
/// Most characters of a worker's output in the result.
const MAX_OUTPUT: usize = 1200;
/// Steps of a worker beyond those of its task, to write its output.
const EXTRA_STEPS: u32 = 2;

/// Runs workers, all with the same lead, workspace and budget.
pub(super) struct WorkerPool {
    /// The runtime that they inherit.
    lead: Runtime,
    workspace: Arc<Workspace>,
    hire: Arc<dyn Hire>,
    budget: Arc<SharedBudget>,
}

/// The result of a worker, for the lead.
pub(super) struct WorkerResult {
    /// True if it wrote its output and ended normally.
    pub(super) done: bool,
    /// The description for the lead.
    pub(super) text: String,
}

/// The way a worker ended.
enum WorkerEnd {
    /// It could not begin, for this reason.
    NotBegun(String),
    /// Its run ended or panicked.
    Run(Box<Result<Driven, JoinError>>),
    /// It was cancelled and did not stop in time.
    Abandoned,
}

impl WorkerPool {
    pub(super) fn new(
        lead: Runtime,
        workspace: Arc<Workspace>,
        hire: Arc<dyn Hire>,
        budget: Arc<SharedBudget>,
    ) -> Self {
        Self { lead, workspace, hire, budget }
    }

    /// Runs all workers in parallel; returns one result each, in their order.
    pub(super) async fn work(&self, orders: &[Order], cancel: &Cancel) -> Vec<WorkerResult> {
        let start = Instant::now();
        let runs: Vec<String> = orders.iter().map(|_| id::fresh("worker")).collect();
        let mut results: Vec<Option<WorkerResult>> = Vec::new();
        results.resize_with(orders.len(), || None);
        let mut working = JoinSet::new();
        for (at, (order, run)) in orders.iter().zip(&runs).enumerate() {
            let Order { name, role, task, output_path } = order;
            self.lead.emitter.emit(
                Draft::new(Kind::SubagentSpawn)
                    .input(task.clone())
                    .metadata(json!({"name": name, "role": role, "run": run, "output_path": output_path})),
            );
            match self.begin(order, run, cancel) {
                Ok((runtime, turn)) => {
                    let work = tokio::spawn(async move { runtime.run(turn).await });
                    working.spawn(async move { (at, work.await) });
                }
                Err(why) => results[at] = Some(self.finish(order, run, start, WorkerEnd::NotBegun(why))),
            }
        }
        let stopped = async {
            while !cancel.is_cancelled() {
                tokio::time::sleep(CANCEL_INTERVAL).await;
            }
            tokio::time::sleep(STOP_TIMEOUT).await;
        };
        tokio::pin!(stopped);
        while let Some(Ok((at, result))) = tokio::select! {
            biased;
            one = working.join_next() => one,
            () = &mut stopped => None,
        } {
            results[at] = Some(self.finish(&orders[at], &runs[at], start, WorkerEnd::Run(Box::new(result))));
        }
        let or_abandoned = |(at, result): (usize, Option<WorkerResult>)| {
            result.unwrap_or_else(|| self.finish(&orders[at], &runs[at], start, WorkerEnd::Abandoned))
        };
        results.into_iter().enumerate().map(or_abandoned).collect()
    }

    /// Creates a worker's runtime and its run at its beginning.
    pub(super) fn begin(&self, order: &Order, run: &str, cancel: &Cancel) -> Result<(Runtime, AgentRun), String> {
        let Order { name, role, task, output_path } = order;
        let file = self.workspace.file(output_path).map_err(|e| e.to_string())?;
        let plan = Plan::heuristic(task);
        let task = Task {
            run: run.to_owned(),
            // the session of workers is named after the run that they work for
            session: self.lead.emitter.run().to_owned(),
            agent: "worker".into(),
            text: task.clone(),
            max_steps: (plan.steps + EXTRA_STEPS).clamp(FLOOR, CAP),
            plan,
            batch: 1,
            place: format!(
                "{}\nYou are the helper `{name}`, and nobody can be asked. Write what you find out into the \
                 workspace file `{output_path}` with {WRITE}: only what stands there is read. Then answer in one sentence.",
                Task::folder(&self.lead.config.root)
            ),
        };
        let Hired { guards, sinks } = self.hire.hire(&task)?;
        let mut worker = self.lead.clone();
        worker.guards = guards
            .and(Arc::new(OutputGuard(file)))
            .and(Arc::new(WorkerGuard { budget: self.budget.clone(), run: run.to_owned() }));
        worker.providers.push(Arc::new(Fixed { name: "worker", priority: 1, text: role::persona(role) }));
        worker.approver = Arc::new(WorkerApprover { worker: name.clone(), lead: self.lead.approver.clone() });
        worker.emitter = Arc::new(self.lead.emitter.sibling(run, sinks));
        // only the lead takes notes
        worker.notes = None;
        worker.cancel = cancel.clone();
        show(&mut worker, &[WRITE, VIEW], 2);
        Ok((worker, AgentRun::new(task).with_output(output_path)))
    }

    /// Records the end of a worker and its cost, and returns its result.
    fn finish(&self, order: &Order, run: &str, start: Instant, end: WorkerEnd) -> WorkerResult {
        let (status, reason, answer, metric) = match end {
            WorkerEnd::NotBegun(why) => ("failed", "not_begun".to_owned(), why, Some(Metric::default())),
            WorkerEnd::Abandoned => ("stopped", "stopped".into(), String::new(), None),
            WorkerEnd::Run(result) => match *result {
                Err(_) => ("failed", "failed_inside".into(), String::new(), None),
                Ok(Driven::Stopped(turn)) => ("stopped", "stopped".into(), String::new(), Some(turn.metric())),
                Ok(Driven::Done(report)) => {
                    let status =
                        if matches!(report.status.as_str(), "failed" | "stopped") { "failed" } else { "ended" };
                    (status, report.termination_reason, report.response, Some(report.metric))
                }
            },
        };
        let cost = self.budget.close(run, metric.map(Cost::from));
        let (name, path) = (&order.name, &order.output_path);
        let bytes = self.workspace.size(path).unwrap_or_default();
        let answer = brief(&answer);
        let answer = if answer.is_empty() { String::new() } else { format!(" It said: {answer}") };
        let wrong = match (bytes, status) {
            (0, _) => Some(format!("Error: it left no output in the workspace file `{path}` ({reason}).{answer}")),
            (_, "ended") => None,
            _ => Some(format!("Error: it ended early ({reason}); what it has so far is in `{path}`.{answer}")),
        };
        let mut event = Draft::new(Kind::SubagentResult).took(start.elapsed()).tokens(cost.tokens).metadata(json!({
            "name": name, "run": run, "output_path": path, "bytes": bytes, "status": status, "reason": reason,
            "requests": cost.requests
        }));
        if let Some(wrong) = &wrong {
            event = event.error(wrong.clone());
        }
        self.lead.emitter.emit(event);
        let done = wrong.is_none();
        // names the task and not the helper: a lead that reads the names of helpers and of their files answers with
        // them, and the user does not know them
        let text = wrong.map_or_else(|| self.output(path, bytes), |wrong| format!("{wrong} (the helper {name})"));
        WorkerResult { done, text: format!("{}: {text}", brief(&order.task)) }
    }

    /// Returns a worker's output, shortened if it is long, with the path of the whole.
    pub(super) fn output(&self, path: &str, bytes: u64) -> String {
        let Ok(all) = self.workspace.text(path) else {
            return format!("its output is the workspace file `{path}` ({bytes} bytes)");
        };
        let shown = compress(&all, MAX_OUTPUT);
        if shown == all {
            return all.trim_end().to_owned();
        }
        format!("{}\n(shortened: the whole, {bytes} bytes, is the workspace file `{path}`)", shown.trim_end())
    }
}

/// Returns the beginning of a text as one line.
fn brief(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_BRIEF).collect()
}

/// Passes a worker's questions to the lead's approver, with the worker's name.
struct WorkerApprover {
    worker: String,
    lead: Arc<dyn Approver>,
}

impl Approver for WorkerApprover {
    fn ask(&self, mut question: Question) -> (Approval, Option<Args>) {
        question.reasons.push(format!("the helper `{}` wants it", self.worker));
        self.lead.ask(question)
    }
}
