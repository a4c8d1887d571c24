//! `caro agent`: a task in several steps, with tools. What it does is shown as it happens; the answer is on stdout.
//!
//! - [`wire`]: builds the harness that runs stand on. [`view`]: shows events. [`approve`]: asks before a change.
//! - [`resume`], [`events`], [`session`], [`stats`]: what can be done with runs afterwards.

mod approve;
pub mod events;
pub mod resume;
pub mod session;
pub mod stats;
pub mod view;
pub mod wire;

use super::{Cx, Exit, Failure, Outcome};
use crate::agent::Turn;
use crate::agent::blueprint::Blueprint;
use crate::agent::guard::LoopLimits;
use crate::agent::harness::{Options, Prepared, session_name};
use crate::agent::librarian::needs_knowledge;
use crate::agent::observe;
use crate::agent::plan::{self, Plan, Source};
use crate::agent::state::Limits;
use crate::agent::turn::{self, Fitting, Report, Strategy, Task};
use view::Shows;

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
    /// The most steps, at least 5; by default the plan decides, up to 20
    #[arg(long, value_name = "N")]
    max_steps: Option<u32>,
    /// The most calls in one step: a small model calls for what it has not seen yet if it may call for more than one
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u8).range(1..=5))]
    batch: u8,
    /// Only show what the model would be told first
    #[arg(long, conflicts_with_all = ["json", "events"])]
    show_prompt: bool,
    /// Only show what would be put into the prompt, and why
    #[arg(long, conflicts_with_all = ["json", "events"])]
    explain: bool,
    /// How it is driven.
    #[command(flatten)]
    drive: Drive,
}

/// How a run is driven; the same for a new one and one that is gone on with.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Drive {
    /// Print one JSON document instead of the answer
    #[arg(long, conflicts_with = "events")]
    json: bool,
    /// Print every event as a line of JSON, as it happens
    #[arg(long, value_name = "FORMAT", value_parser = ["jsonl"])]
    events: Option<String>,
    /// Tell what the prompt is made of: each provider with its priority and size, and the total
    #[arg(short, long)]
    verbose: bool,
    /// Do not ask before changes below the working folder and commands that are no danger
    #[arg(short, long)]
    yes: bool,
    /// The most requests to the model, of one run (in a conversation: of one answer); 0 for any number. `caro resume` keeps it
    #[arg(long, value_name = "N")]
    max_requests: Option<u64>,
    /// The most tokens, of prompts and completions; likewise
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// A folder below which commands may write, beside the working folder; `/` for anywhere. Changes there are asked for all
    /// the same
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    write: Vec<std::path::PathBuf>,
    /// Leave out a guard: action, loop, goal, ground
    #[arg(long, value_name = "NAME", value_parser = ["action", "loop", "goal", "ground"])]
    no_guard: Vec<String>,
    /// When a run goes in circles: an identical call is refused and the third ends it (strict), or nothing is refused and
    /// the fifth ends it (published)
    #[arg(long = "loop", value_name = "PRESET", default_value = "strict", value_parser = ["strict", "published"])]
    preset: String,
    /// Where text that gives the model orders is kept from it: in what you say and in what tools return (full), in what
    /// you say (input-only), in neither (off)
    #[arg(long, value_name = "WHAT", default_value = "full", value_parser = ["full", "input-only", "off"])]
    guardrail: String,
    /// Do not look into what `caro knowledge` has read in
    #[arg(long)]
    no_rag: bool,
    /// Neither recall notes nor take any
    #[arg(long)]
    no_memory: bool,
    /// Start no MCP servers
    #[arg(long)]
    no_mcp: bool,
    /// Let the model have helpers work on parts of the task side by side; what they spend counts as the run's own
    #[arg(long)]
    subagents: bool,
    /// Use no skills
    #[arg(long, conflicts_with = "skill")]
    no_skills: bool,
    /// When a run that has grown long is shortened: at three quarters of the window (budget), when it has more than N steps
    /// (window:N), or never (off). Old steps become a line each; with :truncate behind it they go
    #[arg(long, value_name = "WHEN", default_value = "budget", value_parser = context)]
    context: Context,
    /// Go about it as this skill says (`caro skills list`); may be given several times
    #[arg(long, value_name = "NAME")]
    skill: Vec<String>,
    /// Who the model is to be: architect, developer, researcher, or words of your own
    #[arg(long, value_name = "WHO")]
    role: Option<String>,
    /// Who decides about a part that one command can do: the command recipe (always), the model among all tools
    /// (never), or whichever suits the model (auto: a small one on this machine does better with the recipe)
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    advise: Advise,
    /// Model: an id of `caro model list`, a GGUF file, openai:URL#NAME, script:FILE
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,
}

impl Drive {
    /// The limits that a run had, and those that were given.
    pub fn limits(&self, before: Limits) -> Limits {
        let Limits { requests, tokens } = before;
        Limits { requests: self.max_requests.unwrap_or(requests), tokens: self.max_tokens.unwrap_or(tokens) }
    }

    /// The first option given that only counts when the prompt is made.
    fn of_a_prompt(&self) -> Option<&'static str> {
        let given = [
            (self.role.is_some(), "--role"),
            (!self.skill.is_empty(), "--skill"),
            (self.no_skills, "--no-skills"),
            (self.no_rag, "--no-rag"),
        ];
        given.into_iter().find_map(|(given, option)| given.then_some(option))
    }

    /// True if the layers of the prompt are told.
    pub fn verbose(&self) -> bool {
        self.verbose
    }

    /// What is shown of a run while it is driven.
    pub fn shows(&self) -> Shows {
        match (&self.events, self.json) {
            (Some(_), _) => Shows::Jsonl,
            (None, true) => Shows::Nothing,
            (None, false) => Shows::Steps,
        }
    }

    /// What is screened.
    fn screened(&self) -> observe::Mode {
        match self.guardrail.as_str() {
            "off" => observe::Mode::Off,
            "input-only" => observe::Mode::InputOnly,
            _ => observe::Mode::Full,
        }
    }

    /// How runs go.
    pub fn options(&self) -> Options {
        Options {
            fitting: self.context.0,
            subagents: self.subagents,
            notes: !self.no_memory,
            guardrail: self.screened(),
            loops: if self.preset == "published" { LoopLimits::PUBLISHED } else { LoopLimits::STRICT },
            without: self.no_guard.clone(),
            unasked: self.yes,
            skills: self.skill.clone(),
            role: self.role.clone(),
            ..Options::local()
        }
    }

    /// Holds what the person typed, a `task` or a `message`, against what may be given to a model.
    ///
    /// # Errors
    /// If it is too long, or speaks to the model and that is screened.
    pub fn admit(&self, text: &str, what: &str) -> Result<(), Failure> {
        observe::admit(text, self.screened()).map_err(|error| {
            let hint = error.hint();
            Failure::usage(format!("the {what} cannot be taken: {error}")).hint(hint)
        })
    }
}

/// When a run is shortened, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Context(pub Fitting);

/// Reads `budget`, `window:N` or `off`, the first two with `:truncate` behind them or not.
fn context(text: &str) -> Result<Context, String> {
    let (when, strategy) = match text.strip_suffix(":truncate") {
        Some(when) if when != "off" => (when, Strategy::Truncate),
        _ => (text, Strategy::SummarizeAndTruncate),
    };
    let steps = |n: &str| n.parse().ok().filter(|n| *n > 0).map(turn::Mode::SlidingWindow);
    let mode = match (when, when.strip_prefix("window:")) {
        ("budget", _) => Some(turn::Mode::TokenBudget),
        ("off", _) => Some(turn::Mode::Off),
        (_, Some(n)) => steps(n),
        _ => None,
    };
    let fitting = |mode| Context(Fitting { mode, strategy, ..Fitting::default() });
    let forms = "it is one of: budget, window:N with a number of steps, off; the first two with :truncate or without";
    mode.map(fitting).ok_or_else(|| forms.to_owned())
}

/// Who makes the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Planner {
    /// The words of the task.
    #[default]
    Heuristic,
    /// The model; where what it writes cannot be used, the words of the task.
    Model,
}

/// When the command recipe is asked for a part of the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Advise {
    /// For models that run on this machine.
    #[default]
    Auto,
    /// For every model.
    Always,
    /// For none.
    Never,
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
/// Whatever stands in the way of it. A run that fails is no error: its report says why.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let text = args.words.join(" ").trim().to_owned();
    if let Some(why) = plan::unclear(&text) {
        return Err(Failure::usage(why).hint("for example: caro agent \"count the errors in logs/app.log\""));
    }
    args.drive.admit(&text, "task")?;
    let plan = Plan::heuristic(&text);
    let max_steps = max_steps(args.max_steps, &plan, cx);
    if args.plan_only && args.plan == Planner::Heuristic {
        return plan_only(&plan, max_steps, args.drive.json, cx);
    }
    let root = cx.folder()?;
    let root = root.canonicalize().unwrap_or(root);
    let session = session_name(args.session.as_deref())?;
    let harness = wire::open(cx, &args.drive, "agent", args.drive.options(), &root)?;
    let task = Task { max_steps, batch: usize::from(args.batch), ..harness.task(&text, &session) };
    let run = harness.prepare(&task, cx.interrupt().cancel().clone(), &mut |warning| cx.ui.warn(warning))?;
    let new = |task| match args.plan {
        Planner::Heuristic => Turn::new(task),
        // a number that the person gave holds
        Planner::Model => Turn::new(task).planned_by_model(args.max_steps.map_or(plan::CAP, |_| max_steps)),
    };
    if args.show_prompt || args.explain {
        return show(&run, Turn::new(task.clone()), &new(task), args.explain, cx);
    }
    let mut turn = new(task);
    turn.limit(args.drive.limits(Limits::default()));
    if args.plan_only {
        let runtime = run.runtime(1, Vec::new(), None).unrecorded();
        let turn = cx.runtime()?.block_on(runtime.planned(turn));
        if cx.interrupt().cancel().is_cancelled() {
            return Err(Failure::silent(Exit::Interrupted));
        }
        return plan_only(&turn.task().plan, turn.task().max_steps, args.drive.json, cx);
    }
    wire::begin(&run, cx)?;
    drive(&run, turn, 1, &args.drive, cx)
}

/// The plan's steps unless the person says another number; never under the floor.
pub(super) fn max_steps(asked: Option<u32>, plan: &Plan, cx: &Cx) -> u32 {
    let Some(asked) = asked else { return plan.max_steps() };
    if asked < plan::FLOOR {
        cx.ui.warn(&format!("{asked} steps are too few to look, act and answer: {} are allowed", plan::FLOOR));
    }
    asked.max(plan::FLOOR)
}

fn plan_only(plan: &Plan, max_steps: u32, json: bool, cx: &Cx) -> Outcome {
    if json {
        cx.ui.document(&PlanOnly { steps: plan.steps, max_steps, parts: &plan.parts, source: plan.source })?;
        return Ok(Exit::Success);
    }
    cx.ui.line(&plan.steps.to_string())?;
    for (i, part) in plan.parts.iter().enumerate() {
        cx.ui.aside(super::ui::Role::Plain, &format!("{}. {part}", i + 1));
    }
    Ok(Exit::Success)
}

/// Assembles the first prompt and shows it, behind that for a plan where a model is to make one, or how it came about. The
/// model is not asked.
fn show(run: &Prepared<'_>, turn: Turn, planned: &Turn, explain: bool, cx: &Cx) -> Outcome {
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
            let whose = if layer.trusted { "" } else { " (data)" };
            cx.ui.line(&format!("{:>4}  {}{whose}: {} tokens", layer.priority, layer.name, layer.tokens))?;
        }
        for name in &assembly.dropped {
            cx.ui.line(&format!("      {name}: left out, it did not fit"))?;
        }
        for (name, why) in &assembly.failed {
            cx.ui.line(&format!("      {name}: left out, {why}"))?;
        }
        let tools: Vec<&str> = turn.tools().iter().map(|t| t.name.as_str()).collect();
        cx.ui.line(&format!("tools: {}", tools.join(", ")))?;
        return Ok(Exit::Success);
    }
    let plan = plan.map(|ask| ask.prompt.turns).unwrap_or_default();
    let whose = |for_plan: bool| move |said| (said, if for_plan { " (planner)" } else { "" });
    for (said, whose) in plan.into_iter().map(whose(true)).chain(turn.prompt().turns.into_iter().map(whose(false))) {
        let role = match said.role {
            crate::model::Role::System => "system",
            crate::model::Role::User => "user",
            crate::model::Role::Assistant => "assistant",
        };
        cx.ui.data(&format!("--- {role}{whose}\n{}", said.text))?;
    }
    Ok(Exit::Success)
}

/// Drives a run and tells how it ended.
fn drive(run: &Prepared<'_>, turn: Turn, first_event: u64, drive: &Drive, cx: &Cx) -> Outcome {
    let name = turn.task().run.clone();
    let driven = view::while_shown(cx, drive.shows(), drive.verbose(), |signals| {
        let runtime = run.runtime(first_event, vec![signals.sink()], signals.approver(cx.ui.can_ask()));
        Ok::<_, Failure>(cx.runtime()?.block_on(runtime.run(turn)))
    })?;
    match driven {
        crate::agent::runtime::Driven::Done(report) => told(&report, drive, cx),
        crate::agent::runtime::Driven::Stopped(_) => {
            cx.ui.note(&format!("stopped; `caro resume {name}` goes on"));
            Err(Failure::silent(Exit::Interrupted))
        }
    }
}

/// Says what was asked for and not seen to be done.
pub fn unverified(report: &Report, cx: &Cx) {
    if report.missing.is_empty() {
        return;
    }
    cx.ui.warn("not all of it was seen to be done:");
    for missing in &report.missing {
        cx.ui.aside(super::ui::Role::Plain, &format!("- {missing}"));
    }
}

/// What a run's end means to a program.
pub fn exit_of(report: &Report) -> Exit {
    match report.termination_reason.as_str() {
        "answered" => Exit::Success,
        "cannot" => Exit::No,
        "stuck" | "unverified" => Exit::Stuck,
        "model_error" => Exit::Usage,
        _ => Exit::Limit,
    }
}

/// Prints the answer, or the report.
fn told(report: &Report, drive: &Drive, cx: &Cx) -> Outcome {
    let exit = exit_of(report);
    if drive.json {
        cx.ui.document(report)?;
        return Ok(exit);
    }
    if drive.events.is_some() {
        return Ok(exit);
    }
    match exit {
        Exit::Usage => {
            Err(Failure::internal(&report.response)
                .hint(format!("`caro events {}` shows what was done", report.run_id)))
        }
        Exit::No => {
            let why = if report.response.is_empty() { "the model gave no reason" } else { &report.response };
            Err(Failure::no(format!("it cannot be done: {why}"))
                .hint("say which files or programs to use, or take a larger model (--model)"))
        }
        _ => {
            cx.ui.data(&report.response)?;
            unverified(report, cx);
            Ok(exit)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_context_are_read() {
        let how = |text: &str| context(text).map(|Context(fitting)| (fitting.mode, fitting.strategy));
        let (lines, gone) = (Strategy::SummarizeAndTruncate, Strategy::Truncate);
        assert_eq!(how("budget"), Ok((turn::Mode::TokenBudget, lines)));
        assert_eq!(how("budget:truncate"), Ok((turn::Mode::TokenBudget, gone)));
        assert_eq!(how("window:3"), Ok((turn::Mode::SlidingWindow(3), lines)));
        assert_eq!(how("window:3:truncate"), Ok((turn::Mode::SlidingWindow(3), gone)));
        assert_eq!(how("off"), Ok((turn::Mode::Off, lines)));
        for wrong in ["", "window", "window:0", "window:x", "off:truncate", "budget:", "truncate", ":truncate"] {
            assert!(how(wrong).unwrap_err().contains("window:N"), "{wrong}");
        }
    }
}
