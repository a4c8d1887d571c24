//! AVX-512 with VNNI, for decoding and small batches: rows stream from memory, each block is unpacked in registers once
//! and multiplied with up to four rows of activations.
//!
//! Products are exact integers: `vpmaddubsw` multiplies unsigned weights with signed activations and adds pairs, which
//! cannot saturate (63 * 127 * 2 < 2^15), and `vpdpwssd` multiplies those by the 6- or 8-bit scale of their group and
//! accumulates in 32 bits. Only whole blocks of 256 meet floating point.
#![allow(unsafe_code)] // vector loads, and calls into code for instructions that were detected at run time

use std::arch::x86_64::*;

use super::activation::{Form, Rounded};
use super::{Task, portable, vnni32};
use crate::model::engine::quant::{Format, Kind, Q4K, Q5K, Q6K};

/// Bytes ahead of the current block that are fetched early. The hardware's own prefetch ends at each 4 KiB page.
const AHEAD: usize = 4096;

/// Computes one task.
pub(super) fn rows(task: &Task) {
    // SAFETY (all): `Kernels::new` has checked that this CPU has the tier's features.
    match task.weight.kind {
        Kind::Q4K => unsafe { by_panel::<Q4K>(task) },
        Kind::Q5K => unsafe { by_panel::<Q5K>(task) },
        Kind::Q6K => unsafe { by_batch::<Q6K>(task) },
        _ => {
            if !vnni32::rows(task) {
                portable::rows(task);
            }
        }
    }
}

/// One row of activations in the form a kernel wants.
#[derive(Clone, Copy)]
struct Lhs<'a> {
    q: &'a [i8],
    scale: &'a [f32],
    sums: &'a [i16],
}

/// A row of weights against `M` rows of activations.
trait Dot: Format {
    /// Picks what [`Dot::dot`] needs of row `i` of `k`.
    fn lhs(x: &Rounded, i: usize, k: usize) -> Lhs<'_>;

    /// # Safety
    /// The CPU has the tier's features; `row` holds whole blocks and every `Lhs` as many.
    unsafe fn dot<const M: usize>(row: &[u8], x: &[Lhs; M]) -> [f32; M];
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn by_batch<F: Dot>(task: &Task) {
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
fn batch<F: Dot, const M: usize>(task: &Task, first: usize) -> usize {
    let k = task.weight.cols;
    let rounded = task.activations.get(Form::of(F::KIND));
    let x: [Lhs; M] = std::array::from_fn(|i| F::lhs(rounded, first + i, k));
    for row in task.rows.clone() {
        let weights = task.weight.row(row);
        // SAFETY: the features are enabled here, and `row` and `lhs` cut slices of `k` weights each.
        let dots = unsafe { F::dot::<M>(weights, &x) };
        for (i, dot) in dots.into_iter().enumerate() {
            // SAFETY: `row` is one of this task's own.
            unsafe { task.out.write(first + i, row, dot) }
        }
    }
    M
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8], at: usize) -> __m512i {
    debug_assert!(at + 64 <= bytes.len());
    // SAFETY: `at + 64` bytes are there: every caller reads inside a block of its format's size.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().add(at).cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_q(q: &[i8], at: usize) -> __m512i {
    debug_assert!(at + 64 <= q.len());
    // SAFETY: `at + 64` bytes are there: every caller reads inside one of `q`'s blocks.
    unsafe { _mm512_loadu_si512(q.as_ptr().add(at).cast()) }
}

/// `sum + a * b` over pairs of 16-bit integers (`vpdpwssd`).
///
/// In assembly because LLVM takes the intrinsic apart into a multiplication and an addition where sums form a chain,
/// which costs an instruction more on the ports that these kernels fill.
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

/// For each of four vectors of 64 weights, which of eight scale bytes belongs to a 16-bit lane: byte `pair.0` in the
/// lower half and `pair.1` in the upper half, zero-extended.
const fn scale_index(pair: (u8, u8)) -> [u8; 64] {
    let mut index = [0x80; 64];
    let mut at = 0;
    while at < 64 {
        index[at] = if at < 32 { pair.0 } else { pair.1 };
        at += 2;
    }
    index
}

static K_SCALES: [[u8; 64]; 4] = [scale_index((0, 2)), scale_index((1, 3)), scale_index((4, 6)), scale_index((5, 7))];

/// Adds the fifth bits to four vectors of nibbles. `high` has bit `g` of byte `l` for weight `l` of group `g`.
#[inline]
#[target_feature(enable = "avx512f")]
fn fifth_bits(high: __m256i, q: &mut [__m512i; 4]) {
    let high = _mm512_broadcast_i64x4(high);
    let bit = _mm512_set1_epi8(0x10);
    let halves = |a, b| _mm512_set_epi64(b, b, b, b, a, a, a, a);
    let shifted = [
        _mm512_sllv_epi64(high, halves(4, 2)),
        _mm512_sllv_epi64(high, halves(3, 1)),
        _mm512_srlv_epi64(high, halves(0, 2)),
        _mm512_srlv_epi64(high, halves(1, 3)),
    ];
    for (q, shifted) in q.iter_mut().zip(shifted) {
        // q | shifted & bit
        *q = _mm512_ternarylogic_epi64::<0xF8>(*q, shifted, bit);
    }
}

/// Rows that are unpacked side by side: their heads are decoded with one row to a lane.
const PANEL: usize = 16;

/// Q4_K and Q5_K, sixteen rows at a time.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn by_panel<F: Format>(task: &Task) {
    let mut first = 0;
    while first < task.m {
        first += match task.m - first {
            1 => panels::<F, 1>(task, first),
            2 => panels::<F, 2>(task, first),
            3 => panels::<F, 3>(task, first),
            _ => panels::<F, 4>(task, first),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn panels<F: Format, const M: usize>(task: &Task, first: usize) -> usize {
    let k = task.weight.cols;
    let x = task.activations.get(Form::Block256);
    let x: [Lhs; M] = std::array::from_fn(|i| {
        let i = first + i;
        Lhs {
            q: &x.paired[i * k..][..k],
            scale: &x.scale[i * k / 256..][..k / 256],
            sums: &x.sums32[i * k / 32..][..k / 32],
        }
    });
    for start in task.rows.clone().step_by(PANEL) {
        let count = PANEL.min(task.rows.end - start);
        // Where fewer rows are left, the last one stands in for the missing ones.
        let rows: [&[u8]; PANEL] = std::array::from_fn(|r| task.weight.row(start + r.min(count - 1)));
        let dots = panel::<F, M>(&rows, &x);
        for (i, dots) in dots.iter().enumerate() {
            for (r, &dot) in dots[..count].iter().enumerate() {
                // SAFETY: `start + r` is one of this task's own rows.
                unsafe { task.out.write(first + i, start + r, dot) }
            }
        }
    }
    M
}

/// Numbers of a panel's rows for one block, on a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Lane<T>([T; PANEL]);

/// Where row `r`'s eight scales are among those stored by [`panel`]: unpacking pairs of dwords leaves the rows in this
/// order.
const SCALE_AT: [usize; PANEL] = [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
fn panel<F: Format, const M: usize>(rows: &[&[u8]; PANEL], x: &[Lhs; M]) -> [[f32; PANEL]; M] {
    let nibble = _mm512_set1_epi8(0x0F);
    let six = _mm512_set1_epi8(0x3F);
    let index = [load(&K_SCALES[0], 0), load(&K_SCALES[1], 0), load(&K_SCALES[2], 0), load(&K_SCALES[3], 0)];
    let low_bytes = _mm512_set1_epi32(0x00FF_00FF);
    let mut sums = [[_mm512_setzero_ps(); PANEL]; M];
    let mut minima = [_mm512_setzero_ps(); M];
    let mut scales = Lane([0u64; PANEL]);
    let mut factors = [Lane([0f32; PANEL]); M];
    let blocks = rows[0].len() / F::BYTES;
    let stride = F::BYTES * blocks * PANEL;
    for b in 0..blocks {
        let at = b * F::BYTES;
        // The heads of all rows, transposed: `d` and `dmin`, and three words of packed scales, one row to a lane.
        // SAFETY: every row has this block, and a block more than 16 bytes.
        let head = |r: usize| unsafe { _mm_loadu_si128(rows[r].as_ptr().add(at).cast()) };
        let quad = |j: usize| {
            let v = _mm512_castsi128_si512(head(j));
            let v = _mm512_inserti32x4::<1>(v, head(4 + j));
            let v = _mm512_inserti32x4::<2>(v, head(8 + j));
            _mm512_inserti32x4::<3>(v, head(12 + j))
        };
        let (z0, z1, z2, z3) = (quad(0), quad(1), quad(2), quad(3));
        let (t0, t1) = (_mm512_unpacklo_epi32(z0, z1), _mm512_unpackhi_epi32(z0, z1));
        let (t2, t3) = (_mm512_unpacklo_epi32(z2, z3), _mm512_unpackhi_epi32(z2, z3));
        let halves = _mm512_unpacklo_epi64(t0, t2);
        let (u0, u1, u2) =
            (_mm512_unpackhi_epi64(t0, t2), _mm512_unpacklo_epi64(t1, t3), _mm512_unpackhi_epi64(t1, t3));
        let d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(halves));
        let dmin = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(halves)));
        // As `k_scales`: (a & mask | b & !mask) without the bits above.
        let upper =
            |a, b| _mm512_and_si512(_mm512_ternarylogic_epi64::<0xE4>(a, _mm512_srli_epi32::<2>(b), nibble), six);
        let (scale_low, min_low) = (_mm512_and_si512(u0, six), _mm512_and_si512(u1, six));
        let (scale_high, min_high) = (upper(u2, u0), upper(_mm512_srli_epi32::<4>(u2), u1));
        // SAFETY: sixteen words of eight bytes are two vectors.
        unsafe {
            let to: *mut __m512i = scales.0.as_mut_ptr().cast();
            _mm512_store_si512(to, _mm512_unpacklo_epi32(scale_low, scale_high));
            _mm512_store_si512(to.add(1), _mm512_unpackhi_epi32(scale_low, scale_high));
        }
        // Minima in pairs (0, 2), (1, 3), (4, 6), (5, 7), the order of `sums32`.
        let mins = [
            _mm512_and_si512(min_low, low_bytes),
            _mm512_and_si512(_mm512_srli_epi32::<8>(min_low), low_bytes),
            _mm512_and_si512(min_high, low_bytes),
            _mm512_and_si512(_mm512_srli_epi32::<8>(min_high), low_bytes),
        ];
        for i in 0..M {
            let mut of = _mm512_setzero_si512();
            for (p, &mins) in mins.iter().enumerate() {
                // SAFETY: `sums` has four pairs for each block.
                let pair = unsafe { x[i].sums.as_ptr().add(b * 8 + p * 2).cast::<i32>().read_unaligned() };
                of = _mm512_dpwssd_epi32(of, mins, _mm512_set1_epi32(pair));
            }
            let scale = _mm512_set1_ps(x[i].scale[b]);
            minima[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(of), _mm512_mul_ps(dmin, scale), minima[i]);
            // SAFETY: sixteen numbers are one vector.
            unsafe { _mm512_store_ps(factors[i].0.as_mut_ptr(), _mm512_mul_ps(d, scale)) };
        }
        for r in 0..PANEL {
            // SAFETY: every row has this block.
            let block = unsafe { rows[r].get_unchecked(at..at + F::BYTES) };
            let next = block.as_ptr().wrapping_add(stride);
            _mm_prefetch::<_MM_HINT_T1>(next.cast());
            _mm_prefetch::<_MM_HINT_T1>(next.wrapping_add(64).cast());
            _mm_prefetch::<_MM_HINT_T1>(next.wrapping_add(128).cast());
            let (a, c) = (load(block, F::BYTES - 128), load(block, F::BYTES - 64));
            let mut q = [
                _mm512_and_si512(a, nibble),
                _mm512_and_si512(_mm512_srli_epi16::<4>(a), nibble),
                _mm512_and_si512(c, nibble),
                _mm512_and_si512(_mm512_srli_epi16::<4>(c), nibble),
            ];
            if F::BYTES == Q5K::BYTES {
                // SAFETY: a Q5_K block has 32 bytes of fifth bits at 16.
                fifth_bits(unsafe { _mm256_loadu_si256(block.as_ptr().add(16).cast()) }, &mut q);
            }
            let scale = _mm512_set1_epi64(scales.0[SCALE_AT[r]] as i64);
            let scale = [
                _mm512_shuffle_epi8(scale, index[0]),
                _mm512_shuffle_epi8(scale, index[1]),
                _mm512_shuffle_epi8(scale, index[2]),
                _mm512_shuffle_epi8(scale, index[3]),
            ];
            for i in 0..M {
                let mut dot = _mm512_setzero_si512();
                for t in 0..4 {
                    let pairs = _mm512_maddubs_epi16(q[t], load_q(x[i].q, b * 256 + t * 64));
                    dot = dpwssd(dot, pairs, scale[t]);
                }
                sums[i][r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_set1_ps(factors[i].0[r]), sums[i][r]);
            }
        }
    }
    let mut dots = [[0.0; PANEL]; M];
    for i in 0..M {
        let mut less = [0.0; PANEL];
        // SAFETY: sixteen numbers are one vector.
        unsafe { _mm512_storeu_ps(less.as_mut_ptr(), minima[i]) };
        for r in 0..PANEL {
            dots[i][r] = _mm512_reduce_add_ps(sums[i][r]) - less[r];
        }
    }
    dots
}

/// For the four vectors of 64 weights of Q6_K: which of eight 16-bit scales belongs to each 128-bit lane.
const fn lane_index(first: u8) -> [u8; 64] {
    let mut index = [0; 64];
    let mut at = 0;
    while at < 64 {
        index[at] = 2 * (first + (at / 16) as u8) + (at % 2) as u8;
        at += 1;
    }
    index
}

static LANE_SCALES: [[u8; 64]; 2] = [lane_index(0), lane_index(4)];

impl Dot for Q6K {
    fn lhs(x: &Rounded, i: usize, k: usize) -> Lhs<'_> {
        Lhs { q: &x.q[i * k..][..k], scale: &x.scale[i * k / 256..][..k / 256], sums: &x.sums[i * k / 16..][..k / 16] }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
    unsafe fn dot<const M: usize>(row: &[u8], x: &[Lhs; M]) -> [f32; M] {
        let nibble = _mm512_set1_epi8(0x0F);
        let six = _mm512_set1_epi8(0x3F);
        let left = _mm512_set_epi64(2, 2, 2, 2, 4, 4, 4, 4);
        let right = _mm512_set_epi64(2, 2, 2, 2, 0, 0, 0, 0);
        let index = [load(&LANE_SCALES[0], 0), load(&LANE_SCALES[1], 0)];
        let mut sums = [_mm512_setzero_ps(); M];
        for (b, block) in row.chunks_exact(Self::BYTES).enumerate() {
            for line in 0..4 {
                _mm_prefetch::<_MM_HINT_T0>(block.as_ptr().wrapping_add(AHEAD + line * 64).cast());
            }
            let mut q = [nibble; 4];
            for half in 0..2 {
                let low = load(block, half * 64);
                // SAFETY: a block has 64 bytes of upper bit pairs at 128.
                let high = unsafe { _mm256_loadu_si256(block.as_ptr().add(128 + half * 32).cast()) };
                let high = _mm512_broadcast_i64x4(high);
                // nibble ? low : high, then without the neighbours' bits
                q[half * 2] = _mm512_and_si512(
                    _mm512_ternarylogic_epi64::<0xE4>(low, _mm512_sllv_epi64(high, left), nibble),
                    six,
                );
                q[half * 2 + 1] = _mm512_and_si512(
                    _mm512_ternarylogic_epi64::<0xE4>(
                        _mm512_srli_epi16::<4>(low),
                        _mm512_srlv_epi64(high, right),
                        nibble,
                    ),
                    six,
                );
            }
            // SAFETY: a block has 16 bytes of scales at 192.
            let wide = _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(block.as_ptr().add(192).cast()) });
            let both = _mm512_castsi256_si512(wide);
            let (lower, upper) = (_mm512_shuffle_i64x2::<0x00>(both, both), _mm512_shuffle_i64x2::<0x55>(both, both));
            let scales: [__m512i; 4] = [
                _mm512_shuffle_epi8(lower, index[0]),
                _mm512_shuffle_epi8(lower, index[1]),
                _mm512_shuffle_epi8(upper, index[0]),
                _mm512_shuffle_epi8(upper, index[1]),
            ];
            let d = _mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(u16::from_le_bytes([block[208], block[209]]))));
            for i in 0..M {
                // Weights are q - 32: the products of 32 are taken off group by group, through the sums of x.
                // SAFETY: `sums` has sixteen numbers for each of the row's blocks.
                let of = _mm256_madd_epi16(wide, unsafe { _mm256_loadu_si256(x[i].sums.as_ptr().add(b * 16).cast()) });
                let minus = _mm256_slli_epi32::<5>(of);
                let mut dot = _mm512_setzero_si512();
                for t in 0..4 {
                    let pairs = _mm512_maddubs_epi16(q[t], load_q(x[i].q, b * 256 + t * 64));
                    dot = dpwssd(dot, pairs, scales[t]);
                }
                dot = _mm512_sub_epi32(dot, _mm512_zextsi256_si512(minus));
                let factor = _mm_mul_ss(d, _mm_set_ss(x[i].scale[b]));
                sums[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), _mm512_broadcastss_ps(factor), sums[i]);
            }
        }
        let mut dots = [0.0; M];
        for (dot, sums) in dots.iter_mut().zip(sums) {
            *dot = _mm512_reduce_add_ps(sums);
        }
        dots
    }
}
