//! Unpacks blocks of the file to panels of eight rows: words at the same place in every row make a vector, so that each
//! operation works on eight blocks.

use std::arch::x86_64::*;

use super::chunk::{Chunk, Lanes, ROWS};
use crate::engine::quant::{Format, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};

/// The addresses of the blocks of eight rows.
pub(super) type Blocks = [*const u8; ROWS];

/// A format that can be unpacked into panels.
pub(super) trait Panel: Format {
    /// The largest magnitude of a weight in a panel, which determines how many products fit 16 bits.
    const LARGEST: usize;

    /// Unpacks the first `count` blocks of each row, which are one chunk or the rest of the row.
    ///
    /// # Safety
    /// The CPU has AVX2 and F16C, and every row has those blocks.
    unsafe fn fill(rows: &Blocks, count: usize, to: &mut Chunk);
}

/// Loads four vectors of words: number `j` has, of each row, the word at `at + 4 j`.
///
/// # Safety
/// The CPU has AVX2, and every row has 16 bytes from `at` on.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn words(rows: &Blocks, at: usize) -> [__m256i; 4] {
    // rows r and 4 + r; inserting from memory does not use the shuffle port
    let pair = |r: usize| {
        // SAFETY: by this function's contract.
        let load = |r: usize| unsafe { _mm_loadu_si128(rows[r].add(at).cast()) };
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(load(r)), load(4 + r))
    };
    let (y0, y1, y2, y3) = (pair(0), pair(1), pair(2), pair(3));
    let (t0, t1) = (_mm256_unpacklo_epi32(y0, y1), _mm256_unpackhi_epi32(y0, y1));
    let (t2, t3) = (_mm256_unpacklo_epi32(y2, y3), _mm256_unpackhi_epi32(y2, y3));
    [
        _mm256_unpacklo_epi64(t0, t2),
        _mm256_unpackhi_epi64(t0, t2),
        _mm256_unpacklo_epi64(t1, t3),
        _mm256_unpackhi_epi64(t1, t3),
    ]
}

/// As [`words`], with 32 bytes of each row.
///
/// # Safety
/// The CPU has AVX2, and every row has 32 bytes from `at` on.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn words8(rows: &Blocks, at: usize) -> [__m256i; 8] {
    // SAFETY: the same contract.
    let ([a, b, c, d], [e, f, g, h]) = unsafe { (words(rows, at), words(rows, at + 16)) };
    [a, b, c, d, e, f, g, h]
}

#[inline]
#[target_feature(enable = "avx2")]
fn store<T>(to: &mut Lanes<T>, v: __m256i) {
    const { assert!(size_of::<Lanes<T>>() == 32) };
    // SAFETY: eight elements of four bytes are one vector, of any bits.
    unsafe { _mm256_storeu_si256(std::ptr::from_mut(to).cast(), v) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_ps(to: &mut Lanes<f32>, v: __m256) {
    // SAFETY: eight numbers are one vector.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), v) }
}

/// Converts the half-precision numbers in the lower halves of words.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn halves(words: __m256i) -> __m256 {
    let low = _mm256_and_si256(words, _mm256_set1_epi32(0xFFFF));
    let packed = _mm256_permute4x64_epi64::<0b1000>(_mm256_packus_epi32(low, low));
    _mm256_cvtph_ps(_mm256_castsi256_si128(packed))
}

/// Returns the low and high nibbles of every byte.
#[inline]
#[target_feature(enable = "avx2")]
fn nibbles(bytes: __m256i) -> (__m256i, __m256i) {
    let nibble = _mm256_set1_epi8(0x0F);
    (_mm256_and_si256(bytes, nibble), _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble))
}

/// Returns byte `byte` of every word, zero-extended, in both halves of the word.
#[inline]
#[target_feature(enable = "avx2")]
fn twice(words: __m256i, byte: usize) -> __m256i {
    let both = i32::from_le_bytes([byte as u8, 0x80, byte as u8, 0x80]);
    _mm256_shuffle_epi8(words, _mm256_add_epi8(_mm256_set1_epi32(both), within()))
}

/// Returns, in each byte, the offset of its word within its half of a vector. 0x80 stays above 0x7F when this is added.
#[inline]
#[target_feature(enable = "avx2")]
fn within() -> __m256i {
    _mm256_setr_epi32(0, 0x0404_0404, 0x0808_0808, 0x0C0C_0C0C, 0, 0x0404_0404, 0x0808_0808, 0x0C0C_0C0C)
}

/// Prefetches the next chunk of row `r`.
#[inline(always)]
fn fetch_next(rows: &Blocks, r: usize, len: usize) {
    for line in (0..len).step_by(64) {
        // SAFETY: a hint, for which any address will do.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(rows[r].wrapping_add(len + line).cast()) };
    }
}

/// Unpacks the head of Q4_K and Q5_K: see [`k_scales`] for the packing of their scales and minima.
///
/// # Safety
/// The CPU has AVX2 and F16C, and every row has 16 bytes.
///
/// [`k_scales`]: crate::engine::quant::k_scales
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn k_head(rows: &Blocks, to: &mut Chunk) {
    // SAFETY: by this function's contract.
    let [factors, a, b, c] = unsafe { words(rows, 0) };
    store_ps(&mut to.unit, halves(factors));
    store_ps(&mut to.minimum, halves(_mm256_srli_epi32::<16>(factors)));
    let (six, four, two) = (_mm256_set1_epi8(0x3F), _mm256_set1_epi8(0x0F), _mm256_set1_epi8(0x30));
    let upper =
        |low, spare| _mm256_or_si256(_mm256_and_si256(low, four), _mm256_and_si256(_mm256_srli_epi32::<2>(spare), two));
    let scales = [_mm256_and_si256(a, six), upper(c, a)];
    let minima = [_mm256_and_si256(b, six), upper(_mm256_srli_epi32::<4>(c), b)];
    for g in 0..8 {
        store(&mut to.scale[g], twice(scales[g / 4], g % 4));
        store(&mut to.minima[g], twice(minima[g / 4], g % 4));
    }
}

impl Panel for Q4K {
    const LARGEST: usize = 15;

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn fill(rows: &Blocks, _count: usize, to: &mut Chunk) {
        // SAFETY: a block has 16 bytes of head and 128 of nibbles.
        unsafe { k_head(rows, to) };
        for j in 0..4 {
            fetch_next(rows, 2 * j, Self::BYTES);
            fetch_next(rows, 2 * j + 1, Self::BYTES);
            // SAFETY: as above. 32 bytes hold group 2 j in their low nibbles and group 2 j + 1 in the high ones.
            for (i, bytes) in unsafe { words8(rows, 16 + j * 32) }.into_iter().enumerate() {
                let (low, high) = nibbles(bytes);
                store(&mut to.q[j * 16 + i], low);
                store(&mut to.q[j * 16 + 8 + i], high);
            }
        }
    }
}

impl Panel for Q5K {
    const LARGEST: usize = 31;

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn fill(rows: &Blocks, _count: usize, to: &mut Chunk) {
        // SAFETY: a block has 16 bytes of head, 32 of fifth bits and 128 of nibbles.
        unsafe { k_head(rows, to) };
        let bit = _mm256_set1_epi8(0x10);
        // SAFETY: as above.
        let mut fifths = unsafe { words8(rows, 16) };
        for j in 0..4 {
            fetch_next(rows, 2 * j, Self::BYTES);
            fetch_next(rows, 2 * j + 1, Self::BYTES);
            // SAFETY: as above.
            let bytes = unsafe { words8(rows, 48 + j * 32) };
            for (i, (bytes, fifth)) in bytes.into_iter().zip(&mut fifths).enumerate() {
                let (low, high) = nibbles(bytes);
                // group g has bit g of each byte: the two groups' bits are the lowest ones here
                let (first, second) = (_mm256_slli_epi16::<4>(*fifth), _mm256_slli_epi16::<3>(*fifth));
                store(&mut to.q[j * 16 + i], _mm256_or_si256(low, _mm256_and_si256(first, bit)));
                store(&mut to.q[j * 16 + 8 + i], _mm256_or_si256(high, _mm256_and_si256(second, bit)));
                *fifth = _mm256_srli_epi16::<2>(*fifth);
            }
        }
    }
}

impl Panel for Q6K {
    const LARGEST: usize = 63;

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn fill(rows: &Blocks, _count: usize, to: &mut Chunk) {
        // SAFETY: a block ends with 16 bytes of scales at 192 and `d` at 208; its last 16 bytes end with `d`.
        let (scales, last) = unsafe { (words(rows, 192), words(rows, 194)) };
        store_ps(&mut to.unit, halves(_mm256_srli_epi32::<16>(last[3])));
        let low = |v| _mm256_and_si256(v, _mm256_set1_epi32(0xFFFF));
        for (j, words) in scales.into_iter().enumerate() {
            // bytes 0 and 2, then 1 and 3, sign-extended to 16 bits
            let (even, odd) = (_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(words)), _mm256_srai_epi16::<8>(words));
            let neighbours = [
                _mm256_or_si256(low(even), _mm256_slli_epi32::<16>(odd)),
                _mm256_or_si256(_mm256_srli_epi32::<16>(even), _mm256_andnot_si256(_mm256_set1_epi32(0xFFFF), odd)),
            ];
            for (half, pair) in neighbours.into_iter().enumerate() {
                let (first, second) = (low(pair), _mm256_srli_epi32::<16>(pair));
                let g = 4 * j + 2 * half;
                store(&mut to.scale[g], _mm256_or_si256(first, _mm256_slli_epi32::<16>(first)));
                store(&mut to.scale[g + 1], _mm256_or_si256(second, _mm256_slli_epi32::<16>(second)));
                store(&mut to.minima[g / 2], pair);
            }
        }
        let (nibble, upper) = (_mm256_set1_epi8(0x0F), _mm256_set1_epi8(0x30));
        let join = |low, high| _mm256_or_si256(_mm256_and_si256(low, nibble), _mm256_and_si256(high, upper));
        for half in 0..2 {
            // SAFETY: a block has 128 bytes of low nibbles, then 64 of upper bit pairs.
            let (a, b, high) =
                unsafe { (words8(rows, half * 64), words8(rows, half * 64 + 32), words8(rows, 128 + half * 32)) };
            for i in 0..8 {
                if i < 4 {
                    fetch_next(rows, half * 4 + i, Self::BYTES);
                }
                let (a, b, high) = (a[i], b[i], high[i]);
                let step = half * 32 + i;
                store(&mut to.q[step], join(a, _mm256_slli_epi16::<4>(high)));
                store(&mut to.q[step + 8], join(b, _mm256_slli_epi16::<2>(high)));
                store(&mut to.q[step + 16], join(_mm256_srli_epi16::<4>(a), high));
                store(&mut to.q[step + 24], join(_mm256_srli_epi16::<4>(b), _mm256_srli_epi16::<2>(high)));
            }
        }
    }
}

/// A block of 32 of a panel.
struct Block {
    q: [__m256i; 8],
    scale: __m256,
    shift: __m256,
}

/// Unpacks sixteen bytes of nibbles to 32 weights, low ones first.
///
/// # Safety
/// The CPU has AVX2, and every row has 16 bytes from `at` on.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn nibbles32(rows: &Blocks, at: usize) -> [__m256i; 8] {
    let mut q = [_mm256_setzero_si256(); 8];
    // SAFETY: by this function's contract.
    for (i, bytes) in unsafe { words(rows, at) }.into_iter().enumerate() {
        (q[i], q[i + 4]) = nibbles(bytes);
    }
    q
}

/// Adds the fifth bits of 32 weights, bit `l` of each word for weight `l`.
#[inline]
#[target_feature(enable = "avx2")]
fn add_fifths(q: &mut [__m256i; 8], fifths: __m256i) {
    let own = [_mm256_set1_epi32(0x0804_0201), _mm256_set1_epi32(0x8040_2010_u32 as i32)];
    for (i, q) in q.chunks_exact_mut(2).enumerate() {
        // byte i of the word in all four places
        let bits = _mm256_shuffle_epi8(fifths, _mm256_add_epi8(_mm256_set1_epi8(i as i8), within()));
        for (q, own) in q.iter_mut().zip(own) {
            let set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, own), own);
            *q = _mm256_or_si256(*q, _mm256_and_si256(set, _mm256_set1_epi8(0x10)));
        }
    }
}

/// Implements [`Panel`] for formats with 32 weights in a block: the body reads the block at `$at` of `$rows`.
macro_rules! blocks32 {
    ($($format:ty, $largest:literal, ($rows:ident, $at:ident) => $body:block)*) => {$(
        impl Panel for $format {
            const LARGEST: usize = $largest;

            #[inline]
            #[target_feature(enable = "avx2,f16c")]
            unsafe fn fill($rows: &Blocks, count: usize, to: &mut Chunk) {
                let to_blocks = to.q.chunks_exact_mut(8).zip(&mut to.factor).zip(&mut to.shift).take(count);
                for (b, ((q, factor), shift)) in to_blocks.enumerate() {
                    let $at = b * Self::BYTES;
                    fetch_next($rows, b, count * Self::BYTES);
                    // SAFETY: by contract each row has this block, and the body reads no further than its end.
                    let block = unsafe { $body };
                    for (to, q) in q.iter_mut().zip(block.q) {
                        store(to, q);
                    }
                    store_ps(factor, block.scale);
                    store_ps(shift, block.shift);
                }
            }
        }
    )*};
}

blocks32! {
    Q4_0, 15, (rows, at) => {
        let scale = halves(words(rows, at)[0]);
        Block { q: nibbles32(rows, at + 2), scale, shift: _mm256_mul_ps(scale, _mm256_set1_ps(-8.0)) }
    }
    Q4_1, 15, (rows, at) => {
        let head = words(rows, at)[0];
        Block { q: nibbles32(rows, at + 4), scale: halves(head), shift: halves(_mm256_srli_epi32::<16>(head)) }
    }
    Q5_0, 31, (rows, at) => {
        let head = words(rows, at);
        let scale = halves(head[0]);
        let fifths = _mm256_or_si256(_mm256_srli_epi32::<16>(head[0]), _mm256_slli_epi32::<16>(head[1]));
        let mut q = nibbles32(rows, at + 6);
        add_fifths(&mut q, fifths);
        Block { q, scale, shift: _mm256_mul_ps(scale, _mm256_set1_ps(-16.0)) }
    }
    Q5_1, 31, (rows, at) => {
        let head = words(rows, at);
        let mut q = nibbles32(rows, at + 8);
        add_fifths(&mut q, head[1]);
        Block { q, scale: halves(head[0]), shift: halves(_mm256_srli_epi32::<16>(head[0])) }
    }
    // signed bytes: see `tiles::pairs`
    Q8_0, 128, (rows, at) => {
        let scale = halves(words(rows, at)[0]);
        Block { q: words8(rows, at + 2), scale, shift: _mm256_setzero_ps() }
    }
}
