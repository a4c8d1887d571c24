//! How a run ended: as an exit code, for a person, and for a program.

use crate::harness::Drive;
use crate::term::ui::Role;
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::guard::LIMIT;
use caro_agent::harness::Prepared;
use caro_agent::reflect::{OBJECTIVE, Reflection};
use caro_agent::turn::{AgentRun, Report, own_words};

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

/// What broke a run off before the model could answer: a limit, or its own failure. None of it is an answer.
pub fn broken_off(report: &Report) -> Option<Failure> {
    match exit_of(report) {
        Exit::Usage => Some(
            Failure::internal(&report.response).hint(format!("`caro events {}` shows what was done", report.run_id)),
        ),
        Exit::Limit if report.termination_reason != "max_steps" => Some(halted(report)),
        _ => None,
    }
}

/// A run that was ended from outside has no answer: what ended it, without what the model thought last, which stands behind
/// that in the report.
fn halted(report: &Report) -> Failure {
    let told = report.response.strip_prefix(LIMIT).unwrap_or(&report.response);
    let why = told.split_once(". ").map_or(told, |(first, _)| first).trim_end_matches('.');
    let raise = |option: &str| format!("raise the limit with {option} N (0 for any number), or split the task");
    Failure::new(Exit::Limit, why).hint(match report.termination_reason.as_str() {
        "request_limit" => raise("--max-requests"),
        "total_tokens_limit" => raise("--max-tokens"),
        "context_limit" => "`caro model list` shows models".into(),
        _ => format!("`caro events {}` shows what failed", report.run_id),
    })
}

/// Says that the answer is what the model had when no step was left.
pub fn out_of_steps(report: &Report, cx: &Cx) {
    if report.termination_reason == "max_steps" {
        let most = report.max_steps;
        cx.ui.warn(&format!("all {most} steps were taken before it was sure to be done (--max-steps N allows more)"));
    }
}

/// Says what was asked for and not seen to be done.
pub fn unverified(report: &Report, cx: &Cx) {
    if report.missing.is_empty() {
        return;
    }
    cx.ui.warn("not all of it was seen to be done:");
    for missing in &report.missing {
        cx.ui.aside(Role::Plain, &format!("- {missing}"));
    }
}

/// Prints the answer, or the report.
pub fn told(report: &Report, drive: &Drive, cx: &Cx) -> Outcome {
    let exit = exit_of(report);
    if drive.json {
        cx.ui.document(report)?;
        return Ok(exit);
    }
    if drive.events.is_some() {
        return Ok(exit);
    }
    if let Some(why) = broken_off(report) {
        return Err(why);
    }
    if exit == Exit::No {
        let why = if report.response.is_empty() { "the model gave no reason" } else { &report.response };
        return Err(Failure::no(format!("it cannot be done: {why}"))
            .hint("say which files or programs to use, or take a larger model (--model)"));
    }
    // what marks the answer for programs is told in other words to a person
    cx.ui.data(own_words(&report.response))?;
    out_of_steps(report, cx);
    unverified(report, cx);
    Ok(exit)
}

/// Tells that a run was stopped, and a program what it was until then.
pub fn stopped(run: &Prepared<'_>, turn: &AgentRun, drive: &Drive, cx: &Cx) -> Outcome {
    let report = so_far(run, turn);
    if drive.json {
        // whoever reads may have been ended by the same Ctrl-C: that is no other end
        let _ = cx.ui.document(&report);
    }
    cx.ui.note(&report.response);
    Ok(Exit::Interrupted)
}

/// A report of a run that was stopped. Nobody has looked back on it yet, and nobody vouches for anything.
fn so_far(run: &Prepared<'_>, turn: &AgentRun) -> Report {
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
