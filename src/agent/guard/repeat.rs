//! Detects runs that repeat themselves, and stops the repetition.

use super::{Finding, Guard, GuardError, Halt, Verdict};
use crate::action::ActionSet;
use crate::state::{Record, RunState};
use crate::tool::{Call, Outcome};

/// The limits at which a repetition counts as a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopLimits {
    /// The number of latest calls that are examined.
    pub window: usize,
    /// An identical call is refused from this occurrence on, unless something changed meanwhile; 0 for never.
    pub refuse_at: usize,
    /// The number of identical calls in a row that is a loop.
    pub in_a_row: usize,
    /// The longest pattern searched for, in calls.
    pub pattern: usize,
    /// The number of repeats of a pattern that is a loop.
    pub repeats: usize,
}

impl LoopLimits {
    /// Refuses the second identical call; the third is a loop.
    pub const STRICT: Self = Self { window: 20, refuse_at: 2, in_a_row: 3, pattern: 5, repeats: 3 };
    /// The published setting: no call is refused, and five repeats are a loop.
    pub const PUBLISHED: Self = Self { window: 20, refuse_at: 0, in_a_row: 7, pattern: 5, repeats: 5 };
}

/// A detected loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// `identical` or `pattern`.
    pub kind: &'static str,
    /// The number of calls in one round.
    pub period: usize,
    /// The number of rounds.
    pub repeats: usize,
}

/// Searches for a loop at the end of the calls. The same calls with other results are no loop; a refused call has no
/// result, and counts as equal to the call it repeats.
pub fn detect(calls: &[Record], limits: LoopLimits) -> Option<Pattern> {
    let calls = &calls[calls.len().saturating_sub(limits.window)..];
    let same = |a: &Record, b: &Record| {
        let refused = a.outcome == Outcome::Blocked || b.outcome == Outcome::Blocked;
        a.signature == b.signature && (refused || a.output == b.output)
    };
    (1..=limits.pattern).find_map(|period| {
        let last = calls.len().checked_sub(period)?;
        let equal = (0..last).rev().take_while(|&i| same(&calls[i], &calls[i + period])).count();
        let repeats = (equal + period) / period;
        let needed = if period == 1 { limits.in_a_row.min(limits.repeats) } else { limits.repeats };
        let kind = if period == 1 { "identical" } else { "pattern" };
        (repeats >= needed).then_some(Pattern { kind, period, repeats })
    })
}

/// `loop`: an identical call is refused the second time, and a run that goes on repeating itself may only answer.
#[derive(Debug)]
pub struct LoopGuard {
    /// The limits.
    pub limits: LoopLimits,
}

/// The start of the text to the model about a loop. It is not shown to the user.
pub const WARNING: &str = "[System Warning] Loop Detected: ";

impl Guard for LoopGuard {
    fn name(&self) -> &'static str {
        "loop"
    }

    fn admit(&self, set: &mut ActionSet, state: &RunState) {
        if state.stuck.is_some() {
            set.tools.clear();
        }
    }

    fn check(&self, call: &Call, state: &RunState) -> Result<Verdict, GuardError> {
        let signature = call.signature();
        // a call that was stopped has no result, so it may be repeated
        let ended = |r: &&Record| !r.folded && !matches!(r.outcome, Outcome::Cancelled | Outcome::TimedOut);
        let same = |r: &&Record| r.signature == signature && r.changes == state.changes;
        let before: Vec<&Record> = state.calls.iter().filter(ended).filter(same).collect();
        if self.limits.refuse_at == 0 || before.len() + 1 < self.limits.refuse_at {
            return Ok(Verdict::Allow);
        }
        Ok(Verdict::Deny(Finding {
            id: "loop".into(),
            text: format!(
                "{WARNING}{}",
                match before.iter().all(|r| r.outcome == Outcome::Denied) {
                    true => "The user has not allowed this very call. Change your strategy, or answer.",
                    false =>
                        "You have already executed this tool with these exact arguments. Its result is above. Change your \
                         strategy, or answer.",
                }
            ),
        }))
    }

    fn settle(&self, state: &mut RunState) -> Option<Halt> {
        if state.stuck.is_none()
            && let Some(found) = detect(&state.calls, self.limits)
        {
            let Pattern { kind, period, repeats } = found;
            state.stuck = Some(format!("{kind}: {period} call(s) repeated {repeats} times"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(names: &str) -> Vec<Record> {
        let one = |c: char| Record {
            folded: false,
            signature: c.to_lowercase().to_string(),
            output: c.to_lowercase().to_string(),
            changes: 0,
            // an upper case letter is a refused call
            outcome: if c.is_uppercase() { Outcome::Blocked } else { Outcome::Succeeded },
        };
        names.chars().map(one).collect()
    }

    fn found(names: &str, limits: LoopLimits) -> Option<(usize, usize)> {
        detect(&records(names), limits).map(|p| (p.period, p.repeats))
    }

    #[test]
    fn identical_calls_and_patterns_are_loops() {
        let strict = LoopLimits::STRICT;
        assert_eq!(found("", strict), None);
        assert_eq!(found("aa", strict), None);
        assert_eq!(found("aAA", strict), Some((1, 3)));
        assert_eq!(found("xababab", strict), Some((2, 3)));
        assert_eq!(found("abababx", strict), None, "it has found a way out");
        assert_eq!(found("abcdeabcdeabcde", strict), Some((5, 3)));
        assert_eq!(found("abcdefabcdefabcdef", strict), None, "longer than what is looked for");
    }

    #[test]
    fn the_published_setting_finds_a_loop_at_the_fifth_repeat() {
        let published = LoopLimits::PUBLISHED;
        assert_eq!(found("aaaa", published), None);
        assert_eq!(found("aaaaa", published), Some((1, 5)));
        assert_eq!(found("abababab", published), None);
        assert_eq!(found("ababababab", published), Some((2, 5)));
    }

    #[test]
    fn the_same_call_with_another_result_is_progress() {
        let mut calls = records("aaa");
        calls[1].output = "other".into();
        assert_eq!(detect(&calls, LoopLimits::STRICT), None);
    }

    #[test]
    fn repeated_writes_are_a_loop_too() {
        let mut calls = records("ababab");
        (0..).zip(&mut calls).for_each(|(changes, call)| call.changes = changes);
        assert!(detect(&calls, LoopLimits::STRICT).is_some());
    }

    #[test]
    fn a_folded_call_may_be_repeated() {
        let guard = LoopGuard { limits: LoopLimits::STRICT };
        let (args, effects) = Default::default();
        let call = Call { id: "s1c1".into(), tool: "read".into(), args, effects };
        let record = |signature: String| Record { signature, ..records("a").remove(0) };
        let mut state = RunState { calls: vec![record(call.signature()), record("x".into())], ..RunState::default() };
        assert!(matches!(guard.check(&call, &state), Ok(Verdict::Deny(_))));
        state.fold(1);
        assert!(matches!(guard.check(&call, &state), Ok(Verdict::Allow)));
    }

    #[test]
    fn a_stopped_call_may_be_repeated_and_a_finished_one_may_not() {
        let guard = LoopGuard { limits: LoopLimits::STRICT };
        let (args, effects) = Default::default();
        let call = Call { id: "s1c1".into(), tool: "read".into(), args, effects };
        for (outcome, again) in [
            (Outcome::Cancelled, true),
            (Outcome::TimedOut, true),
            (Outcome::Succeeded, false),
            (Outcome::Failed, false),
            (Outcome::Denied, false),
        ] {
            let record =
                Record { signature: call.signature(), output: String::new(), changes: 0, outcome, folded: false };
            let state = RunState { calls: vec![record], ..RunState::default() };
            assert_eq!(guard.check(&call, &state).unwrap() == Verdict::Allow, again, "{outcome:?}");
        }
    }

    #[test]
    fn a_stuck_run_may_only_answer() {
        let guard = LoopGuard { limits: LoopLimits::STRICT };
        let mut state = RunState { calls: records("aAA"), ..RunState::default() };
        assert_eq!(guard.settle(&mut state), None);
        assert!(state.stuck.as_deref().unwrap().starts_with("identical"));
        let mut set = ActionSet { tools: vec!["read".into()], answer: true, cannot: true, batch: 3, path: None };
        guard.admit(&mut set, &state);
        assert!(set.tools.is_empty() && set.answer);
    }
}
