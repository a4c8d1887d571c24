//! Refuses to read a file again that was shown before and has not changed since.

use super::{Finding, Guard, GuardError, Verdict};
use crate::state::RunState;
use crate::tool::{Call, file_of};

/// `action`: refuses to read a file a second time until it changes, whether through a tool or through `cat`.
#[derive(Debug, Default)]
pub struct ActionGuard;

impl Guard for ActionGuard {
    fn name(&self) -> &'static str {
        "action"
    }

    fn check(&self, call: &Call, state: &RunState) -> Result<Verdict, GuardError> {
        let shows = &call.effects.shows;
        // a call that reads several files is allowed if one of them is new
        if shows.is_empty() || !call.effects.is_read_only() || !shows.iter().all(|s| state.is_redundant_read(s)) {
            return Ok(Verdict::Allow);
        }
        let paths: Vec<&str> = shows.iter().map(|s| file_of(s)).collect();
        Ok(Verdict::Deny(Finding {
            id: "repeat-read".into(),
            text: format!(
                "[BLOCKED - REPEAT READ] You already read '{}' in an earlier step, and it has not changed. \
                 Already read. Consider writing changes, or answer.",
                paths.join("', '")
            ),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Args, Effects, Outcome, ToolResult};

    #[test]
    fn a_second_read_is_refused_until_a_write() {
        let call = |shows: &[&str], writes: &[&str]| Call {
            id: "s1c1".into(),
            tool: "read".into(),
            args: Args::new(),
            effects: Effects {
                shows: shows.iter().map(|s| s.to_string()).collect(),
                writes: writes.iter().map(Into::into).collect(),
                ..Effects::default()
            },
        };
        let mut state = RunState::default();
        let blocked =
            |call: &Call, state: &RunState| matches!(ActionGuard.check(call, state).unwrap(), Verdict::Deny(_));
        let mut run = |call: &Call| {
            let refused = blocked(call, &state);
            if !refused {
                let (text, hash) = (String::new(), String::new());
                state.settle(&ToolResult { call: call.clone(), outcome: Outcome::Succeeded, text, hash, ms: 0 });
            }
            refused
        };
        let (read, write) = (call(&["/README.md"], &[]), call(&[], &["/README.md"]));
        assert_eq!([&read, &read, &write, &read, &read].map(&mut run), [false, true, false, false, true]);
        assert!(!run(&call(&["/README.md", "/new"], &[])), "one of them is new");
        assert!(run(&call(&["/README.md", "/new"], &[])));
    }
}
