//! The kernels in plain Rust: the reference of every other tier.

use super::Task;
use super::activation::Form;
use super::output::Out;
use crate::engine::quant::{Format, Kind, Unpacked, f16, with_format};

/// Computes one task.
pub(super) fn rows(task: &Task) {
    with_format!(task.weight.kind, F => quantised::<F>(task), plain(task))
}

/// Multiplies rows of plain numbers: each is converted once and multiplied in `f32`.
fn plain(task: &Task) {
    let &Task { weight, x, m, out, .. } = task;
    for row in task.rows.clone() {
        let bytes = weight.row(row);
        for i in 0..m {
            let x = &x[i * weight.cols..][..weight.cols];
            let value = match weight.kind {
                Kind::F16 => dot(bytes.chunks_exact(2).map(f16), x),
                Kind::BF16 => dot(
                    bytes.chunks_exact(2).map(|b| f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16)),
                    x,
                ),
                _ => dot(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])), x),
            };
            write(out, i, row, value);
        }
    }
}

fn dot(weights: impl Iterator<Item = f32>, x: &[f32]) -> f32 {
    let mut parts = [0.0f32; 8];
    for (at, (w, &x)) in weights.zip(x).enumerate() {
        parts[at % 8] += w * x;
    }
    parts.iter().sum()
}

/// Multiplies rows of a block format: each block is unpacked once and multiplied, in integers, with the same block of
/// every row of `x`.
fn quantised<F: Format>(task: &Task) {
    let &Task { weight, activations, m, out, .. } = task;
    let k = weight.cols;
    let x = activations.get(Form::of(F::KIND));
    let mut block = Unpacked::default();
    let mut sums = vec![0.0f32; m];
    for row in task.rows.clone() {
        sums.fill(0.0);
        for (b, bytes) in weight.row(row).chunks_exact(F::BYTES).enumerate() {
            F::unpack(bytes, &mut block);
            for (i, sum) in sums.iter_mut().enumerate() {
                let at = i * k + b * F::LEN;
                let mut value = 0.0;
                for g in 0..F::LEN / F::GROUP {
                    let q = &x.q[at + g * F::GROUP..][..F::GROUP];
                    let dot: i32 =
                        block.q[g * F::GROUP..].iter().zip(q).map(|(&w, &x)| i32::from(w) * i32::from(x)).sum();
                    let of: i32 =
                        x.sums[(at + g * F::GROUP) / 16..][..F::GROUP / 16].iter().map(|&s| i32::from(s)).sum();
                    value += block.scale[g] * dot as f32 - block.offset[g] * of as f32;
                }
                *sum += x.scale[at / F::LEN] * value;
            }
        }
        for (i, &sum) in sums.iter().enumerate() {
            write(out, i, row, sum);
        }
    }
}

#[allow(unsafe_code)]
fn write(out: &Out, i: usize, row: usize, value: f32) {
    // SAFETY: called for the rows of one task only.
    unsafe { out.write(i, row, value) }
}
