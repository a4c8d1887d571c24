//! `caro doctor --test`: sends one request to the model and times it. It is the only check that loads a model.

use super::finding::Finding;
use super::model::Place;
use crate::answer::ask;
use crate::flags::AnswerArgs;
use crate::setup::wire;
use crate::term::first;
use crate::{Cx, Failure, Settings};
use std::time::{Duration, Instant};

/// The request: it has an answer on every machine, and the answer is not run.
const REQUEST: &str = "list the files in this folder";

/// An answer and its times.
#[derive(Debug, Clone, PartialEq)]
pub struct TestAnswer {
    /// The command.
    pub command: String,
    /// Seconds until the model could be asked: opened, or found in the resident process.
    pub load_s: f64,
    /// Seconds from then to the whole answer.
    pub answer_s: f64,
    /// True if the resident process answered.
    pub by_resident: bool,
}

/// Asks the model. A model that is not here is not fetched for this.
///
/// # Errors
/// If there is no answer.
pub fn run(cx: &Cx, settings: &Settings, place: &Place) -> Result<TestAnswer, Failure> {
    if let Place::Missing { id, .. } = place {
        return Err(Failure::no(format!("{id} is not here, and is not fetched for a test"))
            .hint(format!("`caro model pull {id}`, then `caro doctor --test`")));
    }
    let started = Instant::now();
    let runtime = cx.runtime()?;
    let wired = wire::open(cx, settings)?;
    let opened = started.elapsed();
    let place = ask::Place::of(&wired.recipe.context, settings, None);
    let ask = ask::ask(REQUEST.into(), &place, settings, &AnswerArgs::default(), cx.interrupt().cancel());
    let answer = first::with_progress(&cx.ui, wired.is_first, || {
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
    let total = started.elapsed();
    // the model itself reports the time for opening it, with its first call
    let load = opened + Duration::from_secs_f64(answer.timing.load.max(0.0) / 1e3);
    Ok(TestAnswer {
        command: answer.cmd,
        load_s: load.as_secs_f64(),
        answer_s: total.saturating_sub(load).as_secs_f64(),
        by_resident: wired.resident.answers(),
    })
}

/// The finding about the answer.
pub fn finding(answer: &Result<TestAnswer, Failure>) -> Finding {
    const CHECK: &str = "test";
    match answer {
        Ok(answer) if answer.command.is_empty() => Finding::fail(
            CHECK,
            format!("the model had no command for: {REQUEST}"),
            "`caro model list` shows other models",
        ),
        Ok(TestAnswer { command, load_s, answer_s, by_resident }) => {
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
    fn an_answer_is_reported_with_its_times_and_a_failure_with_its_hint() {
        let answer = |command: &str| {
            Ok(TestAnswer { command: command.into(), load_s: 0.24, answer_s: 0.96, by_resident: false })
        };
        assert_eq!(finding(&answer("ls")).fact, "answered in 1.0 s, after 0.2 s of loading: ls");
        assert_eq!(finding(&answer("")).state, State::Fail);
        let failed = finding(&Err(Failure::no("no answer").hint("wait")));
        assert_eq!((failed.state, failed.remedy.as_deref()), (State::Fail, Some("wait")));
        assert_eq!(finding(&Err(Failure::silent(Exit::Interrupted))).fact, "stopped");
    }
}
