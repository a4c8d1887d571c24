//! The loop as a pure state machine: it says what to do next and is told what came of it. No I/O, no clock of its own.
//!
//! ```text
//! Decide (iteration 1) -> Inspect -> clean and sure?  -> Done
//!                                 -> a mechanical fix -> Inspect -> better? keep it
//!                                 -> a second view?   CommandRequest the model in its other way, the surer of the two stays
//!                                 -> another system's? Decide (iteration 2, told what is written here instead) -> Inspect
//!                                 -> faulty or unsure? Sample others, the likeliest stays
//!                                 -> still faulty?    Decide (iteration 2, continues the prompt) -> Inspect -> better? keep it
//!                                                                                                                -> Done
//! ```
//!
//! Otherwise others come before the second iteration: a small model that is told what is wrong, and not what is right, mostly
//! writes the same again, and what it is shown of it takes longer to read than four others take to write
//! (`benches/records/2026-11-22-everyday.md`).

use super::answer::{CommandRequest, FewShot, History, Refine, View};
use super::checks::{in_place, prose, saved, syntax, weight};
use super::reply::{self, Reply};
use super::{confidence, prompt};
use caro_model::{Completion, Finish, Prompt};
use caro_shell::safety::{Level, Risk};
use caro_shell::{Dialect, Finding, Severity, Target, rules};

/// The most mechanical fixes tried on one request; each costs well under a millisecond.
const MENDS: u32 = 6;
/// Below this confidence a second iteration runs (the specification's figure).
pub const REFINE_BELOW: f64 = 0.8;

/// Below this confidence other commands are sampled. Above it sampling takes its time and mends next to nothing
/// (`benches/records/2026-11-25-length.md`).
pub const SAMPLE_BELOW: f64 = 0.667;

/// Below this confidence the answer is most likely wrong, and twice as long is waited for a better one: of 85 such answers 15 were
/// right, and 30 of those that were chosen in their place (`benches/records/2026-11-25-length.md`).
pub const EXTEND_BUDGET_BELOW: f64 = 0.3;

/// From this confidence on the answer of one view stands without the other's.
pub const CLEAR: f64 = 0.9;

/// The confidence in a command that both views have written, each by itself: of 27 such 23 were right
/// (`benches/records/2026-11-26-taught.md`).
const BOTH: f64 = 0.85;

/// So many pairs of the example library, those nearest to the request, are shown to the model when others are sampled.
/// For the first answer that is too much to read: it has those that ask for nearly the same.
const NEAREST: usize = 3;

/// A command with what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The command.
    pub cmd: String,
    /// How sure the model was of it.
    pub confidence: f64,
    /// What the checks have against it.
    pub findings: Vec<Finding>,
    /// Its safety verdict.
    pub risk: Risk,
    /// The programs in it.
    pub commands_used: Vec<String>,
    /// The manual's lines that matter for it; iteration 2 is shown them where there is no finding to show.
    pub manual: Vec<String>,
    /// True where the specification's trigger list asks for a second look whatever the checks say.
    pub delicate: bool,
}

impl Draft {
    /// No command.
    pub fn none() -> Self {
        Self {
            cmd: String::new(),
            confidence: 0.0,
            findings: Vec::new(),
            risk: Risk { level: Level::Safe, reasons: Vec::new() },
            commands_used: Vec::new(),
            manual: Vec::new(),
            delicate: false,
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// CommandRequest the model.
    Decide {
        /// Which iteration this is, from 1.
        iteration: u32,
        /// The prompt; every later one continues the one before.
        prompt: Prompt,
    },
    /// Run the checks on this command.
    Inspect {
        /// The command.
        cmd: String,
        /// How sure its author was of it.
        confidence: f64,
    },
    /// CommandRequest the model in its other way, and have its command mended and inspected.
    Other {
        /// The prompt of that [`View`].
        prompt: Prompt,
    },
    /// Sample other commands for the first prompt, and choose among them and these.
    Sample {
        /// The best command so far, and behind it the other view's; none if all that the model wrote is rejected.
        found: Vec<Written>,
        /// The prompt.
        prompt: Prompt,
        /// How many others.
        count: u32,
    },
    /// The end.
    Done(Outcome),
}

/// A command, and how likely the model was to write it ([`confidence::likelihood`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The command.
    pub draft: Draft,
    /// A probability.
    pub likelihood: f64,
}

/// The model's answer in its other way.
#[derive(Debug, Clone, PartialEq)]
pub enum Second {
    /// A command.
    Command(Written),
    /// That the request is no task for a shell, and how sure it is of that.
    Refused(f64),
    /// Nothing that could be a command.
    Nothing,
}

/// The result of sampling others.
#[derive(Debug, Clone, PartialEq)]
pub enum Chosen {
    /// This one stays, and why.
    Draft(Draft, String),
    /// The model mostly says that the request is no task for a shell.
    Refused,
    /// There is none.
    Nothing,
}

/// What the loop came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A command.
    Command {
        /// The best one.
        draft: Draft,
        /// What later iterations changed in it; empty if nothing.
        changes: String,
    },
    /// The model says that the request is no task for a shell.
    Refused,
    /// The model wrote nothing that could be a command.
    Nothing,
    /// The time was up, or somebody interrupted, before there was a command.
    Stopped,
}

/// The state of one request.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct RefineLoop {
    request: String,
    before: History,
    /// Commands that are not the answer.
    rejected: Vec<String>,
    refine: Refine,
    max_iterations: u32,
    /// How many commands to choose from where the model is unsure.
    candidates: u32,
    sampled: bool,
    /// How else the model can be asked, until it has been.
    other: Option<View>,
    /// How sure the first view is that the request is no task for a shell, where it says so.
    refused: Option<f64>,
    /// False for a model that tells no probabilities: of its confidence nothing is known.
    measured: bool,
    /// What it is written for.
    target: Target,
    dialect: Dialect,
    /// Iterations that have begun. Mechanical fixes, however many, are the second one until the model is asked again.
    pub iterations: u32,
    /// How often the model was asked.
    model_calls: u32,
    /// True if it wrote without coming to an end.
    truncated: bool,
    /// Fixes tried: no more than [`MENDS`].
    mends: u32,
    prompt: Prompt,
    #[serde(skip)]
    best: Option<Draft>,
    /// The command of the view that is not followed.
    #[serde(skip)]
    beside: Option<Written>,
    /// How likely the model was to write its last command, a mechanical fix left aside.
    likelihood: f64,
    changes: String,
    mending: bool,
    /// The fixes tried.
    tried: Vec<String>,
}

impl RefineLoop {
    /// A request before anything was done about it.
    pub fn new(ask: &CommandRequest) -> Self {
        Self {
            candidates: ask.candidates,
            sampled: false,
            other: (ask.view == View::Adapted && ask.candidates >= 2 && ask.refine != Refine::Never)
                .then_some(View::Examples),
            refused: None,
            measured: false,
            prompt: prompt::first(&ask.request, ask.target, ask.dialect, ask.view, ask.few_shot, &ask.before),
            target: ask.target,
            dialect: ask.dialect,
            request: ask.request.clone(),
            before: ask.before.clone(),
            rejected: ask.rejected.clone(),
            refine: ask.refine,
            max_iterations: ask.max_iterations.clamp(1, 3),
            iterations: 0,
            model_calls: 0,
            truncated: false,
            mends: 0,
            best: None,
            beside: None,
            likelihood: 0.0,
            changes: String::new(),
            mending: false,
            tried: Vec::new(),
        }
    }

    /// The first step.
    pub fn begin(&mut self) -> Step {
        (self.iterations, self.model_calls) = (1, 1);
        Step::Decide { iteration: 1, prompt: self.prompt.clone() }
    }

    /// The model has answered. `time_left` is false once half of the time is spent.
    pub fn decided(&mut self, completion: &Completion, confidence: f64, time_left: bool) -> Step {
        if completion.finish == Finish::Cancelled {
            // half a command is no command; what was there before is one
            return if self.has_answer() { self.done(Outcome::Nothing) } else { Step::Done(Outcome::Stopped) };
        }
        self.likelihood = confidence::likelihood(completion);
        self.measured = completion.tokens.iter().any(|t| t.logprob.is_some());
        match reply::read(&completion.text) {
            Reply::Command(_) if completion.finish == Finish::Length => {
                self.truncated = true;
                self.settle(time_left)
            }
            Reply::Command(cmd) if self.rejected.contains(&cmd) || self.best.as_ref().is_some_and(|b| b.cmd == cmd) => {
                self.settle(time_left)
            }
            Reply::Command(cmd) => Step::Inspect { cmd, confidence },
            // what the person's own documents have for it is a task, whatever the model takes it for
            Reply::Refused => match self.before.known.first() {
                Some(known) if self.best.is_none() => {
                    Step::Inspect { cmd: known.command.clone(), confidence: SAMPLE_BELOW }
                }
                _ if self.best.is_none() && confidence < CLEAR => {
                    self.refused = Some(confidence);
                    self.other_view(time_left).unwrap_or_else(|| self.done(Outcome::Refused))
                }
                _ => self.done(Outcome::Refused),
            },
            Reply::Nothing => self.settle(time_left),
        }
    }

    /// The checks have looked. `time_left` is false once half of the time is spent.
    pub fn inspected(&mut self, draft: Draft, time_left: bool) -> Step {
        match self.best.take() {
            // what stayed of several has another confidence than what the model says of one
            Some(before) if better(&draft, &before, self.mending || self.sampled) => {
                self.changed(&describe(&before, &draft));
                self.best = Some(draft);
            }
            Some(before) => {
                let next = self.next_fault(&draft, &before).filter(|_| self.mending);
                self.best = Some(before);
                if let Some(cmd) = next {
                    return self.fix(cmd);
                }
                // what was tried is not better, and trying again would only repeat it
                if !self.mending {
                    return self.settle(time_left);
                }
            }
            None => self.best = Some(draft),
        }
        self.mending = false;
        self.go_on(time_left)
    }

    /// The next step from the best command that there is.
    fn go_on(&mut self, time_left: bool) -> Step {
        let Some(best) = self.best.clone() else { return self.settle(time_left) };
        if self.max_iterations == 1 || reason(self.refine, &best).is_none() {
            return self.settle(time_left);
        }
        // a rule that knows the mended command needs no model, and no time
        let known = best.findings.iter().filter_map(|f| f.fix.clone()).find(|fix| self.is_new(fix));
        if let Some(cmd) = known.filter(|_| self.mends < MENDS) {
            return self.fix(cmd);
        }
        if let Some(step) = self.other_view(time_left) {
            return step;
        }
        // the rule says what is written here instead; who samples gets the habit of another system once more
        let is_told = best.findings.iter().any(|f| f.severity > Severity::Hint && rules::is_own(&f.id, self.target));
        if is_told && let Some(step) = self.again(time_left) {
            return step;
        }
        if time_left && self.measured && self.may_sample() {
            return self.sample();
        }
        self.again(time_left).unwrap_or_else(|| self.settle(time_left))
    }

    /// Asks in the other way where the answer is not clear, once.
    fn other_view(&mut self, time_left: bool) -> Option<Step> {
        let is_clear = |best: &Draft| {
            let is_clean = best.findings.iter().all(|f| f.severity == Severity::Hint);
            (best.confidence >= CLEAR && is_clean) || self.before.knows(&best.cmd)
        };
        if !time_left || !self.measured || self.best.as_ref().is_some_and(is_clear) {
            return None;
        }
        let view = self.other.take()?;
        let few_shot = FewShot::default();
        Some(Step::Other {
            prompt: prompt::first(&self.request, self.target, self.dialect, view, few_shot, &self.before),
        })
    }

    /// The model was asked in its other way with this `prompt`, and the surer of the two answers stays: both are right about as
    /// often, on different requests. `time_left` is false once half of the time is spent.
    pub fn seconded(&mut self, prompt: Prompt, second: Second, time_left: bool) -> Step {
        match (self.best.take(), second) {
            (Some(first), Second::Command(second)) if first.cmd == second.draft.cmd => self.best = Some(both(first)),
            (Some(first), Second::Command(second)) if is_surer(&second.draft, &first) => {
                self.changed(&format!("was `{}`: with worked examples the model is surer", first.cmd));
                self.beside = Some(Written { draft: first, likelihood: self.likelihood });
                (self.best, self.likelihood, self.prompt) = (Some(second.draft), second.likelihood, prompt);
            }
            (Some(first), Second::Command(second)) => (self.best, self.beside) = (Some(first), Some(second)),
            (Some(first), Second::Refused(sure)) if sure > first.confidence => return self.done(Outcome::Refused),
            (None, Second::Command(second)) if self.refused.is_none_or(|sure| second.draft.confidence > sure) => {
                (self.best, self.likelihood, self.prompt) = (Some(second.draft), second.likelihood, prompt);
            }
            (None, Second::Refused(_)) => return self.done(Outcome::Refused),
            (first, _) => self.best = first,
        }
        if self.best.is_none() && self.refused.is_some() {
            return self.done(Outcome::Refused);
        }
        self.go_on(time_left)
    }

    /// Notes what has become of the command.
    fn changed(&mut self, what: &str) {
        if !self.changes.is_empty() {
            self.changes.push_str("; then ");
        }
        self.changes.push_str(what);
    }

    /// The next iteration, if the best command deserves one and there is time.
    fn again(&mut self, time_left: bool) -> Option<Step> {
        let best = self.best.clone().filter(|best| reason(self.refine, best).is_some())?;
        if !time_left || self.model_calls >= self.max_iterations {
            return None;
        }
        self.model_calls += 1;
        self.iterations = self.iterations.max(self.model_calls);
        let next = prompt::next(self.prompt.clone(), &best.cmd, &self.request, &best.findings, &best.manual);
        self.prompt = next.clone();
        Some(Step::Decide { iteration: self.iterations, prompt: next })
    }

    /// True if there is a command that could be the answer.
    pub fn has_answer(&self) -> bool {
        self.best.as_ref().is_some_and(|best| !is_broken(&best.findings))
    }

    /// True for a fix that was neither tried nor told to be of no use.
    fn is_new(&self, fix: &String) -> bool {
        !self.tried.contains(fix) && !self.rejected.contains(fix)
    }

    fn fix(&mut self, cmd: String) -> Step {
        self.iterations = self.iterations.max(2);
        self.mends += 1;
        self.mending = true;
        self.tried.push(cmd.clone());
        let confidence = self.best.as_ref().map_or(0.0, |best| best.confidence);
        Step::Inspect { cmd, confidence }
    }

    /// What mends a fault that only shows once another one is mended: `-r` lets grep read a folder, and each match stands
    /// behind the name of its file then.
    fn next_fault(&self, draft: &Draft, before: &Draft) -> Option<String> {
        let is_shown_now = |f: &&Finding| !before.findings.iter().any(|g| g.id == f.id);
        let fix = draft.findings.iter().filter(is_shown_now).filter_map(|f| f.fix.clone()).find(|fix| self.is_new(fix));
        fix.filter(|_| self.mends < MENDS && weight(&draft.findings) <= weight(&before.findings))
    }

    /// Others were sampled, and this is what came of it. `time_left` is false once half of the time is spent.
    pub fn chosen(&mut self, chosen: Chosen, time_left: bool) -> Step {
        let (draft, why) = match chosen {
            Chosen::Draft(draft, why) => (draft, why),
            Chosen::Refused => {
                self.best = None;
                return self.done(Outcome::Refused);
            }
            Chosen::Nothing => {
                self.best = None;
                return self.done(Outcome::Nothing);
            }
        };
        if let Some(before) = self.best.replace(draft)
            && self.best.as_ref().is_some_and(|now| now.cmd != before.cmd)
        {
            self.changed(&format!("was `{}`: {why}", before.cmd));
        }
        self.again(time_left).unwrap_or_else(|| self.done(Outcome::Nothing))
    }

    /// Ends, unless the command is doubtful, or rejected, and there is time to look at others.
    fn settle(&mut self, time_left: bool) -> Step {
        if let Some(step) = self.other_view(time_left) {
            return step;
        }
        let is_open = match &self.best {
            // what no shell can parse is no answer, and whoever has none waits for one
            Some(best) if is_broken(&best.findings) => self.measured,
            Some(best) => time_left && best.confidence < SAMPLE_BELOW && self.measured,
            // without one there is no answer at all
            None => self.truncated || !self.rejected.is_empty(),
        };
        if is_open && self.may_sample() { self.sample() } else { self.done(Outcome::Nothing) }
    }

    fn may_sample(&self) -> bool {
        // what the person's own documents have is not put to the vote
        let is_open = !self.sampled && !self.best.as_ref().is_some_and(|best| self.before.knows(&best.cmd));
        is_open && self.candidates >= 2 && self.refine != Refine::Never
    }

    fn sample(&mut self) -> Step {
        self.sampled = true;
        // who is shown a command writes it again, whatever is said of it
        let mut before = self.before.clone();
        before.said.retain(|said| !self.rejected.contains(&said.command));
        // who has the adapter is doubted by who has the examples
        let (view, few_shot) = (View::Examples, FewShot::Nearest(NEAREST));
        let prompt = prompt::first(&self.request, self.target, self.dialect, view, few_shot, &before);
        let best = self.best.clone().map(|draft| Written { draft, likelihood: self.likelihood });
        let found = best.into_iter().chain(self.beside.take()).collect();
        Step::Sample { found, prompt, count: self.candidates - 1 }
    }

    /// Ends with the best draft there is, else with `otherwise`. Words, or what no shell can parse, are no command.
    fn done(&mut self, otherwise: Outcome) -> Step {
        Step::Done(match self.best.take() {
            Some(draft) if is_broken(&draft.findings) => Outcome::Nothing,
            Some(draft) => Outcome::Command { draft, changes: std::mem::take(&mut self.changes) },
            None => otherwise,
        })
    }
}

/// True if what the checks found means that it is no command at all.
pub(super) fn is_broken(findings: &[Finding]) -> bool {
    findings.iter().any(|f| [syntax::ID, prose::ID].contains(&f.id.as_str()) && f.severity == Severity::Error)
}

/// True if `new`, which another view has written, is to stay in the place of `old`: it has less against it, or as much, and the
/// model is surer of it. What is dangerous takes the place of nothing that is not.
fn is_surer(new: &Draft, old: &Draft) -> bool {
    if new.risk.level == Level::Danger && old.risk.level < Level::Danger {
        return false;
    }
    let (was, is) = (weight(&old.findings), weight(&new.findings));
    is < was || (is == was && new.confidence > old.confidence)
}

/// A command that both views have written.
fn both(draft: Draft) -> Draft {
    let is_clean = draft.findings.iter().all(|f| f.severity == Severity::Hint);
    let confidence = if is_clean { draft.confidence.max(BOTH) } else { draft.confidence };
    Draft { confidence, ..draft }
}

/// Why a draft deserves another iteration; `None` if it is good enough.
pub fn reason(refine: Refine, draft: &Draft) -> Option<String> {
    let found = draft.findings.iter().find(|f| f.severity > Severity::Hint);
    match (refine, found) {
        (Refine::Never, _) => None,
        (_, Some(f)) => Some(format!("{}: `{}`", f.id, f.token)),
        (Refine::Always, None) if draft.confidence < REFINE_BELOW => {
            Some(format!("confidence {:.2} < {REFINE_BELOW}", draft.confidence))
        }
        (Refine::Always, None) if draft.delicate => Some("on the list of delicate commands".into()),
        _ => None,
    }
}

/// Is `new` better than `old`? Only the checks decide: fewer or lighter findings, or as clean and clearly surer.
/// A command that is more dangerous than what it replaces is never better.
pub(super) fn better(new: &Draft, old: &Draft, mechanical: bool) -> bool {
    // what is asked to be written is written, which needs no more than care
    let asked = |f: &Finding| [saved::ID, in_place::ID].contains(&f.id.as_str());
    let writes = old.findings.iter().any(asked) && !new.findings.iter().any(asked);
    // nor does a rule's own command in the place of one that cannot work, though no table knows what it does
    let instead = |f: &Finding| f.severity == Severity::Error && f.fix.as_deref() == Some(new.cmd.as_str());
    let known = mechanical && old.findings.iter().any(instead);
    if new.risk.level > old.risk.level && !(new.risk.level == Level::Caution && (writes || known)) {
        return false;
    }
    let (was, is) = (weight(&old.findings), weight(&new.findings));
    is < was || (is == was && !mechanical && new.confidence >= REFINE_BELOW && new.confidence > old.confidence + 0.1)
}

/// One line on what changed and why.
fn describe(old: &Draft, new: &Draft) -> String {
    let gone: Vec<String> = old
        .findings
        .iter()
        .filter(|f| !new.findings.iter().any(|g| g.id == f.id && g.token == f.token))
        .map(|f| f.why.clone())
        .collect();
    let why = if gone.is_empty() { "surer after a look at the manual".to_owned() } else { gone.join("; ") };
    format!("was `{}`: {why}", old.cmd)
}

#[cfg(test)]
#[path = "refine_loop_tests.rs"]
mod tests;
