//! Unpacks blocks of the file to panels.
//!
//! Sixteen rows are read four bytes at a time: words at the same place in every row make a vector ([`words`]), so
//! that each operation works on sixteen blocks.

use std::arch::x86_64::*;

use super::super::panel::{Chunk, Lanes, Panel, Source};
use crate::engine::quant::{Format, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};

/// Loads four vectors of words: number `j` has, of each row, the word at `at + 4 j`.
///
/// # Safety
/// The CPU has AVX-512F, and every row has 16 bytes from `at` on.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn words(rows: Source, at: usize) -> [__m512i; 4] {
    // rows j, 4 + j, 8 + j and 12 + j; inserting from memory does not use the shuffle port
    let quad = |j: usize| {
        // SAFETY: by this function's contract.
        let load = |r: usize| unsafe { _mm_loadu_si128(rows.at(r, at).cast()) };
        let v = _mm512_castsi128_si512(load(j));
        let v = _mm512_inserti32x4::<1>(v, load(4 + j));
        let v = _mm512_inserti32x4::<2>(v, load(8 + j));
        _mm512_inserti32x4::<3>(v, load(12 + j))
    };
    let (z0, z1, z2, z3) = (quad(0), quad(1), quad(2), quad(3));
    let (t0, t1) = (_mm512_unpacklo_epi32(z0, z1), _mm512_unpackhi_epi32(z0, z1));
    let (t2, t3) = (_mm512_unpacklo_epi32(z2, z3), _mm512_unpackhi_epi32(z2, z3));
    [
        _mm512_unpacklo_epi64(t0, t2),
        _mm512_unpackhi_epi64(t0, t2),
        _mm512_unpacklo_epi64(t1, t3),
        _mm512_unpackhi_epi64(t1, t3),
    ]
}

/// As [`words`], with 32 bytes of each row: eight vectors, with fewer and longer loads than calling it twice.
///
/// # Safety
/// The CPU has AVX-512F, and every row has 32 bytes from `at` on.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn words8(rows: Source, at: usize) -> [__m512i; 8] {
    // row r in the lower half, row 4 + r in the upper one
    let pair = |r: usize| {
        // SAFETY: by this function's contract.
        let load = |r: usize| unsafe { _mm256_loadu_si256(rows.at(r, at).cast()) };
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(load(r)), load(4 + r))
    };
    // words c and 4 + c of rows first .. first + 4, then of the next four rows
    let eight = |first: usize| {
        let (z0, z1, z2, z3) = (pair(first), pair(first + 1), pair(first + 2), pair(first + 3));
        let (t0, t1) = (_mm512_unpacklo_epi32(z0, z1), _mm512_unpackhi_epi32(z0, z1));
        let (t2, t3) = (_mm512_unpacklo_epi32(z2, z3), _mm512_unpackhi_epi32(z2, z3));
        [
            _mm512_unpacklo_epi64(t0, t2),
            _mm512_unpackhi_epi64(t0, t2),
            _mm512_unpacklo_epi64(t1, t3),
            _mm512_unpackhi_epi64(t1, t3),
        ]
    };
    let (low, high) = (eight(0), eight(8));
    let mut all = [_mm512_setzero_si512(); 8];
    for c in 0..4 {
        all[c] = _mm512_shuffle_i64x2::<0x88>(low[c], high[c]);
        all[4 + c] = _mm512_shuffle_i64x2::<0xDD>(low[c], high[c]);
    }
    all
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store<T>(to: &mut Lanes<T>, v: __m512i) {
    const { assert!(size_of::<Lanes<T>>() == 64) };
    // SAFETY: sixteen elements of four bytes are one vector, of any bits.
    unsafe { _mm512_storeu_si512(std::ptr::from_mut(to).cast(), v) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_ps(to: &mut Lanes<f32>, v: __m512) {
    // SAFETY: sixteen numbers are one vector.
    unsafe { _mm512_storeu_ps(to.as_mut_ptr(), v) }
}

/// Converts the half-precision numbers in the lower halves of words.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn halves(words: __m512i) -> __m512 {
    _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words))
}

/// Returns the low and high nibbles of every byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn nibbles(bytes: __m512i) -> (__m512i, __m512i) {
    let nibble = _mm512_set1_epi8(0x0F);
    (_mm512_and_si512(bytes, nibble), _mm512_and_si512(_mm512_srli_epi16::<4>(bytes), nibble))
}

/// The heads of sixteen blocks of Q4_K or Q5_K: see [`k_scales`] for the packing of their scales and minima.
///
/// [`k_scales`]: crate::engine::quant::k_scales
pub(super) struct Heads {
    pub unit: __m512,
    pub minimum: __m512,
    /// Scales of groups 0 to 3 and 4 to 7, a byte each.
    pub scales: [__m512i; 2],
    /// Minima in pairs of 16 bits.
    pub minima: [__m512i; 4],
}

/// Unpacks the heads of sixteen blocks.
///
/// # Safety
/// The CPU has the tier's features, and every row has 16 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,f16c")]
pub(super) unsafe fn k_heads(rows: Source) -> Heads {
    // SAFETY: by this function's contract.
    let [factors, a, b, c] = unsafe { words(rows, 0) };
    let (six, four) = (_mm512_set1_epi8(0x3F), _mm512_set1_epi8(0x0F));
    // four ? low : high >> 2, then without the bits above
    let upper =
        |low, high| _mm512_and_si512(_mm512_ternarylogic_epi64::<0xE4>(low, _mm512_srli_epi32::<2>(high), four), six);
    // bytes 0 and 1, then 2 and 3, of every word, widened
    let widen = |first: u8| {
        let pair = i32::from_le_bytes([first, 0x80, first + 1, 0x80]);
        let within = _mm512_set4_epi32(0x0C0C_0C0C, 0x0808_0808, 0x0404_0404, 0);
        // 0x80 stays above 0x7F when a word's offset is added to it
        _mm512_add_epi8(_mm512_set1_epi32(pair), within)
    };
    let (first, second) = (widen(0), widen(2));
    let (low, high) = (_mm512_and_si512(b, six), upper(_mm512_srli_epi32::<4>(c), b));
    Heads {
        unit: halves(factors),
        minimum: halves(_mm512_srli_epi32::<16>(factors)),
        scales: [_mm512_and_si512(a, six), upper(c, a)],
        minima: [
            _mm512_shuffle_epi8(low, first),
            _mm512_shuffle_epi8(low, second),
            _mm512_shuffle_epi8(high, first),
            _mm512_shuffle_epi8(high, second),
        ],
    }
}

impl Heads {
    /// Stores all but the scales, and returns those, group by group.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(&self, to: &mut Chunk) -> [__m512i; 8] {
        store_ps(&mut to.unit, self.unit);
        store_ps(&mut to.minimum, self.minimum);
        for (to, &minima) in to.minima.iter_mut().zip(&self.minima) {
            store(to, minima);
        }
        let byte = _mm512_set1_epi32(0xFF);
        let [a, b] = self.scales;
        [
            _mm512_and_si512(a, byte),
            _mm512_and_si512(_mm512_srli_epi32::<8>(a), byte),
            _mm512_and_si512(_mm512_srli_epi32::<16>(a), byte),
            _mm512_srli_epi32::<24>(a),
            _mm512_and_si512(b, byte),
            _mm512_and_si512(_mm512_srli_epi32::<8>(b), byte),
            _mm512_and_si512(_mm512_srli_epi32::<16>(b), byte),
            _mm512_srli_epi32::<24>(b),
        ]
    }
}

impl Panel for Q4K {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
    unsafe fn fill(rows: Source, _count: usize, to: &mut Chunk) {
        // SAFETY: a block has 16 bytes of head and 128 of nibbles.
        let scales = unsafe { k_heads(rows) }.store(to);
        for (to, scale) in to.scale.iter_mut().zip(scales) {
            store_ps(to, _mm512_cvtepi32_ps(scale));
        }
        for j in 0..4 {
            // SAFETY: as above.
            let bytes = unsafe { words8(rows, 16 + j * 32) };
            // 32 bytes hold group 2 j in their low nibbles and group 2 j + 1 in the high ones
            for (i, bytes) in bytes.into_iter().enumerate() {
                if i % 2 == 0 {
                    rows.fetch_next(j * 4 + i / 2, Self::BYTES);
                }
                let (low, high) = nibbles(bytes);
                store(&mut to.q[j * 16 + i], low);
                store(&mut to.q[j * 16 + 8 + i], high);
            }
        }
    }
}

impl Panel for Q5K {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
    unsafe fn fill(rows: Source, _count: usize, to: &mut Chunk) {
        // SAFETY: a block has 16 bytes of head, 32 of fifth bits and 128 of nibbles.
        let scales = unsafe { k_heads(rows) }.store(to);
        for (to, scale) in to.whole.iter_mut().zip(scales) {
            store(to, scale);
        }
        let bit = _mm512_set1_epi8(0x10);
        // SAFETY: as above.
        let fifths = unsafe { words8(rows, 16) };
        for j in 0..4 {
            // SAFETY: as above.
            let bytes = unsafe { words8(rows, 48 + j * 32) };
            for (i, (bytes, fifth)) in bytes.into_iter().zip(fifths).enumerate() {
                if i % 2 == 0 {
                    rows.fetch_next(j * 4 + i / 2, Self::BYTES);
                }
                let (low, high) = nibbles(bytes);
                // group g has bit g of each byte: the two groups' bits become the lowest ones
                let fifth = _mm512_srl_epi16(fifth, _mm_cvtsi32_si128(2 * j as i32));
                // nibble | shifted & bit
                let low = _mm512_ternarylogic_epi64::<0xF8>(low, _mm512_slli_epi16::<4>(fifth), bit);
                let high = _mm512_ternarylogic_epi64::<0xF8>(high, _mm512_slli_epi16::<3>(fifth), bit);
                store(&mut to.q[j * 16 + i], low);
                store(&mut to.q[j * 16 + 8 + i], high);
            }
        }
    }
}

impl Panel for Q6K {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
    unsafe fn fill(rows: Source, _count: usize, to: &mut Chunk) {
        let (nibble, six) = (_mm512_set1_epi8(0x0F), _mm512_set1_epi8(0x3F));
        // SAFETY: a block ends with 16 bytes of scales at 192 and `d` at 208; its last 16 bytes end with `d`.
        let (scales, last) = unsafe { (words(rows, 192), words(rows, 194)) };
        store_ps(&mut to.unit, halves(_mm512_srli_epi32::<16>(last[3])));
        for (words, to) in scales.into_iter().zip(to.whole.chunks_exact_mut(4)) {
            store(&mut to[0], _mm512_srai_epi32::<24>(_mm512_slli_epi32::<24>(words)));
            store(&mut to[1], _mm512_srai_epi32::<24>(_mm512_slli_epi32::<16>(words)));
            store(&mut to[2], _mm512_srai_epi32::<24>(_mm512_slli_epi32::<8>(words)));
            store(&mut to[3], _mm512_srai_epi32::<24>(words));
        }
        // nibble ? low : high, then without the neighbours' bits
        let join = |low, high| _mm512_and_si512(_mm512_ternarylogic_epi64::<0xE4>(low, high, nibble), six);
        for half in 0..2 {
            // SAFETY: a block has 128 bytes of low nibbles, then 64 of upper bit pairs.
            let (a, b, high) =
                unsafe { (words8(rows, half * 64), words8(rows, half * 64 + 32), words8(rows, 128 + half * 32)) };
            for i in 0..8 {
                rows.fetch_next(half * 8 + i, Self::BYTES);
                let (a, b, high) = (a[i], b[i], high[i]);
                let step = half * 32 + i;
                store(&mut to.q[step], join(a, _mm512_slli_epi16::<4>(high)));
                store(&mut to.q[step + 8], join(b, _mm512_slli_epi16::<2>(high)));
                store(&mut to.q[step + 16], join(_mm512_srli_epi16::<4>(a), high));
                store(&mut to.q[step + 24], join(_mm512_srli_epi16::<4>(b), _mm512_srli_epi16::<2>(high)));
            }
        }
    }
}

/// Unpacks sixteen bytes of nibbles to 32 weights, low ones first.
///
/// # Safety
/// The CPU has AVX-512F, and every row has 16 bytes from `at` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn nibbles32(rows: Source, at: usize) -> [__m512i; 8] {
    // SAFETY: by this function's contract.
    let bytes = unsafe { words(rows, at) };
    let mut q = [_mm512_setzero_si512(); 8];
    for (i, bytes) in bytes.into_iter().enumerate() {
        (q[i], q[i + 4]) = nibbles(bytes);
    }
    q
}

/// Adds the fifth bits of 32 weights, bit `l` of each word for weight `l`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn add_fifths(q: &mut [__m512i; 8], fifths: __m512i) {
    let bit = _mm512_set1_epi8(0x10);
    let own = [_mm512_set1_epi32(0x0804_0201), _mm512_set1_epi32(0x8040_2010_u32 as i32)];
    for (i, q) in q.chunks_exact_mut(2).enumerate() {
        // byte i of the word in all four places
        let within = _mm512_set4_epi32(0x0C0C_0C0C, 0x0808_0808, 0x0404_0404, 0);
        let spread = _mm512_add_epi8(within, _mm512_set1_epi8(i as i8));
        let bits = _mm512_shuffle_epi8(fifths, spread);
        for (q, own) in q.iter_mut().zip(own) {
            *q = _mm512_mask_add_epi8(*q, _mm512_test_epi8_mask(bits, own), *q, bit);
        }
    }
}

/// A block of 32 of a panel.
struct Block {
    q: [__m512i; 8],
    scale: __m512,
    shift: __m512,
}

/// Implements [`Panel`] for formats with 32 weights in a block: the body reads the block at `$at` of `$rows`.
macro_rules! blocks32 {
    ($($format:ty, ($rows:ident, $at:ident) => $body:block)*) => {$(
        impl Panel for $format {
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c,fma")]
            unsafe fn fill($rows: Source, count: usize, to: &mut Chunk) {
                let to_blocks = to.q.chunks_exact_mut(8).zip(&mut to.scale).zip(&mut to.shift).take(count);
                for (b, ((q, scale), shift)) in to_blocks.enumerate() {
                    let $at = b * Self::BYTES;
                    $rows.fetch_next(2 * b, count * Self::BYTES);
                    $rows.fetch_next(2 * b + 1, count * Self::BYTES);
                    // SAFETY: by contract each row has this block, and the body reads no further than its end.
                    let block = unsafe { $body };
                    for (to, q) in q.iter_mut().zip(block.q) {
                        store(to, q);
                    }
                    store_ps(scale, block.scale);
                    store_ps(shift, block.shift);
                }
            }
        }
    )*};
}

blocks32! {
    Q4_0, (rows, at) => {
        let scale = halves(words(rows, at)[0]);
        Block { q: nibbles32(rows, at + 2), scale, shift: _mm512_mul_ps(scale, _mm512_set1_ps(-8.0)) }
    }
    Q4_1, (rows, at) => {
        let head = words(rows, at)[0];
        Block { q: nibbles32(rows, at + 4), scale: halves(head), shift: halves(_mm512_srli_epi32::<16>(head)) }
    }
    Q5_0, (rows, at) => {
        let head = words(rows, at);
        let scale = halves(head[0]);
        let fifths = _mm512_or_si512(_mm512_srli_epi32::<16>(head[0]), _mm512_slli_epi32::<16>(head[1]));
        let mut q = nibbles32(rows, at + 6);
        add_fifths(&mut q, fifths);
        Block { q, scale, shift: _mm512_mul_ps(scale, _mm512_set1_ps(-16.0)) }
    }
    Q5_1, (rows, at) => {
        let head = words(rows, at);
        let mut q = nibbles32(rows, at + 8);
        add_fifths(&mut q, head[1]);
        Block { q, scale: halves(head[0]), shift: halves(_mm512_srli_epi32::<16>(head[0])) }
    }
    Q8_0, (rows, at) => {
        let scale = halves(words(rows, at)[0]);
        let q = words8(rows, at + 2).map(|q| _mm512_xor_si512(q, _mm512_set1_epi8(-128)));
        Block { q, scale, shift: _mm512_mul_ps(scale, _mm512_set1_ps(-128.0)) }
    }
}
