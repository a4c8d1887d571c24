//! Begins the workers of one call, waits for them, and says what each has left.

use super::budget::{SharedBudget, Shares};
use super::guard::Leaves;
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

/// How long workers that were told to stop may take to do so: less than their lead has for it.
const PATIENCE: Duration = Duration::from_millis(250);
/// Between two looks whether they are to stop.
const LOOK: Duration = Duration::from_millis(20);
/// Characters that the lead is told of what a worker was to do, and of what one that left nothing said.
const SAID: usize = 200;
/// Characters of its output that the lead is shown at once.
const SHOWN: usize = 1200;
/// Steps of a worker beside those of its task: one to write its output.
const MORE_STEPS: u32 = 2;

/// Everything that workers stand on.
pub(super) struct WorkerPool {
    /// What they inherit.
    lead: Runtime,
    workspace: Arc<Workspace>,
    hire: Arc<dyn Hire>,
    budget: Arc<SharedBudget>,
}

/// What came of a worker, for the lead.
pub(super) struct Left {
    /// True if its output is there, and it ended well.
    pub(super) done: bool,
    /// In words.
    pub(super) text: String,
}

/// How a worker ended.
enum Ended {
    /// It could not be begun.
    Not(String),
    /// Its run is over, or failed inside.
    Run(Box<Result<Driven, JoinError>>),
    /// It was told to stop, and nobody waited for it any longer.
    Left,
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

    /// Has all of them work, side by side; one result each, in their order.
    pub(super) async fn work(&self, orders: &[Order], cancel: &Cancel) -> Vec<Left> {
        let begun = Instant::now();
        let runs: Vec<String> = orders.iter().map(|_| id::fresh("worker")).collect();
        let mut left: Vec<Option<Left>> = Vec::new();
        left.resize_with(orders.len(), || None);
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
                Err(why) => left[at] = Some(self.ended(order, run, begun, Ended::Not(why))),
            }
        }
        let stopped = async {
            while !cancel.is_cancelled() {
                tokio::time::sleep(LOOK).await;
            }
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::pin!(stopped);
        while let Some(Ok((at, result))) = tokio::select! {
            biased;
            one = working.join_next() => one,
            () = &mut stopped => None,
        } {
            left[at] = Some(self.ended(&orders[at], &runs[at], begun, Ended::Run(Box::new(result))));
        }
        let rest = |(at, left): (usize, Option<Left>)| {
            left.unwrap_or_else(|| self.ended(&orders[at], &runs[at], begun, Ended::Left))
        };
        left.into_iter().enumerate().map(rest).collect()
    }

    /// A worker's runtime, and its run at its beginning.
    pub(super) fn begin(&self, order: &Order, run: &str, cancel: &Cancel) -> Result<(Runtime, AgentRun), String> {
        let Order { name, role, task, output_path } = order;
        let file = self.workspace.file(output_path).map_err(|e| e.to_string())?;
        let plan = Plan::heuristic(task);
        let task = Task {
            run: run.to_owned(),
            // the session of workers is the run that they work for
            session: self.lead.emitter.run().to_owned(),
            agent: "worker".into(),
            text: task.clone(),
            max_steps: (plan.steps + MORE_STEPS).clamp(FLOOR, CAP),
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
            .and(Arc::new(Leaves(file)))
            .and(Arc::new(Shares { budget: self.budget.clone(), run: run.to_owned() }));
        worker.providers.push(Arc::new(Fixed { name: "worker", priority: 1, text: role::persona(role) }));
        worker.approver = Arc::new(For { worker: name.clone(), asks: self.lead.approver.clone() });
        worker.emitter = Arc::new(self.lead.emitter.sibling(run, sinks));
        // notes are the lead's to take
        worker.notes = None;
        worker.cancel = cancel.clone();
        show(&mut worker, &[WRITE, VIEW], 2);
        Ok((worker, AgentRun::new(task).leaving(output_path)))
    }

    /// Says what a worker has left, counts what it cost, and records both.
    fn ended(&self, order: &Order, run: &str, begun: Instant, ended: Ended) -> Left {
        let (status, reason, said, metric) = match ended {
            Ended::Not(why) => ("failed", "not_begun".to_owned(), why, Some(Metric::default())),
            Ended::Left => ("stopped", "stopped".into(), String::new(), None),
            Ended::Run(result) => match *result {
                Err(_) => ("failed", "failed_inside".into(), String::new(), None),
                Ok(Driven::Stopped(turn)) => ("stopped", "stopped".into(), String::new(), Some(turn.metric())),
                Ok(Driven::Done(report)) => {
                    let status = if report.status == "failed" { "failed" } else { "ended" };
                    (status, report.termination_reason, report.response, Some(report.metric))
                }
            },
        };
        let cost = self.budget.close(run, metric.map(Cost::from));
        let (name, path) = (&order.name, &order.output_path);
        let bytes = self.workspace.size(path).unwrap_or_default();
        let said = brief(&said);
        let said = if said.is_empty() { String::new() } else { format!(" It said: {said}") };
        let wrong = match (bytes, status) {
            (0, _) => Some(format!("Error: it left no output in the workspace file `{path}` ({reason}).{said}")),
            (_, "ended") => None,
            _ => Some(format!("Error: it ended early ({reason}); what it has so far is in `{path}`.{said}")),
        };
        let mut event = Draft::new(Kind::SubagentResult).took(begun.elapsed()).tokens(cost.tokens).metadata(json!({
            "name": name, "run": run, "output_path": path, "bytes": bytes, "status": status, "reason": reason,
            "requests": cost.requests
        }));
        if let Some(wrong) = &wrong {
            event = event.error(wrong.clone());
        }
        self.lead.emitter.emit(event);
        let done = wrong.is_none();
        // what it was about, not who did it: a lead that reads the names of helpers and their files answers with them,
        // and nobody else knows them
        let text = wrong.map_or_else(|| self.found(path, bytes), |wrong| format!("{wrong} (the helper {name})"));
        Left { done, text: format!("{}: {text}", brief(&order.task)) }
    }

    /// What a worker has left, or its beginning and where the rest is.
    pub(super) fn found(&self, path: &str, bytes: u64) -> String {
        let Ok(all) = self.workspace.text(path) else {
            return format!("its output is the workspace file `{path}` ({bytes} bytes)");
        };
        let shown = compress(&all, SHOWN);
        if shown == all {
            return all.trim_end().to_owned();
        }
        format!("{}\n(shortened: the whole, {bytes} bytes, is the workspace file `{path}`)", shown.trim_end())
    }
}

/// The beginning of a text, in one line.
fn brief(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SAID).collect()
}

/// Asks the lead's person, and says for whom.
struct For {
    worker: String,
    asks: Arc<dyn Approver>,
}

impl Approver for For {
    fn ask(&self, mut question: Question) -> (Approval, Option<Args>) {
        question.reasons.push(format!("the helper `{}` wants it", self.worker));
        self.asks.ask(question)
    }
}
