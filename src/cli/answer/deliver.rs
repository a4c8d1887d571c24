//! An answer on its way to the person: shown, run, or put into a document, and kept where that is turned on.

use super::ask::Place;
use super::asker::Asker;
use super::run::{Run, With};
use super::{execute, present};
use crate::answer::log::{self, last};
use crate::flags::AnswerArgs;
use crate::{Cx, Exit, Failure, Outcome, Settings};
use caro_command::{Answer, PastExchange};
use caro_host::ExecutionContext;
use caro_shell::Severity;

/// How an answer is delivered.
pub struct How<'a> {
    /// How it was asked for.
    pub args: &'a AnswerArgs,
    /// It is run, after asking.
    pub execute: Option<With>,
    /// A line editor waits for it.
    pub widget: bool,
    /// A further member of the document.
    pub also: Option<(&'static str, serde_json::Value)>,
    /// The words that it answers, to be kept where that is turned on.
    pub request: Option<&'a str>,
    /// The conversation that ends with it: what `--from last` goes on from.
    pub said: Vec<PastExchange>,
    /// For another command, where one can be asked for.
    pub asker: Option<&'a Asker<'a>>,
}

/// Shows an answer, or runs it.
///
/// # Errors
/// If there is no command, or a draft, or it cannot be written or run.
pub fn deliver(
    answer: Answer,
    mut how: How<'_>,
    place: &Place,
    settings: &Settings,
    context: &ExecutionContext,
    cx: &Cx,
) -> Outcome {
    if answer.cmd.is_empty() {
        return hand_over(answer, how, place, settings, context, cx, &mut None);
    }
    let (command, asked) = (answer.cmd.clone(), how.execute.is_some());
    let (request, mut said) = (how.request, std::mem::take(&mut how.said));
    let mut ran = None;
    let outcome = hand_over(answer, how, place, settings, context, cx, &mut ran);
    if let (Some(last), Some((command, _))) = (said.last_mut(), &ran) {
        last.command.clone_from(command);
    }
    last::keep(&said, place, settings, cx);
    let Some(request) = (if settings.request_history { request } else { None }) else { return outcome };
    match &ran {
        Some((command, code)) => log::keep(request, command, Some(*code), place, cx),
        // what nobody was given is nothing to find again
        None if asked || outcome.is_ok() => log::keep(request, &command, None, place, cx),
        None => {}
    }
    outcome
}

/// Does it, and tells which command was run and how it ended.
fn hand_over(
    answer: Answer,
    how: How<'_>,
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
    // whoever is asked is told what is wrong, and decides
    if let Some(With { preview, trash }) = how.execute {
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
        return Err(draft(answer));
    }
    present::answer(&cx.ui, answer)?;
    let found = 1 + answer.alternatives.len();
    if found < usize::from(args.alternatives) && answer.iterations > 0 {
        cx.ui.note(&format!("{found} of {}: no other command came up", args.alternatives));
    }
    Ok(Exit::Success)
}

/// Why a command is no answer, for a person.
fn draft(answer: &Answer) -> Failure {
    let error = answer.findings.iter().find(|f| f.severity == Severity::Error);
    let why = error.map_or("it is most likely wrong", |f| f.why.as_str());
    Failure::no(format!("no command that holds came up: {why}")).hint(format!("a draft to go on from: {}", answer.cmd))
}
