//! Panels: sixteen rows of weights side by side, one row to a lane, as the AVX-512 and AMX kernels multiply them.
//!
//! With this layout, a product needs no sum across lanes, scales are vectors, and each row of activations costs the
//! same few instructions alone and with others.
//!
//! The results of a token do not depend on its batch. The sums of blocks of 256, scales and minima included, are
//! exact in integers, and floating point begins with one multiplication and addition for each block, in order, in
//! every kernel (a single row of activations has its own kernel, in [`super::avx512`]). Blocks of 32 have one kernel.
#![allow(unsafe_code)] // code for instructions that were detected at run time

use std::arch::x86_64::*;

use super::Task;
use super::activation::CHUNK;
use crate::engine::quant::Format;

/// Rows in a panel: lanes of a vector of 512 bits.
pub(super) const ROWS: usize = 16;

/// Bytes of weights that are multiplied in one step: one word of a lane.
pub(super) const STEP: usize = 4;

/// A number of each row.
pub(super) type Lanes<T> = [T; ROWS];

/// [`CHUNK`] inputs of a panel. The fields that are used depend on the format; see [`Panel`].
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(super) struct Chunk {
    /// Unsigned weights, four inputs of each row at a time.
    pub q: [Lanes<[u8; STEP]>; CHUNK / STEP],
    /// The scale of each group; in Q4_K, in units.
    pub scale: [Lanes<f32>; CHUNK / 32],
    /// Q5_K and Q6_K: the scale of each group, as an integer, in units.
    pub whole: [Lanes<i32>; CHUNK / 16],
    /// Blocks of 256: the unit of the scales.
    pub unit: Lanes<f32>,
    /// Blocks of 32: the offset of a block's weights, which is multiplied with the sum of its inputs.
    pub shift: [Lanes<f32>; CHUNK / 32],
    /// Q4_K and Q5_K: the groups' minima, two neighbours to a lane.
    pub minima: [Lanes<[i16; 2]>; CHUNK / 64],
    /// Q4_K and Q5_K: the unit of the minima.
    pub minimum: Lanes<f32>,
}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            q: [[[0; STEP]; ROWS]; CHUNK / STEP],
            scale: [[0.0; ROWS]; CHUNK / 32],
            whole: [[0; ROWS]; CHUNK / 16],
            unit: [0.0; ROWS],
            shift: [[0.0; ROWS]; CHUNK / 32],
            minima: [[[0; 2]; ROWS]; CHUNK / 64],
            minimum: [0.0; ROWS],
        }
    }
}

/// Sixteen rows in memory, at equal distances, and the data that is read after them.
#[derive(Clone, Copy)]
pub(super) struct Source {
    start: *const u8,
    stride: usize,
    next: *const u8,
}

impl Source {
    /// Returns the address of byte `at` of row `r`.
    ///
    /// # Safety
    /// Row `r` has that byte.
    #[inline(always)]
    pub unsafe fn at(self, r: usize, at: usize) -> *const u8 {
        // SAFETY: by contract. Written so that few registers hold all sixteen addresses.
        unsafe { self.start.add(r / 4 * 4 * self.stride).add(r % 4 * self.stride + at) }
    }
}

impl Source {
    /// Prefetches `len` bytes of row `r` of the next data. Called row by row, between other work, because many
    /// requests at once would fill the CPU's queues and stall it.
    #[inline(always)]
    pub fn fetch_next(self, r: usize, len: usize) {
        let next = self.next.wrapping_add(r * self.stride);
        for line in (0..len).step_by(64) {
            // SAFETY: a hint, for which any address will do.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(next.wrapping_add(line).cast()) };
        }
    }
}

/// A format that can be unpacked into panels. Its integers are made unsigned, and the offset is undone with the sums
/// of the activations:
///
/// - Q4_K, Q5_K: `weight = unit * scale[g] * q - minimum * minima[g]`, with groups of 32;
/// - Q6_K: `weight = unit * scale[g] * (q - 32)`, with groups of 16;
/// - blocks of 32: `weight = scale[b] * q + shift[b]`.
pub(super) trait Panel: Format {
    /// Unpacks the first blocks of each row: `count` of them, which are one chunk or the rest of the row.
    ///
    /// # Safety
    /// The CPU has the features of the AVX-512 tier, and every row has those blocks.
    unsafe fn fill(rows: Source, count: usize, to: &mut Chunk);
}

/// Most bytes of a chunk in any format.
const MAX_CHUNK_BYTES: usize = 288;

/// A chunk of sixteen rows in memory, and its number of blocks.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub rows: Source,
    pub count: usize,
}

/// A buffer for the last rows of a weight if they are fewer than sixteen.
pub(super) struct Copied([u8; ROWS * MAX_CHUNK_BYTES]);

impl Default for Copied {
    fn default() -> Self {
        Self([0; ROWS * MAX_CHUNK_BYTES])
    }
}

/// Finds chunk number `chunk` of the sixteen rows from `start` on. Rows that the weight does not have are zero.
///
/// The data to prefetch: if `panels` panels are unpacked together, a panel's own next chunk, or after its last chunk
/// the first chunk of the panel `panels` further on; for a single panel, the same chunk of the next panel.
///
/// Every row of the result has `count` blocks of `F`, as long as the weight lives and `copied` is not used again.
#[inline(always)]
pub(super) fn part<F: Format>(task: &Task, start: usize, chunk: usize, panels: usize, copied: &mut Copied) -> Part {
    let blocks = task.weight.cols / F::LEN;
    let first = chunk * (CHUNK / F::LEN);
    let count = (CHUNK / F::LEN).min(blocks - first);
    let (at, size, stride) = (first * F::BYTES, count * F::BYTES, blocks * F::BYTES);
    if start + ROWS <= task.weight.rows {
        let bytes = &task.weight.bytes[start * stride..][..ROWS * stride];
        let start = bytes[at..].as_ptr();
        let next = match panels {
            1 => start.wrapping_add(ROWS * stride),
            _ if first + count < blocks => start.wrapping_add(size),
            _ => bytes.as_ptr().wrapping_add(panels * ROWS * stride),
        };
        return Part { rows: Source { start, stride, next }, count };
    }
    for (copy, row) in copied.0.chunks_exact_mut(MAX_CHUNK_BYTES).zip(start..task.weight.rows) {
        copy[..size].copy_from_slice(&task.weight.row(row)[at..at + size]);
    }
    let start = copied.0.as_ptr();
    Part { rows: Source { start, stride: MAX_CHUNK_BYTES, next: start }, count }
}
