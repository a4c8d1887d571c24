//! From logits to one token: log-probabilities, the likeliest, or a draw.

use super::simd;
use crate::model::Sampling;

/// What the unmasked distribution says of its likeliest tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Peak {
    /// The likeliest token.
    pub best: u32,
    /// The second likeliest.
    pub second: u32,
    best_logit: f32,
    second_logit: f32,
    /// Logarithm of the sum of all exponentials.
    log_sum: f32,
}

impl Peak {
    /// Reads the logits once for the two largest, once for their sum. Logits that are no numbers count as impossible.
    pub fn of(logits: &[f32]) -> Self {
        let (mut best, mut second) = (0, 0);
        let (mut best_logit, mut second_logit) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
        for (id, &logit) in (0u32..).zip(logits) {
            if logit > second_logit {
                if logit > best_logit {
                    (second, second_logit) = (best, best_logit);
                    (best, best_logit) = (id, logit);
                } else {
                    (second, second_logit) = (id, logit);
                }
            }
        }
        let log_sum = best_logit + simd::sum_exp(logits, best_logit).ln();
        Self { best, second, best_logit, second_logit, log_sum }
    }

    /// False if no logit is a finite number.
    pub fn is_sound(&self) -> bool {
        self.best_logit.is_finite()
    }

    /// Log-probability of a token with this logit.
    pub fn logprob(&self, logit: f32) -> f32 {
        logit - self.log_sum
    }

    /// Log-probability of the likeliest token that is not `id`.
    pub fn runner_up(&self, id: u32) -> f32 {
        if id == self.best { self.second_logit - self.log_sum } else { self.best_logit - self.log_sum }
    }
}

/// Chooses among tokens; the random ones from a generator of its own, so that a seed means the same everywhere.
#[derive(Debug, Clone)]
pub(super) struct Sampler {
    sampling: Sampling,
    state: u64,
    /// Candidates of the nucleus, kept for its allocation.
    nucleus: Vec<(f32, u32)>,
}

impl Sampler {
    /// A sampler for one completion.
    pub fn new(sampling: Sampling) -> Self {
        Self { sampling, state: sampling.seed, nucleus: Vec::new() }
    }

    /// True if it always takes the likeliest.
    pub fn is_greedy(&self) -> bool {
        self.sampling.temperature <= 0.0 || self.sampling.temperature.is_nan()
    }

    /// The next token. What must not be chosen has a logit of negative infinity; `None` if that is all of them.
    pub fn choose(&mut self, logits: &[f32]) -> Option<u32> {
        let mut best = None;
        let mut peak = f32::NEG_INFINITY;
        for (id, &logit) in (0u32..).zip(logits) {
            if logit > peak {
                (best, peak) = (Some(id), logit);
            }
        }
        if self.is_greedy() || best.is_none() {
            return best;
        }
        self.draw(logits, peak).or(best)
    }

    fn draw(&mut self, logits: &[f32], peak: f32) -> Option<u32> {
        /// Relative weight below which a token is not worth sorting: 2^-29.
        const NEGLIGIBLE: f32 = -20.0;
        let scale = 1.0 / self.sampling.temperature;
        self.nucleus.clear();
        for (id, &logit) in (0u32..).zip(logits) {
            let exponent = (logit - peak) * scale;
            if exponent > NEGLIGIBLE {
                self.nucleus.push((exponent.exp(), id));
            }
        }
        let total: f32 = self.nucleus.iter().map(|&(weight, _)| weight).sum();
        let mut mass = total;
        if self.sampling.top_p < 1.0 {
            self.nucleus.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let wanted = total * self.sampling.top_p.max(0.0);
            mass = 0.0;
            let mut kept = 0;
            for &(weight, _) in &self.nucleus {
                mass += weight;
                kept += 1;
                if mass >= wanted {
                    break;
                }
            }
            self.nucleus.truncate(kept);
        }
        let mut left = self.uniform() * mass;
        for &(weight, id) in &self.nucleus {
            left -= weight;
            if left < 0.0 {
                return Some(id);
            }
        }
        self.nucleus.last().map(|&(_, id)| id)
    }

    /// The next number in [0, 1), by SplitMix64 (Steele, Lea, Flood 2014).
    fn uniform(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_distribution_s() {
        let logits = [1.0, 3.0, -2.0, 2.5, f32::NAN];
        let peak = Peak::of(&logits);
        assert_eq!((peak.best, peak.second), (1, 3));
        let sum: f32 = logits[..4].iter().map(|x| x.exp()).sum();
        assert!((peak.logprob(3.0) - (3.0f32.exp() / sum).ln()).abs() < 1e-5);
        assert!((peak.runner_up(1) - (2.5f32.exp() / sum).ln()).abs() < 1e-5);
        assert_eq!(peak.runner_up(3), peak.logprob(3.0), "the likeliest is the rival of any other");
    }

    #[test]
    fn greedy_takes_the_likeliest_that_is_allowed() {
        let mut sampler = Sampler::new(Sampling::GREEDY);
        assert_eq!(sampler.choose(&[0.0, f32::NEG_INFINITY, 1.0]), Some(2));
        assert_eq!(sampler.choose(&[f32::NEG_INFINITY, f32::NAN]), None);
        assert_eq!(sampler.choose(&[]), None);
    }

    #[test]
    fn a_draw_follows_the_probabilities_and_never_leaves_the_nucleus() {
        let logits = [2.0f32, 1.0, 0.0, f32::NEG_INFINITY];
        let mut sampler = Sampler::new(Sampling { temperature: 1.0, top_p: 1.0, seed: 42 });
        let mut counts = [0usize; 4];
        for _ in 0..20_000 {
            counts[sampler.choose(&logits).unwrap() as usize] += 1;
        }
        let sum: f32 = logits.iter().map(|x| x.exp()).sum();
        for (count, logit) in counts.iter().zip(logits) {
            let share = *count as f32 / 20_000.0;
            assert!((share - logit.exp() / sum).abs() < 0.015, "{counts:?}");
        }
        // The likeliest alone has 66.5 % of the mass.
        let mut narrow = Sampler::new(Sampling { temperature: 1.0, top_p: 0.6, seed: 1 });
        assert!((0..1000).all(|_| narrow.choose(&logits) == Some(0)));
        let mut two = Sampler::new(Sampling { temperature: 1.0, top_p: 0.7, seed: 1 });
        assert!((0..1000).all(|_| two.choose(&logits).unwrap() < 2));
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let logits: Vec<f32> = (0..100).map(|i| (i as f32 * 0.37).sin()).collect();
        let draw = |seed| {
            let mut sampler = Sampler::new(Sampling { temperature: 0.8, top_p: 0.95, seed });
            (0..50).map(|_| sampler.choose(&logits).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
    }
}
