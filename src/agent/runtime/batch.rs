//! Has the calls of one step made: checked by the guards, asked for where they say so, the readers of a batch side by
//! side and each writer alone, each with a time limit of its own. Every call gets exactly one result, whatever happens to
//! it; one that fails, hangs or panics costs the others nothing.

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

/// How long a tool that was told to stop may take to do so before it is left to itself.
const GRACE: Duration = Duration::from_millis(500);

/// A call on its way.
enum Pending {
    /// May run.
    Ready(Arc<dyn Tool>, Call),
    /// Has its result already.
    Settled(Ended),
}

impl Runtime {
    /// Makes a batch of calls and makes its results into text; with what they changed, where they were to change anything.
    /// Nothing if the person stops the run when asked about one of them: then none is made.
    pub(super) async fn act(
        &self,
        turn: &mut AgentRun,
        calls: Vec<Call>,
        resumed: bool,
    ) -> Option<(Vec<ToolResult>, Option<Changes>)> {
        let begun = Instant::now();
        let span = format!("s{}", turn.step());
        let names: Vec<&str> = calls.iter().map(|c| c.tool.as_str()).collect();
        self.emitter.emit(Draft::new(Kind::ToolBatchStart).span(&span).metadata(json!({"calls": names})));
        let mut pending = Vec::with_capacity(calls.len());
        let mut signatures = BTreeSet::new();
        for call in calls {
            let again = !signatures.insert(call.signature());
            pending.push(self.admit(turn, call, again, resumed)?);
        }
        let writes = |one: &Pending| matches!(one, Pending::Ready(_, call) if !call.effects.is_read_only());
        let root = &self.config.root;
        let before = pending.iter().any(writes).then(|| Snapshot::of(root)).flatten();
        let ended = self.run_all(pending).await;
        let changes = before.and_then(|before| before.changes(root));
        let count = |text: &str| self.model.count(text);
        let mut settled = self.pipeline(&count).settle(ended);
        // a word of a command line that could be a file (`head -n 5`) and is none was not read
        settled.iter_mut().for_each(|one| one.call.effects.reads.retain(|path| path.exists()));
        for one in &settled {
            let failed = one.outcome.is_error();
            let event = Draft::new(if failed { Kind::ToolError } else { Kind::ToolResult })
                .by(Actor::Tool)
                .span(&one.call.id)
                .output(one.text.clone())
                .took(Duration::from_millis(one.ms))
                .metadata(json!({"tool": one.call.tool, "outcome": one.outcome}));
            self.emitter.emit(if failed { event.error(one.line()) } else { event });
        }
        self.tell_touches(&settled);
        let done = settled.iter().filter(|s| s.outcome == Outcome::Succeeded).count();
        let failed = done == 0 && settled.iter().any(|s| s.outcome.is_error());
        let kind = if failed { Kind::ToolBatchError } else { Kind::ToolBatchEnd };
        self.emitter.emit(
            Draft::new(kind).span(&span).took(begun.elapsed()).metadata(json!({"calls": settled.len(), "done": done})),
        );
        Some((settled, changes))
    }

    /// Tells what the calls that were done read, wrote and deleted of the harness' own files.
    fn tell_touches(&self, settled: &[ToolResult]) {
        for one in settled.iter().filter(|one| one.outcome == Outcome::Succeeded) {
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

    /// Resolves a call, holds its arguments against the schema, and has the guards and the person decide; nothing if the
    /// person stops the run instead.
    fn admit(&self, turn: &mut AgentRun, mut call: Call, again: bool, resumed: bool) -> Option<Pending> {
        let ended =
            |call: Call, result, refused| Some(Pending::Settled(Ended { call, result, refused, took: Duration::ZERO }));
        if resumed && is_redacted(&json!(call.args)) {
            let text =
                "Not run: a secret that was in this call was not kept when the run was stopped. Write the call anew.";
            return ended(call, Ok(Raw::text("")), Some((Outcome::Blocked, text.into())));
        }
        let tool = match self.registry.get(&call.tool) {
            Ok(tool) => tool.clone(),
            Err(error) => return ended(call, Err(error), None),
        };
        let begun = resumed && self.checkpoints.may_have_begun(self.emitter.run(), &call.id);
        // a person may edit a call, and an edited call is judged anew; thrice is enough
        for _ in 0..3 {
            if let Err(why) = tool.spec().validate(&mut call.args) {
                return ended(call, Err(ToolError::Arguments(why)), None);
            }
            // a tool that cannot even foresee its call must not make it
            match self.foresee(&*tool, &call) {
                Some(effects) => call.effects = effects,
                None => return ended(call, Err(panicked()), None),
            }
            if again {
                let text = "This is the same call as another one of this step: its result is there.";
                return ended(call, Ok(Raw::text("")), Some((Outcome::Blocked, text.into())));
            }
            let (mut verdict, guard) = self.guards.check(&call, turn.state());
            if begun && !call.effects.is_read_only() {
                match &mut verdict {
                    // whoever is asked anyway knows best; of himself nobody does it twice
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

    /// Asks the person: true if the call is allowed, with its arguments if they were edited. Nothing if the run is stopped
    /// meanwhile, which says nothing about the call.
    fn ask(&self, turn: &mut AgentRun, call: &Call, reasons: &[String]) -> Option<(bool, Option<crate::Args>)> {
        // what is asked for each time is allowed this once, and nothing else with it
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

    /// Runs what may run, in waves: readers that stand together in one, each writer in its own.
    async fn run_all(&self, pending: Vec<Pending>) -> Vec<Ended> {
        let mut ended: Vec<Option<Ended>> = Vec::with_capacity(pending.len());
        let mut wave: Vec<(usize, Arc<dyn Tool>, Call)> = Vec::new();
        for (at, one) in pending.into_iter().enumerate() {
            match one {
                Pending::Settled(result) => ended.push(Some(result)),
                Pending::Ready(tool, call) => {
                    ended.push(None);
                    let alone = !tool.spec().parallel || !call.effects.is_read_only();
                    if alone || wave.len() >= self.config.parallel.max(1) {
                        self.wave(std::mem::take(&mut wave), &mut ended).await;
                    }
                    wave.push((at, tool, call));
                    if alone {
                        self.wave(std::mem::take(&mut wave), &mut ended).await;
                    }
                }
            }
        }
        self.wave(wave, &mut ended).await;
        ended.into_iter().flatten().collect()
    }

    async fn wave(&self, wave: Vec<(usize, Arc<dyn Tool>, Call)>, ended: &mut [Option<Ended>]) {
        // who was stopped begins nothing more
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
            .partition(|(_, tool, call)| self.foresee(&**tool, call).is_some_and(|now| same(&now, call)));
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
                let inside = call.clone();
                (at, call, tokio::spawn(async move { one(tool, inside, cx, stop).await }))
            })
            .collect();
        for (at, call, work) in running {
            let (result, took) = work.await.unwrap_or_else(|_| (Err(panicked()), Duration::ZERO));
            if let Some(slot) = ended.get_mut(at) {
                *slot = Some(Ended { call, result, refused: None, took });
            }
        }
    }

    /// What the call would do as things are now; `None` where the tool panics over it.
    fn foresee(&self, tool: &dyn Tool, call: &Call) -> Option<Effects> {
        let cx = self.cx(tool);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tool.effects(&call.args, &cx))).ok()
    }

    /// What a call of this tool may use. Its cancel is pulled by its own time limit and nothing else: the run's is
    /// watched beside it.
    fn cx(&self, tool: &dyn Tool) -> ToolCx {
        let timeout = tool.spec().timeout.min(self.config.call_limit);
        let cancel = Cancel::new().with_deadline(Instant::now() + timeout);
        ToolCx { root: self.config.root.clone(), cancel, timeout }
    }
}

/// One call, to its end, its time limit or the end of the person's patience.
async fn one(tool: Arc<dyn Tool>, call: Call, cx: ToolCx, stop: Cancel) -> (Result<Raw, ToolError>, Duration) {
    let begun = Instant::now();
    let (limit, cancel) = (cx.timeout, cx.cancel.clone());
    let mut work = tokio::task::spawn_blocking(move || tool.call(&call.args, &cx));
    let stopped = async {
        while !stop.is_cancelled() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let result = tokio::select! {
        done = &mut work => done.unwrap_or_else(|_| Err(panicked())),
        // a tool that watches its own limit has a moment to say what it has
        () = tokio::time::sleep(limit + GRACE) => Err(ToolError::TimedOut(limit.as_secs())),
        () = stopped => {
            cancel.cancel();
            match tokio::time::timeout(GRACE, &mut work).await {
                // it was done before it heard of it
                Ok(Ok(Ok(done))) => Ok(done),
                _ => Err(ToolError::Cancelled(begun.elapsed().as_secs_f64())),
            }
        }
    };
    cancel.cancel();
    (result, begun.elapsed())
}

/// True if the call would still touch what it was judged by: a link made meanwhile may lead its paths elsewhere.
fn same(now: &Effects, call: &Call) -> bool {
    let judged = |e: &Effects| (e.reads.clone(), e.writes.clone(), e.opaque, e.net, e.exec, e.hazard);
    judged(now) == judged(&call.effects)
}

fn panicked() -> ToolError {
    ToolError::Failed("the tool failed inside (a defect of the tool, not of the call): take another way".into())
}
