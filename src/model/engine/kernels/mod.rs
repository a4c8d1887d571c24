//! Matrix products on quantised weights, straight from the mapped file.
//!
//! [`Kernels`] is the only entry: it quantises the activations once, splits the rows over the pool and calls the code
//! of one [`Tier`]. `portable` is the reference that the other tiers are tested against, and the fallback. The block
//! formats are in [`super::quant`].

mod activation;
mod aligned;
#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod low_rank;
#[cfg(target_arch = "aarch64")]
mod neon;
mod output;
#[cfg(target_arch = "x86_64")]
mod panel;
mod portable;
mod task;
mod tier;
mod weight;

use std::ops::Range;
use std::sync::Arc;

pub use low_rank::{Adapted, LowRank, MAX_RANK};
use low_rank::{PendingTasks, Ready, X};
pub use tier::Tier;
pub use weight::Weight;

use super::threads::Pool;
use activation::{Activations, Form, Layout};
use output::Out;
use task::Task;

/// Products of weights and activations on one pool with the code of one tier.
#[derive(Debug)]
pub struct Kernels {
    pool: Arc<Pool>,
    tier: Tier,
    activations: Activations,
    /// The results of the adapters' first products.
    hidden: Vec<f32>,
    /// Sums of the input's blocks, for adapters.
    sums: Vec<i32>,
    #[cfg(target_arch = "x86_64")]
    tiles: amx::Tiles,
    scratch: Vec<std::sync::Mutex<Scratch>>,
}

/// The working memory of a thread.
#[derive(Debug, Default)]
struct Scratch {
    /// The input of an adapter's second half.
    hidden: low_rank::Rows,
    #[cfg(target_arch = "x86_64")]
    narrow: avx2::Scratch,
    #[cfg(target_arch = "x86_64")]
    panels: avx512::Scratch,
    #[cfg(target_arch = "x86_64")]
    tiles: amx::Scratch,
    #[cfg(target_arch = "aarch64")]
    neon: neon::Scratch,
}

/// The part of a region that one task computes: all rows of `x` times `rows` of weight number `weight`.
#[derive(Debug, Clone)]
struct Piece {
    weight: usize,
    rows: Range<usize>,
}

impl Kernels {
    /// Most rows of a batch whose results are bit by bit those of each row alone, on every tier and with any number of
    /// threads. Speculative decoding needs this, so that it changes no greedy text.
    pub const BIT_EXACT_BATCH: usize = 8;

    /// Returns kernels on `pool` with the code of `tier`.
    ///
    /// # Panics
    /// If this CPU cannot run `tier` ([`Tier::is_available`]).
    pub fn new(pool: Arc<Pool>, tier: Tier) -> Self {
        assert!(tier.is_available(), "this CPU cannot run the {tier} kernels");
        Self {
            #[cfg(target_arch = "x86_64")]
            tiles: amx::Tiles::default(),
            scratch: (0..pool.threads()).map(|_| Default::default()).collect(),
            pool,
            tier,
            activations: Activations::default(),
            hidden: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Returns the pool, which the rest of the forward pass shares.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns the tier in use.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Computes `outs[i] = x * weights[i]^T` for several weights that share their input, in one parallel region.
    ///
    /// `x` is `m` rows of `k` numbers, each weight `n_i` rows of `k` columns, `outs[i]` `m` rows of `n_i` numbers, all
    /// row-major. The activations are rounded once to 8 bits with a scale per 256 or 32 numbers (against quantised
    /// weights; to bf16 in tiers that multiply bf16), so that results differ from exact ones by about 0.5 % of a
    /// typical output.
    ///
    /// # Panics
    /// If the shapes do not fit each other.
    pub fn matmul(&mut self, weights: &[&Weight], x: &[f32], m: usize, outs: &mut [&mut [f32]]) {
        let products: Vec<Adapted> = weights.iter().map(|&weight| Adapted { weight, low_rank: None }).collect();
        self.matmul_adapted(&products, x, m, outs);
    }

    /// Computes [`Kernels::matmul`] with an adapter's addition to each product, in the same region.
    ///
    /// # Panics
    /// If the shapes do not fit each other.
    pub fn matmul_adapted(&mut self, products: &[Adapted], x: &[f32], m: usize, outs: &mut [&mut [f32]]) {
        assert_eq!(products.len(), outs.len());
        let Some(first) = products.first() else { return };
        let k = first.weight.cols;
        assert_eq!(x.len(), m * k, "x is no {m} x {k}");
        for (Adapted { weight, low_rank }, out) in products.iter().zip(outs.iter()) {
            assert_eq!(weight.cols, k, "the weights do not share their input");
            assert_eq!(out.len(), m * weight.rows, "an output is no {m} x {}", weight.rows);
            assert!(low_rank.is_none_or(|low| low.fits(weight)), "an adapter is none of its weight");
        }
        if m == 0 {
            return;
        }
        let weights: Vec<&Weight> = products.iter().map(|product| product.weight).collect();
        let in_tiles = self.prepare(&weights, x, m);
        let lows: Vec<&LowRank> = products.iter().filter_map(|product| product.low_rank).collect();
        let form = self.prepare_lows(&lows, x);
        self.hidden.resize(lows.iter().map(|low| m * low.rank()).sum(), 0.0);
        let hidden = low_rank::split(&mut self.hidden, &lows, m);
        let lows: Vec<&Ready> = lows.into_iter().map(|low| low.ready(&self.pool)).collect();
        let rounded = self.activations.get(form);
        let inputs = X { q: &rounded.q, scale: &rounded.scale, sum: &self.sums };
        // the tasks of adapters come first: see `PendingTasks`
        let firsts: Vec<(usize, usize)> =
            lows.iter().enumerate().flat_map(|(low, ready)| (0..ready.tasks()).map(move |task| (low, task))).collect();
        let pending = PendingTasks::new(firsts.len());
        let pieces = pieces(&weights, self.pool.threads(), in_tiles.unwrap_or(16));
        // the index of each product's adapter
        let mut number = 0..lows.len();
        let low_of: Vec<Option<usize>> =
            products.iter().map(|product| product.low_rank.and_then(|_| number.next())).collect();
        let outs: Vec<Out> = outs.iter_mut().zip(&weights).map(|(out, w)| Out::new(out, w.rows)).collect();
        let activations = &self.activations;
        self.pool.run(firsts.len() + pieces.len(), |index, thread| {
            if let Some(&(low, task)) = firsts.get(index) {
                let _running = pending.begin();
                return lows[low].multiply(task, inputs, m, &hidden[low]);
            }
            let Piece { weight, rows } = pieces[index - firsts.len()].clone();
            let task = Task { weight: weights[weight], rows, x, activations, m, out: &outs[weight] };
            // no other thread has this number now; the state that a panic left does not matter
            let mut scratch = self.scratch[thread].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(low) = low_of[weight] {
                lows[low].fetch(&task.rows);
            }
            match in_tiles {
                None => by_rows(self.tier, &task, &mut scratch),
                #[cfg(target_arch = "x86_64")]
                Some(_) => amx::rows(&task, &self.tiles, &mut scratch.tiles),
                #[cfg(not(target_arch = "x86_64"))]
                Some(_) => by_rows(self.tier, &task, &mut scratch),
            }
            if let Some(low) = low_of[weight] {
                pending.wait();
                // SAFETY: all that is written there is written, as `wait` says.
                #[allow(unsafe_code)]
                let hidden = unsafe { hidden[low].read() };
                lows[low].add_to(&task, hidden, &mut scratch.hidden);
            }
        });
    }

    /// Rounds the input to the form that the weights are multiplied with: for bf16 tiles, of which it returns the
    /// rows of a strip, or to integers.
    fn prepare(&mut self, weights: &[&Weight], x: &[f32], m: usize) -> Option<usize> {
        let k = weights[0].cols;
        self.activations.begin(m, k);
        #[cfg(target_arch = "x86_64")]
        if self.tier == Tier::Amx && m >= amx::MIN_BATCH && weights.iter().all(|w| w.kind.block_len() > 1) {
            self.tiles.fill(x, m, k, &self.pool);
            return Some(amx::STRIP);
        }
        for weight in weights {
            self.activations.prepare(Form::of(weight.kind), self.tier.layout(), x, &self.pool);
        }
        None
    }

    /// Rounds the input for adapters, which share one form. A form that is prepared already is not rounded again.
    fn prepare_lows(&mut self, lows: &[&LowRank], x: &[f32]) -> Form {
        let form = lows.first().map_or(Form::Plain, |low| low.form());
        self.activations.prepare(form, Layout::Rows, x, &self.pool);
        self.activations.sum_blocks(form, &mut self.sums);
        form
    }
}

/// Computes a task with the code of a tier.
fn by_rows(tier: Tier, task: &Task, scratch: &mut Scratch) {
    match tier {
        Tier::Portable => portable::rows(task),
        #[cfg(target_arch = "x86_64")]
        Tier::Avx2 => avx2::rows(task, &mut scratch.narrow),
        #[cfg(target_arch = "x86_64")]
        Tier::Avx512 | Tier::Amx => avx512::rows(task, &mut scratch.panels),
        #[cfg(target_arch = "aarch64")]
        Tier::Neon | Tier::I8mm => neon::rows(task, tier, &mut scratch.neon),
    }
}

/// Splits the rows of all weights into tasks of some tens of kilobytes and a multiple of `unit` rows: enough tasks that
/// threads finish together, each long enough to stream.
fn pieces(weights: &[&Weight], threads: usize, unit: usize) -> Vec<Piece> {
    let total: usize = weights.iter().map(|w| w.bytes.len()).sum();
    let target = (total / (threads * 8)).clamp(16 << 10, 256 << 10);
    let mut pieces = Vec::new();
    for (weight, w) in weights.iter().enumerate() {
        let step = (target / w.kind.row_bytes(w.cols)).next_multiple_of(unit).max(unit);
        pieces.extend((0..w.rows).step_by(step).map(|at| Piece { weight, rows: at..(at + step).min(w.rows) }));
    }
    pieces
}

#[cfg(test)]
mod tests;
