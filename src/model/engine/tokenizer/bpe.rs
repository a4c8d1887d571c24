//! Byte-pair merging.

use super::vocab::{Vocab, push_decoded};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Pieces up to this many bytes are merged by scanning for the best pair, longer ones with a heap.
const SCAN: usize = 48;

/// No merge.
const NONE: u32 = u32::MAX;

/// Which two tokens make which third, and how early.
pub(super) struct Merges {
    /// The token of each single byte, `NONE` where the vocabulary has none.
    singles: [u32; 256],
    /// Open addressing; a slot with `rank == NONE` is empty.
    slots: Vec<Slot>,
}

#[derive(Clone, Copy)]
struct Slot {
    left: u32,
    right: u32,
    /// The token they make.
    id: u32,
    /// Its place in the list of merges: the lower goes first.
    rank: u32,
}

impl Merges {
    /// Reads the list of merges (`left right`, best first). A merge of tokens that are not in the vocabulary can never
    /// apply and is left out.
    ///
    /// # Errors
    /// A sentence, if an entry is not two words or the list is too long.
    pub fn build(vocab: &Vocab, merges: &mut dyn Iterator<Item = &[u8]>) -> Result<Self, String> {
        let mut singles = [NONE; 256];
        for (byte, single) in (0..=u8::MAX).zip(&mut singles) {
            *single = vocab.normal(&[byte]).unwrap_or(NONE);
        }
        let mut table = Self { singles, slots: vec![EMPTY; (vocab.len() * 3 / 2).next_power_of_two().max(16)] };
        let mut used = 0usize;
        let mut joined = Vec::new();
        for (rank, entry) in merges.enumerate() {
            let rank = u32::try_from(rank).ok().filter(|&r| r < NONE).ok_or("it has too many merges")?;
            let space = entry.iter().position(|&b| b == b' ').ok_or_else(|| bad_merge(entry))?;
            joined.clear();
            let left_ok = push_decoded(&entry[..space], &mut joined);
            let split = joined.len();
            if !left_ok || !push_decoded(&entry[space + 1..], &mut joined) || split == 0 || split == joined.len() {
                return Err(bad_merge(entry));
            }
            let (Some(left), Some(right), Some(id)) =
                (vocab.normal(&joined[..split]), vocab.normal(&joined[split..]), vocab.normal(&joined))
            else {
                continue;
            };
            if used * 4 >= table.slots.len() * 3 {
                table.grow();
            }
            used += usize::from(table.insert(Slot { left, right, id, rank }));
        }
        Ok(table)
    }

    /// Doubles the table.
    fn grow(&mut self) {
        let doubled = vec![EMPTY; self.slots.len() * 2];
        for slot in std::mem::replace(&mut self.slots, doubled) {
            if slot.rank != NONE {
                self.insert(slot);
            }
        }
    }

    /// Adds a merge unless the pair has one already (the first is the better). True if it was added.
    fn insert(&mut self, new: Slot) -> bool {
        let mask = self.slots.len() - 1;
        let mut at = place(new.left, new.right) & mask;
        loop {
            let slot = self.slots[at];
            if slot.rank == NONE {
                self.slots[at] = new;
                return true;
            }
            if slot.left == new.left && slot.right == new.right {
                return false;
            }
            at = (at + 1) & mask;
        }
    }

    /// Rank and result of merging two tokens; rank `NONE` if they do not merge.
    fn get(&self, left: u32, right: u32) -> (u32, u32) {
        let mask = self.slots.len() - 1;
        let mut at = place(left, right) & mask;
        loop {
            let slot = self.slots[at];
            if slot.rank == NONE {
                return (NONE, NONE);
            }
            if slot.left == left && slot.right == right {
                return (slot.rank, slot.id);
            }
            at = (at + 1) & mask;
        }
    }

    /// Appends the tokens of one piece. A byte without a token of its own is left out, as the vocabulary cannot say it.
    pub fn encode(&self, piece: &[u8], out: &mut Vec<u32>) {
        let start = out.len();
        out.extend(piece.iter().map(|&b| self.singles[b as usize]).filter(|&id| id != NONE));
        let len = out.len() - start;
        let merged = if len <= SCAN { self.scan(&mut out[start..]) } else { self.heap(&mut out[start..]) };
        out.truncate(start + merged);
    }

    /// Merges in place, best pair first and leftmost among equals; returns how many tokens are left.
    fn scan(&self, ids: &mut [u32]) -> usize {
        let mut len = ids.len();
        if len < 2 {
            return len;
        }
        // ranks[i] is that of the pair (i, i + 1).
        let mut ranks = [(NONE, NONE); SCAN];
        for i in 0..len - 1 {
            ranks[i] = self.get(ids[i], ids[i + 1]);
        }
        loop {
            let mut best = 0;
            for i in 1..len - 1 {
                if ranks[i].0 < ranks[best].0 {
                    best = i;
                }
            }
            if len < 2 || ranks[best].0 == NONE {
                return len;
            }
            ids[best] = ranks[best].1;
            ids.copy_within(best + 2..len, best + 1);
            ranks.copy_within((best + 2).min(len - 1)..len - 1, best + 1);
            len -= 1;
            if best + 1 < len {
                ranks[best] = self.get(ids[best], ids[best + 1]);
            }
            if best > 0 {
                ranks[best - 1] = self.get(ids[best - 1], ids[best]);
            }
        }
    }

    /// The same for long pieces, in n log n: hostile input must not cost a quadratic time.
    fn heap(&self, ids: &mut [u32]) -> usize {
        let len = ids.len();
        let mut next: Vec<usize> = (1..=len).collect();
        let mut previous: Vec<usize> = (0..len).map(|i| i.wrapping_sub(1)).collect();
        let mut alive = vec![true; len];
        let mut queue = BinaryHeap::new();
        let push = |queue: &mut BinaryHeap<_>, ids: &[u32], left: usize, right: usize| {
            let (rank, id) = self.get(ids[left], ids[right]);
            if rank != NONE {
                queue.push(Reverse((rank, left, right, ids[left], ids[right], id)));
            }
        };
        for i in 1..len {
            push(&mut queue, ids, i - 1, i);
        }
        while let Some(Reverse((_, left, right, left_id, right_id, id))) = queue.pop() {
            let stale =
                !alive[left] || !alive[right] || next[left] != right || ids[left] != left_id || ids[right] != right_id;
            if stale {
                continue;
            }
            ids[left] = id;
            alive[right] = false;
            next[left] = next[right];
            if next[left] < len {
                previous[next[left]] = left;
                push(&mut queue, ids, left, next[left]);
            }
            if previous[left] < len {
                push(&mut queue, ids, previous[left], left);
            }
        }
        let mut kept = 0;
        for i in 0..len {
            if alive[i] {
                ids[kept] = ids[i];
                kept += 1;
            }
        }
        kept
    }
}

const EMPTY: Slot = Slot { left: 0, right: 0, id: NONE, rank: NONE };

fn place(left: u32, right: u32) -> usize {
    let key = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (key ^ (key >> 29)) as usize
}

fn bad_merge(entry: &[u8]) -> String {
    format!("{:?} is no merge of two tokens", String::from_utf8_lossy(&entry[..entry.len().min(60)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(tokens: &[&str], merges: &[&str]) -> Result<Merges, String> {
        let vocab = Vocab::build(&mut tokens.iter().map(|t| t.as_bytes()), &mut std::iter::empty()).unwrap();
        Merges::build(&vocab, &mut merges.iter().map(|m| m.as_bytes()))
    }

    #[test]
    fn the_earlier_merge_wins_and_then_the_leftmost() {
        let merges = table(&["a", "b", "c", "bc", "ab", "abc", "aa"], &["b c", "a b", "a bc", "a a"]).unwrap();
        let encode = |text: &str| {
            let mut out = vec![99];
            merges.encode(text.as_bytes(), &mut out);
            out
        };
        assert_eq!(encode("abc"), [99, 5]);
        assert_eq!(encode("ab"), [99, 4]);
        assert_eq!(encode("aaa"), [99, 6, 0]);
        assert_eq!(encode("x"), [99], "a byte the vocabulary lacks");
        assert_eq!(encode(""), [99]);
        assert_eq!(encode(&"a".repeat(201)).len(), 1 + 101);
    }

    #[test]
    fn a_damaged_list_of_merges_is_an_error() {
        for bad in ["ab", "", "a ", " b", "a 日"] {
            assert!(table(&["a", "b"], &[bad]).is_err(), "{bad:?}");
        }
        assert!(table(&["a", "b"], &["a b", "b x"]).is_ok(), "an entry beyond the vocabulary never applies");
    }

    #[test]
    fn the_table_grows() {
        let singles: Vec<String> = ('a'..='z').map(String::from).collect();
        let pairs: Vec<String> = ('a'..='z').flat_map(|a| ('a'..='z').map(move |b| format!("{a}{b}"))).collect();
        // Three times more merges than tokens: every pair, each listed several times in other words.
        let merges: Vec<String> = pairs.iter().map(|p| format!("{} {}", &p[..1], &p[1..])).collect();
        let tokens: Vec<&str> = singles.iter().chain(&pairs).map(String::as_str).collect();
        let table = table(&tokens, &merges.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        let mut out = Vec::new();
        for pair in &pairs {
            table.encode(pair.as_bytes(), &mut out);
        }
        assert_eq!(out, (26..26 + 676).collect::<Vec<u32>>());
    }
}
