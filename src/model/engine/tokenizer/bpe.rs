//! Byte-pair merging.

use super::vocab::{Kind, Vocab, is_spelling};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most tokens of a piece that is merged by scanning for the best pair; longer ones are merged with a heap.
const MAX_SCAN: usize = 48;

/// The rank or id of no merge.
const NONE: u32 = u32::MAX;

/// The merges of two tokens to a third, with their ranks.
pub(super) struct Merges {
    /// The token of each single byte, `NONE` if the vocabulary has none.
    singles: [u32; 256],
    ranks: Ranks,
}

enum Ranks {
    /// For a vocabulary that is numbered in the order of its merges, as most are: the first merge makes token
    /// `first`, the next one the next. Then the vocabulary says what a pair makes, and only the place where each
    /// token was joined is stored: `cuts[i]` is the length of the left part of token `first + i`'s spelling. This
    /// avoids a table of pairs, whose building would take most of the time of building a tokenizer.
    Ordered { first: u32, cuts: Vec<u16> },
    /// Open addressing by pair; a slot with `rank == NONE` is empty.
    Table(Vec<Slot>),
}

#[derive(Clone, Copy)]
struct Slot {
    left: u32,
    right: u32,
    /// The token they make.
    id: u32,
    /// Its index in the list of merges; the lowest is applied first.
    rank: u32,
}

impl Merges {
    /// Reads the list of merges (`left right`, best first). A merge of tokens that are not in the vocabulary can
    /// never apply and is skipped.
    ///
    /// # Errors
    /// In words, if an entry is not two words or the list is too long.
    pub fn build(vocab: &Vocab, merges: &mut dyn Iterator<Item = &[u8]>) -> Result<Self, String> {
        let mut singles = [NONE; 256];
        for (byte, single) in (0..=u8::MAX).zip(&mut singles) {
            *single = vocab.normal(&[byte]).unwrap_or(NONE);
        }
        let (mut first, mut cuts) = (0, Vec::new());
        for entry in &mut *merges {
            let (left, right) = split(entry)?;
            if cuts.is_empty() {
                first = vocab.find_spelling(&[left, right].concat()).unwrap_or(NONE);
            }
            let id = first.saturating_add(cuts.len() as u32);
            let is_next = vocab.kind(id) == Kind::Normal && vocab.spelling(id).strip_prefix(left) == Some(right);
            match u16::try_from(left.len()) {
                Ok(cut) if is_next => cuts.push(cut),
                _ => {
                    // not in order: the merges read so far and the rest go into a table
                    let mut table = Table::new(vocab.len());
                    for (rank, &cut) in (0u32..).zip(&cuts) {
                        let (left, right) = vocab.spelling(first + rank).split_at(usize::from(cut));
                        table.add(vocab, left, right, rank);
                    }
                    let (left, right) = split_checked(entry)?;
                    table.add(vocab, left, right, cuts.len() as u32);
                    for (rank, entry) in (cuts.len() + 1..).zip(&mut *merges) {
                        let rank = u32::try_from(rank).ok().filter(|&r| r < NONE).ok_or("it has too many merges")?;
                        let (left, right) = split_checked(entry)?;
                        table.add(vocab, left, right, rank);
                    }
                    return Ok(Self { singles, ranks: Ranks::Table(table.slots) });
                }
            }
        }
        Ok(Self { singles, ranks: Ranks::Ordered { first, cuts } })
    }

    /// Returns the rank and the result of merging two tokens; rank `NONE` if they do not merge.
    fn get(&self, vocab: &Vocab, left: u32, right: u32) -> (u32, u32) {
        match &self.ranks {
            Ranks::Ordered { first, cuts } => {
                let cut = vocab.spelling(left).len();
                let rank = vocab
                    .joined(left, right)
                    .and_then(|id| id.checked_sub(*first))
                    .filter(|&rank| cuts.get(rank as usize).is_some_and(|&c| usize::from(c) == cut));
                rank.map_or((NONE, NONE), |rank| (rank, first + rank))
            }
            Ranks::Table(slots) => {
                let mask = slots.len() - 1;
                let mut at = hash_pair(left, right) & mask;
                loop {
                    let slot = slots[at];
                    if slot.rank == NONE {
                        return (NONE, NONE);
                    }
                    if slot.left == left && slot.right == right {
                        return (slot.rank, slot.id);
                    }
                    at = (at + 1) & mask;
                }
            }
        }
    }

    /// Appends the tokens of one piece. A byte without its own token is skipped, because the vocabulary cannot
    /// express it.
    pub fn encode(&self, vocab: &Vocab, piece: &[u8], out: &mut Vec<u32>) {
        let start = out.len();
        out.extend(piece.iter().map(|&b| self.singles[b as usize]).filter(|&id| id != NONE));
        let len = out.len() - start;
        let ids = &mut out[start..];
        let merged = if len <= MAX_SCAN { self.scan(vocab, ids) } else { self.heap(vocab, ids) };
        out.truncate(start + merged);
    }

    /// Merges in place, best pair first and leftmost among equals; returns the number of tokens left.
    fn scan(&self, vocab: &Vocab, ids: &mut [u32]) -> usize {
        let mut len = ids.len();
        if len < 2 {
            return len;
        }
        // `ranks[i]` is the rank of the pair (i, i + 1)
        let mut ranks = [(NONE, NONE); MAX_SCAN];
        for i in 0..len - 1 {
            ranks[i] = self.get(vocab, ids[i], ids[i + 1]);
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
                ranks[best] = self.get(vocab, ids[best], ids[best + 1]);
            }
            if best > 0 {
                ranks[best - 1] = self.get(vocab, ids[best - 1], ids[best]);
            }
        }
    }

    /// As [`Self::scan`], for long pieces in O(n log n), so that hostile input does not take quadratic time.
    fn heap(&self, vocab: &Vocab, ids: &mut [u32]) -> usize {
        let len = ids.len();
        let mut next: Vec<usize> = (1..=len).collect();
        let mut previous: Vec<usize> = (0..len).map(|i| i.wrapping_sub(1)).collect();
        let mut alive = vec![true; len];
        let mut queue = BinaryHeap::new();
        let push = |queue: &mut BinaryHeap<_>, ids: &[u32], left: usize, right: usize| {
            let (rank, id) = self.get(vocab, ids[left], ids[right]);
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
        let mut count = 0;
        for i in 0..len {
            if alive[i] {
                ids[count] = ids[i];
                count += 1;
            }
        }
        count
    }
}

/// A table of pairs being built.
struct Table {
    slots: Vec<Slot>,
    used: usize,
}

impl Table {
    fn new(vocab: usize) -> Self {
        Self { slots: vec![EMPTY; (vocab * 3 / 2).next_power_of_two().max(16)], used: 0 }
    }

    /// Adds the merge of two spellings.
    fn add(&mut self, vocab: &Vocab, left: &[u8], right: &[u8], rank: u32) {
        let find = |spelling: &[u8]| vocab.find_spelling(spelling);
        let parts = (find(left), find(right), find(&[left, right].concat()));
        if let (Some(left), Some(right), Some(id)) = parts {
            if self.used * 4 >= self.slots.len() * 3 {
                let doubled = vec![EMPTY; self.slots.len() * 2];
                for slot in std::mem::replace(&mut self.slots, doubled) {
                    if slot.rank != NONE {
                        self.insert(slot);
                    }
                }
            }
            self.used += usize::from(self.insert(Slot { left, right, id, rank }));
        }
    }

    /// Adds a merge unless the pair has one already (the first is the better). Returns true if it was added.
    fn insert(&mut self, new: Slot) -> bool {
        let mask = self.slots.len() - 1;
        let mut at = hash_pair(new.left, new.right) & mask;
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
}

/// Splits an entry of the list into its two spellings.
fn split(entry: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let space = entry.iter().position(|&b| b == b' ').ok_or_else(|| bad_merge(entry))?;
    let (left, right) = (&entry[..space], &entry[space + 1..]);
    if left.is_empty() || right.is_empty() { Err(bad_merge(entry)) } else { Ok((left, right)) }
}

/// As [`split`], and checks that both are valid spellings.
fn split_checked(entry: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let (left, right) = split(entry)?;
    if is_spelling(left) && is_spelling(right) { Ok((left, right)) } else { Err(bad_merge(entry)) }
}

const EMPTY: Slot = Slot { left: 0, right: 0, id: NONE, rank: NONE };

/// Hashes a pair of tokens.
fn hash_pair(left: u32, right: u32) -> usize {
    let key = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (key ^ (key >> 29)) as usize
}

fn bad_merge(entry: &[u8]) -> String {
    format!("{:?} is not a merge of two tokens", String::from_utf8_lossy(&entry[..entry.len().min(60)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(tokens: &[&str], merges: &[&str]) -> Result<(Vocab, Merges), String> {
        let vocab = Vocab::build(&mut tokens.iter().map(|t| t.as_bytes()), &mut std::iter::empty()).unwrap();
        let merges = Merges::build(&vocab, &mut merges.iter().map(|m| m.as_bytes()))?;
        Ok((vocab, merges))
    }

    #[test]
    fn the_earlier_merge_wins_and_then_the_leftmost() {
        // the same merges with a vocabulary in their order and with another
        for (ordered, tokens) in
            [(true, ["a", "b", "c", "bc", "ab", "abc", "aa"]), (false, ["a", "b", "c", "ab", "bc", "aa", "abc"])]
        {
            let (vocab, merges) = build(&tokens, &["b c", "a b", "a bc", "a a"]).unwrap();
            assert_eq!(matches!(merges.ranks, Ranks::Ordered { .. }), ordered);
            let encode = |text: &str| {
                let mut out = vec![99];
                merges.encode(&vocab, text.as_bytes(), &mut out);
                let spelled: Vec<&str> = out[1..].iter().map(|&id| tokens[id as usize]).collect();
                spelled.join("|")
            };
            assert_eq!(encode("abc"), "abc");
            assert_eq!(encode("ab"), "ab");
            assert_eq!(encode("aaa"), "aa|a");
            assert_eq!(encode("aabcb"), "a|abc|b");
            assert_eq!(encode("x"), "", "a byte the vocabulary lacks");
            assert_eq!(encode(""), "");
            assert_eq!(encode(&"a".repeat(201)).split('|').count(), 101);
        }
    }

    #[test]
    fn a_token_is_only_made_by_its_own_merge() {
        let (vocab, merges) = build(&["a", "b", "c", "ab", "bc", "abc"], &["a b", "b c", "a bc"]).unwrap();
        let mut out = Vec::new();
        merges.encode(&vocab, b"abc", &mut out);
        assert_eq!(out, [3, 2], "`ab` goes first, and `ab c` is not a merge");
    }

    #[test]
    fn a_damaged_list_of_merges_is_an_error() {
        for bad in ["ab", "", "a ", " b", "a 日"] {
            assert!(build(&["a", "b"], &[bad]).is_err(), "{bad:?}");
            assert!(build(&["a", "b", "ab"], &["a b", "b b", bad]).is_err(), "{bad:?} behind others");
        }
        assert!(build(&["a", "b"], &["a b", "b x"]).is_ok(), "an entry beyond the vocabulary never applies");
        assert!(build(&["a", "b"], &[]).is_ok(), "single bytes alone are a vocabulary too");
    }

    #[test]
    fn a_table_grows_and_finds_all_pairs() {
        let singles: Vec<String> = ('a'..='z').map(String::from).collect();
        let pairs: Vec<String> = ('a'..='z').flat_map(|a| ('a'..='z').map(move |b| format!("{a}{b}"))).collect();
        let tokens: Vec<&str> = singles.iter().chain(&pairs).map(String::as_str).collect();
        let vocab = Vocab::build(&mut tokens.iter().map(|t| t.as_bytes()), &mut std::iter::empty()).unwrap();
        let mut table = Table::new(1);
        for (rank, pair) in (0u32..).zip(&pairs) {
            let (left, right) = pair.as_bytes().split_at(1);
            table.add(&vocab, left, right, rank);
        }
        let merges = Merges { ranks: Ranks::Table(table.slots), ..build(&["a"], &[]).unwrap().1 };
        for (rank, pair) in (0u32..).zip(&pairs) {
            let id = |byte: u8| vocab.normal(&[byte]).unwrap();
            let (left, right) = (id(pair.as_bytes()[0]), id(pair.as_bytes()[1]));
            assert_eq!(merges.get(&vocab, left, right), (rank, 26 + rank));
        }
    }
}
