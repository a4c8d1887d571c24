//! Drives a [`Turn`]: the only caller of [`Tool::call`](super::tool::Tool::call); it asks the model through
//! [`caro_inference`]. Backends are behind traits; what they are is decided by who builds the [`Runtime`].

mod batch;
mod context;
mod disk;
mod draft;
mod errand;
mod meter;
mod outside;
mod plan;
mod referents;
mod request;

pub(crate) use outside::Consulted;

use super::assemble::{self, ContextProvider};
use super::blueprint::Blueprint;
use super::event::{Actor, Draft, Emitter, Kind, Tokens};
use super::evidence;
use super::guard::Guards;
use super::known::Known;
use super::observe::{ARTIFACT_TOOLS, Artifacts, Pipeline};
use super::reflect::reflect;
use super::state::Cost;
use super::tool::{Call, Registry, ToolSpec};
use super::turn::{Decide, End, Fitting, Report, Step, StepObservation, Turn};
use crate::suggest::{SuggestRequest, Suggester};
use caro_inference::{Executor, Next, StateMachine, drive};
use caro_model::{Cancel, Model, ModelError, Request, Usage};
use caro_policy::{Mode, Redactor};
use context::Context;
use meter::Tally;
use request::{Asked, Purpose};
use serde_json::json;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the person says to a call that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// This once.
    Yes,
    /// No.
    No,
    /// This, and every one of its kind in this run.
    Always,
}

/// What the person is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// The call that waits.
    pub call: Call,
    /// Why it is not simply done.
    pub reasons: Vec<String>,
    /// True if [`Approval::Always`] would spare the person the next such question; what is asked for each time does not.
    pub lasting: bool,
}

/// Asks the person.
pub trait Approver: Send + Sync {
    /// Asks about one call; may block as long as the person thinks. An edited call comes back in the place of the asked
    /// one, and is checked again.
    fn ask(&self, question: Question) -> (Approval, Option<super::tool::Args>);
}

/// Nobody is there: no.
#[derive(Debug, Default)]
pub struct DenyAll;

impl Approver for DenyAll {
    fn ask(&self, _: Question) -> (Approval, Option<super::tool::Args>) {
        (Approval::No, None)
    }
}

/// Keeps a run so that another process can go on with it.
pub trait Checkpoints: Send + Sync {
    /// Keeps the turn as it is now. `redacted` is its JSON as it may be stored.
    ///
    /// # Errors
    /// If it cannot be kept; the run goes on, and an event says so.
    fn keep(&self, run: &str, redacted: &str) -> Result<(), String>;

    /// False if it is known that a call of the run, by its id, was not begun: the person was still asked about it. Who
    /// keeps no record of that does not know.
    fn may_have_begun(&self, _run: &str, _call: &str) -> bool {
        true
    }
}

/// Keeps nothing.
#[derive(Debug, Default)]
pub struct NoCheckpoints;

impl Checkpoints for NoCheckpoints {
    fn keep(&self, _: &str, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// Keeps what is worth knowing beyond the run.
pub trait Notes: Send + Sync {
    /// Takes a note of a run that has ended; returns its id, or nothing where there is nothing to note.
    ///
    /// # Errors
    /// In words, if it cannot be kept; an event says so.
    fn take(&self, turn: &Turn, reflection: &super::reflect::Reflection) -> Result<Option<String>, String>;
}

/// What a run owes for others: asked after each batch of calls, and charged to it.
pub trait UsageLedger: Send + Sync {
    /// What is owed since it was last taken.
    fn take(&self) -> Cost;
}

/// How a run is driven.
#[derive(Debug, Clone)]
pub struct Config {
    /// What is screened.
    pub guardrail: Mode,
    /// The most tokens of a decision.
    pub decision_tokens: usize,
    /// The most tools shown, the two ends not counted.
    pub tools: usize,
    /// Names of tools that are shown whatever the task, beside those that always are.
    pub always: Vec<String>,
    /// Calls of one batch that run at once.
    pub parallel: usize,
    /// The most that any call may take, whatever its tool says.
    pub call_limit: Duration,
    /// The person's working directory.
    pub root: PathBuf,
    /// How a conversation that grows is kept within the window.
    pub fitting: Fitting,
    /// Names of the skills whose text is in the prompt, for the report.
    pub skills: Vec<String>,
    /// The texts that runs before have read, and the prompt has.
    pub known: Vec<Known>,
    /// What its prompts are put together from.
    pub blueprints: Vec<Blueprint>,
    /// How long those who bring context may take, all together; the run goes on without who is later.
    pub patience: Duration,
}

impl Config {
    /// The defaults, for work in `root`.
    pub fn new(root: PathBuf) -> Self {
        Self {
            guardrail: Mode::Full,
            decision_tokens: 700,
            tools: 6,
            always: Vec::new(),
            parallel: 4,
            call_limit: Duration::MAX,
            root,
            fitting: Fitting::default(),
            skills: Vec::new(),
            known: Vec::new(),
            blueprints: Blueprint::of_run(false, true),
            patience: assemble::PATIENCE,
        }
    }
}

/// The engine with all it stands on.
#[derive(Clone)]
pub struct Runtime {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Every tool, wherever it comes from.
    pub registry: Registry,
    /// Who may do what.
    pub guards: Guards,
    /// Who brings context.
    pub providers: Vec<Arc<dyn ContextProvider>>,
    /// Who is asked.
    pub approver: Arc<dyn Approver>,
    /// Where long results go.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// Where the run is kept.
    pub checkpoints: Arc<dyn Checkpoints>,
    /// Who takes notes, if anybody.
    pub notes: Option<Arc<dyn Notes>>,
    /// Who is asked for a command where a part of the plan needs but one; without one the model decides by itself.
    pub suggester: Option<Arc<dyn Suggester>>,
    /// What is spent for the run by others, if anything is.
    pub bill: Option<Arc<dyn UsageLedger>>,
    /// What is recorded.
    pub emitter: Arc<Emitter>,
    /// What stops the run.
    pub cancel: Cancel,
    /// How.
    pub config: Config,
}

/// How driving ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Driven {
    /// The run is over.
    Done(Box<Report>),
    /// It was stopped, and can be gone on with.
    Stopped(Box<Turn>),
}

/// The executor of one run.
struct Driver<'a> {
    runtime: &'a Runtime,
    started: Instant,
    /// True until the calls that a stopped run was in are settled.
    resumed: bool,
}

impl StateMachine for Turn {
    type Need = Step;
    type End = Driven;

    fn next_step(&mut self) -> Next<Step, Driven> {
        match self.next() {
            Step::Done(report) => Next::End(Driven::Done(report)),
            step => Next::Need(step),
        }
    }
}

impl Executor<Turn> for Driver<'_> {
    type Error = Infallible;

    /// Keeps the run as it stands, and stops it here if it is to be stopped.
    fn between(&mut self, turn: &mut Turn) -> ControlFlow<Driven> {
        self.runtime.keep(turn);
        if !self.runtime.cancel.is_cancelled() {
            return ControlFlow::Continue(());
        }
        turn.spent(millis(self.started));
        self.runtime.keep(turn);
        ControlFlow::Break(Driven::Stopped(Box::new(turn.clone())))
    }

    async fn execute(&mut self, turn: &mut Turn, step: Step) -> Result<(), Infallible> {
        let runtime = self.runtime;
        match step {
            // before each request, whoever is asked
            Step::Plan(_) | Step::Advise(_) | Step::Draft(_) | Step::Reply(_) | Step::Decide(_)
                if turn.halts(&runtime.guards) =>
            {
                runtime.notice(turn)
            }
            Step::Plan(ask) => runtime.plan(turn, *ask).await,
            Step::Assemble(query) => runtime.assemble(turn, &query).await,
            Step::Advise(mut brief) => {
                brief.part = referents::placed(&brief.part, &runtime.config.root);
                runtime.advise(turn, &brief).await;
            }
            Step::Draft(text) => runtime.draft(turn, *text).await,
            Step::Reply(reply) => runtime.reply(turn, *reply).await,
            Step::Decide(_) => runtime.decide(turn).await,
            Step::Act(calls) => {
                let acted = runtime.act(turn, calls, std::mem::take(&mut self.resumed)).await;
                // stopped at a question: whoever goes on is asked it again
                let Some((batch, changes)) = acted else { return Ok(()) };
                if let Some(bill) = &runtime.bill {
                    turn.charge(bill.take());
                }
                let root = &runtime.config.root;
                let mut there = evidence::promised(&turn.task().plan.parts);
                there.retain(|name| root.join(name).exists());
                let files = turn.part().and_then(|part| disk::measured(part, root));
                let seen = StepObservation { names: referents::files(&batch, root), changes, there, files };
                runtime.reveal(turn);
                turn.acted(&batch, &seen, &runtime.guards);
                runtime.notice(turn);
            }
            Step::Reflect => runtime.reflect(turn, millis(self.started)),
            Step::Done(_) => {}
        }
        Ok(())
    }
}

impl Runtime {
    /// Drives a run to its end, or until it is stopped. Needs a Tokio runtime.
    ///
    /// A turn that comes from a checkpoint goes on where it stood: calls that only read are made again, and so are those
    /// that the person was still asked about; of another call that may have changed something the model is told that nobody
    /// knows.
    pub async fn run(&self, mut turn: Turn) -> Driven {
        let started = Instant::now();
        let resumed = matches!(turn.next(), Step::Act(_));
        let planned = matches!(turn.next(), Step::Assemble(_));
        let fresh = planned || matches!(turn.next(), Step::Plan(_));
        self.emitter.emit(Draft::new(Kind::AgentStart).metadata(json!({
            "agent": turn.task().agent, "session": turn.task().session, "model": self.model.id(),
            "max_steps": turn.task().max_steps, "resumed": !fresh
        })));
        if fresh {
            self.emitter.emit(Draft::new(Kind::UserMessage).by(Actor::User).input(turn.task().text.clone()));
            // a plan that a model makes is told of once it is made
            if planned {
                self.tell_plan(&turn);
            }
        }
        turn.lead(self.suggester.is_some());
        let mut driver = Driver { runtime: self, started, resumed };
        let Ok(driven) = drive(&mut turn, &mut driver).await;
        let (status, report) = match &driven {
            Driven::Done(report) => (report.status.as_str(), json!(report)),
            Driven::Stopped(_) => ("stopped", serde_json::Value::Null),
        };
        self.emitter.emit(
            Draft::new(Kind::AgentEnd).took(started.elapsed()).output(report).metadata(json!({"status": status})),
        );
        driven
    }

    /// The same with events that go nowhere, for what is only looked at.
    #[must_use]
    pub fn unrecorded(mut self) -> Self {
        self.emitter = Arc::new(Emitter::new(self.emitter.run(), 1, Redactor::default(), Vec::new()));
        self
    }

    /// The turn with its context assembled, and what was assembled. Asks no model.
    pub fn preview(&self, mut turn: Turn) -> (Turn, assemble::Assembly) {
        let Step::Assemble(query) = turn.next() else { return (turn, assemble::Assembly::default()) };
        let Context { assembly, tools, .. } = self.context(&turn, &query);
        turn.assembled(assembly.clone(), tools, Vec::new(), &self.guards);
        (turn, assembly)
    }

    fn count(&self) -> impl Fn(&str) -> usize + '_ {
        |text| self.model.count(text)
    }

    /// The tools of the run, chosen once: the task decides, not the step. The model sees those that there is room for.
    fn shown(&self, task: &str) -> Vec<ToolSpec> {
        let specs = self.registry.specs().filter(|s| !is_artifact_tool(&s.name)).cloned();
        let always = |spec: &ToolSpec| spec.core || self.config.always.contains(&spec.name);
        let specs: Vec<ToolSpec> = specs.map(|spec| ToolSpec { core: always(&spec), ..spec }).collect();
        super::retrieve::view(task, &specs, self.config.tools)
    }

    async fn assemble(&self, turn: &mut Turn, query: &assemble::Query) {
        if !self.prepare(turn, query).await {
            return;
        }
        let Context { assembly, tools, budget, refusal } = self.context(turn, query);
        for record in self.providers.iter().filter_map(|provider| provider.record()) {
            self.emitter.emit(record);
        }
        let layers: Vec<_> = assembly
            .layers
            .iter()
            .map(|l| json!({"name": l.name, "priority": l.priority, "tokens": l.tokens, "chars": l.text.chars().count()}))
            .collect();
        self.emitter.emit(Draft::new(Kind::ContextAssembly).metadata(json!({
            "layers": layers, "tokens": assembly.tokens(), "budget": budget, "dropped": assembly.dropped,
            "failed": assembly.failed, "tools": tools.iter().map(|t| t.name.as_str()).collect::<Vec<_>>()
        })));
        if let Some(halt) = refusal {
            turn.refused(halt);
            return self.notice(turn);
        }
        turn.assembled(assembly, tools, self.config.skills.clone(), &self.guards);
        turn.recall(&self.config.known);
    }

    /// Asks for a command for the part under way. An adviser that fails is not asked again: the model decides.
    async fn advise(&self, turn: &mut Turn, brief: &SuggestRequest) {
        let span = format!("s{}", turn.step());
        let recipe = json!({"recipe": "command", "step": turn.step(), "max_steps": turn.task().max_steps});
        let Some(suggester) = &self.suggester else {
            turn.lead(false);
            return turn.advised(None, &self.guards);
        };
        let input = json!({"part": brief.part, "place": brief.place});
        let with = (self.model.clone(), self.guards.clone(), self.emitter.clone());
        let tally = Arc::new(Tally::new(with, turn.state(), &span, (input, recipe.clone())));
        self.emitter.emit(Draft::new(Kind::AgentStep).span(&span).metadata(recipe));
        let begun = Instant::now();
        let advised = suggester.advise(brief, tally.clone(), &self.cancel).await;
        // also what came to nothing was paid for
        let cost = tally.cost();
        turn.charge(cost);
        match advised {
            // stopped: the step is made again on resume
            _ if self.cancel.is_cancelled() => {}
            Ok(advice) => {
                let confidence = advice.as_ref().map(|a| a.confidence);
                turn.advised(advice, &self.guards);
                let output = if confidence.is_some() { turn.said() } else { "" };
                self.emitter.emit(
                    Draft::new(Kind::ModelResponse)
                        .by(Actor::Model)
                        .span(&span)
                        .output(output.to_owned())
                        .took(begun.elapsed())
                        .tokens(cost.tokens)
                        .metadata(json!({"recipe": "command", "confidence": confidence, "requests": cost.requests})),
                );
            }
            Err(error) => {
                self.emitter
                    .emit(Draft::new(Kind::ModelError).span(&span).error(error.to_string()).took(begun.elapsed()));
                turn.lead(false);
                turn.advised(None, &self.guards);
            }
        }
    }

    /// Has the prompt fit, then asks the model.
    async fn decide(&self, turn: &mut Turn) {
        let span = format!("s{}", turn.step());
        if !self.shorten(turn).await {
            return;
        }
        let Step::Decide(decide) = turn.next() else { return };
        let Decide { prompt, shape, actions, sampling } = *decide;
        self.emitter.emit(Draft::new(Kind::AgentStep).span(&span).metadata(json!({
            "step": turn.step(), "max_steps": turn.task().max_steps, "actions": actions.names()
        })));
        let max_tokens = self.config.decision_tokens;
        let request = Request { prompt, shape, sampling, max_tokens, cancel: self.cancel.clone() };
        match self.request(turn, Purpose { span: &span, recipe: None, lost: |_| false }, request).await {
            Asked::Stopped => {}
            Asked::Said(completion, tokens) => {
                turn.decided(&completion.text, completion.finish, tokens, &self.guards);
                if matches!(turn.end(), Some((End::Halted(_), _))) {
                    self.notice(turn);
                }
            }
            Asked::Failed(why) => turn.failed(&why),
        }
    }

    /// Tells what the guards found in the batch.
    fn notice(&self, turn: &Turn) {
        let span = format!("s{}", turn.step());
        match turn.end() {
            Some((End::Halted(reason), text)) => {
                self.emitter.emit(Draft::new(Kind::ResourceGuardHalt).error(text).metadata(json!({"reason": reason})));
            }
            _ => {
                if let Some(why) = &turn.state().stuck {
                    let kind = why.split(':').next().unwrap_or_default();
                    self.emitter
                        .emit(Draft::new(Kind::LoopDetected).span(span).metadata(json!({"kind": kind, "what": why})));
                }
            }
        }
    }

    /// Once there is an artifact, the tools that read it are admitted, and told of with the results of the step.
    fn reveal(&self, turn: &mut Turn) {
        let any = self.artifacts.as_ref().and_then(|a| a.list().ok()).is_some_and(|list| !list.is_empty());
        if any {
            turn.reveal(self.registry.specs().filter(|s| is_artifact_tool(&s.name)).cloned().collect());
        }
    }

    fn reflect(&self, turn: &mut Turn, ms: u64) {
        let Some((end, response)) = turn.end().map(|(end, response)| (end.clone(), response.to_owned())) else {
            return;
        };
        let reflection = reflect(&turn.task().text, &response, &end, turn.state());
        self.emitter.emit(Draft::new(Kind::Reflection).metadata(json!(reflection)));
        match self.notes.as_ref().map_or(Ok(None), |notes| notes.take(turn, &reflection)) {
            Ok(None) => {}
            Ok(Some(note)) => {
                self.emitter.emit(Draft::new(Kind::MemoryWrite).metadata(json!({"note": note})));
            }
            Err(why) => {
                self.emitter.emit(Draft::new(Kind::RuntimeError).error(format!("no note could be kept: {why}")));
            }
        }
        self.emitter.emit(Draft::new(Kind::FinalAnswer).by(Actor::Model).output(response).metadata(match &end {
            End::Unverified(missing) => {
                json!({"status": end.status(), "reason": end.reason(), "missing": missing})
            }
            _ => json!({"status": end.status(), "reason": end.reason()}),
        }));
        turn.reflected(reflection, ms);
    }

    /// Keeps the turn, without its secrets.
    fn keep(&self, turn: &Turn) {
        let text = self.emitter.document(turn).map_err(|e| e.to_string());
        let kept = text.and_then(|text| self.checkpoints.keep(&turn.task().run, &text).map(|()| text.len()));
        self.emitter.emit(match kept {
            Ok(bytes) => {
                Draft::new(Kind::Checkpoint).span(format!("s{}", turn.step())).metadata(json!({"bytes": bytes}))
            }
            Err(error) => Draft::new(Kind::RuntimeError).error(format!("the run could not be kept: {error}")),
        });
    }

    fn pipeline<'a>(&'a self, count: &'a dyn Fn(&str) -> usize) -> Pipeline<'a> {
        Pipeline { mode: self.config.guardrail, artifacts: self.artifacts.as_deref(), count, emitter: &self.emitter }
    }
}

/// What a request has cost that failed: it was made all the same, and of its tokens nobody knows.
const UNKNOWN: Cost = Cost { requests: 1, tokens: Tokens { request: 0, cached: 0, response: 0 } };

/// The tools that are shown once there is an artifact.
fn is_artifact_tool(name: &str) -> bool {
    ARTIFACT_TOOLS.contains(&name)
}

fn tokens_of(usage: &Usage) -> Tokens {
    Tokens {
        request: usage.prompt_tokens as u64,
        cached: usage.cached_tokens as u64,
        response: usage.completion_tokens as u64,
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl From<ModelError> for End {
    fn from(error: ModelError) -> Self {
        Self::Failed(error.to_string())
    }
}

#[cfg(test)]
mod batch_tests;
#[cfg(test)]
mod context_tests;
#[cfg(test)]
mod edit_tests;
#[cfg(all(test, unix))]
mod fault_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod view_tests;
