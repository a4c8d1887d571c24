//! The halves of an adapter in the form in which they are multiplied: rounded to 8 bits, in the order in which
//! vectors read them.
//!
//! A half has few outputs or few inputs, so that unpacking another format would cost more than multiplying it, and is
//! small compared with the model: it is rounded once, at the first use. The rounding error of inputs and weights is
//! about 0.5 % of a typical number each. Sums are integers and exact within a block, and blocks are added in order,
//! so that no output depends on the number of others.
#![allow(unsafe_code)] // Vector instructions.

use super::super::aligned::Aligned;
use super::super::output::Out;
use super::super::{Weight, activation};
use crate::engine::threads::Pool;
use std::ops::Range;

/// Outputs of a panel.
pub(super) const PANEL: usize = 16;

/// Inputs of a word, which are multiplied at once.
const STEP: usize = 4;

/// Most rows of inputs that are multiplied together.
const ROWS: usize = 8;

/// Panels that a thread rounds at a time.
const PART: usize = 16;

/// A matrix: panels of sixteen outputs, each block by block; a block has the outputs' scales and then, step by step,
/// four numbers of each output. The last panel is padded with zeros.
#[derive(Debug)]
pub(in super::super) struct Panels {
    /// Scales as the bits of f32, numbers as four signed bytes.
    words: Aligned<i32>,
    blocks: usize,
    /// Words of an output in a block.
    steps: usize,
}

/// Rows of inputs, rounded.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct X<'a> {
    /// Numbers within -127..=127, row by row and block by block, each block padded to whole words.
    pub q: &'a [i8],
    /// Scale of each row's blocks.
    pub scale: &'a [f32],
    /// Sum of the numbers of each row's blocks.
    pub sum: &'a [i32],
}

/// The buffers for rounding a block of at most [`MAX_RANK`](super::MAX_RANK) numbers, which is the longest.
struct Rounding {
    numbers: [f32; super::MAX_RANK],
    q: [i8; super::MAX_RANK],
}

impl Rounding {
    fn new() -> Self {
        Self { numbers: [0.0; super::MAX_RANK], q: [0; super::MAX_RANK] }
    }

    /// Rounds a block; returns its numbers, padded to whole words, and their scale.
    fn round(&mut self, block: &[f32]) -> (&[i8], f32) {
        let whole = block.len().next_multiple_of(16);
        self.numbers[..block.len()].copy_from_slice(block);
        self.numbers[block.len()..whole].fill(0.0);
        let scale = activation::round(&self.numbers[..whole], &mut self.q[..whole]);
        (&self.q[..block.len().next_multiple_of(STEP)], scale)
    }
}

/// Rounded rows of inputs, with their buffers.
#[derive(Debug, Default)]
pub(in super::super) struct Rows {
    q: Vec<i8>,
    scale: Vec<f32>,
    sum: Vec<i32>,
}

impl Rows {
    /// Replaces the content by the rounded blocks of some rows.
    pub fn fill<'a>(&mut self, blocks: impl Iterator<Item = &'a [f32]>) {
        self.q.clear();
        self.scale.clear();
        self.sum.clear();
        let mut rounding = Rounding::new();
        for block in blocks {
            let (q, scale) = rounding.round(block);
            self.sum.push(q.iter().map(|&q| i32::from(q)).sum());
            self.q.extend_from_slice(q);
            self.scale.push(scale);
        }
    }

    pub fn x(&self) -> X<'_> {
        X { q: &self.q, scale: &self.scale, sum: &self.sum }
    }
}

impl Panels {
    /// Rounds `scale` times the matrix, in blocks of `block` inputs.
    pub fn new(matrix: &Weight, block: usize, scale: f32, pool: &Pool) -> Self {
        let (blocks, steps) = (matrix.cols().div_ceil(block), block.div_ceil(STEP));
        let panels = matrix.rows().div_ceil(PANEL);
        let size = PANEL * (1 + steps);
        let mut words = Aligned::default();
        words.resize(panels * blocks * size);
        let to = Out::new(&mut words, blocks * size);
        pool.run(panels.div_ceil(PART), |part, _| {
            let (mut numbers, mut rounding) = (vec![0.0; matrix.cols()], Rounding::new());
            for panel in part * PART..panels.min((part + 1) * PART) {
                // SAFETY: one task takes one panel.
                let words: &mut [i32] = unsafe { to.row(panel) };
                let rows = panel * PANEL..matrix.rows().min((panel + 1) * PANEL);
                for (output, row) in rows.enumerate() {
                    matrix.embed_row(row, &mut numbers);
                    for (words, numbers) in words.chunks_exact_mut(size).zip(numbers.chunks(block)) {
                        let (q, unit) = rounding.round(numbers);
                        words[output] = (unit * scale).to_bits().cast_signed();
                        for (step, four) in q.as_chunks::<STEP>().0.iter().enumerate() {
                            words[PANEL * (1 + step) + output] = i32::from_ne_bytes(four.map(i8::cast_unsigned));
                        }
                    }
                }
            }
        });
        Self { words, blocks, steps }
    }

    /// Returns the number of words of a panel.
    fn size(&self) -> usize {
        self.blocks * PANEL * (1 + self.steps)
    }

    /// Returns the number of panels.
    pub fn len(&self) -> usize {
        self.words.len() / self.size()
    }

    /// Returns the panels of these outputs, of which the first must begin a panel.
    pub fn of(&self, outputs: &Range<usize>) -> &[i32] {
        &self.words[outputs.start / PANEL * self.size()..outputs.end.div_ceil(PANEL) * self.size()]
    }

    /// Adds the products of the rows from `first` on and the outputs of these panels; of the last panel only the
    /// outputs that `outs` has.
    ///
    /// # Panics
    /// If the sizes do not fit each other.
    pub fn add(&self, panels: &[i32], x: X<'_>, first: usize, outs: &mut [&mut [f32]]) {
        let (blocks, steps) = (self.blocks, self.steps);
        // other instruction sets have too few registers for the sums of so many rows
        let together = if is_wide() { ROWS } else { ROWS / 2 };
        for (number, outs) in outs.chunks_mut(together).enumerate() {
            let start = first + number * together;
            let of = start * blocks..(start + outs.len()) * blocks;
            let q = &x.q[of.start * steps * STEP..of.end * steps * STEP];
            let some = Selection { q, scale: &x.scale[of.clone()], sum: &x.sum[of], blocks, steps };
            match outs {
                [a] => some.add(panels, [a]),
                [a, b] => some.add(panels, [a, b]),
                [a, b, c] => some.add(panels, [a, b, c]),
                [a, b, c, d] => some.add(panels, [a, b, c, d]),
                [a, b, c, d, e] => some.add(panels, [a, b, c, d, e]),
                [a, b, c, d, e, f] => some.add(panels, [a, b, c, d, e, f]),
                [a, b, c, d, e, f, g] => some.add(panels, [a, b, c, d, e, f, g]),
                [a, b, c, d, e, f, g, h] => some.add(panels, [a, b, c, d, e, f, g, h]),
                _ => {}
            }
        }
    }
}

/// True if the CPU has AVX-512 with VNNI.
fn is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Some rounded rows, and their layout.
#[derive(Clone, Copy)]
struct Selection<'a> {
    q: &'a [i8],
    scale: &'a [f32],
    sum: &'a [i32],
    blocks: usize,
    steps: usize,
}

impl Selection<'_> {
    /// Returns the number of words of a panel.
    fn size(self) -> usize {
        self.blocks * PANEL * (1 + self.steps)
    }

    /// Implements [`Panels::add`] for `R` rows.
    fn add<const R: usize>(self, panels: &[i32], mut outs: [&mut [f32]; R]) {
        let (size, blocks) = (self.size(), R * self.blocks);
        let width = outs.first().map_or(0, |out| out.len());
        assert!(outs.iter().all(|out| out.len() == width) && panels.len() == width.div_ceil(PANEL) * size);
        assert!(self.q.len() == blocks * self.steps * STEP && self.scale.len() == blocks && self.sum.len() == blocks);
        let (whole, rest) = panels.split_at(width / PANEL * size);
        let split = width / PANEL * PANEL;
        self.add_whole(whole, outs.each_mut().map(|out| &mut out[..split]));
        if !rest.is_empty() {
            let mut ends = [[0.0; PANEL]; R];
            for (end, out) in ends.iter_mut().zip(&outs) {
                end[..width - split].copy_from_slice(&out[split..]);
            }
            self.add_whole(rest, ends.each_mut().map(|end| &mut end[..]));
            for (end, out) in ends.iter().zip(&mut outs) {
                out[split..].copy_from_slice(&end[..width - split]);
            }
        }
    }

    /// Implements [`Self::add`] for full panels and sizes that fit.
    fn add_whole<const R: usize>(self, panels: &[i32], outs: [&mut [f32]; R]) {
        #[cfg(target_arch = "x86_64")]
        {
            if is_wide() {
                // SAFETY: the CPU has the instructions, and the caller has held the sizes against each other.
                return unsafe { x86::avx512(self, panels, outs) };
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: likewise.
                return unsafe { x86::avx2(self, panels, outs) };
            }
        }
        self.portable(panels, outs);
    }

    /// The reference implementation, and the fallback.
    fn portable<const R: usize>(self, panels: &[i32], mut outs: [&mut [f32]; R]) {
        let bytes = |word: i32| word.to_ne_bytes().map(|byte| i32::from(byte.cast_signed()));
        for (at, panel) in panels.chunks_exact(self.size()).enumerate() {
            for (i, out) in outs.iter_mut().enumerate() {
                let mut totals = [0.0; PANEL];
                for (b, block) in panel.chunks_exact(PANEL * (1 + self.steps)).enumerate() {
                    let (number, (scales, steps)) = (i * self.blocks + b, block.split_at(PANEL));
                    let x = &self.q[number * self.steps * STEP..][..self.steps * STEP];
                    let mut sums = [0i32; PANEL];
                    for (step, x) in steps.as_chunks::<PANEL>().0.iter().zip(x.as_chunks::<STEP>().0) {
                        for (sum, &four) in sums.iter_mut().zip(step) {
                            *sum += bytes(four).iter().zip(x).map(|(q, x)| q * i32::from(*x)).sum::<i32>();
                        }
                    }
                    for ((total, sum), &scale) in totals.iter_mut().zip(sums).zip(scales) {
                        *total += sum as f32 * (f32::from_bits(scale.cast_unsigned()) * self.scale[number]);
                    }
                }
                for (out, total) in out[at * PANEL..][..PANEL].iter_mut().zip(totals) {
                    *out += total;
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{PANEL, STEP, Selection};
    use std::arch::x86_64::*;

    /// # Safety
    /// The CPU has AVX-512F and VNNI; `x` is `R` rows, and `outs` are as wide as the panels.
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) unsafe fn avx512<const R: usize>(x: Selection<'_>, panels: &[i32], outs: [&mut [f32]; R]) {
        let size = x.size();
        let (count, outs) = (panels.len() / size, outs.map(|out| out.as_mut_ptr()));
        let mut at = 0;
        // few rows take several panels or steps at a time, since a single chain of sums would wait for its own latency
        while R < 4 && at + 4 <= count {
            // SAFETY: four panels are there.
            unsafe { tile512::<R, 4, 1>(x, panels.as_ptr().add(at * size), outs.map(|out| out.add(at * PANEL))) };
            at += 4;
        }
        while at < count {
            // SAFETY: a panel is there.
            unsafe {
                let (panel, outs) = (panels.as_ptr().add(at * size), outs.map(|out| out.add(at * PANEL)));
                if R < 4 && x.steps.is_multiple_of(4) {
                    tile512::<R, 1, 4>(x, panel, outs);
                } else {
                    tile512::<R, 1, 1>(x, panel, outs);
                }
            }
            at += 1;
        }
    }

    /// Computes `R` rows by `P` panels, with separate sums for `S` steps, by which the steps divide.
    ///
    /// # Safety
    /// As [`avx512`], for `P` panels at `panels` and as many outputs at each of `outs`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn tile512<const R: usize, const P: usize, const S: usize>(
        x: Selection<'_>,
        panels: *const i32,
        outs: [*mut f32; R],
    ) {
        let (size, block) = (x.size(), PANEL * (1 + x.steps));
        let signs = _mm512_set1_epi8(i8::MIN);
        let mut totals = [[_mm512_setzero_ps(); P]; R];
        for b in 0..x.blocks {
            // one operand of the instruction is unsigned: 128 is added to each of the panel's numbers, and subtracted
            // again
            let mut sums = [[[_mm512_setzero_si512(); S]; P]; R];
            for (i, sums) in sums.iter_mut().enumerate() {
                // SAFETY: each row has its blocks' sums.
                let less = _mm512_set1_epi32(-128 * unsafe { *x.sum.as_ptr().add(i * x.blocks + b) });
                sums.iter_mut().for_each(|sums| sums[0] = less);
            }
            for some in 0..x.steps / S {
                for s in 0..S {
                    let step = some * S + s;
                    // SAFETY: the step of `P` panels, and of `R` rows.
                    unsafe {
                        let four: [__m512i; P] = std::array::from_fn(|p| {
                            let at = panels.add(p * size + b * block + (1 + step) * PANEL);
                            _mm512_xor_si512(_mm512_loadu_si512(at.cast()), signs)
                        });
                        for (i, sums) in sums.iter_mut().enumerate() {
                            let at = x.q.as_ptr().add(((i * x.blocks + b) * x.steps + step) * STEP);
                            let row = _mm512_set1_epi32(at.cast::<i32>().read_unaligned());
                            for (sums, four) in sums.iter_mut().zip(four) {
                                sums[s] = _mm512_dpbusd_epi32(sums[s], four, row);
                            }
                        }
                    }
                }
            }
            for (i, (totals, sums)) in totals.iter_mut().zip(sums).enumerate() {
                for (p, (total, sums)) in totals.iter_mut().zip(sums).enumerate() {
                    // SAFETY: a block has its scales, and each row its blocks'.
                    let scale = unsafe {
                        let row = _mm512_set1_ps(*x.scale.as_ptr().add(i * x.blocks + b));
                        _mm512_mul_ps(_mm512_loadu_ps(panels.add(p * size + b * block).cast()), row)
                    };
                    let sum = sums.into_iter().fold(_mm512_setzero_si512(), |a, b| _mm512_add_epi32(a, b));
                    *total = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, *total);
                }
            }
        }
        for (out, totals) in outs.into_iter().zip(totals) {
            for (p, total) in totals.into_iter().enumerate() {
                // SAFETY: `P` panels' outputs are there.
                unsafe {
                    let out = out.add(p * PANEL);
                    _mm512_storeu_ps(out, _mm512_add_ps(_mm512_loadu_ps(out), total));
                }
            }
        }
    }

    /// # Safety
    /// The CPU has AVX2 and FMA; `x` is `R` rows, and `outs` are as wide as the panels.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2<const R: usize>(x: Selection<'_>, panels: &[i32], outs: [&mut [f32]; R]) {
        let (size, outs) = (x.size(), outs.map(|out| out.as_mut_ptr()));
        // half a panel at a time: a vector holds eight outputs
        for at in 0..2 * (panels.len() / size) {
            // SAFETY: a panel is there, and half of its outputs.
            unsafe {
                let panel = panels.as_ptr().add(at / 2 * size + at % 2 * PANEL / 2);
                tile256(x, panel, outs.map(|out| out.add(at * PANEL / 2)));
            }
        }
    }

    /// Computes `R` rows by half a panel.
    ///
    /// # Safety
    /// As [`avx2`], for eight outputs of a panel at `panel` and at each of `outs`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile256<const R: usize>(x: Selection<'_>, panel: *const i32, outs: [*mut f32; R]) {
        let block = PANEL * (1 + x.steps);
        let mut totals = [_mm256_setzero_ps(); R];
        for b in 0..x.blocks {
            let mut sums = [_mm256_setzero_si256(); R];
            for step in 0..x.steps {
                // SAFETY: the step of eight outputs, and of `R` rows.
                unsafe {
                    let four = _mm256_loadu_si256(panel.add(b * block + (1 + step) * PANEL).cast());
                    for (i, sum) in sums.iter_mut().enumerate() {
                        let at = x.q.as_ptr().add(((i * x.blocks + b) * x.steps + step) * STEP);
                        let row = _mm256_set1_epi32(at.cast::<i32>().read_unaligned());
                        // magnitudes, with their sign moved to the row, so that no pair of products exceeds 16 bits
                        let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(four), _mm256_sign_epi8(row, four));
                        *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
                    }
                }
            }
            for (i, (total, sum)) in totals.iter_mut().zip(sums).enumerate() {
                // SAFETY: a block has its scales, and each row its blocks'.
                let scale = unsafe {
                    let row = _mm256_set1_ps(*x.scale.as_ptr().add(i * x.blocks + b));
                    _mm256_mul_ps(_mm256_loadu_ps(panel.add(b * block).cast()), row)
                };
                *total = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, *total);
            }
        }
        for (out, total) in outs.into_iter().zip(totals) {
            // SAFETY: eight outputs of each row.
            unsafe { _mm256_storeu_ps(out, _mm256_add_ps(_mm256_loadu_ps(out), total)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::bytes::Bytes;
    use crate::engine::quant::Kind;

    fn values(len: usize, seed: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f32 / 1001.0 - 1.0).collect()
    }

    /// Returns half the matrix, in panels.
    fn panels(numbers: &[f32], inputs: usize, block: usize) -> Panels {
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let matrix = Weight::new(Kind::F32, numbers.len() / inputs, inputs, Bytes::from(bytes)).unwrap();
        Panels::new(&matrix, block, 0.5, &Pool::new(2))
    }

    fn rounded(x: &[f32], inputs: usize, block: usize) -> Rows {
        let mut rows = Rows::default();
        rows.fill(x.chunks(inputs).flat_map(|row| row.chunks(block)));
        rows
    }

    fn run(panels: &Panels, x: &[f32], (inputs, block): (usize, usize), before: &[f32], width: usize) -> Vec<f32> {
        let mut out = before.to_vec();
        let rows = rounded(x, inputs, block);
        panels.add(panels.of(&(0..width)), rows.x(), 0, &mut out.chunks_mut(width).collect::<Vec<_>>());
        out
    }

    /// The numbers of inputs, of all and of a block.
    const SHAPES: [(usize, usize); 9] =
        [(1, 1), (3, 3), (16, 16), (33, 33), (256, 256), (64, 32), (96, 32), (512, 256), (1536, 256)];

    #[test]
    fn rows_are_multiplied_correctly_and_as_alone_in_any_shape() {
        for (inputs, block) in SHAPES {
            for width in [1, 16, 17, 64, 130, 300] {
                let numbers = values(width * inputs, 6);
                let panels = panels(&numbers, inputs, block);
                assert_eq!(panels.len(), width.div_ceil(PANEL));
                for rows in [1, 2, 3, 4, 5, 6, 7, 8, 9, 21] {
                    let (x, before) = (values(rows * inputs, 5), values(rows * width, 7));
                    let together = run(&panels, &x, (inputs, block), &before, width);
                    for (i, row) in together.chunks(width).enumerate() {
                        let (x, before) = (&x[i * inputs..][..inputs], &before[i * width..][..width]);
                        let alone = run(&panels, x, (inputs, block), before, width);
                        assert!(row.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()), "row {i} of {rows}");
                        for (output, &got) in row.iter().enumerate() {
                            let terms = x.iter().zip(&numbers[output * inputs..]).map(|(x, y)| f64::from(x * y) / 2.0);
                            let want = f64::from(before[output]) + terms.sum::<f64>();
                            // each factor errs by at most half of 1/127, and the errors of many terms add like squares
                            let limit = 0.01 * (inputs as f64).sqrt();
                            assert!((f64::from(got) - want).abs() < limit, "{inputs}, {output}: {got}, not {want}");
                        }
                    }
                }
            }
        }
    }

    /// An implementation of [`Selection::add_whole`].
    type Version<const R: usize> = fn(Selection<'_>, &[i32], [&mut [f32]; R]);

    fn every_version_agrees<const R: usize>() {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut versions: Vec<(&str, Version<R>)> = vec![("chosen", |x, panels, outs| x.add_whole(panels, outs))];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU has the instructions; the test's sizes fit each other.
            versions.push(("avx2", |x, panels, outs| unsafe { x86::avx2(x, panels, outs) }));
        }
        for (inputs, block) in SHAPES {
            let width = 7 * PANEL;
            // the largest numbers on both sides too: their sums must not overflow
            for fill in [None, Some(1.0f32), Some(-1.0)] {
                let numbers = |len: usize, seed| fill.map_or_else(|| values(len, seed), |fill| vec![fill; len]);
                let panels = panels(&numbers(width * inputs, 4), inputs, block);
                let rows = rounded(&numbers(R * inputs, 3), inputs, block);
                let (X { q, scale, sum }, &Panels { blocks, steps, .. }) = (rows.x(), &panels);
                let run = |version: Version<R>| {
                    let mut out = vec![0.5; R * width];
                    let mut outs = out.chunks_exact_mut(width);
                    let outs = std::array::from_fn(|_| outs.next().unwrap());
                    version(Selection { q, scale, sum, blocks, steps }, panels.of(&(0..width)), outs);
                    out
                };
                let expected = run(|x, panels, outs| x.portable(panels, outs));
                for (name, version) in &versions {
                    for (a, b) in run(*version).iter().zip(&expected) {
                        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{name}, {R} rows of {inputs}: {a} and {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_agrees_with_the_reference() {
        every_version_agrees::<1>();
        every_version_agrees::<3>();
        every_version_agrees::<8>();
    }

    #[test]
    fn numbers_of_equal_magnitude_are_exact() {
        let panels = panels(&[1.0, -1.0].repeat(16 * 20), 16, 16);
        let out = run(&panels, &[2.0, -2.0].repeat(8), (16, 16), &[0.0; 40], 40);
        assert!(out.iter().all(|x| (x - 16.0).abs() < 1e-4), "{out:?}");
    }
}
