//! How sure the model was, as a probability that the command does what was asked.

use crate::model::{Completion, Token};

/// Coefficients of a logistic regression over [`Features`]: a first guess, scaled by `benches/calibrate.py` on executed
/// answers. Source of the figures: `benches/records/2026-11-21-accuracy.md`.
#[derive(Debug, Clone, Copy)]
struct Calibration {
    bias: f64,
    mean: f64,
    worst: f64,
}

const CALIBRATION: Calibration = Calibration { bias: 2.4, mean: 8.2, worst: 1.4 };

/// What the probabilities of a completion's tokens say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features {
    /// Mean natural log-probability of the tokens.
    pub mean: f64,
    /// The lowest of them.
    pub worst: f64,
}

impl Features {
    /// The features of these tokens; `None` where the model told no probabilities.
    pub fn of(tokens: &[Token]) -> Option<Self> {
        let logs: Vec<f64> = tokens.iter().filter_map(|t| t.logprob).map(f64::from).filter(|l| !l.is_nan()).collect();
        if logs.is_empty() {
            return None;
        }
        // a token that only the grammar allowed has a log-probability of minus infinity; -20 is as good as that
        let logs = logs.iter().map(|l| l.max(-20.0));
        let (sum, worst) = logs.clone().fold((0.0, 0.0_f64), |(s, w), l| (s + l, w.min(l)));
        Some(Self { mean: sum / logs.len() as f64, worst })
    }
}

/// The probability, between 0 and 1. A model that tells no log-probabilities gets 0.5: nothing is known.
pub fn of(completion: &Completion) -> f64 {
    Features::of(&completion.tokens).map_or(0.5, probability)
}

/// The geometric mean of the tokens' probabilities; 0.5 of a model that tells none.
pub fn odds(completion: &Completion) -> f64 {
    Features::of(&completion.tokens).map_or(0.5, |f| f.mean.exp())
}

/// The confidence after a choice among candidates: what the model's own probabilities said, and the share of candidates
/// that agree with the chosen one.
pub fn agreed(alone: f64, share: f64) -> f64 {
    (0.3 * alone + 0.7 * share).clamp(0.0, 1.0)
}

fn probability(f: Features) -> f64 {
    let c = CALIBRATION;
    1.0 / (1.0 + (-(c.bias + c.mean * f.mean + c.worst * f.worst)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(logs: &[f32]) -> Vec<Token> {
        logs.iter().map(|l| Token { bytes: vec![b'x'], logprob: Some(*l), runner_up: None }).collect()
    }

    #[test]
    fn surer_tokens_give_more_confidence() {
        let p = |logs: &[f32]| probability(Features::of(&tokens(logs)).unwrap());
        let (sure, middling, lost) = (p(&[-0.01, -0.02]), p(&[-0.01, -0.9]), p(&[-1.5, -3.0]));
        assert!(sure > middling && middling > lost, "{sure} {middling} {lost}");
        assert!((0.0..=1.0).contains(&lost) && sure <= 1.0);
    }

    #[test]
    fn impossible_tokens_do_not_make_it_nonsense() {
        let p = probability(Features::of(&tokens(&[f32::NEG_INFINITY, f32::NAN, -0.1])).unwrap());
        assert!(p.is_finite() && p < 0.1);
        assert_eq!(Features::of(&[]), None);
    }
}
