//! Reports the end of a run: as an exit code, a message or a JSON document.

use crate::harness::Drive;
use crate::term::ui::{Role, plural};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::guard::LIMIT_PREFIX;
use caro_agent::harness::Prepared;
use caro_agent::reflect::{OBJECTIVE, Reflection};
use caro_agent::turn::{AgentRun, Report, own_words};

/// The exit code for the end of a run.
pub fn exit_of(report: &Report) -> Exit {
    match report.termination_reason.as_str() {
        "answered" => Exit::Success,
        "cannot" => Exit::No,
        "stuck" | "unverified" => Exit::Stuck,
        "model_error" => Exit::Usage,
        _ => Exit::Limit,
    }
}

/// The failure that ended a run before the model could answer: a limit or an error; `None` if there was none.
pub fn failure_of(report: &Report) -> Option<Failure> {
    match exit_of(report) {
        Exit::Usage => Some(Failure::internal(&report.response).hint(after_model_error(report))),
        Exit::Limit if report.termination_reason != "max_steps" => Some(limit_failure(report)),
        _ => None,
    }
}

/// The next step after the model failed: a run whose model could not be reached can be resumed.
fn after_model_error(report: &Report) -> String {
    let run = &report.run_id;
    let next = match report.status.as_str() {
        "stopped" => format!("`caro resume {run}` goes on with it"),
        _ => format!("`caro events {run}` shows what was done"),
    };
    match report.state.modified_files {
        0 => next,
        _ => format!("{next}; `caro undo` takes back what it changed, the latest first"),
    }
}

/// The failure of a run that a limit ended: the limit, without the last thought of the model, which follows it in the
/// report.
fn limit_failure(report: &Report) -> Failure {
    let text = report.response.strip_prefix(LIMIT_PREFIX).unwrap_or(&report.response);
    let why = text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.');
    // a run that is over cannot be resumed
    let raise =
        |option: &str| format!("begin again with a higher limit, {option} N (0 for any number), or split the task");
    Failure::new(Exit::Limit, why).hint(match report.termination_reason.as_str() {
        "request_limit" => raise("--max-requests"),
        "total_tokens_limit" => raise("--max-tokens"),
        "context_limit" => "`caro model list` shows models".into(),
        _ => format!("`caro events {}` shows what failed", report.run_id),
    })
}

/// Warns if the run took all its steps, so that the answer is what the model had by then.
pub fn warn_out_of_steps(report: &Report, cx: &Cx) {
    if report.termination_reason == "max_steps" {
        let taken = match report.max_steps {
            1 => "the one step was".to_owned(),
            most => format!("all {} were", plural(most as usize, "step")),
        };
        cx.ui.warn(&format!("{taken} taken before it was sure to be done (--max-steps N allows more)"));
    }
}

/// Warns about parts of the task that were not seen to be done.
pub fn warn_unverified(report: &Report, cx: &Cx) {
    if report.missing.is_empty() {
        return;
    }
    cx.ui.warn("not all of it was seen to be done:");
    for missing in &report.missing {
        cx.ui.aside(Role::Plain, &format!("- {missing}"));
    }
}

/// Prints the answer, or the report as JSON.
pub fn print_report(report: &Report, drive: &Drive, cx: &Cx) -> Outcome {
    let exit = exit_of(report);
    if drive.json {
        cx.ui.document(report)?;
        return Ok(exit);
    }
    if drive.events.is_some() {
        return Ok(exit);
    }
    if let Some(why) = failure_of(report) {
        return Err(why);
    }
    if exit == Exit::No {
        let why = if report.response.is_empty() { "the model gave no reason" } else { &report.response };
        return Err(Failure::no(format!("it cannot be done: {why}"))
            .hint("say which files or programs to use, or take a larger model (--model)"));
    }
    // the mark for programs is left out: a warning says the same
    cx.ui.data(own_words(&report.response))?;
    warn_out_of_steps(report, cx);
    warn_unverified(report, cx);
    Ok(exit)
}

/// Prints that a run was stopped; with `--json` also a report of the run so far.
pub fn print_stopped(run: &Prepared<'_>, turn: &AgentRun, drive: &Drive, cx: &Cx) -> Outcome {
    let report = report_so_far(run, turn);
    if drive.json {
        // the reader may have been ended by the same Ctrl-C: a failed write does not change the exit code
        let _ = cx.ui.document(&report);
    }
    cx.ui.note(&report.response);
    Ok(Exit::Interrupted)
}

/// The report of a stopped run, without the reflection that ends a run.
fn report_so_far(run: &Prepared<'_>, turn: &AgentRun) -> Report {
    let task = turn.task();
    let resume = format!("`caro resume {}` goes on", task.run);
    Report {
        response: format!("stopped; {resume}"),
        session_id: task.session.clone(),
        run_id: task.run.clone(),
        agent_name: task.agent.clone(),
        status: "stopped".into(),
        termination_reason: "stopped".into(),
        missing: Vec::new(),
        steps: turn.step().min(task.max_steps),
        max_steps: task.max_steps,
        skills: run.skills().active.iter().map(|(skill, _)| skill.front.name.clone()).collect(),
        state: turn.state().stats(),
        reflection: Reflection {
            objective: task.text.chars().take(OBJECTIVE).collect(),
            result: String::new(),
            outcome: "partial".into(),
            confidence: 0.0,
            next_action: resume,
        },
        metric: turn.metric(),
    }
}
