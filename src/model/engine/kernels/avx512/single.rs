//! The AVX-512 kernels for a single row of activations and blocks of 256, as in decoding.
//!
//! With a single row, unpacking the weights to panels takes longer than multiplying them. Here the rows of weights
//! are read in their layout in memory: `vpmaddubsw` multiplies unsigned weights with signed activations and adds
//! pairs, which cannot saturate (63 * 127 * 2 < 2^15), and `vpdpwssd` multiplies those by the scale of their group
//! and accumulates in 32 bits. The resulting sixteen vectors of a block of sixteen rows are summed across lanes
//! together. The integers are the same as with panels, and so are the operations after them.

use std::arch::x86_64::*;

use super::super::Task;
use super::super::activation::{CHUNK, Form, Tile};
use super::super::panel::{self, Copied, Lanes, Panel, ROWS, Source};
use super::unpack::{halves, k_heads, words};
use super::{add, dpwssd, less_minima};
use crate::engine::quant::{Format, Q4K, Q5K, Q6K};

/// A format with such a kernel.
pub(super) trait Single: Panel {
    /// Adds the products of a block of sixteen rows and one row of activations: its integers are `q`, the sums of
    /// sixteen of them `sums`.
    ///
    /// # Safety
    /// The CPU has the tier's features; every row has a block, `q` 256 integers and `sums` 16.
    unsafe fn add(rows: Source, q: &[i8], sums: &[i16], x: &Tile, sum: __m512) -> __m512;
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
pub(super) fn rows<F: Single>(task: &Task) {
    let activations = task.activations.get(Form::Block256);
    let mut copied = Copied::default();
    for start in task.rows.clone().step_by(ROWS) {
        let mut sum = _mm512_setzero_ps();
        for chunk in 0..task.weight.cols / CHUNK {
            let part = panel::part::<F>(task, start, chunk, 1, &mut copied);
            let q = &activations.q[chunk * CHUNK..][..CHUNK];
            let sums = &activations.sums[chunk * (CHUNK / 16)..][..CHUNK / 16];
            let x = task.activations.tile(Form::Block256, chunk, 0);
            // SAFETY: the features are enabled here, and each slice has a block's numbers.
            sum = unsafe { F::add(part.rows, q, sums, &x, sum) };
        }
        let mut sums = [0.0; ROWS];
        // SAFETY: sixteen numbers are one vector.
        unsafe { _mm512_storeu_ps(sums.as_mut_ptr(), sum) };
        super::store(task, start, &sums);
    }
}

/// Loads 64 bytes of a block.
///
/// # Safety
/// The CPU has AVX-512F, and they are there.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(at: *const u8) -> __m512i {
    // SAFETY: by this function's contract.
    unsafe { _mm512_loadu_si512(at.cast()) }
}

/// Sums the lanes of each of sixteen vectors, in order.
#[inline]
#[target_feature(enable = "avx512f")]
fn totals(v: &[__m512i; ROWS]) -> __m512i {
    let words = |a, b| _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let pairs = |a, b| _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    let four = |i: usize| pairs(words(v[i], v[i + 1]), words(v[i + 2], v[i + 3]));
    let quarters = |a, b| _mm512_add_epi32(_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xDD>(a, b));
    quarters(quarters(four(0), four(4)), quarters(four(8), four(12)))
}

/// Returns the shuffle index that gives each 16-bit lane its scale, zero-extended: byte `pair.0` of eight scale bytes
/// in the lower half and `pair.1` in the upper half of the vector.
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

/// The place of row `r`'s eight scales after two vectors of words are unpacked to pairs.
const SCALE_AT: Lanes<usize> = [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15];

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

/// Adds Q4_K and Q5_K. 64 bytes hold two groups in their low nibbles, and the two groups between those in the high
/// ones.
///
/// # Safety
/// As [`Single::add`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
unsafe fn add_k<F: Format>(rows: Source, q: &[i8], x: &Tile, sum: __m512) -> __m512 {
    debug_assert!(q.len() == CHUNK);
    // SAFETY: by this function's contract.
    let heads = unsafe { k_heads(rows) };
    let nibble = _mm512_set1_epi8(0x0F);
    let mut scales = [0u64; ROWS];
    // SAFETY: sixteen words of eight bytes are two vectors; the tables are one each; `q` has 256 bytes.
    let (index, x_of) = unsafe {
        let to: *mut __m512i = scales.as_mut_ptr().cast();
        _mm512_storeu_si512(to, _mm512_unpacklo_epi32(heads.scales[0], heads.scales[1]));
        _mm512_storeu_si512(to.add(1), _mm512_unpackhi_epi32(heads.scales[0], heads.scales[1]));
        let half = |at: usize| _mm256_loadu_si256(q.as_ptr().add(at).cast());
        let pair = |at: usize| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(half(at)), half(at + 64));
        (K_SCALES.each_ref().map(|index| load(index.as_ptr())), [pair(0), pair(32), pair(128), pair(160)])
    };
    let mut dots = [_mm512_setzero_si512(); ROWS];
    for (r, to) in dots.iter_mut().enumerate() {
        rows.fetch_next(r, F::BYTES);
        // SAFETY: each row has a block, whose last 128 bytes are nibbles.
        let (a, c) = unsafe { (load(rows.at(r, F::BYTES - 128)), load(rows.at(r, F::BYTES - 64))) };
        let mut q = [
            _mm512_and_si512(a, nibble),
            _mm512_and_si512(_mm512_srli_epi16::<4>(a), nibble),
            _mm512_and_si512(c, nibble),
            _mm512_and_si512(_mm512_srli_epi16::<4>(c), nibble),
        ];
        if F::BYTES == Q5K::BYTES {
            // SAFETY: a Q5_K block has 32 bytes of fifth bits at 16.
            fifth_bits(unsafe { _mm256_loadu_si256(rows.at(r, 16).cast()) }, &mut q);
        }
        let scale = _mm512_set1_epi64(scales[SCALE_AT[r]] as i64);
        let mut dot = _mm512_setzero_si512();
        for t in 0..4 {
            let pairs = _mm512_maddubs_epi16(q[t], x_of[t]);
            dot = dpwssd(dot, pairs, _mm512_shuffle_epi8(scale, index[t]));
        }
        *to = dot;
    }
    let total = _mm512_cvtepi32_ps(totals(&dots));
    let sum = add(sum, total, heads.unit, x.scale[0]);
    less_minima(sum, heads.minima, heads.minimum, x.scale[0], &x.pairs[0])
}

impl Single for Q4K {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
    unsafe fn add(rows: Source, q: &[i8], _sums: &[i16], x: &Tile, sum: __m512) -> __m512 {
        // SAFETY: the same contract.
        unsafe { add_k::<Self>(rows, q, x, sum) }
    }
}

impl Single for Q5K {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
    unsafe fn add(rows: Source, q: &[i8], _sums: &[i16], x: &Tile, sum: __m512) -> __m512 {
        // SAFETY: the same contract.
        unsafe { add_k::<Self>(rows, q, x, sum) }
    }
}

/// Returns the shuffle index that gives each 128-bit lane of Q6_K's vectors its 16-bit scale.
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

impl Single for Q6K {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
    unsafe fn add(rows: Source, q: &[i8], sums: &[i16], x: &Tile, sum: __m512) -> __m512 {
        debug_assert!(q.len() == CHUNK && sums.len() == 16);
        let nibble = _mm512_set1_epi8(0x0F);
        let six = _mm512_set1_epi8(0x3F);
        let left = _mm512_set_epi64(2, 2, 2, 2, 4, 4, 4, 4);
        let right = _mm512_set_epi64(2, 2, 2, 2, 0, 0, 0, 0);
        // SAFETY: `q` has 256 bytes, `sums` 32; the tables are one vector each. A block ends with `d` at 208.
        let (x_of, of, index, last) = unsafe {
            let x_of = [0, 64, 128, 192].map(|at| _mm512_loadu_si512(q.as_ptr().add(at).cast()));
            let of = _mm256_loadu_si256(sums.as_ptr().cast());
            (x_of, of, LANE_SCALES.each_ref().map(|index| load(index.as_ptr())), words(rows, 194)[3])
        };
        let mut dots = [_mm512_setzero_si512(); ROWS];
        for (r, to) in dots.iter_mut().enumerate() {
            rows.fetch_next(r, Self::BYTES);
            // SAFETY: each row has a block: 128 bytes of low nibbles, 64 of upper bit pairs, 16 of scales.
            let (low, high, scales) = unsafe {
                let high = |at| _mm512_broadcast_i64x4(_mm256_loadu_si256(rows.at(r, at).cast()));
                let low = [load(rows.at(r, 0)), load(rows.at(r, 64))];
                (low, [high(128), high(160)], _mm_loadu_si128(rows.at(r, 192).cast()))
            };
            let wide = _mm256_cvtepi8_epi16(scales);
            let both = _mm512_castsi256_si512(wide);
            let (lower, upper) = (_mm512_shuffle_i64x2::<0x00>(both, both), _mm512_shuffle_i64x2::<0x55>(both, both));
            // weights are q - 32: the products of 32 are subtracted group by group, with the sums of x
            let less = _mm256_slli_epi32::<5>(_mm256_madd_epi16(wide, of));
            let mut dot = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_zextsi256_si512(less));
            for half in 0..2 {
                // nibble ? low : high, then without the neighbours' bits
                let join = |low, high| _mm512_and_si512(_mm512_ternarylogic_epi64::<0xE4>(low, high, nibble), six);
                let (low, high) = (low[half], high[half]);
                let scales = if half == 0 { lower } else { upper };
                let first = join(low, _mm512_sllv_epi64(high, left));
                let second = join(_mm512_srli_epi16::<4>(low), _mm512_srlv_epi64(high, right));
                for (t, q) in [first, second].into_iter().enumerate() {
                    let pairs = _mm512_maddubs_epi16(q, x_of[half * 2 + t]);
                    dot = dpwssd(dot, pairs, _mm512_shuffle_epi8(scales, index[t]));
                }
            }
            *to = dot;
        }
        let total = _mm512_cvtepi32_ps(totals(&dots));
        add(sum, total, halves(_mm512_srli_epi32::<16>(last)), x.scale[0])
    }
}
