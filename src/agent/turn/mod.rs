//! The agent loop as a pure state machine: no clock, no file, no model, no thread. [`AgentRun::next`] returns the next
//! step, and the driver brings back its result:
//!
//! ```text
//! Assemble --assembled--> Decide --decided--> Act --acted--> Decide ... --> Reflect --reflected--> Done
//!                     \-> Advise --advised-/
//!                     \-> Draft --drafted--/
//!                     \-> Reply --replied--/
//! ```
//!
//! If a model makes the plan, `Plan --planned-->` comes first.
//!
//! A run is plain data. Stored at every step, it can be resumed by another process.
//!
//! Within a run each prompt extends the one before it, so that the model's prefix cache stays valid, unless
//! [`AgentRun::fit`] had to shorten it.

mod admit;
mod draft;
mod echo;
mod fit;
mod leave;
mod progress;
mod prompt;
mod reply;
mod shown;
mod sum;
mod tool_targets;

pub use draft::{Text, is_repetitive};
pub use fit::{Compression, Fitting, Mode, Strategy};
pub use progress::{BEGINS_WITH, NOT_SHOWN, PLACE, StepObservation};
pub use prompt::prompt_tokens;
pub use reply::{KNOWLEDGE, Reply};
pub use shown::{HEADING, TEXTS};
pub use sum::{DroppedSteps, lines};

use super::action::{self, ActionSet, Choice};
use super::assemble::{Assembly, Layer, Query};
use super::event::Tokens;
use super::guard::{Guards, Halt, is_example, reword_refusal};
use super::known::{self, Known};
use super::observe;
use super::plan::model::PlanRequest;
use super::plan::{Plan, Source};
pub use super::reflect::End;
use super::reflect::{Reflection, reflect};
use super::retrieve::MOST;
use super::state::{Cost, Limits, RunState, Stats};
use super::tool::{Call, Effects, Outcome, ToolResult, ToolSpec};
use crate::suggest::SuggestRequest;
use caro_model::{Finish, Prompt, Sampling, Shape};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The next step that the driver has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the model for a plan.
    Plan(Box<PlanRequest>),
    /// Assemble the layers of context and the tools to show.
    Assemble(Query),
    /// Ask for a suggestion for the current part.
    Advise(Box<SuggestRequest>),
    /// Ask the model for the text of a file that does not exist yet.
    Draft(Box<Text>),
    /// Ask the model for an answer from the texts in the prompt.
    Reply(Box<Reply>),
    /// Ask the model for a decision.
    Decide(Box<Decide>),
    /// Make these calls.
    Act(Vec<Call>),
    /// Reflect on the run.
    Reflect,
    /// The run has ended.
    Done(Box<Report>),
}

/// A request for a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Decide {
    /// The conversation.
    pub prompt: Prompt,
    /// The grammar of the decision.
    pub shape: Shape,
    /// The actions that the grammar allows.
    pub actions: ActionSet,
    /// The sampling settings.
    pub sampling: Sampling,
}

/// The task of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The unique id of the run.
    pub run: String,
    /// The session it belongs to.
    pub session: String,
    /// The recipe, as reports name it.
    pub agent: String,
    /// The user's text.
    pub text: String,
    /// The plan.
    pub plan: Plan,
    /// Most steps, which are requests for a decision.
    pub max_steps: u32,
    /// Most calls in one step.
    pub batch: usize,
    /// Facts about the working folder for the model, one per line. Trusted text.
    pub place: String,
}

impl Task {
    /// Returns the line of [`Task::place`] about the working folder: its name without its path. The names of the
    /// folders above influence a small model's decisions, and a tool can show the path.
    pub fn folder(root: &Path) -> String {
        let name = root.file_name().unwrap_or(root.as_os_str());
        format!("Working folder: {}", name.display())
    }

    /// Returns the task with other limits of steps and of calls in one step, if given; both are at least 1.
    #[must_use]
    pub fn limited(self, max_steps: Option<u32>, batch: Option<usize>) -> Self {
        Self {
            max_steps: max_steps.unwrap_or(self.max_steps).max(1),
            batch: batch.unwrap_or(self.batch).max(1),
            ..self
        }
    }
}

/// The beginning of a response that was given because no step was left.
const OUT_OF_STEPS: &str = "[SYSTEM_CONTEXT: MAX_STEPS_REACHED";

/// Returns the model's own text in a response.
pub fn own_words(response: &str) -> &str {
    match response.split_once('\n') {
        Some((mark, words)) if mark.starts_with(OUT_OF_STEPS) => words,
        _ => response,
    }
}

/// The doubt about the answer of a run that repeated itself.
const CIRCLES: &str = "It went in circles, and the answer is a guess.";

/// The response if the model has only repeated an example.
const NO_ANSWER: &str = "No answer was found.";

/// Converts an end whose answer was that of an example: the run is not verified.
fn without_example(end: End) -> End {
    match end {
        End::Answered | End::Unverified(_) | End::Cannot => {
            End::Unverified(vec!["The model has only repeated an example, and knows no answer.".to_owned()])
        }
        other => other,
    }
}

/// The final report of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The answer, or the reason there is none.
    pub response: String,
    /// The session.
    pub session_id: String,
    /// The run.
    pub run_id: String,
    /// The recipe.
    pub agent_name: String,
    /// `completed`, `incomplete` or `failed`; `stopped` if its model could not be reached, so that it can be resumed.
    pub status: String,
    /// The reason it ended.
    pub termination_reason: String,
    /// Parts of the task that were not confirmed as done; empty for a completed run.
    #[serde(default)]
    pub missing: Vec<String>,
    /// Steps taken.
    pub steps: u32,
    /// Steps allowed.
    pub max_steps: u32,
    /// The active skills.
    pub skills: Vec<String>,
    /// The numbers of files read and changed.
    pub state: Stats,
    /// The reflection on the run.
    pub reflection: Reflection,
    /// Its cost.
    pub metric: Metric,
}

/// The cost of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Requests to the model.
    pub total_requests: u64,
    /// Tokens of all prompts.
    pub request_tokens: u64,
    /// The number of these that were cached from an earlier request.
    pub cached_tokens: u64,
    /// Tokens of all completions.
    pub response_tokens: u64,
    /// Prompts and completions.
    pub total_tokens: u64,
    /// Calls of tools that ran.
    pub tool_calls: u64,
    /// Wall time in milliseconds, including all parts of a resumed run.
    pub total_ms: u64,
}

impl From<Metric> for Cost {
    fn from(metric: Metric) -> Self {
        let Metric { total_requests: requests, request_tokens: request, response_tokens: response, .. } = metric;
        Self { requests, tokens: Tokens { request, cached: metric.cached_tokens, response } }
    }
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    /// The model's complete output.
    Decision {
        /// Its text.
        text: String,
    },
    /// The message to the model in return.
    Observation {
        /// The text, fenced.
        text: String,
        /// Each call as one line, used once the text is folded.
        brief: Vec<String>,
        /// The list of tools that are available from here on, in the form of the first prompt's list.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tools: String,
        /// The reminder of the current part at the end.
        #[serde(default)]
        reminder: String,
    },
}

/// The state of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// The model makes the plan, which may raise the limit of steps to this.
    Plan(u32),
    Assemble,
    Advise,
    Draft(String),
    Reply,
    Decide(ActionSet),
    Act(Vec<Call>),
    Reflect,
    Done(Box<Report>),
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRun {
    task: Task,
    phase: Phase,
    layers: Vec<Layer>,
    tools: Vec<ToolSpec>,
    /// The names of tools that are announced with the next results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    news: Vec<String>,
    skills: Vec<String>,
    entries: Vec<Entry>,
    /// The number of entries, from the first, that are folded into the summary.
    folded: usize,
    /// The model's summary of the first entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summed: Option<sum::Summed>,
    /// True if the summary only has the number of folded steps.
    #[serde(default)]
    bare: bool,
    /// The number of the current step, from 1.
    step: u32,
    state: RunState,
    #[serde(default)]
    progress: progress::PlanProgress,
    metric: Metric,
    /// The model's latest thought, used if the run ends without an answer.
    thought: String,
    end: Option<(End, String)>,
    /// The reasons to doubt an answer that the model had to give.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    doubts: Vec<String>,
    /// True if the last completion could not be parsed or was refused; the next one is then sampled.
    retry: bool,
    /// True once an answer was sent back because it was not confirmed or something was missing.
    #[serde(default)]
    doubted: bool,
    /// The error messages of failed calls, latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
    /// True once the model was asked for an answer from the texts in the prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    asked: bool,
    /// True if the user's documents do not have the answer.
    unsaid: bool,
    /// The workspace file that the last part writes the result to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leaves: Option<String>,
    /// The reason why the model could not be reached, until the driver stops the run.
    #[serde(skip)]
    interruption: Option<String>,
}

impl AgentRun {
    /// Creates a run at its beginning.
    pub fn new(task: Task) -> Self {
        Self {
            task,
            phase: Phase::Assemble,
            layers: Vec::new(),
            tools: Vec::new(),
            news: Vec::new(),
            skills: Vec::new(),
            entries: Vec::new(),
            folded: 0,
            summed: None,
            bare: false,
            step: 1,
            state: RunState::default(),
            progress: progress::PlanProgress::default(),
            metric: Metric::default(),
            thought: String::new(),
            end: None,
            doubts: Vec::new(),
            retry: false,
            doubted: false,
            failures: Vec::new(),
            asked: false,
            unsaid: false,
            leaves: None,
            interruption: None,
        }
    }

    /// Lets the model make the plan first, which may raise [`Task::max_steps`] to `most`. For a run at its beginning.
    #[must_use]
    pub fn planned_by_model(mut self, most: u32) -> Self {
        if self.phase == Phase::Assemble {
            self.phase = Phase::Plan(most);
        }
        self
    }

    /// Returns the next step. It stays the same until its result is brought back.
    pub fn next(&self) -> Step {
        match &self.phase {
            Phase::Plan(_) => Step::Plan(Box::new(PlanRequest::new(&self.task.text, &self.task.place))),
            Phase::Assemble => {
                Step::Assemble(Query { task: self.task.text.clone(), session: self.task.session.clone() })
            }
            Phase::Advise => Step::Advise(Box::new(self.suggest_request())),
            Phase::Draft(file) => Step::Draft(Box::new(self.draft(file))),
            Phase::Reply => Step::Reply(Box::new(self.reply())),
            Phase::Decide(actions) => Step::Decide(Box::new(Decide {
                prompt: self.prompt(),
                shape: action::shape(actions, &self.tools),
                actions: actions.clone(),
                sampling: self.sampling(),
            })),
            Phase::Act(calls) => Step::Act(calls.clone()),
            Phase::Reflect => Step::Reflect,
            Phase::Done(report) => Step::Done(report.clone()),
        }
    }

    /// Returns the sampling settings: after a completion that could not be used the next one is not greedy.
    fn sampling(&self) -> Sampling {
        match self.retry {
            true => Sampling { temperature: 0.4, top_p: 0.9, seed: u64::from(self.step) },
            false => Sampling::GREEDY,
        }
    }

    /// Takes the model's plan and its cost; without a usable one the plan made from the task stays.
    pub fn planned(&mut self, reply: Option<(&str, Finish, Tokens)>, guards: &Guards) {
        let Phase::Plan(most) = self.phase else { return };
        self.phase = Phase::Assemble;
        let Some((text, finish, tokens)) = reply else { return };
        self.charge(Cost { requests: 1, tokens });
        // a plan that was cut off ends with an incomplete line
        if finish == Finish::Stop {
            self.task.plan = self.task.plan.clone().with_model(text);
        }
        if self.task.plan.source == Source::Model {
            self.task.max_steps = self.task.max_steps.max(self.task.plan.steps.min(most));
        }
        // the rest of the run needs the model
        if let Some(halt) = guards.spent(&self.state) {
            self.halt(halt);
        }
    }

    /// Takes the context and the tools, which stay the same for the whole run.
    pub fn assembled(&mut self, assembly: Assembly, tools: Vec<ToolSpec>, skills: Vec<String>, guards: &Guards) {
        if self.phase == Phase::Assemble {
            (self.layers, self.tools, self.skills) = (assembly.layers, tools, skills);
            // facts in the prompt count as seen
            for layer in self.layers.iter().filter(|layer| !layer.trusted) {
                self.state.learn(&layer.text);
            }
            self.choose_phase(guards);
        }
    }

    /// Takes the texts that earlier runs have read, if the prompt has them, so that they are not read again.
    pub fn recall(&mut self, known: &[Known]) {
        if self.layers.iter().any(|layer| layer.name == known::LAYER) {
            self.state.recall(known);
        }
    }

    /// Ends the run before its first step.
    pub fn refused(&mut self, halt: Halt) {
        if self.phase == Phase::Assemble {
            self.halt(halt);
        }
    }

    /// Takes the model's decision.
    pub fn decided(&mut self, text: &str, finish: Finish, tokens: Tokens, guards: &Guards) {
        let Phase::Decide(actions) = &self.phase else { return };
        let actions = actions.clone();
        let forced = self.is_last();
        self.charge(Cost { requests: 1, tokens });
        let read = action::read(text).and_then(|decision| match finish {
            Finish::Length => Err("it was cut off: write less at once".to_owned()),
            Finish::Stop | Finish::Cancelled => Ok(decision),
        });
        // the grammar sees to it, but not every server keeps to one
        let early = read.as_ref().ok().and_then(|decision| self.early_answer(decision, &actions));
        let read = read.and_then(|decision| self.admissible(decision, &actions));
        self.entries.push(Entry::Decision { text: text.to_owned() });
        self.retry = read.is_err();
        let decision = match read {
            Ok(decision) => decision,
            Err(why) if forced => {
                let response = format!("{}\n(The answer could not be read: {why}.)", self.thought);
                return self.finish(self.forced_end(), response);
            }
            Err(why) => {
                self.state.errors_in_a_row += 1;
                if let Some(answer) = early
                    && guards.settle(&mut self.state.clone()).is_some()
                {
                    return self.finish_early(answer, &actions, guards);
                }
                let text = format!("Nothing was done: {why}.");
                return self.continue_with(text.clone(), vec![text], guards);
            }
        };
        self.thought = decision.thought;
        match decision.choice {
            Choice::Calls(calls) => {
                let call = |(i, (tool, args)): (usize, (String, _))| Call {
                    id: format!("s{}c{}", self.step, i + 1),
                    tool: self.tool_name(tool),
                    args,
                    effects: Effects::default(),
                };
                self.phase = Phase::Act(calls.into_iter().enumerate().map(call).collect());
            }
            Choice::Answer(text) if forced => self.finish_forced(text, guards),
            Choice::Answer(text) => {
                let objection = guards.answer(&text, &self.state).map(|finding| finding.text);
                let objection = objection.or_else(|| self.is_echo(&text).then(|| echo::WHY.to_owned()));
                let missing = self.missing();
                let objection = objection.or_else(|| {
                    // without a tool nothing more can be done
                    let tools = self.admitted(guards).tools;
                    let is_open = !missing.is_empty() && !tools.is_empty();
                    is_open.then(|| format!("Not done yet:\n{}", missing.join("\n")))
                });
                // a denied call cannot be asked for again
                let denied = self.state.calls.iter().any(|call| call.outcome == Outcome::Denied);
                let may_retry = !self.doubted && !denied && self.step + 1 < self.task.max_steps;
                match objection {
                    Some(why) if may_retry => {
                        self.doubted = true;
                        self.continue_with(why.clone(), vec![why], guards);
                    }
                    _ => self.finish_with_answer(self.with_known_number(text), guards),
                }
            }
            Choice::Cannot(reason) if self.is_echo(&reason) => match forced || self.doubted {
                true => self.finish(End::Cannot, NO_ANSWER.to_owned()),
                false => {
                    self.doubted = true;
                    self.continue_with(echo::WHY.to_owned(), vec![echo::WHY.to_owned()], guards);
                }
            },
            Choice::Cannot(reason) => self.finish(End::Cannot, self.with_documents_note(reword_refusal(&reason))),
        }
    }

    /// Takes the results of the calls, one each in their order, and the driver's observations.
    pub fn acted(&mut self, batch: &[ToolResult], seen: &StepObservation, guards: &Guards) {
        if !matches!(self.phase, Phase::Act(_)) {
            return;
        }
        for settled in batch {
            self.state.settle(settled);
            self.metric.tool_calls +=
                u64::from(!matches!(settled.outcome, Outcome::Blocked | Outcome::Denied | Outcome::Cancelled));
        }
        self.state.settle_batch(batch);
        self.note_failures(batch);
        let mut results = batch.to_vec();
        if let Some((at, why)) = self.evaluate(batch, seen) {
            // within the result and its fence, since file names are untrusted
            results[at].text = format!("{}\n(Checked: {why})", results[at].text.trim_end());
        }
        // reports the effect of commands without output, too
        if let ([one], Some(changes)) = (&mut results[..], &seen.changes)
            && !matches!(one.outcome, Outcome::Blocked | Outcome::Denied | Outcome::Cancelled)
            && let Some(what) = super::evidence::describe(changes)
        {
            one.text = format!("{}\n(On the disk: {what})", one.text.trim_end());
        }
        for one in &mut results {
            one.call.tool = self.shown_name(&one.call.tool).to_owned();
        }
        // greedy decoding would repeat a call that was refused
        self.retry = batch.iter().all(|one| one.outcome == super::tool::Outcome::Blocked);
        let brief = results.iter().map(fit::call_summary).collect();
        self.continue_with(observe::observation(&results), brief, guards);
    }

    /// Ends the run because the model failed for good.
    pub fn failed(&mut self, error: &str) {
        self.finish(End::Failed(error.to_owned()), format!("The model failed: {error}"));
    }

    /// Stops the run before its next step because the model cannot be reached.
    pub(crate) fn interrupt(&mut self, why: String) {
        self.interruption = Some(why);
    }

    /// Takes the reason of an interruption.
    pub(crate) fn take_interruption(&mut self) -> Option<String> {
        self.interruption.take()
    }

    /// Returns the report of a run that was interrupted, and can be resumed.
    pub(crate) fn report_of_interruption(&self, why: &str) -> Report {
        let (end, response) = (End::Failed(why.to_owned()), format!("The model failed: {why}"));
        let mut reflection = reflect(&self.task.text, &response, &end, &self.state);
        reflection.next_action = format!("`caro resume {}` goes on", self.task.run);
        Report { status: "stopped".into(), ..self.report(&end, &response, reflection) }
    }

    fn report(&self, end: &End, response: &str, reflection: Reflection) -> Report {
        Report {
            response: response.to_owned(),
            session_id: self.task.session.clone(),
            run_id: self.task.run.clone(),
            agent_name: self.task.agent.clone(),
            status: end.status().into(),
            termination_reason: end.reason().into(),
            missing: match end {
                End::Unverified(missing) => missing.clone(),
                _ => self.doubts.clone(),
            },
            steps: self.step.min(self.task.max_steps),
            max_steps: self.task.max_steps,
            skills: self.skills.clone(),
            state: self.state.stats(),
            reflection,
            metric: self.metric,
        }
    }

    /// Takes the reflection and the wall time of this part of the run in milliseconds.
    pub fn reflected(&mut self, reflection: Reflection, ms: u64) {
        let Phase::Reflect = self.phase else { return };
        let Some((end, response)) = &self.end else { return };
        self.metric.total_ms += ms;
        let report = self.report(end, response, reflection);
        self.phase = Phase::Done(Box::new(report));
    }

    /// Adds the wall time of a stopped part of the run, in milliseconds.
    pub fn add_time(&mut self, ms: u64) {
        self.metric.total_ms += ms;
    }

    /// Sets the limits of the run, which also hold after it is resumed.
    pub fn limit(&mut self, limits: Limits) {
        self.state.limits = limits;
    }

    /// Adds the cost of requests to a model.
    pub fn charge(&mut self, cost: Cost) {
        let Tokens { request, cached, response } = cost.tokens;
        self.metric.total_requests += cost.requests;
        self.metric.request_tokens += request;
        self.metric.cached_tokens += cached;
        self.metric.response_tokens += response;
        self.metric.total_tokens += request + response;
        self.state.charge(cost);
    }

    /// Ends the run if its limits are reached; called before each request to a model. True if it ended.
    pub fn halts(&mut self, guards: &Guards) -> bool {
        let asks_model =
            matches!(self.phase, Phase::Plan(_) | Phase::Advise | Phase::Draft(_) | Phase::Reply | Phase::Decide(_));
        let halt = if asks_model { guards.spent(&self.state) } else { None };
        halt.map(|halt| self.halt(halt)).is_some()
    }

    /// Lets calls of a kind run without approval from now on.
    pub fn allow_always(&mut self, kind: String) {
        self.state.always.insert(kind);
    }

    /// Returns the state of the run.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// Returns its task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Returns the number of the current step, from 1.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Returns the latest decision as the prompt has it.
    pub fn last_decision(&self) -> &str {
        let decision = |entry: &Entry| matches!(entry, Entry::Decision { .. });
        match self.entries.iter().rfind(|entry| decision(entry)) {
            Some(Entry::Decision { text }) => text,
            _ => "",
        }
    }

    /// Returns the tools that the prompt shows.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// Returns its cost so far.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Returns the end and the answer, once it has ended.
    pub fn end(&self) -> Option<(&End, &str)> {
        self.end.as_ref().map(|(end, response)| (end, response.as_str()))
    }

    /// Returns every call so far as one line, oldest first.
    pub fn briefs(&self) -> Vec<&str> {
        let mut briefs = Vec::new();
        for entry in &self.entries {
            if let Entry::Observation { brief, .. } = entry {
                briefs.extend(brief.iter().map(String::as_str));
            }
        }
        briefs
    }

    /// Returns the name of the tool that the model knows by the name `shown`.
    fn tool_name(&self, shown: String) -> String {
        self.tools.iter().find(|spec| spec.shown() == shown).map_or(shown, |spec| spec.name.clone())
    }

    /// Returns the name by which the model knows a tool.
    fn shown_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.tools.iter().find(|spec| spec.name == name).map_or(name, ToolSpec::shown)
    }

    /// Makes more tools available; the model is told of them with the next results.
    pub fn reveal(&mut self, specs: Vec<ToolSpec>) {
        for spec in specs {
            if !self.tools.iter().any(|t| t.name == spec.name) && self.tools.len() < MOST {
                self.news.push(spec.name.clone());
                self.tools.push(spec);
            }
        }
    }

    /// Adds an observation and goes on with the next step, or ends the run if a guard stops it.
    fn continue_with(&mut self, observation: String, brief: Vec<String>, guards: &Guards) {
        let news = std::mem::take(&mut self.news);
        let known: Vec<ToolSpec> = self.tools.iter().filter(|spec| news.contains(&spec.name)).cloned().collect();
        let tools = match known.as_slice() {
            [] => String::new(),
            known => format!("More tools, from now on:\n{}", action::list(known).trim_end()),
        };
        self.entries.push(Entry::Observation { text: observation, brief, tools, reminder: String::new() });
        if let Some(halt) = guards.settle(&mut self.state) {
            return self.halt(halt);
        }
        self.step += 1;
        self.choose_phase(guards);
    }

    fn halt(&mut self, Halt { reason, text }: Halt) {
        let response = format!("{text} {}", self.thought).trim().to_owned();
        self.finish(End::Halted(reason), response);
    }

    /// Sets the reminder at the end of the latest observation.
    fn remind(&mut self, words: &str) {
        if let Some(Entry::Observation { reminder, .. }) = self.entries.last_mut() {
            *reminder = words.to_owned();
        }
    }

    /// Returns the actions admitted in this step.
    fn admitted(&self, guards: &Guards) -> ActionSet {
        if self.is_last() {
            return ActionSet::last();
        }
        let tools = self.tools.iter().map(|t| t.name.clone()).collect();
        guards.admit(&ActionSet { tools, answer: true, cannot: true, batch: self.task.batch, path: None }, &self.state)
    }

    /// True if the run must end with this step.
    fn is_last(&self) -> bool {
        self.step >= self.task.max_steps || self.state.stuck.is_some()
    }

    /// Ends the run with the answer that the model had to give, which is told as a doubt: no guard sends it back.
    fn finish_forced(&mut self, text: String, guards: &Guards) {
        self.doubts.extend(self.state.stuck.is_some().then(|| CIRCLES.to_owned()));
        self.doubts.extend(self.not_shown(&text, guards));
        self.finish(self.forced_end(), text);
    }

    /// Says which names and numbers of an answer no tool has shown; `None` if there are none.
    fn not_shown(&self, text: &str, guards: &Guards) -> Option<String> {
        let unseen = guards.unseen(text, &self.state);
        (!unseen.is_empty()).then(|| format!("No tool has shown {}, which the answer has.", unseen.join(", ")))
    }

    fn forced_end(&self) -> End {
        if self.state.stuck.is_some() { End::Stuck } else { End::MaxSteps }
    }

    /// Ends the run with an answer, which is unverified if something is missing or not confirmed.
    fn finish_with_answer(&mut self, text: String, guards: &Guards) {
        self.finish_unless_missing(text, self.missing(), guards);
    }

    fn finish_unless_missing(&mut self, text: String, mut missing: Vec<String>, guards: &Guards) {
        missing.extend(self.not_shown(&text, guards));
        missing.extend(self.is_echo(&text).then(|| echo::MISSING.to_owned()));
        missing.extend(self.doubtful_parts());
        let end = if missing.is_empty() { End::Answered } else { End::Unverified(missing) };
        self.finish(end, text);
    }

    /// Ends the run. Every end goes through here, so that text that only repeats an example of the prompt is never
    /// reported as an answer.
    fn finish(&mut self, end: End, response: String) {
        let (end, response) = match is_example(&response, &self.task.text, &self.state) {
            true => (without_example(end), NO_ANSWER.to_owned()),
            false => (end, response),
        };
        let response = match &end {
            End::MaxSteps => format!(
                "{OUT_OF_STEPS} - Agent hit {} step limit before it was sure to be done]\n{response}",
                self.task.max_steps
            ),
            _ => response,
        };
        self.end = Some((end, response));
        self.phase = Phase::Reflect;
    }
}

#[cfg(test)]
mod draft_tests;
#[cfg(test)]
mod leave_tests;
#[cfg(test)]
mod progress_tests;
#[cfg(test)]
mod reply_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tool_targets_tests;
