//! One command out of several for the same request: the likeliest thing to be done.
//!
//! What the model finds likelier, as a whole, is right more often, if by less than the likelihood says; counting how often a
//! command came up in a few tries only estimates that. Commands that do the same add up, as a rehearsal shows it
//! ([`super::trial`]); where there was none, two commands do the same if they read the same. How likely the request is behind
//! each command, the other way round, was weighed too, and is worth nothing any more
//! (`benches/records/2026-11-24-choice.md`).

use super::checks::weight;
use super::refine_loop::Draft;
use super::trial::{Ending, RehearsalResult};
use caro_shell::safety::Level;

/// A command, and what speaks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The command, looked at by the checks.
    pub draft: Draft,
    /// How likely the model was to write it ([`super::confidence::likelihood`]).
    pub likelihood: f64,
    /// True if the person's own documents have it so.
    pub documented: bool,
    /// What it did in a rehearsal; `None` where there was none.
    pub trial: Option<RehearsalResult>,
}

/// What was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// Which candidate.
    pub index: usize,
    /// The share of all weight that agrees with it, between 0 and 1.
    pub share: f64,
}

/// The likelihood counts by its cube root: who writes more is always less likely, and not wrong for that. Any root from the
/// second to the seventh chooses as well; the likelihood itself, or none of it, chooses worse
/// (`benches/records/2026-11-24-choice.md`).
const TEMPER: f64 = 1.0 / 3.0;

/// What is left of a command's weight if a check accuses it of an error, or warns of it.
const ERROR: f64 = 0.02;
const WARNING: f64 = 0.25;

/// How many times more a command weighs that the person's own documents have for nearly the same request.
const DOCUMENTED: f64 = 8.0;

/// The same if it failed in its rehearsal, or had nothing to say.
const FAILED: f64 = 0.001;
const SILENT: f64 = 0.3;

/// Chooses; `None` of no candidates. One that is dangerous is never chosen in the place of a first one that is not: likelihood
/// is no permission.
pub fn choose(candidates: &[Candidate]) -> Option<Choice> {
    let first = candidates.first()?;
    let is_barred = |c: &Candidate| is_dangerous(c) && !is_dangerous(first);
    let weights: Vec<f64> = candidates.iter().map(|c| if is_barred(c) { 0.0 } else { worth(c) }).collect();
    let total: f64 = weights.iter().sum();
    let support = |i: usize| -> f64 {
        let alike = candidates.iter().zip(&weights).filter(|(c, _)| agree(c, &candidates[i]));
        alike.map(|(_, weight)| weight).sum()
    };
    let mut best = (0, support(0));
    for (i, _) in candidates.iter().enumerate().skip(1).filter(|(_, c)| !is_barred(c)) {
        // of those that do the same, the first one written stays
        let support = support(i);
        if support > best.1 * (1.0 + 1e-9) {
            best = (i, support);
        }
    }
    let share = if total > 0.0 { best.1 / total } else { 0.0 };
    Some(Choice { index: best.0, share })
}

fn is_dangerous(candidate: &Candidate) -> bool {
    candidate.draft.risk.level == Level::Danger
}

fn worth(candidate: &Candidate) -> f64 {
    let checks = match weight(&candidate.draft.findings) {
        0..100 => 1.0,
        100..10_000 => WARNING,
        _ => ERROR,
    };
    let trial = match candidate.trial.as_ref().map(|t| t.ending) {
        Some(Ending::Failed) => FAILED,
        Some(Ending::NoEffect) => SILENT,
        Some(Ending::Fine | Ending::Stopped) | None => 1.0,
    };
    let documented = if candidate.documented { DOCUMENTED } else { 1.0 };
    candidate.likelihood.powf(TEMPER) * documented * checks * trial
}

/// True if the two do the same, as far as is known.
pub(super) fn agree(a: &Candidate, b: &Candidate) -> bool {
    match (&a.trial, &b.trial) {
        (Some(a), Some(b)) if a.ending == Ending::Fine && b.ending == Ending::Fine => a.agrees(b),
        _ => a.draft.cmd == b.draft.cmd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::{Finding, Severity};

    fn candidate(cmd: &str, likelihood: f64, ending: Option<Ending>, outcome: u64) -> Candidate {
        let draft = Draft { cmd: cmd.into(), ..Draft::none() };
        Candidate {
            draft,
            likelihood,
            documented: false,
            trial: ending.map(|ending| RehearsalResult {
                ending,
                outcome,
                order: 0,
                blanks: 0,
                minds: Default::default(),
                complaint: None,
            }),
        }
    }

    fn finding(severity: Severity) -> Finding {
        Finding {
            id: "x".into(),
            severity,
            token: String::new(),
            span: None,
            why: String::new(),
            evidence: vec![],
            fix: None,
        }
    }

    fn chosen(candidates: &[Candidate]) -> usize {
        choose(candidates).unwrap().index
    }

    #[test]
    fn the_likeliest_is_chosen_and_the_first_where_nothing_is_likelier() {
        let mut c = [candidate("a", 0.1, None, 0), candidate("b", 0.1, None, 0), candidate("c", 0.2, None, 0)];
        assert_eq!(chosen(&c), 2);
        c[2].likelihood = 0.1;
        assert_eq!(chosen(&c), 0);
        c[1].documented = true;
        assert_eq!(chosen(&c), 1);
        c[1].documented = false;
        assert_eq!(chosen(&c[..1]), 0);
        assert_eq!(choose(&[]), None);
        // long commands are unlikely as a whole, each of them
        (c[0].likelihood, c[1].likelihood, c[2].likelihood) = (1e-40, 3e-40, 2e-40);
        assert_eq!(chosen(&c), 1);
        // a model that tells nothing
        c.iter_mut().for_each(|c| c.likelihood = 0.0);
        assert_eq!(choose(&c), Some(Choice { index: 0, share: 0.0 }));
    }

    #[test]
    fn commands_that_do_the_same_add_up() {
        let fine = Some(Ending::Fine);
        let c = [
            candidate("ls", 0.3, fine, 1),
            candidate("find . -type f", 0.2, fine, 2),
            candidate("find . -type f -print", 0.2, fine, 2),
        ];
        let choice = choose(&c).unwrap();
        assert_eq!(choice.index, 1, "the first written of those that agree");
        let (one, two) = (0.3_f64.powf(TEMPER), 2.0 * 0.2_f64.powf(TEMPER));
        assert!((choice.share - two / (one + two)).abs() < 1e-9, "{}", choice.share);
    }

    #[test]
    fn two_that_do_the_same_outweigh_one_that_is_likelier_than_both() {
        let fine = Some(Ending::Fine);
        let mut c = [candidate("a", 0.5, fine, 1), candidate("b", 0.1, fine, 2), candidate("c", 0.1, fine, 2)];
        assert_eq!(chosen(&c), 1);
        // but not one that leaves both far behind
        c[0].likelihood = 0.9;
        assert_eq!(chosen(&c), 0);
    }

    #[test]
    fn a_failure_or_a_finding_loses_against_what_works() {
        let c = [candidate("a", 0.4, Some(Ending::Failed), 0), candidate("b", 0.02, Some(Ending::Fine), 1)];
        assert_eq!(chosen(&c), 1);
        let mut c = [candidate("a", 0.2, None, 0), candidate("b", 0.1, None, 0)];
        c[0].draft.findings = vec![finding(Severity::Warning)];
        assert_eq!(chosen(&c), 1);
        c[1].draft.findings = vec![finding(Severity::Error)];
        assert_eq!(chosen(&c), 0);
    }

    #[test]
    fn failures_do_not_agree_with_each_other() {
        let failed = Some(Ending::Failed);
        let c = [
            candidate("a", 0.1, Some(Ending::Fine), 1),
            candidate("b", 0.4, failed, 0),
            candidate("c", 0.4, failed, 0),
            candidate("d", 0.4, failed, 0),
        ];
        assert_eq!(chosen(&c), 0);
    }

    #[test]
    fn likelihood_is_no_permission() {
        let mut c = [candidate("a", 0.1, None, 0), candidate("b", 0.9, None, 0)];
        assert_eq!(chosen(&c), 1);
        c[1].draft.risk.level = Level::Caution;
        assert_eq!(chosen(&c), 1, "who asks for a change is not helped by a look");
        c[1].draft.risk.level = Level::Danger;
        assert_eq!(chosen(&c), 0);
        // nor that of another one that does the same
        let fine = Some(Ending::Fine);
        let mut c = [candidate("a", 0.1, fine, 1), candidate("b", 0.1, fine, 2), candidate("c", 0.9, fine, 2)];
        c[1].draft.risk.level = Level::Danger;
        assert_eq!(chosen(&c), 2);
    }
}
