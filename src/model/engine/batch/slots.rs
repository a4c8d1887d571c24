//! Which tokens of which sequences are computed next: a pure state machine over a fixed number of slots.
//!
//! A slot keeps its tokens when its sequence has ended, so that the next one that begins alike need not compute them again.

use super::super::backend::LaneToken;
use std::cmp::Reverse;

/// The most tokens of prompts that a step reads.
const READ: usize = 256;
/// The same beside sequences that go on: each of their tokens takes so much longer.
const READ_BESIDE: usize = 48;
/// Up to so many tokens due are a sequence that goes on, and not one that reads its prompt: it never waits for others.
const SHORT: usize = 8;
/// A beginning in another slot that is longer by this many tokens is worth copying.
const WORTH_COPYING: usize = 16;

/// One sequence.
#[derive(Debug, Default)]
struct Slot {
    /// Tokens that are computed.
    held: Vec<u32>,
    /// Tokens to compute next.
    due: Vec<u32>,
    /// How many of `due` the step under way computes.
    under_way: usize,
    /// True while a caller owns it.
    is_taken: bool,
    /// When it was last taken.
    taken_at: u64,
}

impl Slot {
    fn common(&self, ids: &[u32]) -> usize {
        self.held.iter().zip(ids).take_while(|(a, b)| a == b).count()
    }
}

/// A beginning that one slot takes over from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copying {
    pub from: usize,
    pub to: usize,
    /// Tokens.
    pub len: usize,
}

/// The tokens that are computed together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Done first, in this order.
    pub copies: Vec<Copying>,
    /// The tokens; of those that are scored the last ones, in the order of `scored`.
    pub tokens: Vec<LaneToken>,
    /// Slots whose next token is chosen by the logits.
    pub scored: Vec<usize>,
}

/// All sequences.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    copies: Vec<Copying>,
    clock: u64,
}

impl Slots {
    /// `count` empty slots.
    pub fn new(count: usize) -> Self {
        Self { slots: (0..count).map(|_| Slot::default()).collect(), copies: Vec::new(), clock: 0 }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Takes a free slot for a sequence that begins with `ids`; all of them are due but what is there already. Returns the slot
    /// and how many tokens need no computing, which is never all of them. `None` if no slot is free.
    pub fn take(&mut self, ids: &[u32]) -> Option<(usize, usize)> {
        let most = ids.len().saturating_sub(1);
        let common = |slot: &Slot| slot.common(ids).min(most);
        let free = || self.slots.iter().enumerate().filter(|(_, slot)| !slot.is_taken);
        let (mut to, own) =
            free().map(|(i, slot)| (i, common(slot))).max_by_key(|&(i, own)| (own, self.age(i), Reverse(i)))?;
        let mut kept = own;
        let best = (0..self.slots.len()).map(|i| (i, common(&self.slots[i]))).max_by_key(|&(_, common)| common);
        if let Some((from, common)) = best
            && common >= own + WORTH_COPYING
        {
            // what is least likely to be needed again makes room
            to = free().map(|(i, _)| i).max_by_key(|&i| (self.age(i), Reverse(i))).unwrap_or(to);
            self.copies.push(Copying { from, to, len: common });
            kept = common;
        }
        self.clock += 1;
        let slot = &mut self.slots[to];
        slot.held.clear();
        slot.held.extend_from_slice(&ids[..kept]);
        slot.due.clear();
        slot.due.extend_from_slice(&ids[kept..]);
        (slot.is_taken, slot.taken_at) = (true, self.clock);
        Some((to, kept))
    }

    /// Appends tokens to a sequence.
    pub fn push(&mut self, slot: usize, ids: &[u32]) {
        self.slots[slot].due.extend_from_slice(ids);
    }

    /// Gives a slot back; what is computed of it stays for sequences that begin alike.
    pub fn release(&mut self, slot: usize) {
        self.slots[slot].due.clear();
        self.slots[slot].is_taken = false;
    }

    /// True while the step under way computes tokens of this slot.
    pub fn is_under_way(&self, slot: usize) -> bool {
        self.slots[slot].under_way > 0
    }

    /// True if something is due, and nothing is chosen just now that could join it.
    pub fn is_complete(&self) -> bool {
        self.slots.iter().any(|slot| !slot.due.is_empty())
            && self.slots.iter().all(|slot| !slot.is_taken || !slot.due.is_empty())
    }

    /// The next step: all sequences that go on, and as much as there is room for of those that read their prompts, the
    /// first come first. Empty if nothing is due.
    pub fn begin_step(&mut self) -> Step {
        let mut order: Vec<usize> = (0..self.slots.len()).filter(|&i| !self.slots[i].due.is_empty()).collect();
        order.sort_by_key(|&i| (self.slots[i].due.len() > SHORT, self.slots[i].taken_at));
        let mut step = Step { copies: std::mem::take(&mut self.copies), ..Step::default() };
        let goes_on = |slot: &Slot| slot.due.len() <= SHORT;
        let mut room = if order.first().is_some_and(|&i| goes_on(&self.slots[i])) { READ_BESIDE } else { READ };
        let mut last = Vec::new();
        for i in order {
            let slot = &mut self.slots[i];
            let count = if goes_on(slot) { slot.due.len() } else { slot.due.len().min(room) };
            if !goes_on(slot) {
                room -= count;
            }
            slot.under_way = count;
            let base = slot.held.len();
            let token = |at: usize| LaneToken { lane: i, step: base + at, id: slot.due[at] };
            let is_scored = count > 0 && count == slot.due.len();
            step.tokens.extend((0..count - usize::from(is_scored)).map(token));
            if is_scored {
                last.push(token(count - 1));
                step.scored.push(i);
            }
        }
        step.tokens.extend(last);
        step
    }

    /// Takes note of the step's end. What was not computed is forgotten with its slot's beginning.
    pub fn end_step(&mut self, is_computed: bool) {
        for slot in &mut self.slots {
            let count = std::mem::take(&mut slot.under_way);
            if is_computed {
                slot.held.extend(slot.due.drain(..count.min(slot.due.len())));
            }
        }
        if !is_computed {
            // a copy may not have been made, and rows may be half written
            for slot in &mut self.slots {
                slot.held.clear();
                slot.due.clear();
            }
            self.copies.clear();
        }
    }

    /// How long a slot has not been taken, in takings.
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

    /// Computes everything that is due.
    fn settle(slots: &mut Slots) -> usize {
        let mut steps = 0;
        while !slots.begin_step().tokens.is_empty() {
            slots.end_step(true);
            steps += 1;
        }
        steps
    }

    #[test]
    fn what_is_there_already_is_not_computed_again() {
        let mut slots = Slots::new(2);
        assert_eq!(slots.take(&ids(40)), Some((0, 0)));
        settle(&mut slots);
        slots.release(0);
        assert_eq!(slots.take(&ids(40)), Some((0, 39)), "one token is computed for its logits");
        // the other slot takes the beginning over while the first is in use
        let mut other = ids(30);
        other.extend([7, 7, 7]);
        assert_eq!(slots.take(&other), Some((1, 30)));
        let step = slots.begin_step();
        assert_eq!(step.copies, [Copying { from: 0, to: 1, len: 30 }]);
        assert_eq!(step.tokens.len(), 4);
        assert_eq!(slots.take(&ids(3)), None, "both are taken");
    }

    #[test]
    fn who_goes_on_does_not_wait_for_who_reads() {
        let mut slots = Slots::new(3);
        slots.take(&[1, 2]).unwrap();
        settle(&mut slots);
        slots.take(&ids(300)).unwrap();
        slots.take(&[9; 200]).unwrap();
        slots.push(0, &[3]);
        let step = slots.begin_step();
        assert_eq!(step.scored, [0]);
        assert_eq!(step.tokens.len(), READ_BESIDE + 1, "the one that goes on, and the prompt that came first");
        assert_eq!(step.tokens.last(), Some(&LaneToken { lane: 0, step: 2, id: 3 }));
        assert!(step.tokens.iter().all(|token| token.lane < 2));
        slots.end_step(true);
        let lanes: Vec<usize> = slots.begin_step().tokens.iter().map(|token| token.lane).collect();
        assert!(lanes[..READ - 5].iter().all(|&lane| lane == 1), "first come, first served: {lanes:?}");
    }

    #[test]
    fn a_step_that_failed_leaves_nothing_to_go_on_from() {
        let mut slots = Slots::new(2);
        slots.take(&ids(20)).unwrap();
        slots.begin_step();
        slots.end_step(false);
        slots.release(0);
        assert_eq!(slots.take(&ids(20)), Some((1, 0)), "of equal ones the oldest");
    }

    proptest! {
        /// In any order of events, each sequence is computed token by token at its own positions, and scored once
        /// for each time that all of it is computed.
        #[test]
        fn every_token_is_computed_once_and_in_its_place(
            events in prop::collection::vec((0usize..4, prop::collection::vec(0u32..3, 1..200)), 1..40),
        ) {
            let mut slots = Slots::new(3);
            // the rows as a cache would have them, and the sequences as their owners know them
            let mut rows: Vec<Vec<u32>> = vec![Vec::new(); 3];
            let mut wanted: Vec<Option<Vec<u32>>> = vec![None; 3];
            for (kind, ids) in events {
                match kind {
                    0 => if let Some((slot, _)) = slots.take(&ids) { wanted[slot] = Some(ids) },
                    1 => if let Some(slot) = (0..3).find(|&i| wanted[i].is_some() && slots.slots[i].due.is_empty()) {
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
                for Copying { from, to, len } in &step.copies {
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
                    prop_assert!(rows.starts_with(&slot.held), "what is said to be held is there");
                }
            }
        }
    }
}
