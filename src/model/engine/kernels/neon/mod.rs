//! The ARM kernels with the dot product instructions, for short batches: each block is unpacked in registers once and
//! multiplied with up to four rows of activations. Longer batches are computed by [`tiles`].
//!
//! `sdot` multiplies signed bytes and adds each four products to a sum of 32 bits, so that nothing can overflow: a
//! block of 256 is exact in integers, scales included, and floating point begins with one multiplication and addition
//! for each block.
#![allow(unsafe_code)] // vector loads, and calls into code for instructions that were detected at run time

mod chunk;
mod instructions;
mod tiles;
mod unpack;

use std::arch::aarch64::*;

use super::activation::{Form, Rounded};
use super::{Kernels, Task, Tier, portable};
use crate::engine::quant::{Format, Kind, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0, k_scales, with_format};
use instructions::{fetch, half, sdot};

pub(super) use tiles::Scratch;

/// Least rows of a batch that is multiplied in tiles.
pub(super) const MIN_BATCH: usize = Kernels::BIT_EXACT_BATCH + 1;

/// The distance of prefetching, in bytes after the current block.
const AHEAD: usize = 2048;

/// Computes one task, in long batches with the instructions of `tier`.
pub(super) fn rows(task: &Task, tier: Tier, scratch: &mut Scratch) {
    // SAFETY (all): `Kernels::new` has checked that this CPU has the tier's features.
    match task.weight.kind {
        kind if task.m >= MIN_BATCH => {
            with_format!(
                kind,
                F => match tier {
                    Tier::I8mm => unsafe { tiles::matrices::<F>(task, scratch) },
                    _ => unsafe { tiles::dots::<F>(task, scratch) },
                },
                portable::rows(task)
            );
        }
        Kind::Q4_0 => unsafe { by_batch::<Q4_0>(task) },
        Kind::Q4_1 => unsafe { by_batch::<Q4_1>(task) },
        Kind::Q5_0 => unsafe { by_batch::<Q5_0>(task) },
        Kind::Q5_1 => unsafe { by_batch::<Q5_1>(task) },
        Kind::Q8_0 => unsafe { by_batch::<Q8_0>(task) },
        Kind::Q4K => unsafe { by_batch::<Q4K>(task) },
        Kind::Q5K => unsafe { by_batch::<Q5K>(task) },
        Kind::Q6K => unsafe { by_batch::<Q6K>(task) },
        Kind::F32 | Kind::F16 | Kind::BF16 => portable::rows(task),
    }
}

/// One row of activations.
#[derive(Clone, Copy)]
struct Lhs<'a> {
    q: &'a [i8],
    scale: &'a [f32],
    /// Sums of 16.
    sums: &'a [i16],
}

impl<'a> Lhs<'a> {
    /// Returns the `len` inputs of row `row` from `start` on; a row has `k` inputs.
    #[inline(always)]
    fn of(rounded: &'a Rounded, form: Form, k: usize, row: usize, start: usize, len: usize) -> Self {
        let (at, block) = (row * k + start, form.block());
        Self {
            q: &rounded.q[at..][..len],
            scale: &rounded.scale[at / block..][..len / block],
            sums: &rounded.sums[at / 16..][..len / 16],
        }
    }

    /// Loads the 16 integers from `at` on.
    #[inline(always)]
    fn load(&self, at: usize) -> int8x16_t {
        debug_assert!(at + 16 <= self.q.len());
        // SAFETY: callers ask for whole 16s of the row's blocks.
        unsafe { vld1q_s8(self.q.as_ptr().add(at)) }
    }

    /// Loads the sums of the sixteen 16s of block `b` of 256.
    #[inline(always)]
    fn sums(&self, b: usize) -> [int16x8_t; 2] {
        let sums = &self.sums[b * 16..][..16];
        // SAFETY: sixteen numbers are two vectors.
        unsafe { [vld1q_s16(sums.as_ptr()), vld1q_s16(sums.as_ptr().add(8))] }
    }
}

/// A format with a kernel for short batches.
trait Block: Format {
    /// Adds the products of a block and the same block of `M` rows of activations to `sums`.
    ///
    /// # Safety
    /// The CPU has the dot product instructions, `block` is a block, and `x` has block number `b`.
    unsafe fn add<const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [float32x4_t; M]);
}

/// Multiplies all rows of activations, up to four at a time.
///
/// # Safety
/// The CPU has the dot product instructions.
#[target_feature(enable = "neon,dotprod")]
unsafe fn by_batch<F: Block>(task: &Task) {
    let mut first = 0;
    while first < task.m {
        // SAFETY: the same contract.
        first += unsafe {
            match task.m - first {
                1 => batch::<F, 1>(task, first),
                2 => batch::<F, 2>(task, first),
                3 => batch::<F, 3>(task, first),
                _ => batch::<F, 4>(task, first),
            }
        }
    }
}

/// # Safety
/// The CPU has the dot product instructions.
#[target_feature(enable = "neon,dotprod")]
unsafe fn batch<F: Block, const M: usize>(task: &Task, first: usize) -> usize {
    let form = Form::of(F::KIND);
    let k = task.weight.cols;
    let rounded = task.activations.get(form);
    let x: [Lhs; M] = std::array::from_fn(|i| Lhs::of(rounded, form, k, first + i, 0, k));
    for row in task.rows.clone() {
        let mut sums = [vdupq_n_f32(0.0); M];
        for (b, block) in task.weight.row(row).chunks_exact(F::BYTES).enumerate() {
            // several small blocks share a cache line, so that every second block suffices
            if F::BYTES > 64 || b.is_multiple_of(2) {
                for line in (0..F::BYTES).step_by(64) {
                    fetch(block.as_ptr().wrapping_add(AHEAD + line));
                }
            }
            // SAFETY: the features are enabled here, and `row` and `Lhs` hold the same number of blocks.
            unsafe { F::add(block, b, &x, &mut sums) };
        }
        for (i, &sum) in sums.iter().enumerate() {
            // SAFETY: `row` is one of this task's own.
            unsafe { task.out.write(first + i, row, vaddvq_f32(sum)) }
        }
    }
    M
}

/// Loads 16 bytes of a block.
#[inline(always)]
fn load(block: &[u8], at: usize) -> uint8x16_t {
    debug_assert!(at + 16 <= block.len());
    // SAFETY: callers read inside a block of their format's size.
    unsafe { vld1q_u8(block.as_ptr().add(at)) }
}

/// Converts the half-precision number at `at`.
#[inline(always)]
fn half_at(block: &[u8], at: usize) -> f32 {
    half(u16::from_le_bytes([block[at], block[at + 1]]))
}

/// Returns the low and high nibbles of every byte.
#[inline(always)]
fn nibbles(bytes: uint8x16_t) -> [uint8x16_t; 2] {
    // SAFETY: NEON belongs to every CPU of this architecture.
    unsafe { [vandq_u8(bytes, vdupq_n_u8(0x0F)), vshrq_n_u8::<4>(bytes)] }
}

/// Subtracts `bias` from the bytes; returns signed numbers.
#[inline(always)]
fn less(q: uint8x16_t, bias: u8) -> int8x16_t {
    // SAFETY: NEON belongs to every CPU of this architecture.
    unsafe { vreinterpretq_s8_u8(vsubq_u8(q, vdupq_n_u8(bias))) }
}

/// Returns 16 in every byte whose bit among the sixteen of `bits` is set.
#[inline(always)]
fn fifth_bits(bits: [u8; 2]) -> uint8x16_t {
    // SAFETY: NEON belongs to every CPU of this architecture.
    unsafe {
        let own = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
        let set = vtstq_u8(vcombine_u8(vdup_n_u8(bits[0]), vdup_n_u8(bits[1])), own);
        vandq_u8(set, vdupq_n_u8(0x10))
    }
}

/// A format with 32 weights in a block: `weight = scale * q + minimum`, with signed `q`.
trait Small: Format {
    /// True if there is a minimum, two bytes into the block.
    const MINIMUM: bool;

    /// Unpacks the block's integers.
    fn q(block: &[u8]) -> [int8x16_t; 2];
}

macro_rules! small {
    ($($format:ty, $minimum:literal, $block:ident => $q:expr;)*) => {$(
        impl Small for $format {
            const MINIMUM: bool = $minimum;

            #[inline(always)]
            fn q($block: &[u8]) -> [int8x16_t; 2] {
                $q
            }
        }

        impl Block for $format {
            #[inline]
            #[target_feature(enable = "neon,dotprod")]
            unsafe fn add<const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [float32x4_t; M]) {
                // SAFETY: the same contract.
                unsafe { add_small::<Self, M>(block, b, x, sums) }
            }
        }
    )*};
}

small! {
    Q4_0, false, block => nibbles(load(block, 2)).map(|q| less(q, 8));
    Q4_1, true, block => nibbles(load(block, 4)).map(|q| less(q, 0));
    Q5_0, false, block => fives(block, 2).map(|q| less(q, 16));
    Q5_1, true, block => fives(block, 4).map(|q| less(q, 0));
    Q8_0, false, block => [less(load(block, 2), 0), less(load(block, 18), 0)];
}

/// Unpacks 32 numbers of five bits: four bytes of fifth bits from `at` on, then nibbles.
#[inline(always)]
fn fives(block: &[u8], at: usize) -> [uint8x16_t; 2] {
    let [low, high] = nibbles(load(block, at + 4));
    let fifths = |from: usize| fifth_bits([block[from], block[from + 1]]);
    // SAFETY: NEON belongs to every CPU of this architecture.
    unsafe { [vorrq_u8(low, fifths(at)), vorrq_u8(high, fifths(at + 2))] }
}

/// # Safety
/// As [`Block::add`].
#[inline]
#[target_feature(enable = "neon,dotprod")]
unsafe fn add_small<F: Small, const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [float32x4_t; M]) {
    let q = F::q(block);
    let unit = half_at(block, 0);
    for (x, sum) in x.iter().zip(sums) {
        let scale = x.scale[b];
        let dot = sdot(vdupq_n_s32(0), q[0], x.load(b * 32));
        let dot = sdot(dot, q[1], x.load(b * 32 + 16));
        *sum = vfmaq_n_f32(*sum, vcvtq_f32_s32(dot), unit * scale);
        if F::MINIMUM {
            // in one lane, because all lanes are added in the end
            let of = f32::from(x.sums[2 * b] + x.sums[2 * b + 1]);
            let rest = vsetq_lane_f32::<0>(of, vdupq_n_f32(0.0));
            *sum = vfmaq_n_f32(*sum, rest, half_at(block, 2) * scale);
        }
    }
}

/// Adds a block of Q4_K or Q5_K: eight groups of 32 with scales and minima.
///
/// # Safety
/// As [`Block::add`].
#[inline]
#[target_feature(enable = "neon,dotprod")]
unsafe fn add_k<F: Format, const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [float32x4_t; M]) {
    let (scales, minima) = k_scales(&block[4..16]);
    let scales = scales.to_le_bytes();
    let five = F::BYTES == Q5K::BYTES;
    let mut fifths = if five { [load(block, 16), load(block, 32)] } else { [vdupq_n_u8(0); 2] };
    let mut dots = [vdupq_n_s32(0); M];
    for j in 0..4 {
        let at = F::BYTES - 128 + j * 32;
        // for each half of the 32 bytes, its low nibbles, which are group 2 j, and its high ones, group 2 j + 1
        let mut q = [nibbles(load(block, at)), nibbles(load(block, at + 16))];
        if five {
            for (q, fifths) in q.iter_mut().zip(&mut fifths) {
                *q = with_fifths(*q, *fifths);
                *fifths = vshrq_n_u8::<2>(*fifths);
            }
        }
        for side in 0..2 {
            let g = 2 * j + side;
            let scale = vdupq_n_s32(i32::from(scales[g]));
            for (x, dot) in x.iter().zip(&mut dots) {
                let at = b * 256 + g * 32;
                let part = sdot(vdupq_n_s32(0), less(q[0][side], 0), x.load(at));
                let part = sdot(part, less(q[1][side], 0), x.load(at + 16));
                *dot = vmlaq_s32(*dot, part, scale);
            }
        }
    }
    let minima = vreinterpretq_s16_u16(vmovl_u8(vcreate_u8(minima)));
    let (unit, minimum) = (half_at(block, 0), half_at(block, 2));
    for ((x, sum), dot) in x.iter().zip(sums).zip(dots) {
        let scale = x.scale[b];
        let [low, high] = x.sums(b);
        // at most 2 * 16 * 127 each
        let of = vpaddq_s16(low, high);
        let of = vmlal_high_s16(vmull_s16(vget_low_s16(minima), vget_low_s16(of)), minima, of);
        *sum = vfmaq_n_f32(*sum, vcvtq_f32_s32(dot), unit * scale);
        *sum = vfmsq_n_f32(*sum, vcvtq_f32_s32(of), minimum * scale);
    }
}

/// Adds the lowest bits of `fifths` to the low nibbles, as 16, and the next ones to the high nibbles.
#[inline(always)]
fn with_fifths([low, high]: [uint8x16_t; 2], fifths: uint8x16_t) -> [uint8x16_t; 2] {
    // SAFETY: NEON belongs to every CPU of this architecture.
    unsafe {
        let bit = vdupq_n_u8(0x10);
        [vorrq_u8(low, vandq_u8(vshlq_n_u8::<4>(fifths), bit)), vorrq_u8(high, vandq_u8(vshlq_n_u8::<3>(fifths), bit))]
    }
}

impl Block for Q4K {
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add<const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [float32x4_t; M]) {
        // SAFETY: the same contract.
        unsafe { add_k::<Self, M>(block, b, x, sums) }
    }
}

impl Block for Q5K {
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add<const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [float32x4_t; M]) {
        // SAFETY: the same contract.
        unsafe { add_k::<Self, M>(block, b, x, sums) }
    }
}

/// Unpacks sixteen weights of each quarter of a half of a Q6_K block, unsigned: from bytes of low nibbles 32 apart,
/// and the bytes with the upper bit pairs of all four.
#[inline(always)]
fn sixes(a: uint8x16_t, c: uint8x16_t, pairs: uint8x16_t) -> [uint8x16_t; 4] {
    let ([low_a, high_a], [low_c, high_c]) = (nibbles(a), nibbles(c));
    // SAFETY: NEON belongs to every CPU of this architecture.
    unsafe {
        let join = |low, pair| vorrq_u8(low, vandq_u8(pair, vdupq_n_u8(0x30)));
        [
            join(low_a, vshlq_n_u8::<4>(pairs)),
            join(low_c, vshlq_n_u8::<2>(pairs)),
            join(high_a, pairs),
            join(high_c, vshrq_n_u8::<2>(pairs)),
        ]
    }
}

impl Block for Q6K {
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add<const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [float32x4_t; M]) {
        let mut dots = [vdupq_n_s32(0); M];
        for half in 0..2 {
            for i in 0..2 {
                let at = half * 64 + i * 16;
                let q = sixes(load(block, at), load(block, at + 32), load(block, 128 + half * 32 + i * 16));
                for (j, q) in q.into_iter().enumerate() {
                    let g = half * 8 + j * 2 + i;
                    let scale = vdupq_n_s32(i32::from(block[192 + g] as i8));
                    for (x, dot) in x.iter().zip(&mut dots) {
                        let part = sdot(vdupq_n_s32(0), less(q, 0), x.load(b * 256 + g * 16));
                        *dot = vmlaq_s32(*dot, part, scale);
                    }
                }
            }
        }
        let scales = vreinterpretq_s8_u8(load(block, 192));
        let scales = [vmovl_s8(vget_low_s8(scales)), vmovl_high_s8(scales)];
        let unit = half_at(block, 208);
        for ((x, sum), dot) in x.iter().zip(sums).zip(dots) {
            // weights are q - 32: the products of 32 are subtracted group by group
            let mut of = vdupq_n_s32(0);
            for (scales, sums) in scales.into_iter().zip(x.sums(b)) {
                of = vmlal_s16(of, vget_low_s16(scales), vget_low_s16(sums));
                of = vmlal_high_s16(of, scales, sums);
            }
            let dot = vsubq_s32(dot, vshlq_n_s32::<5>(of));
            *sum = vfmaq_n_f32(*sum, vcvtq_f32_s32(dot), unit * x.scale[b]);
        }
    }
}
