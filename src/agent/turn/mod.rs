//! The loop as a pure state machine: no clock, no file, no model, no thread. [`AgentRun::next`] says what is to be done, and
//! the driver brings the result back:
//!
//! ```text
//! Assemble --assembled--> Decide --decided--> Act --acted--> Decide ... --> Reflect --reflected--> Done
//!                     \-> Advise --advised-/
//!                     \-> Draft --drafted--/
//!                     \-> Reply --replied--/
//! ```
//!
//! Where a model is to make the plan, `Plan --planned-->` comes first.
//!
//! A turn is plain data. Stored at every step, it goes on in another process as if nothing had happened.
//!
//! Within a run each prompt extends the one before it (so that its computed state is kept), unless [`AgentRun::fit`] had to
//! shorten it.

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

pub use draft::{Text, goes_round};
pub use fit::{Compression, Fitting, Mode, Strategy};
pub use progress::{BEGINS_WITH, NOT_SHOWN, PLACE, StepObservation};
pub use prompt::prompt_tokens;
pub use reply::{KNOWLEDGE, Reply};
pub use shown::{HEADING, TEXTS};
pub use sum::{Falling, lines};

use super::action::{self, ActionSet, Choice};
use super::assemble::{Assembly, Layer, Query};
use super::event::Tokens;
use super::guard::{Guards, Halt, as_told, is_example};
use super::known::{self, Known};
use super::observe;
use super::plan::model::Ask;
use super::plan::{Plan, Source};
pub use super::reflect::End;
use super::reflect::Reflection;
use super::retrieve::MOST;
use super::state::{Cost, Limits, RunState, Stats};
use super::tool::{Call, Effects, Outcome, ToolResult, ToolSpec};
use crate::suggest::SuggestRequest;
use caro_model::{Finish, Prompt, Sampling, Shape};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What is to be done next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the model for a plan.
    Plan(Box<Ask>),
    /// Bring the layers of context and the tools to show.
    Assemble(Query),
    /// Ask for advice on the part under way.
    Advise(Box<SuggestRequest>),
    /// Ask the model for the text of a file, if that is not there yet.
    Draft(Box<Text>),
    /// Ask the model for an answer out of the texts that there are.
    Reply(Box<Reply>),
    /// Ask the model.
    Decide(Box<Decide>),
    /// Have these calls made.
    Act(Vec<Call>),
    /// Look back.
    Reflect,
    /// It is over.
    Done(Box<Report>),
}

/// A request to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Decide {
    /// The conversation.
    pub prompt: Prompt,
    /// What may be written.
    pub shape: Shape,
    /// The same as names.
    pub actions: ActionSet,
    /// How tokens are chosen.
    pub sampling: Sampling,
}

/// What a run is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its name, unique.
    pub run: String,
    /// The session it belongs to.
    pub session: String,
    /// The recipe, as reports name it.
    pub agent: String,
    /// The person's words.
    pub text: String,
    /// How it is to be gone about.
    pub plan: Plan,
    /// The most steps: requests for a decision.
    pub max_steps: u32,
    /// The most calls in one step.
    pub batch: usize,
    /// What the model should know about the place, one fact a line. Our own words.
    pub place: String,
}

impl Task {
    /// What [`Task::place`] says of the working folder: its name, and not where it is. A small model decides otherwise when
    /// a folder far above is called otherwise, and whoever needs the way there can have it shown.
    pub fn folder(root: &Path) -> String {
        let name = root.file_name().unwrap_or(root.as_os_str());
        format!("Working folder: {}", name.display())
    }

    /// The same with other limits of steps and of calls in one, where they are given; both are at least 1.
    #[must_use]
    pub fn limited(self, max_steps: Option<u32>, batch: Option<usize>) -> Self {
        Self {
            max_steps: max_steps.unwrap_or(self.max_steps).max(1),
            batch: batch.unwrap_or(self.batch).max(1),
            ..self
        }
    }
}

/// What a response begins with for which no step was left.
const OUT_OF_STEPS: &str = "[SYSTEM_CONTEXT: MAX_STEPS_REACHED";

/// The model's own words in a response.
pub fn own_words(response: &str) -> &str {
    match response.split_once('\n') {
        Some((mark, words)) if mark.starts_with(OUT_OF_STEPS) => words,
        _ => response,
    }
}

/// What is told where the model has only said what stands in an example.
const NO_ANSWER: &str = "No answer was found.";

/// An end whose answer was that of an example: nothing was answered.
fn without_example(end: End) -> End {
    match end {
        End::Answered | End::Unverified(_) | End::Cannot => {
            End::Unverified(vec!["The model has only repeated an example, and knows no answer.".to_owned()])
        }
        other => other,
    }
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The answer, or why there is none.
    pub response: String,
    /// The session.
    pub session_id: String,
    /// The run.
    pub run_id: String,
    /// The recipe.
    pub agent_name: String,
    /// `completed`, `incomplete` or `failed`.
    pub status: String,
    /// Why it ended.
    pub termination_reason: String,
    /// What was asked for and not seen to be done; empty for a run that is completed.
    #[serde(default)]
    pub missing: Vec<String>,
    /// Steps taken.
    pub steps: u32,
    /// Steps allowed.
    pub max_steps: u32,
    /// Skills that were active.
    pub skills: Vec<String>,
    /// Files looked at and changed.
    pub state: Stats,
    /// What came of it.
    pub reflection: Reflection,
    /// What it cost.
    pub metric: Metric,
}

/// What a run cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Requests to the model.
    pub total_requests: u64,
    /// Tokens of all prompts.
    pub request_tokens: u64,
    /// How many of them were still known from the request before.
    pub cached_tokens: u64,
    /// Tokens of all completions.
    pub response_tokens: u64,
    /// Prompts and completions.
    pub total_tokens: u64,
    /// Calls of tools that ran.
    pub tool_calls: u64,
    /// Wall time, milliseconds; over all parts of a run that was resumed.
    pub total_ms: u64,
}

impl From<Metric> for Cost {
    fn from(metric: Metric) -> Self {
        let Metric { total_requests: requests, request_tokens: request, response_tokens: response, .. } = metric;
        Self { requests, tokens: Tokens { request, cached: metric.cached_tokens, response } }
    }
}

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Entry {
    /// What the model wrote, whole.
    Decision {
        /// Its text.
        text: String,
    },
    /// What it was told in return.
    Observation {
        /// The text, fenced.
        text: String,
        /// Each call in a line, for when the text is folded away.
        brief: Vec<String>,
        /// Tools that may be used from here on, as the list of the first prompt has the others.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tools: String,
        /// The last words behind the text: what is to be done now.
        #[serde(default)]
        reminder: String,
    },
}

/// Where the machine stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    /// A plan is to be made; it may raise the most steps to this.
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

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRun {
    task: Task,
    phase: Phase,
    layers: Vec<Layer>,
    tools: Vec<ToolSpec>,
    /// Names of those of them that the model is to be told of with the next results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    news: Vec<String>,
    skills: Vec<String>,
    entries: Vec<Entry>,
    /// How many entries from the first are folded into the summary.
    folded: usize,
    /// The model's summary of the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summed: Option<sum::Summed>,
    /// True if the summary says no more than how many they are.
    #[serde(default)]
    bare: bool,
    /// The step under way, from 1.
    step: u32,
    state: RunState,
    #[serde(default)]
    progress: progress::PlanProgress,
    metric: Metric,
    /// The latest thought, for a run that ends without an answer.
    thought: String,
    end: Option<(End, String)>,
    /// True if the last completion could not be read or was refused: the next one is sampled.
    retry: bool,
    /// True once an answer was sent back for what nobody has shown, or for what is missing.
    #[serde(default)]
    doubted: bool,
    /// What tools and guards said of calls that failed, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failures: Vec<String>,
    /// True once a model was asked for an answer out of the texts that there are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    asked: bool,
    /// True if the person's documents were asked and do not say it.
    unsaid: bool,
    /// The file of the workspace that its last part leaves what was found in, if it is to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leaves: Option<String>,
}

impl AgentRun {
    /// A run at its beginning.
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
            retry: false,
            doubted: false,
            failures: Vec::new(),
            asked: false,
            unsaid: false,
            leaves: None,
        }
    }

    /// Has the model asked for the plan first, which may raise [`Task::max_steps`] to `most`. For a run at its beginning.
    #[must_use]
    pub fn planned_by_model(mut self, most: u32) -> Self {
        if self.phase == Phase::Assemble {
            self.phase = Phase::Plan(most);
        }
        self
    }

    /// What is to be done next. The same until its result is brought.
    pub fn next(&self) -> Step {
        match &self.phase {
            Phase::Plan(_) => Step::Plan(Box::new(Ask::new(&self.task.text, &self.task.place))),
            Phase::Assemble => {
                Step::Assemble(Query { task: self.task.text.clone(), session: self.task.session.clone() })
            }
            Phase::Advise => Step::Advise(Box::new(self.brief())),
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

    /// How the next tokens are chosen: who could not be understood is not asked for the same words again.
    fn sampling(&self) -> Sampling {
        match self.retry {
            true => Sampling { temperature: 0.4, top_p: 0.9, seed: u64::from(self.step) },
            false => Sampling::GREEDY,
        }
    }

    /// Takes what the model wrote as a plan, and what that cost; the plan of the task's own words stays where it wrote
    /// none, or none that can be used.
    pub fn planned(&mut self, reply: Option<(&str, Finish, Tokens)>, guards: &Guards) {
        let Phase::Plan(most) = self.phase else { return };
        self.phase = Phase::Assemble;
        let Some((text, finish, tokens)) = reply else { return };
        self.charge(Cost { requests: 1, tokens });
        // the last line of one that was cut off says half of what it was to say
        if finish == Finish::Stop {
            self.task.plan = self.task.plan.clone().with_model(text);
        }
        if self.task.plan.source == Source::Model {
            self.task.max_steps = self.task.max_steps.max(self.task.plan.steps.min(most));
        }
        // what is left to do needs the model
        if let Some(halt) = guards.spent(&self.state) {
            self.halt(halt);
        }
    }

    /// Takes the context and the tools: both stay as they are for the whole run.
    pub fn assembled(&mut self, assembly: Assembly, tools: Vec<ToolSpec>, skills: Vec<String>, guards: &Guards) {
        if self.phase == Phase::Assemble {
            (self.layers, self.tools, self.skills) = (assembly.layers, tools, skills);
            // what stands in the prompt was seen
            for layer in self.layers.iter().filter(|layer| !layer.trusted) {
                self.state.learn(&layer.text);
            }
            self.set_out(guards);
        }
    }

    /// Takes what runs before have read, if the prompt has it: it is not read again.
    pub fn recall(&mut self, known: &[Known]) {
        if self.layers.iter().any(|layer| layer.name == known::LAYER) {
            self.state.recall(known);
        }
    }

    /// There can be no first step: the run ends before it.
    pub fn refused(&mut self, halt: Halt) {
        if self.phase == Phase::Assemble {
            self.halt(halt);
        }
    }

    /// Takes what the model wrote.
    pub fn decided(&mut self, text: &str, finish: Finish, tokens: Tokens, guards: &Guards) {
        let Phase::Decide(_) = &self.phase else { return };
        let forced = self.is_last();
        self.charge(Cost { requests: 1, tokens });
        let read = action::read(text).and_then(|decision| match finish {
            Finish::Length => Err("it was cut off: write less at once".to_owned()),
            Finish::Stop | Finish::Cancelled => Ok(decision),
        });
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
                let text = format!("Nothing was done: {why}.");
                return self.go_on(text.clone(), vec![text], guards);
            }
        };
        self.thought = decision.thought;
        match decision.choice {
            Choice::Calls(calls) => {
                let call = |(i, (tool, args)): (usize, (String, _))| Call {
                    id: format!("s{}c{}", self.step, i + 1),
                    tool: self.resolved(tool),
                    args,
                    effects: Effects::default(),
                };
                self.phase = Phase::Act(calls.into_iter().enumerate().map(call).collect());
            }
            Choice::Answer(text) if forced => self.finish(self.forced_end(), text),
            Choice::Answer(text) => {
                let against = guards.answer(&text, &self.state).map(|finding| finding.text);
                let against = against.or_else(|| self.is_echo(&text).then(|| echo::WHY.to_owned()));
                let open = self.missing();
                let told = against.or_else(|| {
                    // without a tool nothing more can be done about it
                    let can = self.admitted(guards).tools;
                    (!open.is_empty() && !can.is_empty()).then(|| format!("Not done yet:\n{}", open.join("\n")))
                });
                // who was not allowed to cannot be asked to
                let denied = self.state.calls.iter().any(|call| call.outcome == Outcome::Denied);
                let again = !self.doubted && !denied && self.step + 1 < self.task.max_steps;
                match told.filter(|_| again) {
                    Some(why) => {
                        self.doubted = true;
                        self.go_on(why.clone(), vec![why], guards);
                    }
                    None => self.close(self.vouched(text), guards),
                }
            }
            Choice::Cannot(reason) if self.is_echo(&reason) => match forced || self.doubted {
                true => self.finish(End::Cannot, NO_ANSWER.to_owned()),
                false => {
                    self.doubted = true;
                    self.go_on(echo::WHY.to_owned(), vec![echo::WHY.to_owned()], guards);
                }
            },
            Choice::Cannot(reason) => self.finish(End::Cannot, self.unsaid(as_told(&reason))),
        }
    }

    /// Takes what became of the calls: one result each, in their order, and what the driver saw beside them.
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
        let mut told = batch.to_vec();
        if let Some((at, why)) = self.follow(batch, seen) {
            // beside the result, and fenced as it is: file names are others' words
            told[at].text = format!("{}\n(Checked: {why})", told[at].text.trim_end());
        }
        // a command that says nothing has done something all the same
        if let ([one], Some(changes)) = (&mut told[..], &seen.changes)
            && !matches!(one.outcome, Outcome::Blocked | Outcome::Denied | Outcome::Cancelled)
            && let Some(what) = super::evidence::told(changes)
        {
            one.text = format!("{}\n(On the disk: {what})", one.text.trim_end());
        }
        for one in &mut told {
            one.call.tool = self.called(&one.call.tool).to_owned();
        }
        // who wrote again what was refused would write it a third time
        self.retry = batch.iter().all(|one| one.outcome == super::tool::Outcome::Blocked);
        let brief = told.iter().map(fit::brief).collect();
        self.go_on(observe::observation(&told), brief, guards);
    }

    /// The model failed for good.
    pub fn failed(&mut self, error: &str) {
        self.finish(End::Failed(error.to_owned()), format!("The model failed: {error}"));
    }

    /// Takes the look back, and the wall time of this part of the run in milliseconds.
    pub fn reflected(&mut self, reflection: Reflection, ms: u64) {
        let Phase::Reflect = self.phase else { return };
        let Some((end, response)) = &self.end else { return };
        self.metric.total_ms += ms;
        let report = Report {
            response: response.clone(),
            session_id: self.task.session.clone(),
            run_id: self.task.run.clone(),
            agent_name: self.task.agent.clone(),
            status: end.status().into(),
            termination_reason: end.reason().into(),
            missing: match end {
                End::Unverified(missing) => missing.clone(),
                _ => Vec::new(),
            },
            steps: self.step.min(self.task.max_steps),
            max_steps: self.task.max_steps,
            skills: self.skills.clone(),
            state: self.state.stats(),
            reflection,
            metric: self.metric,
        };
        self.phase = Phase::Done(Box::new(report));
    }

    /// Adds the wall time of a part of the run that was stopped.
    pub fn spent(&mut self, ms: u64) {
        self.metric.total_ms += ms;
    }

    /// Holds the run to limits, also when another process goes on with it.
    pub fn limit(&mut self, limits: Limits) {
        self.state.limits = limits;
    }

    /// Adds what asking a model has cost.
    pub fn charge(&mut self, cost: Cost) {
        let Tokens { request, cached, response } = cost.tokens;
        self.metric.total_requests += cost.requests;
        self.metric.request_tokens += request;
        self.metric.cached_tokens += cached;
        self.metric.response_tokens += response;
        self.metric.total_tokens += request + response;
        self.state.charge(cost);
    }

    /// Ends the run if its means are spent; looked at before each request to a model.
    pub fn halts(&mut self, guards: &Guards) -> bool {
        let asks =
            matches!(self.phase, Phase::Plan(_) | Phase::Advise | Phase::Draft(_) | Phase::Reply | Phase::Decide(_));
        let halt = guards.spent(&self.state).filter(|_| asks);
        halt.map(|halt| self.halt(halt)).is_some()
    }

    /// Lets calls of a kind run unasked from now on.
    pub fn allow_always(&mut self, kind: String) {
        self.state.always.insert(kind);
    }

    /// What the run knows about itself.
    pub fn state(&self) -> &RunState {
        &self.state
    }

    /// What it is to do.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The step under way, from 1.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// What was decided last, as it stands in the prompt.
    pub fn said(&self) -> &str {
        let decision = |entry: &Entry| matches!(entry, Entry::Decision { .. });
        match self.entries.iter().rfind(|entry| decision(entry)) {
            Some(Entry::Decision { text }) => text,
            _ => "",
        }
    }

    /// The tools that the prompt shows.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// What it has cost so far.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// How it ended and with which answer, once it has.
    pub fn end(&self) -> Option<(&End, &str)> {
        self.end.as_ref().map(|(end, response)| (end, response.as_str()))
    }

    /// Every call so far in a line, the oldest first.
    pub fn briefs(&self) -> Vec<&str> {
        let mut briefs = Vec::new();
        for entry in &self.entries {
            if let Entry::Observation { brief, .. } = entry {
                briefs.extend(brief.iter().map(String::as_str));
            }
        }
        briefs
    }

    /// The tool's own name of what the model has called it.
    fn resolved(&self, shown: String) -> String {
        self.tools.iter().find(|spec| spec.shown() == shown).map_or(shown, |spec| spec.name.clone())
    }

    /// What the model calls the tool of that name.
    fn called<'a>(&'a self, name: &'a str) -> &'a str {
        self.tools.iter().find(|spec| spec.name == name).map_or(name, ToolSpec::shown)
    }

    /// Has tools that the first prompt does not list admitted from now on; the model is told of them with the results of
    /// the calls that are being made.
    pub fn reveal(&mut self, specs: Vec<ToolSpec>) {
        for spec in specs {
            if !self.tools.iter().any(|t| t.name == spec.name) && self.tools.len() < MOST {
                self.news.push(spec.name.clone());
                self.tools.push(spec);
            }
        }
    }

    /// The next step, or the end.
    fn go_on(&mut self, observation: String, brief: Vec<String>, guards: &Guards) {
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
        self.set_out(guards);
    }

    fn halt(&mut self, Halt { reason, text }: Halt) {
        let response = format!("{text} {}", self.thought).trim().to_owned();
        self.finish(End::Halted(reason), response);
    }

    /// Ends what the model was told last with what it is about now.
    fn remind(&mut self, words: &str) {
        if let Some(Entry::Observation { reminder, .. }) = self.entries.last_mut() {
            *reminder = words.to_owned();
        }
    }

    /// What may be done in this step.
    fn admitted(&self, guards: &Guards) -> ActionSet {
        if self.is_last() {
            return ActionSet::last();
        }
        let tools = self.tools.iter().map(|t| t.name.clone()).collect();
        guards.admit(&ActionSet { tools, answer: true, cannot: true, batch: self.task.batch, path: None }, &self.state)
    }

    /// True if nothing but the end is left, whether all is done or not.
    fn is_last(&self) -> bool {
        self.step >= self.task.max_steps || self.state.stuck.is_some()
    }

    fn forced_end(&self) -> End {
        if self.state.stuck.is_some() { End::Stuck } else { End::MaxSteps }
    }

    /// Ends with an answer: one that what was seen bears out, or one that says what is missing.
    fn close(&mut self, text: String, guards: &Guards) {
        let mut missing = self.missing();
        missing.extend(
            guards
                .answer(&text, &self.state)
                .map(|_| "The answer has names or numbers that nobody has seen.".to_owned()),
        );
        missing.extend(self.is_echo(&text).then(|| echo::MISSING.to_owned()));
        missing.extend(self.unsure());
        let end = if missing.is_empty() { End::Answered } else { End::Unverified(missing) };
        self.finish(end, text);
    }

    /// Every end comes by here: what stands in an example of the prompt and nowhere else is no answer, however it came about.
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
