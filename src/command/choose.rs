//! Chooses one of several commands for the same request: the one whose effect is the likeliest.
//!
//! A command that is likelier as a whole is right more often, though by less than its likelihood says; counting how
//! often a command was sampled only estimates that likelihood. The weights of commands with the same effect add up. A
//! rehearsal shows the effect ([`super::trial`]); without one, only equal texts have the same effect. The reverse
//! likelihood, that of the request given the command, was measured too and does not help
//! (`benches/records/2026-11-24-choice.md`).

use super::checks::weight;
use super::refine_loop::Draft;
use super::trial::{Ending, RehearsalResult};
use caro_shell::safety::Level;

/// A command with the evidence for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The command with its findings.
    pub draft: Draft,
    /// The probability with which the model writes it ([`super::confidence::likelihood`]).
    pub likelihood: f64,
    /// True if the user's own documents contain it.
    pub documented: bool,
    /// The result of its rehearsal; `None` if it was not rehearsed.
    pub trial: Option<RehearsalResult>,
}

/// The chosen candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The index of the candidate.
    pub index: usize,
    /// The share of the total weight that agrees with it, between 0 and 1.
    pub share: f64,
}

/// The exponent of the likelihood in a weight. Its cube root counts, as longer commands are less likely without being
/// wrong. Any root from the second to the seventh chooses as well; the likelihood itself, or none of it, chooses
/// worse (`benches/records/2026-11-24-choice.md`).
const LIKELIHOOD_EXPONENT: f64 = 1.0 / 3.0;

/// The factors on the weight of a command if the checks find an error, or a warning.
const ERROR: f64 = 0.02;
const WARNING: f64 = 0.25;

/// The factor on the weight of a command from the user's own documents.
const DOCUMENTED: f64 = 8.0;

/// The factors on the weight of a command that failed in its rehearsal, or had no effect in it.
const FAILED: f64 = 0.001;
const NO_EFFECT: f64 = 0.3;

/// Chooses a candidate; `None` if there are none. A dangerous one is never chosen if the first one is not dangerous,
/// however likely it is.
pub fn choose(candidates: &[Candidate]) -> Option<Choice> {
    let first = candidates.first()?;
    let is_barred = |c: &Candidate| is_dangerous(c) && !is_dangerous(first);
    let weights: Vec<f64> = candidates.iter().map(|c| if is_barred(c) { 0.0 } else { weight_of(c) }).collect();
    let total: f64 = weights.iter().sum();
    let support = |i: usize| -> f64 {
        let alike = candidates.iter().zip(&weights).filter(|(c, _)| agree(c, &candidates[i]));
        alike.map(|(_, weight)| weight).sum()
    };
    let mut best = (0, support(0));
    for (i, _) in candidates.iter().enumerate().skip(1).filter(|(_, c)| !is_barred(c)) {
        // of commands with the same effect, the first one stays
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

fn weight_of(candidate: &Candidate) -> f64 {
    let checks = match weight(&candidate.draft.findings) {
        0..100 => 1.0,
        100..10_000 => WARNING,
        _ => ERROR,
    };
    let trial = match candidate.trial.as_ref().map(|t| t.ending) {
        Some(Ending::Failed) => FAILED,
        Some(Ending::NoEffect) => NO_EFFECT,
        Some(Ending::Fine | Ending::Stopped) | None => 1.0,
    };
    let documented = if candidate.documented { DOCUMENTED } else { 1.0 };
    candidate.likelihood.powf(LIKELIHOOD_EXPONENT) * documented * checks * trial
}

/// True if both have the same effect in their rehearsals, or, without two that ended well, the same text.
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
                sensitivity: Default::default(),
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
    fn the_likeliest_is_chosen_and_the_first_of_equals() {
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
        // a model that reports no probabilities
        c.iter_mut().for_each(|c| c.likelihood = 0.0);
        assert_eq!(choose(&c), Some(Choice { index: 0, share: 0.0 }));
    }

    #[test]
    fn the_weights_of_commands_with_the_same_effect_add_up() {
        let fine = Some(Ending::Fine);
        let c = [
            candidate("ls", 0.3, fine, 1),
            candidate("find . -type f", 0.2, fine, 2),
            candidate("find . -type f -print", 0.2, fine, 2),
        ];
        let choice = choose(&c).unwrap();
        assert_eq!(choice.index, 1, "the first written of those that agree");
        let (one, two) = (0.3_f64.powf(LIKELIHOOD_EXPONENT), 2.0 * 0.2_f64.powf(LIKELIHOOD_EXPONENT));
        assert!((choice.share - two / (one + two)).abs() < 1e-9, "{}", choice.share);
    }

    #[test]
    fn two_with_the_same_effect_outweigh_one_that_is_likelier_than_each() {
        let fine = Some(Ending::Fine);
        let mut c = [candidate("a", 0.5, fine, 1), candidate("b", 0.1, fine, 2), candidate("c", 0.1, fine, 2)];
        assert_eq!(chosen(&c), 1);
        // but not one that is far likelier than both
        c[0].likelihood = 0.9;
        assert_eq!(chosen(&c), 0);
    }

    #[test]
    fn a_failure_or_a_finding_loses_against_a_command_that_works() {
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
    fn a_dangerous_command_is_not_chosen_over_a_first_one_that_is_not() {
        let mut c = [candidate("a", 0.1, None, 0), candidate("b", 0.9, None, 0)];
        assert_eq!(chosen(&c), 1);
        c[1].draft.risk.level = Level::Caution;
        assert_eq!(chosen(&c), 1, "a caution is not a bar: the request may ask for a change");
        c[1].draft.risk.level = Level::Danger;
        assert_eq!(chosen(&c), 0);
        // nor does another command with the same effect help it
        let fine = Some(Ending::Fine);
        let mut c = [candidate("a", 0.1, fine, 1), candidate("b", 0.1, fine, 2), candidate("c", 0.9, fine, 2)];
        c[1].draft.risk.level = Level::Danger;
        assert_eq!(chosen(&c), 2);
    }
}
