//! The forge: makes missing skills, test first. It only writes skills and solves no tasks; the runs of the agent
//! solve tasks and write no skills.
//!
//! ```text
//! examples -> failing tests -> script -> scan -> tests in the sandbox -> probe -> comparison -> shelf, or a report
//!                                ^        |               |               |
//!                                +--------+---------------+---------------+   at most five scripts
//! ```
//!
//! - `machine`: the order of the steps, pure. [`examples`]: makes tests of a request. `prompt`: the prompt for a
//!   script.
//! - [`language`]: the code that the forge adds to the model's. `test_runner`: runs scripts on tests. [`classify`]:
//!   classifies failures.
//! - [`scan`]: finds forbidden effects by rules. `general`: checks that a script works on other inputs than those of
//!   its tests. `mask`: removes comments and string literals.
//! - [`twin`]: finds what the examples leave undecided, by a second script that passes.
//! - `quarantine`: the folder of a skill until it is promoted. [`report`]: the report.
//!
//! Three rules prevent scripts that only know their tests: of three or more examples the last one is not shown to the
//! model; no text of a test may be in the script; and if a word that is carried over from the input to the output is
//! changed, the output has to change too. With one or two examples nothing is held back, and the report says so.

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
mod test_runner;
pub mod twin;

use super::event::{Actor, Draft, Emitter, Kind, Tokens};
use super::skill::script::{Which, program_of};
use super::skill::{FILE, Skill};
use caro_exec::rehearse::RehearsalError;
use caro_exec::{self as exec, ExecError};
use caro_inference::{Executor, Next, StateMachine, drive, sample};
use caro_model::{Cancel, Completion, Model, ModelError, Request, Sampling, Shape};
use examples::{Case, Order};
use language::Language;
use machine::{Complaint, End, Forging, ScriptRequest, Step};
use quarantine::{Quarantine, SCRIPTS};
use report::{Report, Verdict};
use scan::{Effect, Finding};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use test_runner::TestRunner;
use twin::Open;

/// Most scripts of a forging.
pub const MAX_SCRIPTS: u32 = 5;
/// Most tokens of a script.
const MAX_TOKENS: usize = 900;
/// The sampling of all candidates but the first, greedy one. In each iteration some candidates are written from
/// scratch and some fix the last script; the candidate that fails the fewest visible tests is used. Small models
/// rarely fix a script, but often write a correct one at the third or fifth try
/// (`benches/records/2026-11-28-forge.md`).
const CANDIDATE_SAMPLING: Sampling = Sampling { temperature: 0.5, top_p: 0.95, seed: 1 };
const NEW_CANDIDATES: usize = 2;
const FIX_CANDIDATES: usize = 2;
/// The sampling and the number of scripts with which a passing script is compared: at a high temperature, so that they
/// interpret what the examples leave undecided in different ways.
const TWIN_SAMPLING: Sampling = Sampling { temperature: 0.8, top_p: 0.95, seed: 9000 };
const TWINS: usize = 4;

/// The reason why a forging could not take place.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// A skill of that name exists.
    #[error("there is a skill `{0}` already")]
    Exists(String),
    /// The name of the skill is invalid.
    #[error("`{name}` cannot be the name of a skill: {why}")]
    Name {
        /// The name.
        name: String,
        /// The reason.
        why: String,
    },
    /// This system has no sandbox for running scripts.
    #[error("this system has no sandbox, and a script is never tried without one")]
    NoSandbox,
    /// No interpreter is installed.
    #[error("there is no {0} here to run a script with")]
    NoLanguage(&'static str),
    /// The skill does not have exactly one script that can be fixed.
    #[error("the skill `{0}` has no script, or more than one, that can be corrected")]
    NoScript(String),
    /// It was stopped.
    #[error("stopped")]
    Stopped,
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A script could not be started.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A script could not be rehearsed.
    #[error(transparent)]
    Rehearsal(#[from] RehearsalError),
    /// The quarantine cannot be written.
    #[error("the folder of skills cannot be written: {0}")]
    Disk(#[from] std::io::Error),
}

impl ForgeError {
    /// Returns advice to the user.
    pub fn hint(&self) -> String {
        match self {
            Self::Exists(name) => format!("`caro forge --fix {name}` corrects it; --name takes another name"),
            Self::Name { .. } => "give one with --name: a-z, 0-9 and -, for example --name unit-converter".into(),
            Self::NoSandbox => "Linux with Landlock and seccomp, or macOS, has one".into(),
            Self::NoLanguage(_) => "install python3, or awk and sh, or choose another with --language".into(),
            Self::NoScript(name) => format!("`caro skills show {name}` shows what it has"),
            Self::Stopped => "nothing was put on the shelf; start again".into(),
            Self::Model(error) => error.hint().to_string(),
            Self::Exec(error) => error.hint().into(),
            Self::Rehearsal(error) => error.hint().into(),
            Self::Disk(_) => "make room, or check who may write there".into(),
        }
    }
}

/// The skill to make.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The request and its tests.
    pub order: Order,
    /// The skill's name.
    pub name: String,
    /// The language; `None` for the first available one.
    pub language: Option<Language>,
    /// The effects beyond computing that the script may have.
    pub allowed: BTreeSet<Effect>,
    /// The skill to fix; `None` to make a new one.
    pub fix: Option<Arc<Skill>>,
}

/// Makes skills.
#[derive(Clone)]
pub struct Forge {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The emitter of events.
    pub emitter: Arc<Emitter>,
    /// Finds programs on PATH.
    pub which: Which,
    /// Stops the forging.
    pub cancel: Cancel,
    /// The folder of skills.
    pub place: PathBuf,
}

/// The old version of a skill that is fixed.
struct OldVersion {
    skill: Arc<Skill>,
    /// The path of the script, relative to the skill's folder.
    script: String,
    /// The part of the script that is rewritten.
    code: String,
    /// True if the rest of the script was added by the forge.
    is_forged: bool,
}

/// A forging in progress.
struct Work<'a> {
    forge: &'a Forge,
    wanted: &'a Wanted,
    language: Language,
    program: Vec<std::ffi::OsString>,
    quarantine: Quarantine,
    old: Option<OldVersion>,
    notes: Vec<String>,
    /// All scripts that were written, to be compared with the one that passes.
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
                let red = self.run_without_script().await?;
                forging.record_red(red);
            }
            Step::Write(request) => {
                let code = self.write(&request, forging).await?;
                forging.record_script(code);
            }
            Step::Check(code) => {
                let findings = self.check(&code);
                forging.record_scan(code, findings);
            }
            Step::Run(code) => {
                let failures = self.runner(&code)?.failures(&self.wanted.order.cases).await?;
                let failing: Vec<usize> = failures.iter().map(|f| f.case + 1).collect();
                let first = failures.first().map(|f| json!({"class": f.class, "error": f.error}));
                let phase = if failing.is_empty() { "green" } else { "run" };
                self.emit_test_run(phase, &failing, forging.iterations(), first);
                forging.record_tests(code, failures);
            }
            Step::Probe(code) => {
                let findings = self.probe(&code).await?;
                forging.record_probe(code, findings);
            }
            Step::Compare(code) => {
                let open = self.compare(&code).await?;
                forging.record_comparison(code, open);
            }
            Step::Done(_) => {}
        }
        Ok(())
    }
}

impl Forge {
    /// Makes or fixes a skill. Returns the report and the tests. Needs a Tokio runtime with time and IO enabled.
    ///
    /// # Errors
    /// See [`ForgeError`]. A skill that cannot be made is no error: the report says why.
    pub async fn forge(&self, wanted: &Wanted) -> Result<(Report, Vec<Case>), ForgeError> {
        let mut work = self.begin(wanted)?;
        let mut forging = Forging::new(MAX_SCRIPTS);
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
        let old = wanted.fix.as_ref().map(old_version).transpose()?;
        let find = |program: &str| (self.which)(program);
        let language = match &old {
            Some(old) => Language::of_file(&old.script),
            None => wanted.language.or_else(|| Language::first_available(&find)),
        };
        let language = language.ok_or(ForgeError::NoLanguage("python3, awk or sh"))?;
        if !language.is_available(&find) {
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
        let held = wanted.order.cases.iter().any(|case| case.is_held_out);
        let mut notes = Vec::new();
        if !held {
            notes.push("with fewer than three examples none is held back from the model".to_owned());
        }
        Ok(Work { forge: self, wanted, language, program, quarantine, old, notes, written: Vec::new() })
    }
}

/// Returns the old version of a skill that has exactly one script.
fn old_version(skill: &Arc<Skill>) -> Result<OldVersion, ForgeError> {
    let none = || ForgeError::NoScript(skill.front.name.clone());
    let mut scripts: Vec<String> = super::skill::script::scripts(skill);
    scripts.retain(|script| Language::of_file(script).is_some_and(|l| l != Language::Awk));
    let [script] = scripts.as_slice() else { return Err(none()) };
    let script = format!("{SCRIPTS}/{script}");
    let file = skill.file(&script).ok_or_else(none)?;
    let text = caro_base::files::read_text(&file, super::skill::LARGEST)?;
    let model_part = language::model_part(&text);
    let code = model_part.unwrap_or(&text).to_owned();
    Ok(OldVersion { skill: skill.clone(), script, code, is_forged: model_part.is_some() })
}

impl Work<'_> {
    /// Writes the code into the quarantine, and returns a runner for it.
    fn runner(&self, code: &str) -> Result<TestRunner, ForgeError> {
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
        Ok(TestRunner { interpreter: self.program.clone(), script, has_input_flags: is_forged })
    }

    /// Runs the tests before a script is written: with code that fails and with code that prints its input; for a
    /// fix, with the old script. True if at least one test fails with all of these.
    async fn run_without_script(&mut self) -> Result<bool, ForgeError> {
        let cases: Vec<Case> =
            self.wanted.order.cases.iter().map(|c| Case { is_held_out: false, ..c.clone() }).collect();
        let stubs = match &self.old {
            Some(old) => vec![old.code.clone()],
            None => vec![self.language.stub().to_owned(), self.language.echo().to_owned()],
        };
        let mut failing: Option<BTreeSet<usize>> = None;
        for stub in stubs {
            let failures = self.runner(&stub)?.failures(&cases).await?;
            let these: BTreeSet<usize> = failures.iter().map(|f| f.case + 1).collect();
            failing = Some(match failing {
                Some(before) => before.intersection(&these).copied().collect(),
                None => these,
            });
        }
        let failing: Vec<usize> = failing.unwrap_or_default().into_iter().collect();
        self.emit_test_run("red", &failing, 0, None);
        Ok(!failing.is_empty())
    }

    /// Emits the event about a test run.
    fn emit_test_run(&self, phase: &str, failing: &[usize], iteration: u32, first: Option<Value>) {
        let exit = i32::from(!failing.is_empty());
        self.forge.emitter.emit(Draft::new(Kind::ForgeTest).span(span(iteration)).output(first.unwrap_or_default()).metadata(
            json!({"phase": phase, "exit": exit, "failing": failing, "tests": self.wanted.order.cases.len(), "iteration": iteration}),
        ));
    }

    /// Lets the model write several candidates, and returns the best.
    async fn write(&mut self, request: &ScriptRequest, forging: &Forging) -> Result<String, ForgeError> {
        let started = Instant::now();
        let mut best: Option<((usize, bool), String)> = None;
        let mut candidates: Vec<String> = Vec::new();
        let earlier = if request.iteration == 1 { self.earlier_script().await? } else { None };
        let completions = if earlier.is_some() { Vec::new() } else { self.request_scripts(request).await? };
        candidates.extend(earlier);
        for completion in completions {
            let code = self.code_of(&completion);
            if !candidates.contains(&code) {
                candidates.push(code);
            }
        }
        let written = candidates.len();
        self.written.extend(candidates.iter().cloned());
        for code in candidates {
            let faults = if written == 1 { (0, false) } else { self.count_faults(&code, forging).await? };
            if best.as_ref().is_none_or(|(least, _)| faults < *least) {
                best = Some((faults, code));
            }
        }
        let code = best.map(|(_, code)| code).unwrap_or_default();
        self.runner(&code)?;
        self.forge.emitter.emit(
            Draft::new(Kind::ForgeWrite)
                .span(span(request.iteration))
                .took(started.elapsed())
                .metadata(json!({"skill": self.wanted.name, "language": self.language, "lines": code.lines().count(),
                "iteration": request.iteration, "candidates": written})),
        );
        Ok(code)
    }

    /// Returns the other script of an earlier forging, if it passes all tests now: the new examples have shown that
    /// it is the right one.
    async fn earlier_script(&self) -> Result<Option<String>, ForgeError> {
        let (Some(other), None) = (self.quarantine.other(), &self.old) else { return Ok(None) };
        Ok(self.passes(other).await?.then(|| other.to_owned()))
    }

    /// True if a script has no findings and passes all tests, including those held back.
    async fn passes(&self, code: &str) -> Result<bool, ForgeError> {
        Ok(self.findings(code).is_empty() && self.runner(code)?.failures(&self.wanted.order.cases).await?.is_empty())
    }

    /// Returns the script in a completion.
    fn code_of(&self, completion: &Completion) -> String {
        let code = language::extract_code(&completion.text);
        let is_whole = self.old.as_ref().is_some_and(|old| !old.is_forged);
        if is_whole || self.language != Language::Python { code } else { language::without_usage(&code) }
    }

    /// Returns the number of visible tests that a script fails, or more than all if it may not be run; and true if
    /// there was an equal complaint before.
    async fn count_faults(&self, code: &str, forging: &Forging) -> Result<(usize, bool), ForgeError> {
        let is_visible = |case: &&Case| !case.is_held_out;
        let findings = self.findings(code);
        if !findings.is_empty() {
            let is_known = !forging.is_new(&Complaint::Findings(findings));
            return Ok((self.wanted.order.cases.len() + 1, is_known));
        }
        let cases: Vec<Case> = self.wanted.order.cases.iter().filter(is_visible).cloned().collect();
        let failures = self.runner(code)?.failures(&cases).await?;
        Ok((failures.len(), !forging.is_new(&Complaint::Failures(failures))))
    }

    /// Requests candidates: at first a greedy one, later some that fix the last script, and for a new skill also some
    /// that are written from scratch.
    async fn request_scripts(&self, request: &ScriptRequest) -> Result<Vec<Completion>, ForgeError> {
        let seed = u64::from(request.iteration) * 100;
        let mut all = match request.iteration {
            1 => self.sample_scripts(request, Sampling::GREEDY, 1).await?,
            _ => self.sample_scripts(request, Sampling { seed, ..CANDIDATE_SAMPLING }, FIX_CANDIDATES).await?,
        };
        if self.old.is_none() {
            let new = ScriptRequest { before: None, ..request.clone() };
            let sampling = Sampling { seed: seed + 50, ..CANDIDATE_SAMPLING };
            all.extend(self.sample_scripts(&new, sampling, NEW_CANDIDATES).await?);
        }
        Ok(all)
    }

    async fn sample_scripts(
        &self,
        request: &ScriptRequest,
        sampling: Sampling,
        count: usize,
    ) -> Result<Vec<Completion>, ForgeError> {
        let contract = match &self.old {
            Some(old) if !old.is_forged => {
                "Write the whole script. Its first argument is the input, or the name of a file with it."
            }
            _ => self.language.contract(),
        };
        let request = self.with_old(request);
        let iteration = request.iteration;
        let Order { request: task, cases } = &self.wanted.order;
        let prompt = prompt::prompt(task, cases, self.language, contract, &request);
        let Forge { model, emitter, cancel, .. } = self.forge;
        let shape = Shape::Text { stop: Vec::new() };
        let request = Request { prompt, shape, sampling, max_tokens: MAX_TOKENS, cancel: cancel.clone() };
        let span = span(iteration);
        let metadata = json!({"recipe": "forge", "step": iteration, "candidates": count});
        emitter.emit(Draft::new(Kind::ModelCall).span(&span).metadata(metadata));
        let started = Instant::now();
        let result = sample(model.clone(), request, count).await;
        if cancel.is_cancelled() {
            return Err(ForgeError::Stopped);
        }
        let completions = match result {
            Ok(completions) => completions,
            Err(error) => {
                emitter.emit(Draft::new(Kind::ModelError).span(&span).error(error.to_string()));
                return Err(error.into());
            }
        };
        for completion in &completions {
            let answer = Draft::new(Kind::ModelResponse).by(Actor::Model).span(&span).output(completion.text.clone());
            emitter.emit(answer.took(started.elapsed()).tokens(tokens(completion)));
        }
        Ok(completions)
    }

    /// Adds the old script to the first request for a fix.
    fn with_old(&self, request: &ScriptRequest) -> ScriptRequest {
        let (Some(old), None) = (&self.old, &request.before) else { return request.clone() };
        let what = "it does not do what the examples show".to_owned();
        let finding = Finding { rule: "fault".into(), effect: None, line: 0, what: old.script.clone(), why: what };
        ScriptRequest { before: Some((old.code.clone(), Complaint::Findings(vec![finding]))), ..request.clone() }
    }

    /// Scans a script, and emits the findings.
    fn check(&self, code: &str) -> Vec<Finding> {
        let findings = self.findings(code);
        self.emit_findings(&findings, "static");
        findings
    }

    /// Returns the findings of the static scan.
    fn findings(&self, code: &str) -> Vec<Finding> {
        let mut allowed = self.wanted.allowed.clone();
        if self.old.as_ref().is_some_and(|old| !old.is_forged) {
            // such a script opens the file in its argument itself
            allowed.insert(Effect::Read);
        }
        let mut findings = scan::scan(code, self.language, &allowed);
        let Order { request, cases } = &self.wanted.order;
        findings.extend(general::test_literals(code, self.language, request, cases));
        findings
    }

    /// Probes a script that passes its tests: checks that its outputs change with its inputs, and rehearses it to see
    /// whether it changes files.
    async fn probe(&mut self, code: &str) -> Result<Vec<Finding>, ForgeError> {
        let runner = self.runner(code)?;
        let mut findings = runner.constant_answers(&self.wanted.order.cases).await?;
        let first = self.wanted.order.cases.first();
        let rehearsed = match first {
            Some(case) if !self.wanted.allowed.contains(&Effect::Write) => runner.rehearse(case).await?,
            _ => Some(Vec::new()),
        };
        match rehearsed {
            Some(observed) => findings.extend(observed),
            None => {
                let note = "what it changes when it may (this system has no view to rehearse in)".to_owned();
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
        }
        self.emit_findings(&findings, "watched");
        Ok(findings)
    }

    /// Compares a script that passes with others that pass. Returns an input on which one of them differs.
    async fn compare(&mut self, code: &str) -> Result<Option<Open>, ForgeError> {
        // a fix is not compared: the user has written the old script
        if self.old.is_some() {
            return Ok(None);
        }
        let inputs = twin::similar_inputs(&self.wanted.order.cases);
        let own = self.outputs(code, &inputs).await?;
        let mut seen = BTreeSet::from([code.to_owned()]);
        let (mut passing, mut open) = (0, None);
        let mut others = std::mem::take(&mut self.written);
        // the scripts that exist already come first, as the model needs half a minute to write more
        for is_last in [false, true] {
            for other in others.drain(..) {
                if open.is_none() && seen.insert(other.clone()) && self.passes(&other).await? {
                    passing += 1;
                    open = twin::difference(&inputs, &own, &self.outputs(&other, &inputs).await?);
                    if open.is_some() {
                        self.quarantine.write(quarantine::OTHER_SCRIPT, &other)?;
                    }
                }
            }
            if open.is_none() && !is_last {
                let request = ScriptRequest { iteration: 1, before: None };
                let completions = self.sample_scripts(&request, TWIN_SAMPLING, TWINS).await?;
                others.extend(completions.iter().map(|one| self.code_of(one)));
            }
        }
        if passing == 0 {
            self.notes.push("what the examples leave open (no second script passes them)".to_owned());
        }
        let metadata = json!({"how": "compared", "findings": [], "scripts": passing, "open": open});
        self.forge.emitter.emit(Draft::new(Kind::ForgeScan).metadata(metadata));
        Ok(open)
    }

    /// Runs a script on each input and returns its outputs; `None` where it fails.
    async fn outputs(&self, code: &str, inputs: &[Case]) -> Result<Vec<Option<String>>, ForgeError> {
        let runner = self.runner(code)?;
        let mut all = Vec::new();
        for case in inputs {
            all.push(runner.output(case).await?);
        }
        Ok(all)
    }

    fn emit_findings(&self, findings: &[Finding], how: &str) {
        self.forge.emitter.emit(Draft::new(Kind::ForgeScan).metadata(json!({"how": how, "findings": findings})));
    }

    /// Promotes the skill, or leaves it in quarantine with its report.
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
            self.runner(code)?;
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
            held: order.cases.iter().filter(|case| case.is_held_out).count(),
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

/// Returns the tokens of a completion.
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

/// Returns the tests for fixing a skill: `more`, which show its fault, and those stored with the skill.
pub fn tests_of(skill: &Skill, more: Vec<Case>) -> Vec<Case> {
    let mut cases = quarantine::tests(&skill.folder);
    cases.retain(|case| more.iter().all(|new| new.input != case.input));
    cases.iter_mut().for_each(|case| case.is_held_out = false);
    // the tests that show the fault come first and are not held back
    let new = more.into_iter().map(|case| Case { is_held_out: false, ..case });
    let mut all: Vec<Case> = new.chain(cases).collect();
    examples::hold_back(&mut all);
    all
}
