//! The AVX2 kernels for short batches: each block is unpacked in registers once, as unsigned bytes, and multiplied
//! with up to four rows of activations. Longer batches are computed by [`tiles`].
//!
//! `vpmaddubsw` multiplies unsigned weights with signed activations and adds pairs in 16 bits, which cannot saturate
//! for weights up to 63 (63 * 127 * 2 < 2^15); `vpmaddwd` multiplies those by the scale of their group and adds pairs
//! again. Weights of 8 bits are used as magnitudes, with their sign moved to the activations (128 * 127 * 2 < 2^15).
#![allow(unsafe_code)] // vector loads, and calls into code for instructions that were detected at run time

mod chunk;
mod tiles;
mod unpack;

use std::arch::x86_64::*;

use super::activation::{Form, Rounded};
use super::{Task, portable};
use crate::engine::quant::{Format, Kind, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0, f16, k_scales, with_format};

pub(super) use tiles::Scratch;

/// The distance of prefetching, in bytes after the current block. The hardware's own prefetch ends at each 4 KiB page.
const AHEAD: usize = 2048;

/// Computes one task.
pub(super) fn rows(task: &Task, scratch: &mut Scratch) {
    // SAFETY (all): `Kernels::new` has checked that this CPU has the tier's features.
    match task.weight.kind {
        kind if task.m >= tiles::MIN_BATCH => {
            with_format!(kind, F => unsafe { tiles::rows::<F>(task, scratch) }, portable::rows(task));
        }
        Kind::Q4_0 => unsafe { by_small_batch::<Q4_0>(task) },
        Kind::Q4_1 => unsafe { by_small_batch::<Q4_1>(task) },
        Kind::Q5_0 => unsafe { by_small_batch::<Q5_0>(task) },
        Kind::Q5_1 => unsafe { by_small_batch::<Q5_1>(task) },
        Kind::Q8_0 => unsafe { by_small_batch::<Q8_0>(task) },
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

impl Lhs<'_> {
    /// Loads the 32 integers from `at` on.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(&self, at: usize) -> __m256i {
        debug_assert!(at + 32 <= self.q.len());
        // SAFETY: callers ask for whole 32s of the row's blocks.
        unsafe { _mm256_loadu_si256(self.q.as_ptr().add(at).cast()) }
    }

    /// Loads the scales and sums of the `count` blocks of 32 from `8 g` on, at most eight; zero for missing ones.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn group(&self, g: usize, count: usize) -> (__m256, __m256) {
        let (mut scales, mut sums) = ([0.0f32; GROUP], [0i16; 2 * GROUP]);
        let (from, of) = (&self.scale[g * GROUP..][..count], &self.sums[g * 2 * GROUP..][..2 * count]);
        // SAFETY: eight scales and sixteen sums are one vector each.
        let (scales, sums) = unsafe {
            if count == GROUP {
                (_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_si256(of.as_ptr().cast()))
            } else {
                scales[..count].copy_from_slice(from);
                sums[..2 * count].copy_from_slice(of);
                (_mm256_loadu_ps(scales.as_ptr()), _mm256_loadu_si256(sums.as_ptr().cast()))
            }
        };
        (scales, _mm256_cvtepi32_ps(_mm256_madd_epi16(sums, _mm256_set1_epi16(1))))
    }

    /// Loads the sums of the sixteen 16s of block `b` of 256.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn sums(&self, b: usize) -> __m256i {
        debug_assert!((b + 1) * 16 <= self.sums.len());
        // SAFETY: callers ask for the row's blocks.
        unsafe { _mm256_loadu_si256(self.sums.as_ptr().add(b * 16).cast()) }
    }
}

/// A format of blocks of 256 with a kernel.
trait Block: Format {
    /// Adds the products of a block and the same block of `M` rows of activations to `sums`.
    ///
    /// # Safety
    /// The CPU has AVX2, FMA and F16C, `block` is a block, and `x` has block number `b`.
    unsafe fn add<const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [__m256; M]);
}

#[target_feature(enable = "avx2,fma,f16c")]
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

#[target_feature(enable = "avx2,fma,f16c")]
fn batch<F: Block, const M: usize>(task: &Task, first: usize) -> usize {
    let form = Form::of(F::KIND);
    let (k, block) = (task.weight.cols, form.block());
    let rounded: &Rounded = task.activations.get(form);
    let x: [Lhs; M] = std::array::from_fn(|i| {
        let at = (first + i) * k;
        Lhs {
            q: &rounded.q[at..][..k],
            scale: &rounded.scale[at / block..][..k / block],
            sums: &rounded.sums[at / 16..][..k / 16],
        }
    });
    for row in task.rows.clone() {
        let mut sums = [_mm256_setzero_ps(); M];
        for (b, block) in task.weight.row(row).chunks_exact(F::BYTES).enumerate() {
            for line in (0..F::BYTES).step_by(64) {
                _mm_prefetch::<_MM_HINT_T0>(block.as_ptr().wrapping_add(AHEAD + line).cast());
            }
            // SAFETY: the features are enabled here, and `row` and `Lhs` hold the same number of blocks.
            unsafe { F::add(block, b, &x, &mut sums) };
        }
        for (i, &sum) in sums.iter().enumerate() {
            // SAFETY: `row` is one of this task's own.
            unsafe { task.out.write(first + i, row, total(sum)) }
        }
    }
    M
}

/// Sums eight numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn total(v: __m256) -> f32 {
    let half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)))
}

/// Loads 32 bytes of a block.
#[inline]
#[target_feature(enable = "avx2")]
fn load(block: &[u8], at: usize) -> __m256i {
    debug_assert!(at + 32 <= block.len());
    // SAFETY: callers read inside a block of their format's size.
    unsafe { _mm256_loadu_si256(block.as_ptr().add(at).cast()) }
}

/// Unpacks 16 bytes of nibbles at `at`: the low ones to the lower half, the high ones to the upper half.
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles(block: &[u8], at: usize) -> __m256i {
    debug_assert!(at + 16 <= block.len());
    // SAFETY: callers read inside a block of their format's size.
    let both = _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(block.as_ptr().add(at).cast()) });
    _mm256_and_si256(_mm256_srlv_epi64(both, _mm256_set_epi64x(4, 4, 0, 0)), _mm256_set1_epi8(0x0F))
}

/// Returns 16 in every byte whose bit is set in the four bytes at `at`.
#[inline]
#[target_feature(enable = "avx2")]
fn fifth_bits(block: &[u8], at: usize) -> __m256i {
    let bits = i32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    // byte l gets the bits from 8 (l / 8) on, of which its own is number l % 8
    let spread = _mm256_set_epi64x(0x0303_0303_0303_0303, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101, 0);
    let own = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let bytes = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread), own);
    _mm256_and_si256(_mm256_cmpeq_epi8(bytes, own), _mm256_set1_epi8(0x10))
}

/// Blocks of 32 whose scales are converted together.
const GROUP: usize = 8;

/// A format with 32 weights in a block: `weight = d * (q - BIAS) + m`, with `q` unsigned; `m` is 0 without
/// [`Small::MINIMUM`].
trait Small: Format {
    const BIAS: f32;
    const MINIMUM: bool;

    /// Multiplies a block's weights with 32 activations, and adds pairs.
    ///
    /// # Safety
    /// The CPU has AVX2.
    unsafe fn pairs(q: __m256i, x: __m256i) -> __m256i;

    /// Unpacks the block's weights.
    ///
    /// # Safety
    /// The CPU has AVX2 and `block` is a block.
    unsafe fn q(block: &[u8]) -> __m256i;
}

macro_rules! small {
    ($($format:ty, $bias:literal, $minimum:literal, $block:ident => $q:expr;)*) => {$(
        impl Small for $format {
            const BIAS: f32 = $bias;
            const MINIMUM: bool = $minimum;

            #[inline]
            #[target_feature(enable = "avx2,fma,f16c")]
            unsafe fn pairs(q: __m256i, x: __m256i) -> __m256i {
                _mm256_maddubs_epi16(q, x)
            }

            #[inline]
            #[target_feature(enable = "avx2,fma,f16c")]
            unsafe fn q($block: &[u8]) -> __m256i {
                $q
            }
        }
    )*};
}

small! {
    Q4_0, 8.0, false, block => nibbles(block, 2);
    Q4_1, 0.0, true, block => nibbles(block, 4);
    Q5_0, 16.0, false, block => _mm256_or_si256(nibbles(block, 6), fifth_bits(block, 2));
    Q5_1, 0.0, true, block => _mm256_or_si256(nibbles(block, 8), fifth_bits(block, 4));
}

impl Small for Q8_0 {
    const BIAS: f32 = 0.0;
    const MINIMUM: bool = false;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn pairs(q: __m256i, x: __m256i) -> __m256i {
        _mm256_maddubs_epi16(_mm256_abs_epi8(q), _mm256_sign_epi8(x, q))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn q(block: &[u8]) -> __m256i {
        load(block, 2)
    }
}

/// Converts the halves at `offset` in up to eight blocks to numbers; zero for missing blocks.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn halves<F: Format>(blocks: &[u8], offset: usize) -> __m256 {
    let half = |j: usize| {
        let at = j * F::BYTES + offset;
        if at < blocks.len() { i16::from_le_bytes([blocks[at], blocks[at + 1]]) } else { 0 }
    };
    _mm256_cvtph_ps(_mm_setr_epi16(half(0), half(1), half(2), half(3), half(4), half(5), half(6), half(7)))
}

#[target_feature(enable = "avx2,fma,f16c")]
fn by_small_batch<F: Small>(task: &Task) {
    let mut first = 0;
    while first < task.m {
        first += match task.m - first {
            1 => small::<F, 1>(task, first),
            2 => small::<F, 2>(task, first),
            3 => small::<F, 3>(task, first),
            _ => small::<F, 4>(task, first),
        }
    }
}

/// Multiplies rows of weights with `M` rows of activations: eight blocks' scales at a time, then block by block.
#[target_feature(enable = "avx2,fma,f16c")]
fn small<F: Small, const M: usize>(task: &Task, first: usize) -> usize {
    let k = task.weight.cols;
    let rounded = task.activations.get(Form::Block32);
    let x: [Lhs; M] = std::array::from_fn(|i| {
        let at = (first + i) * k;
        Lhs {
            q: &rounded.q[at..][..k],
            scale: &rounded.scale[at / 32..][..k / 32],
            sums: &rounded.sums[at / 16..][..k / 16],
        }
    });
    for row in task.rows.clone() {
        let mut sums = [_mm256_setzero_ps(); M];
        let mut rest = [_mm256_setzero_ps(); M];
        for (g, blocks) in task.weight.row(row).chunks(F::BYTES * GROUP).enumerate() {
            for line in (0..F::BYTES * GROUP).step_by(64) {
                _mm_prefetch::<_MM_HINT_T0>(blocks.as_ptr().wrapping_add(AHEAD + line).cast());
            }
            let count = blocks.len() / F::BYTES;
            let d = halves::<F>(blocks, 0);
            let minima = if F::MINIMUM { halves::<F>(blocks, 2) } else { d };
            let mut factors = [[0.0f32; GROUP]; M];
            for (i, x) in x.iter().enumerate() {
                let (scale, of) = x.group(g, count);
                let factor = _mm256_mul_ps(d, scale);
                // SAFETY: eight numbers are one vector.
                unsafe { _mm256_storeu_ps(factors[i].as_mut_ptr(), factor) };
                if F::MINIMUM {
                    rest[i] = _mm256_fmadd_ps(_mm256_mul_ps(minima, scale), of, rest[i]);
                } else if F::BIAS > 0.0 {
                    rest[i] = _mm256_fnmadd_ps(_mm256_mul_ps(factor, _mm256_set1_ps(F::BIAS)), of, rest[i]);
                }
            }
            for (j, block) in blocks.chunks_exact(F::BYTES).enumerate() {
                // SAFETY: a whole block, and the features are enabled here.
                let q = unsafe { F::q(block) };
                for (i, x) in x.iter().enumerate() {
                    // SAFETY: the features are enabled here.
                    let pairs = unsafe { F::pairs(q, x.load((g * GROUP + j) * 32)) };
                    let dot = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
                    sums[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_set1_ps(factors[i][j]), sums[i]);
                }
            }
        }
        for i in 0..M {
            // SAFETY: `row` is one of this task's own.
            unsafe { task.out.write(first + i, row, total(_mm256_add_ps(sums[i], rest[i]))) }
        }
    }
    M
}

/// Adds a block of Q4_K or Q5_K: eight groups of 32 with scales and minima.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_k<F: Format, const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [__m256; M]) {
    let nibble = _mm256_set1_epi8(0x0F);
    let (scales, minima) = k_scales(&block[4..16]);
    let scales = scales.to_le_bytes();
    let five = F::BYTES == Q5K::BYTES;
    let high = if five { load(block, 16) } else { _mm256_setzero_si256() };
    let mut dots = [_mm256_setzero_si256(); M];
    for j in 0..4 {
        let bytes = load(block, F::BYTES - 128 + j * 32);
        let mut q = [_mm256_and_si256(bytes, nibble), _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble)];
        if five {
            for (side, q) in q.iter_mut().enumerate() {
                // group g has bit g of each byte
                let bit = _mm256_set1_epi8((1u8 << (2 * j + side)) as i8);
                let set = _mm256_cmpeq_epi8(_mm256_and_si256(high, bit), bit);
                *q = _mm256_or_si256(*q, _mm256_and_si256(set, _mm256_set1_epi8(0x10)));
            }
        }
        for (side, q) in q.into_iter().enumerate() {
            let g = 2 * j + side;
            let scale = _mm256_set1_epi16(i16::from(scales[g]));
            for (x, dot) in x.iter().zip(&mut dots) {
                let pairs = _mm256_maddubs_epi16(q, x.load(b * 256 + g * 32));
                *dot = _mm256_add_epi32(*dot, _mm256_madd_epi16(pairs, scale));
            }
        }
    }
    // each minimum twice, for the two sums of 16 of its group
    let minima = _mm_cvtsi64_si128(minima as i64);
    let minima = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(minima, minima));
    let (d, dmin) = (f16(block), f16(&block[2..]));
    for ((x, sum), dot) in x.iter().zip(sums).zip(dots) {
        let scale = x.scale[b];
        let of = _mm256_cvtepi32_ps(_mm256_madd_epi16(minima, x.sums(b)));
        *sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_set1_ps(d * scale), *sum);
        *sum = _mm256_fnmadd_ps(of, _mm256_set1_ps(dmin * scale), *sum);
    }
}

impl Block for Q4K {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [__m256; M]) {
        add_k::<Self, M>(block, b, x, sums);
    }
}

impl Block for Q5K {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [__m256; M]) {
        add_k::<Self, M>(block, b, x, sums);
    }
}

impl Block for Q6K {
    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const M: usize>(block: &[u8], b: usize, x: &[Lhs; M], sums: &mut [__m256; M]) {
        let (nibble, upper) = (_mm256_set1_epi8(0x0F), _mm256_set1_epi8(0x30));
        // SAFETY: a block has 16 bytes of scales at 192.
        let scales = _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(block.as_ptr().add(192).cast()) });
        let mut dots = [_mm256_setzero_si256(); M];
        for half in 0..2 {
            let (a, c) = (load(block, half * 64), load(block, half * 64 + 32));
            let high = load(block, 128 + half * 32);
            let join = |low, high| _mm256_or_si256(_mm256_and_si256(low, nibble), _mm256_and_si256(high, upper));
            let q = [
                join(a, _mm256_slli_epi16::<4>(high)),
                join(c, _mm256_slli_epi16::<2>(high)),
                join(_mm256_srli_epi16::<4>(a), high),
                join(_mm256_srli_epi16::<4>(c), _mm256_srli_epi16::<2>(high)),
            ];
            for (j, q) in q.into_iter().enumerate() {
                let g = half * 8 + j * 2;
                let scale = |g: usize| _mm_set1_epi16(i16::from(block[192 + g] as i8));
                let scale = _mm256_set_m128i(scale(g + 1), scale(g));
                for (x, dot) in x.iter().zip(&mut dots) {
                    let pairs = _mm256_maddubs_epi16(q, x.load(b * 256 + g * 16));
                    *dot = _mm256_add_epi32(*dot, _mm256_madd_epi16(pairs, scale));
                }
            }
        }
        let d = f16(&block[208..]);
        for ((x, sum), dot) in x.iter().zip(sums).zip(dots) {
            // weights are q - 32: the products of 32 are subtracted group by group
            let of = _mm256_slli_epi32::<5>(_mm256_madd_epi16(scales, x.sums(b)));
            let dot = _mm256_cvtepi32_ps(_mm256_sub_epi32(dot, of));
            *sum = _mm256_fmadd_ps(dot, _mm256_set1_ps(d * x.scale[b]), *sum);
        }
    }
}
