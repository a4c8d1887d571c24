//! `caro resume`: continues a run that was stopped, where it stood.

use crate::harness::Drive;
use crate::harness::end::print_report;
use crate::harness::view::Shows;
use crate::harness::wire::{self, failure};
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
    if found.is_over() {
        let none_left = if args.run.is_empty() { "no run is left to go on with: the latest, " } else { "" };
        let how = if found.status == "failed" { ", and cannot go on: it ended so" } else { "; it answered:" };
        cx.ui.note(&format!("{none_left}{} is over{how}", found.id));
        return report_end(&found, &store.events(&found.id, 0).map_err(failure)?, &args.drive, cx);
    }
    if !found.root.is_dir() {
        return Err(Failure::usage(format!("its working folder {} is gone", found.root.display()))
            .hint("begin the task again where it belongs"));
    }
    let mut drive = args.drive.clone();
    drive.model = model(&found, &store, &drive, cx)?;
    let (mut turn, next) = store.take_over(&found.id, is_alive).map_err(failure)?;
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

/// Reports how a finished run ended, in the form and with the exit code that it had then.
fn report_end(run: &Run, events: &[Event], drive: &Drive, cx: &Cx) -> Outcome {
    let end = events.iter().rfind(|event| event.event_type == Kind::AgentEnd);
    let read = |end: &Event| serde_json::from_value::<Report>(end.output.clone()).ok();
    let Some((end, report)) = end.and_then(|end| Some((end, read(end)?))) else {
        return Err(Failure::internal(format!("how {} ended was kept by another version", run.id))
            .hint(format!("`caro session show {}` shows its answer", run.id)));
    };
    if drive.shows() == Shows::Jsonl {
        cx.ui.json(end)?;
    }
    print_report(&report, drive, cx)
}
