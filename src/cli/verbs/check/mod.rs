//! `caro check 'COMMAND'`: reports what is wrong with a command and how dangerous it is, without the model.
//!
//! `errors`: the errors that make a check of many commands fail. `lines`: verdicts on many commands. `hook`: answers to
//! another agent that is about to run a command.

mod errors;
mod hook;
pub mod lines;

use crate::answer::ask::Place;
use crate::answer::look::{Bound, LISTED, look};
use crate::answer::rehearsal;
use crate::term::given;
use crate::term::interrupt::Phase;
use crate::term::ui::Role;
use crate::{Cx, Exit, Failure, Outcome};
use caro_host::ExecutionContext;
use caro_shell::safety::{Level, Risk};
use caro_shell::{Dialect, Finding, Severity, Target};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

/// Most findings that are printed, and most bytes of them.
const SHOWN: Bound = Bound { count: 20, bytes: 16 << 10 };

/// Most characters of a piece of the command that are printed.
const PIECE: usize = 120;

/// Check any command: syntax, programs, flags of the installed versions, platform rules, risk
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command, as one quoted argument; `-`, or nothing behind a pipe, reads it from standard input
    #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
    command: Option<String>,
    /// Read a command from each line of standard input, as {"command": "ls", "shell": "bash", "id": 1}, and print a verdict
    /// for each
    #[arg(long, conflicts_with_all = ["command", "json", "rehearse", "target"])]
    jsonl: bool,
    /// With --jsonl: print how many of each verdict there were and how long one took, and no verdicts
    #[arg(long, requires = "jsonl")]
    summary: bool,
    /// Answer another agent's question on standard input: may this command run?
    #[arg(long, value_enum, value_name = "AGENT", conflicts_with_all = ["command", "jsonl", "json", "rehearse", "target"])]
    hook: Option<hook::Asker>,
    /// Make the exit code 1, and a hook say no, from this verdict on. Without it: danger, and for one command findings, too
    #[arg(long, value_enum, value_name = "WHAT")]
    fail_on: Option<FailOn>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Also try it out in a throw-away view of this machine: what would it create, change, delete?
    #[arg(long)]
    rehearse: bool,
    /// Check for another machine than this one
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(Target::ALL.map(|(name, _)| name)))]
    target: Option<String>,
    /// Check for another shell than the one that called
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(Dialect::ALL.map(|(name, _)| name)))]
    shell: Option<String>,
}

/// The findings and verdicts that make a check fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// A danger
    Danger,
    /// A danger or a caution
    Caution,
    /// A finding that is an error: the command fails or does something else; and a danger
    Error,
    /// Nothing
    Never,
}

impl FailOn {
    /// True if that verdict fails.
    fn fails(self, level: Level) -> bool {
        match self {
            Self::Danger | Self::Error => level == Level::Danger,
            Self::Caution => level >= Level::Caution,
            Self::Never => false,
        }
    }

    /// True if a command with these findings and that verdict fails.
    fn fails_with(self, findings: &[Finding], level: Level) -> bool {
        self.fails(level) || self == Self::Error && findings.iter().any(|f| f.severity == Severity::Error)
    }
}

/// The command of the hints.
const EXAMPLE: &str = "find . -nmae \"*.log\"";

/// Returns the argument, or the one for standard input if there is none and a pipe or a file is given.
fn given_or_piped(args: &Args) -> Result<&str, Failure> {
    match args.command.as_deref() {
        Some(command) => Ok(command),
        None if std::io::stdin().is_terminal() => Err(Failure::usage("there is no command to check")
            .hint(format!("try: `caro check '{EXAMPLE}'`, or give it through a pipe: `echo ls | caro check`"))),
        None => Ok(given::STDIN),
    }
}

/// Checks a command. By default the exit code is 0 if there are only hints, 1 for a warning, an error or danger.
///
/// # Errors
/// If the command is empty or too long, or standard input cannot be read.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    if args.jsonl || args.hook.is_some() {
        let fail_on = args.fail_on.unwrap_or(FailOn::Danger);
        let named = args.shell.as_deref().and_then(|name| Dialect::ALL.iter().find(|(n, _)| *n == name));
        // the commands of agents and files are for bash, whichever shell called us
        let shell = named.map_or(Dialect::Bash, |(_, dialect)| *dialect);
        let mut finder = errors::ErrorFinder::new(fail_on, cx)?;
        let errors = |command: &str, dialect: Dialect, cwd: Option<&Path>| {
            finder.as_mut().map(|finder| finder.errors(command, dialect, cwd)).unwrap_or_default()
        };
        let outcome = match args.hook {
            Some(asker) => hook::run(asker, fail_on, shell, errors, cx),
            None => lines::run(args.summary, fail_on, shell, errors, cx),
        };
        finder.into_iter().for_each(errors::ErrorFinder::close);
        return outcome;
    }
    let command = given::command(given_or_piped(args)?, "check", EXAMPLE)?;
    let runtime = cx.runtime()?;
    let context = Arc::new(ExecutionContext::detect(cx.dirs.cache.as_deref()));
    let mut settings = cx.settings(&[])?;
    settings.target = args.target.as_deref().and_then(Target::named).or(settings.target);
    settings.shell = args
        .shell
        .as_deref()
        .and_then(|name| Some(Dialect::ALL.iter().find(|(n, _)| *n == name)?.1))
        .or(settings.shell);
    crate::answer::ask::check_target(&settings)?;
    let place = Place::of(&context, &settings, None);
    // lookups may take a while, and Ctrl-C may end them: nothing is left behind
    let _phase = cx.interrupt().during(Phase::Ends);
    let bound = if args.json { LISTED } else { SHOWN };
    let looked = look(command.clone(), &place, context, crate::setup::wire::manual(cx), args.rehearse, bound);
    let (report, clean) = runtime.block_on(looked)?;
    crate::wind_up(runtime);
    if args.json {
        cx.ui.document(&report)?;
    } else {
        print(&report.findings, &report.risk, report.unlisted, cx)?;
        if cx.ui.out_is_terminal() {
            for line in crate::answer::undo::scope_lines(&command, &place) {
                cx.ui.line(&cx.ui.paint(Role::Caution, &line))?;
            }
        }
        if let Some(shown) = &report.rehearsal {
            rehearsal::print(shown, &place.cwd, cx)?;
        }
    }
    let fails = args.fail_on.map_or(!clean, |on| on.fails_with(&report.findings, report.risk.level));
    Ok(if fails { Exit::No } else { Exit::Success })
}

fn print(findings: &[Finding], risk: &Risk, unlisted: usize, cx: &Cx) -> Result<(), Failure> {
    let line = |parts: &[(Role, &str)]| {
        let painted: String = parts.iter().map(|(role, text)| cx.ui.paint(*role, text)).collect();
        cx.ui.line(&painted)
    };
    for f in findings {
        let (word, role) = match f.severity {
            Severity::Error => ("error", Role::Danger),
            Severity::Warning => ("warning", Role::Caution),
            Severity::Hint => ("hint", Role::Accent),
        };
        let token = given::clipped(&f.token, PIECE);
        line(&[
            (role, word),
            (Role::Plain, &format!(" {token}: {}", given::clipped(&f.why, 4 * PIECE))),
            (Role::Dim, &format!("  [{}]", f.id)),
        ])?;
        for evidence in &f.evidence {
            line(&[(Role::Dim, &format!("    {}", given::clipped(evidence, 4 * PIECE)))])?;
        }
        if let Some(fix) = &f.fix {
            line(&[(Role::Plain, "    better: "), (Role::Command, fix)])?;
        }
    }
    for reason in &risk.reasons {
        let (word, role) = crate::answer::present::level(reason.level);
        let token = given::clipped(&reason.token, PIECE);
        line(&[(role, word), (Role::Plain, &format!(" {token}: {}", given::clipped(&reason.why, 4 * PIECE)))])?;
    }
    if findings.is_empty() && risk.reasons.is_empty() {
        line(&[(Role::Good, "nothing against it")])?;
    }
    if unlisted > 0 {
        line(&[(Role::Dim, &format!("and {unlisted} more; look at its commands one by one"))])?;
    }
    Ok(())
}
