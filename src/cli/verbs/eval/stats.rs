//! Statistics of a score: intervals, paired tests, calibration. Pure functions.

use serde::{Deserialize, Serialize};

/// Wilson's 95 % interval of `passed` out of `of`. Source: Wilson 1927; z = 1.96.
pub fn wilson(passed: usize, of: usize) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    const Z: f64 = 1.959_964;
    let (n, p) = (of as f64, passed as f64 / of as f64);
    let middle = p + Z * Z / (2.0 * n);
    let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + Z * Z / n;
    (((middle - spread) / whole).max(0.0), ((middle + spread) / whole).min(1.0))
}

/// Two-sided sign test (the exact McNemar test): the probability of a split at least this uneven if neither is
/// better.
pub fn sign_test(wins: usize, losses: usize) -> f64 {
    let (n, few) = (wins + losses, wins.min(losses));
    // sum of binomial(n, k) / 2^n for k up to the smaller, each term from the one before, in logarithms.
    let mut term = -(n as f64) * std::f64::consts::LN_2;
    let mut sum = 0.0;
    for k in 0..=few {
        sum += term.exp();
        term += ((n - k) as f64 / (k + 1) as f64).ln();
    }
    (2.0 * sum).min(1.0)
}

/// The value below which the given share of the values lies (nearest rank); 0 without values.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// Measures of how well confidence predicts success.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Expected calibration error over ten bins of equal width.
    pub ece: f64,
    /// Chance that a right answer is more confident than a wrong one; `None` without both kinds.
    pub auroc: Option<f64>,
    /// The Brier score: the mean squared error.
    pub brier: f64,
}

/// Computes the calibration of answers, each with its confidence and true if it was right; `None` without answers.
pub fn calibration(answers: &[(f64, bool)]) -> Option<Calibration> {
    if answers.is_empty() {
        return None;
    }
    const BINS: usize = 10;
    let n = answers.len() as f64;
    let truth = |right: bool| if right { 1.0 } else { 0.0 };
    let mut bins = [(0.0, 0.0, 0.0); BINS];
    for (confidence, right) in answers {
        let bin = &mut bins[((confidence * BINS as f64) as usize).min(BINS - 1)];
        *bin = (bin.0 + 1.0, bin.1 + confidence, bin.2 + truth(*right));
    }
    let ece = bins.iter().map(|(_, confident, right)| (confident - right).abs() / n).sum();
    let brier = answers.iter().map(|(c, right)| (c - truth(*right)).powi(2)).sum::<f64>() / n;
    let of = |wanted: bool| answers.iter().filter(move |(_, right)| *right == wanted).map(|(c, _)| *c);
    let pairs = of(true).count() * of(false).count();
    let ahead = |a: f64, b: f64| {
        if a > b {
            1.0
        } else if a == b {
            0.5
        } else {
            0.0
        }
    };
    let sum: f64 = of(true).map(|a| of(false).map(|b| ahead(a, b)).sum::<f64>()).sum();
    Some(Calibration { ece, auroc: (pairs > 0).then(|| sum / pairs as f64), brier })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-4
    }

    #[test]
    fn wilson_as_in_tables() {
        let (low, high) = wilson(66, 100);
        assert!(near(low, 0.5628) && near(high, 0.7454), "{low} {high}");
        let (low, high) = wilson(0, 10);
        assert!(low == 0.0 && near(high, 0.2775), "{low} {high}");
        assert_eq!(wilson(0, 0), (0.0, 1.0));
        assert!(near(wilson(5, 5).1, 1.0));
    }

    #[test]
    fn sign_test_as_by_hand() {
        assert!(near(sign_test(5, 0), 0.0625));
        assert!(near(sign_test(8, 2), 0.1094));
        assert!(near(sign_test(2, 8), 0.1094));
        assert_eq!((sign_test(0, 0), sign_test(3, 3)), (1.0, 1.0));
        assert!(sign_test(3000, 10) < 1e-6);
    }

    #[test]
    fn percentiles_by_nearest_rank() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!((percentile(&values, 0.5), percentile(&values, 0.95), percentile(&[], 0.5)), (2.0, 4.0, 0.0));
    }

    #[test]
    fn perfect_and_useless_confidence() {
        let perfect = calibration(&[(1.0, true), (0.0, false), (1.0, true)]).unwrap();
        assert_eq!(perfect, Calibration { ece: 0.0, auroc: Some(1.0), brier: 0.0 });
        let useless = calibration(&[(0.5, true), (0.5, false)]).unwrap();
        assert_eq!(useless, Calibration { ece: 0.0, auroc: Some(0.5), brier: 0.25 });
        let vain = calibration(&[(1.0, false), (0.9, false)]).unwrap();
        assert!(near(vain.ece, 0.95) && vain.auroc.is_none());
        assert_eq!(calibration(&[]), None);
    }
}
