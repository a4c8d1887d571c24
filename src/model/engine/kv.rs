//! The keys and values of the positions computed so far, as f16.

use super::config::Config;
use super::simd;
use std::ops::Range;

/// Keys and values of all layers. Memory is reserved for the whole context and touched as positions come.
///
/// A layer's head owns a run of rows, one a position, so that attention streams. Rows beyond [`Kv::len`] are garbage: going
/// back is only a matter of forgetting.
pub(super) struct Kv {
    keys: Vec<u16>,
    values: Vec<u16>,
    layers: usize,
    heads: usize,
    head_dim: usize,
    capacity: usize,
    len: usize,
}

/// A copy of the positions held at some time.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    len: usize,
    /// Keys, then values, of each layer's heads in order.
    rows: Vec<u16>,
}

impl Kv {
    /// Room for `capacity` positions.
    pub fn new(config: &Config, capacity: usize) -> Self {
        let size = config.layers * config.kv_heads * config.head_dim * capacity;
        // Zeroed memory comes from the system unmapped: it is resident only once written.
        Self {
            keys: vec![0; size],
            values: vec![0; size],
            layers: config.layers,
            heads: config.kv_heads,
            head_dim: config.head_dim,
            capacity,
            len: 0,
        }
    }

    /// Positions held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Positions there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Forgets all but the first `len` positions.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Takes note that the next `count` positions have been written in every layer.
    ///
    /// # Panics
    /// If there is no room for them.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.capacity - self.len, "more positions than there is room for");
        self.len += count;
    }

    /// Writes a position of one layer: `key` and `value` hold all heads.
    pub fn write(&mut self, layer: usize, position: usize, key: &[f32], value: &[f32]) {
        for head in 0..self.heads {
            let from = head * self.head_dim..(head + 1) * self.head_dim;
            let to = self.rows(layer, head, position..position + 1);
            simd::narrow(&key[from.clone()], &mut self.keys[to.clone()]);
            simd::narrow(&value[from], &mut self.values[to]);
        }
    }

    /// Keys of one head at some positions, row by row.
    pub fn keys(&self, layer: usize, head: usize, positions: Range<usize>) -> &[u16] {
        &self.keys[self.rows(layer, head, positions)]
    }

    /// Values of one head at some positions, row by row.
    pub fn values(&self, layer: usize, head: usize, positions: Range<usize>) -> &[u16] {
        &self.values[self.rows(layer, head, positions)]
    }

    /// Copies what is held.
    pub fn snapshot(&self) -> Snapshot {
        let mut rows = Vec::with_capacity(2 * self.layers * self.heads * self.head_dim * self.len);
        for layer in 0..self.layers {
            for head in 0..self.heads {
                rows.extend_from_slice(self.keys(layer, head, 0..self.len));
                rows.extend_from_slice(self.values(layer, head, 0..self.len));
            }
        }
        Snapshot { len: self.len, rows }
    }

    /// Puts a copy back in place of what is held. False, and nothing held, if it is not from a cache of this shape.
    pub fn restore(&mut self, snapshot: &Snapshot) -> bool {
        self.len = 0;
        let run = snapshot.len * self.head_dim;
        if snapshot.len > self.capacity || snapshot.rows.len() != 2 * self.layers * self.heads * run {
            return false;
        }
        if run > 0 {
            let mut runs = snapshot.rows.chunks_exact(run);
            for layer in 0..self.layers {
                for head in 0..self.heads {
                    let to = self.rows(layer, head, 0..snapshot.len);
                    if let (Some(keys), Some(values)) = (runs.next(), runs.next()) {
                        self.keys[to.clone()].copy_from_slice(keys);
                        self.values[to].copy_from_slice(values);
                    }
                }
            }
        }
        self.len = snapshot.len;
        true
    }

    fn rows(&self, layer: usize, head: usize, positions: Range<usize>) -> Range<usize> {
        let start = (layer * self.heads + head) * self.capacity;
        (start + positions.start) * self.head_dim..(start + positions.end) * self.head_dim
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, Tiny};
    use super::*;

    fn filled(len: usize) -> Kv {
        let config = Config::read(&testing::parse(&Tiny::new("qwen2").bytes())).unwrap();
        let mut kv = Kv::new(&config, 16);
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
    fn rows_are_found_where_they_were_written() {
        let kv = filled(5);
        assert_eq!(kv.len(), 5);
        let mut keys = vec![0.0; 2 * 16];
        simd::widen(kv.keys(1, 1, 3..5), &mut keys);
        assert_eq!((keys[0], keys[16]), (1000.0 + 150.0 + 16.0, 1000.0 + 200.0 + 16.0));
        simd::widen(kv.values(1, 1, 3..5), &mut keys);
        assert_eq!(keys[0], -1166.0);
    }

    #[test]
    fn a_snapshot_survives_what_comes_after() {
        let mut kv = filled(5);
        let snapshot = kv.snapshot();
        let before = kv.keys(1, 0, 0..5).to_vec();
        kv.truncate(2);
        kv.truncate(9);
        assert_eq!(kv.len(), 2, "forgetting never remembers");
        kv.write(1, 3, &[7.0; 32], &[7.0; 32]);
        assert!(kv.restore(&snapshot));
        assert_eq!((kv.len(), kv.keys(1, 0, 0..5)), (5, &before[..]));
        assert!(kv.snapshot() == snapshot);
    }

    #[test]
    fn a_foreign_snapshot_is_refused() {
        let mut kv = filled(3);
        let mut snapshot = kv.snapshot();
        snapshot.rows.pop();
        assert!(!kv.restore(&snapshot));
        assert_eq!(kv.len(), 0);
    }
}
