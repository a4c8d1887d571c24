//! Sixteen rows of weights side by side, one row to a lane: what the AVX-512 and AMX kernels multiply.
//!
//! Unpacked this way, a product needs no sum across lanes, scales are vectors, and each row of activations costs the same
//! few instructions whether it comes alone or with others.
//!
//! A token's numbers do not depend on the batch it comes in. What blocks of 256 add up to, scales and minima included, is
//! exact in integers, and floating point begins with one multiplication and addition for each block, in order, whichever
//! kernel computes it (a single row of activations has one of its own, in [`super::avx512`]). Blocks of 32 have one kernel.
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

/// [`CHUNK`] inputs of a panel. Which of the fields hold something depends on the format; see [`Panel`].
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(super) struct Chunk {
    /// Unsigned weights, four inputs of each row at a time.
    pub q: [Lanes<[u8; STEP]>; CHUNK / STEP],
    /// What a group's integers are worth: in Q4_K, in units.
    pub scale: [Lanes<f32>; CHUNK / 32],
    /// Q5_K and Q6_K: the same, as integers.
    pub whole: [Lanes<i32>; CHUNK / 16],
    /// Blocks of 256: what a unit of the scales is worth.
    pub unit: Lanes<f32>,
    /// Blocks of 32: what a block adds for each unit of its inputs' sum.
    pub shift: [Lanes<f32>; CHUNK / 32],
    /// Q4_K and Q5_K: the groups' minima, two neighbours to a lane.
    pub minima: [Lanes<[i16; 2]>; CHUNK / 64],
    /// Q4_K and Q5_K: what a unit of the minima is worth.
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

/// Sixteen rows in memory, at equal distances, and what is read after them.
#[derive(Clone, Copy)]
pub(super) struct Source {
    start: *const u8,
    stride: usize,
    next: *const u8,
}

impl Source {
    /// Byte `at` of row `r`.
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
    /// Fetches `len` bytes of row `r` of what comes next, early: in between lies enough work for memory to answer. Row by
    /// row, between other work: many at once would fill the queues of the CPU and hold everything up.
    #[inline(always)]
    pub fn fetch_next(self, r: usize, len: usize) {
        let next = self.next.wrapping_add(r * self.stride);
        for line in (0..len).step_by(64) {
            // SAFETY: a hint, for which any address will do.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(next.wrapping_add(line).cast()) };
        }
    }
}

/// A format that can be unpacked into panels. Its integers are made unsigned, and what that takes is undone through the
/// sums of the activations:
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

/// Bytes of a chunk in the largest format.
const LARGEST: usize = 288;

/// A chunk of sixteen rows in memory, and how many blocks it has.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub rows: Source,
    pub count: usize,
}

/// Where the last rows of a weight are copied when they are fewer than sixteen.
pub(super) struct Copied([u8; ROWS * LARGEST]);

impl Default for Copied {
    fn default() -> Self {
        Self([0; ROWS * LARGEST])
    }
}

/// Finds chunk number `chunk` of the sixteen rows from `start` on. Rows that the weight does not have are zero.
///
/// Of `panels` panels that are unpacked together, one has its own next chunk to come, or the first one that many panels on;
/// a panel alone is followed by the next one, whose same chunk is fetched while this one's chunks are worked through.
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
    for (copy, row) in copied.0.chunks_exact_mut(LARGEST).zip(start..task.weight.rows) {
        copy[..size].copy_from_slice(&task.weight.row(row)[at..at + size]);
    }
    let start = copied.0.as_ptr();
    Part { rows: Source { start, stride: LARGEST, next: start }, count }
}
