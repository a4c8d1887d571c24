//! The loop as a pure state machine: it says what to do next and is told what came of it. No I/O, no clock of its own.
//!
//! ```text
//! Decide (iteration 1) -> Inspect -> clean and sure?  -> Done
//!                                 -> a mechanical fix -> Inspect -> better? keep it
//!                                 -> another system's? Decide (iteration 2, told what is written here instead) -> Inspect
//!                                 -> faulty or unsure? Sample others, the likeliest stays
//!                                 -> still faulty?    Decide (iteration 2, continues the prompt) -> Inspect -> better? keep it
//!                                                                                                                -> Done
//! ```
//!
//! Otherwise others come before the second iteration: a small model that is told what is wrong, and not what is right, mostly
//! writes the same again, and what it is shown of it takes longer to read than four others take to write
//! (`benches/records/2026-11-22-everyday.md`).

use super::answer::{Ask, Before, FewShot, Refine, View};
use super::checks::{in_place, prose, saved, syntax, weight};
use super::reply::{self, Reply};
use super::{confidence, prompt};
use crate::model::{Completion, Finish, Prompt};
use crate::shell::rules;
use crate::shell::safety::{Level, Risk};
use crate::shell::{Dialect, Finding, Severity, Target};

/// The most mechanical fixes tried on one request; each costs well under a millisecond.
const MENDS: u32 = 6;
/// Below this confidence a second iteration runs (the specification's figure).
pub const SURE: f64 = 0.8;

/// Below this confidence other commands are sampled. Above it sampling takes its time and mends next to nothing
/// (`benches/records/2026-11-25-length.md`).
pub const DOUBT: f64 = 0.667;

/// Below this confidence the answer is most likely wrong, and twice as long is waited for a better one: of 85 such answers 15 were
/// right, and 30 of those that were chosen in their place (`benches/records/2026-11-25-length.md`).
pub const LOST: f64 = 0.3;

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
    /// Ask the model.
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
    /// Sample other commands for the first prompt, and choose among them and this one.
    Sample {
        /// The best command so far; `None` if all that the model wrote is spent.
        best: Option<Draft>,
        /// How likely the model was to write it ([`confidence::likelihood`]).
        likelihood: f64,
        /// The prompt.
        prompt: Prompt,
        /// How many others.
        count: u32,
    },
    /// The end.
    Done(Outcome),
}

/// What came of sampling others.
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
pub struct Turn {
    request: String,
    before: Before,
    /// Commands that are not the answer.
    spent: Vec<String>,
    refine: Refine,
    max_iterations: u32,
    /// How many commands to choose from where the model is unsure.
    candidates: u32,
    sampled: bool,
    /// False for a model that tells no probabilities: of its confidence nothing is known.
    measured: bool,
    /// What it is written for.
    target: Target,
    dialect: Dialect,
    /// Iterations that have begun. Mechanical fixes, however many, are the second one until the model is asked again.
    pub iterations: u32,
    /// How often the model was asked.
    asked: u32,
    /// True if it wrote without coming to an end.
    lost: bool,
    /// Fixes tried: no more than [`MENDS`].
    mends: u32,
    prompt: Prompt,
    #[serde(skip)]
    best: Option<Draft>,
    /// How likely the model was to write its last command, a mechanical fix left aside.
    likelihood: f64,
    changes: String,
    mending: bool,
    /// The fixes tried.
    tried: Vec<String>,
}

impl Turn {
    /// A request before anything was done about it.
    pub fn new(ask: &Ask) -> Self {
        Self {
            candidates: ask.candidates,
            sampled: false,
            measured: false,
            prompt: prompt::first(&ask.request, ask.target, ask.dialect, ask.view, ask.few_shot, &ask.before),
            target: ask.target,
            dialect: ask.dialect,
            request: ask.request.clone(),
            before: ask.before.clone(),
            spent: ask.spent.clone(),
            refine: ask.refine,
            max_iterations: ask.max_iterations.clamp(1, 3),
            iterations: 0,
            asked: 0,
            lost: false,
            mends: 0,
            best: None,
            likelihood: 0.0,
            changes: String::new(),
            mending: false,
            tried: Vec::new(),
        }
    }

    /// The first step.
    pub fn begin(&mut self) -> Step {
        (self.iterations, self.asked) = (1, 1);
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
                self.lost = true;
                self.settle(time_left)
            }
            Reply::Command(cmd) if self.spent.contains(&cmd) || self.best.as_ref().is_some_and(|b| b.cmd == cmd) => {
                self.settle(time_left)
            }
            Reply::Command(cmd) => Step::Inspect { cmd, confidence },
            // what the person's own documents have for it is a task, whatever the model takes it for
            Reply::Refused => match self.before.known.first() {
                Some(known) if self.best.is_none() => Step::Inspect { cmd: known.command.clone(), confidence: DOUBT },
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
                    return self.mend(cmd);
                }
                // what was tried is not better, and trying again would only repeat it
                if !self.mending {
                    return self.settle(time_left);
                }
            }
            None => self.best = Some(draft),
        }
        self.mending = false;
        let Some(best) = self.best.clone() else { return self.settle(time_left) };
        if self.max_iterations == 1 || reason(self.refine, &best).is_none() {
            return self.settle(time_left);
        }
        // a rule that knows the mended command needs no model, and no time
        let known = best.findings.iter().filter_map(|f| f.fix.clone()).find(|fix| self.is_new(fix));
        if let Some(cmd) = known.filter(|_| self.mends < MENDS) {
            return self.mend(cmd);
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
        if !time_left || self.asked >= self.max_iterations {
            return None;
        }
        self.asked += 1;
        self.iterations = self.iterations.max(self.asked);
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
        !self.tried.contains(fix) && !self.spent.contains(fix)
    }

    fn mend(&mut self, cmd: String) -> Step {
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

    /// Ends, unless the command is doubtful, or spent, and there is time to look at others.
    fn settle(&mut self, time_left: bool) -> Step {
        let is_open = match &self.best {
            // what no shell can parse is no answer, and whoever has none waits for one
            Some(best) if is_broken(&best.findings) => self.measured,
            Some(best) => time_left && best.confidence < DOUBT && self.measured,
            // without one there is no answer at all
            None => self.lost || !self.spent.is_empty(),
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
        before.said.retain(|said| !self.spent.contains(&said.command));
        // who has the adapter is doubted by who has the examples
        let (view, few_shot) = (View::Examples, FewShot::Nearest(NEAREST));
        let prompt = prompt::first(&self.request, self.target, self.dialect, view, few_shot, &before);
        Step::Sample { best: self.best.clone(), likelihood: self.likelihood, prompt, count: self.candidates - 1 }
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

/// Why a draft deserves another iteration; `None` if it is good enough.
pub fn reason(refine: Refine, draft: &Draft) -> Option<String> {
    let found = draft.findings.iter().find(|f| f.severity > Severity::Hint);
    match (refine, found) {
        (Refine::Never, _) => None,
        (_, Some(f)) => Some(format!("{}: `{}`", f.id, f.token)),
        (Refine::Always, None) if draft.confidence < SURE => {
            Some(format!("confidence {:.2} < {SURE}", draft.confidence))
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
    is < was || (is == was && !mechanical && new.confidence >= SURE && new.confidence > old.confidence + 0.1)
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
mod tests {
    use super::*;
    use crate::command::documents::Known;
    use crate::model::{Cancel, Token, Usage};
    use crate::shell::{Dialect, Target};
    use std::time::Duration;

    fn ask(refine: Refine) -> Ask {
        Ask {
            request: "list files".into(),
            cwd: "/".into(),
            target: Target::ALL[0].1,
            dialect: Dialect::Bash,
            refine,
            max_iterations: 2,
            timeout: Duration::from_secs(5),
            alternatives: 1,
            few_shot: FewShot::Nearest(0),
            candidates: 1,
            rehearse: true,
            view: View::Examples,
            budget: Duration::from_secs(5),
            before: Before::default(),
            spent: vec![],
            cancel: Cancel::new(),
        }
    }

    fn said(text: &str, finish: Finish) -> Completion {
        let token = Token { bytes: text.into(), logprob: Some(-0.1), runner_up: None };
        Completion { text: text.into(), tokens: vec![token], end: None, finish, usage: Usage::default() }
    }

    fn draft(cmd: &str, confidence: f64, findings: Vec<Finding>) -> Draft {
        Draft { cmd: cmd.into(), confidence, findings, ..Draft::none() }
    }

    fn error(token: &str, fix: Option<&str>) -> Finding {
        Finding {
            id: "unknown-flag".into(),
            severity: Severity::Error,
            token: token.into(),
            span: None,
            why: "no such option".into(),
            evidence: Vec::new(),
            fix: fix.map(String::from),
        }
    }

    fn command(step: Step) -> (String, String) {
        match step {
            Step::Done(Outcome::Command { draft, changes }) => (draft.cmd, changes),
            other => panic!("no command: {other:?}"),
        }
    }

    #[test]
    fn a_clean_command_needs_one_iteration() {
        let mut t = Turn::new(&ask(Refine::Evidence));
        assert!(matches!(t.begin(), Step::Decide { iteration: 1, .. }));
        let Step::Inspect { cmd, .. } = t.decided(&said("ls", Finish::Stop), 0.95, true) else { panic!() };
        assert_eq!(command(t.inspected(draft(&cmd, 0.95, vec![]), true)), ("ls".into(), String::new()));
        assert_eq!(t.iterations, 1);
    }

    #[test]
    fn what_is_asked_to_be_written_may_be_and_nothing_more() {
        let with = |level, id: Option<&str>| {
            let findings = id.map(|id| Finding { id: id.into(), severity: Severity::Warning, ..error("x", None) });
            let risk = Risk { level, reasons: Vec::new() };
            Draft { risk, ..draft("x", 0.9, findings.into_iter().collect()) }
        };
        for id in [saved::ID, in_place::ID] {
            assert!(better(&with(Level::Caution, None), &with(Level::Safe, Some(id)), true));
            assert!(!better(&with(Level::Danger, None), &with(Level::Safe, Some(id)), true));
        }
        assert!(!better(&with(Level::Caution, None), &with(Level::Safe, Some("time-sign")), true));
    }

    #[test]
    fn a_rules_own_command_takes_the_place_of_one_that_cannot_work() {
        let old = |fix| draft("lsmod", 0.9, vec![error("lsmod", fix)]);
        let new =
            |level| Draft { risk: Risk { level, reasons: Vec::new() }, ..draft("kmutil showloaded", 0.9, vec![]) };
        assert!(better(&new(Level::Caution), &old(Some("kmutil showloaded")), true));
        assert!(!better(&new(Level::Caution), &old(Some("kmutil showloaded")), false), "a model's word is none");
        assert!(
            !better(&new(Level::Caution), &old(Some("kmutil")), true)
                && !better(&new(Level::Caution), &old(None), true)
        );
        assert!(!better(&new(Level::Danger), &old(Some("kmutil showloaded")), true));
    }

    #[test]
    fn a_finding_leads_to_a_second_iteration_that_continues_the_first() {
        let mut t = Turn::new(&ask(Refine::Evidence));
        let Step::Decide { prompt: first, .. } = t.begin() else { panic!() };
        t.decided(&said("ls --sise", Finish::Stop), 0.9, true);
        let Step::Decide { iteration: 2, prompt } =
            t.inspected(draft("ls --sise", 0.9, vec![error("--sise", None)]), true)
        else {
            panic!()
        };
        assert_eq!(prompt.turns[..first.turns.len()], first.turns[..]);
        t.decided(&said("ls --size", Finish::Stop), 0.9, true);
        let (cmd, changes) = command(t.inspected(draft("ls --size", 0.9, vec![]), true));
        assert_eq!(cmd, "ls --size");
        assert!(changes.contains("ls --sise") && changes.contains("no such option"), "{changes}");
    }

    #[test]
    fn a_worse_or_riskier_second_command_is_not_taken() {
        for (second, level) in [(vec![error("a", None), error("b", None)], Level::Safe), (vec![], Level::Danger)] {
            let mut t = Turn::new(&ask(Refine::Evidence));
            t.begin();
            t.decided(&said("one", Finish::Stop), 0.9, true);
            t.inspected(draft("one", 0.9, vec![error("a", None)]), true);
            t.decided(&said("two", Finish::Stop), 0.9, true);
            let mut two = draft("two", 0.9, second);
            two.risk.level = level;
            assert_eq!(command(t.inspected(two, true)), ("one".into(), String::new()));
        }
    }

    #[test]
    fn never_and_no_time_left_stop_at_one() {
        for (refine, time_left) in [(Refine::Never, true), (Refine::Evidence, false)] {
            let mut t = Turn::new(&ask(refine));
            t.begin();
            t.decided(&said("ls --sise", Finish::Stop), 0.1, true);
            let step = t.inspected(draft("ls --sise", 0.1, vec![error("--sise", None)]), time_left);
            assert_eq!(command(step).0, "ls --sise");
        }
    }

    #[test]
    fn a_known_fix_needs_neither_model_nor_time() {
        let mut t = Turn::new(&ask(Refine::Evidence));
        t.begin();
        t.decided(&said("head -5", Finish::Stop), 0.9, true);
        let step = t.inspected(draft("head -5", 0.9, vec![error("-5", Some("head -6"))]), false);
        assert_eq!(step, Step::Inspect { cmd: "head -6".into(), confidence: 0.9 });
        assert_eq!(command(t.inspected(draft("head -6", 0.9, vec![]), true)).0, "head -6");
    }

    #[test]
    fn several_faults_are_mended_one_after_the_other_and_a_useless_fix_is_tried_once() {
        let mut t = Turn::new(&ask(Refine::Evidence));
        t.begin();
        t.decided(&said("a b", Finish::Stop), 0.9, true);
        let two = vec![error("a", Some("A b")), error("b", Some("a B"))];
        assert!(
            matches!(t.inspected(draft("a b", 0.9, two.clone()), false), Step::Inspect { cmd, .. } if cmd == "A b")
        );
        // the first fix does not help, so the second is tried on the same command
        assert!(matches!(t.inspected(draft("A b", 0.9, two), false), Step::Inspect { cmd, .. } if cmd == "a B"));
        let one = vec![error("a", Some("A B"))];
        assert!(matches!(t.inspected(draft("a B", 0.9, one), false), Step::Inspect { cmd, .. } if cmd == "A B"));
        let (cmd, changes) = command(t.inspected(draft("A B", 0.9, vec![]), false));
        assert_eq!((cmd.as_str(), t.iterations), ("A B", 2));
        assert!(changes.contains("was `a b`") && changes.contains("then was `a B`"), "{changes}");
    }

    #[test]
    fn a_fault_that_shows_once_another_is_mended_is_mended_too() {
        let of = |id: &str, fix| Finding { id: id.into(), ..error("x", fix) };
        let mut t = Turn::new(&ask(Refine::Evidence));
        t.begin();
        t.decided(&said("a", Finish::Stop), 0.9, true);
        t.inspected(draft("a", 0.9, vec![of("one", Some("b"))]), false);
        let shown = t.inspected(draft("b", 0.9, vec![of("two", Some("c"))]), false);
        assert!(matches!(shown, Step::Inspect { cmd, .. } if cmd == "c"));
        assert_eq!(command(t.inspected(draft("c", 0.9, vec![]), false)).0, "c");

        // one that brings more than it takes away is not gone on with
        t = Turn::new(&ask(Refine::Evidence));
        t.begin();
        t.decided(&said("a", Finish::Stop), 0.9, true);
        t.inspected(draft("a", 0.9, vec![of("one", Some("b"))]), false);
        let worse = vec![of("two", Some("c")), of("three", None)];
        assert_eq!(command(t.inspected(draft("b", 0.9, worse), false)).0, "a");
    }

    #[test]
    fn refusals_cuts_and_silence_have_no_command() {
        for (text, finish, want) in [
            (reply::REFUSAL, Finish::Stop, Outcome::Refused),
            ("ls -", Finish::Cancelled, Outcome::Stopped),
            ("", Finish::Stop, Outcome::Nothing),
            ("find . -name '*.", Finish::Length, Outcome::Nothing),
        ] {
            let mut t = Turn::new(&ask(Refine::Evidence));
            t.begin();
            assert_eq!(t.decided(&said(text, finish), 0.9, true), Step::Done(want), "{text:?}");
        }
    }

    #[test]
    fn what_documents_have_a_command_for_is_not_refused() {
        let known = Known { command: "farmctl cycle".into(), ..Known::default() };
        let before = Before { known: vec![known], ..Before::default() };
        let mut t = Turn::new(&Ask { before, candidates: 5, ..ask(Refine::Evidence) });
        t.begin();
        let step = t.decided(&said(reply::REFUSAL, Finish::Stop), 0.9, true);
        assert_eq!(step, Step::Inspect { cmd: "farmctl cycle".into(), confidence: DOUBT });
        let Step::Done(Outcome::Command { draft, .. }) = t.inspected(draft("farmctl cycle", DOUBT, vec![]), true)
        else {
            panic!("it is what was written down, and nothing else is looked for");
        };
        assert_eq!(draft.cmd, "farmctl cycle");
    }

    #[test]
    fn what_does_not_parse_is_no_command() {
        let mut t = Turn::new(&ask(Refine::Never));
        t.begin();
        t.decided(&said("You're welcome!", Finish::Stop), 0.9, true);
        let torn = Finding { id: syntax::ID.into(), ..error("'re", None) };
        assert_eq!(t.inspected(draft("You're welcome!", 0.9, vec![torn]), true), Step::Done(Outcome::Nothing));
    }

    #[test]
    fn for_want_of_an_answer_others_are_waited_for() {
        let torn = || Finding { id: syntax::ID.into(), ..error("'", None) };
        let mut t = Turn::new(&Ask { candidates: 5, ..ask(Refine::Evidence) });
        t.begin();
        t.decided(&said("find 'x", Finish::Stop), 0.1, true);
        // though the time for a better one is over
        let step = t.inspected(draft("find 'x", 0.1, vec![torn()]), false);
        assert!(matches!(step, Step::Sample { count: 4, .. }), "{step:?}");
        let chosen = Chosen::Draft(draft("find x", 0.4, vec![]), "it parses".into());
        assert_eq!(command(t.chosen(chosen, false)).0, "find x");
    }

    #[test]
    fn a_second_answer_that_fails_keeps_the_first() {
        for (text, finish) in [("", Finish::Stop), (reply::REFUSAL, Finish::Stop), ("x", Finish::Cancelled)] {
            let mut t = Turn::new(&ask(Refine::Evidence));
            t.begin();
            t.decided(&said("one", Finish::Stop), 0.9, true);
            t.inspected(draft("one", 0.9, vec![error("a", None)]), true);
            assert_eq!(command(t.decided(&said(text, finish), 0.9, true)).0, "one");
        }
    }

    #[test]
    fn a_doubtful_command_is_held_against_others_once() {
        let ask = Ask { candidates: 5, ..ask(Refine::Evidence) };
        for (confidence, time_left, refine, sampled) in [
            (0.3, true, Refine::Evidence, true),
            (0.9, true, Refine::Evidence, false),
            (0.3, false, Refine::Evidence, false),
            (0.3, true, Refine::Never, false),
        ] {
            let mut t = Turn::new(&Ask { refine, ..ask.clone() });
            t.begin();
            t.decided(&said("one", Finish::Stop), confidence, true);
            let step = t.inspected(draft("one", confidence, vec![]), time_left);
            if !sampled {
                assert_eq!(command(step).0, "one");
                continue;
            }
            let Step::Sample { best, prompt, count: 4, .. } = step else { panic!("{step:?}") };
            let (view, few_shot) = (View::Examples, FewShot::Nearest(NEAREST));
            let shown = prompt::first(&ask.request, ask.target, ask.dialect, view, few_shot, &Before::default());
            assert_eq!((best.unwrap().cmd.as_str(), prompt), ("one", shown));
            let two = Chosen::Draft(draft("two", 0.5, vec![]), "three of five do this".into());
            let (cmd, changes) = command(t.chosen(two, true));
            assert_eq!((cmd.as_str(), changes.as_str()), ("two", "was `one`: three of five do this"));
        }
    }

    #[test]
    fn a_faulty_command_is_held_against_others_and_then_reconsidered() {
        let faulty = |cmd: &str| draft(cmd, 0.9, vec![error("a", None)]);
        for (chosen, time_left, again) in
            [(faulty("one"), true, true), (faulty("one"), false, false), (draft("two", 0.5, vec![]), true, false)]
        {
            let mut t = Turn::new(&Ask { candidates: 5, ..ask(Refine::Evidence) });
            t.begin();
            t.decided(&said("one", Finish::Stop), 0.9, true);
            let Step::Sample { best, likelihood, .. } = t.inspected(faulty("one"), true) else { panic!("{chosen:?}") };
            assert_eq!(best.unwrap().cmd, "one");
            assert!((likelihood - (-0.1_f64).exp()).abs() < 1e-6, "{likelihood}");
            let cmd = chosen.cmd.clone();
            let step = t.chosen(Chosen::Draft(chosen, "likelier".into()), time_left);
            if !again {
                assert_eq!(command(step).0, cmd);
                continue;
            }
            assert!(matches!(step, Step::Decide { iteration: 2, .. }), "{step:?}");
            t.decided(&said("three", Finish::Stop), 0.3, true);
            assert_eq!(command(t.inspected(draft("three", 0.3, vec![]), true)).0, "three", "others come once");
        }
        // a model without probabilities cannot choose
        let mut t = Turn::new(&Ask { candidates: 5, ..ask(Refine::Evidence) });
        t.begin();
        t.decided(&Completion { tokens: vec![], ..said("one", Finish::Stop) }, 0.9, true);
        assert!(matches!(t.inspected(faulty("one"), true), Step::Decide { iteration: 2, .. }));
    }

    #[test]
    fn what_a_rule_of_the_system_says_is_told_before_others_are_sampled() {
        let foreign = Finding { id: "macos-watch".into(), severity: Severity::Warning, ..error("watch", None) };
        let macos = Target::ALL.iter().find(|(name, _)| *name == "macos-bsd").unwrap().1;
        for (target, is_told) in [(macos, true), (Target::ALL[0].1, false)] {
            let mut t = Turn::new(&Ask { candidates: 5, target, ..ask(Refine::Evidence) });
            t.begin();
            t.decided(&said("watch ls", Finish::Stop), 0.9, true);
            let step = t.inspected(draft("watch ls", 0.9, vec![foreign.clone()]), true);
            assert_eq!(matches!(step, Step::Decide { iteration: 2, .. }), is_told, "{step:?}");
        }
    }

    #[test]
    fn what_the_persons_documents_have_is_not_put_to_the_vote() {
        let known = Known { command: "farmctl cycle".into(), ..Known::default() };
        let before = Before { known: vec![known], ..Before::default() };
        for (cmd, is_known) in [("farmctl cycle", true), ("farmctl reboot", false)] {
            let mut t = Turn::new(&Ask { candidates: 5, before: before.clone(), ..ask(Refine::Evidence) });
            t.begin();
            t.decided(&said(cmd, Finish::Stop), 0.3, true);
            let step = t.inspected(draft(cmd, 0.3, vec![error("farmctl", None)]), true);
            assert_eq!(!matches!(step, Step::Sample { .. }), is_known, "{step:?}");
        }
    }

    #[test]
    fn a_choice_that_is_the_first_changes_nothing() {
        let mut t = Turn::new(&Ask { candidates: 5, ..ask(Refine::Evidence) });
        t.begin();
        t.decided(&said("one", Finish::Stop), 0.3, true);
        assert!(matches!(t.inspected(draft("one", 0.3, vec![]), true), Step::Sample { .. }));
        assert_eq!(
            command(t.chosen(Chosen::Draft(draft("one", 0.7, vec![]), "all agree".into()), true)),
            ("one".into(), String::new())
        );
    }

    #[test]
    fn a_spent_command_is_no_answer() {
        let spent = |candidates| {
            let mut t = Turn::new(&Ask { candidates, spent: vec!["one".into()], ..ask(Refine::Evidence) });
            t.begin();
            t
        };
        let mut t = spent(5);
        let step = t.decided(&said("one", Finish::Stop), 0.99, true);
        let Step::Sample { best: None, count: 4, .. } = step else { panic!("{step:?}") };
        assert_eq!(t.chosen(Chosen::Nothing, true), Step::Done(Outcome::Nothing));
        assert_eq!(spent(1).decided(&said("one", Finish::Stop), 0.99, true), Step::Done(Outcome::Nothing));
        // nor is what does not end
        let mut t = Turn::new(&Ask { candidates: 5, ..ask(Refine::Evidence) });
        t.begin();
        let step = t.decided(&said("find . -o -o -o", Finish::Length), 0.9, false);
        assert!(matches!(step, Step::Sample { best: None, .. }), "{step:?}");
        // nor is it the mend of another
        let mut t = spent(1);
        t.decided(&said("oen", Finish::Stop), 0.9, true);
        assert!(matches!(t.inspected(draft("oen", 0.9, vec![error("a", Some("one"))]), true), Step::Decide { .. }));
    }
}
