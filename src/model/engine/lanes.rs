//! Several completions of one prompt, sampled together: each step computes one token of every completion in one batch,
//! which reads the weights once for all of them.

use super::backend::LaneToken;
use super::generate::{Language, Run, Sequence};
use crate::model::{Completion, Finish, Flow, ModelError, Request, Usage};
use std::time::Instant;

/// A completion under way.
struct Lane<'a> {
    run: Run<'a>,
    /// Tokens of it that are computed.
    computed: usize,
    /// How many of its pending tokens are computed.
    fed: usize,
    ended: Option<Finish>,
}

/// Continues the prompt `count` times, each as [`crate::model::Sampling::of_sample`] says. `None` where
/// the backend computes only one at a time, or the context has no room for so many.
///
/// # Errors
/// As [`super::generate::generate`].
pub(super) fn sample(
    sequence: &mut Sequence,
    language: &Language<'_>,
    request: &Request,
    count: usize,
) -> Result<Option<Vec<Completion>>, ModelError> {
    let began = Instant::now();
    let prompt = language.template.encode(&request.prompt, language.tokenizer);
    let free = sequence.context().saturating_sub(prompt.ids.len());
    let room = request.max_tokens.min(free / count.max(1));
    if count == 0 || count > sequence.lanes() || room < request.max_tokens {
        return Ok(None);
    }
    let mut usage = Usage { prompt_tokens: prompt.ids.len(), ..Usage::default() };
    usage.cached_tokens = sequence.reuse(&prompt);
    let whole = sequence.complete(&prompt, request)?;
    usage.prefill = began.elapsed();
    let decoding = Instant::now();
    let requests: Vec<Request> =
        (0..count).map(|i| Request { sampling: request.sampling.of_sample(i), ..request.clone() }).collect();
    let mut ignore: Vec<_> = (0..count).map(|_| |_: &str| Flow::Continue).collect();
    let mut lanes: Vec<Lane<'_>> = requests
        .iter()
        .zip(&mut ignore)
        .map(|(request, on)| {
            let ended = if whole { None } else { Some(Finish::Cancelled) };
            Lane { run: Run::new(language, request, on, room), computed: 0, fed: 0, ended }
        })
        .collect();
    if whole {
        let logits = sequence.logits().to_vec();
        for lane in &mut lanes {
            lane.ended = lane.run.start_shape()?;
            if lane.ended.is_none() && lane.run.pending.is_empty() {
                lane.ended = lane.run.decide(&logits)?;
            }
        }
    }
    while lanes.iter().any(|lane| lane.ended.is_none()) {
        let live: Vec<usize> = (0..count).filter(|&i| lanes[i].ended.is_none()).collect();
        let tokens: Vec<LaneToken> = live
            .iter()
            .map(|&i| LaneToken { lane: i, step: lanes[i].computed, id: lanes[i].run.pending[lanes[i].fed] })
            .collect();
        if !sequence.feed_lanes(&tokens, room, request)? {
            live.iter().for_each(|&i| lanes[i].ended = Some(Finish::Cancelled));
            break;
        }
        for (row, &i) in live.iter().enumerate() {
            let lane = &mut lanes[i];
            (lane.computed, lane.fed) = (lane.computed + 1, lane.fed + 1);
            // what a grammar forced behind a chosen token goes in before anything is chosen again
            if lane.fed == lane.run.pending.len() {
                lane.fed = 0;
                lane.ended = lane.run.decide(sequence.logits_of_lane(row))?;
            }
        }
    }
    let decode = decoding.elapsed();
    // the time was spent once for all of them: the first one tells it
    let mut completions: Vec<Completion> = Vec::with_capacity(count);
    for lane in lanes {
        let usage = if completions.is_empty() { Usage { decode, ..usage } } else { Usage::default() };
        completions.push(lane.run.finish(lane.ended.unwrap_or(Finish::Cancelled), usage));
    }
    Ok(Some(completions))
}
