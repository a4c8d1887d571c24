//! `caro agent`: works on a task in several steps, with tools. The steps are shown as they happen; the answer is on
//! stdout.
//!
//! - `forging`: makes a skill if a run fails for lack of one. `shards`: reads a tree of files in parts.
//! - [`resume`], [`events`], [`session`], [`stats`]: the verbs for earlier runs.

pub mod events;
mod forging;
pub mod resume;
pub mod session;
mod shards;
pub mod stats;

use crate::harness::forging::Examples;
use crate::harness::{Drive, end, view, wire};
use crate::setup::wire::Wants;
use crate::term::ui::in_line;
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::AgentRun;
use caro_agent::blueprint::Blueprint;
use caro_agent::harness::Prepared;
use caro_agent::plan::{self, Plan, Source};
use caro_agent::runtime::Driven;
use caro_agent::state::Limits;
use caro_agent::turn::{Step, Task};
use caro_documents::needs_knowledge;
use std::path::PathBuf;

/// Work on a task in several steps, with tools
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 answered, 1 cannot be done, 2 usage or internal, 3 went in circles or not seen to be done, \
                        4 a limit ended it, 130 Ctrl-C (`caro resume` goes on)."
)]
pub struct Args {
    /// The task, in plain words
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,
    /// The session it belongs to; a new one if not given
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only show how many steps it may take, and in which parts
    #[arg(long)]
    plan_only: bool,
    /// Who makes the plan: the words of the task (heuristic), or the model in one request more (model). It can only add
    /// steps and divide the task otherwise
    #[arg(long, value_enum, value_name = "WHO", default_value_t)]
    plan: Planner,
    /// The most steps; by default the plan decides, 5 to 20. With fewer than 5 it may end before it has looked, acted and
    /// answered
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// The most calls in one step, 1 to 5: a small model calls for what it has not seen yet if it may call for more
    /// than one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    batch: u8,
    /// Only show what the model would be told first; a model that is not here is not fetched
    #[arg(long, conflicts_with_all = ["json", "events"])]
    show_prompt: bool,
    /// Only show what would be put into the prompt, and why; likewise
    #[arg(long, conflicts_with_all = ["json", "events"])]
    explain: bool,
    /// Where no skill fits and it cannot be done otherwise: make a skill from the examples, and try once more. In a terminal
    /// it is asked for without this
    #[arg(long)]
    forge: bool,
    /// Read this folder, or this long text, in at most eight parts and answer the question about it; nothing is changed
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::AnyPath,
          conflicts_with_all = ["plan_only", "plan", "max_steps", "batch", "show_prompt", "explain", "forge", "example", "sample"])]
    shards: Option<PathBuf>,
    /// The tests of a skill.
    #[command(flatten)]
    examples: Examples,
    /// How it is driven.
    #[command(flatten)]
    drive: Drive,
}

/// The maker of the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Planner {
    /// The words of the task.
    #[default]
    Heuristic,
    /// The model; where what it writes cannot be used, the words of the task.
    Model,
}

/// The document of `--plan-only --json`.
#[derive(serde::Serialize)]
struct PlanOnly<'a> {
    steps: u32,
    max_steps: u32,
    parts: &'a [String],
    source: Source,
}

/// Works on a task.
///
/// # Errors
/// If the run cannot start or is broken off, or the task cannot be done. With `--json` or `--events` only the report
/// says how a run ended.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    cx.with_error_document(args.drive.json, work(args, cx))
}

fn work(args: &Args, cx: &Cx) -> Outcome {
    let text = args.words.join(" ").trim().to_owned();
    if let Some(why) = plan::unclear(&text) {
        return Err(Failure::usage(why).hint("for example: `caro agent \"count the errors in logs/app.log\"`"));
    }
    args.drive.admit(&text, "task")?;
    if let Some(place) = &args.shards {
        return shards::run(&text, place, args.session.as_deref(), &args.drive, cx);
    }
    if args.examples.is_given() {
        args.examples.order(&text, cx)?;
    }
    let plan = Plan::heuristic(&text);
    let max_steps = args.max_steps.unwrap_or_else(|| plan.max_steps());
    if args.plan_only && args.plan == Planner::Heuristic {
        return plan_only(&plan, max_steps, args.drive.json, cx);
    }
    let root = cx.folder()?;
    let root = root.canonicalize().unwrap_or(root);
    let session = wire::session(args.session.as_deref(), cx)?;
    let only_shows = args.show_prompt || args.explain;
    let wants = if only_shows { Wants::Sizes } else { Wants::Answers };
    let harness = wire::open(cx, &args.drive, "agent", args.drive.options(), &root, wants)?;
    let prepare = || {
        let task = Task { max_steps, batch: usize::from(args.batch), ..harness.task(&text, &session) };
        let cancel = cx.interrupt().cancel().clone();
        let run = harness.prepare(&task, cancel, &mut |warning| cx.ui.warn(&in_line(warning)))?;
        Ok::<_, Failure>((task, run))
    };
    let (task, mut run) = prepare()?;
    let new_run = |task| match args.plan {
        Planner::Heuristic => AgentRun::new(task),
        // a number that the user gave is not changed
        Planner::Model => AgentRun::new(task).planned_by_model(args.max_steps.map_or(plan::CAP, |_| max_steps)),
    };
    if only_shows {
        run.recall_read()?;
        return show(&run, AgentRun::new(task.clone()), &new_run(task), args.explain, cx);
    }
    let limited_run = |task| {
        let mut turn = new_run(task);
        turn.limit(args.drive.limits(Limits::default()));
        turn
    };
    let begin = |run: &mut Prepared<'_>, turn: AgentRun| {
        wire::begin(run, &turn, cx.interrupt().cancel(), cx)?;
        run.recall_read()?;
        drive_run(run, turn, 1, &args.drive, cx)
    };
    let turn = limited_run(task);
    if args.plan_only {
        let runtime = run.runtime(1, Vec::new(), None).unrecorded();
        let turn = cx.block_on(runtime.planned(turn))?;
        if cx.interrupt().cancel().is_cancelled() {
            return Err(Failure::silent(Exit::Interrupted));
        }
        return plan_only(&turn.task().plan, turn.task().max_steps, args.drive.json, cx);
    }
    let first = begin(&mut run, turn)?;
    if forging::lacks_skill(&first, &run) && forging::make_skill(args, &text, &harness, cx)? {
        let (task, mut run) = prepare()?;
        let driven = begin(&mut run, limited_run(task))?;
        return report_end(&run, driven, &args.drive, cx);
    }
    report_end(&run, first, &args.drive, cx)
}

fn plan_only(plan: &Plan, max_steps: u32, json: bool, cx: &Cx) -> Outcome {
    if json {
        cx.ui.document(&PlanOnly { steps: plan.steps, max_steps, parts: &plan.parts, source: plan.source })?;
        return Ok(Exit::Success);
    }
    cx.ui.line(&plan.steps.to_string())?;
    for (i, part) in plan.parts.iter().enumerate() {
        cx.ui.aside(crate::term::ui::Role::Plain, &format!("{}. {part}", i + 1));
    }
    Ok(Exit::Success)
}

/// Shows the first prompt, after that of the planner if a model makes the plan; or, with `explain`, how the first
/// prompt is assembled. The model is not asked.
fn show(run: &Prepared<'_>, turn: AgentRun, planned: &AgentRun, explain: bool, cx: &Cx) -> Outcome {
    let asks = needs_knowledge(&turn.task().text);
    let runtime = run.runtime(1, Vec::new(), None);
    let (turn, assembly) = runtime.preview(turn);
    let plan = runtime.preview_plan(planned);
    if explain {
        let planner = plan.map(|_| Blueprint::Planner);
        let named = planner.iter().chain(&runtime.config.blueprints).map(Blueprint::to_string);
        cx.ui.line(&format!("assembly: {}", named.collect::<Vec<_>>().join(", ")))?;
        cx.ui.line(&match asks {
            Some(word) => format!("knowledge: yes ({word})"),
            None => "knowledge: no".into(),
        })?;
        let skills: Vec<String> =
            run.skills().all().map(|(skill, why)| format!("{} ({why})", skill.front.name)).collect();
        cx.ui.line(&format!("skills: {}", if skills.is_empty() { "none".to_owned() } else { skills.join(", ") }))?;
        for layer in &assembly.layers {
            let mark = if layer.trusted { "" } else { " (data)" };
            cx.ui.line(&format!("{:>4}  {}{mark}: {} tokens", layer.priority, layer.name, layer.tokens))?;
        }
        for name in &assembly.dropped {
            cx.ui.line(&format!("      {name}: left out, it did not fit"))?;
        }
        for (name, why) in &assembly.failed {
            cx.ui.line(&format!("      {name}: left out, {why}"))?;
        }
        let tools: Vec<&str> = turn.tools().iter().map(|t| t.name.as_str()).collect();
        cx.ui.line(&format!("tools: {}", tools.join(", ")))?;
        if let Step::Reply(_) = turn.next() {
            cx.ui.line("asked first: only for an answer out of these texts")?;
        }
        return Ok(Exit::Success);
    }
    for (name, why) in &assembly.failed {
        cx.ui.warn(&format!("{name} is left out: {why}"));
    }
    let plan = plan.map(|ask| ask.prompt.messages).unwrap_or_default();
    let marked = |for_plan: bool| move |message| (message, if for_plan { " (planner)" } else { "" });
    let first = match turn.next() {
        Step::Reply(reply) => reply.prompt,
        Step::Draft(text) => text.prompt,
        _ => turn.prompt(),
    };
    for (message, mark) in plan.into_iter().map(marked(true)).chain(first.messages.into_iter().map(marked(false))) {
        let role = match message.role {
            caro_model::Role::System => "system",
            caro_model::Role::User => "user",
            caro_model::Role::Assistant => "assistant",
        };
        cx.ui.data(&format!("--- {role}{mark}\n{}", message.text))?;
    }
    Ok(Exit::Success)
}

/// Drives a run and reports how it ended.
fn drive(run: &Prepared<'_>, turn: AgentRun, first_event: u64, drive: &Drive, cx: &Cx) -> Outcome {
    let driven = drive_run(run, turn, first_event, drive, cx)?;
    report_end(run, driven, drive, cx)
}

/// Drives a run until it is done or stopped, and shows its steps.
fn drive_run(run: &Prepared<'_>, turn: AgentRun, first_event: u64, drive: &Drive, cx: &Cx) -> Result<Driven, Failure> {
    view::show_during(cx, drive.shows(), drive.verbose(), |signals| {
        let runtime = run.runtime(first_event, vec![signals.sink()], signals.approver(cx.ui.can_ask_at_terminal()));
        cx.block_on(runtime.run(turn))
    })
}

/// Reports how a run ended.
fn report_end(run: &Prepared<'_>, driven: Driven, drive: &Drive, cx: &Cx) -> Outcome {
    match driven {
        Driven::Done(report) => end::print_report(&report, drive, cx),
        Driven::Stopped(turn) => end::print_stopped(run, &turn, drive, cx),
    }
}
