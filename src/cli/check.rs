//! `caro check 'COMMAND'`: what is wrong with a command and how dangerous it is. No model.

use super::interrupt::Phase;
use super::ui::Role;
use super::{Cx, Exit, Failure, Outcome, rehearsal};
use crate::command::inspect::{Inspector, Manuals, Subject};
use crate::shell::safety::Level;
use crate::shell::{Dialect, Severity, Target, assess, parse};
use std::time::Duration;

/// How long the manuals may take: nobody waits for a model here.
const MANUAL_WAIT: Duration = Duration::from_secs(2);

/// The longest command that is looked at, bytes: what a command does is held against every other one in it.
const LONGEST: usize = 16 << 10;

/// Holds a command against what can be looked at; `verb` is for the hint.
///
/// # Errors
/// If it is empty or too long.
pub fn admit(command: &str, verb: &str, example: &str) -> Result<(), Failure> {
    if command.trim().is_empty() {
        return Err(
            Failure::usage(format!("there is no command to {verb}")).hint(format!("try: caro {verb} '{example}'"))
        );
    }
    if command.len() > LONGEST {
        return Err(Failure::usage(format!("the command has {} bytes, and {LONGEST} are the most", command.len()))
            .hint("what is longer is a script: look at its commands one by one"));
    }
    Ok(())
}

/// Check any command: syntax, programs, flags of the installed versions, platform rules, risk
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command, as one quoted argument
    #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
    command: String,
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

/// The document of `--json`.
#[derive(Debug, serde::Serialize)]
struct Report<'a> {
    cmd: &'a str,
    commands_used: Vec<String>,
    findings: Vec<crate::shell::Finding>,
    risk: crate::shell::safety::Risk,
    target: &'a str,
    shell: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rehearsal: Option<rehearsal::Shown>,
}

/// Checks a command. Exit code 0: nothing against it but hints; 1: a warning, an error or danger.
///
/// # Errors
/// If the command is empty or too long.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    admit(&args.command, "check", "find . -nmae \"*.log\"")?;
    let runtime = cx.runtime()?;
    let context = std::sync::Arc::new(crate::host::ExecutionContext::detect(cx.dirs.cache.as_deref()));
    let mut settings = cx.settings(&[])?;
    settings.target = args.target.as_deref().and_then(Target::named).or(settings.target);
    settings.shell = args
        .shell
        .as_deref()
        .and_then(|name| Some(Dialect::ALL.iter().find(|(n, _)| *n == name)?.1))
        .or(settings.shell);
    super::request::paired(&settings)?;
    let place = super::request::Place::of(&context, &settings, None);
    let inspector = Inspector { context: context.clone(), manual: Some(super::wire::manual(cx)) };
    let subject = Subject { request: "", cwd: &place.cwd, target: place.target, dialect: place.dialect };
    // looking up may take its moment, and what was begun is ended well
    let _phase = cx.interrupt().during(Phase::Ends);
    let mut manuals = Manuals::new();
    let mut draft = runtime.block_on(inspector.inspect(args.command.clone(), 1.0, subject, &mut manuals, MANUAL_WAIT));
    // what is dangerous is no better for being written otherwise
    let is_dangerous = |fix: &String| assess(&parse(fix, place.dialect)).level == Level::Danger;
    draft.findings.iter_mut().for_each(|f| drop(f.fix.take_if(|fix| is_dangerous(fix))));
    let rehearsal =
        args.rehearse.then(|| runtime.block_on(rehearsal::try_out(&args.command, &place, &context))).transpose()?;
    super::wind_up(runtime);
    let clean = draft.findings.iter().all(|f| f.severity == Severity::Hint) && draft.risk.level < Level::Danger;
    if args.json {
        cx.ui.document(&Report {
            cmd: &draft.cmd,
            commands_used: draft.commands_used,
            findings: draft.findings,
            risk: draft.risk,
            target: place.target.name(),
            shell: place.dialect.name(),
            rehearsal,
        })?;
    } else {
        let line = |parts: &[(Role, &str)]| {
            let painted: String = parts.iter().map(|(role, text)| cx.ui.paint(*role, text)).collect();
            cx.ui.line(&painted)
        };
        for f in &draft.findings {
            let (word, role) = match f.severity {
                Severity::Error => ("error", Role::Danger),
                Severity::Warning => ("warning", Role::Caution),
                Severity::Hint => ("hint", Role::Accent),
            };
            line(&[
                (role, word),
                (Role::Plain, &format!(" {}: {}", f.token, f.why)),
                (Role::Dim, &format!("  [{}]", f.id)),
            ])?;
            for evidence in &f.evidence {
                line(&[(Role::Dim, &format!("    {evidence}"))])?;
            }
            if let Some(fix) = &f.fix {
                line(&[(Role::Plain, "    better: "), (Role::Command, fix)])?;
            }
        }
        for reason in &draft.risk.reasons {
            let (word, role) = super::present::level(reason.level);
            line(&[(role, word), (Role::Plain, &format!(" {}: {}", reason.token, reason.why))])?;
        }
        if draft.findings.is_empty() && draft.risk.reasons.is_empty() {
            line(&[(Role::Good, "nothing against it")])?;
        }
        if let Some(shown) = &rehearsal {
            rehearsal::print(shown, &place.cwd, cx)?;
        }
    }
    Ok(if clean { Exit::Success } else { Exit::No })
}
