//! Decides which actions are allowed. A guard acts twice: [`Guard::admit`] removes actions from the grammar before the
//! model writes, and [`Guard::check`] refuses a call that the model wrote, with advice on what to do instead.
//!
//! Guards only narrow. The strictest verdict of the chain counts (deny, then ask, then allow), and a guard that fails
//! denies. A guard sees calls and the run's state, never a prompt, so no text can influence it.

mod budget;
mod goal;
mod ground;
mod policy;
mod repeat;
mod reread;

pub use budget::{Budget, Halt, LIMIT_PREFIX};
pub use goal::GoalGuard;
pub use ground::{GroundGuard, is_example};
pub use policy::{Policy, Rights, kind_of, refused, reword_refusal};
pub use repeat::{LoopGuard, LoopLimits, Pattern, WARNING, detect};
pub use reread::ActionGuard;

use super::action::ActionSet;
use super::state::RunState;
use super::tool::Call;
use std::sync::Arc;

/// The decision on a call. Ordered by strictness.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// The user is asked, with these reasons.
    Ask(Vec<String>),
    /// The call does not run, and the model sees this finding instead. Not an error.
    Deny(Finding),
}

/// The reason why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The stable id of the rule (`repeat-read`, `loop`, `policy-danger`, `guard-error`).
    pub id: String,
    /// The text for the model.
    pub text: String,
}

/// The reason why a guard could not decide.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct GuardError(pub String);

impl GuardError {
    /// Advice to the user.
    pub fn hint(&self) -> &'static str {
        "the call was refused; run again with `--no-guard NAME` if the guard itself is at fault"
    }
}

/// A rule, or a group of rules.
pub trait Guard: Send + Sync {
    /// The guard's name, as in `--no-guard`.
    fn name(&self) -> &'static str;

    /// Removes actions before the model decides. Actions that it adds are ignored (see [`Guards::admit`]).
    fn admit(&self, _set: &mut ActionSet, _state: &RunState) {}

    /// Decides on a call before it runs.
    ///
    /// # Errors
    /// An error counts as [`Verdict::Deny`].
    fn check(&self, _call: &Call, _state: &RunState) -> Result<Verdict, GuardError> {
        Ok(Verdict::Allow)
    }

    /// Returns the reason why an answer is sent back to the model, which happens once; `None` to accept it.
    fn answer(&self, _text: &str, _state: &RunState) -> Option<Finding> {
        None
    }

    /// Returns the names and numbers of an answer that neither the task nor a tool has shown.
    fn unseen(&self, _text: &str, _state: &RunState) -> Vec<String> {
        Vec::new()
    }

    /// Returns the reason to end the run before the next request to the model; `None` if there is budget left.
    fn spent(&self, _state: &RunState) -> Option<Halt> {
        None
    }

    /// Looks at the state after a batch of calls. May set [`RunState::stuck`], or end the run with the returned reason.
    fn settle(&self, _state: &mut RunState) -> Option<Halt> {
        None
    }
}

/// A chain of guards.
#[derive(Clone, Default)]
pub struct Guards(Vec<Arc<dyn Guard>>);

impl Guards {
    /// Creates a chain without the guards whose names are in `without`.
    pub fn new(guards: Vec<Arc<dyn Guard>>, without: &[String]) -> Self {
        Self(guards.into_iter().filter(|g| !without.iter().any(|name| name == g.name())).collect())
    }

    /// Adds a guard.
    #[must_use]
    pub fn and(mut self, guard: Arc<dyn Guard>) -> Self {
        self.0.push(guard);
        self
    }

    /// Returns the first guard's reason to send an answer back.
    pub fn answer(&self, text: &str, state: &RunState) -> Option<Finding> {
        self.0.iter().find_map(|guard| guard.answer(text, state))
    }

    /// Returns the names and numbers of an answer that neither the task nor a tool has shown.
    pub fn unseen(&self, text: &str, state: &RunState) -> Vec<String> {
        self.0.iter().flat_map(|guard| guard.unseen(text, state)).collect()
    }

    /// Returns the actions of `set` that every guard admits. If no tool is left, answering stays allowed, so that a
    /// run can always end.
    pub fn admit(&self, set: &ActionSet, state: &RunState) -> ActionSet {
        let mut narrowed = set.clone();
        for guard in &self.0 {
            let before = narrowed.clone();
            guard.admit(&mut narrowed, state);
            narrowed.keep_within(&before);
        }
        narrowed.answer |= set.answer && narrowed.tools.is_empty();
        narrowed
    }

    /// Returns the strictest verdict on a call, and the name of the guard that gave it.
    pub fn check(&self, call: &Call, state: &RunState) -> (Verdict, &'static str) {
        let mut worst = (Verdict::Allow, "");
        for guard in &self.0 {
            let verdict = guard.check(call, state).unwrap_or_else(|error| {
                Verdict::Deny(Finding {
                    id: "guard-error".into(),
                    text: format!("This call was refused, because the guard `{}` failed: {error}", guard.name()),
                })
            });
            match (&mut worst, verdict) {
                ((Verdict::Ask(reasons), _), Verdict::Ask(more)) => reasons.extend(more),
                ((current, by), verdict) if verdict > *current => (*current, *by) = (verdict, guard.name()),
                _ => {}
            }
        }
        worst
    }

    /// Returns the first guard's reason to end the run before the next request to the model.
    pub fn spent(&self, state: &RunState) -> Option<Halt> {
        self.0.iter().find_map(|guard| guard.spent(state))
    }

    /// Lets every guard look at the state after a batch. Returns the first reason to end the run.
    pub fn settle(&self, state: &mut RunState) -> Option<Halt> {
        // every guard has to see the batch, even if one of them ends the run
        let halts: Vec<Halt> = self.0.iter().filter_map(|guard| guard.settle(state)).collect();
        halts.into_iter().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Args, Effects};

    struct Fixed(&'static str, fn() -> Result<Verdict, GuardError>);

    impl Guard for Fixed {
        fn name(&self) -> &'static str {
            self.0
        }
        fn admit(&self, set: &mut ActionSet, _: &RunState) {
            set.tools.push("smuggled".into());
            set.tools.retain(|t| t != self.0);
        }
        fn check(&self, _: &Call, _: &RunState) -> Result<Verdict, GuardError> {
            (self.1)()
        }
    }

    fn deny() -> Verdict {
        Verdict::Deny(Finding { id: "x".into(), text: "no".into() })
    }

    fn call() -> Call {
        Call { id: "s1c1".into(), tool: "t".into(), args: Args::new(), effects: Effects::default() }
    }

    fn guards(all: Vec<Fixed>, without: &[&str]) -> Guards {
        let without: Vec<String> = without.iter().map(|n| n.to_string()).collect();
        Guards::new(all.into_iter().map(|g| Arc::new(g) as Arc<dyn Guard>).collect(), &without)
    }

    #[test]
    fn deny_beats_ask_beats_allow_and_an_error_denies() {
        let state = RunState::default();
        let ask = || Ok(Verdict::Ask(vec!["why".into()]));
        let chain = guards(vec![Fixed("a", || Ok(Verdict::Allow)), Fixed("b", ask), Fixed("c", || Ok(deny()))], &[]);
        assert_eq!(chain.check(&call(), &state), (deny(), "c"));
        let chain = guards(vec![Fixed("b", ask), Fixed("b2", ask), Fixed("a", || Ok(Verdict::Allow))], &[]);
        assert_eq!(chain.check(&call(), &state).0, Verdict::Ask(vec!["why".into(), "why".into()]));
        let broken = || Err(GuardError("no state".into()));
        let chain = guards(vec![Fixed("a", || Ok(Verdict::Allow)), Fixed("e", broken)], &[]);
        let (Verdict::Deny(finding), "e") = chain.check(&call(), &state) else { panic!("not denied") };
        assert_eq!(finding.id, "guard-error");
        assert_eq!(guards(vec![Fixed("e", broken)], &["e"]).check(&call(), &state).0, Verdict::Allow);
    }

    #[test]
    fn guards_only_narrow_and_a_run_can_always_end() {
        let set = ActionSet { tools: vec!["a".into(), "b".into()], answer: true, cannot: true, batch: 3, path: None };
        let chain = guards(vec![Fixed("a", || Ok(Verdict::Allow))], &[]);
        let narrowed = chain.admit(&set, &RunState::default());
        assert_eq!(narrowed, ActionSet { tools: vec!["b".into()], answer: true, cannot: true, batch: 3, path: None });
        struct Nothing;
        impl Guard for Nothing {
            fn name(&self) -> &'static str {
                "nothing"
            }
            fn admit(&self, set: &mut ActionSet, _: &RunState) {
                *set = ActionSet { tools: Vec::new(), answer: false, cannot: true, batch: 99, path: None };
            }
        }
        let chain = Guards::new(vec![Arc::new(Nothing)], &[]);
        assert!(chain.admit(&set, &RunState::default()).answer);
    }

    /// An arbitrary guard: its verdict on every call, the tools `0` to `7` that it removes, and whether it admits
    /// answering.
    #[derive(Debug, Clone)]
    struct Any(u8, u8, bool);

    impl Guard for Any {
        fn name(&self) -> &'static str {
            ["0", "1", "2", "3"][usize::from(self.0)]
        }
        fn admit(&self, set: &mut ActionSet, _: &RunState) {
            set.tools.retain(|tool| self.1 & (1 << tool.parse::<u8>().unwrap_or(0)) == 0);
            // it tries to add actions
            set.tools.extend(["0", "7", "new"].map(String::from));
            (set.answer, set.cannot, set.batch) = (self.2, true, 99);
        }
        fn check(&self, _: &Call, _: &RunState) -> Result<Verdict, GuardError> {
            match self.0 {
                0 => Ok(Verdict::Allow),
                1 => Ok(Verdict::Ask(vec!["why".into()])),
                2 => Ok(deny()),
                _ => Err(GuardError("broken".into())),
            }
        }
    }

    proptest::proptest! {
        /// Another guard never allows anything that the others do not, in any chain and order.
        #[test]
        fn one_more_guard_only_narrows(
            all in proptest::collection::vec((0u8..4, 0u8.., proptest::bool::ANY), 0..6), at in 0usize..6,
            tools in proptest::collection::vec(0u8..8, 0..6), ends in (proptest::bool::ANY, proptest::bool::ANY)
        ) {
            let all: Vec<Any> = all.into_iter().map(|(says, takes, answer)| Any(says, takes, answer)).collect();
            let chain = |of: &[Any]| Guards::new(of.iter().map(|g| Arc::new(g.clone()) as Arc<dyn Guard>).collect(), &[]);
            let rank = |verdict: &Verdict| match verdict {
                Verdict::Allow => 0,
                Verdict::Ask(_) => 1,
                Verdict::Deny(_) => 2,
            };
            let state = RunState::default();
            let strictest = all.iter().map(|guard| guard.0.min(2)).max().unwrap_or(0);
            let verdict = chain(&all).check(&call(), &state).0;
            proptest::prop_assert_eq!(rank(&verdict), strictest);
            let tools: Vec<String> = tools.iter().map(u8::to_string).collect();
            let set = ActionSet { tools, answer: ends.0, cannot: ends.1, batch: 3, path: None };
            let whole = chain(&all).admit(&set, &state);
            proptest::prop_assert!(whole.tools.iter().all(|tool| set.tools.contains(tool)));
            proptest::prop_assert!(whole.batch <= 3 && (set.answer || !whole.answer) && (set.cannot || !whole.cannot));
            if !all.is_empty() {
                let mut fewer = all.clone();
                fewer.remove(at % all.len());
                proptest::prop_assert!(rank(&chain(&fewer).check(&call(), &state).0) <= strictest);
                let wider = chain(&fewer).admit(&set, &state);
                proptest::prop_assert!(whole.tools.iter().all(|tool| wider.tools.contains(tool)));
            }
        }
    }
}
