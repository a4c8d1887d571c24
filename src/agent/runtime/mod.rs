//! Runs an [`AgentRun`]: the only caller of [`Tool::call`](super::tool::Tool::call); requests to the model go through
//! [`caro_inference`]. Backends are behind traits and are chosen by the code that builds the [`Runtime`].

mod batch;
mod context;
mod disk;
mod draft;
mod errand;
mod meter;
mod outside;
mod parts;
mod plan;
mod referents;
mod request;

pub(crate) use outside::Consulted;
pub use parts::{
    Approval, Approver, Checkpoints, Config, DenyAll, Driven, NoCheckpoints, Notes, Question, Runtime, UsageLedger,
};

use super::assemble;
use super::event::{Actor, Draft, Emitter, Kind};
use super::evidence;
use super::observe::{ARTIFACT_TOOLS, Pipeline};
use super::reflect::reflect;
use super::tool::ToolSpec;
use super::turn::{AgentRun, Decide, End, Step, StepObservation};
use crate::suggest::SuggestRequest;
use caro_inference::{Executor, Next, StateMachine, drive};
use caro_model::{ModelError, Request};
use caro_policy::Redactor;
use context::Context;
use meter::SuggestionMeter;
use request::{Purpose, RequestOutcome};
use serde_json::json;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// The executor of one run.
struct Driver<'a> {
    runtime: &'a Runtime,
    started: Instant,
    /// True until the pending calls of a resumed run have been executed.
    resumed: bool,
}

impl StateMachine for AgentRun {
    type Need = Step;
    type End = Driven;

    fn next_step(&mut self) -> Next<Step, Driven> {
        match self.next() {
            Step::Done(report) => Next::End(Driven::Done(report)),
            step => Next::Need(step),
        }
    }
}

impl Executor<AgentRun> for Driver<'_> {
    type Error = Infallible;

    /// Saves a checkpoint, and stops the run if it is cancelled or its model cannot be reached.
    fn between(&mut self, turn: &mut AgentRun) -> ControlFlow<Driven> {
        self.runtime.save_checkpoint(turn);
        let interrupted = turn.take_interruption();
        if !self.runtime.cancel.is_cancelled() {
            let Some(why) = interrupted else { return ControlFlow::Continue(()) };
            turn.add_time(millis(self.started));
            self.runtime.save_checkpoint(turn);
            return ControlFlow::Break(Driven::Done(Box::new(turn.report_of_interruption(&why))));
        }
        turn.add_time(millis(self.started));
        self.runtime.save_checkpoint(turn);
        ControlFlow::Break(Driven::Stopped(Box::new(turn.clone())))
    }

    async fn execute(&mut self, turn: &mut AgentRun, step: Step) -> Result<(), Infallible> {
        let runtime = self.runtime;
        match step {
            // before every request to the model
            Step::Plan(_) | Step::Advise(_) | Step::Draft(_) | Step::Reply(_) | Step::Decide(_)
                if turn.halts(&runtime.guards) =>
            {
                runtime.report_findings(turn)
            }
            Step::Plan(ask) => runtime.plan(turn, *ask).await,
            Step::Assemble(query) => runtime.assemble(turn, &query).await,
            Step::Advise(mut suggest_request) => {
                suggest_request.part = referents::mark_local_folders(&suggest_request.part, &runtime.config.root);
                runtime.suggest(turn, &suggest_request).await;
            }
            Step::Draft(text) => runtime.draft(turn, *text).await,
            Step::Reply(reply) => runtime.reply(turn, *reply).await,
            Step::Decide(_) => runtime.decide(turn).await,
            Step::Act(calls) => {
                let acted = runtime.act(turn, calls, std::mem::take(&mut self.resumed)).await;
                // stopped at a question: it is asked again on resume
                let Some((batch, changes)) = acted else { return Ok(()) };
                if let Some(ledger) = &runtime.usage_ledger {
                    turn.charge(ledger.take());
                }
                let root = &runtime.config.root;
                let mut existing = evidence::promised(&turn.task().plan.parts);
                existing.retain(|name| root.join(name).exists());
                let files = turn.part().and_then(|part| disk::measured_files(part, root));
                let names = referents::files(&batch, root);
                let observation = StepObservation { names, changes, there: existing, files };
                runtime.reveal(turn);
                turn.acted(&batch, &observation, &runtime.guards);
                runtime.report_findings(turn);
            }
            Step::Reflect => runtime.reflect(turn, millis(self.started)),
            Step::Done(_) => {}
        }
        Ok(())
    }
}

impl Runtime {
    /// Runs to the end, or until it is stopped. Needs a Tokio runtime.
    ///
    /// A turn restored from a checkpoint continues where it stood. Calls that only read, and calls that the user was
    /// still asked about, are made again; of any other call the model is told that it is unknown whether it was done.
    pub async fn run(&self, mut turn: AgentRun) -> Driven {
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
            // the event for a model's plan follows once the plan is made
            if planned {
                self.emit_plan(&turn);
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

    /// Makes the runtime drop all events, for previews.
    #[must_use]
    pub fn unrecorded(mut self) -> Self {
        self.emitter = Arc::new(Emitter::new(self.emitter.run(), 1, Redactor::default(), Vec::new()));
        self
    }

    /// Returns the turn with its context assembled, and that context. Makes no request to the model.
    pub fn preview(&self, mut turn: AgentRun) -> (AgentRun, assemble::Assembly) {
        let Step::Assemble(query) = turn.next() else { return (turn, assemble::Assembly::default()) };
        let Context { assembly, tools, .. } = self.context(&turn, &query);
        turn.assembled(assembly.clone(), tools, Vec::new(), &self.guards);
        (turn, assembly)
    }

    fn count(&self) -> impl Fn(&str) -> usize + '_ {
        |text| self.model.count(text)
    }

    /// Selects the tools of the run, once, by the task. The model sees those that fit into the prompt.
    fn selected_tools(&self, task: &str) -> Vec<ToolSpec> {
        let specs = self.registry.specs().filter(|s| !is_artifact_tool(&s.name)).cloned();
        let always = |spec: &ToolSpec| spec.core || self.config.always.contains(&spec.name);
        let specs: Vec<ToolSpec> = specs.map(|spec| ToolSpec { core: always(&spec), ..spec }).collect();
        super::retrieve::view(task, &specs, self.config.tools)
    }

    async fn assemble(&self, turn: &mut AgentRun, query: &assemble::Query) {
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
            return self.report_findings(turn);
        }
        turn.assembled(assembly, tools, self.config.skills.clone(), &self.guards);
        turn.recall(&self.config.known);
    }

    /// Asks the suggester for a command for the current part. After a failure it is not asked again: the model decides.
    async fn suggest(&self, turn: &mut AgentRun, suggest_request: &SuggestRequest) {
        let span = format!("s{}", turn.step());
        let recipe = json!({"recipe": "command", "step": turn.step(), "max_steps": turn.task().max_steps});
        let Some(suggester) = &self.suggester else {
            turn.lead(false);
            return turn.advised(None, &self.guards);
        };
        let input = json!({"part": suggest_request.part, "place": suggest_request.place});
        let with = (self.model.clone(), self.guards.clone(), self.emitter.clone());
        let meter = Arc::new(SuggestionMeter::new(with, turn.state(), &span, (input, recipe.clone())));
        self.emitter.emit(Draft::new(Kind::AgentStep).span(&span).metadata(recipe));
        let started = Instant::now();
        let advised = suggester.suggest(suggest_request, meter.clone(), &self.cancel).await;
        // a suggestion that came to nothing is charged too
        let cost = meter.cost();
        turn.charge(cost);
        match advised {
            // stopped: the step is repeated on resume
            _ if self.cancel.is_cancelled() => {}
            Ok(advice) => {
                let confidence = advice.as_ref().map(|a| a.confidence);
                turn.advised(advice, &self.guards);
                let output = if confidence.is_some() { turn.last_decision() } else { "" };
                self.emitter.emit(
                    Draft::new(Kind::ModelResponse)
                        .by(Actor::Model)
                        .span(&span)
                        .output(output.to_owned())
                        .took(started.elapsed())
                        .tokens(cost.tokens)
                        .metadata(json!({"recipe": "command", "confidence": confidence, "requests": cost.requests})),
                );
            }
            Err(error) => {
                self.emitter
                    .emit(Draft::new(Kind::ModelError).span(&span).error(error.to_string()).took(started.elapsed()));
                turn.lead(false);
                turn.advised(None, &self.guards);
            }
        }
    }

    /// Makes the prompt fit, then asks the model for a decision.
    async fn decide(&self, turn: &mut AgentRun) {
        let span = format!("s{}", turn.step());
        if !self.fit_prompt(turn).await {
            return;
        }
        let Step::Decide(decide) = turn.next() else { return };
        let Decide { prompt, shape, actions, sampling } = *decide;
        self.emitter.emit(Draft::new(Kind::AgentStep).span(&span).metadata(json!({
            "step": turn.step(), "max_steps": turn.task().max_steps, "actions": actions.names()
        })));
        let max_tokens = self.config.decision_tokens;
        let request = Request { prompt, shape, sampling, max_tokens, cancel: self.cancel.clone() };
        match self.request(turn, Purpose { span: &span, recipe: None, stop_when: |_| false }, request).await {
            RequestOutcome::Stopped => {}
            RequestOutcome::Said(completion, tokens) => {
                turn.decided(&completion.text, completion.finish, tokens, &self.guards);
                if matches!(turn.end(), Some((End::Halted(_), _))) {
                    self.report_findings(turn);
                }
            }
            RequestOutcome::Failed(why) => turn.failed(&why),
            RequestOutcome::Unreachable(why) => turn.interrupt(why),
        }
    }

    /// Emits an event for a halt, or for a loop that the guards detected.
    fn report_findings(&self, turn: &AgentRun) {
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

    /// Offers the tools that read artifacts once there is one.
    fn reveal(&self, turn: &mut AgentRun) {
        let any = self.artifacts.as_ref().and_then(|a| a.list().ok()).is_some_and(|list| !list.is_empty());
        if any {
            turn.reveal(self.registry.specs().filter(|s| is_artifact_tool(&s.name)).cloned().collect());
        }
    }

    fn reflect(&self, turn: &mut AgentRun, ms: u64) {
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

    /// Saves a checkpoint of the turn, without its secrets.
    fn save_checkpoint(&self, turn: &AgentRun) {
        let text = self.emitter.document(turn).map_err(|e| e.to_string());
        let saved = text.and_then(|text| self.checkpoints.keep(&turn.task().run, &text).map(|()| text.len()));
        self.emitter.emit(match saved {
            Ok(bytes) => {
                Draft::new(Kind::Checkpoint).span(format!("s{}", turn.step())).metadata(json!({"bytes": bytes}))
            }
            Err(error) => Draft::new(Kind::RuntimeError).error(format!("the run could not be kept: {error}")),
        });
    }

    fn pipeline<'a>(&'a self, count: &'a dyn Fn(&str) -> usize) -> Pipeline<'a> {
        Pipeline {
            mode: self.config.guardrail,
            artifacts: self.artifacts.as_deref(),
            count,
            emitter: &self.emitter,
            redacts: !self.model.is_local(),
        }
    }
}

/// True for the tools that are offered once there is an artifact.
fn is_artifact_tool(name: &str) -> bool {
    ARTIFACT_TOOLS.contains(&name)
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
mod server_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod view_tests;
