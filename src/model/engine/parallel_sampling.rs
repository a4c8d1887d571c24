//! Samples several completions of one prompt together: each step computes one token of every completion in one batch,
//! which reads the weights once for all. Completions that are still equal share a row of the batch.

use super::backend::LaneToken;
use super::generate::{Language, Run, Sequence};
use crate::{Completion, Finish, Flow, ModelError, Request, Usage};
use std::time::Instant;

/// A completion being sampled.
struct Lane<'a> {
    run: Run<'a>,
    /// The number of its tokens after the prompt that the model has processed.
    computed: usize,
    /// The number of tokens of `run.pending` among them.
    fed: usize,
    ended: Option<Finish>,
}

impl Lane<'_> {
    /// Returns its pending tokens; `None` if it has ended.
    fn pending(&self) -> Option<&[u32]> {
        self.ended.is_none().then_some(&self.run.pending)
    }
}

/// Groups the lanes that are still equal. Returns the leader of each lane, the first lane that had the same leader and
/// has the same pending tokens; it computes the tokens for its group. A lane that has ended keeps its leader.
fn assign_leaders(leaders: &[usize], pending: &[Option<&[u32]>]) -> Vec<usize> {
    let mut new_leaders = leaders.to_vec();
    for lane in 0..leaders.len() {
        if pending[lane].is_some() {
            let equal = (0..lane).find(|&other| leaders[other] == leaders[lane] && pending[other] == pending[lane]);
            new_leaders[lane] = equal.unwrap_or(lane);
        }
    }
    new_leaders
}

/// Continues the prompt `count` times, each as [`crate::Sampling::of_sample`] says. `None` if the backend does not
/// compute `count` completions together, or if the context has no room for them.
///
/// # Errors
/// As [`super::generate::generate`].
pub(super) fn sample(
    sequence: &mut Sequence,
    language: &Language<'_>,
    request: &Request,
    count: usize,
) -> Result<Option<Vec<Completion>>, ModelError> {
    let start = Instant::now();
    let prompt = language.template.encode(&request.prompt, language.tokenizer);
    let free = sequence.context().saturating_sub(prompt.ids.len());
    let room = request.max_tokens;
    if count == 0 || count > sequence.lanes() || room > free / count {
        return Ok(None);
    }
    let mut usage = Usage { prompt_tokens: prompt.ids.len(), ..Usage::default() };
    usage.cached_tokens = sequence.reuse(&prompt);
    usage.adapted = sequence.is_adapted();
    let is_prefilled = sequence.complete(&prompt, request)?;
    usage.prefill = start.elapsed();
    let decode_start = Instant::now();
    let requests: Vec<Request> =
        (0..count).map(|i| Request { sampling: request.sampling.of_sample(i), ..request.clone() }).collect();
    // completions that are sampled together are not streamed
    let mut ignore: Vec<_> = (0..count).map(|_| |_: &str| Flow::Continue).collect();
    let mut lanes: Vec<Lane<'_>> = requests
        .iter()
        .zip(&mut ignore)
        .map(|(request, on)| {
            let ended = if is_prefilled { None } else { Some(Finish::Cancelled) };
            Lane { run: Run::new(language, request, on, room), computed: 0, fed: 0, ended }
        })
        .collect();
    if is_prefilled {
        let logits = sequence.logits().to_vec();
        for lane in &mut lanes {
            lane.ended = lane.run.start_shape()?;
            if lane.ended.is_none() && lane.run.pending.is_empty() {
                lane.ended = lane.run.decide(&logits)?;
            }
        }
    }
    let mut leaders = vec![0; count];
    while lanes.iter().any(|lane| lane.ended.is_none()) {
        let pending: Vec<_> = lanes.iter().map(Lane::pending).collect();
        let new_leaders = assign_leaders(&leaders, &pending);
        for (i, lane) in lanes.iter().enumerate().filter(|&(i, _)| new_leaders[i] == i && leaders[i] != i) {
            sequence.copy_lane(leaders[i], i, lane.computed, room);
        }
        leaders = new_leaders;
        let live: Vec<usize> = (0..count).filter(|&i| lanes[i].ended.is_none()).collect();
        let (mut tokens, mut row) = (Vec::with_capacity(count), vec![0; count]);
        for &i in &live {
            // a leader precedes the lanes that it leads
            if leaders[i] == i {
                let Lane { run, computed, fed, .. } = &lanes[i];
                tokens.push(LaneToken { lane: i, step: *computed, id: run.pending[*fed] });
                row[i] = tokens.len() - 1;
            } else {
                row[i] = row[leaders[i]];
            }
        }
        if !sequence.feed_lanes(&tokens, room, request)? {
            live.iter().for_each(|&i| lanes[i].ended = Some(Finish::Cancelled));
            break;
        }
        for i in live {
            let lane = &mut lanes[i];
            (lane.computed, lane.fed) = (lane.computed + 1, lane.fed + 1);
            // tokens that a grammar forced are computed before the next one is chosen
            if lane.fed == lane.run.pending.len() {
                lane.fed = 0;
                lane.ended = lane.run.decide(sequence.logits_of_lane(row[i]))?;
            }
        }
    }
    let decode = decode_start.elapsed();
    // the first completion reports the cost of all, which are computed together
    let mut completions: Vec<Completion> = Vec::with_capacity(count);
    for lane in lanes {
        let adapted = usage.adapted;
        let usage =
            if completions.is_empty() { Usage { decode, ..usage } } else { Usage { adapted, ..Usage::default() } };
        completions.push(lane.run.finish(lane.ended.unwrap_or(Finish::Cancelled), usage));
    }
    Ok(Some(completions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_with_equal_tokens_have_one_leader() {
        let (a, b): (Option<&[u32]>, Option<&[u32]>) = (Some(&[1, 2]), Some(&[3]));
        assert_eq!(assign_leaders(&[0, 0, 0, 0], &[a, a, a, a]), [0, 0, 0, 0]);
        assert_eq!(assign_leaders(&[0, 0, 0, 0], &[a, b, a, b]), [0, 1, 0, 1]);
        assert_eq!(
            assign_leaders(&[0, 1, 0, 1], &[a, a, a, a]),
            [0, 1, 0, 1],
            "lanes with different leaders stay apart"
        );
        assert_eq!(
            assign_leaders(&[0, 0, 0, 0], &[None, a, b, a]),
            [0, 1, 2, 1],
            "a lane that has ended leads no other"
        );
        assert_eq!(assign_leaders(&[0, 1, 0, 1], &[None, None, b, a]), [0, 1, 2, 3]);
    }
}
