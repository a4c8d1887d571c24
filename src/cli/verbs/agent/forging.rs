//! `caro agent --forge`: if a run fails for lack of a skill, the forge makes one from the examples, and the task is
//! tried once more.

use super::Args;
use crate::harness::end::exit_of;
use crate::harness::forging;
use crate::term::typed::{is_yes, typed_in_a_run};
use crate::term::ui::{Role, in_line};
use crate::{Cx, Exit, Failure};
use caro_agent::forge::Wanted;
use caro_agent::forge::examples::Order;
use caro_agent::forge::report::{Verdict, name_of};
use caro_agent::harness::{Harness, Prepared};
use caro_agent::runtime::Driven;
use std::collections::BTreeSet;

/// True if a run ended in `cannot` and had no skill.
pub(super) fn lacks_skill(driven: &Driven, run: &Prepared<'_>) -> bool {
    let ended = matches!(driven, Driven::Done(report) if exit_of(report) == Exit::No);
    ended && run.skills().active.is_empty()
}

/// Makes the skill that a task lacked, if the user wants one. Returns true if it was made.
///
/// # Errors
/// If the forge is stopped or cannot start. That a skill cannot be made is only reported.
pub(super) fn make_skill(args: &Args, text: &str, harness: &Harness, cx: &Cx) -> Result<bool, Failure> {
    let order = match args.examples.order(text, cx) {
        Ok(order) => order,
        // examples that were given are valid, which was checked before the run: so there are none
        Err(why) => {
            if args.forge {
                cx.ui.warn(&format!("no skill fits, and none is made: {}", why.message));
                why.hint.iter().for_each(|hint| cx.ui.aside(Role::Dim, &in_line(hint)));
            }
            return Ok(false);
        }
    };
    if !args.forge && !agrees(cx)? {
        return Ok(false);
    }
    let request = format!("Create a skill for tasks like this: {}", order.request);
    let name = name_of(&order.request);
    let wanted =
        Wanted { order: Order { request, ..order }, name, language: None, allowed: BTreeSet::new(), fix: None };
    let (report, _) = forging::forge_skill(&wanted, harness.model().clone(), args.drive.shows(), cx)?;
    if report.verdict != Verdict::Promoted {
        cx.ui.warn(&in_line(&format!("no skill was made: {}", report.line())));
        cx.ui.aside(Role::Dim, &in_line(&report.hint()));
        return Ok(false);
    }
    cx.ui.note(&in_line(&report.line()));
    Ok(true)
}

/// Asks the user at a terminal; without one the answer is no.
fn agrees(cx: &Cx) -> Result<bool, Failure> {
    if !cx.ui.can_ask_at_terminal() {
        return Ok(false);
    }
    cx.ui.ask("no skill fits: make one from the examples and try once more? [y/N]");
    Ok(typed_in_a_run(cx)?.is_some_and(|reply| is_yes(reply.trim())))
}
