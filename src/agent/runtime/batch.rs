//! Executes the calls of one step: guards check them, the user is asked where required, calls that only read run in
//! parallel and others alone, each with a timeout of its own. Every call gets exactly one result, and a call that
//! fails, hangs or panics does not affect the others.

use super::disk::Snapshot;
use super::{Approval, Question, Runtime};
use crate::event::{Actor, Draft, Kind};
use crate::evidence::Changes;
use crate::guard::{Verdict, kind_of, refused};
use crate::observe::{Ended, Raw};
use crate::tool::{Call, Effects, Outcome, Tool, ToolCx, ToolError, ToolResult, Touch};
use crate::turn::AgentRun;
use caro_model::Cancel;
use caro_policy::is_redacted;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::RuntimeFlavor;

/// Most time a tool may take to stop before it is abandoned.
const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// A call that waits for its turn.
enum Pending {
    /// It may run.
    Ready(Arc<dyn Tool>, Call),
    /// It already has its result.
    Done(Ended),
}

impl Runtime {
    /// Executes a batch of calls. Returns the processed results, and the changes below the working directory if a
    /// call was to change something. Returns `None`, with no call made, if the user stops the run when asked about
    /// one.
    pub(super) async fn act(
        &self,
        turn: &mut AgentRun,
        calls: Vec<Call>,
        resumed: bool,
    ) -> Option<(Vec<ToolResult>, Option<Changes>)> {
        let started = Instant::now();
        let span = format!("s{}", turn.step());
        let names: Vec<&str> = calls.iter().map(|c| c.tool.as_str()).collect();
        self.emitter.emit(Draft::new(Kind::ToolBatchStart).span(&span).metadata(json!({"calls": names})));
        let mut pending = Vec::with_capacity(calls.len());
        let mut signatures = BTreeSet::new();
        for call in calls {
            let is_duplicate = !signatures.insert(call.signature());
            pending.push(self.admit(turn, call, is_duplicate, resumed)?);
        }
        let writes = |one: &Pending| matches!(one, Pending::Ready(_, call) if !call.effects.is_read_only());
        let root = &self.config.root;
        let before = pending.iter().any(writes).then(|| Snapshot::of(root)).flatten();
        let ended = self.run_all(pending).await;
        let changes = before.and_then(|before| before.changes(root));
        let count = |text: &str| self.model.count(text);
        let mut results = self.pipeline(&count).process(ended);
        // words of a command line that only look like files (`5` in `head -n 5`) were not read
        results.iter_mut().for_each(|one| one.call.effects.reads.retain(|path| path.exists()));
        for one in &results {
            let failed = one.outcome.is_error();
            let event = Draft::new(if failed { Kind::ToolError } else { Kind::ToolResult })
                .by(Actor::Tool)
                .span(&one.call.id)
                .output(one.text.clone())
                .took(Duration::from_millis(one.ms))
                .metadata(json!({"tool": one.call.tool, "outcome": one.outcome}));
            self.emitter.emit(if failed { event.error(one.line()) } else { event });
        }
        self.emit_touches(&results);
        let done = results.iter().filter(|s| s.outcome == Outcome::Succeeded).count();
        let failed = done == 0 && results.iter().any(|s| s.outcome.is_error());
        let kind = if failed { Kind::ToolBatchError } else { Kind::ToolBatchEnd };
        self.emitter.emit(
            Draft::new(kind)
                .span(&span)
                .took(started.elapsed())
                .metadata(json!({"calls": results.len(), "done": done})),
        );
        Some((results, changes))
    }

    /// Emits events for the files of the harness that successful calls read, wrote or deleted.
    fn emit_touches(&self, results: &[ToolResult]) {
        for one in results.iter().filter(|one| one.outcome == Outcome::Succeeded) {
            let Ok(tool) = self.registry.get(&one.call.tool) else { continue };
            for touch in tool.touches(&one.call.args) {
                let (kind, path) = match touch {
                    Touch::Reads(path) => (Kind::WorkspaceRead, path),
                    Touch::Writes(path) => (Kind::WorkspaceWrite, path),
                    Touch::Deletes(path) => (Kind::WorkspaceDelete, path),
                };
                let about = json!({"path": path, "tool": one.call.tool});
                self.emitter.emit(Draft::new(kind).by(Actor::Tool).span(&one.call.id).metadata(about));
            }
        }
    }

    /// Resolves a call, validates its arguments, and lets the guards and the user decide; `None` if the user stops
    /// the run.
    fn admit(&self, turn: &mut AgentRun, mut call: Call, is_duplicate: bool, resumed: bool) -> Option<Pending> {
        let ended =
            |call: Call, result, refused| Some(Pending::Done(Ended { call, result, refused, took: Duration::ZERO }));
        let is_hidden = !self.model.is_local();
        if (resumed || is_hidden) && is_redacted(&json!(call.args)) {
            let text = match is_hidden {
                true => "Not run: [redacted] stands for a secret that is not shown to you. Take another way.",
                false => {
                    "Not run: a secret that was in this call was not kept when the run was stopped. Write the call anew."
                }
            };
            return ended(call, Ok(Raw::text("")), Some((Outcome::Blocked, text.into())));
        }
        let tool = match self.registry.get(&call.tool) {
            Ok(tool) => tool.clone(),
            Err(error) => return ended(call, Err(error), None),
        };
        let may_have_begun = resumed && self.checkpoints.may_have_begun(self.emitter.run(), &call.id);
        // the user may edit a call, and an edited call is checked again, at most three times
        for _ in 0..3 {
            if let Err(why) = tool.spec().validate(&mut call.args) {
                return ended(call, Err(ToolError::Arguments(why)), None);
            }
            // a tool that panics when predicting its effects must not run
            match self.foresee(&*tool, &call) {
                Some(effects) => call.effects = effects,
                None => return ended(call, Err(panicked()), None),
            }
            if is_duplicate {
                let text = "This is the same call as another one of this step: its result is there.";
                return ended(call, Ok(Raw::text("")), Some((Outcome::Blocked, text.into())));
            }
            let (mut verdict, guard) = self.guards.check(&call, turn.state());
            if may_have_begun && !call.effects.is_read_only() {
                match &mut verdict {
                    // if the user is asked anyway, they decide; otherwise it is not repeated
                    Verdict::Ask(reasons) => reasons.push("it was interrupted, and may have been done already".into()),
                    Verdict::Allow => {
                        let text = "This call was interrupted when the run was stopped, and nobody knows whether it was \
                                    done. Look before you do it again.";
                        return ended(call, Err(ToolError::Failed(text.into())), None);
                    }
                    Verdict::Deny(_) => {}
                }
            }
            match verdict {
                Verdict::Allow => return Some(Pending::Ready(tool, call)),
                Verdict::Deny(finding) => {
                    self.emitter.emit(
                        Draft::new(Kind::GuardrailCheck)
                            .span(&call.id)
                            .metadata(json!({"guard": guard, "finding": finding.id, "tool": call.tool})),
                    );
                    return ended(call, Ok(Raw::text("")), Some((Outcome::Blocked, finding.text)));
                }
                Verdict::Ask(reasons) => match self.ask(turn, &call, &reasons)? {
                    (true, None) => return Some(Pending::Ready(tool, call)),
                    (true, Some(args)) => call.args = args,
                    (false, _) => {
                        let text = refused(&reasons).text;
                        return ended(call, Ok(Raw::text("")), Some((Outcome::Denied, text)));
                    }
                },
            }
        }
        let text = "The user edited this call, and then did not allow it.".to_owned();
        ended(call, Ok(Raw::text("")), Some((Outcome::Denied, text)))
    }

    /// Asks the user. Returns whether the call is allowed, and its arguments if they were edited; `None` if the run was
    /// stopped meanwhile, which decides nothing about the call.
    fn ask(&self, turn: &mut AgentRun, call: &Call, reasons: &[String]) -> Option<(bool, Option<crate::Args>)> {
        // `always` is offered only if it would change the verdict: some calls are asked for every time
        let mut then = turn.state().clone();
        then.always.insert(kind_of(call));
        let lasting = matches!(self.guards.check(call, &then).0, Verdict::Allow);
        let hazard = call.effects.hazard;
        let about =
            json!({"tool": call.tool, "args": call.args, "reasons": reasons, "hazard": hazard, "lasting": lasting});
        self.emitter.emit(Draft::new(Kind::ApprovalRequest).span(&call.id).metadata(about));
        let question = Question { call: call.clone(), reasons: reasons.to_vec(), lasting };
        let ask = || self.approver.ask(question);
        let one_thread = tokio::runtime::Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
        let (approval, args) = if one_thread { ask() } else { tokio::task::block_in_place(ask) };
        if approval == Approval::No && self.cancel.is_cancelled() {
            return None;
        }
        let kind = if approval == Approval::No { Kind::ApprovalDenied } else { Kind::ApprovalGranted };
        let always = approval == Approval::Always;
        self.emitter.emit(
            Draft::new(kind)
                .by(Actor::User)
                .span(&call.id)
                .metadata(json!({"always": always, "edited": args.is_some()})),
        );
        if always && lasting {
            turn.allow_always(kind_of(call));
        }
        Some((approval != Approval::No, args))
    }

    /// Runs the calls in waves: adjacent read-only calls form one wave, every other call its own.
    async fn run_all(&self, pending: Vec<Pending>) -> Vec<Ended> {
        let mut ended: Vec<Option<Ended>> = Vec::with_capacity(pending.len());
        let mut wave: Vec<(usize, Arc<dyn Tool>, Call)> = Vec::new();
        for (at, one) in pending.into_iter().enumerate() {
            match one {
                Pending::Done(result) => ended.push(Some(result)),
                Pending::Ready(tool, call) => {
                    ended.push(None);
                    let is_exclusive = !tool.spec().parallel || !call.effects.is_read_only();
                    if is_exclusive || wave.len() >= self.config.parallel.max(1) {
                        self.run_wave(std::mem::take(&mut wave), &mut ended).await;
                    }
                    wave.push((at, tool, call));
                    if is_exclusive {
                        self.run_wave(std::mem::take(&mut wave), &mut ended).await;
                    }
                }
            }
        }
        self.run_wave(wave, &mut ended).await;
        ended.into_iter().flatten().collect()
    }

    async fn run_wave(&self, wave: Vec<(usize, Arc<dyn Tool>, Call)>, ended: &mut [Option<Ended>]) {
        // after a stop no further call begins
        if self.cancel.is_cancelled() {
            for (at, _, call) in wave {
                if let Some(slot) = ended.get_mut(at) {
                    let result = Err(ToolError::Cancelled(0.0));
                    *slot = Some(Ended { call, result, refused: None, took: Duration::ZERO });
                }
            }
            return;
        }
        let (wave, changed): (Vec<_>, Vec<_>) = wave
            .into_iter()
            .partition(|(_, tool, call)| self.foresee(&**tool, call).is_some_and(|now| is_unchanged(&now, call)));
        for (at, _, call) in changed {
            let text = "Not run: an earlier call of this step, or another program, has changed what this one would touch. \
                        Look first, then call it again.";
            let refused = Some((Outcome::Blocked, text.to_owned()));
            if let Some(slot) = ended.get_mut(at) {
                *slot = Some(Ended { call, result: Ok(Raw::text("")), refused, took: Duration::ZERO });
            }
        }
        let running: Vec<_> = wave
            .into_iter()
            .map(|(at, tool, call)| {
                self.emitter.emit(
                    Draft::new(Kind::ToolCall)
                        .by(Actor::Model)
                        .span(&call.id)
                        .input(json!({
                            "tool": call.tool, "args": call.args
                        }))
                        .metadata(json!({"provider": tool.spec().provider, "effects": call.effects})),
                );
                let cx = self.cx(&*tool);
                let stop = self.cancel.clone();
                let spawned = call.clone();
                (at, call, tokio::spawn(async move { run_call(tool, spawned, cx, stop).await }))
            })
            .collect();
        for (at, call, work) in running {
            let (result, took) = work.await.unwrap_or_else(|_| (Err(panicked()), Duration::ZERO));
            if let Some(slot) = ended.get_mut(at) {
                *slot = Some(Ended { call, result, refused: None, took });
            }
        }
    }

    /// Predicts the effects of a call in the current state; `None` if the tool panics.
    fn foresee(&self, tool: &dyn Tool, call: &Call) -> Option<Effects> {
        let cx = self.cx(tool);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tool.effects(&call.args, &cx))).ok()
    }

    /// Returns the context of a call of this tool. Its `cancel` is triggered only by the call's own timeout; the
    /// run's is watched separately.
    fn cx(&self, tool: &dyn Tool) -> ToolCx {
        let timeout = tool.spec().timeout.min(self.config.call_limit);
        let cancel = Cancel::new().with_deadline(Instant::now() + timeout);
        ToolCx { root: self.config.root.clone(), cancel, timeout }
    }
}

/// Runs one call until it ends, times out, or the run is stopped.
async fn run_call(tool: Arc<dyn Tool>, call: Call, cx: ToolCx, stop: Cancel) -> (Result<Raw, ToolError>, Duration) {
    let started = Instant::now();
    let (limit, cancel) = (cx.timeout, cx.cancel.clone());
    let mut work = tokio::task::spawn_blocking(move || tool.call(&call.args, &cx));
    let stopped = async {
        while !stop.is_cancelled() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let result = tokio::select! {
        done = &mut work => done.unwrap_or_else(|_| Err(panicked())),
        // a tool that watches its own timeout may still return what it has
        () = tokio::time::sleep(limit + GRACE_PERIOD) => Err(ToolError::TimedOut(limit.as_secs())),
        () = stopped => {
            cancel.cancel();
            match tokio::time::timeout(GRACE_PERIOD, &mut work).await {
                // it had finished before it noticed the stop
                Ok(Ok(Ok(done))) => Ok(done),
                _ => Err(ToolError::Cancelled(started.elapsed().as_secs_f64())),
            }
        }
    };
    cancel.cancel();
    (result, started.elapsed())
}

/// True if the call still has the effects it was checked for: a new link may lead its paths elsewhere.
fn is_unchanged(now: &Effects, call: &Call) -> bool {
    let judged = |e: &Effects| (e.reads.clone(), e.writes.clone(), e.opaque, e.net, e.exec, e.hazard);
    judged(now) == judged(&call.effects)
}

fn panicked() -> ToolError {
    ToolError::Failed("the tool failed inside (a defect of the tool, not of the call): take another way".into())
}
