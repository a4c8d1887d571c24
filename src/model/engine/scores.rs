//! What the model thinks of words that are there already: several replies to prompts that begin alike, in one batch, which
//! costs a fraction of writing them.

use super::backend::LaneToken;
use super::generate::{Language, Sequence};
use super::sample::Peak;
use crate::model::{Cancel, Completion, Finish, ModelError, Prompt, Request, Token, Usage};
use std::time::Instant;

/// A reply to be scored.
struct Said<'a> {
    text: &'a str,
    /// What of the prompt is not of the common beginning, and the reply.
    ids: Vec<u32>,
    /// Where in `ids` the reply begins.
    reply: usize,
    /// Log-probabilities of the reply's tokens and of its end.
    scores: Vec<f32>,
}

/// Scores each reply as the model's own to its prompt, with its end; none at all where the backend computes only one
/// continuation at a time, where the prompts have no stable beginning in common, or where cancelled. A reply that is too long
/// comes back without tokens, as [`Finish::Length`].
///
/// # Errors
/// As [`super::generate::generate`].
pub(super) fn score(
    sequence: &mut Sequence,
    language: &Language<'_>,
    replies: &[(Prompt, String)],
    cancel: &Cancel,
) -> Result<Vec<Completion>, ModelError> {
    let began = Instant::now();
    let most = sequence.tree();
    let mut beginning: Option<Vec<u32>> = None;
    let mut said = Vec::with_capacity(replies.len());
    for (prompt, text) in replies {
        let encoded = language.template.encode(prompt, language.tokenizer);
        let (stable, rest) = encoded.ids.split_at(encoded.stable);
        if stable.is_empty() || rest.is_empty() || beginning.as_ref().is_some_and(|b| b[..] != *stable) {
            return Ok(Vec::new());
        }
        beginning.get_or_insert_with(|| stable.to_vec());
        let (mut ids, reply) = (rest.to_vec(), rest.len());
        language.tokenizer.encode(text, &mut ids);
        said.push(Said { text, ids, reply, scores: Vec::new() });
    }
    let Some(beginning) = beginning.filter(|_| most > 0) else { return Ok(Vec::new()) };
    let request = Request::nothing(cancel);
    let Some(cached_tokens) = sequence.stand(&beginning, beginning.len(), &request)? else { return Ok(Vec::new()) };
    let free = sequence.context() - beginning.len();
    let fits = |count: usize, longest: usize, tokens: usize| tokens <= most && count * longest <= free;
    let mut from = 0;
    while from < said.len() {
        let (mut to, mut room, mut tokens) = (from, 0, 0);
        while let Some(next) = said.get(to) {
            let longest = room.max(next.ids.len());
            if !fits(to + 1 - from, longest, tokens + next.ids.len()) {
                break;
            }
            (to, room, tokens) = (to + 1, longest, tokens + next.ids.len());
        }
        if to > from && !batch(sequence, language, &mut said[from..to], room, &request)? {
            return Ok(Vec::new());
        }
        // one that does not even fit alone is left without scores
        from = to.max(from + 1);
    }
    // the beginning was read once for all of them, so the first one tells what it took
    let prompt_tokens = beginning.len() + said.iter().map(|said| said.ids.len()).sum::<usize>();
    let whole = Usage { prompt_tokens, cached_tokens, prefill: began.elapsed(), ..Usage::default() };
    let completions = said
        .iter()
        .enumerate()
        .map(|(i, said)| said.completion(language, if i == 0 { whole } else { Usage::default() }));
    Ok(completions.collect())
}

/// Scores these in one batch; false if cancelled.
fn batch(
    sequence: &mut Sequence,
    language: &Language<'_>,
    said: &mut [Said<'_>],
    room: usize,
    request: &Request,
) -> Result<bool, ModelError> {
    let (mut tokens, mut wanted, mut owners) = (Vec::new(), Vec::new(), Vec::new());
    for (lane, said) in said.iter().enumerate() {
        for (step, &id) in said.ids.iter().enumerate() {
            if step + 1 >= said.reply {
                wanted.push(tokens.len());
                owners.push((lane, said.ids.get(step + 1).copied()));
            }
            tokens.push(LaneToken { lane, step, id });
        }
    }
    sequence.feed_tree(&tokens, room, &wanted, request, &mut |row, logits| {
        let (lane, next) = owners[row];
        let peak = Peak::of(logits);
        let of = |id: &u32| peak.logprob(logits[*id as usize]);
        let end = || language.ends.iter().map(of).fold(f32::NEG_INFINITY, f32::max);
        said[lane].scores.push(next.as_ref().map_or_else(end, of));
    })
}

impl Said<'_> {
    /// The reply as if it had been generated.
    fn completion(&self, language: &Language<'_>, usage: Usage) -> Completion {
        let reply = &self.ids[self.reply..];
        let vocab = language.tokenizer.vocab();
        let token = |(&id, &score): (&u32, &f32)| Token {
            bytes: vocab.bytes(id).into_owned(),
            logprob: Some(score),
            runner_up: None,
        };
        Completion {
            text: self.text.to_owned(),
            tokens: reply.iter().zip(&self.scores).map(token).collect(),
            end: self.scores.get(reply.len()).copied(),
            finish: if self.scores.is_empty() { Finish::Length } else { Finish::Stop },
            usage,
        }
    }
}
