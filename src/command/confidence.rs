//! How sure the model was, as a probability that the command does what was asked.

use caro_model::{Completion, Token};

/// Coefficients of a logistic regression over [`Features`] and the length of the request, fitted by `benches/calibrate.py` on
/// executed answers. Source of the figures: `benches/records/2026-11-25-length.md`.
#[derive(Debug, Clone, Copy)]
struct Calibration {
    bias: f64,
    mean: f64,
    worst: f64,
    /// Of the logarithm of the request's words: who asks for more at once is less often answered rightly, however sure the
    /// model is of what it writes.
    words: f64,
}

/// The least log-probability that is told apart. A token that only the grammar allowed has minus infinity.
const LEAST: f64 = -20.0;

const CALIBRATION: Calibration = Calibration { bias: 6.62, mean: 7.59, worst: 1.29, words: -1.55 };

/// The same of the confidence after a choice, a little flatter than fitted: few such answers are known.
struct Agreed {
    bias: f64,
    support: f64,
    words: f64,
}

const AGREED: Agreed = Agreed { bias: 2.3, support: 5.2, words: -2.0 };

/// What the probabilities of a completion's tokens say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features {
    /// Mean natural log-probability of the tokens.
    pub mean: f64,
    /// Their sum.
    pub sum: f64,
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
        let logs = logs.iter().map(|l| l.max(LEAST));
        let (sum, worst) = logs.clone().fold((0.0, 0.0_f64), |(s, w), l| (s + l, w.min(l)));
        Some(Self { mean: sum / logs.len() as f64, sum, worst })
    }
}

/// The probability, between 0 and 1, that the completion does what the request asks for. A model that tells no
/// log-probabilities gets 0.5: nothing is known.
pub fn of(completion: &Completion, request: &str) -> f64 {
    Features::of(&completion.tokens).map_or(0.5, |features| probability(features, length(request)))
}

/// How likely the model was to write just this and to end there: the product of the probabilities of all tokens and of the
/// end. 0 of a model that tells none.
pub fn likelihood(completion: &Completion) -> f64 {
    let Some(words) = Features::of(&completion.tokens) else { return 0.0 };
    let end = completion.end.filter(|end| !end.is_nan()).map_or(0.0, f64::from);
    (words.sum + end.max(LEAST)).exp()
}

/// The confidence after a choice among candidates: what the model's own probabilities said, the share of candidates that
/// agree with the chosen one, and the length of the request.
pub fn agreed(alone: f64, share: f64, request: &str) -> f64 {
    let support = (0.3 * alone + 0.7 * share).clamp(0.0, 1.0);
    logistic(AGREED.bias + AGREED.support * support + AGREED.words * length(request))
}

fn probability(f: Features, length: f64) -> f64 {
    let c = CALIBRATION;
    logistic(c.bias + c.mean * f.mean + c.worst * f.worst + c.words * length)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The natural logarithm of a request's words; of what is written without blanks, two signs are one.
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
    fn whoever_asks_for_more_is_less_often_answered_rightly() {
        let p = |request: &str| probability(Features::of(&tokens(&[-0.05, -0.1])).unwrap(), length(request));
        let long =
            "rename every picture here after its date, put those of each year into a folder and list what is left";
        assert!(p("list all pictures") > p(long) + 0.1);
        assert!(agreed(0.5, 0.8, "list all pictures") > agreed(0.5, 0.8, long));
        // the same in a script without blanks
        let (short, long) =
            ("列出所有图片", "把这里的每张图片按日期重命名，把每年的图片放进一个文件夹，然后列出剩下的文件");
        assert!(p(short) > p(long) + 0.1);
        assert_eq!(length(""), 0.0);
    }

    #[test]
    fn what_could_have_gone_on_is_less_likely_to_be_all() {
        let said = |logs: &[f32], end: Option<f32>| {
            let (text, finish, usage) = (String::new(), Finish::Stop, Usage::default());
            likelihood(&Completion { text, tokens: tokens(logs), end, finish, usage })
        };
        assert!((said(&[-0.5, -0.5], Some(-1.0)) - (-2.0_f64).exp()).abs() < 1e-6);
        assert!(said(&[-0.5], Some(-0.1)) > said(&[-0.5], Some(-3.0)));
        assert!(said(&[f32::NEG_INFINITY], Some(f32::NEG_INFINITY)) > 0.0);
        assert_eq!(said(&[], None), 0.0);
    }

    #[test]
    fn impossible_tokens_do_not_make_it_nonsense() {
        let p = probability(Features::of(&tokens(&[f32::NEG_INFINITY, f32::NAN, -0.1])).unwrap(), 0.0);
        assert!(p.is_finite() && p < 0.1);
        assert_eq!(Features::of(&[]), None);
    }
}
