//! The input of a product, rounded to what the kernels multiply.

use super::Kind;
use crate::model::engine::threads::Pool;

/// What a kind of weight is multiplied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The numbers as they are.
    Plain,
    /// Signed bytes with a scale per 32.
    Block32,
    /// Signed bytes with a scale per 256.
    Block256,
}

impl Form {
    pub(super) const fn of(kind: Kind) -> Self {
        match kind.block_len() {
            1 => Self::Plain,
            32 => Self::Block32,
            _ => Self::Block256,
        }
    }

    /// Numbers that share a scale.
    pub(super) const fn block(self) -> usize {
        match self {
            Self::Plain => 1,
            Self::Block32 => 32,
            Self::Block256 => 256,
        }
    }
}

/// Activations as signed bytes: `x = scale * q`.
#[derive(Debug, Default)]
pub(super) struct Rounded {
    /// `m x k` integers within `-127..=127`.
    pub(super) q: Vec<i8>,
    /// Scale of each block, `m x k / block`.
    pub(super) scale: Vec<f32>,
    /// Sum of the integers of each 16, `m x k / 16`.
    pub(super) sums: Vec<i16>,
    ready: bool,
}

/// The forms of one input that a call has asked for so far. Buffers are kept from call to call.
#[derive(Debug, Default)]
pub(super) struct Activations {
    by32: Rounded,
    by256: Rounded,
}

impl Activations {
    /// Rounds `x` (`m x k`) to `form`, unless this call has done so already.
    pub(super) fn prepare(&mut self, form: Form, x: &[f32], m: usize, k: usize, _pool: &Pool) {
        let rounded = match form {
            Form::Plain => return,
            Form::Block32 => &mut self.by32,
            Form::Block256 => &mut self.by256,
        };
        if rounded.ready {
            return;
        }
        let block = form.block();
        rounded.q.resize(m * k, 0);
        rounded.scale.resize(m * k / block, 0.0);
        rounded.sums.resize(m * k / 16, 0);
        let Rounded { q, scale, sums, ready } = rounded;
        for (((x, q), scale), sums) in
            x.chunks_exact(block).zip(q.chunks_exact_mut(block)).zip(scale).zip(sums.chunks_exact_mut(block / 16))
        {
            *scale = round(x, q, sums);
        }
        *ready = true;
    }

    /// Ends a call: the next one has another input.
    pub(super) fn forget(&mut self) {
        self.by32.ready = false;
        self.by256.ready = false;
    }

    pub(super) fn get(&self, form: Form) -> &Rounded {
        match form {
            Form::Block256 => &self.by256,
            Form::Plain | Form::Block32 => &self.by32,
        }
    }
}

/// Rounds one block and returns its scale. The largest magnitude becomes 127; ties go away from zero.
fn round(x: &[f32], q: &mut [i8], sums: &mut [i16]) -> f32 {
    let largest = x.iter().fold(0.0f32, |a, &x| a.max(x.abs()));
    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    for ((x, q), sum) in x.chunks_exact(16).zip(q.chunks_exact_mut(16)).zip(sums) {
        let mut total = 0;
        for (&x, q) in x.iter().zip(q) {
            *q = (x * inverse).round() as i8;
            total += i16::from(*q);
        }
        *sum = total;
    }
    largest / 127.0
}
