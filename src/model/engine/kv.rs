//! The KV cache: keys and values of the positions computed so far, as f16.

use super::config::Config;
use super::simd;
use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;

/// The mapping from the positions of one continuation to rows of the cache. Several continuations share the rows of
/// their common prefix; after these, each has its own range of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lane {
    /// Positions below this are at the row of the same number.
    shared: usize,
    /// The row of position `shared`; the others follow.
    own: usize,
}

impl Lane {
    /// The only continuation: every position is at the row of the same number.
    pub const ONLY: Self = Self { shared: 0, own: 0 };

    /// Returns continuation `index` of several, which share `shared` positions and have `room` positions each of
    /// their own.
    pub fn new(shared: usize, index: usize, room: usize) -> Self {
        Self { shared, own: shared + index * room }
    }

    /// Returns the lane of an independent sequence, in slot `index` of several with `len` positions each.
    pub fn slot(index: usize, len: usize) -> Self {
        Self { shared: 0, own: index * len }
    }

    /// True if `other` is the next position in the same continuation, at the next row.
    pub fn is_next((lane, position): (Self, usize), other: (Self, usize)) -> bool {
        lane == other.0 && position + 1 == other.1 && lane.row(position) + 1 == lane.row(other.1)
    }

    /// Returns the row of a position.
    pub fn row(&self, position: usize) -> usize {
        if position < self.shared { position } else { self.own + (position - self.shared) }
    }

    /// Returns the contiguous rows of the positions from `from` on: up to `to`, or to the end of the shared positions.
    pub fn rows(&self, from: usize, to: usize) -> Range<usize> {
        let to = if from < self.shared { to.min(self.shared) } else { to };
        self.row(from)..self.row(from) + (to - from)
    }
}

/// Keys and values of all layers. Memory is reserved for the whole context, and resident only once it is written.
///
/// Each head of each layer has a contiguous range of rows, one a position, so that attention reads sequentially. Rows
/// beyond [`Kv::len`] are garbage, so truncating only lowers the length.
pub(super) struct Kv {
    keys: Vec<u16>,
    values: Vec<u16>,
    layers: usize,
    heads: usize,
    head_dim: usize,
    capacity: usize,
    len: usize,
}

impl Kv {
    /// Allocates room for `capacity` positions; `None` if there is not enough memory, which a damaged file may ask for.
    pub fn new(config: &Config, capacity: usize) -> Option<Self> {
        let parts = [config.kv_heads, config.head_dim, capacity];
        let size = parts.iter().try_fold(config.layers, |size, part| size.checked_mul(*part))?;
        Some(Self {
            keys: zeroed(size)?,
            values: zeroed(size)?,
            layers: config.layers,
            heads: config.kv_heads,
            head_dim: config.head_dim,
            capacity,
            len: 0,
        })
    }

    /// Returns the number of positions stored.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the most positions that fit.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Drops all but the first `len` positions.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Adds the next `count` positions to the length, after they have been written in every layer.
    ///
    /// # Panics
    /// If there is no room for them.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.capacity - self.len, "more positions than there is room for");
        self.len += count;
    }

    /// Writes the key and value of a position of one layer, with all heads.
    pub fn write(&mut self, layer: usize, position: usize, key: &[f32], value: &[f32]) {
        for head in 0..self.heads {
            let from = head * self.head_dim..(head + 1) * self.head_dim;
            let to = self.rows(layer, head, position..position + 1);
            simd::narrow(&key[from.clone()], &mut self.keys[to.clone()]);
            simd::narrow(&value[from], &mut self.values[to]);
        }
    }

    /// Copies rows to the rows from `to` on, in every layer.
    pub fn copy(&mut self, rows: Range<usize>, to: usize) {
        for (layer, head) in self.runs() {
            let (from, to) = (self.rows(layer, head, rows.clone()), self.rows(layer, head, to..to).start);
            self.keys.copy_within(from.clone(), to);
            self.values.copy_within(from, to);
        }
    }

    /// Returns the keys of one head in a range of rows, row by row.
    pub fn keys(&self, layer: usize, head: usize, positions: Range<usize>) -> &[u16] {
        &self.keys[self.rows(layer, head, positions)]
    }

    /// Returns the values of one head in a range of rows, row by row.
    pub fn values(&self, layer: usize, head: usize, positions: Range<usize>) -> &[u16] {
        &self.values[self.rows(layer, head, positions)]
    }

    /// Writes the first `len` positions: keys, then values, of each layer's heads in order, little-endian.
    ///
    /// # Errors
    /// If writing fails; [`ErrorKind::InvalidInput`] for more positions than are stored.
    pub fn snapshot(&self, len: usize, to: &mut dyn Write) -> io::Result<()> {
        if len > self.len {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut bytes = vec![0; len * self.head_dim * size_of::<u16>()];
        for (layer, head) in self.runs() {
            for run in [self.keys(layer, head, 0..len), self.values(layer, head, 0..len)] {
                bytes.as_chunks_mut().0.iter_mut().zip(run).for_each(|(to, x)| *to = x.to_le_bytes());
                to.write_all(&bytes)?;
            }
        }
        Ok(())
    }

    /// Replaces the content by what [`Self::snapshot`] wrote of a cache of the same shape. Empty after an error.
    ///
    /// # Errors
    /// If reading fails; [`ErrorKind::InvalidInput`] for more positions than fit.
    pub fn restore(&mut self, len: usize, from: &mut dyn Read) -> io::Result<()> {
        self.len = 0;
        if len > self.capacity {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut bytes = vec![0; len * self.head_dim * size_of::<u16>()];
        for (layer, head) in self.runs() {
            let rows = self.rows(layer, head, 0..len);
            for run in [&mut self.keys[rows.clone()], &mut self.values[rows]] {
                from.read_exact(&mut bytes)?;
                run.iter_mut().zip(bytes.as_chunks().0).for_each(|(to, x)| *to = u16::from_le_bytes(*x));
            }
        }
        self.len = len;
        Ok(())
    }

    /// Iterates over the pairs of layer and head.
    fn runs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (layers, heads) = (self.layers, self.heads);
        (0..layers).flat_map(move |layer| (0..heads).map(move |head| (layer, head)))
    }

    fn rows(&self, layer: usize, head: usize, positions: Range<usize>) -> Range<usize> {
        let start = (layer * self.heads + head) * self.capacity;
        (start + positions.start) * self.head_dim..(start + positions.end) * self.head_dim
    }
}

/// Allocates zeroed memory, which the system maps lazily: it is resident only once written.
fn zeroed(size: usize) -> Option<Vec<u16>> {
    // `vec!` aborts if memory is short, so a reservation is tried first; `black_box` keeps the compiler from removing
    // it
    let mut reserved: Vec<u16> = Vec::new();
    reserved.try_reserve_exact(size).ok()?;
    drop(std::hint::black_box(reserved));
    Some(vec![0; size])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, Tiny};
    use super::*;

    fn filled(len: usize) -> Kv {
        let config = Config::read(&testing::parse(&Tiny::new("qwen2").bytes())).unwrap();
        let mut kv = Kv::new(&config, 16).unwrap();
        for position in 0..len {
            for layer in 0..config.layers {
                let row: Vec<f32> = (0..32).map(|i| (layer * 1000 + position * 50 + i) as f32).collect();
                let negative: Vec<f32> = row.iter().map(|x| -x).collect();
                kv.write(layer, position, &row, &negative);
            }
            kv.advance(1);
        }
        kv
    }

    #[test]
    fn a_size_beyond_any_memory_is_refused() {
        let mut config = Config::read(&testing::parse(&Tiny::new("qwen2").bytes())).unwrap();
        (config.layers, config.kv_heads, config.head_dim) = (1 << 10, 1 << 10, 1 << 10);
        assert!(Kv::new(&config, 1 << 24).is_none() && Kv::new(&config, usize::MAX).is_none());
    }

    #[test]
    fn written_rows_are_read_back() {
        let kv = filled(5);
        assert_eq!(kv.len(), 5);
        let mut keys = vec![0.0; 2 * 16];
        simd::widen(kv.keys(1, 1, 3..5), &mut keys);
        assert_eq!((keys[0], keys[16]), (1000.0 + 150.0 + 16.0, 1000.0 + 200.0 + 16.0));
        simd::widen(kv.values(1, 1, 3..5), &mut keys);
        assert_eq!(keys[0], -1166.0);
    }

    #[test]
    fn rows_are_copied_in_every_layer_and_head() {
        let mut kv = filled(8);
        let (before, unchanged) = (filled(8), 0..5);
        kv.copy(1..3, 5);
        for (layer, head) in kv.runs() {
            assert_eq!(kv.keys(layer, head, 5..7), before.keys(layer, head, 1..3));
            assert_eq!(kv.values(layer, head, 5..7), before.values(layer, head, 1..3));
            for rows in [unchanged.clone(), 7..8] {
                assert_eq!(kv.keys(layer, head, rows.clone()), before.keys(layer, head, rows));
            }
        }
    }

    #[test]
    fn lanes_share_only_their_prefix() {
        assert_eq!((Lane::ONLY.row(7), Lane::ONLY.rows(3, 9)), (7, 3..9));
        let (first, second) = (Lane::new(10, 0, 4), Lane::new(10, 1, 4));
        for lane in [first, second] {
            assert_eq!((lane.rows(0, 8), lane.rows(8, 12)), (0..8, 8..10), "a piece ends where the own rows begin");
        }
        assert_eq!((first.rows(10, 14), second.rows(10, 14), second.row(13)), (10..14, 14..18, 17));
    }

    #[test]
    fn a_snapshot_is_restored_after_later_writes() {
        let mut kv = filled(5);
        let (mut snapshot, mut first) = (Vec::new(), Vec::new());
        kv.snapshot(5, &mut snapshot).unwrap();
        kv.snapshot(2, &mut first).unwrap();
        assert_eq!((snapshot.len(), first.len()), (2 * 2 * 2 * 16 * 5 * 2, 2 * 2 * 2 * 16 * 2 * 2));
        let before = kv.keys(1, 0, 0..5).to_vec();
        kv.truncate(2);
        kv.truncate(9);
        assert_eq!(kv.len(), 2, "forgetting never remembers");
        kv.write(1, 3, &[7.0; 32], &[7.0; 32]);
        kv.restore(5, &mut &snapshot[..]).unwrap();
        assert_eq!((kv.len(), kv.keys(1, 0, 0..5)), (5, &before[..]));
        let mut again = Vec::new();
        kv.snapshot(5, &mut again).unwrap();
        assert!(again == snapshot);
        kv.restore(2, &mut &first[..]).unwrap();
        assert_eq!((kv.len(), kv.keys(1, 0, 0..2)), (2, &before[..32]));
    }

    #[test]
    fn snapshots_that_do_not_fit_are_refused() {
        let mut kv = filled(3);
        let mut snapshot = Vec::new();
        assert!(kv.snapshot(4, &mut snapshot).is_err(), "more than is held");
        kv.snapshot(3, &mut snapshot).unwrap();
        assert!(kv.restore(3, &mut &snapshot[..snapshot.len() - 1]).is_err(), "cut short");
        assert_eq!(kv.len(), 0);
        let long = vec![0; 17 * 256];
        assert!(kv.restore(17, &mut &long[..]).is_err(), "more than there is room for");
    }
}
