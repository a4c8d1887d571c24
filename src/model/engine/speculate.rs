//! Drafts the next tokens, so that several can be computed in little more than the time of one.
//!
//! A draft is only a proposal: the model scores each of its tokens and chooses as it would without it.

use super::tokenizer::Tokenizer;
use std::sync::OnceLock;

/// Most tokens of a match between the last tokens and earlier text.
const MAX_MATCH: usize = 4;

/// The factor by which each further token raises a match's weight.
const MATCH_FACTOR: f32 = 3.0;

/// Weight of a match of one token in the conversation after its stable prefix, or in the answer so far.
const CONVERSATION_WEIGHT: f32 = 4.0;
/// Weight of a match of one token in the stable prefix.
const STABLE_WEIGHT: f32 = 1.0;
/// Weight of a match of one token in the phrases.
const PHRASE_WEIGHT: f32 = 0.1;

/// Weight of all tokens that no match proposes.
const UNKNOWN_WEIGHT: f32 = 3.0;

/// The cost of computing 1, 2, ... tokens together, relative to one: of a 1.5B model on two cores with AVX-512, as
/// `caro bench` measures it.
const COST: [f32; 8] = [1.0, 1.2, 1.3, 1.45, 1.65, 1.8, 2.05, 2.2];

/// Least likelihood of a draft.
const MIN_LIKELIHOOD: f32 = 0.1;

/// Weight of the initial trust in drafts, as a number of tokens.
const PRIOR_TOKENS: f32 = 4.0;
/// The factor by which each draft discounts the earlier counts.
const DECAY: f32 = 0.99;

/// Texts that resemble the expected completions.
pub(super) struct Phrases {
    texts: Vec<String>,
    ids: OnceLock<Vec<u32>>,
}

impl Phrases {
    /// Separates two phrases; no token has this id.
    const BORDER: u32 = u32::MAX;

    /// Stores the texts; they are encoded when first needed.
    pub fn new(texts: Vec<String>) -> Self {
        Self { texts, ids: OnceLock::new() }
    }

    fn ids(&self, tokenizer: &Tokenizer) -> &[u32] {
        self.ids.get_or_init(|| {
            let mut ids = Vec::new();
            for text in &self.texts {
                ids.push(Self::BORDER);
                tokenizer.encode(text, &mut ids);
            }
            ids
        })
    }
}

/// The texts that a draft is made from.
pub(super) struct DraftContext<'a> {
    /// The whole conversation so far.
    pub text: &'a [u32],
    /// The length of its stable prefix, in tokens.
    pub stable: usize,
    pub phrases: &'a Phrases,
    pub tokenizer: &'a Tokenizer,
    /// Tokens that end the turn.
    pub ends: &'a [u32],
}

/// Drafts tokens: looks the last tokens up in the context, and proposes the token that most often followed them.
/// Commands name the files of the request, and resemble each other.
#[derive(Debug, Clone, Default)]
pub(super) struct Drafter {
    /// The estimated likelihood of each token of the last draft.
    odds: Vec<f32>,
    /// The number of recently drafted tokens that were expected to be accepted.
    expected: f32,
    /// The number of recently drafted tokens that were accepted.
    accepted: f32,
    stats: DraftStats,
}

/// The numbers of tokens drafted and accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DraftStats {
    pub drafted: usize,
    pub accepted: usize,
}

impl Drafter {
    /// Drafts at most `most` tokens: the number that yields the most tokens per time, or none if drafting does not pay.
    pub fn draft(&mut self, context: &DraftContext<'_>, most: usize) -> Vec<u32> {
        self.expected *= DECAY;
        self.accepted *= DECAY;
        let trust = (PRIOR_TOKENS + self.accepted) / (PRIOR_TOKENS + self.expected);
        let mut text = context.text.to_vec();
        self.odds.clear();
        let (mut best_len, mut best) = (0, 1.0);
        // the likelihood of all tokens so far, and the expected number of tokens of the pass
        let (mut likelihood, mut yields) = (1.0, 1.0);
        for cost in COST.iter().skip(1).take(most) {
            let Some((id, odds)) = context.next(&text) else { break };
            likelihood *= (odds * trust).min(1.0);
            if likelihood < MIN_LIKELIHOOD || context.ends.contains(&id) {
                break;
            }
            text.push(id);
            self.odds.push(odds);
            yields += likelihood;
            if yields / cost > best {
                (best_len, best) = (self.odds.len(), yields / cost);
            }
        }
        self.odds.truncate(best_len);
        self.stats.drafted += best_len;
        text[context.text.len()..][..best_len].to_vec()
    }

    /// Records how many drafted tokens were accepted, and whether the next one was rejected.
    pub fn learn(&mut self, accepted: usize, is_rejected: bool) {
        let seen = (accepted + usize::from(is_rejected)).min(self.odds.len());
        self.expected += self.odds.drain(..seen).sum::<f32>();
        self.accepted += accepted as f32;
        self.stats.accepted += accepted;
    }

    /// Returns the counts since the last call.
    pub fn take_stats(&mut self) -> DraftStats {
        std::mem::take(&mut self.stats)
    }
}

impl DraftContext<'_> {
    /// Returns the token with the most votes after `text`, and its estimated likelihood.
    fn next(&self, text: &[u32]) -> Option<(u32, f32)> {
        let mut votes = Votes::default();
        votes.collect(text, &text[..self.stable], STABLE_WEIGHT);
        votes.collect(text, &text[self.stable..], CONVERSATION_WEIGHT);
        votes.collect(text, self.phrases.ids(self.tokenizer), PHRASE_WEIGHT);
        votes.winner()
    }
}

/// The weighted votes for the next token.
#[derive(Default)]
struct Votes {
    tokens: Vec<(u32, f32)>,
    all: f32,
}

impl Votes {
    /// Adds the tokens that follow the last tokens of `text` wherever they occur in `place`.
    fn collect(&mut self, text: &[u32], place: &[u32], weight: f32) {
        let Some(last) = text.last() else { return };
        for (at, _) in place.iter().enumerate().filter(|(_, id)| *id == last) {
            let Some(&next) = place.get(at + 1).filter(|&&next| next != Phrases::BORDER) else { continue };
            let more = place[..at].iter().rev().zip(text.iter().rev().skip(1)).take(MAX_MATCH - 1);
            let matched = more.take_while(|(a, b)| a == b).count();
            let weight = weight * MATCH_FACTOR.powi(matched as i32);
            self.all += weight;
            match self.tokens.iter_mut().find(|(id, _)| *id == next) {
                Some((_, votes)) => *votes += weight,
                None => self.tokens.push((next, weight)),
            }
        }
    }

    fn winner(self) -> Option<(u32, f32)> {
        let (id, votes) = self.tokens.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((id, votes / (self.all + UNKNOWN_WEIGHT)))
    }
}

#[cfg(test)]
#[path = "speculate_tests.rs"]
mod tests;
