//! The refinement loop as a pure state machine: returns the next step, and is given its result. No I/O, no clock.
//!
//! ```text
//! AskModel (iteration 1) -> a word? is refused?          -> AskModel (iteration 1, with an order)
//!                        -> Inspect -> clean and sure?   -> Done
//!                                   -> a mechanical fix? -> Inspect -> better? take it
//!                                   -> another view?     -> AskOtherView, the surer answer stays
//!                                   -> another system's? -> AskModel (iteration 2, with this system's rule) ->
//!                                   Inspect -> faulty or unsure? -> Sample others, the likeliest stays
//!                                   -> still faulty?     -> AskModel (iteration 2, with the findings) -> Inspect
//!                                                           -> better? take it -> Done
//! ```
//!
//! Except for another system's command, sampling comes before the second iteration. A small model that is told what
//! is wrong, but not what is right, mostly writes the same command again, and prefilling the findings takes longer
//! than decoding four samples (`benches/records/2026-11-22-everyday.md`).

use super::answer::{CommandRequest, FewShot, History, Refine, View};
use super::checks::{prose, syntax, weight};
use super::reply::{self, Reply};
use super::{confidence, one_word, prompt};
use caro_model::{Completion, Finish, Prompt};
use caro_shell::safety::{Level, Risk};
use caro_shell::{Dialect, Finding, Severity, Target, rules};

/// Most mechanical fixes tried on one request; each costs well under a millisecond.
const MAX_FIXES: u32 = 6;
/// The confidence below which a second iteration runs (the specification's figure).
pub const REFINE_BELOW: f64 = 0.8;

/// The confidence below which other commands are sampled. Above it, sampling costs time and corrects almost nothing
/// (`benches/records/2026-11-25-length.md`).
pub const SAMPLE_BELOW: f64 = 0.667;

/// The confidence below which the answer is most likely wrong, so that the budget is doubled: of 85 such answers 15
/// were right, and of those chosen in their place 30 (`benches/records/2026-11-25-length.md`).
pub const EXTEND_BUDGET_BELOW: f64 = 0.3;

/// The confidence below which the model is also asked in its other [`View`].
pub const SECOND_VIEW_BELOW: f64 = 0.9;

/// The confidence in a command that both views wrote independently: of 27 such commands 23 were right
/// (`benches/records/2026-11-26-taught.md`).
const AGREED_CONFIDENCE: f64 = 0.85;

/// The number of nearest library pairs that the model is shown when others are sampled. For the first answer they
/// would take too long to prefill: its prompt has only the pairs that ask for nearly the same.
const NEAREST_PAIRS: usize = 3;

/// A command with the results of its inspection.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The command.
    pub cmd: String,
    /// The probability that the command is right.
    pub confidence: f64,
    /// The findings against the command.
    pub findings: Vec<Finding>,
    /// Its safety verdict.
    pub risk: Risk,
    /// The programs that it calls.
    pub commands_used: Vec<String>,
    /// The lines of the manual that are relevant to it; iteration 2 is shown them as well.
    pub manual: Vec<String>,
    /// True if the specification's trigger list asks for a second iteration whatever the checks find.
    pub delicate: bool,
}

impl Draft {
    /// A draft with no command.
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

/// The next step of the loop, for its driver to execute.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Asks the model.
    AskModel {
        /// The number of the iteration, from 1.
        iteration: u32,
        /// The prompt; every later one continues the one before.
        prompt: Prompt,
    },
    /// Runs the checks on a command.
    Inspect {
        /// The command.
        cmd: String,
        /// The probability that it is right.
        confidence: f64,
    },
    /// Asks the model in its other [`View`], and fixes and inspects its command.
    AskOtherView {
        /// The prompt of that view.
        prompt: Prompt,
    },
    /// Samples other commands, and chooses among them and those found so far.
    Sample {
        /// The best command so far, then that of the other view; empty if all commands of the model are rejected.
        found: Vec<ScoredDraft>,
        /// The prompt to sample from.
        prompt: Prompt,
        /// The number of commands to sample.
        count: u32,
    },
    /// The end.
    Done(Outcome),
}

/// A draft with its likelihood ([`confidence::likelihood`]).
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredDraft {
    /// The command.
    pub draft: Draft,
    /// The probability with which the model writes it.
    pub likelihood: f64,
}

/// The model's answer in its other [`View`].
#[derive(Debug, Clone, PartialEq)]
pub enum SecondAnswer {
    /// A command.
    Command(ScoredDraft),
    /// A refusal, as the request is no task for a shell, with the model's confidence in it.
    Refused(f64),
    /// Nothing that could be a command.
    Nothing,
}

/// The result of sampling others.
#[derive(Debug, Clone, PartialEq)]
pub enum Chosen {
    /// The chosen draft and the reason.
    Draft(Draft, String),
    /// Most samples say that the request is no task for a shell.
    Refused,
    /// There is no command to choose.
    Nothing,
}

/// The outcome of the loop.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A command.
    Command {
        /// The best draft.
        draft: Draft,
        /// The changes of later iterations; empty if there are none.
        changes: String,
    },
    /// The model says that the request is no task for a shell.
    Refused,
    /// The model wrote nothing that could be a command.
    Nothing,
    /// The timeout passed, or the request was cancelled, before there was a command.
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
    /// The number of commands to choose from where the model is unsure.
    candidates: u32,
    sampled: bool,
    /// The other view, until the model was asked in it.
    other: Option<View>,
    /// The question of one word as an order, with its prompt, until the model was asked so.
    order: Option<(String, Prompt)>,
    /// The confidence of the first view's refusal, if it refused.
    refused: Option<f64>,
    /// False for a model that reports no probabilities, so that its confidence is not known.
    measured: bool,
    /// The system that the command is for.
    target: Target,
    dialect: Dialect,
    /// The number of iterations begun. All mechanical fixes together count as the second one.
    pub iterations: u32,
    /// The number of times that the model was asked in iterations.
    model_calls: u32,
    /// True if the model's reply was cut off at the token limit.
    truncated: bool,
    /// The number of fixes tried, at most [`MAX_FIXES`].
    fixes_tried: u32,
    prompt: Prompt,
    #[serde(skip)]
    best: Option<Draft>,
    /// The command of the view that was less sure.
    #[serde(skip)]
    beside: Option<ScoredDraft>,
    /// The likelihood of the model's last command, without mechanical fixes.
    likelihood: f64,
    changes: String,
    /// True while the command that is inspected is a fix.
    is_fixing: bool,
    /// The fixes tried.
    tried: Vec<String>,
}

impl RefineLoop {
    /// Creates the state of a request.
    pub fn new(ask: &CommandRequest) -> Self {
        let prompt =
            |request: &str| prompt::first(request, ask.target, ask.dialect, ask.view, ask.few_shot, &ask.before);
        // standard input or an earlier command may be what the word is about
        let stands_alone = ask.before.input.is_none() && ask.before.said.is_empty() && ask.refine != Refine::Never;
        let order = if stands_alone { one_word::as_order(&ask.request) } else { None };
        Self {
            candidates: ask.candidates,
            sampled: false,
            other: (ask.view == View::Adapted && ask.candidates >= 2 && ask.refine != Refine::Never)
                .then_some(View::Examples),
            order: order.map(|order| (order.clone(), prompt(&order))),
            refused: None,
            measured: false,
            prompt: prompt(&ask.request),
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
            fixes_tried: 0,
            best: None,
            beside: None,
            likelihood: 0.0,
            changes: String::new(),
            is_fixing: false,
            tried: Vec::new(),
        }
    }

    /// Returns the first step.
    pub fn begin(&mut self) -> Step {
        (self.iterations, self.model_calls) = (1, 1);
        Step::AskModel { iteration: 1, prompt: self.prompt.clone() }
    }

    /// Takes the model's reply and returns the next step. `time_left` is false once half of the budget is spent.
    pub fn on_reply(&mut self, completion: &Completion, confidence: f64, time_left: bool) -> Step {
        if completion.finish == Finish::Cancelled {
            // a reply that was cut off is no command, so an earlier command stays
            return if self.has_answer() { self.finish(Outcome::Nothing) } else { Step::Done(Outcome::Stopped) };
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
            // a request for which the user's own documents have a command is a task, even if the model refuses
            Reply::Refused => match (self.before.known.first(), self.order.take()) {
                (Some(known), _) if self.best.is_none() => {
                    Step::Inspect { cmd: known.command.clone(), confidence: SAMPLE_BELOW }
                }
                (_, Some(order)) if self.best.is_none() && time_left => self.ask_for(order),
                _ if self.best.is_none() && confidence < SECOND_VIEW_BELOW => {
                    self.refused = Some(confidence);
                    self.ask_other_view(time_left).unwrap_or_else(|| self.finish(Outcome::Refused))
                }
                _ => self.finish(Outcome::Refused),
            },
            Reply::Nothing => self.settle(time_left),
        }
    }

    /// Asks the model for an order in place of the request. Further prompts are about the order as well.
    fn ask_for(&mut self, (order, prompt): (String, Prompt)) -> Step {
        (self.request, self.prompt) = (order, prompt);
        Step::AskModel { iteration: 1, prompt: self.prompt.clone() }
    }

    /// Takes an inspected draft and returns the next step. `time_left` is false once half of the budget is spent.
    pub fn on_inspected(&mut self, draft: Draft, time_left: bool) -> Step {
        match self.best.take() {
            // the confidence of a chosen sample is of another kind than that of a single reply, so it is not compared
            Some(before) if is_better(&draft, &before, self.is_fixing || self.sampled) => {
                self.note_change(&describe(&before, &draft));
                self.best = Some(draft);
            }
            Some(before) => {
                let next = if self.is_fixing { self.next_fix(&draft, &before) } else { None };
                self.best = Some(before);
                if let Some(cmd) = next {
                    return self.fix(cmd);
                }
                // the model's second command is not better, and asking again would only repeat it
                if !self.is_fixing {
                    return self.settle(time_left);
                }
            }
            None => self.best = Some(draft),
        }
        self.is_fixing = false;
        self.refine_best(time_left)
    }

    /// Returns the next step from the best command so far.
    fn refine_best(&mut self, time_left: bool) -> Step {
        let Some(best) = self.best.clone() else { return self.settle(time_left) };
        if self.max_iterations == 1 || refine_reason(self.refine, &best).is_none() {
            return self.settle(time_left);
        }
        // a finding that carries its fix needs neither the model nor time
        let known = best.findings.iter().filter_map(|f| f.fix.clone()).find(|fix| self.is_new(fix));
        if let Some(cmd) = known
            && self.fixes_tried < MAX_FIXES
        {
            return self.fix(cmd);
        }
        if let Some(step) = self.ask_other_view(time_left) {
            return step;
        }
        // the finding says what this system uses instead; samples would only repeat the other system's command
        let has_system_rule =
            best.findings.iter().any(|f| f.severity > Severity::Hint && rules::is_own(&f.id, self.target));
        if has_system_rule && let Some(step) = self.next_iteration(time_left) {
            return step;
        }
        if time_left && self.measured && self.may_sample() {
            return self.sample();
        }
        self.next_iteration(time_left).unwrap_or_else(|| self.settle(time_left))
    }

    /// Asks the model in its other view, once, if the answer is not clear.
    fn ask_other_view(&mut self, time_left: bool) -> Option<Step> {
        let is_clear = |best: &Draft| {
            let is_clean = best.findings.iter().all(|f| f.severity == Severity::Hint);
            (best.confidence >= SECOND_VIEW_BELOW && is_clean) || self.before.knows(&best.cmd)
        };
        if !time_left || !self.measured || self.best.as_ref().is_some_and(is_clear) {
            return None;
        }
        let view = self.other.take()?;
        let few_shot = FewShot::default();
        Some(Step::AskOtherView {
            prompt: prompt::first(&self.request, self.target, self.dialect, view, few_shot, &self.before),
        })
    }

    /// Takes the model's answer in its other view, given `prompt`, and returns the next step. The surer of the two
    /// answers stays: the views are right about equally often, on different requests. `time_left` is false once half
    /// of the budget is spent.
    pub fn on_second_answer(&mut self, prompt: Prompt, second: SecondAnswer, time_left: bool) -> Step {
        match (self.best.take(), second) {
            (Some(first), SecondAnswer::Command(second)) if first.cmd == second.draft.cmd => {
                self.best = Some(agreed_draft(first));
            }
            (Some(first), SecondAnswer::Command(second)) if is_surer(&second.draft, &first) => {
                self.note_change(&format!("was `{}`: with worked examples the model is surer", first.cmd));
                self.beside = Some(ScoredDraft { draft: first, likelihood: self.likelihood });
                (self.best, self.likelihood, self.prompt) = (Some(second.draft), second.likelihood, prompt);
            }
            (Some(first), SecondAnswer::Command(second)) => (self.best, self.beside) = (Some(first), Some(second)),
            (Some(first), SecondAnswer::Refused(sure)) if sure > first.confidence => {
                return self.finish(Outcome::Refused);
            }
            (None, SecondAnswer::Command(second)) if self.refused.is_none_or(|sure| second.draft.confidence > sure) => {
                (self.best, self.likelihood, self.prompt) = (Some(second.draft), second.likelihood, prompt);
            }
            (None, SecondAnswer::Refused(_)) => return self.finish(Outcome::Refused),
            (first, _) => self.best = first,
        }
        if self.best.is_none() && self.refused.is_some() {
            return self.finish(Outcome::Refused);
        }
        self.refine_best(time_left)
    }

    /// Adds a change to those that the answer reports.
    fn note_change(&mut self, what: &str) {
        if !self.changes.is_empty() {
            self.changes.push_str("; then ");
        }
        self.changes.push_str(what);
    }

    /// Begins the next iteration, if there is a reason for one and time left.
    fn next_iteration(&mut self, time_left: bool) -> Option<Step> {
        let best = self.best.clone().filter(|best| refine_reason(self.refine, best).is_some())?;
        if !time_left || self.model_calls >= self.max_iterations {
            return None;
        }
        self.model_calls += 1;
        self.iterations = self.iterations.max(self.model_calls);
        let next = prompt::next(self.prompt.clone(), &best.cmd, &self.request, &best.findings, &best.manual);
        self.prompt = next.clone();
        Some(Step::AskModel { iteration: self.iterations, prompt: next })
    }

    /// True if there is a command that could be the answer.
    pub fn has_answer(&self) -> bool {
        self.best.as_ref().is_some_and(|best| !is_broken(&best.findings))
    }

    /// True for a fix that was neither tried nor rejected.
    fn is_new(&self, fix: &String) -> bool {
        !self.tried.contains(fix) && !self.rejected.contains(fix)
    }

    /// Has a fixed command inspected, with the confidence of the command that it fixes.
    fn fix(&mut self, cmd: String) -> Step {
        self.iterations = self.iterations.max(2);
        self.fixes_tried += 1;
        self.is_fixing = true;
        self.tried.push(cmd.clone());
        let confidence = self.best.as_ref().map_or(0.0, |best| best.confidence);
        Step::Inspect { cmd, confidence }
    }

    /// Returns the fix of a fault that only shows once another one is fixed: `-r` lets grep read a folder, and then
    /// each match has the name of its file before it.
    fn next_fix(&self, draft: &Draft, before: &Draft) -> Option<String> {
        if self.fixes_tried >= MAX_FIXES || weight(&draft.findings) > weight(&before.findings) {
            return None;
        }
        let is_shown_now = |f: &&Finding| !before.findings.iter().any(|g| g.id == f.id);
        draft.findings.iter().filter(is_shown_now).filter_map(|f| f.fix.clone()).find(|fix| self.is_new(fix))
    }

    /// Takes the result of sampling others and returns the next step. `time_left` is false once half of the budget is
    /// spent.
    pub fn on_choice(&mut self, chosen: Chosen, time_left: bool) -> Step {
        let (draft, why) = match chosen {
            Chosen::Draft(draft, why) => (draft, why),
            Chosen::Refused => {
                self.best = None;
                return self.finish(Outcome::Refused);
            }
            Chosen::Nothing => {
                self.best = None;
                return self.finish(Outcome::Nothing);
            }
        };
        if let Some(before) = self.best.replace(draft)
            && self.best.as_ref().is_some_and(|now| now.cmd != before.cmd)
        {
            self.note_change(&format!("was `{}`: {why}", before.cmd));
        }
        self.next_iteration(time_left).unwrap_or_else(|| self.finish(Outcome::Nothing))
    }

    /// Finishes, unless other commands should be sampled first: there is no usable command, or its confidence is low.
    fn settle(&mut self, time_left: bool) -> Step {
        if let Some(step) = self.ask_other_view(time_left) {
            return step;
        }
        let needs_samples = match &self.best {
            // a command that no shell can parse is no answer, so the budget does not count
            Some(best) if is_broken(&best.findings) => self.measured,
            Some(best) => time_left && best.confidence < SAMPLE_BELOW && self.measured,
            None => self.truncated || !self.rejected.is_empty(),
        };
        if needs_samples && self.may_sample() { self.sample() } else { self.finish(Outcome::Nothing) }
    }

    fn may_sample(&self) -> bool {
        // a command from the user's own documents stands without samples
        let is_documented = self.best.as_ref().is_some_and(|best| self.before.knows(&best.cmd));
        !self.sampled && !is_documented && self.candidates >= 2 && self.refine != Refine::Never
    }

    fn sample(&mut self) -> Step {
        self.sampled = true;
        // the model repeats a command that it is shown, even if the command is said to be wrong
        let mut before = self.before.clone();
        before.said.retain(|said| !self.rejected.contains(&said.command));
        // the base model with examples checks the adapted one
        let (view, few_shot) = (View::Examples, FewShot::Nearest(NEAREST_PAIRS));
        let prompt = prompt::first(&self.request, self.target, self.dialect, view, few_shot, &before);
        let best = self.best.clone().map(|draft| ScoredDraft { draft, likelihood: self.likelihood });
        let found = best.into_iter().chain(self.beside.take()).collect();
        Step::Sample { found, prompt, count: self.candidates - 1 }
    }

    /// Ends with the best draft, if it is a command ([`is_broken`]); without a draft with `otherwise`.
    fn finish(&mut self, otherwise: Outcome) -> Step {
        Step::Done(match self.best.take() {
            Some(draft) if is_broken(&draft.findings) => Outcome::Nothing,
            Some(draft) => Outcome::Command { draft, changes: std::mem::take(&mut self.changes) },
            None => otherwise,
        })
    }
}

/// True if the findings say that the text is no command: it does not parse, or it is prose.
pub(super) fn is_broken(findings: &[Finding]) -> bool {
    findings.iter().any(|f| [syntax::ID, prose::ID].contains(&f.id.as_str()) && f.severity == Severity::Error)
}

/// True if `new`, from the other view, replaces `old`: its findings weigh less, or as much and the model is surer of
/// it. A dangerous command never replaces one that is not.
fn is_surer(new: &Draft, old: &Draft) -> bool {
    if new.risk.level == Level::Danger && old.risk.level < Level::Danger {
        return false;
    }
    let (was, is) = (weight(&old.findings), weight(&new.findings));
    is < was || (is == was && new.confidence > old.confidence)
}

/// Raises the confidence of a draft that both views wrote, if it has no findings.
fn agreed_draft(draft: Draft) -> Draft {
    let is_clean = draft.findings.iter().all(|f| f.severity == Severity::Hint);
    let confidence = if is_clean { draft.confidence.max(AGREED_CONFIDENCE) } else { draft.confidence };
    Draft { confidence, ..draft }
}

/// Returns the reason for another iteration; `None` if the draft is good enough.
pub fn refine_reason(refine: Refine, draft: &Draft) -> Option<String> {
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

/// True if `new` is better than `old`: its findings weigh less, or as much and its confidence is clearly higher,
/// unless it is `mechanical`. A riskier command is never better, but for a rule's own fix of an error with a risk of
/// caution.
pub(super) fn is_better(new: &Draft, old: &Draft, mechanical: bool) -> bool {
    // it is a rule's own fix of an error; the risk is only of a program whose effects are not listed
    let is_fix = |f: &Finding| f.severity == Severity::Error && f.fix.as_deref() == Some(new.cmd.as_str());
    let fixes_error = mechanical && old.findings.iter().any(is_fix);
    if new.risk.level > old.risk.level && !(new.risk.level == Level::Caution && fixes_error) {
        return false;
    }
    let (was, is) = (weight(&old.findings), weight(&new.findings));
    is < was || (is == was && !mechanical && new.confidence >= REFINE_BELOW && new.confidence > old.confidence + 0.1)
}

/// Describes a change and its reason in one line.
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
