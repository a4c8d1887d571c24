//! The forge: makes a skill that is missing, test first. It writes capabilities and solves no task; an agent's run solves
//! tasks and writes no capability.
//!
//! ```text
//! examples -> tests, seen to fail -> script -> scan -> sandbox -> (mended, at most five) -> watched -> compared -> shelf, or a report
//! ```
//!
//! - `machine`: the order of it, pure. [`examples`]: a request's examples into tests. `prompt`: what the model is asked.
//! - [`language`]: what the model writes, and what the forge adds. `trial`: runs scripts on tests. [`classify`]: why one fails.
//! - [`scan`]: what a script may not do, by rule. `general`: that it knows more than its tests. `mask`: quotes and comments.
//! - [`twin`]: what the examples leave open, shown by a second script that passes.
//! - `quarantine`: where a skill is until it is promoted. [`report`]: what came of it.
//!
//! Against a script that only knows its tests: of three examples or more the last one is not shown to the model; no text of
//! a test may stand in the script; and where a word is carried over from input to output, it is changed and has to come out
//! changed. With one or two examples nothing can be held back, and the report says so.

pub mod classify;
pub mod examples;
mod general;
pub mod language;
mod machine;
mod mask;
mod prompt;
mod quarantine;
pub mod report;
pub mod scan;
mod trial;
pub mod twin;

use super::event::{Actor, Draft, Emitter, Kind, Tokens};
use super::skill::script::{Which, program_of};
use super::skill::{FILE, Skill};
use caro_exec::{self as exec, ExecError};
use caro_inference::{Executor, Next, StateMachine, drive, sample};
use caro_model::{Cancel, Completion, Model, ModelError, Request, Sampling, Shape};
use examples::{Case, Order};
use language::Language;
use machine::{Ask, Complaint, End, Forging, Step};
use quarantine::{Quarantine, SCRIPTS};
use report::{Report, Verdict};
use scan::{Effect, Finding};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use trial::Trial;
use twin::Open;

/// Scripts that are written at most.
pub const MOST: u32 = 5;
/// The most tokens of a script.
const TOKENS: usize = 900;
/// How scripts are written beside the likeliest one, and where one failed: the likeliest again would be the same. So many are
/// begun anew each time, and so many mend the last one; the one that fails the fewest tests that the model sees is taken. A
/// small model seldom mends, and often writes a right one at the third or fifth try (`benches/records/2026-11-28-forge.md`).
const VARIED: Sampling = Sampling { temperature: 0.5, top_p: 0.95, seed: 1 };
const ANEW: usize = 2;
const MENDED: usize = 2;
/// The sampling of the scripts that one which passes is compared with, and their number: far from the likeliest, so that what the
/// examples leave open is understood in more ways than one.
const OTHERWISE: Sampling = Sampling { temperature: 0.8, top_p: 0.95, seed: 9000 };
const TWINS: usize = 4;

/// Why there was no forging at all.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// A skill has that name.
    #[error("there is a skill `{0}` already")]
    Exists(String),
    /// It cannot be a skill's name.
    #[error("`{name}` cannot be the name of a skill: {why}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        why: String,
    },
    /// A script that others wrote is not run here.
    #[error("this system has no sandbox, and a script is never tried without one")]
    NoSandbox,
    /// There is nothing to run scripts with.
    #[error("there is no {0} here to run a script with")]
    NoLanguage(&'static str),
    /// It has no script that can be mended.
    #[error("the skill `{0}` has no script, or more than one, that could be mended")]
    NoScript(String),
    /// It was stopped.
    #[error("stopped")]
    Stopped,
    /// The model's own.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A script could not be started.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The quarantine cannot be written.
    #[error("the folder of skills cannot be written: {0}")]
    Disk(#[from] std::io::Error),
}

impl ForgeError {
    /// The next step for a person.
    pub fn hint(&self) -> String {
        match self {
            Self::Exists(name) => format!("`caro forge --fix {name}` mends it; --name takes another name"),
            Self::Name { .. } => "give one with --name: a-z, 0-9 and -, for example --name unit-converter".into(),
            Self::NoSandbox => "Linux with Landlock and seccomp, or macOS, has one".into(),
            Self::NoLanguage(_) => "install python3, or awk and sh, or choose another with --language".into(),
            Self::NoScript(name) => format!("`caro skills show {name}` shows what it has"),
            Self::Stopped => "nothing was put on the shelf; start again".into(),
            Self::Model(error) => error.hint().to_string(),
            Self::Exec(error) => error.hint().into(),
            Self::Disk(_) => "make room, or check who may write there".into(),
        }
    }
}

/// An order to the forge.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The request and its tests.
    pub order: Order,
    /// The skill's name.
    pub name: String,
    /// The language; the first that is here without one.
    pub language: Option<Language>,
    /// The effects that the script may have beside computing.
    pub allowed: BTreeSet<Effect>,
    /// The skill that is mended; a new one is made without.
    pub fix: Option<Arc<Skill>>,
}

/// All that a forging stands on.
#[derive(Clone)]
pub struct Forge {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Where events go.
    pub emitter: Arc<Emitter>,
    /// Finds programs.
    pub which: Which,
    /// Stops it.
    pub cancel: Cancel,
    /// The folder that skills are in.
    pub place: PathBuf,
}

/// The old version of a skill that is mended.
struct Old {
    skill: Arc<Skill>,
    /// The script, below the skill's folder.
    script: String,
    /// The part of it that is written anew.
    code: String,
    /// True if the rest of it is the forge's own.
    is_forged: bool,
}

/// One forging under way.
struct Work<'a> {
    forge: &'a Forge,
    wanted: &'a Wanted,
    language: Language,
    program: Vec<std::ffi::OsString>,
    quarantine: Quarantine,
    old: Option<Old>,
    notes: Vec<String>,
    /// Scripts that were written, to be compared with the one that passes.
    written: Vec<String>,
}

impl StateMachine for Forging {
    type Need = Step;
    type End = End;

    fn next_step(&mut self) -> Next<Step, End> {
        match self.next() {
            Step::Done(end) => Next::End((**end).clone()),
            step => Next::Need(step.clone()),
        }
    }
}

impl Executor<Forging> for Work<'_> {
    type Error = ForgeError;

    fn between(&mut self, _: &mut Forging) -> ControlFlow<End> {
        ControlFlow::Continue(())
    }

    async fn execute(&mut self, forging: &mut Forging, step: Step) -> Result<(), ForgeError> {
        if self.forge.cancel.is_cancelled() {
            return Err(ForgeError::Stopped);
        }
        match step {
            Step::Red => {
                let red = self.red().await?;
                forging.tested(red);
            }
            Step::Write(ask) => {
                let code = self.write(&ask, forging).await?;
                forging.written(code);
            }
            Step::Check(code) => {
                let findings = self.check(&code);
                forging.checked(code, findings);
            }
            Step::Run(code) => {
                let failures = self.trial(&code)?.failures(&self.wanted.order.cases).await?;
                let failing: Vec<usize> = failures.iter().map(|f| f.case + 1).collect();
                let first = failures.first().map(|f| json!({"class": f.class, "error": f.error}));
                let phase = if failing.is_empty() { "green" } else { "run" };
                self.tested(phase, &failing, forging.iterations(), first);
                forging.ran(code, failures);
            }
            Step::Probe(code) => {
                let findings = self.probe(&code).await?;
                forging.probed(code, findings);
            }
            Step::Compare(code) => {
                let open = self.compare(&code).await?;
                forging.compared(code, open);
            }
            Step::Done(_) => {}
        }
        Ok(())
    }
}

impl Forge {
    /// Makes a skill, or mends one. Needs a Tokio runtime with time and IO enabled.
    ///
    /// # Errors
    /// See [`ForgeError`]. A skill that cannot be made is no error: the report says why.
    pub async fn forge(&self, wanted: &Wanted) -> Result<(Report, Vec<Case>), ForgeError> {
        let mut work = self.begin(wanted)?;
        let mut forging = Forging::new(MOST);
        let end = drive(&mut forging, &mut work).await?;
        let report = work.end(end, forging.iterations())?;
        self.emitter.emit(
            Draft::new(Kind::ForgeVerdict)
                .output(report.line())
                .metadata(json!({"skill": report.name, "verdict": report.verdict, "iterations": report.iterations,
                    "findings": report.findings, "folder": report.folder})),
        );
        Ok((report, wanted.order.cases.clone()))
    }

    fn begin<'a>(&'a self, wanted: &'a Wanted) -> Result<Work<'a>, ForgeError> {
        let name = &wanted.name;
        super::skill::front::is_name(name).map_err(|why| ForgeError::Name { name: name.clone(), why })?;
        if !exec::support().holds_to_reading() {
            return Err(ForgeError::NoSandbox);
        }
        if wanted.fix.is_none() && self.place.join(name).exists() {
            return Err(ForgeError::Exists(name.clone()));
        }
        let old = wanted.fix.as_ref().map(old).transpose()?;
        let find = |program: &str| (self.which)(program);
        let language = match &old {
            Some(old) => Language::of_file(&old.script),
            None => wanted.language.or_else(|| Language::here(&find)),
        };
        let language = language.ok_or(ForgeError::NoLanguage("python3, awk or sh"))?;
        if !language.is_here(&find) {
            return Err(ForgeError::NoLanguage(language.name()));
        }
        let extension = match language {
            Language::Python => "py",
            Language::Sh | Language::Awk => "sh",
            Language::JavaScript => "js",
        };
        let program = program_of(extension, &self.which).ok_or(ForgeError::NoLanguage(language.name()))?;
        let quarantine = Quarantine::open(&self.place, name)?;
        if let Some(old) = &old {
            quarantine.copy(&old.skill.folder, &old.skill.files(usize::MAX))?;
            quarantine.copy(&old.skill.folder, &[FILE.to_owned()])?;
        }
        quarantine.write_tests(&wanted.order.cases)?;
        let held = wanted.order.cases.iter().any(|case| case.is_held);
        let mut notes = Vec::new();
        if !held {
            notes.push("with fewer than three examples none is held back from the model".to_owned());
        }
        Ok(Work { forge: self, wanted, language, program, quarantine, old, notes, written: Vec::new() })
    }
}

/// The one script of a skill, and what of it is the forge's.
fn old(skill: &Arc<Skill>) -> Result<Old, ForgeError> {
    let none = || ForgeError::NoScript(skill.front.name.clone());
    let mut scripts: Vec<String> = super::skill::script::scripts(skill);
    scripts.retain(|script| Language::of_file(script).is_some_and(|l| l != Language::Awk));
    let [script] = scripts.as_slice() else { return Err(none()) };
    let script = format!("{SCRIPTS}/{script}");
    let file = skill.file(&script).ok_or_else(none)?;
    let text = caro_base::files::read_text(&file, super::skill::LARGEST)?;
    let own = language::own_part(&text);
    let code = own.unwrap_or(&text).to_owned();
    Ok(Old { skill: skill.clone(), script, code, is_forged: own.is_some() })
}

impl Work<'_> {
    /// Writes the code down in quarantine, ready to be run.
    fn trial(&self, code: &str) -> Result<Trial, ForgeError> {
        let files = match &self.old {
            Some(old) if !old.is_forged => vec![(old.script.clone(), format!("{}\n", code.trim_end()))],
            _ => {
                let files = self.language.files(code).into_iter();
                files.map(|(name, text)| (format!("{SCRIPTS}/{name}"), text)).collect()
            }
        };
        let mut script = None;
        for (name, text) in &files {
            let file = self.quarantine.write(name, text)?;
            script.get_or_insert(file);
        }
        let script = script.ok_or(ForgeError::Stopped)?;
        let is_forged = self.old.as_ref().is_none_or(|old| old.is_forged);
        Ok(Trial { program: self.program.clone(), script, is_forged })
    }

    /// Runs the tests before there is a script: against one that does nothing and one that gives its input back; of a skill
    /// that is mended, against what it has. True if one test fails as it should.
    async fn red(&mut self) -> Result<bool, ForgeError> {
        let cases: Vec<Case> = self.wanted.order.cases.iter().map(|c| Case { is_held: false, ..c.clone() }).collect();
        let stubs = match &self.old {
            Some(old) => vec![old.code.clone()],
            None => vec![self.language.stub().to_owned(), self.language.echo().to_owned()],
        };
        let mut failing: Option<BTreeSet<usize>> = None;
        for stub in stubs {
            let failures = self.trial(&stub)?.failures(&cases).await?;
            let these: BTreeSet<usize> = failures.iter().map(|f| f.case + 1).collect();
            failing = Some(match failing {
                Some(before) => before.intersection(&these).copied().collect(),
                None => these,
            });
        }
        let failing: Vec<usize> = failing.unwrap_or_default().into_iter().collect();
        self.tested("red", &failing, 0, None);
        Ok(!failing.is_empty())
    }

    /// Tells of a run of the tests.
    fn tested(&self, phase: &str, failing: &[usize], iteration: u32, first: Option<Value>) {
        let exit = i32::from(!failing.is_empty());
        self.forge.emitter.emit(Draft::new(Kind::ForgeTest).span(span(iteration)).output(first.unwrap_or_default()).metadata(
            json!({"phase": phase, "exit": exit, "failing": failing, "tests": self.wanted.order.cases.len(), "iteration": iteration}),
        ));
    }

    /// Has the model write a script; of several the best.
    async fn write(&mut self, ask: &Ask, forging: &Forging) -> Result<String, ForgeError> {
        let begun = Instant::now();
        let mut best: Option<((usize, bool), String)> = None;
        let mut candidates: Vec<String> = Vec::new();
        let left = if ask.iteration == 1 { self.left().await? } else { None };
        let completions = if left.is_some() { Vec::new() } else { self.asked(ask).await? };
        candidates.extend(left);
        for completion in completions {
            let code = self.code_of(&completion);
            if !candidates.contains(&code) {
                candidates.push(code);
            }
        }
        let written = candidates.len();
        self.written.extend(candidates.iter().cloned());
        for code in candidates {
            let wrong = if written == 1 { (0, false) } else { self.wrong(&code, forging).await? };
            if best.as_ref().is_none_or(|(least, _)| wrong < *least) {
                best = Some((wrong, code));
            }
        }
        let code = best.map(|(_, code)| code).unwrap_or_default();
        self.trial(&code)?;
        self.forge.emitter.emit(
            Draft::new(Kind::ForgeWrite)
                .span(span(ask.iteration))
                .took(begun.elapsed())
                .metadata(json!({"skill": self.wanted.name, "language": self.language, "lines": code.lines().count(),
                "iteration": ask.iteration, "candidates": written})),
        );
        Ok(code)
    }

    /// The script of an earlier forging that differed from another one, if it passes all tests now: what the person said since
    /// has shown that it is the right one. No model was shown those tests for it.
    async fn left(&self) -> Result<Option<String>, ForgeError> {
        let (Some(left), None) = (self.quarantine.other(), &self.old) else { return Ok(None) };
        Ok(self.passes(left).await?.then(|| left.to_owned()))
    }

    /// True if a script has nothing that is forbidden and fails no test, those held back included.
    async fn passes(&self, code: &str) -> Result<bool, ForgeError> {
        Ok(self.findings(code).is_empty() && self.trial(code)?.failures(&self.wanted.order.cases).await?.is_empty())
    }

    /// The script in an answer.
    fn code_of(&self, completion: &Completion) -> String {
        let code = language::code_of(&completion.text);
        let is_whole = self.old.as_ref().is_some_and(|old| !old.is_forged);
        if is_whole || self.language != Language::Python { code } else { language::without_usage(&code) }
    }

    /// How many tests that the model sees a script fails, all and more where it may not be run; and true if it fails as one
    /// before it did.
    async fn wrong(&self, code: &str, forging: &Forging) -> Result<(usize, bool), ForgeError> {
        let shown = |case: &&Case| !case.is_held;
        let findings = self.findings(code);
        if !findings.is_empty() {
            let is_known = !forging.is_new(&Complaint::Findings(findings));
            return Ok((self.wanted.order.cases.len() + 1, is_known));
        }
        let cases: Vec<Case> = self.wanted.order.cases.iter().filter(shown).cloned().collect();
        let failures = self.trial(code)?.failures(&cases).await?;
        Ok((failures.len(), !forging.is_new(&Complaint::Failures(failures))))
    }

    /// Asks the model for scripts: the likeliest one at first, those that mend the last one afterwards, and others that are
    /// begun anew. A skill that is mended has no others: its old script is what is asked about.
    async fn asked(&self, ask: &Ask) -> Result<Vec<Completion>, ForgeError> {
        let seed = u64::from(ask.iteration) * 100;
        let mut all = match ask.iteration {
            1 => self.sampled(ask, Sampling::GREEDY, 1).await?,
            _ => self.sampled(ask, Sampling { seed, ..VARIED }, MENDED).await?,
        };
        if self.old.is_none() {
            let anew = Ask { before: None, ..ask.clone() };
            all.extend(self.sampled(&anew, Sampling { seed: seed + 50, ..VARIED }, ANEW).await?);
        }
        Ok(all)
    }

    async fn sampled(&self, ask: &Ask, sampling: Sampling, count: usize) -> Result<Vec<Completion>, ForgeError> {
        let contract = match &self.old {
            Some(old) if !old.is_forged => {
                "Write the whole script. Its first argument is the input, or the name of a file with it."
            }
            _ => self.language.contract(),
        };
        let ask = self.with_old(ask);
        let Order { request, cases } = &self.wanted.order;
        let prompt = prompt::prompt(request, cases, self.language, contract, &ask);
        let Forge { model, emitter, cancel, .. } = self.forge;
        let shape = Shape::Text { stop: Vec::new() };
        let request = Request { prompt, shape, sampling, max_tokens: TOKENS, cancel: cancel.clone() };
        let span = span(ask.iteration);
        let metadata = json!({"recipe": "forge", "step": ask.iteration, "candidates": count});
        emitter.emit(Draft::new(Kind::ModelCall).span(&span).metadata(metadata));
        let begun = Instant::now();
        let answered = sample(model.clone(), request, count).await;
        if cancel.is_cancelled() {
            return Err(ForgeError::Stopped);
        }
        let completions = match answered {
            Ok(completions) => completions,
            Err(error) => {
                emitter.emit(Draft::new(Kind::ModelError).span(&span).error(error.to_string()));
                return Err(error.into());
            }
        };
        for completion in &completions {
            let answer = Draft::new(Kind::ModelResponse).by(Actor::Model).span(&span).output(completion.text.clone());
            emitter.emit(answer.took(begun.elapsed()).tokens(tokens(completion)));
        }
        Ok(completions)
    }

    /// The first script of a skill that is mended follows its old one.
    fn with_old(&self, ask: &Ask) -> Ask {
        let (Some(old), None) = (&self.old, &ask.before) else { return ask.clone() };
        let what = "it does not do what the examples show".to_owned();
        let finding = Finding { rule: "fault".into(), effect: None, line: 0, what: old.script.clone(), why: what };
        Ask { before: Some((old.code.clone(), Complaint::Findings(vec![finding]))), ..ask.clone() }
    }

    /// Scans the script, and tells the findings.
    fn check(&self, code: &str) -> Vec<Finding> {
        let findings = self.findings(code);
        self.found(&findings, "static");
        findings
    }

    /// The forbidden effects, read from the script's text.
    fn findings(&self, code: &str) -> Vec<Finding> {
        let mut allowed = self.wanted.allowed.clone();
        if self.old.as_ref().is_some_and(|old| !old.is_forged) {
            // it reads its argument by itself
            allowed.insert(Effect::Read);
        }
        let mut findings = scan::scan(code, self.language, &allowed);
        let Order { request, cases } = &self.wanted.order;
        findings.extend(general::literals(code, self.language, request, cases));
        findings
    }

    /// Watches a script that passes its tests: whether it changes anything where it is let, and whether its answers follow
    /// its inputs.
    async fn probe(&mut self, code: &str) -> Result<Vec<Finding>, ForgeError> {
        let trial = self.trial(code)?;
        let mut findings = trial.constants(&self.wanted.order.cases).await?;
        let first = self.wanted.order.cases.first();
        let changed = match first {
            Some(case) if !self.wanted.allowed.contains(&Effect::Write) => trial.changed(case).await?,
            _ => Some(Vec::new()),
        };
        match changed {
            Some(paths) => findings.extend(paths.into_iter().take(1).map(|path| Finding {
                rule: "observed-change".into(),
                effect: Some(Effect::Write),
                line: 0,
                what: path.display().to_string(),
                why: "where it is let, it changes files".into(),
            })),
            None => {
                let note = "what it changes where it is let (this system has no view to rehearse in)".to_owned();
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
        }
        self.found(&findings, "watched");
        Ok(findings)
    }

    /// Compares a script that passes with others that do: where one differs, no example says which of them is right.
    async fn compare(&mut self, code: &str) -> Result<Option<Open>, ForgeError> {
        // what a person has written is not begun anew
        if self.old.is_some() {
            return Ok(None);
        }
        let inputs = twin::near(&self.wanted.order.cases);
        let own = self.answers(code, &inputs).await?;
        let mut seen = BTreeSet::from([code.to_owned()]);
        let (mut passing, mut open) = (0, None);
        let mut others = std::mem::take(&mut self.written);
        // those that are there already come first: more of them cost the model half a minute
        for is_last in [false, true] {
            for other in others.drain(..) {
                if open.is_none() && seen.insert(other.clone()) && self.passes(&other).await? {
                    passing += 1;
                    open = twin::difference(&inputs, &own, &self.answers(&other, &inputs).await?);
                    if open.is_some() {
                        self.quarantine.write(quarantine::OTHER, &other)?;
                    }
                }
            }
            if open.is_none() && !is_last {
                let ask = Ask { iteration: 1, before: None };
                others.extend(self.sampled(&ask, OTHERWISE, TWINS).await?.iter().map(|one| self.code_of(one)));
            }
        }
        if passing == 0 {
            self.notes.push("what the examples leave open (no second script passes them)".to_owned());
        }
        let metadata = json!({"how": "compared", "findings": [], "scripts": passing, "open": open});
        self.forge.emitter.emit(Draft::new(Kind::ForgeScan).metadata(metadata));
        Ok(open)
    }

    /// Runs a script on each of these inputs and returns what it prints; nothing where it fails.
    async fn answers(&self, code: &str, inputs: &[Case]) -> Result<Vec<Option<String>>, ForgeError> {
        let trial = self.trial(code)?;
        let mut all = Vec::new();
        for case in inputs {
            all.push(trial.output(case).await?);
        }
        Ok(all)
    }

    fn found(&self, findings: &[Finding], how: &str) {
        self.forge.emitter.emit(Draft::new(Kind::ForgeScan).metadata(json!({"how": how, "findings": findings})));
    }

    /// Promotes the skill, or leaves it with its report.
    fn end(self, end: End, iterations: u32) -> Result<Report, ForgeError> {
        let mut open = None;
        let (verdict, code, findings, failures) = match end {
            End::Green { code } => (Verdict::Promoted, Some(code), Vec::new(), Vec::new()),
            End::NotRed => (Verdict::NotRed, None, Vec::new(), Vec::new()),
            End::Rejected { code, findings } => (Verdict::Rejected, Some(code), findings, Vec::new()),
            End::Stagnant { code, failures } => (Verdict::Stagnation, Some(code), Vec::new(), failures),
            End::Exhausted { code, failures } => (Verdict::Exhausted, Some(code), Vec::new(), failures),
            End::Open { code, open: found } => {
                open = Some(found);
                (Verdict::Open, Some(code), Vec::new(), Vec::new())
            }
        };
        if let Some(code) = &code {
            self.trial(code)?;
        }
        let Wanted { order, name, .. } = self.wanted;
        if verdict == Verdict::Stagnation {
            let failing: Vec<usize> = failures.iter().map(|f| f.case + 1).collect();
            self.forge.emitter.emit(
                Draft::new(Kind::ForgeStagnation).metadata(json!({"failing": failing, "iterations": iterations})),
            );
        }
        let mut report = Report {
            name: name.clone(),
            verdict,
            language: self.language,
            iterations,
            tests: order.cases.len(),
            held: order.cases.iter().filter(|case| case.is_held).count(),
            findings,
            failures,
            open,
            folder: self.quarantine.folder().to_owned(),
            notes: self.notes.clone(),
        };
        if verdict == Verdict::Promoted {
            report.folder = self.promote()?;
        } else {
            self.quarantine.write(quarantine::REPORT, &report.text(&order.cases))?;
        }
        Ok(report)
    }

    fn promote(&self) -> Result<PathBuf, ForgeError> {
        if let Some(old) = &self.old {
            return Ok(self.quarantine.replace(&old.skill.folder)?);
        }
        let main = if self.language == Language::Python { language::MAIN_PY } else { language::MAIN_SH };
        self.quarantine.write(FILE, &report::skill_text(&self.wanted.name, &self.wanted.order, main))?;
        Ok(self.quarantine.promote()?)
    }
}

/// The cost of a script.
fn tokens(completion: &Completion) -> Tokens {
    let count = |n: usize| u64::try_from(n).unwrap_or_default();
    let usage = &completion.usage;
    Tokens {
        request: count(usage.prompt_tokens),
        cached: count(usage.cached_tokens),
        response: count(usage.completion_tokens),
    }
}

fn span(iteration: u32) -> String {
    format!("f{iteration}")
}

/// The tests of a skill that are kept with it, with more that show its fault: what `--fix` runs.
pub fn tests_of(skill: &Skill, more: Vec<Case>) -> Vec<Case> {
    let mut cases = quarantine::tests(&skill.folder);
    cases.retain(|case| more.iter().all(|new| new.input != case.input));
    cases.iter_mut().for_each(|case| case.is_held = false);
    // what shows the fault is shown to the model
    let new = more.into_iter().map(|case| Case { is_held: false, ..case });
    let mut all: Vec<Case> = new.chain(cases).collect();
    examples::hold_back(&mut all);
    all
}
