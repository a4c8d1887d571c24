//! Rounded activations in the order in which [`super::super::panel`]'s kernels read them.

use super::super::aligned::Aligned;
use super::super::output::Out;
use super::{Activations, CHUNK, Form};

/// Rows of activations that are multiplied together.
pub(in super::super) const TILE: usize = 8;

/// Rounded activations in the order in which [`super::super::panel`]'s kernels read them: chunk by chunk, and in a
/// chunk tile by tile.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// For each chunk, tile and step, four inputs of each of the tile's rows.
    steps: Aligned<i32>,
    /// Scale of each block and row, `k / block x m`.
    scale: Aligned<f32>,
    /// Blocks of 32: the scaled sum of a block's integers, `k / 32 x m`.
    rest: Aligned<f32>,
    /// Blocks of 256: sums of 32 integers in pairs of 16 bits, `k / 256 x m x 4`.
    pairs: Aligned<i32>,
    /// Blocks of 256: sums of 16 integers times -32, `k / 256 x m x 16`.
    less: Aligned<i32>,
}

/// One chunk of up to [`TILE`] rows.
pub(in super::super) struct Tile<'a> {
    /// The number of rows.
    pub(in super::super) width: usize,
    /// Step by step, a word of four inputs for each row.
    pub(in super::super) steps: &'a [i32],
    /// Scales, `stride` from block to block.
    pub(in super::super) scale: &'a [f32],
    /// Blocks of 32: see [`Packed::rest`]; laid out as `scale`.
    pub(in super::super) rest: &'a [f32],
    /// The distance from a block's numbers to the next block's.
    pub(in super::super) stride: usize,
    /// Blocks of 256: see [`Packed::pairs`].
    pub(in super::super) pairs: &'a [[i32; 4]],
    /// Blocks of 256: see [`Packed::less`].
    pub(in super::super) less: &'a [[i32; 16]],
}

impl Activations {
    /// Returns chunk number `chunk` of the tile that begins with row `first`, a multiple of [`TILE`].
    #[inline]
    pub(in super::super) fn tile(&self, form: Form, chunk: usize, first: usize) -> Tile<'_> {
        let (m, packed) = (self.m, &self.get(form).packed);
        let width = TILE.min(m - first);
        let len = CHUNK.min(self.k - chunk * CHUNK);
        let start = (chunk * CHUNK * m + first * len) / 4;
        let steps = &packed.steps[start..start + width * len / 4];
        let at = chunk * CHUNK / form.block() * m + first;
        let of = |words: &'_ Aligned<i32>| (!words.is_empty()).then_some(at..at + width);
        Tile {
            width,
            steps,
            scale: &packed.scale[at..],
            rest: packed.rest.get(at..).unwrap_or_default(),
            stride: m,
            pairs: of(&packed.pairs).map_or(&[], |range| &packed.pairs.as_chunks().0[range]),
            less: of(&packed.less).map_or(&[], |range| &packed.less.as_chunks().0[range]),
        }
    }
}

impl Packed {
    pub(super) fn fit(&mut self, form: Form, m: usize, k: usize) {
        let large = form == Form::Block256;
        self.steps.resize(m * k / 4);
        self.scale.resize(m * k / form.block());
        self.rest.resize(if large { 0 } else { m * k / 32 });
        self.pairs.resize(if large { m * k / 64 } else { 0 });
        self.less.resize(if large { m * k / 16 } else { 0 });
    }

    pub(super) fn writer(&mut self) -> Writer<'_> {
        Writer {
            steps: Out::whole(&mut self.steps),
            scale: Out::whole(&mut self.scale),
            rest: Out::whole(&mut self.rest),
            pairs: Out::whole(&mut self.pairs),
            less: Out::whole(&mut self.less),
        }
    }
}

/// Access to [`Packed`] for several threads, each of which writes its own tiles.
pub(super) struct Writer<'a> {
    steps: Out<'a, i32>,
    scale: Out<'a>,
    rest: Out<'a>,
    pairs: Out<'a, i32>,
    less: Out<'a, i32>,
}

impl Writer<'_> {
    /// Packs one tile of rounded rows.
    #[allow(unsafe_code)]
    pub(super) fn fill(&self, tile: usize, form: Form, m: usize, k: usize, (q, scale, sums): (&[i8], &[f32], &[i16])) {
        let first = tile * TILE;
        let width = TILE.min(m - first);
        let block = form.block();
        for chunk in (0..k).step_by(CHUNK) {
            let len = CHUNK.min(k - chunk);
            // SAFETY: this tile's part of this chunk.
            let to = unsafe { self.steps.part(0, (chunk * m + first * len) / 4, width * len / 4) };
            for t in 0..width {
                let words = q[(first + t) * k + chunk..][..len].as_chunks().0;
                for (to, &[a, b, c, d]) in to[t..].iter_mut().step_by(width).zip(words) {
                    *to = i32::from_ne_bytes([a as u8, b as u8, c as u8, d as u8]);
                }
            }
        }
        for t in first..first + width {
            let sums = &sums[t * k / 16..][..k / 16];
            for (b, &scale) in scale[t * k / block..][..k / block].iter().enumerate() {
                // SAFETY: numbers of this tile's rows.
                unsafe { self.scale.write(0, b * m + t, scale) };
                if form == Form::Block32 {
                    let sum = f32::from(sums[2 * b] + sums[2 * b + 1]);
                    // SAFETY: likewise.
                    unsafe { self.rest.write(0, b * m + t, scale * sum) };
                    continue;
                }
                let of: &[i16] = &sums[b * 16..][..16];
                // SAFETY: likewise.
                let (pairs, less) =
                    unsafe { (self.pairs.part(0, (b * m + t) * 4, 4), self.less.part(0, (b * m + t) * 16, 16)) };
                for (pair, of) in pairs.iter_mut().zip(of.chunks_exact(4)) {
                    let (low, high) = ((of[0] + of[1]).to_ne_bytes(), (of[2] + of[3]).to_ne_bytes());
                    *pair = i32::from_ne_bytes([low[0], low[1], high[0], high[1]]);
                }
                for (less, &of) in less.iter_mut().zip(of) {
                    *less = -32 * i32::from(of);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layout, Pool};
    use super::*;

    #[test]
    fn packed_activations_are_those_of_the_rows() {
        for (m, k) in [(1, 256), (3, 512), (8, 256), (13, 1024), (40, 512)] {
            let x: Vec<f32> = (0..m * k).map(|i| ((i * 37) % 513) as f32 * 0.013 - 3.0).collect();
            for form in [Form::Block32, Form::Block256] {
                let mut all = Activations::default();
                all.begin(m, k);
                all.prepare(form, Layout::Steps, &x, &Pool::new(2));
                let r = all.get(form);
                for chunk in 0..k / CHUNK {
                    for first in (0..m).step_by(TILE) {
                        let tile = all.tile(form, chunk, first);
                        assert_eq!(tile.width, TILE.min(m - first));
                        for t in 0..tile.width {
                            let q = &r.q[(first + t) * k + chunk * CHUNK..][..CHUNK];
                            let of = |at: usize, len: usize| q[at..at + len].iter().map(|&q| i32::from(q)).sum::<i32>();
                            for (step, q) in q.chunks_exact(4).enumerate() {
                                let word = tile.steps[step * tile.width + t].to_ne_bytes();
                                assert_eq!(word.map(|b| b as i8), *q, "{m} x {k}, step {step}");
                            }
                            for block in 0..CHUNK / form.block() {
                                let scale = r.scale[((first + t) * k + chunk * CHUNK) / form.block() + block];
                                assert_eq!(tile.scale[block * tile.stride + t], scale);
                                if form == Form::Block32 {
                                    assert_eq!(tile.rest[block * tile.stride + t], scale * of(block * 32, 32) as f32);
                                }
                            }
                            if form == Form::Block256 {
                                for g in 0..16 {
                                    assert_eq!(tile.less[t][g], -32 * of(g * 16, 16));
                                }
                                for (p, &pair) in tile.pairs[t].iter().enumerate() {
                                    let (low, high) = (of(p * 64, 32), of(p * 64 + 32, 32));
                                    assert_eq!((i32::from(pair as i16), pair >> 16), (low, high));
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
