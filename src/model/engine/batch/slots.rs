//! Selects the tokens that are computed next: a pure state machine over a fixed number of slots, one a sequence.
//!
//! A slot keeps its tokens when its sequence has ended, so that the next sequence with the same prefix reuses them.

use super::super::backend::LaneToken;
use std::cmp::Reverse;

/// Most prompt tokens of a step.
const MAX_PROMPT_TOKENS: usize = 256;
/// Most prompt tokens of a step that also has decoding sequences, whose next tokens they delay.
const MAX_PROMPT_TOKENS_BESIDE: usize = 48;
/// Most pending tokens of a sequence that counts as decoding, and not as reading its prompt. It never waits for others.
const MAX_DECODE_TOKENS: usize = 8;
/// The number of tokens by which a prefix in another slot must be longer to be copied.
const MIN_COPY_GAIN: usize = 16;

/// One sequence.
#[derive(Debug, Default)]
struct Slot {
    /// Tokens that are computed.
    computed: Vec<u32>,
    /// Tokens to compute next.
    pending: Vec<u32>,
    /// The number of `pending` tokens that the current step computes.
    in_step: usize,
    /// True while a caller owns it.
    is_taken: bool,
    /// The value of `Slots::clock` when it was last taken.
    taken_at: u64,
}

impl Slot {
    /// Returns the length of the common prefix of its tokens and `ids`.
    fn common(&self, ids: &[u32]) -> usize {
        self.computed.iter().zip(ids).take_while(|(a, b)| a == b).count()
    }
}

/// A prefix that is copied from one slot to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotCopy {
    pub from: usize,
    pub to: usize,
    /// Its length in tokens.
    pub len: usize,
}

/// The tokens that are computed together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// The copies, made first and in this order.
    pub copies: Vec<SlotCopy>,
    /// The tokens. The last tokens of the slots in `scored` come at the end, in the same order.
    pub tokens: Vec<LaneToken>,
    /// The slots whose logits are computed.
    pub scored: Vec<usize>,
}

/// All sequences.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    copies: Vec<SlotCopy>,
    clock: u64,
}

impl Slots {
    /// Returns `count` empty slots.
    pub fn new(count: usize) -> Self {
        Self { slots: (0..count).map(|_| Slot::default()).collect(), copies: Vec::new(), clock: 0 }
    }

    /// Returns the number of slots.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Takes a free slot for a sequence that begins with `ids`; those that are not computed yet become pending.
    /// Returns the slot and the number of tokens that need no computing, which is never all of them. `None` if no
    /// slot is free.
    pub fn take(&mut self, ids: &[u32]) -> Option<(usize, usize)> {
        let most = ids.len().saturating_sub(1);
        let common = |slot: &Slot| slot.common(ids).min(most);
        let free = || self.slots.iter().enumerate().filter(|(_, slot)| !slot.is_taken);
        let (mut to, own) =
            free().map(|(i, slot)| (i, common(slot))).max_by_key(|&(i, own)| (own, self.age(i), Reverse(i)))?;
        let mut reused = own;
        let best = (0..self.slots.len()).map(|i| (i, common(&self.slots[i]))).max_by_key(|&(_, common)| common);
        if let Some((from, common)) = best
            && common >= own + MIN_COPY_GAIN
        {
            // the least recently used slot is overwritten
            to = free().map(|(i, _)| i).max_by_key(|&i| (self.age(i), Reverse(i))).unwrap_or(to);
            self.copies.push(SlotCopy { from, to, len: common });
            reused = common;
        }
        self.clock += 1;
        let slot = &mut self.slots[to];
        slot.computed.clear();
        slot.computed.extend_from_slice(&ids[..reused]);
        slot.pending.clear();
        slot.pending.extend_from_slice(&ids[reused..]);
        (slot.is_taken, slot.taken_at) = (true, self.clock);
        Some((to, reused))
    }

    /// Appends tokens to a sequence.
    pub fn push(&mut self, slot: usize, ids: &[u32]) {
        self.slots[slot].pending.extend_from_slice(ids);
    }

    /// Releases a slot. Its computed tokens stay, for sequences with the same prefix.
    pub fn release(&mut self, slot: usize) {
        self.slots[slot].pending.clear();
        self.slots[slot].is_taken = false;
    }

    /// True while the current step computes tokens of this slot.
    pub fn is_in_step(&self, slot: usize) -> bool {
        self.slots[slot].in_step > 0
    }

    /// True if tokens are pending, and no caller is still choosing one that could join them.
    pub fn is_ready(&self) -> bool {
        self.slots.iter().any(|slot| !slot.pending.is_empty())
            && self.slots.iter().all(|slot| !slot.is_taken || !slot.pending.is_empty())
    }

    /// Returns the next step: the tokens of all decoding sequences, and as many tokens as fit of those that read their
    /// prompts, in the order of arrival. Empty if nothing is pending.
    pub fn begin_step(&mut self) -> Step {
        let mut order: Vec<usize> = (0..self.slots.len()).filter(|&i| !self.slots[i].pending.is_empty()).collect();
        order.sort_by_key(|&i| (self.slots[i].pending.len() > MAX_DECODE_TOKENS, self.slots[i].taken_at));
        let mut step = Step { copies: std::mem::take(&mut self.copies), ..Step::default() };
        let is_decoding = |slot: &Slot| slot.pending.len() <= MAX_DECODE_TOKENS;
        let has_decoding = order.first().is_some_and(|&i| is_decoding(&self.slots[i]));
        let mut room = if has_decoding { MAX_PROMPT_TOKENS_BESIDE } else { MAX_PROMPT_TOKENS };
        let mut last = Vec::new();
        for i in order {
            let slot = &mut self.slots[i];
            let count = if is_decoding(slot) { slot.pending.len() } else { slot.pending.len().min(room) };
            if !is_decoding(slot) {
                room -= count;
            }
            slot.in_step = count;
            let base = slot.computed.len();
            let token = |at: usize| LaneToken { lane: i, step: base + at, id: slot.pending[at] };
            let is_scored = count > 0 && count == slot.pending.len();
            step.tokens.extend((0..count - usize::from(is_scored)).map(token));
            if is_scored {
                last.push(token(count - 1));
                step.scored.push(i);
            }
        }
        step.tokens.extend(last);
        step
    }

    /// Ends the step. If it failed, all slots are emptied.
    pub fn end_step(&mut self, is_computed: bool) {
        for slot in &mut self.slots {
            let count = std::mem::take(&mut slot.in_step);
            if is_computed {
                slot.computed.extend(slot.pending.drain(..count.min(slot.pending.len())));
            }
        }
        if !is_computed {
            // a copy may be missing, and rows may be incomplete
            for slot in &mut self.slots {
                slot.computed.clear();
                slot.pending.clear();
            }
            self.copies.clear();
        }
    }

    /// Returns how many slots were taken since this one was.
    fn age(&self, slot: usize) -> u64 {
        self.clock - self.slots[slot].taken_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids(len: u32) -> Vec<u32> {
        (0..len).collect()
    }

    /// Computes all pending tokens, and returns the number of steps.
    fn compute_all(slots: &mut Slots) -> usize {
        let mut steps = 0;
        while !slots.begin_step().tokens.is_empty() {
            slots.end_step(true);
            steps += 1;
        }
        steps
    }

    #[test]
    fn a_common_prefix_is_not_computed_again() {
        let mut slots = Slots::new(2);
        assert_eq!(slots.take(&ids(40)), Some((0, 0)));
        compute_all(&mut slots);
        slots.release(0);
        assert_eq!(slots.take(&ids(40)), Some((0, 39)), "one token is computed for its logits");
        // the prefix is copied to the other slot while the first is in use
        let mut other = ids(30);
        other.extend([7, 7, 7]);
        assert_eq!(slots.take(&other), Some((1, 30)));
        let step = slots.begin_step();
        assert_eq!(step.copies, [SlotCopy { from: 0, to: 1, len: 30 }]);
        assert_eq!(step.tokens.len(), 4);
        assert_eq!(slots.take(&ids(3)), None, "both are taken");
    }

    #[test]
    fn decoding_sequences_do_not_wait_for_prompts() {
        let mut slots = Slots::new(3);
        slots.take(&[1, 2]).unwrap();
        compute_all(&mut slots);
        slots.take(&ids(300)).unwrap();
        slots.take(&[9; 200]).unwrap();
        slots.push(0, &[3]);
        let step = slots.begin_step();
        assert_eq!(step.scored, [0]);
        assert_eq!(step.tokens.len(), MAX_PROMPT_TOKENS_BESIDE + 1, "the decoding one, and the first prompt");
        assert_eq!(step.tokens.last(), Some(&LaneToken { lane: 0, step: 2, id: 3 }));
        assert!(step.tokens.iter().all(|token| token.lane < 2));
        slots.end_step(true);
        let lanes: Vec<usize> = slots.begin_step().tokens.iter().map(|token| token.lane).collect();
        assert!(lanes[..MAX_PROMPT_TOKENS - 5].iter().all(|&lane| lane == 1), "first come, first served: {lanes:?}");
    }

    #[test]
    fn a_failed_step_empties_all_slots() {
        let mut slots = Slots::new(2);
        slots.take(&ids(20)).unwrap();
        slots.begin_step();
        slots.end_step(false);
        slots.release(0);
        assert_eq!(slots.take(&ids(20)), Some((1, 0)), "of equal ones the oldest");
    }

    proptest! {
        /// In any order of events, the tokens of each sequence are computed in order at their own positions, and a
        /// sequence is scored only when all its tokens are computed.
        #[test]
        fn every_token_is_computed_once_at_its_position(
            events in prop::collection::vec((0usize..4, prop::collection::vec(0u32..3, 1..200)), 1..40),
        ) {
            let mut slots = Slots::new(3);
            // the rows of the cache, and the sequences as their owners expect them
            let mut rows: Vec<Vec<u32>> = vec![Vec::new(); 3];
            let mut wanted: Vec<Option<Vec<u32>>> = vec![None; 3];
            for (kind, ids) in events {
                match kind {
                    0 => if let Some((slot, _)) = slots.take(&ids) { wanted[slot] = Some(ids) },
                    1 => if let Some(slot) = (0..3).find(|&i| wanted[i].is_some() && slots.slots[i].pending.is_empty())
                    {
                        slots.push(slot, &ids[..1]);
                        wanted[slot].as_mut().unwrap().push(ids[0]);
                    },
                    2 => if let Some(slot) = (0..3).find(|&i| wanted[i].is_some()) {
                        slots.release(slot);
                        wanted[slot] = None;
                    },
                    _ => {}
                }
                let step = slots.begin_step();
                for SlotCopy { from, to, len } in &step.copies {
                    let beginning = rows[*from][..*len].to_vec();
                    rows[*to] = beginning;
                }
                let mut tokens = step.tokens.clone();
                tokens.sort_by_key(|token| (token.lane, token.step));
                for token in tokens {
                    rows[token.lane].truncate(token.step);
                    prop_assert_eq!(rows[token.lane].len(), token.step, "no gap");
                    rows[token.lane].push(token.id);
                }
                slots.end_step(true);
                for &slot in &step.scored {
                    prop_assert_eq!(Some(&rows[slot]), wanted[slot].as_ref(), "scored at its end");
                }
                for (slot, rows) in slots.slots.iter().zip(&rows) {
                    prop_assert!(rows.starts_with(&slot.computed), "what is said to be computed is there");
                }
            }
        }
    }
}
