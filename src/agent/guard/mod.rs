//! Who may do what. A guard acts twice: [`Guard::admit`] takes actions out of the grammar before the model writes, and
//! [`Guard::check`] refuses, with words that help, what was written all the same.
//!
//! Guards only narrow. The strictest verdict of the chain holds (deny, then ask, then allow), a guard that fails denies,
//! and a guard sees calls and the run's state, never a prompt: no text can talk to it.

mod budget;
mod goal;
mod ground;
mod policy;
mod repeat;
mod reread;

pub use budget::{Budget, Halt, LIMIT};
pub use goal::GoalGuard;
pub use ground::{GroundGuard, is_example};
pub use policy::{Policy, Rights, as_told, kind_of, refused};
pub use repeat::{LoopGuard, LoopLimits, Pattern, WARNING, detect};
pub use reread::ActionGuard;

use super::action::ActionSet;
use super::state::RunState;
use super::tool::Call;
use std::sync::Arc;

/// What is to become of a call. Ordered: the greater one holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Let it run.
    Allow,
    /// Ask the person; the reasons say why.
    Ask(Vec<String>),
    /// Do not run it; tell the model this instead. Not an error.
    Deny(Finding),
}

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Stable id of the rule (`repeat-read`, `loop`, `policy-danger`, `guard-error`).
    pub id: String,
    /// What the model is told.
    pub text: String,
}

/// Why a guard could not decide.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct GuardError(pub String);

impl GuardError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        "the call was refused; run again with `--no-guard NAME` if the guard itself is at fault"
    }
}

/// One rule, or a family of them.
pub trait Guard: Send + Sync {
    /// Its name, as `--no-guard` has it.
    fn name(&self) -> &'static str;

    /// Before the model decides: takes actions out. Whatever it adds is lost (see [`Guards::admit`]).
    fn admit(&self, _set: &mut ActionSet, _state: &RunState) {}

    /// Before a call runs.
    ///
    /// # Errors
    /// Counts as [`Verdict::Deny`].
    fn check(&self, _call: &Call, _state: &RunState) -> Result<Verdict, GuardError> {
        Ok(Verdict::Allow)
    }

    /// Before an answer is given: why it is sent back, once.
    fn answer(&self, _text: &str, _state: &RunState) -> Option<Finding> {
        None
    }

    /// Before each request to a model: why it may not be asked again.
    fn spent(&self, _state: &RunState) -> Option<Halt> {
        None
    }

    /// After a batch: may set [`RunState::stuck`] and end the run.
    fn settle(&self, _state: &mut RunState) -> Option<Halt> {
        None
    }
}

/// The chain.
#[derive(Clone, Default)]
pub struct Guards(Vec<Arc<dyn Guard>>);

impl Guards {
    /// The guards of a run, without those whose names are in `without`.
    pub fn new(guards: Vec<Arc<dyn Guard>>, without: &[String]) -> Self {
        Self(guards.into_iter().filter(|g| !without.iter().any(|name| name == g.name())).collect())
    }

    /// The same with one more.
    #[must_use]
    pub fn and(mut self, guard: Arc<dyn Guard>) -> Self {
        self.0.push(guard);
        self
    }

    /// Why an answer is sent back; the first guard's word.
    pub fn answer(&self, text: &str, state: &RunState) -> Option<Finding> {
        self.0.iter().find_map(|guard| guard.answer(text, state))
    }

    /// What every guard still admits. Nothing that was not in `set` before comes back, and where no tool is
    /// left, answering is: a run can always end.
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

    /// The strictest verdict on a call, and who gave it.
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

    /// Why no model may be asked again; the first guard's word.
    pub fn spent(&self, state: &RunState) -> Option<Halt> {
        self.0.iter().find_map(|guard| guard.spent(state))
    }

    /// After a batch.
    pub fn settle(&self, state: &mut RunState) -> Option<Halt> {
        // all of them see the batch, also when one ends the run
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

    /// A guard of any kind: what it says to every call, which of the tools `0` to `7` it takes out, whether it lets answer.
    #[derive(Debug, Clone)]
    struct Any(u8, u8, bool);

    impl Guard for Any {
        fn name(&self) -> &'static str {
            ["0", "1", "2", "3"][usize::from(self.0)]
        }
        fn admit(&self, set: &mut ActionSet, _: &RunState) {
            set.tools.retain(|tool| self.1 & (1 << tool.parse::<u8>().unwrap_or(0)) == 0);
            // it would like more than there is
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
        /// Whatever guards there are, in whatever order: one more never allows what the others do not.
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
