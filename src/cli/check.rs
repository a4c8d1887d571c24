//! `caro check 'COMMAND'`: what is wrong with a command and how dangerous it is. No model.
//!
//! `lines`: verdicts on many commands. `hook`: the answer to another agent that is about to run one.

mod hook;
pub mod lines;

use super::ask::Place;
use super::interrupt::Phase;
use super::ui::Role;
use super::{Cx, Exit, Failure, Outcome, given, rehearsal};
use caro_command::inspect::{Inspector, Manuals, Subject};
use caro_host::ExecutionContext;
use caro_manual::Manual;
use caro_shell::safety::{Level, Reason, Risk};
use caro_shell::{Dialect, Finding, Severity, Target, assess, parse};
use std::sync::Arc;
use std::time::Duration;

/// How long the manuals may take: nobody waits for a model here.
const MANUAL_WAIT: Duration = Duration::from_secs(2);

/// The most findings that are printed, and the most bytes of them.
const SHOWN: Bound = Bound { count: 20, bytes: 16 << 10 };

/// The same of a document.
pub(super) const LISTED: Bound = Bound { count: 200, bytes: 64 << 10 };

/// The most characters of a piece of the command that are printed.
const PIECE: usize = 120;

/// Check any command: syntax, programs, flags of the installed versions, platform rules, risk
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command, as one quoted argument; `-` reads it from standard input
    #[arg(value_name = "COMMAND", allow_hyphen_values = true, required_unless_present_any = ["jsonl", "hook"])]
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

/// The document of `--json`.
#[derive(Debug, serde::Serialize)]
pub(super) struct Report {
    cmd: String,
    commands_used: Vec<String>,
    findings: Vec<Finding>,
    risk: Risk,
    target: &'static str,
    shell: &'static str,
    /// Findings and reasons beyond those.
    #[serde(skip_serializing_if = "given::is_zero")]
    unlisted: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    rehearsal: Option<rehearsal::Shown>,
}

/// How much is told about one command: one of thousands of words may have a finding for each of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    count: usize,
    bytes: usize,
}

impl Bound {
    /// Cuts a list where its bound is reached, but keeps its first; how many are gone.
    fn cut<T>(self, all: &mut Vec<T>, bytes: impl Fn(&T) -> usize) -> usize {
        let (mut sum, before) = (0, all.len());
        let fitting = all.iter().take(self.count).take_while(|one| {
            sum += bytes(one);
            sum <= self.bytes
        });
        all.truncate(fitting.count().max(1));
        before - all.len()
    }

    /// The same of what a check found.
    fn cut_report(self, findings: &mut Vec<Finding>, risk: &mut Risk) -> usize {
        let of_finding = |f: &Finding| {
            let evidence: usize = f.evidence.iter().map(String::len).sum();
            f.token.len() + f.why.len() + evidence + f.fix.as_ref().map_or(0, String::len)
        };
        self.cut(findings, of_finding) + self.cut(&mut risk.reasons, |r: &Reason| r.token.len() + r.why.len())
    }
}

/// Checks a command. Exit code 0: nothing against it but hints; 1: a warning, an error or danger.
///
/// # Errors
/// If the command is empty or too long, or standard input cannot be read.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    if args.jsonl || args.hook.is_some() {
        let fail_on = args.fail_on.unwrap_or(FailOn::Danger);
        let named = args.shell.as_deref().and_then(|name| Dialect::ALL.iter().find(|(n, _)| *n == name));
        // what an agent or a file has is a command of bash, whichever shell called us
        let shell = named.map_or(Dialect::Bash, |(_, dialect)| *dialect);
        return match args.hook {
            Some(asker) => hook::run(asker, fail_on, shell, cx),
            None => lines::run(args.summary, fail_on, shell, cx),
        };
    }
    let command = given::command(args.command.as_deref().unwrap_or_default(), "check", "find . -nmae \"*.log\"")?;
    let runtime = cx.runtime()?;
    let context = Arc::new(ExecutionContext::detect(cx.dirs.cache.as_deref()));
    let mut settings = cx.settings(&[])?;
    settings.target = args.target.as_deref().and_then(Target::named).or(settings.target);
    settings.shell = args
        .shell
        .as_deref()
        .and_then(|name| Some(Dialect::ALL.iter().find(|(n, _)| *n == name)?.1))
        .or(settings.shell);
    super::ask::paired(&settings)?;
    let place = Place::of(&context, &settings, None);
    // looking up may take its moment, and what was begun is ended well
    let _phase = cx.interrupt().during(Phase::Ends);
    let bound = if args.json { LISTED } else { SHOWN };
    let looked = look(command.clone(), &place, context, super::wire::manual(cx), args.rehearse, bound);
    let (report, clean) = runtime.block_on(looked)?;
    super::wind_up(runtime);
    if args.json {
        cx.ui.document(&report)?;
    } else {
        print(&report.findings, &report.risk, report.unlisted, cx)?;
        if cx.ui.out_is_terminal() {
            for told in super::undo::counted(&command, &place) {
                cx.ui.line(&cx.ui.paint(Role::Caution, &told))?;
            }
        }
        if let Some(shown) = &report.rehearsal {
            rehearsal::print(shown, &place.cwd, cx)?;
        }
    }
    let fails = args.fail_on.map_or(!clean, |on| on.fails_with(&report.findings, report.risk.level));
    Ok(if fails { Exit::No } else { Exit::Success })
}

/// Looks at a command; true if there is nothing against it but hints.
///
/// # Errors
/// If it cannot be tried out.
pub(super) async fn look(
    command: String,
    place: &Place,
    context: Arc<ExecutionContext>,
    manual: Arc<Manual>,
    rehearse: bool,
    bound: Bound,
) -> Result<(Report, bool), Failure> {
    let inspector = Inspector::new(context.clone(), Some(manual));
    let subject = Subject { request: "", cwd: &place.cwd, target: place.target, dialect: place.dialect };
    let mut manuals = Manuals::new();
    let mut draft = inspector.inspect(command.clone(), 1.0, subject, &mut manuals, MANUAL_WAIT).await;
    // what is dangerous is no better for being written otherwise
    let is_dangerous = |fix: &String| assess(&parse(fix, place.dialect)).level == Level::Danger;
    draft.findings.iter_mut().for_each(|f| drop(f.fix.take_if(|fix| is_dangerous(fix))));
    let rehearsal = if rehearse { Some(rehearsal::try_out(&command, place, &context).await?) } else { None };
    let clean = draft.findings.iter().all(|f| f.severity == Severity::Hint) && draft.risk.level < Level::Danger;
    let unlisted = bound.cut_report(&mut draft.findings, &mut draft.risk);
    let report = Report {
        cmd: draft.cmd,
        commands_used: draft.commands_used,
        findings: draft.findings,
        risk: draft.risk,
        target: place.target.name(),
        shell: place.dialect.name(),
        unlisted,
        rehearsal,
    };
    Ok((report, clean))
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
        let (word, role) = super::present::level(reason.level);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_by_its_number_and_by_its_size_and_keeps_its_first() {
        let bound = Bound { count: 3, bytes: 10 };
        let cut = |mut all: Vec<&str>| {
            let gone = bound.cut(&mut all, |one| one.len());
            (all.len(), gone)
        };
        assert_eq!(cut(vec![]), (0, 0));
        assert_eq!(cut(vec!["1", "2", "3", "4", "5"]), (3, 2));
        assert_eq!(cut(vec!["12345", "12345", "1"]), (2, 1));
        assert_eq!(cut(vec!["12345678901", "1"]), (1, 1));
    }
}
