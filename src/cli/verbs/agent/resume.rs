//! `caro resume`: continues a run that was stopped, where it stood.

use crate::harness::end::print_report;
use crate::harness::view::Shows;
use crate::harness::wire::{self, failure};
use crate::harness::{Drive, LOOP_SESSION};
use crate::setup::download;
use crate::setup::wire::Wants;
use crate::term::ui::in_line;
use crate::{Cx, Failure, Outcome};
use caro_agent::event::{Event, Kind};
use caro_agent::store::{Run, Store, StoreError, is_alive};
use caro_agent::turn::Report;
use caro_model::fetch;
use caro_policy::is_redacted;
use serde_json::json;

/// Go on with a run that was stopped
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id; the latest that is not over if not given
    #[arg(value_name = "RUN", default_value = "", hide_default_value = true)]
    run: String,
    /// How it is driven.
    #[command(flatten)]
    drive: Drive,
}

/// Continues a run.
///
/// # Errors
/// If there is no such run, or another process drives it.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    cx.with_error_document(args.drive.json, continue_run(args, cx))
}

fn continue_run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(option) = args.drive.prompt_option() {
        return Err(Failure::usage(format!("{option} has no effect on a run that has begun: its prompt is made"))
            .hint("begin a new run with it"));
    }
    let store = wire::store(cx)?;
    let named = if args.run.is_empty() { open_run(&store).map_err(failure)? } else { None };
    let found = named.map_or_else(|| store.run(&args.run), Ok).map_err(failure)?;
    if found.id.starts_with("worker_") {
        return Err(Failure::usage(format!("{} is a helper's run, and ended with the run it worked for", found.id))
            .hint(format!(
                "`caro resume {}` goes on with that one; `caro events {}` shows what it did",
                found.session, found.id
            )));
    }
    let events = store.events(&found.id, 0).map_err(failure)?;
    if !store.has_checkpoint(&found.id).map_err(failure)? {
        return Err(without_state(&found, agent_of(&events)));
    }
    if found.is_over() {
        let none_left = if args.run.is_empty() { "no run is left to go on with: the latest, " } else { "" };
        let how = if found.status == "failed" { ", and cannot go on: it ended so" } else { "; it answered:" };
        cx.ui.note(&format!("{none_left}{} is over{how}", found.id));
        return report_end(&found, &events, &args.drive, cx);
    }
    if !found.root.is_dir() {
        return Err(Failure::usage(format!("its working folder {} is gone", found.root.display()))
            .hint("begin the task again where it belongs"));
    }
    let mut drive = args.drive.clone();
    drive.model = model(&found, &store, &drive, cx)?;
    let (mut turn, next) = store.take_over(&found.id, is_alive).map_err(failure)?;
    if args.run.is_empty() {
        cx.ui.note(&format!("going on with {}, which was stopped: {}", found.id, clipped(&found.task)));
    }
    if is_redacted(&json!(turn.task().text)) {
        cx.ui.warn("the task had a secret in it, which is not kept: what is left of it has [redacted] instead");
    }
    let harness = wire::open(cx, &drive, &turn.task().agent, drive.options(), &found.root, Wants::Answers)?;
    harness.keep_model(&found.id).map_err(failure)?;
    turn.limit(drive.limits(turn.state().limits));
    let cancel = cx.interrupt().cancel().clone();
    let run = harness.prepare(turn.task(), cancel, &mut |warning| cx.ui.warn(&in_line(warning)))?;
    super::drive(&run, turn, next, &drive, cx)
}

/// The model that the run continues with: the one that is named now, or else the one that it had.
fn model(run: &Run, store: &Store, drive: &Drive, cx: &Cx) -> Result<Option<String>, Failure> {
    if drive.model.is_some() {
        return Ok(drive.model.clone());
    }
    let Some(stored) = store.model_of(&run.id).map_err(failure)? else {
        let now = cx.settings(&[])?.model;
        cx.ui.warn(&format!("which model it began with was not kept: it goes on with {now} (--model names another)"));
        return Ok(None);
    };
    if let Err(gone) = fetch::resolve(&stored, &download::settings(cx)?) {
        return Err(Failure::usage(format!("the model that it was driven with is gone: {gone}"))
            .hint(format!("`caro resume {} --model MODEL` goes on with another one", run.id)));
    }
    Ok(Some(stored))
}

/// The latest run that can be continued. If none can, the latest that is not over, so that its obstacle is reported.
fn open_run(store: &Store) -> Result<Option<Run>, StoreError> {
    let mut open = store.unfinished()?;
    let can_go_on = |run: &Run| run.root.is_dir() && store.check_idle(&run.session, is_alive).is_ok();
    let first = open.iter().position(can_go_on).unwrap_or(0);
    Ok(if open.is_empty() { None } else { Some(open.swap_remove(first)) })
}

/// The first words of a text in a line.
fn clipped(text: &str) -> String {
    const MAX_CHARS: usize = 70;
    let first: String = text.chars().take(MAX_CHARS).collect();
    let more = if text.chars().count() > MAX_CHARS { "..." } else { "" };
    format!("{}{more}", in_line(&first))
}

/// The agent that a run began with.
fn agent_of(events: &[Event]) -> Option<&str> {
    let start = events.iter().find(|event| event.event_type == Kind::AgentStart)?;
    start.metadata.get("agent")?.as_str()
}

/// The command that shows what a run came to.
fn shown_by(run: &Run) -> String {
    match run.answer.is_empty() {
        true => format!("`caro events {}` shows what was done", run.id),
        false => format!("`caro session show {}` shows its answer", run.id),
    }
}

/// The failure to go on with a run that keeps no state of its own: it did not work on a task.
fn without_state(run: &Run, agent: Option<&str>) -> Failure {
    let shown = shown_by(run);
    let (what, next) = match agent {
        Some("loop") => {
            let session = match run.session.as_str() {
                LOOP_SESSION => String::new(),
                session => format!(" --session {}", in_line(session)),
            };
            let next = format!("`caro loop{session}` goes on where it stood, `caro loop history{session}` shows it");
            ("is a stretch of a loop, and no task", next)
        }
        Some("forge") => ("is the making of a skill, which begins anew", format!("`caro forge` does; {shown}")),
        Some("shards") => ("is a reading in parts, which begins anew", format!("`caro agent --shards` does; {shown}")),
        _ => ("keeps nothing to go on from", format!("begin the task again; {shown}")),
    };
    Failure::usage(format!("{} {what}", run.id)).hint(next)
}

/// Reports how a finished run ended, in the form and with the exit code that it had then.
fn report_end(run: &Run, events: &[Event], drive: &Drive, cx: &Cx) -> Outcome {
    let end = events.iter().rfind(|event| event.event_type == Kind::AgentEnd);
    let read = |end: &Event| serde_json::from_value::<Report>(end.output.clone()).ok();
    let Some((end, report)) = end.and_then(|end| Some((end, read(end)?))) else {
        return Err(Failure::internal(format!("the report of how {} ended cannot be read", run.id)).hint(shown_by(run)));
    };
    if drive.shows() == Shows::Jsonl {
        cx.ui.json(end)?;
    }
    print_report(&report, drive, cx)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(session: &str, answer: &str) -> Run {
        let (id, task) = ("run_1".to_owned(), "t".to_owned());
        let (status, answer) = ("completed".to_owned(), answer.to_owned());
        let root = "/w".into();
        Run { id, session: session.into(), task, status, answer, root, created: 1, updated: 1, active: true }
    }

    #[test]
    fn a_run_without_a_task_says_what_it_is_and_how_to_go_on() {
        for (agent, session, answer, told) in [
            (Some("loop"), "loop", "", ["a stretch of a loop", "`caro loop` goes on", "`caro loop history`"]),
            (Some("loop"), "home", "", ["a loop", "`caro loop --session home`", "history --session home`"]),
            (Some("forge"), "s", "", ["the making of a skill", "`caro forge` does", "`caro events run_1`"]),
            (Some("forge"), "s", "rejected", ["the making of a skill", "`caro forge`", "`caro session show run_1`"]),
            (Some("shards"), "s", "two", ["a reading in parts", "`caro agent --shards`", "`caro session show run_1`"]),
            (Some("chat"), "s", "", ["keeps nothing to go on from", "begin the task again", "`caro events run_1`"]),
            (None, "s", "", ["keeps nothing to go on from", "begin the task again", "`caro events run_1`"]),
        ] {
            let failure = without_state(&run(session, answer), agent);
            let text = format!("{}\n{}", failure.message, failure.hint.unwrap_or_default());
            assert!(told.iter().all(|told| text.contains(told)), "{agent:?}: {text}");
        }
    }

    #[test]
    fn a_task_is_clipped_to_a_line() {
        assert!(!clipped("count\nthem").contains('\n'));
        assert!(clipped(&"word ".repeat(40)).ends_with("..."));
    }
}
