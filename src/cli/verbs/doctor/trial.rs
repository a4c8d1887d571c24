//! `caro doctor --test`: one request to the model, timed. The only check that loads anything.

use super::finding::Finding;
use super::model::Place;
use crate::answer::ask;
use crate::flags::AnswerArgs;
use crate::setup::wire;
use crate::term::first;
use crate::{Cx, Failure, Settings};
use std::time::{Duration, Instant};

/// The request: every machine has an answer, and what it does is looked at by nobody.
const REQUEST: &str = "list the files in this folder";

/// An answer, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The command.
    pub command: String,
    /// Until the model was there to be asked, seconds: opened, or found in the process that keeps it.
    pub load_s: f64,
    /// From there to the whole answer, seconds.
    pub answer_s: f64,
    /// True if the process that keeps the model answered.
    pub by_resident: bool,
}

/// Asks. A model that is not here is not fetched for this.
///
/// # Errors
/// Why there was no answer.
pub fn run(cx: &Cx, settings: &Settings, place: &Place) -> Result<Trial, Failure> {
    if let Place::Missing { id, .. } = place {
        return Err(Failure::no(format!("{id} is not here, and is not fetched for a test"))
            .hint(format!("`caro model pull {id}`, then `caro doctor --test`")));
    }
    let begun = Instant::now();
    let runtime = cx.runtime()?;
    let wired = wire::open(cx, settings)?;
    let opened = begun.elapsed();
    let place = ask::Place::of(&wired.recipe.context, settings, None);
    let ask = ask::ask(REQUEST.into(), &place, settings, &AnswerArgs::default(), cx.interrupt().cancel());
    let answer = first::while_told(&cx.ui, wired.is_first, || {
        runtime.block_on(async {
            if wired.is_first {
                let until = Instant::now() + ask.timeout;
                wired.recipe.prepare(place.target, place.dialect, &ask.cancel.with_deadline(until)).await;
            }
            wired.recipe.answer(&ask, &mut |_| ()).await
        })
    })
    .map_err(|e| ask::failure(e, settings));
    crate::wind_up(runtime);
    let answer = answer?;
    let whole = begun.elapsed();
    // opening is reported by the model itself, with its first call
    let load = opened + Duration::from_secs_f64(answer.timing.load.max(0.0) / 1e3);
    Ok(Trial {
        command: answer.cmd,
        load_s: load.as_secs_f64(),
        answer_s: whole.saturating_sub(load).as_secs_f64(),
        by_resident: wired.resident.answers(),
    })
}

/// The line about it.
pub fn finding(trial: &Result<Trial, Failure>) -> Finding {
    const CHECK: &str = "test";
    match trial {
        Ok(trial) if trial.command.is_empty() => Finding::fail(
            CHECK,
            format!("the model had no command for: {REQUEST}"),
            "`caro model list` shows other models",
        ),
        Ok(Trial { command, load_s, answer_s, by_resident }) => {
            let by = if *by_resident { " by the resident process" } else { "" };
            Finding::ok(CHECK, format!("answered{by} in {answer_s:.1} s, after {load_s:.1} s of loading: {command}"))
        }
        Err(failure) => {
            let message = if failure.message.is_empty() { "stopped" } else { &failure.message };
            Finding::fail(CHECK, message, failure.hint.as_deref().unwrap_or("`caro --debug \"list files\"` says more"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;
    use crate::Exit;

    #[test]
    fn an_answer_is_told_with_its_times_and_a_failure_with_its_hint() {
        let trial =
            |command: &str| Ok(Trial { command: command.into(), load_s: 0.24, answer_s: 0.96, by_resident: false });
        assert_eq!(finding(&trial("ls")).fact, "answered in 1.0 s, after 0.2 s of loading: ls");
        assert_eq!(finding(&trial("")).state, State::Fail);
        let failed = finding(&Err(Failure::no("no answer").hint("wait")));
        assert_eq!((failed.state, failed.remedy.as_deref()), (State::Fail, Some("wait")));
        assert_eq!(finding(&Err(Failure::silent(Exit::Interrupted))).fact, "stopped");
    }
}
