//! One command out of several for the same request: those that do the same vote together.
//!
//! A small model that is unsure is often right in most of its tries and wrong in a different way each time; and what it
//! finds likelier, as a whole, is righter more often. What commands do is seen in a rehearsal ([`super::trial`]), where there was one; else two commands do the same if they read the same.

use super::checks::weight;
use super::trial::{Ending, Trial};
use super::turn::Draft;

/// A command with the votes it has.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The command, looked at by the checks.
    pub draft: Draft,
    /// How often the model wrote it.
    pub votes: u32,
    /// How likely the model found its tokens: their geometric mean probability.
    pub odds: f64,
    /// What it did in a rehearsal; `None` where there was none.
    pub trial: Option<Trial>,
}

/// What was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// Which candidate.
    pub index: usize,
    /// The share of all weight that agrees with it, between 0 and 1.
    pub share: f64,
}

/// What the first candidate has beyond its vote: it is the model's likeliest answer to the bare request, and stays where
/// nothing clearly beats it.
const FIRST: f64 = 0.5;

/// What a vote counts for a command that a check accuses of an error, or warns of.
const ERROR: f64 = 0.1;
const WARNING: f64 = 0.5;

/// What a vote counts for a command that failed in its rehearsal, or had nothing to say.
const FAILED: f64 = 0.2;
const SILENT: f64 = 0.6;

/// Chooses; `None` of no candidates. One that is riskier than the first is never chosen: agreement is no permission.
pub fn choose(candidates: &[Candidate]) -> Option<Choice> {
    let first = candidates.first()?;
    let weights: Vec<f64> = candidates
        .iter()
        .enumerate()
        .map(|(i, c)| if c.draft.risk.level > first.draft.risk.level { 0.0 } else { worth(c, i == 0) })
        .collect();
    let total: f64 = weights.iter().sum();
    let support = |i: usize| -> f64 {
        let alike = candidates.iter().zip(&weights).filter(|(c, _)| agree(c, &candidates[i]));
        alike.map(|(_, weight)| weight).sum()
    };
    let mut best = (0, support(0), weights[0]);
    for (i, &weight) in weights.iter().enumerate().skip(1) {
        // of those that do the same, the first one written stays
        let support = support(i);
        if support > best.1 + 1e-9 {
            best = (i, support, weight);
        }
    }
    let share = if total > 0.0 { best.1 / total } else { 0.0 };
    Some(Choice { index: best.0, share })
}

fn worth(candidate: &Candidate, is_first: bool) -> f64 {
    let votes = (f64::from(candidate.votes) + if is_first { FIRST } else { 0.0 }) * candidate.odds;
    let checks = match weight(&candidate.draft.findings) {
        0..100 => 1.0,
        100..10_000 => WARNING,
        _ => ERROR,
    };
    let trial = match candidate.trial.as_ref().map(|t| t.ending) {
        Some(Ending::Failed) => FAILED,
        Some(Ending::Silent) => SILENT,
        Some(Ending::Fine | Ending::Stopped) | None => 1.0,
    };
    votes * checks * trial
}

/// True if the two do the same, as far as is known.
fn agree(a: &Candidate, b: &Candidate) -> bool {
    match (&a.trial, &b.trial) {
        (Some(a), Some(b)) if a.ending == Ending::Fine && b.ending == Ending::Fine => a.outcome == b.outcome,
        _ => a.draft.cmd == b.draft.cmd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::safety::Level;
    use crate::shell::{Finding, Severity};

    fn candidate(cmd: &str, votes: u32, ending: Option<Ending>, outcome: u64) -> Candidate {
        let draft = Draft { cmd: cmd.into(), ..Draft::none() };
        Candidate { draft, votes, odds: 0.9, trial: ending.map(|ending| Trial { ending, outcome, complaint: None }) }
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
    fn commands_that_do_the_same_vote_together() {
        let fine = Some(Ending::Fine);
        let c = [
            candidate("ls", 1, fine, 1),
            candidate("find . -type f", 1, fine, 2),
            candidate("find . -type f -print", 1, fine, 2),
        ];
        let choice = choose(&c).unwrap();
        assert_eq!(choice.index, 1, "the first written of those that agree");
        assert!((choice.share - 2.0 / 3.5).abs() < 1e-9, "{}", choice.share);
    }

    #[test]
    fn the_first_stays_where_nothing_beats_it() {
        let c = [candidate("a", 1, None, 0), candidate("b", 1, None, 0), candidate("c", 1, None, 0)];
        assert_eq!(chosen(&c), 0);
        assert_eq!(chosen(&c[..1]), 0);
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn the_likelier_one_is_chosen() {
        let mut c = [candidate("a", 1, None, 0), candidate("b", 1, None, 0), candidate("c", 1, None, 0)];
        (c[0].odds, c[1].odds, c[2].odds) = (0.4, 0.7, 0.8);
        assert_eq!(chosen(&c), 2);
        c[0].odds = 0.6;
        assert_eq!(chosen(&c), 0);
    }

    #[test]
    fn a_failure_or_a_finding_loses_against_what_works() {
        let c = [candidate("a", 2, Some(Ending::Failed), 0), candidate("b", 1, Some(Ending::Fine), 1)];
        assert_eq!(chosen(&c), 1);
        let mut c = [candidate("a", 1, None, 0), candidate("b", 1, None, 0)];
        c[0].draft.findings = vec![finding(Severity::Warning)];
        assert_eq!(chosen(&c), 1);
        c[1].draft.findings = vec![finding(Severity::Error)];
        assert_eq!(chosen(&c), 0);
    }

    #[test]
    fn failures_do_not_agree_with_each_other() {
        let failed = Some(Ending::Failed);
        let c = [
            candidate("a", 1, Some(Ending::Fine), 1),
            candidate("b", 2, failed, 0),
            candidate("c", 2, failed, 0),
            candidate("d", 2, failed, 0),
        ];
        assert_eq!(chosen(&c), 0);
    }

    #[test]
    fn agreement_is_no_permission() {
        let mut c = [candidate("a", 1, None, 0), candidate("b", 9, None, 0)];
        assert_eq!(chosen(&c), 1);
        c[1].draft.risk.level = Level::Danger;
        assert_eq!(chosen(&c), 0);
    }
}
