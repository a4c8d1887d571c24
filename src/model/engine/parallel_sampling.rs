//! Several completions of one prompt, sampled together: each step computes one token of every completion in one batch,
//! which reads the weights once for all of them. Completions that are still the same are one row of it.

use super::backend::LaneToken;
use super::generate::{Language, Run, Sequence};
use crate::{Completion, Finish, Flow, ModelError, Request, Usage};
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

impl Lane<'_> {
    /// What is computed of it next; `None` of one that has ended.
    fn next(&self) -> Option<&[u32]> {
        self.ended.is_none().then_some(&self.run.pending)
    }
}

/// Who leads each lane from here on, given who has led it so far: the first of those that were led by the same lane and go
/// on alike. A lane that has ended keeps its leader.
fn part(leaders: &[usize], next: &[Option<&[u32]>]) -> Vec<usize> {
    let mut parted = leaders.to_vec();
    for lane in 0..leaders.len() {
        if next[lane].is_some() {
            let alike = (0..lane).find(|&other| leaders[other] == leaders[lane] && next[other] == next[lane]);
            parted[lane] = alike.unwrap_or(lane);
        }
    }
    parted
}

/// Continues the prompt `count` times, each as [`crate::Sampling::of_sample`] says. `None` where
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
    usage.adapted = sequence.is_adapted();
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
    let mut leaders = vec![0; count];
    while lanes.iter().any(|lane| lane.ended.is_none()) {
        let next: Vec<_> = lanes.iter().map(Lane::next).collect();
        let parted = part(&leaders, &next);
        for (i, lane) in lanes.iter().enumerate().filter(|&(i, _)| parted[i] == i && leaders[i] != i) {
            sequence.copy_lane(leaders[i], i, lane.computed, room);
        }
        leaders = parted;
        let live: Vec<usize> = (0..count).filter(|&i| lanes[i].ended.is_none()).collect();
        let (mut tokens, mut row) = (Vec::with_capacity(count), vec![0; count]);
        for &i in &live {
            // a leader comes before those that it leads
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
            // what a grammar forced behind a chosen token goes in before anything is chosen again
            if lane.fed == lane.run.pending.len() {
                lane.fed = 0;
                lane.ended = lane.run.decide(sequence.logits_of_lane(row[i]))?;
            }
        }
    }
    let decode = decoding.elapsed();
    // the time was spent once for all of them: the first one tells it
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
    fn lanes_that_go_on_alike_have_one_leader() {
        let (a, b): (Option<&[u32]>, Option<&[u32]>) = (Some(&[1, 2]), Some(&[3]));
        assert_eq!(part(&[0, 0, 0, 0], &[a, a, a, a]), [0, 0, 0, 0]);
        assert_eq!(part(&[0, 0, 0, 0], &[a, b, a, b]), [0, 1, 0, 1]);
        assert_eq!(part(&[0, 1, 0, 1], &[a, a, a, a]), [0, 1, 0, 1], "who has parted stays apart");
        assert_eq!(part(&[0, 0, 0, 0], &[None, a, b, a]), [0, 1, 2, 1], "one that has ended leads nobody");
        assert_eq!(part(&[0, 1, 0, 1], &[None, None, b, a]), [0, 1, 2, 3]);
    }
}
