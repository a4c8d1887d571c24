//! Guesses at the next tokens, so that several can be computed for little more than the price of one.
//!
//! A guess is only ever a proposal: the model scores each of its tokens and chooses as it would have without it.

use super::tokenizer::Tokenizer;
use std::sync::OnceLock;

/// So many of the last tokens are compared with what came before.
const LONGEST: usize = 4;

/// A match is worth so many times more with each further token.
const PER_TOKEN: f32 = 3.0;

/// What a match of one token is worth: in the conversation's own part or what has been written so far, in its stable
/// beginning, in the phrases.
const OWN: f32 = 4.0;
const STABLE: f32 = 1.0;
const PHRASE: f32 = 0.1;

/// What speaks for a token that no match proposes.
const UNKNOWN: f32 = 3.0;

/// What computing 1, 2, ... tokens at once costs, relative to one: a 1.5B model on two cores with AVX-512, as `caro bench`
/// measures it.
const COST: [f32; 8] = [1.0, 1.2, 1.3, 1.45, 1.65, 1.8, 2.05, 2.2];

/// A guess that is less likely than this is no guess.
const LEAST: f32 = 0.1;

/// How many tokens the trust in guesses before the first one is worth, and how much of what was learned each guess keeps.
const PRIOR: f32 = 4.0;
const MEMORY: f32 = 0.99;

/// Texts like those that a model will be asked for.
pub(super) struct Phrases {
    texts: Vec<String>,
    ids: OnceLock<Vec<u32>>,
}

impl Phrases {
    /// Between two phrases: no token.
    const BORDER: u32 = u32::MAX;

    /// Nothing is done with them before they are needed.
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

/// What a guess is made from.
pub(super) struct Known<'a> {
    /// The whole conversation so far.
    pub text: &'a [u32],
    /// How much of its beginning is stable.
    pub stable: usize,
    pub phrases: &'a Phrases,
    pub tokenizer: &'a Tokenizer,
    /// Tokens that end the turn.
    pub ends: &'a [u32],
}

/// Looks the last tokens up in all that is known, and proposes what came next there most: requests name the files that
/// commands name, and commands resemble each other.
#[derive(Debug, Clone, Default)]
pub(super) struct Drafter {
    /// How likely each token of the guess under way seemed.
    odds: Vec<f32>,
    /// How many tokens of late were expected to be right, and how many were.
    expected: f32,
    right: f32,
    count: DraftStats,
}

/// How many tokens were guessed, and how many of them rightly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DraftStats {
    pub drafted: usize,
    pub accepted: usize,
}

impl Drafter {
    /// What may come next: as many tokens, at most `most`, as bring the most tokens per time, so none where guessing
    /// would not pay.
    pub fn guess(&mut self, known: &Known<'_>, most: usize) -> Vec<u32> {
        self.expected *= MEMORY;
        self.right *= MEMORY;
        let trust = (PRIOR + self.right) / (PRIOR + self.expected);
        let mut text = known.text.to_vec();
        self.odds.clear();
        let (mut worth, mut best) = (0, 1.0);
        // The chance of all tokens so far, and how many tokens the pass yields on average.
        let (mut chance, mut yields) = (1.0, 1.0);
        for cost in COST.iter().skip(1).take(most) {
            let Some((id, odds)) = known.next(&text) else { break };
            chance *= (odds * trust).min(1.0);
            if chance < LEAST || known.ends.contains(&id) {
                break;
            }
            text.push(id);
            self.odds.push(odds);
            yields += chance;
            if yields / cost > best {
                (worth, best) = (self.odds.len(), yields / cost);
            }
        }
        self.odds.truncate(worth);
        self.count.drafted += worth;
        text[known.text.len()..][..worth].to_vec()
    }

    /// Notes that so many of the tokens guessed were right, and whether the next one was not.
    pub fn learn(&mut self, right: usize, wrong: bool) {
        let seen = (right + usize::from(wrong)).min(self.odds.len());
        self.expected += self.odds.drain(..seen).sum::<f32>();
        self.right += right as f32;
        self.count.accepted += right;
    }

    /// The counts since the last call.
    pub fn count(&mut self) -> DraftStats {
        std::mem::take(&mut self.count)
    }
}

impl Known<'_> {
    /// The token that most speaks for after `text`, and how likely it seems.
    fn next(&self, text: &[u32]) -> Option<(u32, f32)> {
        let mut votes = Votes::default();
        votes.collect(text, &text[..self.stable], STABLE);
        votes.collect(text, &text[self.stable..], OWN);
        votes.collect(text, self.phrases.ids(self.tokenizer), PHRASE);
        votes.winner()
    }
}

/// What speaks for which token.
#[derive(Default)]
struct Votes {
    tokens: Vec<(u32, f32)>,
    all: f32,
}

impl Votes {
    /// Adds what followed in `place` wherever it has the last tokens of `text`.
    fn collect(&mut self, text: &[u32], place: &[u32], weight: f32) {
        let Some(last) = text.last() else { return };
        for (at, _) in place.iter().enumerate().filter(|(_, id)| *id == last) {
            let Some(&next) = place.get(at + 1).filter(|&&next| next != Phrases::BORDER) else { continue };
            let more = place[..at].iter().rev().zip(text.iter().rev().skip(1)).take(LONGEST - 1);
            let matched = more.take_while(|(a, b)| a == b).count();
            let weight = weight * PER_TOKEN.powi(matched as i32);
            self.all += weight;
            match self.tokens.iter_mut().find(|(id, _)| *id == next) {
                Some((_, votes)) => *votes += weight,
                None => self.tokens.push((next, weight)),
            }
        }
    }

    fn winner(self) -> Option<(u32, f32)> {
        let (id, votes) = self.tokens.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((id, votes / (self.all + UNKNOWN)))
    }
}

#[cfg(test)]
#[path = "speculate_tests.rs"]
mod tests;
