//! Delivers an answer: shows it, runs it or prints it as JSON, and logs it where the settings say so.

use super::ask::Place;
use super::asker::Asker;
use super::run::{ExecuteOptions, Run};
use super::{execute, present};
use crate::answer::log::{self, last};
use crate::flags::AnswerArgs;
use crate::{Cx, Exit, Failure, Outcome, Settings};
use caro_command::{Answer, PastExchange};
use caro_host::ExecutionContext;
use caro_shell::Severity;

/// Options for the delivery of an answer.
pub struct Delivery<'a> {
    /// The flags of the request.
    pub args: &'a AnswerArgs,
    /// Runs the command after asking; `None` to show it only.
    pub execute: Option<ExecuteOptions>,
    /// True if the line editor of a shell waits for the command.
    pub widget: bool,
    /// A further member of the JSON document.
    pub also: Option<(&'static str, serde_json::Value)>,
    /// The words of the request, for the log; `None` to log nothing.
    pub request: Option<&'a str>,
    /// The conversation that ends with the answer, for `--from last`.
    pub said: Vec<PastExchange>,
    /// Asks for another command, where that is possible.
    pub asker: Option<&'a Asker<'a>>,
}

/// Shows or runs an answer, and logs it where the settings say so.
///
/// # Errors
/// If there is no command or only a draft, or it cannot be written or run.
pub fn deliver(
    answer: Answer,
    mut how: Delivery<'_>,
    place: &Place,
    settings: &Settings,
    context: &ExecutionContext,
    cx: &Cx,
) -> Outcome {
    if answer.cmd.is_empty() {
        return show_or_run(answer, how, place, settings, context, cx, &mut None);
    }
    let (command, is_executed) = (answer.cmd.clone(), how.execute.is_some());
    let (request, mut said) = (how.request, std::mem::take(&mut how.said));
    let mut ran = None;
    let outcome = show_or_run(answer, how, place, settings, context, cx, &mut ran);
    if let (Some(last), Some((command, _))) = (said.last_mut(), &ran) {
        last.command.clone_from(command);
    }
    last::save(&said, place, settings, cx);
    let Some(request) = (if settings.request_history { request } else { None }) else { return outcome };
    match &ran {
        Some((command, code)) => log::add(request, command, Some(*code), place, cx),
        // a command that was not shown is not logged
        None if is_executed || outcome.is_ok() => log::add(request, &command, None, place, cx),
        None => {}
    }
    outcome
}

/// Shows or runs an answer; `ran` is set to the command that was run and its exit code.
fn show_or_run(
    answer: Answer,
    how: Delivery<'_>,
    place: &Place,
    settings: &Settings,
    context: &ExecutionContext,
    cx: &Cx,
    ran: &mut Option<(String, i32)>,
) -> Outcome {
    if how.args.timing {
        present::timing(&cx.ui, &answer.timing);
    }
    if how.args.json {
        let mut document = present::document(&answer).map_err(Failure::internal)?;
        if let Some((name, value)) = how.also {
            document[name] = value;
        }
        cx.ui.document(&document)?;
        return Ok(if answer.cmd.is_empty() || answer.draft { Exit::No } else { Exit::Success });
    }
    if answer.cmd.is_empty() {
        return Err(Failure::no(present::refusal(&answer)).hint(present::NO_COMMAND));
    }
    // a draft too: its errors are shown before the question
    if let Some(ExecuteOptions { preview, trash }) = how.execute {
        return execute::run(answer, &Run { place, settings, cx, context, preview, trash, asker: how.asker }, ran);
    }
    if how.widget && !answer.draft {
        cx.ui.command(&answer.cmd)?;
        present::cautions(&cx.ui, &answer);
        return Ok(Exit::Success);
    }
    show(&answer, how.args, cx)
}

/// Shows an answer that has a command.
///
/// # Errors
/// If it is a draft, or cannot be written.
pub fn show(answer: &Answer, args: &AnswerArgs, cx: &Cx) -> Outcome {
    if answer.draft {
        return Err(draft_failure(answer));
    }
    present::answer(&cx.ui, answer)?;
    let found = 1 + answer.alternatives.len();
    if found < usize::from(args.alternatives) && answer.iterations > 0 {
        cx.ui.note(&format!("{found} of {}: no other command came up", args.alternatives));
    }
    Ok(Exit::Success)
}

/// The failure of an answer that is only a draft.
fn draft_failure(answer: &Answer) -> Failure {
    let error = answer.findings.iter().find(|f| f.severity == Severity::Error);
    let why = error.map_or("it is most likely wrong", |f| f.why.as_str());
    Failure::no(format!("no command that holds came up: {why}"))
        .hint(format!("a draft to go on from: `{}`", answer.cmd))
}
