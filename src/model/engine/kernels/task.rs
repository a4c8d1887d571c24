//! The part of a product that one thread computes at a time.

use super::activation::Activations;
use super::output::Out;
use super::weight::Weight;
use std::ops::Range;

/// The rows of a product that a task computes, with its inputs and output.
pub(super) struct Task<'a> {
    pub(super) weight: &'a Weight,
    pub(super) rows: Range<usize>,
    pub(super) x: &'a [f32],
    pub(super) activations: &'a Activations,
    pub(super) m: usize,
    pub(super) out: &'a Out<'a>,
}
