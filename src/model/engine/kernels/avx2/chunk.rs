//! The layout that weights are unpacked to: a chunk of inputs of as many rows as a vector has lanes.

use super::super::activation::CHUNK;

/// Rows of a panel: lanes of a vector of 256 bits.
pub(super) const ROWS: usize = 8;

/// Inputs of a row that are multiplied in one step.
pub(super) const STEP: usize = 4;

/// A number of each row.
pub(super) type Lanes<T> = [T; ROWS];

/// [`CHUNK`] inputs of a panel. The fields that are used depend on the format; see [`Panel`](super::unpack::Panel).
#[derive(Debug, Clone)]
#[repr(C, align(32))]
pub(super) struct Chunk {
    /// The weights, four inputs of each row at a time; signed in Q8_0.
    pub q: [Lanes<[u8; STEP]>; CHUNK / STEP],
    /// Blocks of 256: the integer scale of each group, twice.
    pub scale: [Lanes<[i16; 2]>; CHUNK / 16],
    /// Q4_K and Q5_K: the groups' minima, twice. Q6_K: the scales of two neighbours.
    pub minima: [Lanes<[i16; 2]>; CHUNK / 32],
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
            q: [[[0; STEP]; ROWS]; CHUNK / STEP],
            scale: [[[0; 2]; ROWS]; CHUNK / 16],
            minima: [[[0; 2]; ROWS]; CHUNK / 32],
            unit: [0.0; ROWS],
            minimum: [0.0; ROWS],
            factor: [[0.0; ROWS]; CHUNK / 32],
            shift: [[0.0; ROWS]; CHUNK / 32],
        }
    }
}
