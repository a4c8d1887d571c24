//! Checks the resident process that keeps the model ready: whether there is one, whether it answers, and its version.

use super::finding::Finding;
use crate::setup::settings::Use;
use crate::{Cx, Settings};
use caro_serve::resident;

/// The state of a resident process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It answers.
    Answers { pid: u32, version: String, model: String },
    /// It runs but does not answer.
    Stuck(Option<u32>),
}

/// The facts about resident processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The setting that says when one is used.
    pub wanted: Use,
    /// The processes that run; or the reason why none can, and what to do.
    pub found: Result<Vec<Found>, (String, &'static str)>,
}

/// Asks each process. One that does not answer costs half a second.
pub fn look(cx: &Cx, settings: &Settings) -> Facts {
    let listed = cx.dirs.runtime.as_deref().map_or(Ok(Vec::new()), resident::list);
    let found = listed.map_err(|absent| (absent.to_string(), absent.hint())).map(|all| {
        let of = |one| match one {
            Ok(resident::Status { pid, version, model, .. }) => Found::Answers { pid, version, model },
            Err(pid) => Found::Stuck(pid),
        };
        all.into_iter().map(of).collect()
    });
    Facts { wanted: settings.resident, found }
}

/// The findings about resident processes; `version` is that of this program.
pub fn findings(facts: &Facts, version: &str) -> Vec<Finding> {
    const CHECK: &str = "resident";
    let found = match &facts.found {
        Err((why, hint)) => return vec![Finding::fail(CHECK, why, *hint)],
        Ok(found) => found,
    };
    if found.is_empty() {
        let fact = match facts.wanted {
            Use::Off => "turned off (resident = off): each request opens the model itself",
            Use::Auto | Use::On => "none is running: the next request starts one",
        };
        return vec![Finding::ok(CHECK, fact)];
    }
    let of = |one: &Found| match one {
        Found::Answers { pid, version: theirs, .. } if theirs != version => Finding::warn(
            CHECK,
            format!("process {pid} is of caro {theirs}, and this is {version}"),
            "`caro stop` ends it, and the next request starts a new one",
        ),
        Found::Answers { pid, model, .. } => Finding::ok(CHECK, format!("process {pid} keeps {model} ready")),
        Found::Stuck(pid) => {
            let pid = pid.map_or_else(String::new, |pid| format!(" {pid}"));
            Finding::fail(CHECK, format!("process{pid} does not answer"), "`caro stop` ends it")
        }
    };
    found.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    #[test]
    fn one_of_another_version_warns_and_a_stuck_one_fails() {
        let answers = |version: &str| Found::Answers { pid: 7, version: version.into(), model: "m".into() };
        let found = Ok(vec![answers("1"), answers("0"), Found::Stuck(Some(8)), Found::Stuck(None)]);
        let all = findings(&Facts { wanted: Use::Auto, found }, "1");
        let states: Vec<State> = all.iter().map(|finding| finding.state).collect();
        assert_eq!(states, [State::Ok, State::Warn, State::Fail, State::Fail]);
        assert_eq!(all[2].fact, "process 8 does not answer");
        assert_eq!(all[3].fact, "process does not answer");
    }

    #[test]
    fn no_process_is_fine_and_a_folder_that_others_may_use_is_not() {
        let none = findings(&Facts { wanted: Use::Off, found: Ok(Vec::new()) }, "1");
        assert!(none[0].state == State::Ok && none[0].fact.contains("turned off"), "{none:?}");
        let open = findings(&Facts { wanted: Use::Auto, found: Err(("others may use it".into(), "correct it")) }, "1");
        assert_eq!((open[0].state, open[0].remedy.as_deref()), (State::Fail, Some("correct it")));
    }
}
