//! Computes the probability that a command does what was asked, from the model's token probabilities.

use caro_model::{Completion, Token};

/// Coefficients of a logistic regression over [`Features`] and the length of the request, fitted by
/// `benches/calibrate.py` on executed answers. Source of the figures: `benches/records/2026-11-25-length.md`.
#[derive(Debug, Clone, Copy)]
struct Calibration {
    bias: f64,
    mean: f64,
    worst: f64,
    /// The coefficient of the logarithm of the number of words. Longer requests are answered rightly less often,
    /// however sure the model is of its tokens.
    words: f64,
}

/// The least log-probability that counts; lower ones are raised to it. A token that only the grammar allowed has
/// minus infinity.
const MIN_LOGPROB: f64 = -20.0;

const CALIBRATION: Calibration = Calibration { bias: 6.62, mean: 7.59, worst: 1.29, words: -1.55 };

/// The coefficients for the confidence after a choice, a little flatter than fitted, as there were few such answers
/// to fit.
struct ChoiceCalibration {
    bias: f64,
    support: f64,
    words: f64,
}

const CHOICE_CALIBRATION: ChoiceCalibration = ChoiceCalibration { bias: 2.3, support: 5.2, words: -2.0 };

/// The statistics of a completion's token probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features {
    /// Mean natural log-probability of the tokens.
    pub mean: f64,
    /// The sum of the log-probabilities.
    pub sum: f64,
    /// The lowest log-probability.
    pub worst: f64,
}

impl Features {
    /// Computes the features of these tokens; `None` if the model reported no probabilities.
    pub fn of(tokens: &[Token]) -> Option<Self> {
        let logs: Vec<f64> = tokens.iter().filter_map(|t| t.logprob).map(f64::from).filter(|l| !l.is_nan()).collect();
        if logs.is_empty() {
            return None;
        }
        let logs = logs.iter().map(|l| l.max(MIN_LOGPROB));
        let (sum, worst) = logs.clone().fold((0.0, 0.0_f64), |(s, w), l| (s + l, w.min(l)));
        Some(Self { mean: sum / logs.len() as f64, sum, worst })
    }
}

/// Returns the probability, between 0 and 1, that the completion does what the request asks for. 0.5 for a model that
/// reports no log-probabilities.
pub fn of(completion: &Completion, request: &str) -> f64 {
    Features::of(&completion.tokens).map_or(0.5, |features| probability(features, length(request)))
}

/// Returns the probability with which the model writes exactly this text and ends it there: the product of the
/// probabilities of all tokens and of the end. 0 for a model that reports none.
pub fn likelihood(completion: &Completion) -> f64 {
    let Some(features) = Features::of(&completion.tokens) else { return 0.0 };
    let end = completion.end.filter(|end| !end.is_nan()).map_or(0.0, f64::from);
    (features.sum + end.max(MIN_LOGPROB)).exp()
}

/// Returns the confidence in a chosen candidate, from its confidence `alone`, the `share` of weight that agrees with
/// it, and the length of the request.
pub fn of_choice(alone: f64, share: f64, request: &str) -> f64 {
    let support = (0.3 * alone + 0.7 * share).clamp(0.0, 1.0);
    let c = CHOICE_CALIBRATION;
    logistic(c.bias + c.support * support + c.words * length(request))
}

fn probability(f: Features, length: f64) -> f64 {
    let c = CALIBRATION;
    logistic(c.bias + c.mean * f.mean + c.worst * f.worst + c.words * length)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Returns the natural logarithm of the number of words in a request. In scripts without blanks, two characters count
/// as a word.
fn length(request: &str) -> f64 {
    let is_sign =
        |c: &char| matches!(*c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{3ffff}');
    let words: usize = request.split_whitespace().map(|word| (word.chars().filter(is_sign).count() / 2).max(1)).sum();
    (words.max(1) as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_model::{Finish, Usage};

    fn tokens(logs: &[f32]) -> Vec<Token> {
        logs.iter().map(|l| Token { bytes: vec![b'x'], logprob: Some(*l), runner_up: None }).collect()
    }

    #[test]
    fn surer_tokens_give_more_confidence() {
        let p = |logs: &[f32]| probability(Features::of(&tokens(logs)).unwrap(), length("list all files here"));
        let (sure, middling, lost) = (p(&[-0.01, -0.02]), p(&[-0.01, -0.9]), p(&[-1.5, -3.0]));
        assert!(sure > middling && middling > lost, "{sure} {middling} {lost}");
        assert!((0.0..=1.0).contains(&lost) && sure <= 1.0);
    }

    #[test]
    fn longer_requests_give_less_confidence() {
        let p = |request: &str| probability(Features::of(&tokens(&[-0.05, -0.1])).unwrap(), length(request));
        let long =
            "rename every picture here after its date, put those of each year into a folder and list what is left";
        assert!(p("list all pictures") > p(long) + 0.1);
        assert!(of_choice(0.5, 0.8, "list all pictures") > of_choice(0.5, 0.8, long));
        // the same in a script without blanks
        let (short, long) =
            ("列出所有图片", "把这里的每张图片按日期重命名，把每年的图片放进一个文件夹，然后列出剩下的文件");
        assert!(p(short) > p(long) + 0.1);
        assert_eq!(length(""), 0.0);
    }

    #[test]
    fn the_likelihood_includes_that_of_the_end() {
        let of = |logs: &[f32], end: Option<f32>| {
            let (text, finish, usage) = (String::new(), Finish::Stop, Usage::default());
            likelihood(&Completion { text, tokens: tokens(logs), end, finish, usage })
        };
        assert!((of(&[-0.5, -0.5], Some(-1.0)) - (-2.0_f64).exp()).abs() < 1e-6);
        assert!(of(&[-0.5], Some(-0.1)) > of(&[-0.5], Some(-3.0)));
        assert!(of(&[f32::NEG_INFINITY], Some(f32::NEG_INFINITY)) > 0.0);
        assert_eq!(of(&[], None), 0.0);
    }

    #[test]
    fn impossible_tokens_give_a_finite_confidence() {
        let p = probability(Features::of(&tokens(&[f32::NEG_INFINITY, f32::NAN, -0.1])).unwrap(), 0.0);
        assert!(p.is_finite() && p < 0.1);
        assert_eq!(Features::of(&[]), None);
    }
}
