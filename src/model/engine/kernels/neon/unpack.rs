//! Unpacks blocks of the file to panels of four rows.

use std::arch::aarch64::*;

use super::chunk::{Chunk, Order, ROWS, STEP};
use super::{Small, half_at, less, load, nibbles, sixes, with_fifths};
use crate::engine::quant::{Format, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0, k_scales};

/// The blocks of one chunk of four rows, or of the rest of the rows.
pub(super) type Blocks<'a> = [&'a [u8]; ROWS];

/// A format that can be unpacked into panels:
///
/// - Q4_K, Q5_K: `weight = unit * scale[g] * q - minimum * minima[g]`, with groups of 32;
/// - Q6_K: `weight = unit * scale[g] * q`, with groups of 16;
/// - blocks of 32: `weight = factor[b] * q + shift[b]`.
pub(super) trait Panel: Format {
    /// True if there are minima, or shifts.
    const MINIMA: bool;

    /// Unpacks the rows, in the order of `O`.
    fn fill<O: Order>(rows: &Blocks, to: &mut Chunk);
}

/// Writes sixteen inputs of each row, which are step `step` of a panel.
#[inline(always)]
fn put<O: Order>(to: &mut Chunk, step: usize, rows: [int8x16_t; ROWS]) {
    for (to, v) in to.q[step].iter_mut().zip(O::arrange(rows)) {
        // SAFETY: sixteen bytes are one vector.
        unsafe { vst1q_s8(to.as_mut_ptr(), v) };
    }
}

/// Unpacks the head of Q4_K and Q5_K.
#[inline(always)]
fn k_head(rows: &Blocks, to: &mut Chunk) {
    for (r, block) in rows.iter().enumerate() {
        (to.unit[r], to.minimum[r]) = (half_at(block, 0), half_at(block, 2));
        let (scales, minima) = k_scales(&block[4..16]);
        for (g, (scale, minimum)) in scales.to_le_bytes().into_iter().zip(minima.to_le_bytes()).enumerate() {
            (to.scale[g][r], to.minima[g][r]) = (i32::from(scale), i16::from(minimum));
        }
    }
}

impl Panel for Q4K {
    const MINIMA: bool = true;

    #[inline(always)]
    fn fill<O: Order>(rows: &Blocks, to: &mut Chunk) {
        k_head(rows, to);
        for j in 0..4 {
            for i in 0..2 {
                // 32 bytes hold group 2 j in their low nibbles and group 2 j + 1 in the high ones
                let q = rows.map(|block| nibbles(load(block, 16 + j * 32 + i * 16)));
                put::<O>(to, 4 * j + i, q.map(|[low, _]| less(low, 0)));
                put::<O>(to, 4 * j + 2 + i, q.map(|[_, high]| less(high, 0)));
            }
        }
    }
}

impl Panel for Q5K {
    const MINIMA: bool = true;

    #[inline(always)]
    fn fill<O: Order>(rows: &Blocks, to: &mut Chunk) {
        k_head(rows, to);
        for i in 0..2 {
            // group g has bit g of each byte
            let mut fifths = rows.map(|block| load(block, 16 + i * 16));
            for j in 0..4 {
                let q: [[uint8x16_t; 2]; ROWS] =
                    std::array::from_fn(|r| with_fifths(nibbles(load(rows[r], 48 + j * 32 + i * 16)), fifths[r]));
                put::<O>(to, 4 * j + i, q.map(|[low, _]| less(low, 0)));
                put::<O>(to, 4 * j + 2 + i, q.map(|[_, high]| less(high, 0)));
                // SAFETY: NEON belongs to every CPU of this architecture.
                fifths = fifths.map(|v| unsafe { vshrq_n_u8::<2>(v) });
            }
        }
    }
}

impl Panel for Q6K {
    const MINIMA: bool = false;

    #[inline(always)]
    fn fill<O: Order>(rows: &Blocks, to: &mut Chunk) {
        for (r, block) in rows.iter().enumerate() {
            to.unit[r] = half_at(block, 208);
            for (g, &scale) in block[192..208].iter().enumerate() {
                to.scale[g][r] = i32::from(scale as i8);
            }
        }
        for half in 0..2 {
            for i in 0..2 {
                let at = half * 64 + i * 16;
                let q = rows
                    .map(|block| sixes(load(block, at), load(block, at + 32), load(block, 128 + half * 32 + i * 16)));
                for quarter in 0..4 {
                    let step = (half * 128 + quarter * 32) / STEP + i;
                    put::<O>(to, step, q.map(|q| less(q[quarter], 32)));
                }
            }
        }
    }
}

/// Implements [`Panel`] for formats with 32 weights in a block.
macro_rules! blocks32 {
    ($($format:ty),*) => {$(
        impl Panel for $format {
            const MINIMA: bool = <Self as Small>::MINIMUM;

            #[inline(always)]
            fn fill<O: Order>(rows: &Blocks, to: &mut Chunk) {
                for (b, at) in (0..rows[0].len()).step_by(Self::BYTES).enumerate() {
                    let blocks = rows.map(|row| &row[at..][..Self::BYTES]);
                    to.factor[b] = blocks.map(|block| half_at(block, 0));
                    if Self::MINIMA {
                        to.shift[b] = blocks.map(|block| half_at(block, 2));
                    }
                    let q = blocks.map(<Self as Small>::q);
                    put::<O>(to, 2 * b, q.map(|[low, _]| low));
                    put::<O>(to, 2 * b + 1, q.map(|[_, high]| high));
                }
            }
        }
    )*};
}

blocks32!(Q4_0, Q4_1, Q5_0, Q5_1, Q8_0);
