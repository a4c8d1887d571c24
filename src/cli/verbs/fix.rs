//! `caro fix`: repairs a command that failed, by rules ([`caro_command::fix`]) or, where no rule fits, by the model.
//!
//! The failed command is not run. With `--try`, or after a yes, it is tried in a sandbox in which it can change
//! nothing and reach nothing, to see its error ([`caro_exec::rehearse`]).

use crate::answer::ask::{self, Place};
use crate::answer::asker::Asker;
use crate::answer::deliver::{Delivery, deliver};
use crate::answer::execute::check_can_ask;
use crate::answer::run::{ExecuteOptions, program};
use crate::answer::{followup, present, revise};
use crate::flags::AnswerArgs;
use crate::setup::wire::{self, Wired};
use crate::term::typed::agreed;
use crate::term::ui::Role;
use crate::term::{first, given, keys};
use crate::{Cx, Exit, Failure, Outcome, Settings, env};
use caro_base::files;
use caro_command::fix::{self, Absent, Facts, Failed, Repair, complaint};
use caro_command::inspect::{Inspector, Manuals, Subject};
use caro_command::rehearsal::{RehearsalMode, mode_for_suggestion};
use caro_command::{Answer, CommandRequest, History, PastExchange, checked};
use caro_exec::rehearse::{RehearsalError, RehearsalJob, read_only, rehearse};
use caro_exec::{Limits, Status};
use caro_host::ExecutionContext;
use caro_host::packages::PackageIndex;
use caro_manual::{Entry, Manual, Program};
use caro_policy::Redactor;
use caro_shell::safety::Level;
use caro_shell::{Dialect, parse};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Most bytes read of an error text.
const MAX_ERROR_BYTES: u64 = 4 << 20;
/// The time for which a command may run when it is tried.
const TRY_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest wait for manuals of the repaired command that are not cached: its checks are only a second look.
const MANUAL_WAIT: Duration = Duration::from_millis(20);
/// The confidence of a repair by rule: each rule rests on a fact, but the intended command is a guess.
const RULE_CONFIDENCE: f64 = 0.9;
/// Most stages of a pipeline whose statuses are read.
const MAX_STAGES: usize = 64;
/// Most characters of an error that the model is shown.
const MAX_SHOWN: usize = 1200;

/// Arguments of `caro fix`.
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "With no COMMAND the last one of the shell is repaired; `caro init SHELL --fix` makes the shell tell which that was.\n\
                        The command is not run. Its error is what helps most: give it with --stderr, or let caro --try the command where \
                        nothing can be changed. A rule has one command to offer; -n counts where the model is asked."
)]
pub struct Args {
    /// The command that failed, as one quoted argument; `-` reads it from standard input
    #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
    command: Option<String>,
    /// Its standard error: a file, or `-` for standard input
    #[arg(long, value_name = "FILE")]
    stderr: Option<PathBuf>,
    /// Its exit status
    #[arg(long, value_name = "N", value_parser = status)]
    status: Option<i32>,
    /// The exit statuses of the stages of its pipeline, as the shell has them: "1 0"
    #[arg(long, value_name = "LIST")]
    stages: Option<String>,
    /// Try the command once more, in a throw-away view in which nothing can be changed, to see its error
    #[arg(long = "try")]
    tries: bool,
    /// Repair by rules alone, without the model
    #[arg(long)]
    no_model: bool,
    /// Run the repaired command after asking
    #[arg(short = 'x', long, conflicts_with = "json")]
    execute: bool,
    /// Offer no keys after the answer at a terminal
    #[arg(long)]
    no_keys: bool,
    /// The line editor of a shell waits for the command (see `caro init`)
    #[arg(long, hide = true, conflicts_with_all = ["execute", "json"])]
    widget: bool,
    /// How to answer where the model is asked
    #[command(flatten)]
    answer: AnswerArgs,
}

/// The part of the `--json` document that is added to the answer.
#[derive(Debug, serde::Serialize)]
struct FixReport {
    /// The command that failed.
    failed: String,
    /// The origin of its error text.
    error_from: Source,
    /// The fault, in one line; `None` if the model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// The kind of repair; `None` if the model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<fix::Class>,
    /// The complaints found in the error text.
    complaints: Vec<complaint::Complaint>,
    /// The number, from 1, of the stage that failed although the pipeline as a whole reported success.
    #[serde(skip_serializing_if = "Option::is_none")]
    masked_stage: Option<usize>,
}

/// The origin of an error text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Source {
    /// The user gave it.
    Given,
    /// It was seen when the command was tried.
    Tried,
    /// There is no error text.
    None,
}

/// Repairs a command.
///
/// # Errors
/// If there is nothing to repair, or no repair.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    cx.with_error_document(args.answer.json, repair_command(args, cx))
}

fn repair_command(args: &Args, cx: &Cx) -> Outcome {
    if args.execute {
        check_can_ask(cx)?;
    }
    let mut failed = failed_command(args, cx)?;
    let settings = cx.settings(&args.answer.layer())?;
    ask::check_target(&settings)?;
    let runtime = cx.runtime()?;
    let context = Arc::new(ExecutionContext::detect(cx.dirs.cache.as_deref()));
    let place = Place::of(&context, &settings, Some(cx.folder()?));
    if place.target.os != context.target.os {
        return Err(Failure::usage(format!("what failed on {} is not known here", place.target.name()))
            .hint("call it on the machine on which the command failed"));
    }
    let manual = wire::manual(cx);
    let keys = args.widget.then(|| keys::watch(cx.interrupt()));
    let packages = PackageIndex::new(&context.available_commands, is_root());
    let repairer =
        Repairer { runtime: &runtime, context: &context, manual: &manual, packages: &packages, place: &place };
    let mut source = if failed.stderr.is_some() { Source::Given } else { Source::None };
    if args.tries && source == Source::None {
        source = repairer.try_out(&mut failed, cx)?;
    }
    let mut repair = repairer.diagnose(&failed);
    let mut absent = if repair.is_none() { repairer.absent(&failed) } else { None };
    let is_explained = repair.is_some() || absent.as_ref().is_some_and(|absent| absent.is_whole_fault);
    if !is_explained && source == Source::None && !args.widget && !args.answer.json && agrees_to_try(cx)? {
        source = repairer.try_out(&mut failed, cx)?;
        repair = repairer.diagnose(&failed);
        absent = repairer.absent(&failed);
    }
    let masked = failed.masked();
    let report = FixReport {
        failed: failed.command.clone(),
        error_from: source,
        why: repair.as_ref().map(|repair| repair.why.clone()),
        class: repair.as_ref().map(|repair| repair.class),
        complaints: failed.stderr.as_deref().map(complaint::complaints).unwrap_or_default(),
        masked_stage: masked.map(|(at, _)| at + 1),
    };
    if let Some((at, status)) = masked {
        cx.ui.aside(
            Role::Caution,
            &format!("stage {} of the pipe failed with {status}; the status of a pipe is that of its last", at + 1),
        );
    }
    let ask = model_request(&failed, args, &place, &settings, cx);
    let (answer, wired) = match &repair {
        Some(repair) => {
            let answer = repairer.answer(repair);
            if dangerous(&answer).is_none() {
                cx.ui.aside(Role::Plain, &repair.why);
            }
            let wanted = args.answer.alternatives;
            if wanted > 1 && !args.answer.json {
                cx.ui.note(&format!("1 of {wanted}: a rule repairs it, and knows one command"));
            }
            (answer, None)
        }
        None if absent.as_ref().is_some_and(|absent| absent.is_whole_fault) || args.no_model => {
            let why = ("no rule repairs it", "without --no-model the model is asked");
            return Err(not_repaired(source, absent.as_ref(), why));
        }
        None => {
            if has_secret(&failed) {
                return Err(Failure::no("no rule repairs it, and it has a secret in it that no model is shown")
                    .hint("say in words what it should do: `caro \"...\"`"));
            }
            let (answer, wired) = by_model(&ask, args, &settings, &runtime, cx)?;
            (answer, Some(wired))
        }
    };
    drop(keys);
    if answer.cmd.is_empty() {
        crate::wind_up(runtime);
        let why = ("neither a rule nor the model repairs it", REWRITE_HINT);
        let failure = not_repaired(source, absent.as_ref(), why);
        return if args.answer.json { refusal_document(&answer, &failure, &report, cx) } else { Err(failure) };
    }
    if let Some(refusal) = dangerous(&answer) {
        crate::wind_up(runtime);
        return Err(refusal);
    }
    let mut answer = answer;
    answer.timing.total = ask::milliseconds(cx.started.elapsed());
    let is_bare = args.execute || args.widget || args.no_keys || args.answer.json;
    let has_keys = followup::should_offer(is_bare, &settings, cx);
    let asks = !args.no_model && !has_secret(&failed);
    let how = Delivery {
        args: &args.answer,
        execute: args.execute.then(ExecuteOptions::default),
        widget: args.widget,
        also: Some(("fix", serde_json::to_value(&report).map_err(Failure::internal)?)),
        request: None,
        said: revise::exchanges(&ask, &answer.cmd),
        asker: None,
    };
    if !has_keys && !args.execute {
        crate::wind_up(runtime);
        return deliver(answer, how, &place, &settings, &context, cx);
    }
    let outcome = {
        let machine = (context.clone(), Some(manual.clone()));
        let asker = Asker::new(cx, &args.answer, &settings, &place, &runtime, machine, (ask, &answer));
        let asker = match wired {
            Some(wired) => asker.with(wired),
            None => asker,
        };
        match has_keys {
            true => {
                if args.answer.timing {
                    present::timing(&cx.ui, &answer.timing);
                }
                followup::run(answer, &followup::Session { asker, asks, request: None })
            }
            false => {
                deliver(answer, Delivery { asker: asks.then_some(&asker), ..how }, &place, &settings, &context, cx)
            }
        }
    };
    crate::wind_up(runtime);
    outcome
}

/// The command that failed: the one that is given, or else the one that the shell passes in variables.
fn failed_command(args: &Args, cx: &Cx) -> Result<Failed, Failure> {
    let variable = |name| cx.env.get(name).and_then(|value| value.to_str()).map(str::to_owned);
    let (mut status, mut stages) = (args.status, args.stages.as_deref().map(stage_statuses).transpose()?);
    let command = match &args.command {
        Some(command) => {
            let reads_twice = command.trim() == given::STDIN && args.stderr.as_deref() == Some(Path::new(given::STDIN));
            if reads_twice {
                return Err(Failure::usage("standard input cannot be the command and its error at once")
                    .hint("--stderr FILE reads the error from a file"));
            }
            given::command(command, "fix", "gerp x notes.txt")?
        }
        None => {
            let Some(command) = variable(env::FAILED_COMMAND) else {
                return Err(Failure::usage("there is no command to repair").hint(
                    "give it in quotes: `caro fix 'gerp x notes.txt'`; or let the shell tell: `caro init bash --fix`",
                ));
            };
            given::check_command(&command, " to fix")?;
            status = status.or_else(|| variable(env::FAILED_STATUS)?.parse().ok());
            stages = stages.or_else(|| stage_statuses(&variable(env::FAILED_STAGES)?).ok());
            command
        }
    };
    let stages = stages.unwrap_or_default();
    let stderr = args.stderr.as_deref().map(error_text).transpose()?;
    let failed = Failed { command: command.trim().to_owned(), status, stages, stderr };
    if failed.status == Some(0) && failed.masked().is_none() && failed.stderr.is_none() {
        return Err(Failure::no(format!("`{}` did not fail", given::clipped(&failed.command, 80)))
            .hint("say what it should have done: `caro \"...\"`"));
    }
    Ok(failed)
}

/// Parses an exit status.
fn status(text: &str) -> Result<i32, String> {
    let status = text.parse().ok().filter(|status| cfg!(windows) || (0..=255).contains(status));
    status.ok_or_else(|| "an exit status is a number from 0 to 255".to_owned())
}

/// Parses the exit statuses of the stages of a pipeline: `1 0`.
fn stage_statuses(list: &str) -> Result<Vec<i32>, Failure> {
    list.split_whitespace().map(status).take(MAX_STAGES).collect::<Result<_, _>>().map_err(|why| {
        Failure::usage(format!("--stages `{}`: {why}", given::clipped(list, 80)))
            .hint("give the statuses with blanks between them: --stages \"1 0\"")
    })
}

/// Reads the error text from a file or from standard input, and returns its end.
fn error_text(file: &Path) -> Result<String, Failure> {
    let unreadable =
        |e| Failure::usage(format!("{}: {e}", file.display())).hint("--stderr names a file, or - for standard input");
    let bytes = match file == Path::new(given::STDIN) {
        true => {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::Read::take(std::io::stdin().lock(), MAX_ERROR_BYTES), &mut bytes)
                .map_err(unreadable)?;
            bytes
        }
        false => files::read(file, MAX_ERROR_BYTES).map_err(unreadable)?,
    };
    Ok(complaint::tail(&String::from_utf8_lossy(&bytes)).to_owned())
}

/// Asks the user whether the command may be tried. Where the user cannot be asked, a note says how to give its error.
fn agrees_to_try(cx: &Cx) -> Result<bool, Failure> {
    if !cx.ui.can_ask() {
        cx.ui.note("its error is not known: --stderr FILE gives it, --try looks for it where nothing can be changed");
        return Ok(false);
    }
    agreed("try it once where nothing can be changed, to see its error? [y/N]", cx)
}

/// The failure for a repaired command that is dangerous: the error may have been what kept it from doing harm, and no
/// repair goes around that.
fn dangerous(answer: &Answer) -> Option<Failure> {
    let reason = answer.risk.reasons.iter().find(|reason| reason.level == Level::Danger)?;
    let message = format!("not repaired, as it would be dangerous then: {}: {}", reason.token, reason.why);
    Some(Failure::no(message).hint("the error may be what protects you; if it is meant, type it yourself"))
}

/// The hint for a command that is not repaired although its error is known.
const REWRITE_HINT: &str = "say what it is to do, and caro writes another: `caro \"WORDS\"`";

/// The failure for a command that is not repaired. What is missing here says most; else `why` is the message, with the
/// hint that is used if its error is known.
fn not_repaired(source: Source, absent: Option<&Absent>, (message, hint): (&str, &str)) -> Failure {
    if let Some(absent) = absent {
        let message = if absent.is_whole_fault { absent.why() } else { format!("{}; {message}", absent.why()) };
        let near: Vec<String> = absent.near.iter().map(|name| format!("`{name}`")).collect();
        let near = match &near[..] {
            [] => String::new(),
            [one] => format!("near is {one}; or "),
            several => format!("near are {}; or ", several.join(", ")),
        };
        return Failure::no(message).hint(format!("{near}{REWRITE_HINT}"));
    }
    Failure::no(message).hint(match source {
        Source::None => "give its error with --stderr FILE, or --try it where nothing can be changed",
        _ => hint,
    })
}

/// Prints the JSON document of a command that the model does not repair, with the reason and the hint of `fix`.
fn refusal_document(answer: &Answer, failure: &Failure, report: &FixReport, cx: &Cx) -> Outcome {
    let mut document = present::document(answer).map_err(Failure::internal)?;
    document["refusal"] = failure.message.clone().into();
    document["hint"] = failure.hint.clone().unwrap_or_default().into();
    document["fix"] = serde_json::to_value(report).map_err(Failure::internal)?;
    cx.ui.document(&document)?;
    Ok(Exit::No)
}

/// Finds repairs for commands of one place.
struct Repairer<'a> {
    runtime: &'a Runtime,
    context: &'a Arc<ExecutionContext>,
    manual: &'a Arc<Manual>,
    packages: &'a PackageIndex<'a>,
    place: &'a Place,
}

impl Repairer<'_> {
    /// Finds a repair by rules.
    fn diagnose(&self, failed: &Failed) -> Option<Repair> {
        self.with_facts(|facts| fix::diagnose(failed, facts))
    }

    /// Finds what the command names and is not here.
    fn absent(&self, failed: &Failed) -> Option<Absent> {
        self.with_facts(|facts| fix::absent(failed, facts))
    }

    /// Calls a function with the facts of this machine.
    fn with_facts<T>(&self, call: impl FnOnce(&Facts) -> T) -> T {
        let manual = |name: &str, sub: Option<&str>| self.entry(name, sub);
        let package = |name: &str| self.runtime.block_on(self.packages.installing(name));
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let facts = Facts {
            cwd: &self.place.cwd,
            home: home.as_deref(),
            programs: &self.context.available_commands,
            dialect: self.place.dialect,
            is_root: is_root(),
            manual: &manual,
            package: &package,
        };
        call(&facts)
    }

    /// Returns the manual of a program, or of its subcommand.
    fn entry(&self, name: &str, sub: Option<&str>) -> Option<Arc<Entry>> {
        let shell = self.context.shell_of(self.place.dialect);
        let program = Program::find(name, self.place.dialect, shell, &self.context.available_commands)?;
        let entry = match sub {
            None => self.runtime.block_on(self.manual.get_or_fetch(&program)),
            Some(sub) => self.runtime.block_on(self.manual.get_or_fetch_sub(&program, sub)),
        };
        entry.ok().filter(|entry| entry.problem.is_none())
    }

    /// Tries the command where it can change nothing, and stores its error. A note says why it could not be tried.
    fn try_out(&self, failed: &mut Failed, cx: &Cx) -> Result<Source, Failure> {
        let not_tried = |why: &str| {
            cx.ui.note(&format!("not tried: {why}"));
            Ok(Source::None)
        };
        let mode = match mode_for_suggestion(&parse(&failed.command, self.place.dialect)) {
            Ok(mode) => mode,
            // the error of a command that does not parse is worth seeing, too
            Err(_) if !parse(&failed.command, self.place.dialect).errors.is_empty() => RehearsalMode::Changes,
            Err(unfit) => return not_tried(&format!("{}: {}", unfit.token, unfit.why)),
        };
        let Some(shell) = program(self.place.dialect, self.context) else {
            return not_tried(&format!("there is no {} here", self.place.dialect.name()));
        };
        let mut job = RehearsalJob::new(&shell, &failed.command, &self.place.cwd);
        job.limits = Limits { wall: TRY_TIMEOUT, ..job.limits };
        let result = self.runtime.block_on(async {
            match rehearse(&job).await {
                Err(RehearsalError::Unavailable(_)) if mode == RehearsalMode::Reads => read_only(&job).await,
                other => other,
            }
        });
        match result {
            Ok(result) => {
                if let Status::Exited(code) = result.status {
                    failed.status = failed.status.or(Some(code));
                }
                failed.stderr = Some(complaint::tail(&String::from_utf8_lossy(&result.stderr)).to_owned());
                Ok(Source::Tried)
            }
            Err(e) => not_tried(&format!("{e}; {}", e.hint())),
        }
    }

    /// Turns a repair into an answer, checked like every other.
    fn answer(&self, repair: &Repair) -> Answer {
        let inspector = Inspector::new(self.context.clone(), Some(self.manual.clone()));
        let place = self.place;
        let subject = Subject::without_request(&place.cwd, place.target, place.dialect);
        let mut manuals = Manuals::new();
        let inspection = inspector.inspect(repair.command.clone(), RULE_CONFIDENCE, subject, &mut manuals, MANUAL_WAIT);
        let draft = self.runtime.block_on(inspection);
        checked::answer(draft, "rules", repair.why.clone(), subject, &manuals)
    }
}

/// True if the failed command has a secret in it.
fn has_secret(failed: &Failed) -> bool {
    Redactor::default().text(&failed.command) != failed.command
}

/// The request to the model. The failed command and its error are in it as the previous exchange.
fn model_request(failed: &Failed, args: &Args, place: &Place, settings: &Settings, cx: &Cx) -> CommandRequest {
    let words = "write the command as it has to be".into();
    let said = vec![failed_exchange(failed, &Redactor::default(), place.dialect)];
    CommandRequest {
        before: History { said, ..History::default() },
        rejected: vec![failed.command.clone()],
        ..ask::ask(words, place, settings, &args.answer, cx.interrupt().cancel())
    }
}

/// Asks the model for a repair.
fn by_model(
    ask: &CommandRequest,
    args: &Args,
    settings: &Settings,
    runtime: &Runtime,
    cx: &Cx,
) -> Result<(Answer, Wired), Failure> {
    let wired = wire::open(cx, settings)?;
    let spent = cx.started.elapsed().saturating_sub(wired.opened.download);
    let ask = CommandRequest { timeout: settings.timeout.saturating_sub(spent), ..ask.clone() };
    let answer = first::with_progress(&cx.ui, wired.is_first && !args.answer.json, || {
        runtime.block_on(wired.recipe.answer(&ask, &mut |event| present::trace(&cx.ui, &args.answer, &event)))
    });
    let mut answer = answer.map_err(|e| ask::failure(e, settings))?;
    answer.timing.context = ask::milliseconds(wired.opened.context);
    answer.resident = wired.resident.answers();
    Ok((answer, wired))
}

/// The failed command and its error as an exchange of the conversation.
fn failed_exchange(failed: &Failed, redactor: &Redactor, dialect: Dialect) -> PastExchange {
    let stderr = failed.stderr.as_deref().map(|text| redactor.text(text)).unwrap_or_default();
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = given::clipped(&lines.join("\n"), MAX_SHOWN);
    let status = failed.status.map_or_else(String::new, |status| format!(" (exit code {status})"));
    let outcome = match shown.is_empty() {
        true => format!("That did not work{status}.\nWrite another command."),
        false => format!("That did not work{status}:\n{shown}\nWrite another command."),
    };
    let programs = caro_shell::extract_commands(&parse(&failed.command, dialect)).join(" and ");
    PastExchange { request: format!("do it with {programs}"), command: failed.command.clone(), outcome }
}

/// True if the process runs as root.
fn is_root() -> bool {
    #[cfg(unix)]
    return rustix::process::geteuid().is_root();
    #[cfg(not(unix))]
    false
}
