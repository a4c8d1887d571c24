//! `caro eval`: puts tasks to the model, runs its answers in a sandbox and reports how many did what was asked.
//!
//! - [`suite`]: reads suites of tasks. [`stage`]: fixtures, userlands, running.
//! - [`compare`]: judges what a run did. [`stats`]: statistics of a score. [`report`]: the report.
//!
//! Commands run only in a view of the machine that is thrown away, and dangerous answers are not run at all.

pub mod compare;
pub mod report;
pub mod stage;
pub mod stats;
pub mod suite;

use crate::answer::ask::{Place, ask, failure, milliseconds};
use crate::answer::present;
use crate::flags::AnswerArgs;
use crate::setup::wire::{self, Wired};
use crate::term::ui::{Role, plural};
use crate::{Cx, Exit, Failure, Outcome, Settings};
use caro_base::files;
use caro_command::{Answer, Recipe, Trace};
use caro_manual::{Manual, Setup};
use caro_shell::safety::{Level, assess};
use caro_shell::{Target, Userland, parse};
use compare::{Verdict, verdict};
use report::{Report, TaskReport, name};
use stage::{Stage, Userspace};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use suite::{Suite, Task};

/// The format of a suite, for the help. Lines have at most 78 columns: the help would wrap a longer one, and what
/// users copy from it has to be a valid suite.
const FORMAT: &str = "\
A suite is a TOML file:
  target = \"linux-gnu\"       # or linux-busybox; left out: this machine

  [fixture.shop]             # a file tree; also: sizes, dirs, links, modes,
                             # ages (days), setup (a shell line)
  files = { \"a.log\" = \"one\\ntwo\\n\", \"logs/b.log\" = \"\" }

  [[task]]
  id = \"logs\"
  request = \"list all log files\"
  fixture = \"shop\"
  reference = \"find . -name '*.log'\"    # or several: one must be met
  output = \"paths\"           # exact (default), sorted, paths,
                             # ordered-paths, table, ordered-table,
                             # number, any
  files = \"same\"             # same (default), times, names, any
  then = \"\"                  # a line run afterwards, whose output is
                             # compared too
  cwd = \"\"                   # folder of the fixture to run in
  # instead of a reference, or besides it:
  # expect = { stdout = \"a.log\\nlogs/b.log\\n\", regex = [\"b.log\"] }
  # also: fails = true; created, changed, deleted: lists of paths. Without
  # stdout any output will do; stdout = \"\" wants none

or JSON Lines, one task a line, with the fixture inside.";

/// Score this model and these settings on tasks of your own: answers are run in a sandbox and compared
#[derive(Debug, clap::Args)]
#[command(after_long_help = FORMAT)]
pub struct Args {
    /// Suites of tasks (.toml, .jsonl)
    #[arg(value_name = "SUITE", required = true)]
    suites: Vec<PathBuf>,
    /// Only tasks whose id contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Compare with an earlier report (the output of --json), task by task
    #[arg(long, value_name = "REPORT")]
    against: Option<PathBuf>,
    /// Leave these findings out, by id: what is a check worth?
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    without: Vec<String>,
    /// Check the suites instead: every reference is run, twice, and doing nothing must not pass. Needs no model
    #[arg(long, conflicts_with_all = ["against", "json"])]
    check: bool,
    /// How to answer.
    #[command(flatten)]
    answer: AnswerArgs,
}

/// Evaluates, or checks the suites.
///
/// # Errors
/// If a suite is invalid, no model can be opened, or there is no sandbox.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let mut suite = Suite::read(&args.suites)?;
    suite.tasks.retain(|task| args.only.as_ref().is_none_or(|text| task.id.contains(text)));
    if suite.tasks.is_empty() {
        return Err(no_tasks(args));
    }
    let earlier = args.against.as_ref().map(|file| read_report(file)).transpose()?;
    let mut runner = Runner::open(&suite)?;
    if args.check {
        return check(&suite, &mut runner, cx);
    }
    let settings = cx.settings(&args.answer.layer())?.for_many();
    let runtime = cx.runtime()?;
    let mut wired = wire::open(cx, &settings)?;
    wired.recipe.without = args.without.as_slice().into();
    let mut asker = Asker { args: &args.answer, cx, settings, runtime, applets: None, wired };
    let mut tasks = Vec::with_capacity(suite.tasks.len());
    for task in &suite.tasks {
        let _status = cx.ui.status("evaluating");
        tasks.push(asker.task(&suite, task, &mut runner)?);
    }
    let time = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_secs());
    let config = cx.config(&args.answer.layer())?;
    let settings = crate::setup::config::KEYS.iter().map(|k| (k.name.to_owned(), config.shown(k.name))).collect();
    let mut report = Report::of(asker.wired.recipe.model.id().to_owned(), settings, time, tasks);
    report.against = earlier.map(|earlier| report.against(&earlier));
    crate::wind_up(asker.runtime);
    if args.answer.json {
        cx.ui.document(&report)?;
    } else {
        table(&report, cx)?;
    }
    Ok(Exit::Success)
}

/// The failure of suites without a task that is to be run.
fn no_tasks(args: &Args) -> Failure {
    if let Some(text) = &args.only {
        return Failure::usage(format!("there is no task whose id contains `{text}`"))
            .hint("leave --only out, or look at the ids in the suite");
    }
    let files: Vec<String> = args.suites.iter().map(|file| file.display().to_string()).collect();
    Failure::usage(format!("there is no task in {}", files.join(", ")))
        .hint("`caro eval --help` shows what a suite looks like")
}

/// Most bytes of an earlier report.
const MAX_REPORT: u64 = 256 << 20;

/// Reads an earlier report.
fn read_report(file: &std::path::Path) -> Result<Report, Failure> {
    let hint = "it must be what `caro eval --json` printed";
    let wrong = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", file.display())).hint(hint);
    serde_json::from_slice(&files::read(file, MAX_REPORT).map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))
}

/// The stage with the userlands that the tasks need.
struct Runner {
    stage: Stage,
    native: Userspace,
    busybox: Option<Userspace>,
}

impl Runner {
    fn open(suite: &Suite) -> Result<Self, Failure> {
        let stage = Stage::open()?;
        let busybox = suite.tasks.iter().any(|t| wants_busybox(t.target)).then(|| stage.busybox()).transpose()?;
        for task in &suite.tasks {
            if let Some(target) = task.target.filter(|t| !wants_busybox(Some(*t)) && t.name() != "linux-gnu") {
                return Err(Failure::usage(format!(
                    "task `{}`: commands for {} cannot be run here",
                    task.id,
                    target.name()
                ))
                .hint("tasks run on linux-gnu and linux-busybox"));
            }
        }
        Ok(Self { native: stage.native(), stage, busybox })
    }

    fn run(&mut self, suite: &Suite, task: &Task, command: &str) -> Result<compare::Outcome, Failure> {
        let space = match &self.busybox {
            Some(busybox) if wants_busybox(task.target) => busybox,
            _ => &self.native,
        };
        self.stage.run(suite, task, space, command)
    }

    fn references(&mut self, suite: &Suite, task: &Task) -> Result<Vec<compare::Outcome>, Failure> {
        task.references.iter().map(|command| self.run(suite, task, command)).collect()
    }
}

fn wants_busybox(target: Option<Target>) -> bool {
    target.is_some_and(|t| t.userland == Userland::Busybox)
}

/// Puts tasks to the model.
struct Asker<'a> {
    args: &'a AnswerArgs,
    cx: &'a Cx,
    settings: Settings,
    runtime: tokio::runtime::Runtime,
    wired: Wired,
    /// The recipe for busybox, made when it is first needed.
    applets: Option<Recipe>,
}

impl Asker<'_> {
    fn task(&mut self, suite: &Suite, task: &Task, runner: &mut Runner) -> Result<TaskReport, Failure> {
        let cwd = runner.stage.folder(suite, task)?;
        let space = match &runner.busybox {
            Some(busybox) if wants_busybox(task.target) => busybox,
            _ => &runner.native,
        };
        let recipe = recipe(&mut self.applets, &self.wired, space, self.cx);
        let mut settings = self.settings.clone();
        settings.target = task.target.or(settings.target);
        settings.shell = Some(space.dialect);
        let dialect = space.dialect;
        let place = Place::of(&recipe.context, &settings, Some(cwd));
        let ask = ask(task.request.clone(), &place, &settings, self.args, self.cx.interrupt().cancel());
        let started = Instant::now();
        let (mut first, mut seen) = (None::<String>, BTreeSet::new());
        let mut listen = |event: Trace| {
            if let Trace::Checked { iteration, cmd, findings, .. } = &event {
                if *iteration == 1 {
                    first.get_or_insert_with(|| cmd.clone());
                }
                seen.extend(findings.iter().map(|finding| finding.id.clone()));
            }
            present::trace(&self.cx.ui, self.args, &event);
        };
        let answered = self.runtime.block_on(recipe.answer(&ask, &mut listen)).map_err(|e| failure(e, &settings));
        let ms = milliseconds(started.elapsed());
        let seen = seen.into_iter().collect();
        let mut report = TaskReport {
            id: task.id.clone(),
            request: task.request.clone(),
            target: place.target.name().into(),
            verdict: Verdict::NoCommand,
            cmd: String::new(),
            error: None,
            first: None,
            confidence: 0.0,
            iterations: 0,
            findings: Vec::new(),
            seen,
            ms,
        };
        let answer = match answered {
            Ok(answer) => answer,
            Err(f) if f.exit == Exit::Interrupted => return Err(f),
            Err(f) => return Ok(TaskReport { error: Some(f.message), ..report }),
        };
        let references = runner.references(suite, task)?;
        report.verdict = judge(suite, task, runner, &answer.cmd, dialect, &references)?;
        if answer.iterations > 1
            && let Some(first) = first
        {
            let same = first == answer.cmd;
            let before = if same { report.verdict } else { judge(suite, task, runner, &first, dialect, &references)? };
            report.first = Some((first, before));
        }
        let Answer { cmd, confidence, iterations, findings, refusal, .. } = answer;
        let findings = findings.into_iter().map(|f| f.id).collect();
        Ok(TaskReport { cmd, confidence, iterations, findings, error: refusal, ..report })
    }
}

/// The recipe for a userland; the model is the same for all.
fn recipe<'r>(applets: &'r mut Option<Recipe>, wired: &'r Wired, space: &Userspace, cx: &Cx) -> &'r Recipe {
    let Some(context) = &space.context else { return &wired.recipe };
    applets.get_or_insert_with(|| {
        // the applets are in a folder of this run, so their manuals are not cached
        let setup = Setup { man: None, ..Setup::of_process(None, cx.cwd.clone()) };
        Recipe {
            model: wired.recipe.model.clone(),
            context: Arc::new(context.clone()),
            manual: Some(Arc::new(Manual::open(setup))),
            documents: wired.recipe.documents.clone(),
            adapted: wired.recipe.adapted,
            without: wired.recipe.without.clone(),
        }
    })
}

/// Runs a command, unless it is empty or dangerous, and judges it.
fn judge(
    suite: &Suite,
    task: &Task,
    runner: &mut Runner,
    command: &str,
    dialect: caro_shell::Dialect,
    references: &[compare::Outcome],
) -> Result<Verdict, Failure> {
    if command.trim().is_empty() {
        return Ok(Verdict::NoCommand);
    }
    if assess(&parse(command, dialect)).level == Level::Danger {
        return Ok(Verdict::Dangerous);
    }
    let got = runner.run(suite, task, command)?;
    Ok(verdict(task, &got, references))
}

/// Checks the tasks: runs every reference twice and `true` once. The exit code is 0 if each reference passes with the
/// same result, none fails unless it is expected to, and doing nothing passes no task.
fn check(suite: &Suite, runner: &mut Runner, cx: &Cx) -> Outcome {
    let mut bad = 0usize;
    for task in &suite.tasks {
        let _status = cx.ui.status("checking");
        let mut problems = Vec::new();
        let (once, again) = (runner.references(suite, task)?, runner.references(suite, task)?);
        for (at, (one, two)) in once.iter().zip(&again).enumerate() {
            let command = &task.references[at];
            let found = verdict(task, one, std::slice::from_ref(two));
            if found != Verdict::Passed {
                let printed = if one.stdout.is_empty() { "nothing".into() } else { format!("{:?}", one.stdout) };
                let result = format!("{}, {printed} printed", one.status);
                problems.push(format!("`{command}` does not pass, or not each time: {} ({result})", name(found)));
            } else if !one.status.success() && !task.expect.as_ref().is_some_and(|e| e.fails) {
                problems.push(format!("`{command}` fails ({}), and no `expect` says that it is to", one.status));
            }
        }
        let idle = runner.run(suite, task, "true")?;
        if verdict(task, &idle, &once) == Verdict::Passed {
            problems.push("doing nothing passes".into());
        }
        bad += usize::from(!problems.is_empty());
        for problem in problems {
            cx.ui.line(&format!("{} {}", cx.ui.paint(Role::Danger, &task.id), cx.ui.paint(Role::Plain, &problem)))?;
        }
        if cx.interrupt().cancel().is_cancelled() {
            return Err(Failure::silent(Exit::Interrupted));
        }
    }
    cx.ui.line(&format!("{}, {bad} bad", plural(suite.tasks.len(), "task")))?;
    Ok(if bad == 0 { Exit::Success } else { Exit::No })
}

/// The number of tasks won or lost, and their ids.
fn count_and_ids(ids: &[String], what: &str) -> String {
    let which = if ids.is_empty() { String::new() } else { format!(" ({})", ids.join(" ")) };
    format!("{} {what}{which}", ids.len())
}

/// Prints the report as text.
fn table(report: &Report, cx: &Cx) -> Result<(), Failure> {
    let ui = &cx.ui;
    for task in report.tasks.iter().filter(|t| !t.passed()) {
        let (id, word) = (ui.paint(Role::Accent, &task.id), ui.paint(Role::Caution, &name(task.verdict)));
        let shown = match &task.error {
            Some(error) if task.cmd.is_empty() => error,
            _ => &task.cmd,
        };
        ui.line(&format!("{id}  {word}  {}", ui.paint(Role::Plain, shown)))?;
    }
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let row = |head: &str, text: String| ui.line(&format!("{head:<13}{text}"));
    row("model", report.model.clone())?;
    let (low, high) = report.interval;
    let score = format!("{} of {}: {}", report.passed, report.asked, percent(report.score));
    row("passed", format!("{score} (95 % interval {} to {})", percent(low), percent(high)))?;
    row("time", format!("p50 {:.0} ms, p95 {:.0} ms", report.ms_p50, report.ms_p95))?;
    let second = &report.second;
    let lift = second.lift.map_or("-".into(), |l| format!("{:+.0} %", l * 100.0));
    row(
        "iteration 2",
        format!(
            "on {} ({}): {} passed before, {} after ({lift}), {} worse",
            second.touched,
            percent(second.rate),
            second.passed_before,
            second.passed_after,
            second.regressions.len()
        ),
    )?;
    if let Some(c) = report.calibration {
        let auroc = c.auroc.map_or("-".into(), |a| format!("{a:.3}"));
        row("confidence", format!("ECE {:.3}, AUROC {auroc}, Brier {:.3}", c.ece, c.brier))?;
    }
    if let Some(paired) = &report.against {
        row(
            "against",
            format!(
                "{} in both: {}, {}, p = {:.3}",
                plural(paired.tasks, "task"),
                count_and_ids(&paired.wins, "won"),
                count_and_ids(&paired.losses, "lost"),
                paired.p
            ),
        )?;
    }
    Ok(())
}
