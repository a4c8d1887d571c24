//! The layout that weights are unpacked to: a chunk of inputs of as many rows as a vector has lanes.

use super::super::activation::CHUNK;
use std::arch::aarch64::int8x16_t;

/// Rows of a panel: lanes of a vector.
pub(super) const ROWS: usize = 4;
/// Inputs of each row in the four vectors that are multiplied together.
pub(super) const STEP: usize = 16;

/// A number of each row.
pub(super) type Lanes<T> = [T; ROWS];

/// [`CHUNK`] inputs of a panel. The fields that are used depend on the format; see [`Panel`](super::unpack::Panel).
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub(super) struct Chunk {
    /// The weights, signed, sixteen inputs of every row at a time, in an [`Order`].
    pub q: [[[i8; 16]; ROWS]; CHUNK / STEP],
    /// Blocks of 256: the integer scale of each group.
    pub scale: [Lanes<i32>; CHUNK / 16],
    /// Q4_K and Q5_K: the groups' minima.
    pub minima: [Lanes<i16>; CHUNK / 32],
    /// Blocks of 256: the unit of the scales.
    pub unit: Lanes<f32>,
    /// Blocks of 256: the unit of the minima.
    pub minimum: Lanes<f32>,
    /// Blocks of 32: their scales.
    pub factor: [Lanes<f32>; CHUNK / 32],
    /// Blocks of 32: the offset of a block's weights, which is multiplied with the sum of its inputs.
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

/// The order of sixteen inputs of every row in the four vectors of a step, which depends on the multiplying
/// instruction.
pub(super) trait Order {
    /// Arranges sixteen inputs of each row of a panel in this order.
    fn arrange(rows: [int8x16_t; ROWS]) -> [int8x16_t; ROWS];
}
