//! `caro task`: adds, lists, runs and removes scheduled tasks. A `caro loop` or `caro serve` of the same folder
//! runs them when they are due.

use crate::harness::view::{self, Shows};
use crate::harness::{Drive, removal, wire};
use crate::setup::wire::Wants;
use crate::term::ui::{Role, plural};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::background::{self, DELAY, Schedule, TIMEOUT};
use caro_agent::clock::stamp;
use caro_agent::plan;
use caro_agent::store::{StoredTask, TaskRun, TaskState};
use caro_base::id;
use std::time::SystemTime;

/// Add, list, run and remove tasks that begin by themselves
#[derive(Debug, clap::Args)]
#[command(after_help = "A running `caro loop` or `caro serve` begins the tasks of its folder when they are due.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Add a task of this folder; without a time it begins only when `caro task run` says so
    Add {
        /// What is to be done, in plain words
        #[arg(value_name = "WORDS", required = true)]
        words: Vec<String>,
        /// Its name; made of its first words if not given
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Every so often: 90s, 10m, 2h, 1d
        #[arg(long, value_name = "TIME", group = "when", allow_hyphen_values = true)]
        every: Option<String>,
        /// Once, at a time of your clock: "2026-11-27 08:00"
        #[arg(long, value_name = "TIME", group = "when")]
        at: Option<String>,
        /// At times of the calendar, as cron writes them: "0 8 * * 1-5"
        #[arg(long, value_name = "FIELDS", group = "when")]
        cron: Option<String>,
        /// Further attempts after a run that failed
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
        retries: u32,
        /// Seconds before each of them
        #[arg(long, value_name = "SECONDS", default_value_t = DELAY, value_parser = clap::value_parser!(u64).range(0..=86_400))]
        delay: u64,
        /// Seconds that a run may take
        #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT, value_parser = clap::value_parser!(u64).range(1..=86_400))]
        timeout: u64,
    },
    /// List tasks, when each is due, and how its last run ended
    List {
        /// Print one JSON document, with the latest runs of each
        #[arg(long)]
        json: bool,
    },
    /// Run a task now
    Run {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
        /// Do not ask before changes below the task's folder and commands that are no danger; without this they are refused
        #[arg(short, long)]
        yes: bool,
        /// Model: an id of `caro model list`, a GGUF file, openai:URL#NAME, anthropic:NAME, script:FILE
        #[arg(long, value_name = "SPEC")]
        model: Option<String>,
    },
    /// Remove a task, with what is known of its runs
    Rm {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// A task as `--json` shows it.
#[derive(serde::Serialize)]
struct Listed {
    #[serde(flatten)]
    task: StoredTask,
    runs: Vec<TaskRun>,
}

/// Most runs of a task that are listed.
const MAX_RUNS: usize = 10;

/// Runs the chosen subcommand.
///
/// # Errors
/// If there is no such task, or the store cannot be used.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    match &args.what {
        What::Add { .. } => add(&args.what, cx),
        What::List { json } => list(*json, cx),
        What::Run { name, yes, model } => run_now(name, *yes, model.clone(), cx),
        What::Rm { name } => remove(name, cx),
    }
}

/// Removes a task with the session, the conversation and the files of its runs.
fn remove(name: &str, cx: &Cx) -> Outcome {
    let store = wire::existing_store(cx)?;
    if !store.tasks().map_err(wire::failure)?.iter().any(|task| task.name == name) {
        return Err(missing(name));
    }
    let runs = store.task_runs(name, MAX_RUNS).map_err(wire::failure)?;
    if runs.iter().any(|run| matches!(run.state, TaskState::Claimed | TaskState::Running)) {
        return Err(
            Failure::usage(format!("a run of {name} is under way")).hint("wait for it, or stop that process first")
        );
    }
    removal::remove(&background::session_of(name), &store, cx)?;
    if let Some(workspaces) = wire::workspaces(cx, &cx.settings(&[])?)? {
        background::forget_files(&workspaces, name)?;
    }
    store.remove_task(name).map_err(wire::failure)?;
    cx.ui.note(&format!("removed {name}"));
    Ok(Exit::Success)
}

fn missing(name: &str) -> Failure {
    Failure::usage(format!("there is no task `{name}`")).hint("`caro task list` shows what there is")
}

fn add(what: &What, cx: &Cx) -> Outcome {
    let What::Add { words, name, every, at, cron, retries, delay, timeout } = what else { return Ok(Exit::Success) };
    let text = words.join(" ").trim().to_owned();
    if let Some(why) = plan::unclear(&text) {
        return Err(
            Failure::usage(why).hint("for example: `caro task add --every 1h \"count the errors in logs/app.log\"`")
        );
    }
    let given = [("every", every), ("at", at), ("cron", cron)];
    let written = given.iter().find_map(|(word, value)| value.as_ref().map(|value| (*word, format!("{word} {value}"))));
    let (flag, written) = written.unwrap_or(("", "manual".into()));
    let schedule: Schedule = written.parse().map_err(|wanted| {
        Failure::usage(format!("--{flag} must be {wanted}")).hint("`caro task add --help` has an example of each")
    })?;
    let now = id::millis(SystemTime::now());
    let root = cx.folder()?;
    let mut task = StoredTask {
        name: String::new(),
        text,
        schedule: schedule.to_string(),
        root: root.canonicalize().unwrap_or(root),
        retries: *retries,
        delay: *delay,
        timeout: *timeout,
        next: schedule.first(now),
        created: now,
    };
    if cx.dirs.data.is_none() {
        return Err(crate::setup::stores::no_home());
    }
    if matches!(schedule, Schedule::Once(at) if at <= now) {
        cx.ui.warn("that time is over: it is due at once");
    }
    let store = wire::store(cx)?;
    for name in names(name.as_deref(), &task.text)? {
        task.name = name;
        if store.add_task(&task).map_err(wire::failure)? {
            cx.ui.data(&task.name)?;
            cx.ui.note(&describe_time(&task));
            return Ok(Exit::Success);
        }
    }
    Err(Failure::usage(format!("there is a task `{}` already", task.name))
        .hint("give it another name with --name, or remove that one with `caro task rm`"))
}

/// The names to try for a task: the given one, or those made of its first words.
fn names(given: Option<&str>, text: &str) -> Result<Vec<String>, Failure> {
    let fits = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    if let Some(name) = given {
        if name.is_empty() || name.chars().count() > 60 || !name.chars().all(fits) {
            return Err(Failure::usage(format!("`{name}` is not a name for a task"))
                .hint("a name has letters, digits, `-` and `_`, at most 60"));
        }
        return Ok(vec![name.to_owned()]);
    }
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).take(4);
    let made: String = words.map(str::to_lowercase).collect::<Vec<_>>().join("-").chars().take(50).collect();
    let made = if made.is_empty() { "task".to_owned() } else { made };
    Ok(std::iter::once(made.clone()).chain((2..100).map(|n| format!("{made}-{n}"))).collect())
}

/// Describes when a task begins.
fn describe_time(task: &StoredTask) -> String {
    match task.next {
        Some(next) => format!(
            "{}; due {}, by a `caro loop` or `caro serve` of {}",
            task.schedule,
            stamp(next),
            task.root.display()
        ),
        None => format!("{}; `caro task run {}` runs it", task.schedule, task.name),
    }
}

fn list(json: bool, cx: &Cx) -> Outcome {
    let store = wire::existing_store(cx)?;
    let listed = |task: StoredTask| {
        let runs = store.task_runs(&task.name, MAX_RUNS).map_err(wire::failure)?;
        Ok::<_, Failure>(Listed { task, runs })
    };
    let all = store.tasks().map_err(wire::failure)?;
    let all: Vec<Listed> = all.into_iter().map(listed).collect::<Result<_, _>>()?;
    cx.ui.list(json, &all, "there is no task yet: `caro task add` makes one", |Listed { task, runs }| {
        let last = runs.first().map_or("never run".to_owned(), |run| {
            let note = if run.note.is_empty() { String::new() } else { format!(" ({})", run.note) };
            format!("{} {}{note}", stamp(run.updated), run.state.name())
        });
        cx.ui.line(&format!(
            "{}  {}",
            cx.ui.entry(Role::Accent, &task.name),
            cx.ui.entry(Role::Command, &task.text)
        ))?;
        let many = if runs.is_empty() { String::new() } else { format!(", {}", plural(runs.len(), "run")) };
        cx.ui.line(&format!("    {}", cx.ui.entry(Role::Dim, &format!("{}; last: {last}{many}", describe_time(task)))))
    })?;
    Ok(Exit::Success)
}

fn run_now(name: &str, yes: bool, model: Option<String>, cx: &Cx) -> Outcome {
    let tasks = wire::existing_store(cx)?.tasks().map_err(wire::failure)?;
    let task = tasks.into_iter().find(|task| task.name == name).ok_or_else(|| missing(name))?;
    if !task.root.is_dir() {
        return Err(Failure::usage(format!("the folder of the task is gone: {}", task.root.display()))
            .hint("remove the task with `caro task rm`, and add it where it is to work"));
    }
    let drive = Drive::plain(model, yes, Vec::new());
    let harness = wire::open(cx, &drive, "agent", drive.options(), &task.root, Wants::Answers)?;
    let cancel = cx.interrupt().cancel().clone();
    let done = view::show_during(cx, Shows::Steps, false, |signals| {
        let work = background::run_now(&harness, name, &cancel, vec![signals.sink()]);
        Ok(cx.block_on(work)??)
    })?;
    let Some(done) = done else {
        return Err(Failure::no(format!("a run of {name} is under way: this one was skipped"))
            .hint("`caro task list` shows how it stands"));
    };
    // the store takes an empty id for that of the latest run
    let found = if done.run.is_empty() { None } else { harness.events().run(&done.run).ok() };
    let answer = found.map(|run| run.answer).unwrap_or_default();
    if !answer.trim().is_empty() {
        cx.ui.data(answer.trim())?;
    }
    if done.state != TaskState::Completed {
        cx.ui.note(&format!(
            "{name}: {}{}",
            done.state.name(),
            if done.note.is_empty() { String::new() } else { format!(", {}", done.note) }
        ));
    }
    Ok(match done.state {
        TaskState::Completed => Exit::Success,
        TaskState::Timeout => Exit::Timeout,
        TaskState::Cancelled | TaskState::Interrupted => Exit::Interrupted,
        _ => Exit::No,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args as _;

    /// Both verbs run what is due; a line that names only one sends users of the other to it.
    #[test]
    fn the_verbs_that_run_tasks_are_named_where_a_time_is() {
        let task = StoredTask {
            name: "a".into(),
            text: "b".into(),
            schedule: "every 1h".into(),
            root: "/w".into(),
            retries: 0,
            delay: 1,
            timeout: 1,
            next: Some(0),
            created: 0,
        };
        let help = Args::augment_args(clap::Command::new("task")).render_long_help().to_string();
        for text in [describe_time(&task), help] {
            assert!(text.contains("`caro loop`") && text.contains("`caro serve`"), "{text}");
        }
        assert!(!describe_time(&StoredTask { next: None, ..task }).contains("loop"));
    }

    #[test]
    fn a_name_is_made_of_the_first_words() {
        let first = |text: &str| names(None, text).unwrap()[0].clone();
        assert_eq!(first("Count the errors in logs/app.log"), "count-the-errors-in");
        assert_eq!(first("???"), "task");
        assert_eq!(names(None, "a b").unwrap()[1], "a-b-2");
        assert_eq!(names(Some("nightly_1"), "x").unwrap(), ["nightly_1"]);
        for wrong in ["", "a b", "a/b"] {
            assert!(names(Some(wrong), "x").is_err(), "{wrong}");
        }
    }
}
