//! The input of a product, rounded to what the kernels multiply.

use super::aligned::Aligned;
use super::{Kind, Out};
use crate::model::engine::threads::Pool;

/// What a kind of weight is multiplied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The numbers as they are.
    Plain,
    /// Signed bytes with a scale per 32.
    Block32,
    /// Signed bytes with a scale per 256.
    Block256,
}

impl Form {
    pub(super) const fn of(kind: Kind) -> Self {
        match kind.block_len() {
            1 => Self::Plain,
            32 => Self::Block32,
            _ => Self::Block256,
        }
    }

    /// Numbers that share a scale.
    pub(super) const fn block(self) -> usize {
        match self {
            Self::Plain => 1,
            Self::Block32 => 32,
            Self::Block256 => 256,
        }
    }
}

/// Inputs that are multiplied between two looks at the other tables: one block of 256, or eight of 32.
pub(super) const CHUNK: usize = 256;
/// Rows of activations that are multiplied together.
pub(super) const TILE: usize = 8;

/// Activations as signed bytes: `x = scale * q`.
#[derive(Debug, Default)]
pub(super) struct Rounded {
    /// `m x k` integers within `-127..=127`.
    pub(super) q: Aligned<i8>,
    /// Scale of each block, `m x k / block`.
    pub(super) scale: Aligned<f32>,
    /// Sum of the integers of each 16, `m x k / 16`.
    pub(super) sums: Aligned<i16>,
    packed: Packed,
    ready: bool,
}

/// The same in the order in which [`super::panel`]'s kernels read it: chunk by chunk, and in a chunk tile by tile.
#[derive(Debug, Default)]
struct Packed {
    /// For each chunk, tile and step, four inputs of each of the tile's rows.
    steps: Aligned<i32>,
    /// Scale of each block and row, `k / block x m`.
    scale: Aligned<f32>,
    /// Blocks of 32: what the integers of a block sum up to, scaled, `k / 32 x m`.
    rest: Aligned<f32>,
    /// Blocks of 256: sums of 32 integers in pairs of 16 bits, `k / 256 x m x 4`.
    pairs: Aligned<i32>,
    /// Blocks of 256: sums of 16 integers times -32, `k / 256 x m x 16`.
    less: Aligned<i32>,
}

/// One chunk of up to [`TILE`] rows.
pub(super) struct Tile<'a> {
    /// How many rows.
    pub(super) width: usize,
    /// Step by step, a word of four inputs for each row.
    pub(super) steps: &'a [i32],
    /// Scales, `stride` from block to block.
    pub(super) scale: &'a [f32],
    /// Blocks of 32: see [`Packed::rest`]; laid out as `scale`.
    pub(super) rest: &'a [f32],
    /// From a block's numbers to the next block's.
    pub(super) stride: usize,
    /// Blocks of 256: see [`Packed::pairs`].
    pub(super) pairs: &'a [[i32; 4]],
    /// Blocks of 256: see [`Packed::less`].
    pub(super) less: &'a [[i32; 16]],
}

/// What the kernels of a tier read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Rows: `q`, `scale`, `sums`.
    Rows,
    /// Those, and all of it packed.
    Steps,
}

/// The forms of one input that a call has asked for so far. Buffers are kept from call to call.
#[derive(Debug, Default)]
pub(super) struct Activations {
    by32: Rounded,
    by256: Rounded,
    m: usize,
    k: usize,
}

impl Activations {
    /// Begins a call with an input of `m x k`.
    pub(super) fn begin(&mut self, m: usize, k: usize) {
        (self.m, self.k) = (m, k);
        self.by32.ready = false;
        self.by256.ready = false;
    }

    /// Rounds `x` to `form`, unless this call has done so already.
    pub(super) fn prepare(&mut self, form: Form, layout: Layout, x: &[f32], pool: &Pool) {
        let rounded = match form {
            Form::Plain => return,
            Form::Block32 => &mut self.by32,
            Form::Block256 => &mut self.by256,
        };
        if !rounded.ready {
            rounded.fill(form, layout, x, self.m, self.k, pool);
        }
    }

    pub(super) fn get(&self, form: Form) -> &Rounded {
        match form {
            Form::Block256 => &self.by256,
            Form::Plain | Form::Block32 => &self.by32,
        }
    }

    /// Chunk number `chunk` of the tile that begins with row `first`, a multiple of [`TILE`].
    #[inline]
    pub(super) fn tile(&self, form: Form, chunk: usize, first: usize) -> Tile<'_> {
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

impl Rounded {
    fn fill(&mut self, form: Form, layout: Layout, x: &[f32], m: usize, k: usize, pool: &Pool) {
        let block = form.block();
        self.q.resize(m * k);
        self.scale.resize(m * k / block);
        self.sums.resize(m * k / 16);
        let q = Out::new(&mut self.q, k);
        let scale = Out::new(&mut self.scale, k / block);
        let sums = Out::new(&mut self.sums, k / 16);
        let fill = |i: usize| {
            // SAFETY: one task takes one row `i` of each matrix.
            #[allow(unsafe_code)]
            let (q, scale, sums) = unsafe { (q.row(i), scale.row(i), sums.row(i)) };
            let x = &x[i * k..][..k];
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the CPU has AVX2.
                #[allow(unsafe_code)]
                return unsafe { round_row_avx2(block, x, q, scale, sums) };
            }
            round_row(block, x, q, scale, sums);
        };
        let all = |tasks: usize, task: &(dyn Fn(usize) + Sync)| {
            // A region costs some microseconds; a single row of some thousands is cheaper here.
            if m * k < 32 << 10 {
                (0..tasks).for_each(task);
            } else {
                pool.run(tasks, |i, _| task(i));
            }
        };
        all(m, &fill);
        if layout != Layout::Rows {
            let Self { q, scale, sums, packed, .. } = self;
            packed.fit(form, m, k);
            let to = packed.writer();
            all(m.div_ceil(TILE), &|tile| to.fill(tile, form, m, k, (q, scale, sums)));
        }
        self.ready = true;
    }
}

impl Packed {
    fn fit(&mut self, form: Form, m: usize, k: usize) {
        let large = form == Form::Block256;
        self.steps.resize(m * k / 4);
        self.scale.resize(m * k / form.block());
        self.rest.resize(if large { 0 } else { m * k / 32 });
        self.pairs.resize(if large { m * k / 64 } else { 0 });
        self.less.resize(if large { m * k / 16 } else { 0 });
    }

    fn writer(&mut self) -> Writer<'_> {
        Writer {
            steps: Out::whole(&mut self.steps),
            scale: Out::whole(&mut self.scale),
            rest: Out::whole(&mut self.rest),
            pairs: Out::whole(&mut self.pairs),
            less: Out::whole(&mut self.less),
        }
    }
}

/// Where several threads write [`Packed`], each its own tiles.
struct Writer<'a> {
    steps: Out<'a, i32>,
    scale: Out<'a>,
    rest: Out<'a>,
    pairs: Out<'a, i32>,
    less: Out<'a, i32>,
}

impl Writer<'_> {
    /// Packs one tile of rounded rows.
    #[allow(unsafe_code)]
    fn fill(&self, tile: usize, form: Form, m: usize, k: usize, (q, scale, sums): (&[i8], &[f32], &[i16])) {
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

/// [`round_row`], compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn round_row_avx2(block: usize, x: &[f32], q: &mut [i8], scale: &mut [f32], sums: &mut [i16]) {
    round_row(block, x, q, scale, sums);
}

#[inline(always)]
fn round_row(block: usize, x: &[f32], q: &mut [i8], scale: &mut [f32], sums: &mut [i16]) {
    for ((x, q), scale) in x.chunks_exact(block).zip(q.chunks_exact_mut(block)).zip(scale) {
        *scale = round(x, q);
    }
    for (q, sum) in q.chunks_exact(16).zip(&mut *sums) {
        *sum = q.iter().map(|&q| i16::from(q)).sum();
    }
}

/// Rounds one block and returns its scale. The largest magnitude becomes 127; ties go to the even number.
#[inline(always)]
fn round(x: &[f32], q: &mut [i8]) -> f32 {
    /// Adding 1.5 x 2^23 leaves a number's nearest integer in the low bits of the sum.
    const MAGIC: f32 = 12_582_912.0;
    let mut parts = [0.0f32; 16];
    for x in x.chunks_exact(16) {
        for (part, &x) in parts.iter_mut().zip(x) {
            // Written so that NaN is passed over.
            *part = if x.abs() > *part { x.abs() } else { *part };
        }
    }
    let largest = parts.iter().fold(0.0f32, |a, &b| a.max(b));
    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    for (&x, q) in x.iter().zip(q) {
        *q = ((x * inverse + MAGIC).to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32) as i8;
    }
    largest / 127.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(form: Form, x: &[f32], m: usize) -> Activations {
        let mut activations = Activations::default();
        activations.begin(m, x.len() / m);
        activations.prepare(form, Layout::Steps, x, &Pool::new(2));
        activations
    }

    #[test]
    fn rounding_errs_by_half_a_step_at_most() {
        let x: Vec<f32> = (0..1024).map(|i| ((i * 37) % 513) as f32 * 0.013 - 3.0).collect();
        for form in [Form::Block32, Form::Block256] {
            let all = rounded(form, &x, 2);
            let r = all.get(form);
            for (at, &x) in x.iter().enumerate() {
                let scale = r.scale[at / form.block()];
                assert!((x - scale * f32::from(r.q[at])).abs() <= scale * 0.501, "{at}");
            }
            for (at, &sum) in r.sums.iter().enumerate() {
                assert_eq!(sum, r.q[at * 16..][..16].iter().map(|&q| i16::from(q)).sum::<i16>());
            }
        }
    }

    #[test]
    fn packing_moves_and_sums() {
        for (m, k) in [(1, 256), (3, 512), (8, 256), (13, 1024), (40, 512)] {
            let x: Vec<f32> = (0..m * k).map(|i| ((i * 37) % 513) as f32 * 0.013 - 3.0).collect();
            for form in [Form::Block32, Form::Block256] {
                let all = rounded(form, &x, m);
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

    #[test]
    fn odd_numbers_do_not_spread() {
        let mut x = vec![0.5f32; 512];
        x[300] = f32::NAN;
        let all = rounded(Form::Block256, &x, 1);
        let r = all.get(Form::Block256);
        assert_eq!(r.q[0], 127);
        assert_eq!(r.scale[0], 0.5 / 127.0);
        assert_eq!(r.q[256], 127);
        assert_eq!(rounded(Form::Block32, &[0.0; 32], 1).get(Form::Block32).q[..], [0; 32]);
    }
}
