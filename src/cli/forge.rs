//! `caro forge`: makes a skill that is missing, test first, or mends one.

use super::agent::view::{self, Shows};
use super::agent::wire as harness;
use super::settings::RESIDENTS;
use super::ui::{Role, in_line};
use super::wire::{self, Wants};
use super::{Cx, Exit, Failure, Outcome, config, stores};
use caro_agent::event::{Draft, Emitter, Kind};
use caro_agent::forge::examples::{Case, ExampleError, Order, Way, order};
use caro_agent::forge::language::Language;
use caro_agent::forge::report::{Report, Verdict, name_of};
use caro_agent::forge::scan::{ALLOWED, Effect};
use caro_agent::forge::{Forge, ForgeError, Wanted, tests_of};
use caro_agent::plan::Plan;
use caro_agent::skill::Skill;
use caro_agent::store::is_alive;
use caro_agent::turn::Task;
use caro_base::files;
use caro_base::id;
use caro_exec as exec;
use caro_model::Model;
use caro_policy as policy;
use caro_policy::Redactor;
use clap::builder::PossibleValuesParser;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// The largest sample that is read, bytes: it is an argument, and is shown to the model.
const LARGEST: u64 = 64 << 10;

const EXAMPLES: &str = "\
The examples are the tests. They are run before there is a script, and have to
fail; then the model writes one, it is scanned, run in the sandbox, and mended, at
most five times. Of three examples or more the last one is hidden from the model.

  caro forge \"Create a unit converter skill\" \\
    --example '5 km => 5000 m' --example '3 kg => 3000 g' --example '2 t => 2000 kg'
  caro forge \"Create a .pcab parser skill\" --sample net.pcab --expect net.txt
  caro forge --fix unit-converter --example '1.5 km => 1500 m'

A skill that passes lies in the folder of skills and is used from the next task on.
One that does not stays in .quarantine there, with a REPORT.md.

Exit codes: 0 promoted, 1 rejected or no test fails, 2 usage or internal,
3 the same tests failed in the same way twice, 4 five scripts failed, 130 Ctrl-C.";

/// Make a skill from examples, test first, or mend one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What the skill is to do; lines `INPUT -> OUTPUT` in it are examples
    #[arg(value_name = "WORDS", required_unless_present = "fix")]
    words: Vec<String>,
    /// The examples.
    #[command(flatten)]
    examples: Examples,
    /// Mend this skill: the examples show what it does wrong. The old version stays if that fails
    #[arg(long, value_name = "SKILL", conflicts_with_all = ["name", "language"])]
    fix: Option<String>,
    /// Its name: a-z, 0-9 and -; by default out of the words
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The language of its script; by default the first that is here
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(LANGUAGES.map(|(name, _)| name)))]
    language: Option<String>,
    /// What the script may do beside computing: read (files beside its input), write (its own temporary files), spawn
    /// (other programs); may be given several times. The sandbox holds all the same
    #[arg(long, value_name = "EFFECT", value_parser = PossibleValuesParser::new(ALLOWED.map(|(name, _)| name)))]
    allow: Vec<String>,
    /// Print one JSON document instead
    #[arg(long, conflicts_with = "events")]
    json: bool,
    /// Print every event as a line of JSON, as it happens
    #[arg(long, value_name = "FORMAT", value_parser = ["jsonl"])]
    events: Option<String>,
    /// Model: an id of `caro model list`, a GGUF file, openai:URL#NAME, anthropic:NAME, script:FILE
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,
    /// Keep the model ready in a process that ends by itself: on, off; auto is off here
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(RESIDENTS.map(|(name, _)| name)))]
    resident: Option<String>,
}

/// The languages that a script is begun in.
const LANGUAGES: [(&str, Language); 3] = [("python", Language::Python), ("awk", Language::Awk), ("sh", Language::Sh)];

/// Examples, as they are typed.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Examples {
    /// An example for a skill to be made, 'INPUT => OUTPUT'; \n is the end of a line. May be given several times
    #[arg(long, value_name = "EXAMPLE")]
    example: Vec<String>,
    /// A file that is an input, with --expect for what comes out of it; may be given several times
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "expect")]
    sample: Vec<PathBuf>,
    /// A file with what has to come out of the --sample before it
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "sample")]
    expect: Vec<PathBuf>,
}

impl Examples {
    /// True if there are any beside those in the words.
    pub fn is_given(&self) -> bool {
        !self.example.is_empty() || !self.sample.is_empty()
    }

    /// The request and its tests.
    ///
    /// # Errors
    /// If there is none, or a sample cannot be read.
    pub fn order(&self, words: &str, cx: &Cx) -> Result<Order, Failure> {
        if self.sample.len() != self.expect.len() {
            return Err(Failure::usage(format!("{} --sample and {} --expect", self.sample.len(), self.expect.len()))
                .hint("each sample needs a file with what comes out of it"));
        }
        let root = cx.folder()?;
        let read = |file: &PathBuf| {
            let failed = |e: std::io::Error| Failure::usage(format!("could not read {}: {e}", file.display()));
            files::read_text(&root.join(file), LARGEST)
                .map_err(|e| failed(e).hint("a sample is a text of at most 64 KiB; take a part of it that shows all"))
        };
        let mut samples = Vec::new();
        for (sample, expect) in self.sample.iter().zip(&self.expect) {
            samples.push(Case::new(read(sample)?, read(expect)?, Way::File));
        }
        Ok(order(words, &self.example, samples)?)
    }
}

impl From<ExampleError> for Failure {
    fn from(error: ExampleError) -> Self {
        let hint = error.hint();
        Self::usage(error).hint(hint)
    }
}

impl From<ForgeError> for Failure {
    fn from(error: ForgeError) -> Self {
        let hint = error.hint();
        match error {
            ForgeError::Model(error) => error.into(),
            ForgeError::Stopped => Self::new(Exit::Interrupted, error).hint(hint),
            ForgeError::Exec(_) | ForgeError::Disk(_) => Self::internal(error).hint(hint),
            _ => Self::usage(error).hint(hint),
        }
    }
}

/// Makes or mends a skill.
///
/// # Errors
/// Whatever stands in the way of it. A skill that cannot be made is no error: its report says why.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    cx.documented(args.json, work(args, cx))
}

fn work(args: &Args, cx: &Cx) -> Outcome {
    let words = args.words.join(" ");
    policy::admit(&words, policy::Mode::Full).map_err(|error| {
        let hint = error.hint();
        Failure::usage(format!("the request cannot be taken: {error}")).hint(hint)
    })?;
    let allowed = ALLOWED.iter().filter(|(name, _)| args.allow.iter().any(|given| given == name));
    let allowed: BTreeSet<Effect> = allowed.map(|(_, effect)| *effect).collect();
    let language = args.language.as_ref().and_then(|name| LANGUAGES.iter().find(|(n, _)| n == name)).map(|(_, l)| *l);
    let wanted = match &args.fix {
        Some(name) => to_mend(name, &words, args, allowed, cx)?,
        None => {
            let order = args.examples.order(&words, cx)?;
            let name = args.name.clone().unwrap_or_else(|| name_of(&order.request));
            Wanted { order, name, language, allowed, fix: None }
        }
    };
    let flags = config::given(&[("model", &args.model), ("resident", &args.resident)]);
    let settings = cx.settings(&flags)?.for_many();
    let model = wire::open_for(cx, &settings, Wants::Answers)?.recipe.model;
    let shows = match (&args.events, args.json) {
        (Some(_), _) => Shows::Jsonl,
        (None, true) => Shows::Nothing,
        (None, false) => Shows::Steps,
    };
    let (report, cases) = made(&wanted, model, shows, cx)?;
    told(&report, &cases, args, cx)
}

/// A skill of the person's own that is to be mended, with the tests that it has and those that show the fault.
fn to_mend(name: &str, words: &str, args: &Args, allowed: BTreeSet<Effect>, cx: &Cx) -> Result<Wanted, Failure> {
    let root = cx.folder()?;
    let (all, _) = stores::searched_skills(&root, cx).find();
    let skill: Arc<Skill> = all.get(name)?.clone();
    let own = stores::own_skills(cx).and_then(|own| own.canonicalize().ok());
    if !own.is_some_and(|own| skill.folder.starts_with(own)) {
        return Err(Failure::usage(format!("the skill `{name}` came with the project"))
            .hint("copy its folder to your own skills, and mend it there"));
    }
    let more = args.examples.order(words, cx)?;
    let about = if more.request.is_empty() {
        skill.front.description.clone()
    } else {
        format!("{} {}", skill.front.description, more.request)
    };
    let order = Order { request: about, cases: tests_of(&skill, more.cases) };
    Ok(Wanted { order, name: name.to_owned(), language: None, allowed, fix: Some(skill) })
}

/// Forges while it is shown, as a run of its own.
///
/// # Errors
/// If it cannot be begun, or is stopped.
pub fn made(wanted: &Wanted, model: Arc<dyn Model>, shows: Shows, cx: &Cx) -> Result<(Report, Vec<Case>), Failure> {
    let place = stores::own_skills(cx).ok_or_else(|| {
        Failure::usage("this user has no home folder for a skill")
            .hint("set CARO_CONFIG_FILE to a file in a folder that can be written")
    })?;
    let store = Arc::new(harness::store(cx)?);
    let text = format!("forge: {}", wanted.order.request);
    let task = Task {
        run: id::fresh("run"),
        session: id::fresh("session"),
        agent: "forge".into(),
        plan: Plan::heuristic(&text),
        max_steps: caro_agent::forge::MOST,
        batch: 1,
        place: String::new(),
        text,
    };
    let redactor = Redactor::default();
    store.begin(&task, &redactor.text(&task.text), "", &cx.folder()?, is_alive).map_err(harness::failure)?;
    view::while_shown(cx, shows, false, |signals| {
        let emitter = Arc::new(Emitter::new(task.run.clone(), 1, redactor, vec![store.clone(), signals.sink()]));
        emitter.emit(
            Draft::new(Kind::AgentStart)
                .input(task.text.clone())
                .metadata(json!({"agent": task.agent, "session": task.session, "model": model.id()})),
        );
        let forge = Forge {
            model,
            emitter: emitter.clone(),
            which: Arc::new(|name| exec::find(name)),
            cancel: cx.interrupt().cancel().clone(),
            place,
        };
        let forged = cx.runtime()?.block_on(forge.forge(wanted));
        let status = match &forged {
            Ok((report, _)) if report.verdict == Verdict::Promoted => "completed",
            _ => "failed",
        };
        let response = forged.as_ref().map(|(report, _)| report.line()).unwrap_or_default();
        emitter
            .emit(Draft::new(Kind::AgentEnd).output(json!({"response": response})).metadata(json!({"status": status})));
        Ok(forged?)
    })
}

/// The exit code of a verdict.
fn exit_of(verdict: Verdict) -> Exit {
    match verdict {
        Verdict::Promoted => Exit::Success,
        Verdict::Rejected | Verdict::NotRed | Verdict::Open => Exit::No,
        Verdict::Stagnation => Exit::Stuck,
        Verdict::Exhausted => Exit::Limit,
    }
}

fn told(report: &Report, cases: &[Case], args: &Args, cx: &Cx) -> Outcome {
    let exit = exit_of(report.verdict);
    if args.json {
        cx.ui.document(report)?;
        return Ok(exit);
    }
    if args.events.is_some() {
        return Ok(exit);
    }
    if report.verdict != Verdict::Promoted {
        // its other lines are told as the error and its hint
        let text = report.text(cases);
        let points = text.lines().filter(|line| line.trim_start().starts_with("- ") || line.starts_with("      "));
        points.for_each(|line| cx.ui.aside(Role::Plain, &in_line(line)));
        return Err(Failure::new(exit, report.line()).hint(report.hint()));
    }
    cx.ui.data(&report.folder.display().to_string())?;
    report.notes.iter().for_each(|note| cx.ui.note(&format!("not checked: {note}")));
    cx.ui.note(&report.hint());
    Ok(exit)
}
