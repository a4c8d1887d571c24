//! The AVX2 kernels for longer batches: panels of eight rows of weights are unpacked once and multiplied with four
//! rows of activations at a time, two panels together.
//!
//! In a panel each lane of 32 bits is a row, and a step is four inputs of it. `vpmaddubsw` leaves two sums of two products,
//! which are so small that those of several steps still fit 16 bits ([`steps_in_16_bits`]); only then they are multiplied
//! with the scale of their group and widened, by one `vpmaddwd`. That is half the work of the kernels for shorter batches,
//! which sum across lanes. It rounds differently from those: see [`super::super::Kernels::BIT_EXACT_BATCH`].

use std::arch::x86_64::*;

use super::super::activation::{CHUNK, Form, Rounded};
use super::super::aligned::Aligned;
use super::super::{Kernels, Task};
use super::chunk::{Chunk, Lanes, ROWS, STEP};
use super::unpack::{Blocks, Panel};
use super::{GROUP, Lhs};
use crate::engine::quant::{Format, Kind};

/// Rows of activations in a tile.
const TILE: usize = 4;
/// Pairs of panels that each tile is multiplied with.
const PAIRS: usize = 2;
/// Rows of a pair.
const PAIR: usize = 2 * ROWS;

/// Least rows of a batch that is multiplied here.
pub(super) const MIN_BATCH: usize = Kernels::BIT_EXACT_BATCH + 1;

/// The working memory of a thread.
#[derive(Debug, Default)]
pub(in super::super) struct Scratch {
    pairs: Vec<[Chunk; 2]>,
    /// For each pair and each row of activations, the sums of its rows.
    sums: Aligned<f32>,
}

/// Returns the number of steps, at most `most`, whose products fit 16 bits: with weights up to `largest`, each adds two
/// products.
const fn steps_in_16_bits(largest: usize, most: usize) -> usize {
    let fit = i16::MAX as usize / (2 * 127 * largest);
    // a power of two, so that it divides a group
    let fit = 1 << fit.ilog2();
    if fit < most { fit } else { most }
}

/// Computes one task.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn rows<F: Panel>(task: &Task, scratch: &mut Scratch) {
    let (m, k) = (task.m, task.weight.cols);
    let form = Form::of(F::KIND);
    let rounded = task.activations.get(form);
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
                    let rows: Blocks = std::array::from_fn(|r| row(r)[at..][..count * F::BYTES].as_ptr());
                    // SAFETY: the features are enabled here, and each row has that many blocks.
                    unsafe { F::fill(&rows, count, to) };
                }
            }
            for first in (0..m).step_by(TILE) {
                for ((pair, sums), _) in scratch.pairs.iter().zip(scratch.sums.chunks_exact_mut(m * PAIR)).zip(starts())
                {
                    let sums = &mut sums[first * PAIR..];
                    match m - first {
                        1 => tile::<F, 1>(rounded, k, chunk, first, pair, sums),
                        2 => tile::<F, 2>(rounded, k, chunk, first, pair, sums),
                        3 => tile::<F, 3>(rounded, k, chunk, first, pair, sums),
                        _ => tile::<F, TILE>(rounded, k, chunk, first, pair, sums),
                    }
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

/// Adds the products of one chunk of a pair and `T` rows of activations, from row `first` on.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn tile<F: Panel, const T: usize>(
    rounded: &Rounded,
    k: usize,
    chunk: usize,
    first: usize,
    pair: &[Chunk; 2],
    sums: &mut [f32],
) {
    let len = CHUNK.min(k - chunk);
    let block = if F::LEN == CHUNK { CHUNK } else { 32 };
    let x: [Lhs; T] = std::array::from_fn(|t| {
        let at = (first + t) * k + chunk;
        Lhs {
            q: &rounded.q[at..][..len],
            scale: &rounded.scale[at / block..][..len / block],
            sums: &rounded.sums[at / 16..][..len / 16],
        }
    });
    let sums = &mut sums[..T * PAIR];
    if F::LEN == CHUNK { large::<F, T>(pair, &x, sums) } else { small::<F, T>(pair, &x, sums) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load<T>(from: &Lanes<T>) -> __m256i {
    const { assert!(size_of::<Lanes<T>>() == 32) };
    // SAFETY: eight elements of four bytes are one vector.
    unsafe { _mm256_loadu_si256(std::ptr::from_ref(from).cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_ps(from: &[f32]) -> __m256 {
    let from = &from[..ROWS];
    // SAFETY: eight numbers are one vector.
    unsafe { _mm256_loadu_ps(from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn put(to: &mut [f32], v: __m256) {
    let to = &mut to[..ROWS];
    // SAFETY: eight numbers are one vector.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), v) }
}

/// Loads the four bytes or two sums from `at` on to every lane.
///
/// # Safety
/// The CPU has AVX2, and they are there.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn spread<T>(at: *const T) -> __m256i {
    // SAFETY: by contract.
    _mm256_set1_epi32(unsafe { at.cast::<i32>().read_unaligned() })
}

/// Computes sums of two products each. Weights of 8 bits are used as magnitudes, with their sign moved to the
/// activations.
#[inline]
#[target_feature(enable = "avx2")]
fn pairs<F: Format>(q: __m256i, x: __m256i) -> __m256i {
    if matches!(F::KIND, Kind::Q8_0) {
        _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(x, q))
    } else {
        _mm256_maddubs_epi16(q, x)
    }
}

/// Adds to `$totals` the products of `$steps` steps from `$at` on, multiplied with `$scale` of each panel. A macro,
/// because a function of this size is not always inlined, and the sums must not leave the registers.
macro_rules! add_products {
    ($F:ty, $totals:ident, $pair:expr, $x:expr, $at:expr, $steps:expr, $scale:expr) => {
        // the loop relies on this; the compiler can prove it
        assert!($at + $steps <= CHUNK / STEP);
        let mut fit = [[_mm256_setzero_si256(); 2]; T];
        for s in 0..$steps {
            let q = [load(&$pair[0].q[$at + s]), load(&$pair[1].q[$at + s])];
            for (fit, x) in fit.iter_mut().zip($x) {
                debug_assert!(($at + s + 1) * STEP <= x.q.len());
                // SAFETY: callers ask for steps of blocks that the row has.
                let x = unsafe { spread(x.q.as_ptr().add(($at + s) * STEP)) };
                fit[0] = _mm256_add_epi16(fit[0], pairs::<$F>(q[0], x));
                fit[1] = _mm256_add_epi16(fit[1], pairs::<$F>(q[1], x));
            }
        }
        for (total, fit) in $totals.iter_mut().zip(fit) {
            total[0] = _mm256_add_epi32(total[0], _mm256_madd_epi16(fit[0], $scale[0]));
            total[1] = _mm256_add_epi32(total[1], _mm256_madd_epi16(fit[1], $scale[1]));
        }
    };
}

/// Adds a block of 256. All sums are exact integers below 2^31, up to the block's unit.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn large<F: Panel, const T: usize>(pair: &[Chunk; 2], x: &[Lhs; T], sums: &mut [f32]) {
    let steps = const { steps_in_16_bits(F::LARGEST, F::GROUP / STEP) };
    let mut totals = [[_mm256_setzero_si256(); 2]; T];
    for g in 0..CHUNK / F::GROUP {
        let scale = [load(&pair[0].scale[g]), load(&pair[1].scale[g])];
        for at in (0..F::GROUP / STEP).step_by(steps) {
            add_products!(F, totals, pair, x, g * (F::GROUP / STEP) + at, steps, scale);
        }
    }
    for (side, weights) in pair.iter().enumerate() {
        let (unit, minimum) = (load_ps(&weights.unit), load_ps(&weights.minimum));
        for (t, x) in x.iter().enumerate() {
            let mut of = _mm256_setzero_si256();
            for (pair, minima) in x.sums.as_chunks::<2>().0.iter().zip(&weights.minima) {
                // SAFETY: two sums of 16 bits are there.
                let pair = unsafe { spread(pair.as_ptr()) };
                of = _mm256_add_epi32(of, _mm256_madd_epi16(load(minima), pair));
            }
            let (total, scale) = (totals[t][side], _mm256_set1_ps(x.scale[0]));
            let to = &mut sums[t * PAIR + side * ROWS..];
            let sum = load_ps(to);
            let sum = if matches!(F::KIND, Kind::Q6K) {
                // weights are q - 32: `minima` are the scales, and the products of 32 are subtracted
                let total = _mm256_sub_epi32(total, _mm256_slli_epi32::<5>(of));
                _mm256_fmadd_ps(_mm256_cvtepi32_ps(total), _mm256_mul_ps(unit, scale), sum)
            } else {
                let sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total), _mm256_mul_ps(unit, scale), sum);
                _mm256_fnmadd_ps(_mm256_cvtepi32_ps(of), _mm256_mul_ps(minimum, scale), sum)
            };
            put(to, sum);
        }
    }
}

/// Adds up to eight blocks of 32.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn small<F: Panel, const T: usize>(pair: &[Chunk; 2], x: &[Lhs; T], sums: &mut [f32]) {
    let steps = const { steps_in_16_bits(F::LARGEST, F::LEN / STEP) };
    let count = x[0].scale.len();
    let (mut scales, mut rests) = ([[0.0; GROUP]; T], [[0.0; GROUP]; T]);
    for ((x, scales), rests) in x.iter().zip(&mut scales).zip(&mut rests) {
        let (scale, of) = x.group(0, count);
        put(scales, scale);
        put(rests, _mm256_mul_ps(scale, of));
    }
    let one = [_mm256_set1_epi16(1); 2];
    for b in 0..count {
        let mut totals = [[_mm256_setzero_si256(); 2]; T];
        for at in (0..F::LEN / STEP).step_by(steps) {
            add_products!(F, totals, pair, x, b * (F::LEN / STEP) + at, steps, one);
        }
        for (side, weights) in pair.iter().enumerate() {
            let (factor, shift) = (load_ps(&weights.factor[b]), load_ps(&weights.shift[b]));
            for t in 0..T {
                let to = &mut sums[t * PAIR + side * ROWS..];
                let scale = _mm256_mul_ps(factor, _mm256_set1_ps(scales[t][b]));
                let mut sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(totals[t][side]), scale, load_ps(to));
                if !matches!(F::KIND, Kind::Q8_0) {
                    sum = _mm256_fmadd_ps(shift, _mm256_set1_ps(rests[t][b]), sum);
                }
                put(to, sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_products_fit_16_bits() {
        for (largest, most, steps) in [(15, 8, 8), (31, 8, 4), (63, 4, 2), (128, 8, 1)] {
            assert_eq!(steps_in_16_bits(largest, most), steps, "{largest}");
            assert!(2 * steps * 127 * largest <= i16::MAX as usize);
        }
    }
}
