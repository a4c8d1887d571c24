//! The product of a low-rank adapter: `y += scale B (A x)` (Hu et al. 2021, LoRA).
//!
//! `A` is multiplied by the first tasks of the region. A task that has computed rows of the base's product then adds
//! `B`'s part to them, while they are in the cache: this needs no further region, and all threads read `B`.

mod panels;

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::activation::Form;
use super::output::Out;
use super::task::Task;
use super::weight::Weight;
use crate::ModelError;
use crate::engine::threads::Pool;
use panels::{PANEL, Panels};
pub(super) use panels::{Rows, X};

/// The largest rank; far above that of useful adapters.
pub const MAX_RANK: usize = 256;

/// The number of spins before a thread that waits for `A`'s product yields. It is nearly always complete already.
const MAX_SPINS: u32 = 200;

/// A weight with its low-rank addition.
#[derive(Debug, Clone, Copy)]
pub struct Adapted<'a> {
    /// The weight.
    pub weight: &'a Weight,
    /// The addition.
    pub low_rank: Option<&'a LowRank>,
}

/// A low-rank addition to a weight. Its bytes are read at the first use.
#[derive(Debug)]
pub struct LowRank {
    /// `A`: as many rows as the rank, as many columns as the weight.
    down: Weight,
    /// `B`: as many rows as the weight, as many columns as the rank.
    up: Weight,
    scale: f32,
    ready: OnceLock<Ready>,
}

/// Both halves, in the form in which they are multiplied.
#[derive(Debug)]
pub(super) struct Ready {
    down: Panels,
    up: Panels,
    rank: usize,
}

impl LowRank {
    /// Returns the addition `scale * up * down`.
    ///
    /// # Errors
    /// [`ModelError::Engine`] if the two do not share a rank within 1 to [`MAX_RANK`], the scale is not finite, or
    /// the inputs do not fill blocks of 32.
    pub fn new(down: Weight, up: Weight, scale: f32) -> Result<Self, ModelError> {
        let rank = down.rows();
        if rank != up.cols() || rank == 0 || rank > MAX_RANK || !scale.is_finite() {
            return Err(ModelError::Engine(format!(
                "rank {rank} and {}, scaled by {scale}, is not an adapter",
                up.cols()
            )));
        }
        if !down.cols().is_multiple_of(Form::Block32.block()) {
            return Err(ModelError::Engine(format!("an adapter's {} inputs do not fill blocks of 32", down.cols())));
        }
        Ok(Self { down, up, scale, ready: OnceLock::new() })
    }

    /// Returns the rank.
    pub fn rank(&self) -> usize {
        self.down.rows()
    }

    /// True if it can be added to the products of this weight.
    pub fn fits(&self, weight: &Weight) -> bool {
        self.down.cols() == weight.cols() && self.up.rows() == weight.rows()
    }

    /// Returns the form of the rounded input: that of K-quants, if the input fills their blocks.
    pub(super) fn form(&self) -> Form {
        let large = self.down.cols().is_multiple_of(Form::Block256.block());
        if large { Form::Block256 } else { Form::Block32 }
    }

    pub(super) fn ready(&self, pool: &Pool) -> &Ready {
        self.ready.get_or_init(|| Ready {
            down: Panels::new(&self.down, self.form().block(), 1.0, pool),
            up: Panels::new(&self.up, self.rank(), self.scale, pool),
            rank: self.rank(),
        })
    }
}

impl Ready {
    /// Returns the number of tasks that multiply `A`.
    pub fn tasks(&self) -> usize {
        self.down.len()
    }

    /// Multiplies the part of `A` that is task number `task` with `m` rows.
    pub fn multiply(&self, task: usize, x: X<'_>, m: usize, hidden: &Out) {
        let outputs = task * PANEL..self.rank.min((task + 1) * PANEL);
        add(&self.down, &outputs, x, m, hidden, |out| out.fill(0.0));
    }

    /// Prefetches the part of `B` that belongs to these rows, while they are computed: it is read in pieces, which the
    /// hardware does not predict.
    pub fn fetch(&self, rows: &Range<usize>) {
        fetch(self.up.of(rows));
    }

    /// Adds to the rows that a task of the weight has computed. `hidden` is `A`'s product, `m x rank`.
    pub fn add_to(&self, task: &Task, hidden: &[f32], rows: &mut Rows) {
        // a task begins with a panel, and ends with one or with the matrix
        debug_assert!(task.rows.start.is_multiple_of(PANEL));
        rows.fill(hidden.chunks_exact(self.rank));
        add(&self.up, &task.rows, rows.x(), task.m, task.out, |_| {});
    }
}

/// Adds products to these outputs of `m` rows, after calling `begin` on each. No other task uses the same outputs.
fn add(panels: &Panels, outputs: &Range<usize>, x: X<'_>, m: usize, to: &Out, begin: impl Fn(&mut [f32])) {
    /// Rows of a group that is computed together.
    const TOGETHER: usize = 32;
    let some = panels.of(outputs);
    for first in (0..m).step_by(TOGETHER) {
        let mut outs: [&mut [f32]; TOGETHER] = std::array::from_fn(|_| &mut [][..]);
        let outs = &mut outs[..TOGETHER.min(m - first)];
        for (i, out) in outs.iter_mut().enumerate() {
            // SAFETY: the columns are those of one task only, and each row is asked for once.
            #[allow(unsafe_code)]
            let part = unsafe { to.part(first + i, outputs.start, outputs.len()) };
            begin(part);
            *out = part;
        }
        panels.add(some, x, first, outs);
    }
}

/// Prefetches memory; a hint, on x86-64 only.
fn fetch<T>(data: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of_val(data)).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: any address will do.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(data.as_ptr().cast::<i8>().wrapping_add(line));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = data;
}

/// Counts the tasks of `A` that are not complete. The tasks of a region are claimed in order and those of `A` come
/// first, so that a thread that waits for them only waits for tasks that other threads are computing.
pub(super) struct PendingTasks(AtomicUsize);

/// A running task of `A`; it is complete when this is dropped, also by a panic.
pub(super) struct RunningTask<'a>(&'a AtomicUsize);

impl PendingTasks {
    /// Returns a counter of `tasks` tasks.
    pub(super) fn new(tasks: usize) -> Self {
        Self(AtomicUsize::new(tasks))
    }

    /// Begins a task.
    pub(super) fn begin(&self) -> RunningTask<'_> {
        RunningTask(&self.0)
    }

    /// Waits until all tasks are complete; then the data that they wrote can be read.
    pub(super) fn wait(&self) {
        let mut spins = 0;
        while self.0.load(Ordering::Acquire) != 0 {
            spins += 1;
            if spins < MAX_SPINS {
                std::hint::spin_loop();
            } else {
                // the thread that computes it may need this core
                std::thread::yield_now();
            }
        }
    }
}

impl Drop for RunningTask<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Splits a buffer into the products of several `A`.
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
