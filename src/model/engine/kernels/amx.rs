//! Intel AMX with bf16 tiles, for prefill: many rows of activations against the same weights.
//!
//! A strip of 32 weight rows is converted to bf16 once and multiplied with all tokens: tiles of 16 weight rows x 32
//! inputs times tiles of 32 inputs x 16 tokens, accumulated in `f32`. The layouts follow the instruction set reference
//! (`TDPBF16PS`): the left tile is row-major, the right one holds pairs of inputs side by side, token after token.
//!
//! The instructions are written in assembly, since their intrinsics are not stable.
#![allow(unsafe_code)] // tile instructions, and calls into code for instructions that were detected at run time

use std::arch::asm;
use std::arch::x86_64::*;
use std::ops::Range;

use super::aligned::Aligned;
use super::output::Out;
use super::{Task, Weight};
use crate::engine::quant::{Format, Kind, Q4K, Unpacked, k_scales, with_format};
use crate::engine::threads::Pool;

/// Least rows of activations for which unpacking a strip pays.
pub(super) const MIN_BATCH: usize = 12;

/// Rows, and pairs or numbers in a row, of a tile.
const TILE: usize = 16;
/// Inputs that a tile spans.
const STEP: usize = 32;
/// Numbers in a bf16 tile: one KiB.
const TILE_NUMBERS: usize = TILE * STEP;
/// Weight rows that are unpacked together.
pub(super) const STRIP: usize = 2 * TILE;
/// Inputs that are unpacked together: two tiles' worth of rows stay in the L1 cache (32 KiB).
const DEPTH: usize = 512;
/// Tokens that are multiplied together: their part of [`DEPTH`] inputs stays in the L2 cache (512 KiB).
const TOKENS: usize = 512;
/// Most bytes of tokens that stay in the L2 cache with all their inputs, besides a strip's weights.
const WHOLE: usize = 1 << 20;
/// Bytes of a cache line.
const LINE: usize = 64;

/// True if the CPU has AMX with bf16 and the operating system lets this process use it. Requests the permission.
pub(super) fn is_available() -> bool {
    static AVAILABLE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        if !std::arch::is_x86_feature_detected!("avx512bf16") {
            return false;
        }
        // Leaf 7: EDX bit 22 is AMX-BF16, bit 24 AMX-TILE.
        let leaf = __cpuid_count(7, 0).edx;
        leaf >> 22 & 1 == 1 && leaf >> 24 & 1 == 1 && permitted()
    })
}

/// Requests the permission to use tile registers from Linux (`Documentation/arch/x86/xstate.rst`). On other systems
/// they are not used.
#[cfg(target_os = "linux")]
fn permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_ulong = 18;
    // SAFETY: this request takes a number, no pointer, and changes nothing but the process' permission.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn permitted() -> bool {
    false
}

/// Activations as right-hand tiles: for every 16 tokens, the consecutive tiles of 32 inputs each. Missing tokens of
/// the last tile are zero.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    data: Aligned<u16>,
    /// Tiles of one group of tokens.
    steps: usize,
}

impl Tiles {
    /// Packs `x` (`m x k`).
    pub(super) fn fill(&mut self, x: &[f32], m: usize, k: usize, pool: &Pool) {
        self.steps = k / STEP;
        let row = self.steps * TILE_NUMBERS;
        self.data.resize(m.div_ceil(TILE) * row);
        let tiles = Out::new(&mut self.data, row);
        pool.run(m.div_ceil(TILE), |t, _| {
            let first = t * TILE;
            let x = &x[first * k..(first + TILE).min(m) * k];
            // SAFETY: one task takes one group of tokens, and the tier was found to be available.
            unsafe { pack(x, k, tiles.row(t)) }
        });
    }
}

/// Packs up to 16 rows of `x` of `k` numbers.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn pack(x: &[f32], k: usize, out: &mut [u16]) {
    for (step, out) in out.chunks_exact_mut(TILE_NUMBERS).enumerate() {
        let mut rows = [_mm512_setzero_si512(); TILE];
        for (row, x) in rows.iter_mut().zip(x.chunks_exact(k)) {
            let x = &x[step * STEP..][..STEP];
            // SAFETY: 32 numbers are there.
            let (low, high) = unsafe { (_mm512_loadu_ps(x.as_ptr()), _mm512_loadu_ps(x.as_ptr().add(16))) };
            *row = bf16(low, high);
        }
        for (row, out) in transpose(rows).iter().zip(out.chunks_exact_mut(STEP)) {
            // SAFETY: 32 numbers of 16 bits are one vector.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), *row) };
        }
    }
}

/// Rounds 32 numbers to bf16, in order.
#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn bf16(low: __m512, high: __m512) -> __m512i {
    // SAFETY: both types are 64 bytes of any bits.
    unsafe { std::mem::transmute(_mm512_cvtne2ps_pbh(high, low)) }
}

/// Transposes 16 x 16 words. By value: as an array in memory, the tile was copied twice, which took longer than
/// transposing it.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(mut r: [__m512i; TILE]) -> [__m512i; TILE] {
    // four rounds, which exchange blocks of 1, 2, 4 and 8 words with a neighbour at that distance
    let mut t = [_mm512_setzero_si512(); TILE];
    for i in 0..8 {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    for i in 0..4 {
        for j in 0..2 {
            r[4 * i + 2 * j] = _mm512_unpacklo_epi64(t[4 * i + j], t[4 * i + 2 + j]);
            r[4 * i + 2 * j + 1] = _mm512_unpackhi_epi64(t[4 * i + j], t[4 * i + 2 + j]);
        }
    }
    // r[4 i + j], lane l: rows 4 i .. 4 i + 4 of column 4 l + j.
    for j in 0..4 {
        let (a, b) = (r[j], r[4 + j]);
        let (c, d) = (r[8 + j], r[12 + j]);
        let (ab, cd) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0x88>(c, d));
        t[j] = _mm512_shuffle_i32x4::<0x88>(ab, cd);
        t[8 + j] = _mm512_shuffle_i32x4::<0xDD>(ab, cd);
        let (ab, cd) = (_mm512_shuffle_i32x4::<0xDD>(a, b), _mm512_shuffle_i32x4::<0xDD>(c, d));
        t[4 + j] = _mm512_shuffle_i32x4::<0x88>(ab, cd);
        t[12 + j] = _mm512_shuffle_i32x4::<0xDD>(ab, cd);
    }
    t
}

/// The working memory of a thread: unpacked weights, and sums of a task's strips.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    weights: Aligned<u16>,
    sums: Aligned<f32>,
}

/// Computes one task of a quantised kind.
pub(super) fn rows(task: &Task, tiles: &Tiles, scratch: &mut Scratch) {
    with_format!(
        task.weight.kind,
        // SAFETY: `Kernels::new` has checked that the tier is available.
        F => unsafe { strips::<F>(task, tiles, scratch) },
        super::portable::rows(task)
    );
}

/// The shape of every tile: palette 1, sixteen rows of 64 bytes.
#[repr(C, align(64))]
struct Config([u8; 64]);

static CONFIG: Config = {
    let mut bytes = [0; 64];
    bytes[0] = 1;
    let mut tile = 0;
    while tile < 8 {
        bytes[16 + 2 * tile] = 64;
        bytes[48 + tile] = 16;
        tile += 1;
    }
    Config(bytes)
};

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16,f16c,fma")]
fn strips<F: Format>(task: &Task, tiles: &Tiles, scratch: &mut Scratch) {
    // SAFETY: the CPU has AMX and the process the permission; the configuration is a valid one.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &CONFIG, options(nostack, readonly)) };
    let groups = task.m.div_ceil(TILE);
    for first in (0..groups).step_by(TOKENS / TILE) {
        tokens::<F>(task, tiles, scratch, first..(first + TOKENS / TILE).min(groups));
    }
    // SAFETY: gives the tile registers back, so that the kernel need not save them.
    unsafe { asm!("tilerelease", options(nostack, nomem)) };
}

/// Computes all strips of a task with some groups of 16 tokens.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16,f16c,fma")]
fn tokens<F: Format>(task: &Task, tiles: &Tiles, scratch: &mut Scratch, groups: Range<usize>) {
    let k = task.weight.cols;
    let starts = || task.rows.clone().step_by(STRIP);
    let (strips, depths) = (starts().count(), k.div_ceil(DEPTH));
    scratch.weights.resize(2 * DEPTH / STEP * TILE_NUMBERS);
    // two tiles of sums for each strip and group: the first and the second 16 weight rows
    let per_strip = groups.len() * 2 * TILE * TILE;
    scratch.sums.resize(strips * per_strip);
    // few tokens stay in the cache with all their inputs; then a strip is computed completely before the next one
    let by_strip = groups.len() * TILE * k * size_of::<u16>() <= WHOLE;
    let chunk = |i: usize| {
        let (strip, depth) = if by_strip { (i / depths, i % depths) } else { (i % strips, i / strips) };
        let inputs = depth * DEPTH..k.min((depth + 1) * DEPTH);
        (strip, task.rows.start + strip * STRIP, inputs)
    };
    for i in 0..strips * depths {
        let (strip, start, inputs) = chunk(i);
        let next = (i + 1 < strips * depths).then(|| chunk(i + 1));
        let (depth, steps) = (inputs.start, inputs.len() / STEP);
        for r in 0..STRIP.min(task.rows.end - start) {
            if let Some((_, start, inputs)) = &next {
                prefetch::<F>(task.weight, start + r, inputs);
            }
            let row = part::<F>(task.weight, start + r, &inputs);
            let to = (r / TILE * steps * TILE + r % TILE) * STEP;
            if F::KIND == Kind::Q4K {
                unpack_q4k(row, &mut scratch.weights[to..]);
            } else {
                unpack::<F>(row, &mut scratch.weights[to..]);
            }
        }
        let mut sums = scratch.sums[strip * per_strip..][..per_strip].chunks_exact_mut(2 * TILE * TILE);
        let mut group = groups.start;
        while group < groups.end {
            let b = (group * tiles.steps + depth / STEP) * TILE_NUMBERS;
            let pair = group + 1 < groups.end;
            let (Some(c), d) = (sums.next(), if pair { sums.next() } else { None }) else { return };
            multiply(&scratch.weights, &tiles.data[b..], tiles.steps, steps, depth > 0, c, d);
            group += 1 + usize::from(pair);
        }
    }
    for (start, sums) in starts().zip(scratch.sums.chunks_exact(per_strip)) {
        let count = STRIP.min(task.rows.end - start);
        for (group, sums) in groups.clone().zip(sums.chunks_exact(2 * TILE * TILE)) {
            for (half, tile) in sums.chunks_exact(TILE * TILE).enumerate() {
                let width = count.saturating_sub(half * TILE).min(TILE);
                if width > 0 {
                    store(task, group * TILE, start + half * TILE, width, tile);
                }
            }
        }
    }
}

/// Returns the blocks of these inputs in a row.
fn part<'a, F: Format>(weight: &'a Weight, row: usize, inputs: &Range<usize>) -> &'a [u8] {
    &weight.row(row)[inputs.start / F::LEN * F::BYTES..inputs.end / F::LEN * F::BYTES]
}

/// Prefetches the blocks of these inputs, if the row exists. The hardware does not predict the next row's address, and
/// waiting for memory would take longer than unpacking.
fn prefetch<F: Format>(weight: &Weight, row: usize, inputs: &Range<usize>) {
    if row < weight.rows {
        for line in part::<F>(weight, row, inputs).chunks(LINE) {
            // SAFETY: a hint, for which any address will do.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
        }
    }
}

/// Transposes a tile of sums (weight rows x tokens) and writes its first `width` columns to the output.
#[target_feature(enable = "avx512f")]
fn store(task: &Task, token: usize, row: usize, width: usize, tile: &[f32]) {
    let mut words = [_mm512_setzero_si512(); TILE];
    for (word, row) in words.iter_mut().zip(tile.chunks_exact(TILE)) {
        // SAFETY: sixteen numbers are one vector.
        *word = unsafe { _mm512_loadu_si512(row.as_ptr().cast()) };
    }
    for (i, word) in transpose(words).iter().enumerate().take(task.m.saturating_sub(token)) {
        // SAFETY: the columns are rows of this task only.
        let to = unsafe { task.out.part(token + i, row, width) };
        // SAFETY: the mask lets no more than `width` numbers be written.
        unsafe { _mm512_mask_storeu_epi32(to.as_mut_ptr().cast(), ((1u32 << width) - 1) as u16, *word) };
    }
}

/// Writes the blocks of a row as bf16: 32 numbers to a tile, tiles one KiB apart.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16,f16c,fma")]
fn unpack<F: Format>(row: &[u8], out: &mut [u16]) {
    let mut block = Unpacked::default();
    let mut tiles = out.chunks_mut(TILE_NUMBERS);
    for bytes in row.chunks_exact(F::BYTES) {
        F::unpack(bytes, &mut block);
        for at in (0..F::LEN).step_by(STEP) {
            let Some(out) = tiles.next() else { return };
            let half = |at: usize| {
                // SAFETY: sixteen integers are there: `at` is a multiple of 16 below the block's length.
                let q = _mm512_cvtepi8_epi32(unsafe { _mm_load_si128(block.q.as_ptr().add(at).cast()) });
                let g = at / F::GROUP;
                _mm512_fmsub_ps(_mm512_cvtepi32_ps(q), _mm512_set1_ps(block.scale[g]), _mm512_set1_ps(block.offset[g]))
            };
            let numbers = bf16(half(at), half(at + 16));
            // SAFETY: a tile's row has 32 numbers.
            unsafe { _mm512_storeu_si512(out[..STEP].as_mut_ptr().cast(), numbers) };
        }
    }
}

/// As [`unpack`], for Q4_K. A group has 16 possible weights, which are computed once and looked up by nibble.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16,f16c,fma")]
fn unpack_q4k(row: &[u8], out: &mut [u16]) {
    let nibbles = _mm512_setr_ps(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0);
    // two passes: the second broadcasts the values from memory, where the first has written them
    let mut scales = [[0.0f32; 8]; DEPTH / Q4K::LEN];
    let mut offsets = scales;
    for ((block, scale), offset) in row.chunks_exact(Q4K::BYTES).zip(&mut scales).zip(&mut offsets) {
        let (sc, m) = k_scales(&block[4..16]);
        let wide = |bytes: u64| _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes as i64)));
        // SAFETY: a block has more than four bytes: `d` and `dmin` as halves.
        let factors = _mm_cvtph_ps(_mm_cvtsi32_si128(unsafe { block.as_ptr().cast::<i32>().read_unaligned() }));
        let (d, dmin) = (_mm256_broadcastss_ps(factors), _mm256_broadcastss_ps(_mm_movehdup_ps(factors)));
        // SAFETY: eight numbers are one vector.
        unsafe {
            _mm256_storeu_ps(scale.as_mut_ptr(), _mm256_mul_ps(wide(sc), d));
            _mm256_storeu_ps(offset.as_mut_ptr(), _mm256_mul_ps(wide(m), dmin));
        }
    }
    let mut tiles = out.chunks_mut(TILE_NUMBERS);
    for ((block, scale), offset) in row.chunks_exact(Q4K::BYTES).zip(&scales).zip(&offsets) {
        for (j, bytes) in block[16..].chunks_exact(32).enumerate() {
            // SAFETY: 32 bytes are there.
            let low = _mm512_cvtepu8_epi16(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) });
            for (side, index) in [low, _mm512_srli_epi16::<4>(low)].into_iter().enumerate() {
                let g = 2 * j + side;
                let values = _mm512_fmsub_ps(nibbles, _mm512_set1_ps(scale[g]), _mm512_set1_ps(offset[g]));
                // SAFETY: both types are 32 bytes of any bits.
                let values: __m256i = unsafe { std::mem::transmute(_mm512_cvtneps_pbh(values)) };
                // The look-up uses five bits of each index. The table is repeated, so that the fifth bit, which in a
                // low nibble belongs to its neighbour, does not matter.
                let numbers = _mm512_permutexvar_epi16(index, _mm512_broadcast_i64x4(values));
                let Some(out) = tiles.next() else { return };
                // SAFETY: a tile's row has 32 numbers.
                unsafe { _mm512_storeu_si512(out[..STEP].as_mut_ptr().cast(), numbers) };
            }
        }
    }
}

/// Computes `c += a * b` over `steps` tiles, for two tiles of weights and one group of tokens or, with `d`, two
/// groups, of which the second is `stride` tiles after the first. Each output has the tiles of both halves of the
/// strip. Without `more` the sums begin at zero.
fn multiply(a: &[u16], b: &[u16], stride: usize, steps: usize, more: bool, c: &mut [f32], d: Option<&mut [f32]>) {
    let tiles = if d.is_some() { stride + steps } else { steps };
    assert!(a.len() >= 2 * steps * TILE_NUMBERS && b.len() >= tiles * TILE_NUMBERS && steps > 0);
    assert!(c.len() >= 2 * TILE * TILE && d.as_ref().is_none_or(|d| d.len() >= 2 * TILE * TILE));
    let (a0, a1) = (a.as_ptr(), a[steps * TILE_NUMBERS..].as_ptr());
    let c0 = c.as_mut_ptr();
    let c1 = c[TILE * TILE..].as_mut_ptr();
    match d {
        Some(d) => {
            let (b0, b1) = (b.as_ptr(), b[stride * TILE_NUMBERS..].as_ptr());
            let d0 = d.as_mut_ptr();
            let d1 = d[TILE * TILE..].as_mut_ptr();
            // SAFETY: the tiles are configured by `strips`; every address lies in the slices checked above: tiles of
            // 1024 bytes with 64 to a row, `steps` of them from a0, a1, b0 and b1. Tile registers are used nowhere
            // else.
            unsafe {
                asm!(
                    "test {more:e}, {more:e}",
                    "jz 3f",
                    "tileloadd tmm0, [{c0} + {row}]",
                    "tileloadd tmm1, [{d0} + {row}]",
                    "tileloadd tmm2, [{c1} + {row}]",
                    "tileloadd tmm3, [{d1} + {row}]",
                    "jmp 2f",
                    "3:",
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    "2:",
                    "tileloadd tmm4, [{a0} + {row}]",
                    "tileloadd tmm6, [{b0} + {row}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{b1} + {row}]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tileloadd tmm5, [{a1} + {row}]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7",
                    "add {a0}, 1024",
                    "add {a1}, 1024",
                    "add {b0}, 1024",
                    "add {b1}, 1024",
                    "dec {steps}",
                    "jnz 2b",
                    "tilestored [{c0} + {row}], tmm0",
                    "tilestored [{d0} + {row}], tmm1",
                    "tilestored [{c1} + {row}], tmm2",
                    "tilestored [{d1} + {row}], tmm3",
                    more = in(reg) u32::from(more),
                    a0 = inout(reg) a0 => _,
                    a1 = inout(reg) a1 => _,
                    b0 = inout(reg) b0 => _,
                    b1 = inout(reg) b1 => _,
                    c0 = in(reg) c0,
                    c1 = in(reg) c1,
                    d0 = in(reg) d0,
                    d1 = in(reg) d1,
                    row = in(reg) 64usize,
                    steps = inout(reg) steps => _,
                    options(nostack),
                );
            }
        }
        None => {
            let b0 = b.as_ptr();
            // SAFETY: as above, without the second group.
            unsafe {
                asm!(
                    "test {more:e}, {more:e}",
                    "jz 3f",
                    "tileloadd tmm0, [{c0} + {row}]",
                    "tileloadd tmm2, [{c1} + {row}]",
                    "jmp 2f",
                    "3:",
                    "tilezero tmm0",
                    "tilezero tmm2",
                    "2:",
                    "tileloadd tmm4, [{a0} + {row}]",
                    "tileloadd tmm6, [{b0} + {row}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm5, [{a1} + {row}]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "add {a0}, 1024",
                    "add {a1}, 1024",
                    "add {b0}, 1024",
                    "dec {steps}",
                    "jnz 2b",
                    "tilestored [{c0} + {row}], tmm0",
                    "tilestored [{c1} + {row}], tmm2",
                    more = in(reg) u32::from(more),
                    a0 = inout(reg) a0 => _,
                    a1 = inout(reg) a1 => _,
                    b0 = inout(reg) b0 => _,
                    c0 = in(reg) c0,
                    c1 = in(reg) c1,
                    row = in(reg) 64usize,
                    steps = inout(reg) steps => _,
                    options(nostack),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_columns() {
        if !is_available() {
            eprintln!("skipped: this CPU has no AMX");
            return;
        }
        let mut words = [[0i32; TILE]; TILE];
        for (r, row) in words.iter_mut().enumerate() {
            for (c, word) in row.iter_mut().enumerate() {
                *word = (r * 100 + c) as i32;
            }
        }
        // SAFETY: the CPU has AVX-512; an array of words and a vector have the same size.
        let turned: [[i32; TILE]; TILE] = unsafe {
            let rows: [__m512i; TILE] = std::mem::transmute(words);
            std::mem::transmute(transpose(rows))
        };
        for (r, row) in turned.iter().enumerate() {
            for (c, &word) in row.iter().enumerate() {
                assert_eq!(word, words[c][r]);
            }
        }
    }
}
