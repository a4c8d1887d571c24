//! Chooses a token by logits: the likeliest, or a random one; computes log-probabilities.

use super::simd;
use crate::Sampling;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The two likeliest tokens of the unmasked distribution, and its normalization.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Peak {
    /// The likeliest token.
    pub best: u32,
    /// The logit of the likeliest.
    pub best_logit: f32,
    /// The logit of the second likeliest.
    second_logit: f32,
    /// Logarithm of the sum of all exponentials.
    log_sum: f32,
}

impl Peak {
    /// Computes the two largest logits and the sum. NaN counts as impossible.
    pub fn of(logits: &[f32]) -> Self {
        let mut best = 0;
        let (mut best_logit, mut second_logit) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
        for (id, &logit) in (0u32..).zip(logits) {
            if logit > second_logit {
                if logit > best_logit {
                    second_logit = best_logit;
                    (best, best_logit) = (id, logit);
                } else {
                    second_logit = logit;
                }
            }
        }
        let log_sum = best_logit + simd::sum_exp(logits, best_logit).ln();
        Self { best, best_logit, second_logit, log_sum }
    }

    /// False if no logit is a finite number.
    pub fn is_finite(&self) -> bool {
        self.best_logit.is_finite()
    }

    /// Returns the log-probability of a token with this logit.
    pub fn logprob(&self, logit: f32) -> f32 {
        logit - self.log_sum
    }

    /// Returns the log-probability of the likeliest token except `id`.
    pub fn runner_up(&self, id: u32) -> f32 {
        if id == self.best { self.second_logit - self.log_sum } else { self.best_logit - self.log_sum }
    }
}

/// An iterator over tokens by falling logit, and by rising id for equal logits. A heap, so that only the tokens read
/// are sorted.
pub(super) struct Ranked(BinaryHeap<Candidate>);

#[derive(Debug, Clone, Copy, PartialEq)]
struct Candidate {
    logit: f32,
    id: u32,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.logit.total_cmp(&other.logit).then(other.id.cmp(&self.id))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ranked {
    /// Collects the tokens with a finite logit above `floor` for which `admits` is true.
    pub fn above(floor: f32, logits: &[f32], admits: impl Fn(u32) -> bool) -> Self {
        let candidates = (0u32..).zip(logits).map(|(id, &logit)| Candidate { logit, id });
        // the comparison first: of a large vocabulary it leaves a few thousand tokens to look up
        Self(candidates.filter(|c| c.logit > floor && c.logit.is_finite() && admits(c.id)).collect())
    }

    /// Returns the likeliest token for which `allows` is true, with its logit. Removes it and all likelier tokens.
    ///
    /// # Errors
    /// The errors of `allows`.
    pub fn first<E>(&mut self, allows: &mut impl FnMut(u32) -> Result<bool, E>) -> Result<Option<(u32, f32)>, E> {
        for (id, logit) in self {
            if allows(id)? {
                return Ok(Some((id, logit)));
            }
        }
        Ok(None)
    }

    /// Iterates over the logits of all remaining tokens, in no order.
    fn logits(&self) -> impl Iterator<Item = f32> {
        self.0.iter().map(|c| c.logit)
    }
}

impl Iterator for Ranked {
    type Item = (u32, f32);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.pop().map(|c| (c.id, c.logit))
    }
}

/// The distance below the likeliest token's logit, in temperatures, at which a token is never drawn: its weight is
/// 2^-29.
const NEGLIGIBLE: f32 = 20.0;

/// Chooses tokens. Has its own random generator, so that a seed gives the same result everywhere.
#[derive(Debug, Clone)]
pub(super) struct Sampler {
    sampling: Sampling,
    state: u64,
}

impl Sampler {
    /// Returns a sampler for one completion.
    pub fn new(sampling: Sampling) -> Self {
        Self { sampling, state: sampling.seed }
    }

    /// True if it always chooses the likeliest token.
    pub fn is_greedy(&self) -> bool {
        self.sampling.temperature <= 0.0 || self.sampling.temperature.is_nan()
    }

    /// Chooses the likeliest token for which `allows` is true, or a random one; `None` if there is none. `ranked`
    /// returns the tokens above a logit, and `peak` is the largest logit.
    ///
    /// # Errors
    /// The errors of `allows`.
    pub fn choose<E>(
        &mut self,
        peak: f32,
        ranked: impl Fn(f32) -> Ranked,
        allows: &mut impl FnMut(u32) -> Result<bool, E>,
    ) -> Result<Option<u32>, E> {
        /// The distance from the largest logit within which an allowed token is nearly always found.
        const NEAR: f32 = 8.0;
        let reach = if self.is_greedy() { 0.0 } else { NEGLIGIBLE * self.sampling.temperature };
        for floor in [peak - NEAR - reach, f32::NEG_INFINITY] {
            let mut ranked = ranked(floor);
            let first = ranked.first(allows)?;
            // otherwise a token that could be drawn may be below the floor
            if let Some((id, logit)) = first.filter(|(_, logit)| logit - reach >= floor) {
                return if self.is_greedy() { Ok(Some(id)) } else { self.draw((id, logit), ranked, allows).map(Some) };
            }
        }
        Ok(None)
    }

    /// Draws an allowed token from the nucleus: the likeliest tokens that together have the mass `top_p` of all
    /// allowed ones. `(best, peak)` is the likeliest token. Tokens not read from `ranked` yet count as allowed, so
    /// that `allows` is called for few tokens.
    ///
    /// # Errors
    /// The errors of `allows`.
    fn draw<E>(
        &mut self,
        (best, peak): (u32, f32),
        mut ranked: Ranked,
        allows: &mut impl FnMut(u32) -> Result<bool, E>,
    ) -> Result<u32, E> {
        let scale = 1.0 / self.sampling.temperature;
        let weight = |logit: f32| Some((logit - peak) * scale).filter(|x| *x > -NEGLIGIBLE).map(|x| f64::from(x.exp()));
        let wanted = f64::from(self.sampling.top_p.clamp(0.0, 1.0));
        let mut unseen: f64 = ranked.logits().filter_map(weight).sum();
        let mut mass = 1.0;
        let mut nucleus = vec![(1.0, best)];
        while mass < wanted * (mass + unseen) {
            let Some((id, logit)) = ranked.next() else { break };
            let Some(weight) = weight(logit) else { break };
            unseen -= weight;
            if allows(id)? {
                nucleus.push((weight, id));
                mass += weight;
            }
        }
        let mut left = f64::from(self.uniform()) * mass;
        let drawn = nucleus.iter().find(|(weight, _)| {
            left -= weight;
            left < 0.0
        });
        Ok(drawn.or(nucleus.last()).map_or(best, |&(_, id)| id))
    }

    /// Returns the next random number in [0, 1), by SplitMix64 (Steele, Lea, Flood 2014).
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
    fn the_peak_has_the_log_probabilities_of_the_distribution() {
        let logits = [1.0, 3.0, -2.0, 2.5, f32::NAN];
        let peak = Peak::of(&logits);
        assert_eq!(peak.best, 1);
        let sum: f32 = logits[..4].iter().map(|x| x.exp()).sum();
        assert!((peak.logprob(3.0) - (3.0f32.exp() / sum).ln()).abs() < 1e-5);
        assert!((peak.runner_up(1) - (2.5f32.exp() / sum).ln()).abs() < 1e-5);
        assert_eq!(peak.runner_up(3), peak.logprob(3.0), "the likeliest is the rival of any other");
    }

    fn ranked(logits: &[f32]) -> Ranked {
        Ranked::above(f32::NEG_INFINITY, logits, |_| true)
    }

    fn draw(sampler: &mut Sampler, logits: &[f32], allowed: &[u32]) -> Option<u32> {
        let mut allows = |id| Ok::<_, ()>(allowed.is_empty() || allowed.contains(&id));
        let above = |floor| Ranked::above(floor, logits, |_| true);
        sampler.choose(Peak::of(logits).best_logit, above, &mut allows).unwrap()
    }

    #[test]
    fn tokens_are_ranked_by_logit_and_equal_ones_by_id() {
        let logits = [1.0, f32::NAN, 3.0, f32::NEG_INFINITY, 1.0, -2.0, 3.0];
        let ids = |ranked: Ranked| ranked.map(|(id, _)| id).collect::<Vec<_>>();
        assert_eq!(ids(ranked(&logits)), [2, 6, 0, 4, 5]);
        assert_eq!(ids(Ranked::above(f32::NEG_INFINITY, &logits, |id| id > 2)), [6, 4, 5]);
        assert_eq!(ids(Ranked::above(1.0, &logits, |_| true)), [2, 6]);
        let mut rest = ranked(&logits);
        assert_eq!(rest.first(&mut |id| Ok::<_, ()>(id % 2 == 1)), Ok(Some((5, -2.0))));
        assert_eq!(rest.next(), None);
        assert_eq!(ranked(&[]).first(&mut |_| Ok::<_, ()>(true)), Ok(None));
        assert_eq!(ranked(&logits).first(&mut |_| Err("no")), Err("no"));
    }

    #[test]
    fn a_draw_follows_the_probabilities_within_the_nucleus() {
        let logits = [2.0f32, 1.0, 0.0, f32::NEG_INFINITY];
        let mut sampler = Sampler::new(Sampling { temperature: 1.0, top_p: 1.0, seed: 42 });
        for allowed in [&[0, 1, 2][..], &[0, 2], &[1, 2, 3]] {
            let mut counts = [0usize; 4];
            for _ in 0..20_000 {
                counts[draw(&mut sampler, &logits, allowed).unwrap() as usize] += 1;
            }
            let sum: f32 = allowed.iter().map(|&id| logits[id as usize].exp()).sum();
            for (id, (count, logit)) in (0u32..).zip(counts.iter().zip(logits)) {
                let (share, wanted) =
                    (*count as f32 / 20_000.0, if allowed.contains(&id) { logit.exp() / sum } else { 0.0 });
                assert!((share - wanted).abs() < 0.015, "{counts:?}");
            }
        }
        // the likeliest alone has 66.5 % of the mass
        let mut narrow = Sampler::new(Sampling { temperature: 1.0, top_p: 0.6, seed: 1 });
        assert!((0..1000).all(|_| draw(&mut narrow, &logits, &[]) == Some(0)));
        let mut two = Sampler::new(Sampling { temperature: 1.0, top_p: 0.7, seed: 1 });
        assert!((0..1000).all(|_| draw(&mut two, &logits, &[]).unwrap() < 2));
        assert!((0..1000).all(|_| draw(&mut two, &logits, &[2]) == Some(2)), "all that is allowed is the nucleus");
        assert_eq!(draw(&mut two, &logits, &[3]), None);
    }

    #[test]
    fn a_narrow_nucleus_asks_about_few_tokens() {
        let logits: Vec<f32> = (0..50_000).map(|i| -(i as f32) * 0.1).collect();
        let mut sampler = Sampler::new(Sampling { temperature: 0.8, top_p: 0.95, seed: 1 });
        let mut asked = 0;
        let mut allows = |_| {
            asked += 1;
            Ok::<_, ()>(true)
        };
        let drawn = sampler.choose(0.0, |floor| Ranked::above(floor, &logits, |_| true), &mut allows);
        assert!(drawn.unwrap().is_some() && asked < 50, "{asked}");
    }

    #[test]
    fn forbidden_tokens_do_not_affect_the_draw() {
        let all: Vec<f32> = (0..300).map(|i| -(i as f32) * 0.1).collect();
        let sampling = Sampling { temperature: 0.8, top_p: 0.95, seed: 3 };
        for first in [0, 70, 90, 250, 299] {
            let drawn = |logits: &[f32], peak: f32, from: u32| {
                let mut sampler = Sampler::new(sampling);
                let mut draw = || {
                    let above = |floor| Ranked::above(floor, logits, |_| true);
                    sampler.choose(peak, above, &mut |id| Ok::<_, ()>(id >= from)).unwrap().unwrap() - from
                };
                (0..50).map(|_| draw()).collect::<Vec<_>>()
            };
            let alone = &all[first as usize..];
            assert_eq!(drawn(&all, 0.0, first), drawn(alone, alone[0], 0), "from {first}");
            let mut greedy = Sampler::new(Sampling::GREEDY);
            let above = |floor| Ranked::above(floor, &all, |_| true);
            assert_eq!(greedy.choose(0.0, above, &mut |id| Ok::<_, ()>(id >= first)), Ok(Some(first)));
        }
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let logits: Vec<f32> = (0..100).map(|i| (i as f32 * 0.37).sin()).collect();
        let draws = |seed| {
            let mut sampler = Sampler::new(Sampling { temperature: 0.8, top_p: 0.95, seed });
            (0..50).map(|_| draw(&mut sampler, &logits, &[]).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(draws(5), draws(5));
        assert_ne!(draws(5), draws(6));
    }
}
