//! The product of a low-rank adapter: `y += scale B (A x)` (Hu et al. 2021, LoRA).
//!
//! `A` is multiplied first of all tasks of the region. Whoever has computed rows of the base's product then adds `B`'s part to
//! them, while they are in the cache: no region more, and `B` is read by all threads.

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

/// The largest rank: no adapter that is worth its time comes near it.
pub const MAX_RANK: usize = 256;

/// How often a thread looks for `A`'s product before it lets others run: it is there nearly always.
const LOOKS: u32 = 200;

/// A weight, with what is added to its product.
#[derive(Debug, Clone, Copy)]
pub struct Adapted<'a> {
    /// The weight.
    pub weight: &'a Weight,
    /// The addition.
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
    ready: OnceLock<Ready>,
}

/// Both halves as they are multiplied.
#[derive(Debug)]
pub(super) struct Ready {
    down: Panels,
    up: Panels,
    rank: usize,
}

impl LowRank {
    /// The addition `scale * up * down`.
    ///
    /// # Errors
    /// [`ModelError::Engine`] where the two do not share a rank within 1 to [`MAX_RANK`], the scale is no number, or the inputs
    /// do not fill blocks of 32.
    pub fn new(down: Weight, up: Weight, scale: f32) -> Result<Self, ModelError> {
        let rank = down.rows();
        if rank != up.cols() || rank == 0 || rank > MAX_RANK || !scale.is_finite() {
            return Err(ModelError::Engine(format!("rank {rank} and {}, scaled by {scale}, is no adapter", up.cols())));
        }
        if !down.cols().is_multiple_of(Form::Block32.block()) {
            return Err(ModelError::Engine(format!("an adapter's {} inputs do not fill blocks of 32", down.cols())));
        }
        Ok(Self { down, up, scale, ready: OnceLock::new() })
    }

    /// The rank.
    pub fn rank(&self) -> usize {
        self.down.rows()
    }

    /// True if it can be added to the products of this weight.
    pub fn fits(&self, weight: &Weight) -> bool {
        self.down.cols() == weight.cols() && self.up.rows() == weight.rows()
    }

    /// How the input is to be rounded: as K-quants have it, where it fills their blocks.
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
    /// Tasks that `A` is multiplied in.
    pub fn tasks(&self) -> usize {
        self.down.len()
    }

    /// Multiplies the part of `A` that is task number `task` with `m` rows.
    pub fn multiply(&self, task: usize, x: X<'_>, m: usize, hidden: &Out) {
        let outputs = task * PANEL..self.rank.min((task + 1) * PANEL);
        add(&self.down, &outputs, x, m, hidden, |out| out.fill(0.0));
    }

    /// Has the part of `B` that belongs to these rows brought near, while they are computed: it is read in pieces, which the
    /// hardware does not foresee.
    pub fn fetch(&self, rows: &Range<usize>) {
        fetch(self.up.of(rows));
    }

    /// Adds to the rows that a task of the weight has computed. `hidden` is `A`'s product, `m x rank`.
    pub fn add_to(&self, task: &Task, hidden: &[f32], rows: &mut Rows) {
        // A task begins with a panel, and ends with one or with the matrix.
        debug_assert!(task.rows.start.is_multiple_of(PANEL));
        rows.fill(hidden.chunks_exact(self.rank));
        add(&self.up, &task.rows, rows.x(), task.m, task.out, |_| {});
    }
}

/// Adds products to these outputs of `m` rows, each of which is given to `begin` before. No other task uses the same outputs.
fn add(panels: &Panels, outputs: &Range<usize>, x: X<'_>, m: usize, to: &Out, begin: impl Fn(&mut [f32])) {
    /// Rows that are looked up together.
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

/// Has memory brought near. A hint, which only some CPUs are given.
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
