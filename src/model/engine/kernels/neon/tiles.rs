//! The ARM kernels for longer batches: panels of four rows of weights are unpacked once and multiplied with four rows
//! of activations at a time, two panels together.
//!
//! The order of sixteen inputs of a panel in four vectors ([`Order`]) depends on the instruction that multiplies
//! them, a [`Unit`]: `sdot` has a row in each lane and needs no sums across lanes, `smmla` has two rows of weights
//! and two of activations in a vector and does twice as much. The integer sums are exact in both, so that they agree
//! bit by bit.

use std::arch::aarch64::*;

use super::super::Task;
use super::super::activation::{CHUNK, Form, Rounded};
use super::super::aligned::Aligned;
use super::Lhs;
use super::chunk::{Chunk, Lanes, Order, ROWS, STEP};
use super::instructions::{sdot_lane, smmla};
use super::unpack::{Blocks, Panel};

/// Rows of activations in a tile.
const TILE: usize = 4;
/// Pairs of panels that each tile is multiplied with.
const PAIRS: usize = 2;
/// Rows of a pair.
const PAIR: usize = 2 * ROWS;

/// The working memory of a thread.
#[derive(Debug, Default)]
pub(in super::super) struct Scratch {
    pairs: Vec<[Chunk; 2]>,
    /// For each pair and each row of activations, the sums of its rows.
    sums: Aligned<f32>,
}

/// An instruction that multiplies bytes, with its order of operands.
trait Unit: Order {
    /// Returns the tile's activations from row `first` and input `chunk` on, in its order.
    fn starts(x: &Rounded, k: usize, m: usize, first: usize, chunk: usize) -> Inputs;

    /// Adds the products of sixteen inputs.
    ///
    /// # Safety
    /// The CPU has the instruction.
    unsafe fn multiply(q: &[int8x16_t; ROWS], x: &[int8x16_t; TILE], sums: &mut [int32x4_t; TILE]);

    /// Arranges a number of each row in the order of the sums.
    fn spread(rows: int32x4_t) -> [int32x4_t; TILE];

    /// Converts from its order to one vector for each row of activations, with a row of weights in each lane.
    fn sorted(sums: [int32x4_t; TILE]) -> [int32x4_t; TILE];
}

/// The activations of a tile in memory: four vectors for each step.
#[derive(Clone, Copy)]
struct Inputs {
    starts: [*const i8; TILE],
    /// The distance from a step to the next one, in bytes.
    step: usize,
}

impl Inputs {
    /// # Safety
    /// The tile has that step.
    #[inline(always)]
    unsafe fn load(&self, step: usize) -> [int8x16_t; TILE] {
        // SAFETY: by contract.
        self.starts.map(|start| unsafe { vld1q_s8(start.add(step * self.step)) })
    }
}

/// `sdot`: four inputs of each row in each vector.
struct Dots;

impl Order for Dots {
    #[inline(always)]
    fn arrange([a, b, c, d]: [int8x16_t; ROWS]) -> [int8x16_t; ROWS] {
        // SAFETY: NEON belongs to every CPU of this architecture.
        unsafe {
            let words = |v| vreinterpretq_s32_s8(v);
            let pairs = |v| vreinterpretq_s64_s32(v);
            let (a, b, c, d) = (words(a), words(b), words(c), words(d));
            let (even, odd) = (pairs(vtrn1q_s32(a, b)), pairs(vtrn2q_s32(a, b)));
            let (even2, odd2) = (pairs(vtrn1q_s32(c, d)), pairs(vtrn2q_s32(c, d)));
            [vtrn1q_s64(even, even2), vtrn1q_s64(odd, odd2), vtrn2q_s64(even, even2), vtrn2q_s64(odd, odd2)]
                .map(|v| vreinterpretq_s8_s64(v))
        }
    }
}

impl Unit for Dots {
    #[inline(always)]
    fn starts(x: &Rounded, k: usize, m: usize, first: usize, chunk: usize) -> Inputs {
        // missing rows are replaced by the last one; their results are not used
        let starts = std::array::from_fn(|t| x.q[(first + t).min(m - 1) * k + chunk..].as_ptr());
        Inputs { starts, step: STEP }
    }

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn multiply(q: &[int8x16_t; ROWS], x: &[int8x16_t; TILE], sums: &mut [int32x4_t; TILE]) {
        for (sum, &x) in sums.iter_mut().zip(x) {
            *sum = sdot_lane::<0>(*sum, q[0], x);
        }
        for (sum, &x) in sums.iter_mut().zip(x) {
            *sum = sdot_lane::<1>(*sum, q[1], x);
        }
        for (sum, &x) in sums.iter_mut().zip(x) {
            *sum = sdot_lane::<2>(*sum, q[2], x);
        }
        for (sum, &x) in sums.iter_mut().zip(x) {
            *sum = sdot_lane::<3>(*sum, q[3], x);
        }
    }

    #[inline(always)]
    fn spread(rows: int32x4_t) -> [int32x4_t; TILE] {
        [rows; TILE]
    }

    #[inline(always)]
    fn sorted(sums: [int32x4_t; TILE]) -> [int32x4_t; TILE] {
        sums
    }
}

/// `smmla`: eight inputs of two rows in each vector.
struct Matrices;

impl Order for Matrices {
    #[inline(always)]
    fn arrange(rows: [int8x16_t; ROWS]) -> [int8x16_t; ROWS] {
        // SAFETY: NEON belongs to every CPU of this architecture.
        unsafe {
            let [a, b, c, d] = rows.map(|v| vreinterpretq_s64_s8(v));
            [vzip1q_s64(a, b), vzip1q_s64(c, d), vzip2q_s64(a, b), vzip2q_s64(c, d)].map(|v| vreinterpretq_s8_s64(v))
        }
    }
}

impl Unit for Matrices {
    #[inline(always)]
    fn starts(x: &Rounded, k: usize, m: usize, first: usize, chunk: usize) -> Inputs {
        // missing pairs are replaced by the last one; their results are not used
        let pair = |p: usize| (first / 2 + p).min((m - 1) / 2) * 2 * k + 2 * chunk;
        let pairs = [pair(0), pair(1)].map(|at| x.paired[at..].as_ptr());
        Inputs {
            starts: [pairs[0], pairs[0].wrapping_add(STEP), pairs[1], pairs[1].wrapping_add(STEP)],
            step: 2 * STEP,
        }
    }

    #[inline]
    #[target_feature(enable = "neon,i8mm")]
    unsafe fn multiply(q: &[int8x16_t; ROWS], x: &[int8x16_t; TILE], sums: &mut [int32x4_t; TILE]) {
        for half in 0..2 {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = smmla(*sum, q[2 * half + i % 2], x[i / 2 * 2 + half]);
            }
        }
    }

    #[inline(always)]
    fn spread(rows: int32x4_t) -> [int32x4_t; TILE] {
        // SAFETY: NEON belongs to every CPU of this architecture.
        let (low, high) = unsafe { (vzip1q_s32(rows, rows), vzip2q_s32(rows, rows)) };
        [low, high, low, high]
    }

    #[inline(always)]
    fn sorted([a, b, c, d]: [int32x4_t; TILE]) -> [int32x4_t; TILE] {
        // SAFETY: NEON belongs to every CPU of this architecture.
        unsafe { [vuzp1q_s32(a, b), vuzp2q_s32(a, b), vuzp1q_s32(c, d), vuzp2q_s32(c, d)] }
    }
}

/// Computes one task with `sdot`.
///
/// # Safety
/// The CPU has the dot product instructions.
#[target_feature(enable = "neon,dotprod")]
pub(super) unsafe fn dots<F: Panel>(task: &Task, scratch: &mut Scratch) {
    // SAFETY: the same contract.
    unsafe { rows::<F, Dots>(task, scratch) }
}

/// Computes one task with `smmla`.
///
/// # Safety
/// The CPU has the matrix instructions.
#[target_feature(enable = "neon,dotprod,i8mm")]
pub(super) unsafe fn matrices<F: Panel>(task: &Task, scratch: &mut Scratch) {
    // SAFETY: the same contract.
    unsafe { rows::<F, Matrices>(task, scratch) }
}

/// # Safety
/// The CPU has the instruction of `U`.
#[inline(always)] // so that it is compiled with the features of its callers
unsafe fn rows<F: Panel, U: Unit>(task: &Task, scratch: &mut Scratch) {
    let (m, k) = (task.m, task.weight.cols);
    let rounded = task.activations.get(Form::of(F::KIND));
    scratch.pairs.resize_with(PAIRS, Default::default);
    scratch.sums.resize(PAIRS * m * PAIR);
    for start in task.rows.clone().step_by(PAIRS * PAIR) {
        let starts = || (start..task.rows.end).step_by(PAIR).take(PAIRS);
        scratch.sums.fill(0.0);
        for chunk in (0..k).step_by(CHUNK) {
            let (at, count) = (chunk / F::LEN * F::BYTES, CHUNK.min(k - chunk) / F::LEN);
            for (start, pair) in starts().zip(&mut scratch.pairs) {
                for (start, to) in [start, start + ROWS].into_iter().zip(pair) {
                    // rows that the weight does not have are replaced by the last one; their results are not used
                    let row = |r: usize| task.weight.row((start + r).min(task.weight.rows - 1));
                    let rows: Blocks = std::array::from_fn(|r| &row(r)[at..][..count * F::BYTES]);
                    F::fill::<U>(&rows, to);
                }
            }
            for first in (0..m).step_by(TILE) {
                for ((pair, sums), _) in scratch.pairs.iter().zip(scratch.sums.chunks_exact_mut(m * PAIR)).zip(starts())
                {
                    let width = TILE.min(m - first);
                    let sums = &mut sums[first * PAIR..][..width * PAIR];
                    // SAFETY: the same contract.
                    unsafe { tile::<F, U>(rounded, (m, k), chunk, first, pair, sums) };
                }
            }
        }
        for (start, sums) in starts().zip(scratch.sums.chunks_exact(m * PAIR)) {
            let count = PAIR.min(task.rows.end - start);
            for (i, sums) in sums.chunks_exact(PAIR).enumerate() {
                // SAFETY: the columns are rows of this task only.
                unsafe { task.out.part(i, start, count) }.copy_from_slice(&sums[..count]);
            }
        }
    }
}

/// Adds the products of one chunk of a pair and of the tile of activations from row `first` on.
///
/// # Safety
/// The CPU has the instruction of `U`.
#[inline(always)]
unsafe fn tile<F: Panel, U: Unit>(
    rounded: &Rounded,
    (m, k): (usize, usize),
    chunk: usize,
    first: usize,
    pair: &[Chunk; 2],
    sums: &mut [f32],
) {
    let form = Form::of(F::KIND);
    let len = CHUNK.min(k - chunk);
    let x: [Lhs; TILE] = std::array::from_fn(|t| Lhs::of(rounded, form, k, (first + t).min(m - 1), chunk, len));
    let inputs = U::starts(rounded, k, m, first, chunk);
    // SAFETY: the same contract, and the inputs are those of the chunk.
    unsafe {
        if F::LEN == CHUNK { large::<F, U>(pair, &x, inputs, sums) } else { small::<F, U>(pair, &x, inputs, sums) }
    }
}

#[inline(always)]
fn load(from: &[[i8; 16]; ROWS]) -> [int8x16_t; ROWS] {
    // SAFETY: sixteen bytes are one vector.
    [0, 1, 2, 3].map(|i| unsafe { vld1q_s8(from[i].as_ptr()) })
}

#[inline(always)]
fn load_f32(from: &[f32]) -> float32x4_t {
    let from = &from[..ROWS];
    // SAFETY: four numbers are one vector.
    unsafe { vld1q_f32(from.as_ptr()) }
}

#[inline(always)]
fn load_i32(from: &Lanes<i32>) -> int32x4_t {
    // SAFETY: four numbers are one vector.
    unsafe { vld1q_s32(from.as_ptr()) }
}

/// Computes the products of the steps in `$steps` of both panels with the tile, in the order of `U`. A macro, because a
/// function of this size is not always inlined, and the sums must not leave the registers.
macro_rules! products {
    ($U:ty, $pair:expr, $inputs:expr, $steps:expr) => {{
        let mut parts = [[vdupq_n_s32(0); TILE]; 2];
        for step in $steps {
            let x = $inputs.load(step);
            for (part, weights) in parts.iter_mut().zip($pair) {
                <$U>::multiply(&load(&weights.q[step]), &x, part);
            }
        }
        parts
    }};
}

/// Adds a block of 256. All sums are exact integers below 2^31, up to the block's unit.
///
/// # Safety
/// The CPU has the instruction of `U`, and `inputs` are those of a chunk.
#[inline(always)]
unsafe fn large<F: Panel, U: Unit>(pair: &[Chunk; 2], x: &[Lhs; TILE], inputs: Inputs, sums: &mut [f32]) {
    let steps = const { F::GROUP / STEP };
    // SAFETY: by contract; NEON belongs to every CPU of this architecture.
    unsafe {
        let mut totals = [[vdupq_n_s32(0); TILE]; 2];
        for g in 0..CHUNK / F::GROUP {
            let parts = products!(U, pair, inputs, g * steps..(g + 1) * steps);
            for ((totals, parts), weights) in totals.iter_mut().zip(parts).zip(pair) {
                let scales = U::spread(load_i32(&weights.scale[g]));
                for ((total, part), scale) in totals.iter_mut().zip(parts).zip(scales) {
                    *total = vmlaq_s32(*total, part, scale);
                }
            }
        }
        for (side, (totals, weights)) in totals.into_iter().zip(pair).enumerate() {
            let (unit, minimum) = (load_f32(&weights.unit), load_f32(&weights.minimum));
            let totals = U::sorted(totals);
            for ((sums, x), total) in sums.chunks_exact_mut(PAIR).zip(x).zip(totals) {
                let sums = &mut sums[side * ROWS..][..ROWS];
                let mut sum = vfmaq_f32(load_f32(sums), vcvtq_f32_s32(total), vmulq_n_f32(unit, x.scale[0]));
                if F::MINIMA {
                    let mut of = vdupq_n_s32(0);
                    for (minima, pair) in weights.minima.iter().zip(x.sums.as_chunks::<2>().0) {
                        of = vmlal_n_s16(of, vld1_s16(minima.as_ptr()), pair[0] + pair[1]);
                    }
                    sum = vfmsq_f32(sum, vcvtq_f32_s32(of), vmulq_n_f32(minimum, x.scale[0]));
                }
                vst1q_f32(sums.as_mut_ptr(), sum);
            }
        }
    }
}

/// Adds up to eight blocks of 32.
///
/// # Safety
/// As [`large`].
#[inline(always)]
unsafe fn small<F: Panel, U: Unit>(pair: &[Chunk; 2], x: &[Lhs; TILE], inputs: Inputs, sums: &mut [f32]) {
    // SAFETY: by contract; NEON belongs to every CPU of this architecture.
    unsafe {
        for b in 0..x[0].scale.len() {
            let parts = products!(U, pair, inputs, 2 * b..2 * b + 2);
            for (side, (parts, weights)) in parts.into_iter().zip(pair).enumerate() {
                let (factor, shift) = (load_f32(&weights.factor[b]), load_f32(&weights.shift[b]));
                for ((sums, x), dot) in sums.chunks_exact_mut(PAIR).zip(x).zip(U::sorted(parts)) {
                    let sums = &mut sums[side * ROWS..][..ROWS];
                    let scale = x.scale[b];
                    let mut sum = vfmaq_f32(load_f32(sums), vcvtq_f32_s32(dot), vmulq_n_f32(factor, scale));
                    if F::MINIMA {
                        let of = f32::from(x.sums[2 * b] + x.sums[2 * b + 1]);
                        sum = vfmaq_n_f32(sum, shift, scale * of);
                    }
                    vst1q_f32(sums.as_mut_ptr(), sum);
                }
            }
        }
    }
}
