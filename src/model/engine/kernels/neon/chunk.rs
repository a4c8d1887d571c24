//! The shape that weights are unpacked into: some inputs of as many rows as a vector has lanes.

use super::super::activation::CHUNK;
use std::arch::aarch64::int8x16_t;

/// Rows of a panel: lanes of a vector.
pub(super) const ROWS: usize = 4;
/// Inputs of each row in the four vectors that are multiplied together.
pub(super) const STEP: usize = 16;

/// A number of each row.
pub(super) type Lanes<T> = [T; ROWS];

/// [`CHUNK`] inputs of a panel. Which of the fields hold something depends on the format; see [`Panel`](super::unpack::Panel).
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(super) struct Chunk {
    /// The weights, signed, sixteen inputs of every row at a time, in an [`Order`].
    pub q: [[[i8; 16]; ROWS]; CHUNK / STEP],
    /// Blocks of 256: the integer scale of each group.
    pub scale: [Lanes<i32>; CHUNK / 16],
    /// Q4_K and Q5_K: the groups' minima.
    pub minima: [Lanes<i16>; CHUNK / 32],
    /// Blocks of 256: what a unit of the scales is worth, and of the minima.
    pub unit: Lanes<f32>,
    pub minimum: Lanes<f32>,
    /// Blocks of 32: their scales, and what they add for each unit of their inputs' sum.
    pub factor: [Lanes<f32>; CHUNK / 32],
    pub shift: [Lanes<f32>; CHUNK / 32],
}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            q: [[[0; 16]; ROWS]; CHUNK / STEP],
            scale: [[0; ROWS]; CHUNK / 16],
            minima: [[0; ROWS]; CHUNK / 32],
            unit: [0.0; ROWS],
            minimum: [0.0; ROWS],
            factor: [[0.0; ROWS]; CHUNK / 32],
            shift: [[0.0; ROWS]; CHUNK / 32],
        }
    }
}

/// How sixteen inputs of every row lie in the four vectors of a step: an instruction that multiplies them has its own.
pub(super) trait Order {
    /// Sixteen inputs of each row of a panel, in that order.
    fn arrange(rows: [int8x16_t; ROWS]) -> [int8x16_t; ROWS];
}
