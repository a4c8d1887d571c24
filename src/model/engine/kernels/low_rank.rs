//! What a low-rank adapter adds to a product: `y += scale B (A x)` (Hu et al. 2021, LoRA).
//!
//! `A` is a weight like any other and is multiplied like one, first of all tasks of the region. Whoever has computed rows of
//! the base's product then adds `B`'s part to them, while they are in the cache: no region more, and `B` is read by all threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Out, Task, Weight};
use crate::model::ModelError;
use crate::model::engine::panels::{self, Number, PANEL};
use crate::model::engine::quant::Kind;
use crate::model::engine::simd;

/// The largest rank: no adapter that is worth its time comes near it.
pub const MAX_RANK: usize = 256;

/// How often a thread looks for `A`'s product before it lets others run: it is there nearly always.
const LOOKS: u32 = 200;

/// A weight, with what is added to its product.
#[derive(Debug, Clone, Copy)]
pub struct Adapted<'a> {
    /// The weight.
    pub weight: &'a Weight,
    /// What is added.
    pub low_rank: Option<&'a LowRank>,
}

/// A low-rank addition to a weight. Its memory is read when it is used first.
#[derive(Debug)]
pub struct LowRank {
    /// `A`: as many rows as the rank, as many columns as the weight.
    down: Weight,
    /// `B`: as many rows as the weight, as many columns as the rank.
    up: Weight,
    scale: f32,
    panels: OnceLock<Panels>,
}

/// `B`, sixteen outputs at a time: for each of the rank's columns, their sixteen numbers. The last panel is filled with zeros.
#[derive(Debug)]
enum Panels {
    /// As raw bits of f16.
    Half(Vec<u16>),
    Full(Vec<f32>),
}

impl LowRank {
    /// The addition `scale * up * down`.
    ///
    /// # Errors
    /// [`ModelError::Engine`] where the two do not share a rank within 1 to [`MAX_RANK`], or the scale is no number.
    pub fn new(down: Weight, up: Weight, scale: f32) -> Result<Self, ModelError> {
        let rank = down.rows();
        if rank != up.cols() || rank == 0 || rank > MAX_RANK || !scale.is_finite() {
            return Err(ModelError::Engine(format!("rank {rank} and {}, scaled by {scale}, is no adapter", up.cols())));
        }
        Ok(Self { down, up, scale, panels: OnceLock::new() })
    }

    /// The rank.
    pub fn rank(&self) -> usize {
        self.down.rows()
    }

    /// `A`.
    pub(super) fn down(&self) -> &Weight {
        &self.down
    }

    /// True if it can be added to the products of this weight.
    pub fn fits(&self, weight: &Weight) -> bool {
        self.down.cols() == weight.cols() && self.up.rows() == weight.rows()
    }

    /// Multiplies what a task of `A` has computed by the scale.
    pub(super) fn scale(&self, task: &Task) {
        for i in 0..task.m {
            // SAFETY: the columns are rows of this task only.
            #[allow(unsafe_code)]
            let part = unsafe { task.out.part(i, task.rows.start, task.rows.len()) };
            simd::scale(part, self.scale);
        }
    }

    /// Adds `B`'s part to the rows that a task of the weight has computed. `hidden` is `A`'s scaled product, `m x rank`.
    pub(super) fn add(&self, task: &Task, hidden: &[f32]) {
        match self.panels.get_or_init(|| Panels::of(&self.up)) {
            Panels::Half(all) => add(task, hidden, self.rank(), all),
            Panels::Full(all) => add(task, hidden, self.rank(), all),
        }
    }
}

/// Rows of the input whose outputs are looked up together.
const TOGETHER: usize = 32;

fn add<N: Number>(task: &Task, hidden: &[f32], rank: usize, all: &[N]) {
    // A task begins with a panel, and ends with one or with the matrix.
    let rows = task.rows.clone();
    debug_assert!(rows.start.is_multiple_of(PANEL));
    let some = &all[rows.start * rank..rows.end.next_multiple_of(PANEL) * rank];
    for (first, hidden) in hidden.chunks(TOGETHER * rank).enumerate() {
        let mut outs: [&mut [f32]; TOGETHER] = std::array::from_fn(|_| &mut [][..]);
        let count = hidden.len() / rank;
        for (i, out) in outs[..count].iter_mut().enumerate() {
            // SAFETY: the columns are rows of this task only, and each row of the output is asked for once.
            #[allow(unsafe_code)]
            let part = unsafe { task.out.part(first * TOGETHER + i, rows.start, rows.len()) };
            *out = part;
        }
        panels::add(hidden, rank, some, &mut outs[..count]);
    }
}

impl Panels {
    fn of(up: &Weight) -> Self {
        match up.kind() {
            Kind::F16 => Self::Half(turn(up, |row, out| {
                for (out, bytes) in out.iter_mut().zip(row.chunks_exact(2)) {
                    *out = u16::from_le_bytes([bytes[0], bytes[1]]);
                }
            })),
            kind @ (Kind::F32 | Kind::BF16) => Self::Full(turn(up, |row, out| kind.dequantize(row, out))),
            // what such a block stands for is far coarser than f16
            kind => {
                let mut numbers = vec![0.0; up.cols()];
                Self::Half(turn(up, |row, out| {
                    kind.dequantize(row, &mut numbers);
                    simd::narrow(&numbers, out);
                }))
            }
        }
    }
}

/// The rows of a matrix, as `read` makes them numbers, in panels.
fn turn<T: Copy + Default>(up: &Weight, mut read: impl FnMut(&[u8], &mut [T])) -> Vec<T> {
    let rank = up.cols();
    let mut panels = vec![T::default(); up.rows().next_multiple_of(PANEL) * rank];
    let mut numbers = vec![T::default(); rank];
    for row in 0..up.rows() {
        read(up.row(row), &mut numbers);
        let panel = &mut panels[row / PANEL * PANEL * rank..];
        for (j, &number) in numbers.iter().enumerate() {
            panel[j * PANEL + row % PANEL] = number;
        }
    }
    panels
}

/// Counts the tasks of `A` that are still to be done. The tasks of a region are claimed in order and those of `A` come first:
/// whoever waits for them waits for what somebody is computing.
pub(super) struct Waiting(AtomicUsize);

/// A task of `A` under way: it is done when this is dropped, by a panic too.
pub(super) struct Begun<'a>(&'a AtomicUsize);

impl Waiting {
    /// So many are to be done.
    pub(super) fn new(tasks: usize) -> Self {
        Self(AtomicUsize::new(tasks))
    }

    /// Begins one of them.
    pub(super) fn begin(&self) -> Begun<'_> {
        Begun(&self.0)
    }

    /// Returns when all are done: what they wrote can be read.
    pub(super) fn wait(&self) {
        let mut looks = 0;
        while self.0.load(Ordering::Acquire) != 0 {
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else {
                // whoever computes it may want this core
                std::thread::yield_now();
            }
        }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Where the products of several `A` stand, one after another.
pub(super) fn split<'a>(hidden: &'a mut [f32], lows: &[&LowRank], m: usize) -> Vec<Out<'a>> {
    let mut rest = hidden;
    lows.iter()
        .map(|low| {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(m * low.rank());
            rest = behind;
            Out::new(part, low.rank())
        })
        .collect()
}
