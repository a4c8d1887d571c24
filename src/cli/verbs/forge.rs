//! `caro forge`: makes a skill that is missing, test first, or fixes one.

use crate::harness::forging::{Examples, forge_skill};
use crate::harness::view::Shows;
use crate::setup::settings::RESIDENTS;
use crate::setup::wire::{self, Wants};
use crate::setup::{config, stores};
use crate::term::ui::{Role, in_line};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::forge::examples::{Case, Order};
use caro_agent::forge::language::Language;
use caro_agent::forge::report::{Report, Verdict, name_of};
use caro_agent::forge::scan::{ALLOWED, Effect};
use caro_agent::forge::{Wanted, tests_of};
use caro_agent::skill::{Origin, Skill};
use caro_policy as policy;
use clap::builder::PossibleValuesParser;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

const EXAMPLES: &str = "\
The examples are the tests. They are run before there is a script, and have to
fail; then the model writes one, which is scanned, run in the sandbox, and corrected,
at most five times. Of three examples or more the last one is hidden from the model.

  caro forge \"Create a unit converter skill\" \\
    --example '5 km => 5000 m' --example '3 kg => 3000 g' --example '2 t => 2000 kg'
  caro forge \"Create a .pcab parser skill\" --sample net.pcab --expect net.txt
  caro forge --fix unit-converter --example '1.5 km => 1500 m'

A skill that passes lies in the folder of skills and is used from the next task on.
One that does not stays in .quarantine there, with a REPORT.md.

Exit codes: 0 promoted, 1 rejected or no test fails, 2 usage or internal,
3 the same tests failed in the same way twice, 4 five scripts failed, 130 Ctrl-C.";

/// Make a skill from examples, test first, or correct one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
#[command(override_usage = "caro forge [OPTIONS] <WORDS>...\n       caro forge [OPTIONS] --fix <SKILL> [WORDS]...")]
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

/// The languages in which a script can be written.
const LANGUAGES: [(&str, Language); 3] = [("python", Language::Python), ("awk", Language::Awk), ("sh", Language::Sh)];

/// Makes or fixes a skill.
///
/// # Errors
/// If the forge cannot run, or no skill passes. With `--json` or `--events` the latter is only an exit code: the
/// report says why.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    cx.with_error_document(args.json, work(args, cx))
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
        Some(name) => to_fix(name, &words, args, allowed, cx)?,
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
    let (report, cases) = forge_skill(&wanted, model, shows, cx)?;
    print_report(&report, &cases, args, cx)
}

/// Prepares the fix of one of the user's own skills, with the tests that it has and those that show the fault.
fn to_fix(name: &str, words: &str, args: &Args, allowed: BTreeSet<Effect>, cx: &Cx) -> Result<Wanted, Failure> {
    let root = cx.folder()?;
    let (all, _) = stores::searched_skills(&root, cx).find();
    let skill: Arc<Skill> = all.get(name)?.clone();
    let own = stores::own_skills(cx);
    if !own.as_ref().and_then(|own| own.canonicalize().ok()).is_some_and(|own| skill.folder.starts_with(own)) {
        return Err(not_own(&skill, own.as_deref()));
    }
    let more = args.examples.order(words, cx)?;
    let request = if more.request.is_empty() {
        skill.front.description.clone()
    } else {
        format!("{} {}", skill.front.description, more.request)
    };
    let order = Order { request, cases: tests_of(&skill, more.cases) };
    Ok(Wanted { order, name: name.to_owned(), language: None, allowed, fix: Some(skill) })
}

/// The failure to fix a skill that is not in the folder of the user's own skills.
fn not_own(skill: &Skill, own: Option<&Path>) -> Failure {
    let (name, folder) = (&skill.front.name, skill.folder.display());
    let own = own.map_or_else(|| "your own skills".to_owned(), |own| own.display().to_string());
    let copy = format!("copy {folder} to {own}, and correct it there: your own skill is used in its place");
    let (origin, hint) = match skill.origin {
        Origin::Board => ("came with caro", copy),
        Origin::Project => ("came with the project", copy),
        Origin::User => ("is a link", format!("put a copy of {folder} in the place of the link, and correct that")),
    };
    Failure::usage(format!("the skill `{name}` {origin}")).hint(hint)
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

/// Prints the folder of the new skill, or returns the failure with the points of the report.
fn print_report(report: &Report, cases: &[Case], args: &Args, cx: &Cx) -> Outcome {
    let exit = exit_of(report.verdict);
    if args.json {
        cx.ui.document(report)?;
        return Ok(exit);
    }
    if args.events.is_some() {
        return Ok(exit);
    }
    if report.verdict != Verdict::Promoted {
        // its other lines are printed as the error and its hint
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
