//! AVX-512 VNNI for the formats with 32 weights in a block, in vectors of 256 bits: one block to a vector.
//!
//! `vpdpbusd` multiplies unsigned weights with signed activations and adds fours in 32 bits, exactly. What makes the
//! weights unsigned, and the minimum of the formats that have one, is taken off through the activations' sums.
#![allow(unsafe_code)] // vector loads, and calls into code for instructions that were detected at run time

use std::arch::x86_64::*;

use super::Task;
use super::activation::Form;
use crate::model::engine::quant::{Format, Kind, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0};

/// Bytes ahead of the current blocks that are fetched early. The hardware's own prefetch ends at each 4 KiB page.
const AHEAD: usize = 4096;
/// Blocks whose scales are converted together.
const GROUP: usize = 8;

/// Computes one task; false where the kind is none of these formats.
pub(super) fn rows(task: &Task) -> bool {
    // SAFETY (all): `Kernels::new` has checked that this CPU has the tier's features.
    match task.weight.kind {
        Kind::Q4_0 => unsafe { by_batch::<Q4_0>(task) },
        Kind::Q4_1 => unsafe { by_batch::<Q4_1>(task) },
        Kind::Q5_0 => unsafe { by_batch::<Q5_0>(task) },
        Kind::Q5_1 => unsafe { by_batch::<Q5_1>(task) },
        Kind::Q8_0 => unsafe { by_batch::<Q8_0>(task) },
        _ => return false,
    }
    true
}

/// `weight = d * (q - BIAS) + m`, with `q` unsigned; `m` is 0 without [`Block::MINIMUM`].
trait Block: Format {
    const BIAS: f32;
    const MINIMUM: bool;

    /// The block's `q`.
    ///
    /// # Safety
    /// The CPU has the tier's features and `block` points to `BYTES` bytes.
    unsafe fn q(block: *const u8) -> __m256i;
}

/// 16 bytes of nibbles: the low ones in the lower half, the high ones in the upper half.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn nibbles(bytes: __m128i) -> __m256i {
    let both = _mm256_broadcastsi128_si256(bytes);
    _mm256_and_si256(_mm256_srlv_epi64(both, _mm256_set_epi64x(4, 4, 0, 0)), _mm256_set1_epi8(0x0F))
}

macro_rules! blocks {
    ($($format:ty, $bias:literal, $minimum:literal, $block:ident => $q:expr;)*) => {$(
        impl Block for $format {
            const BIAS: f32 = $bias;
            const MINIMUM: bool = $minimum;

            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
            unsafe fn q($block: *const u8) -> __m256i {
                // SAFETY: reads the block's own bytes only, at the offsets that `quant` documents.
                unsafe { $q }
            }
        }
    )*};
}

blocks! {
    Q4_0, 8.0, false, block => nibbles(_mm_loadu_si128(block.add(2).cast()));
    Q4_1, 0.0, true, block => nibbles(_mm_loadu_si128(block.add(4).cast()));
    Q5_0, 16.0, false, block => {
        let q = nibbles(_mm_loadu_si128(block.add(6).cast()));
        let fifth = block.add(2).cast::<u32>().read_unaligned();
        _mm256_mask_add_epi8(q, fifth, q, _mm256_set1_epi8(0x10))
    };
    Q5_1, 0.0, true, block => {
        let q = nibbles(_mm_loadu_si128(block.add(8).cast()));
        let fifth = block.add(4).cast::<u32>().read_unaligned();
        _mm256_mask_add_epi8(q, fifth, q, _mm256_set1_epi8(0x10))
    };
    Q8_0, 128.0, false, block => {
        _mm256_xor_si256(_mm256_loadu_si256(block.add(2).cast()), _mm256_set1_epi8(-128))
    };
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn by_batch<F: Block>(task: &Task) {
    let mut first = 0;
    while first < task.m {
        first += match task.m - first {
            1 => batch::<F, 1>(task, first),
            2 => batch::<F, 2>(task, first),
            3 => batch::<F, 3>(task, first),
            _ => batch::<F, 4>(task, first),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn batch<F: Block, const M: usize>(task: &Task, first: usize) -> usize {
    let k = task.weight.cols;
    let x = task.activations.get(Form::Block32);
    let at = |i: usize| {
        let i = first + i;
        (&x.q[i * k..][..k], &x.scale[i * k / 32..][..k / 32], &x.sums32[i * k / 32..][..k / 32])
    };
    let x: [_; M] = std::array::from_fn(at);
    for row in task.rows.clone() {
        let dots = dot::<F, M>(task.weight.row(row), &x);
        for (i, dot) in dots.into_iter().enumerate() {
            // SAFETY: `row` is one of this task's own.
            unsafe { task.out.write(first + i, row, dot) }
        }
    }
    M
}

/// The halves at `offset` in up to eight blocks, as numbers; zero for missing blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,f16c")]
fn halves<F: Block>(blocks: &[u8], offset: usize) -> __m256 {
    let half = |j: usize| {
        let at = j * F::BYTES + offset;
        if at < blocks.len() { i16::from_le_bytes([blocks[at], blocks[at + 1]]) } else { 0 }
    };
    _mm256_cvtph_ps(_mm_setr_epi16(half(0), half(1), half(2), half(3), half(4), half(5), half(6), half(7)))
}

/// A row against `M` rows of integers, scales and sums.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn dot<F: Block, const M: usize>(row: &[u8], x: &[(&[i8], &[f32], &[i16]); M]) -> [f32; M] {
    let mut sums = [_mm256_setzero_ps(); M];
    let mut rest = [_mm256_setzero_ps(); M];
    for (g, blocks) in row.chunks(F::BYTES * GROUP).enumerate() {
        let count = blocks.len() / F::BYTES;
        for line in (0..F::BYTES * GROUP).step_by(64) {
            _mm_prefetch::<_MM_HINT_T0>(blocks.as_ptr().wrapping_add(AHEAD + line).cast());
        }
        let present = ((1u32 << count) - 1) as u8;
        let d = halves::<F>(blocks, 0);
        let mut factors = [[0.0f32; GROUP]; M];
        for i in 0..M {
            let (_, scale, of) = x[i];
            // SAFETY: the mask keeps the loads to the row's blocks, each of which has a scale and a sum.
            let (scale, of) = unsafe {
                (
                    _mm256_maskz_loadu_ps(present, scale.as_ptr().add(g * GROUP)),
                    _mm_maskz_loadu_epi16(present, of.as_ptr().add(g * GROUP)),
                )
            };
            let of = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(of));
            let factor = _mm256_mul_ps(d, scale);
            // SAFETY: eight numbers are one vector.
            unsafe { _mm256_storeu_ps(factors[i].as_mut_ptr(), factor) };
            let per_one = if F::MINIMUM {
                _mm256_mul_ps(halves::<F>(blocks, 2), scale)
            } else {
                _mm256_mul_ps(factor, _mm256_set1_ps(-F::BIAS))
            };
            rest[i] = _mm256_fmadd_ps(per_one, of, rest[i]);
        }
        for (j, block) in blocks.chunks_exact(F::BYTES).enumerate() {
            // SAFETY: a whole block, and the features are enabled here.
            let q = unsafe { F::q(block.as_ptr()) };
            for i in 0..M {
                // SAFETY: each row of `x` has 32 integers for each of the row's blocks.
                let x = unsafe { _mm256_loadu_si256(x[i].0.as_ptr().add((g * GROUP + j) * 32).cast()) };
                let dot = _mm256_dpbusd_epi32(_mm256_setzero_si256(), q, x);
                sums[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_set1_ps(factors[i][j]), sums[i]);
            }
        }
    }
    let mut dots = [0.0; M];
    for i in 0..M {
        let all = _mm256_add_ps(sums[i], rest[i]);
        let half = _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all));
        let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
        dots[i] = _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
    }
    dots
}
