//! Causal attention over the f16 cache, with an online softmax (Milakov, Gimelshein 2018; Dao et al. 2022): keys and
//! values are read once, a block at a time, and the full matrix of scores is never stored.

use super::kernels::Kernels;
use super::kv::{Kv, Lane};
use super::matmul::multiply_add;
use super::parallel::for_pieces;
use super::simd::{self, View};
use super::threads::Pool;
use std::cell::RefCell;

/// Keys of a block: few enough that widened keys and values, transposed keys and scores fit in the L2 cache.
const BLOCK: usize = 64;

/// Query rows of a task, over all heads that share keys.
const ROWS: usize = 128;

/// Least rows for which a block of keys is transposed, so that scores are a matrix product.
const TRANSPOSE: usize = 16;

/// Most positions for which keys are never transposed, however many heads share them, so that the result of a short
/// batch is bit by bit that of its positions one by one.
const BIT_EXACT_BATCH: usize = Kernels::BIT_EXACT_BATCH;

thread_local! {
    /// Each thread's working memory, reused between tokens.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

#[derive(Default)]
struct Scratch {
    /// A block of keys or values, widened: `BLOCK x head_dim`.
    wide: Vec<f32>,
    /// The keys transposed: `head_dim x BLOCK`.
    transposed: Vec<f32>,
    /// `rows x BLOCK`.
    scores: Vec<f32>,
    /// Largest score and sum of weights of each row so far.
    state: Vec<(f32, f32)>,
}

/// Sizes of one attention.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Positions queried, the last ones of those in the cache.
    pub count: usize,
    /// Position of the first query.
    pub start: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Heads of queries per head of keys and values.
    pub group: usize,
    /// Width of a head.
    pub head_dim: usize,
}

impl Shape {
    /// True if no position needs padding in the layout, as [`attend_lanes`] requires.
    pub fn fits_one_task(&self) -> bool {
        self.step() == self.count
    }

    /// Returns the number of positions of a task.
    fn step(&self) -> usize {
        (ROWS / self.group).clamp(1, self.count)
    }

    /// Returns the distance between the queries of one key head and the next, in [`attend`]'s layout.
    fn plane(&self) -> usize {
        self.count.next_multiple_of(self.step()) * self.group * self.head_dim
    }

    /// Returns the length of the buffers that [`attend`] works on.
    pub fn len(&self) -> usize {
        self.kv_heads * self.plane()
    }

    /// Returns the index of the queries of `kv_head`'s group at the `i`th position, `group * head_dim` values.
    pub fn at(&self, kv_head: usize, i: usize) -> usize {
        kv_head * self.plane() + i * self.group * self.head_dim
    }
}

/// Computes the attention of one layer: writes the weighted values for `queries` to `out`, both in the layout of
/// [`Shape::at`]. Queries are scaled already; keys and values of all positions up to the last query's are in `kv`.
pub(super) fn attend(pool: &Pool, kv: &Kv, layer: usize, shape: Shape, queries: &[f32], out: &mut [f32]) {
    let width = shape.group * shape.head_dim;
    if shape.count == 1 && pool.threads() > shape.kv_heads {
        // one position: each task is one head, so that every thread has work
        for_pieces(pool, &mut out[..shape.kv_heads * width], shape.head_dim, |head, out, _| {
            let queries = &queries[head * shape.head_dim..][..shape.head_dim];
            let one = Shape { group: 1, ..shape };
            run(kv, layer, head / shape.group, shape.start, one, Lane::ONLY, queries, out);
        });
        return;
    }
    let step = shape.step();
    let tasks = shape.count.div_ceil(step);
    for_pieces(pool, &mut out[..shape.len()], step * width, |task, out, _| {
        let (kv_head, first) = (task / tasks, task % tasks * step);
        let count = step.min(shape.count - first);
        let queries = &queries[shape.at(kv_head, first)..][..count * width];
        run(kv, layer, kv_head, shape.start + first, shape, Lane::ONLY, queries, &mut out[..count * width]);
    });
}

/// Computes attention for positions of several continuations: query `i` is at the position `places[i]` of its lane.
/// Adjacent queries at adjacent positions of one lane are computed together.
pub(super) fn attend_lanes(
    pool: &Pool,
    kv: &Kv,
    layer: usize,
    shape: Shape,
    places: &[(Lane, usize)],
    queries: &[f32],
    out: &mut [f32],
) {
    let width = shape.group * shape.head_dim;
    let follows = |i: usize| i > 0 && Lane::is_next(places[i - 1], places[i]);
    let step = if (0..places.len()).any(follows) { shape.step() } else { 1 };
    let tasks = shape.plane() / (step * width);
    for_pieces(pool, &mut out[..shape.len()], step * width, |task, out, _| {
        let (kv_head, first) = (task / tasks, task % tasks * step);
        let end = (first + step).min(places.len());
        let mut from = first;
        while from < end {
            let to = (from + 1..end).find(|&i| !follows(i)).unwrap_or(end);
            let (lane, position) = places[from];
            let queries = &queries[shape.at(kv_head, from)..][..(to - from) * width];
            let out = &mut out[(from - first) * width..(to - first) * width];
            let piece = Shape { count: to - from, ..shape };
            run(kv, layer, kv_head, position, piece, lane, queries, out);
            from = to;
        }
    });
}

/// Runs one task: `queries` has `shape.group` rows a position, the first at position `start` of `lane`.
#[allow(clippy::too_many_arguments)] // a task's whole description, named at both call sites
fn run(
    kv: &Kv,
    layer: usize,
    kv_head: usize,
    start: usize,
    shape: Shape,
    lane: Lane,
    queries: &[f32],
    out: &mut [f32],
) {
    SCRATCH.with_borrow_mut(|scratch| {
        let dim = shape.head_dim;
        let rows = queries.len() / dim;
        scratch.wide.resize(BLOCK * dim, 0.0);
        scratch.transposed.resize(BLOCK * dim, 0.0);
        scratch.scores.resize(rows.max(ROWS) * BLOCK, 0.0);
        scratch.state.clear();
        scratch.state.resize(rows, (f32::NEG_INFINITY, 0.0));
        out.fill(0.0);
        let end = start + rows.div_ceil(shape.group);
        let mut next = 0;
        while next < end {
            let block = next;
            let keys = lane.rows(block, (block + BLOCK).min(end));
            let count = keys.len();
            next += count;
            let wide = &mut scratch.wide[..count * dim];
            simd::widen(kv.keys(layer, kv_head, keys.clone()), wide);
            score(queries, wide, &mut scratch.transposed, &mut scratch.scores, shape, rows);
            for (row, scores) in scratch.scores.chunks_exact_mut(BLOCK).take(rows).enumerate() {
                // a query attends to the keys up to its own position
                let visible = (start + row / shape.group + 1).saturating_sub(block).min(count);
                scores[visible..count].fill(0.0);
                if visible == 0 {
                    continue;
                }
                let (peak, sum) = &mut scratch.state[row];
                let highest = simd::largest(&scores[..visible]).max(*peak);
                let rescale = (*peak - highest).exp();
                *sum = *sum * rescale + simd::exp_in_place(&mut scores[..visible], highest);
                *peak = highest;
                if rescale != 1.0 {
                    simd::scale(&mut out[row * dim..][..dim], rescale);
                }
            }
            let wide = &mut scratch.wide[..count * dim];
            simd::widen(kv.values(layer, kv_head, keys), wide);
            let weights = View { data: &scratch.scores, stride: BLOCK };
            multiply_add(weights, View { data: wide, stride: dim }, out, dim, rows, dim, count);
        }
        for (row, out) in out.chunks_exact_mut(dim).enumerate() {
            simd::scale(out, 1.0 / scratch.state[row].1);
        }
    });
}

/// Computes `scores = queries keys^T`, in rows of [`BLOCK`].
fn score(queries: &[f32], keys: &[f32], transposed: &mut [f32], scores: &mut [f32], shape: Shape, rows: usize) {
    let dim = shape.head_dim;
    let count = keys.len() / dim;
    if rows < TRANSPOSE || shape.count <= BIT_EXACT_BATCH {
        for (query, scores) in queries.chunks_exact(dim).zip(scores.chunks_exact_mut(BLOCK)) {
            simd::products(query, keys, &mut scores[..count]);
        }
        return;
    }
    simd::transpose(keys, dim, transposed, BLOCK);
    scores[..rows * BLOCK].fill(0.0);
    let (queries, transposed) = (View { data: queries, stride: dim }, View { data: transposed, stride: BLOCK });
    multiply_add(queries, transposed, scores, BLOCK, rows, count, dim);
}

#[cfg(test)]
mod tests {
    use super::super::config::{Architecture, Config, Rope};
    use super::*;

    fn config(kv_heads: usize, group: usize, head_dim: usize) -> Config {
        Config {
            architecture: Architecture::Qwen2,
            layers: 2,
            width: 1,
            hidden: 1,
            heads: kv_heads * group,
            kv_heads,
            head_dim,
            vocab: 1,
            eps: 1e-6,
            rope: Rope { frequencies: vec![], halves: true },
        }
    }

    fn noise(len: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        (0..len)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect()
    }

    /// Computes attention by its definition, in f64.
    fn reference(kv: &Kv, kv_head: usize, query: &[f32], position: usize) -> Vec<f64> {
        let dim = query.len();
        let (mut keys, mut values) = (vec![0.0; (position + 1) * dim], vec![0.0; (position + 1) * dim]);
        simd::widen(kv.keys(1, kv_head, 0..position + 1), &mut keys);
        simd::widen(kv.values(1, kv_head, 0..position + 1), &mut values);
        let scores: Vec<f64> = keys
            .chunks(dim)
            .map(|key| key.iter().zip(query).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>().exp())
            .collect();
        let sum: f64 = scores.iter().sum();
        (0..dim)
            .map(|d| scores.iter().enumerate().map(|(i, s)| s / sum * f64::from(values[i * dim + d])).sum())
            .collect()
    }

    #[test]
    fn every_shape_agrees_with_the_definition() {
        for (kv_heads, group, head_dim) in [(2, 6, 32), (2, 7, 16), (3, 3, 24), (1, 1, 80)] {
            let config = config(kv_heads, group, head_dim);
            for threads in [1, 5] {
                let pool = Pool::new(threads);
                for (start, count) in [(0, 1), (0, 5), (63, 1), (64, 1), (0, 70), (37, 40), (128, 3)] {
                    let mut kv = Kv::new(&config, 256).unwrap();
                    for position in 0..start + count {
                        let seed = position as u32 * 2 + 1;
                        let width = kv_heads * head_dim;
                        kv.write(1, position, &noise(width, seed), &noise(width, seed + 1));
                        kv.advance(1);
                    }
                    let shape = Shape { count, start, kv_heads, group, head_dim };
                    let queries = noise(shape.len(), 99);
                    let mut out = vec![f32::NAN; shape.len()];
                    attend(&pool, &kv, 1, shape, &queries, &mut out);
                    for kv_head in 0..kv_heads {
                        for i in 0..count {
                            for member in 0..group {
                                let at = shape.at(kv_head, i) + member * head_dim;
                                let want = reference(&kv, kv_head, &queries[at..at + head_dim], start + i);
                                for (got, want) in out[at..at + head_dim].iter().zip(want) {
                                    let off = (f64::from(*got) - want).abs();
                                    assert!(off < 1e-4, "{shape:?}, {threads} threads: {got}, not {want}");
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_short_batch_equals_its_positions_one_by_one() {
        for (kv_heads, group, head_dim) in [(2, 6, 128), (2, 7, 64), (3, 3, 64), (1, 1, 80)] {
            let config = config(kv_heads, group, head_dim);
            for start in [0, 3, 61, 128] {
                let mut kv = Kv::new(&config, 256).unwrap();
                let width = kv_heads * head_dim;
                for position in 0..start + BIT_EXACT_BATCH {
                    kv.write(1, position, &noise(width, position as u32), &noise(width, position as u32 + 999));
                    kv.advance(1);
                }
                for count in 2..=BIT_EXACT_BATCH {
                    let shape = Shape { count, start, kv_heads, group, head_dim };
                    let queries = noise(shape.len(), 7);
                    let mut together = vec![0.0; shape.len()];
                    attend(&Pool::new(2), &kv, 1, shape, &queries, &mut together);
                    for i in 0..count {
                        let one = Shape { count: 1, start: start + i, ..shape };
                        let run = group * head_dim;
                        let mut query = vec![0.0; one.len()];
                        for head in 0..kv_heads {
                            query[one.at(head, 0)..][..run].copy_from_slice(&queries[shape.at(head, i)..][..run]);
                        }
                        let mut alone = vec![0.0; one.len()];
                        attend(&Pool::new(1 + i % 4), &kv, 1, one, &query, &mut alone);
                        for head in 0..kv_heads {
                            let (a, b) = (&together[shape.at(head, i)..][..run], &alone[one.at(head, 0)..][..run]);
                            assert!(a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits()), "{shape:?} at {i}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn scores_of_any_size_stay_finite() {
        let config = config(1, 1, 16);
        let mut kv = Kv::new(&config, 256).unwrap();
        for position in 0..200 {
            kv.write(1, position, &[if position % 3 == 0 { 1000.0 } else { -1000.0 }; 16], &[position as f32; 16]);
            kv.advance(1);
        }
        let shape = Shape { count: 1, start: 199, kv_heads: 1, group: 1, head_dim: 16 };
        let mut out = vec![0.0; 16];
        attend(&Pool::new(1), &kv, 1, shape, &[10.0; 16], &mut out);
        // equal weights on every third position: the result is their mean
        assert!((out[0] - 99.0).abs() < 0.1, "{out:?}");
    }
}
