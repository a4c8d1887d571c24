//! The AVX-512 kernels with VNNI: panels of sixteen rows are unpacked once and multiplied with up to eight rows of
//! activations at a time.
//!
//! `vpdpbusd` multiplies unsigned weights with signed activations and adds fours in 32 bits, exactly: a group's
//! integers are converted to floating point only once they are summed.
#![allow(unsafe_code)] // vector loads, and calls into code for instructions that were detected at run time

mod single;
mod unpack;

use std::arch::x86_64::*;

use super::activation::{CHUNK, Form, TILE, Tile};
use super::aligned::Aligned;
use super::panel::{self, Chunk, Copied, Lanes, Panel, ROWS, STEP};
use super::{Task, portable};
use crate::engine::quant::{Kind, Q4K, Q5K, Q6K, with_format};

/// Panels that are unpacked before they are multiplied with many rows of activations, so that a tile of those is read
/// once for all of them.
const PANELS: usize = 4;

/// The working memory of a thread.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub chunks: Vec<Chunk>,
    /// The sums of sixteen rows of weights, for each panel and each row of activations.
    pub sums: Aligned<f32>,
}

/// Computes one task.
pub(super) fn rows(task: &Task, scratch: &mut Scratch) {
    // SAFETY (all): `Kernels::new` has checked that this CPU has the tier's features.
    match task.weight.kind {
        Kind::Q4K if task.m == 1 => unsafe { single::rows::<Q4K>(task) },
        Kind::Q5K if task.m == 1 => unsafe { single::rows::<Q5K>(task) },
        Kind::Q6K if task.m == 1 => unsafe { single::rows::<Q6K>(task) },
        kind => with_format!(kind, F => unsafe { panels::<F>(task, scratch) }, portable::rows(task)),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn panels<F: Panel>(task: &Task, scratch: &mut Scratch) {
    let (m, kind) = (task.m, task.weight.kind);
    let form = Form::of(F::KIND);
    let count = if m > TILE { PANELS } else { 1 };
    scratch.chunks.resize(PANELS, Chunk::default());
    scratch.sums.resize(PANELS * m * ROWS);
    let mut copied = Copied::default();
    for start in task.rows.clone().step_by(count * ROWS) {
        let starts = || (start..task.rows.end).step_by(ROWS).take(count);
        scratch.sums.fill(0.0);
        for chunk in 0..task.weight.cols.div_ceil(CHUNK) {
            for (start, to) in starts().zip(&mut scratch.chunks) {
                let part = panel::part::<F>(task, start, chunk, count, &mut copied);
                // SAFETY: the features are enabled here, and the part has that many blocks.
                unsafe { F::fill(part.rows, part.count, to) };
            }
            for first in (0..m).step_by(TILE) {
                let x = task.activations.tile(form, chunk, first);
                let part = first * ROWS..(first + x.width) * ROWS;
                let filled = &scratch.chunks[..starts().len()];
                for (weights, sums) in filled.chunks(2).zip(scratch.sums.chunks_mut(2 * m * ROWS)) {
                    let (one, other) = sums.split_at_mut(m * ROWS);
                    match weights {
                        [a, b] => tile(kind, [a, b], &x, [&mut one[part.clone()], &mut other[part.clone()]]),
                        [a, ..] => tile(kind, [a], &x, [&mut one[part.clone()]]),
                        [] => {}
                    }
                }
            }
        }
        for (start, sums) in starts().zip(scratch.sums.chunks_exact(m * ROWS)) {
            store(task, start, sums);
        }
    }
}

/// Writes a panel's sums, sixteen of each row of activations.
fn store(task: &Task, start: usize, sums: &[f32]) {
    let count = ROWS.min(task.rows.end - start);
    for (i, sums) in sums.chunks_exact(ROWS).enumerate() {
        // SAFETY: the columns are rows of this task only.
        unsafe { task.out.part(i, start, count) }.copy_from_slice(&sums[..count]);
    }
}

/// Adds the products of one chunk of `P` panels and all rows of activations in the tile.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn tile<const P: usize>(kind: Kind, weights: [&Chunk; P], x: &Tile, sums: [&mut [f32]; P]) {
    match x.width {
        1 => multiply::<1, P>(kind, weights, x, sums),
        2 => multiply::<2, P>(kind, weights, x, sums),
        3 => multiply::<3, P>(kind, weights, x, sums),
        4 => multiply::<4, P>(kind, weights, x, sums),
        5 => multiply::<5, P>(kind, weights, x, sums),
        6 => multiply::<6, P>(kind, weights, x, sums),
        7 => multiply::<7, P>(kind, weights, x, sums),
        _ => multiply::<8, P>(kind, weights, x, sums),
    }
}

/// Adds the products of one chunk of `P` panels and `T` rows of activations. Two panels read a word of the activations
/// once for both, and have twice as many sums that do not wait for each other.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn multiply<const T: usize, const P: usize>(kind: Kind, weights: [&Chunk; P], x: &Tile, sums: [&mut [f32]; P]) {
    match kind {
        Kind::Q4K => fours::<T, P>(weights, x, sums),
        Kind::Q5K => fives::<T, P>(weights, x, sums),
        Kind::Q6K => sixes::<T, P>(weights, x, sums),
        _ => blocks::<T, P>(weights, x, sums),
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_ps(from: &Lanes<f32>) -> __m512 {
    // SAFETY: sixteen numbers are one vector.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load<T>(from: &Lanes<T>) -> __m512i {
    const { assert!(size_of::<Lanes<T>>() == 64) };
    // SAFETY: sixteen elements of four bytes are one vector.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

/// Computes `dots += q x` over `$steps` steps from `$at` on. A macro, because a function of this size is not always
/// inlined, and the sums must not leave the registers.
macro_rules! add_products {
    ($dots:ident, $weights:expr, $x:expr, $at:expr, $steps:literal) => {
        // the loop relies on this; the compiler can prove the first condition, and the second is one comparison
        assert!($at + $steps <= CHUNK / STEP && ($at + $steps) * T <= $x.steps.len());
        let (q, words) = ($weights.map(|weights| weights.q[$at..].as_ptr()), $x.steps[$at * T..].as_ptr());
        // for few rows, even and odd steps are summed apart, since a single chain of sums would wait for its own
        // latency
        let mut odd = [[_mm512_setzero_si512(); T]; P];
        for s in 0..$steps {
            // SAFETY: the steps lie inside, as just seen.
            let q = q.map(|q| load(unsafe { &*q.add(s) }));
            let dots = if T * P <= 4 && s % 2 == 1 { &mut odd } else { &mut $dots };
            for t in 0..T {
                // SAFETY: likewise; each step has `T` words.
                let word = _mm512_set1_epi32(unsafe { *words.add(s * T + t) });
                for p in 0..P {
                    dots[p][t] = _mm512_dpbusd_epi32(dots[p][t], q[p], word);
                }
            }
        }
        if T * P <= 4 {
            for (dots, odd) in $dots.iter_mut().zip(&odd) {
                for (dot, &odd) in dots.iter_mut().zip(odd) {
                    *dot = _mm512_add_epi32(*dot, odd);
                }
            }
        }
    };
}

/// Loads the sums of sixteen rows for row `t` of the activations.
#[inline]
#[target_feature(enable = "avx512f")]
fn sums_at(sums: &[f32], t: usize) -> __m512 {
    let from = &sums[t * ROWS..][..ROWS];
    // SAFETY: sixteen numbers are one vector.
    unsafe { _mm512_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn put(sums: &mut [f32], t: usize, sum: __m512) {
    let to = &mut sums[t * ROWS..][..ROWS];
    // SAFETY: sixteen numbers are one vector.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), sum) }
}

/// Adds the `total` of a block of 256, in units, for one row of activations.
#[inline]
#[target_feature(enable = "avx512f,fma")]
fn add(sum: __m512, total: __m512, unit: __m512, scale: f32) -> __m512 {
    _mm512_fmadd_ps(total, _mm512_mul_ps(unit, _mm512_set1_ps(scale)), sum)
}

/// Subtracts the minima of a block of Q4_K or Q5_K.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni,fma")]
fn less_minima(sum: __m512, minima: [__m512i; 4], minimum: __m512, scale: f32, pairs: &[i32; 4]) -> __m512 {
    let mut of = _mm512_setzero_si512();
    for (minima, &pair) in minima.into_iter().zip(pairs) {
        of = dpwssd(of, minima, _mm512_set1_epi32(pair));
    }
    _mm512_fnmadd_ps(_mm512_cvtepi32_ps(of), _mm512_mul_ps(minimum, _mm512_set1_ps(scale)), sum)
}

/// Computes `sum + a * b` over pairs of 16-bit integers (`vpdpwssd`).
///
/// In assembly because LLVM splits the intrinsic into a multiplication and an addition if sums form a chain, which
/// costs one instruction more on the ports that these kernels saturate.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn dpwssd(mut sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: reads and writes registers only, and the feature is enabled.
    unsafe {
        std::arch::asm!("vpdpwssd {}, {}, {}", inout(zmm_reg) sum, in(zmm_reg) a, in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// Adds Q4_K: eight groups of 32. Their sums times their scales are integers, and those of four groups together are
/// below 2^24 (4 x 32 x 15 x 127 x 63), so that floating point represents them exactly; the last addition rounds as
/// the conversion of their integer sum does.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn fours<const T: usize, const P: usize>(weights: [&Chunk; P], x: &Tile, to: [&mut [f32]; P]) {
    let mut halves = [[[_mm512_setzero_ps(); T]; P]; 2];
    for (half, sums) in halves.iter_mut().enumerate() {
        for g in half * 4..half * 4 + 4 {
            // prevents unrolling: for two rows, the compiler would move loads ahead until most of them are spilled
            let g = if T == 2 { std::hint::black_box(g) } else { g };
            let mut dots = [[_mm512_setzero_si512(); T]; P];
            add_products!(dots, weights, x, g * 8, 8);
            for (p, weights) in weights.iter().enumerate() {
                let scale = load_ps(&weights.scale[g]);
                for (sum, &dot) in sums[p].iter_mut().zip(&dots[p]) {
                    *sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, *sum);
                }
            }
        }
    }
    let [low, high] = &halves;
    for (p, to) in to.into_iter().enumerate() {
        end_with_minima::<T>(weights[p], x, to, |t| _mm512_add_ps(low[p][t], high[p][t]));
    }
}

/// Adds Q5_K: eight groups of 32.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn fives<const T: usize, const P: usize>(weights: [&Chunk; P], x: &Tile, to: [&mut [f32]; P]) {
    let mut totals = [[_mm512_setzero_si512(); T]; P];
    for g in 0..CHUNK / 32 {
        let mut dots = [[_mm512_setzero_si512(); T]; P];
        add_products!(dots, weights, x, g * 8, 8);
        add_scaled(&mut totals, &dots, weights.map(|weights| load(&weights.whole[g])));
    }
    for (p, to) in to.into_iter().enumerate() {
        end_with_minima::<T>(weights[p], x, to, |t| _mm512_cvtepi32_ps(totals[p][t]));
    }
}

/// Computes `totals += dots * scales` in integers.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_scaled<const T: usize, const P: usize>(
    totals: &mut [[__m512i; T]; P],
    dots: &[[__m512i; T]; P],
    scales: [__m512i; P],
) {
    for (p, &scale) in scales.iter().enumerate() {
        for (total, &dot) in totals[p].iter_mut().zip(&dots[p]) {
            *total = _mm512_add_epi32(*total, _mm512_mullo_epi32(dot, scale));
        }
    }
}

/// Adds a block of Q4_K or Q5_K: `total(t)` is its product with row `t` of the activations, in units, without the
/// minima.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn end_with_minima<const T: usize>(weights: &Chunk, x: &Tile, to: &mut [f32], total: impl Fn(usize) -> __m512) {
    let (unit, minimum) = (load_ps(&weights.unit), load_ps(&weights.minimum));
    let [a, b, c, d] = &weights.minima;
    let minima = [load(a), load(b), load(c), load(d)];
    for t in 0..T {
        let sum = add(sums_at(to, t), total(t), unit, x.scale[t]);
        put(to, t, less_minima(sum, minima, minimum, x.scale[t], &x.pairs[t]));
    }
}

/// Adds Q6_K: sixteen groups of 16, with weights that are 32 too large.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn sixes<const T: usize, const P: usize>(weights: [&Chunk; P], x: &Tile, to: [&mut [f32]; P]) {
    let mut totals = [[_mm512_setzero_si512(); T]; P];
    for g in 0..CHUNK / 16 {
        let less: [__m512i; T] = std::array::from_fn(|t| _mm512_set1_epi32(x.less[t][g]));
        let mut dots = [less; P];
        add_products!(dots, weights, x, g * 4, 4);
        add_scaled(&mut totals, &dots, weights.map(|weights| load(&weights.whole[g])));
    }
    for (p, to) in to.into_iter().enumerate() {
        let unit = load_ps(&weights[p].unit);
        for (t, &total) in totals[p].iter().enumerate() {
            put(to, t, add(sums_at(to, t), _mm512_cvtepi32_ps(total), unit, x.scale[t]));
        }
    }
}

/// Adds one block of 32 for one row of activations: `sum + dot * scale * x's scale + shift * x's sum`.
#[inline]
#[target_feature(enable = "avx512f,fma")]
fn end_of_block(dot: __m512i, scale: __m512, shift: __m512, x: &Tile, at: usize, sum: __m512) -> __m512 {
    let factor = _mm512_mul_ps(scale, _mm512_set1_ps(x.scale[at]));
    let sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), factor, sum);
    _mm512_fmadd_ps(shift, _mm512_set1_ps(x.rest[at]), sum)
}

/// Adds blocks of 32: eight, or fewer at the end of a row.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn blocks<const T: usize, const P: usize>(weights: [&Chunk; P], x: &Tile, to: [&mut [f32]; P]) {
    let mut sums: [[__m512; T]; P] = std::array::from_fn(|p| std::array::from_fn(|t| sums_at(to[p], t)));
    for b in 0..x.steps.len() / (8 * T) {
        let mut dots = [[_mm512_setzero_si512(); T]; P];
        add_products!(dots, weights, x, b * 8, 8);
        for (p, weights) in weights.iter().enumerate() {
            let (scale, shift) = (load_ps(&weights.scale[b]), load_ps(&weights.shift[b]));
            for (t, (sum, &dot)) in sums[p].iter_mut().zip(&dots[p]).enumerate() {
                *sum = end_of_block(dot, scale, shift, x, b * x.stride + t, *sum);
            }
        }
    }
    for (p, to) in to.into_iter().enumerate() {
        for (t, &sum) in sums[p].iter().enumerate() {
            put(to, t, sum);
        }
    }
}
