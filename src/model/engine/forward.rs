//! The forward pass of dense decoder models on the CPU: computes logits from tokens, and caches keys and values.

use super::adapter::{Adapter, Additions};
use super::attention::{self, Shape};
use super::backend::{Backend, LaneToken};
use super::config::{Architecture, Config};
use super::gguf::Gguf;
use super::kernels::{Adapted, Kernels, LowRank, Weight};
use super::kv::{Kv, Lane};
use super::parallel::for_pieces;
use super::simd;
use super::threads::Pool;
use crate::{Cancel, ModelError};
use std::io::{self, Read, Write};
use std::ops::Range;

/// Most tokens that go through the layers together: enough to use each weight many times, few enough that the working
/// memory (some 100 kB a token for a 1.5B model) stays small.
const BATCH: usize = 256;

/// As [`BATCH`] if the logits of all tokens are computed, which take 600 kB each with a large vocabulary.
#[cfg(test)]
const SCORED_BATCH: usize = 32;

/// Most tokens whose joint result is bit by bit that of one by one, in little more than the time of one.
const DRAFT_WINDOW: usize = Kernels::BIT_EXACT_BATCH;

/// Most continuations computed together.
const LANES: usize = 8;

/// Least rows for which elementwise work is shared among threads.
const MIN_SHARED_ROWS: usize = 8;

/// The additions of a layer without an adapter.
static NO_ADDITIONS: Additions = Additions::NONE;

/// The positions whose logits are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    Nothing,
    Last,
    All,
}

/// A model's weights, its KV cache, and its working memory.
pub(super) struct Forward {
    config: Config,
    layers: Vec<Layer>,
    embedding: Weight,
    norm: Vec<f32>,
    head: Weight,
    kernels: Kernels,
    kv: Kv,
    /// The independent sequences besides the one in `kv`.
    slots: Option<Slots>,
    scratch: Scratch,
    adapter: Option<Adapter>,
    /// True while the adapter is applied.
    is_adapted: bool,
}

/// The cache of several independent sequences.
struct Slots {
    kv: Kv,
    count: usize,
    /// Most positions of each.
    len: usize,
}

struct Layer {
    attention_norm: Vec<f32>,
    query: Projection,
    key: Projection,
    value: Projection,
    output: Weight,
    ffn_norm: Vec<f32>,
    gate: Weight,
    up: Weight,
    down: Weight,
}

/// A projection, with the bias and norm that follow it.
struct Projection {
    weight: Weight,
    bias: Option<Vec<f32>>,
    /// Weight of a norm on each head.
    norm: Option<Vec<f32>>,
}

/// Working memory, grown to the largest batch so far and reused.
#[derive(Default)]
struct Scratch {
    /// The residual stream, `m x width`.
    stream: Vec<f32>,
    /// A normed or projected copy of it, `m x width`.
    normed: Vec<f32>,
    queries: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    /// Queries and results in attention's layout.
    grouped: Vec<f32>,
    attended: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    cos: Vec<f32>,
    sin: Vec<f32>,
    logits: Vec<f32>,
}

/// False for a tensor that would change the result but is not supported here: another kind of bias, norm or layer.
fn is_read(name: &str, architecture: Architecture) -> bool {
    const PARTS: [&str; 12] = [
        "attn_norm.weight",
        "attn_q.weight",
        "attn_q.bias",
        "attn_k.weight",
        "attn_k.bias",
        "attn_v.weight",
        "attn_v.bias",
        "attn_output.weight",
        "ffn_norm.weight",
        "ffn_gate.weight",
        "ffn_up.weight",
        "ffn_down.weight",
    ];
    let Some((_, part)) = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) else {
        return !matches!(name, "output.bias" | "rope_factors_long.weight" | "rope_factors_short.weight");
    };
    let norms = architecture.has_head_norms() && matches!(part, "attn_q_norm.weight" | "attn_k_norm.weight");
    // the rotation tensors of older files are not needed: the angles are computed
    PARTS.contains(&part) || norms || part.starts_with("attn_rot_embd") || part.starts_with("rope_freqs")
}

impl Forward {
    /// Finds and checks all weights, without an adapter. The matrices are not read yet.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] if a tensor is missing or has another shape than the metadata says, or if there is not
    /// enough memory for `context` tokens.
    pub fn new(gguf: &Gguf, kernels: Kernels, context: usize) -> Result<Self, ModelError> {
        let config = Config::read(gguf)?;
        let matrix = |name: &str, rows: usize, cols: usize| {
            let view = gguf.tensor(name)?;
            let weight = Weight::from_tensor(&view)?;
            if (weight.rows(), weight.cols()) != (rows, cols) || view.dims.len() != 2 {
                return Err(gguf.bad(format!("its `{name}` is {:?}, not [{cols}, {rows}]", view.dims)));
            }
            Ok(weight)
        };
        let vector = |name: &str, len: usize| {
            let view = gguf.tensor(name)?;
            if view.elements() != len {
                return Err(gguf.bad(format!("its `{name}` is {:?}, not [{len}]", view.dims)));
            }
            Ok(view.to_f32())
        };
        if let Some(name) = gguf.tensor_names().find(|name| !is_read(name, config.architecture)) {
            return Err(ModelError::Unsupported { what: "tensor", name: name.into() });
        }
        let (width, dim) = (config.width, config.head_dim);
        let mut layers = Vec::with_capacity(config.layers);
        for index in 0..config.layers {
            let name = |part: &str| format!("blk.{index}.{part}");
            let projection = |part: &str, heads: usize| {
                let bias = name(&format!("{part}.bias"));
                let norm = name(&format!("{part}_norm.weight"));
                let biased = config.architecture.requires_biases() || gguf.has_tensor(&bias);
                let normed = config.architecture.has_head_norms() && part != "attn_v";
                Ok::<_, ModelError>(Projection {
                    weight: matrix(&name(&format!("{part}.weight")), heads * dim, width)?,
                    bias: biased.then(|| vector(&bias, heads * dim)).transpose()?,
                    norm: normed.then(|| vector(&norm, dim)).transpose()?,
                })
            };
            layers.push(Layer {
                attention_norm: vector(&name("attn_norm.weight"), width)?,
                query: projection("attn_q", config.heads)?,
                key: projection("attn_k", config.kv_heads)?,
                value: projection("attn_v", config.kv_heads)?,
                output: matrix(&name("attn_output.weight"), width, config.heads * dim)?,
                ffn_norm: vector(&name("ffn_norm.weight"), width)?,
                gate: matrix(&name("ffn_gate.weight"), config.hidden, width)?,
                up: matrix(&name("ffn_up.weight"), config.hidden, width)?,
                down: matrix(&name("ffn_down.weight"), width, config.hidden)?,
            });
        }
        let embedding = matrix("token_embd.weight", config.vocab, width)?;
        // small models use the embedding as their head
        let head = if gguf.has_tensor("output.weight") {
            matrix("output.weight", config.vocab, width)?
        } else {
            embedding.clone()
        };
        let too_large = || gguf.bad(format!("{context} tokens of it take more memory than there is"));
        let kv = Kv::new(&config, context).ok_or_else(too_large)?;
        let norm = vector("output_norm.weight", width)?;
        let scratch = Scratch::default();
        let (slots, adapter, is_adapted) = (None, None, false);
        Ok(Self { layers, embedding, norm, head, kernels, kv, slots, scratch, config, adapter, is_adapted })
    }

    /// Sets the adapter that can be turned on.
    #[must_use]
    pub fn with_adapter(self, adapter: Option<Adapter>) -> Self {
        Self { adapter, ..self }
    }

    /// Checks that the tokens fit and are in the vocabulary.
    fn check(&self, tokens: &[u32]) -> Result<(), ModelError> {
        let limit = self.kv.capacity();
        if tokens.len() > limit - self.kv.len() {
            return Err(ModelError::TooLong { tokens: self.kv.len() + tokens.len(), limit });
        }
        self.check_vocab(tokens.iter().copied())
    }

    fn check_vocab(&self, mut tokens: impl Iterator<Item = u32>) -> Result<(), ModelError> {
        match tokens.find(|&token| token as usize >= self.config.vocab) {
            Some(token) => Err(ModelError::Engine(format!("token {token} is not in the model's vocabulary"))),
            None => Ok(()),
        }
    }

    /// Computes one batch through all layers. Returns false if cancelled; nothing of it is cached then.
    fn pass(&mut self, tokens: &[u32], want: Want, cancel: &Cancel) -> bool {
        let (config, s) = (&self.config, &mut self.scratch);
        let m = tokens.len();
        let start = self.kv.len();
        s.fit(config, m);
        let places: Vec<(Lane, usize)> = (start..start + m).map(|position| (Lane::ONLY, position)).collect();
        angles(&config.rope.frequencies, &places, &mut s.cos, &mut s.sin);
        for (row, &token) in s.stream.chunks_exact_mut(config.width).zip(tokens) {
            self.embedding.embed_row(token as usize, row);
        }
        let last = self.layers.len() - 1;
        let adapter = if self.is_adapted { self.adapter.as_ref() } else { None };
        for (index, layer) in self.layers.iter().enumerate() {
            if cancel.is_cancelled() {
                return false;
            }
            let added = adapter.map_or(&NO_ADDITIONS, |adapter| adapter.layer(index));
            project(config, layer, added, &mut self.kernels, s, m);
            let pool = self.kernels.pool().clone();
            write_kv(config, layer, &pool, index, &mut self.kv, s, &places);
            if index == last && want == Want::Nothing {
                break;
            }
            // after the last layer's keys and values, only the wanted positions matter
            let skip = if index == last && want == Want::Last { m - 1 } else { 0 };
            arrange_queries(config, layer, &pool, s, skip, m);
            let shape = shape(config, start + skip, m - skip);
            attention::attend(&pool, &self.kv, index, shape, &s.grouped, &mut s.attended);
            finish_layer(config, layer, added, &mut self.kernels, s, shape, skip..m);
        }
        self.kv.advance(m);
        let skip = match want {
            Want::Nothing => return true,
            Want::Last => m - 1,
            Want::All => 0,
        };
        self.score(skip, m);
        true
    }

    /// Computes tokens of several continuations through all layers. Returns false if cancelled.
    fn pass_lanes(&mut self, tokens: &[LaneToken], room: usize, cancel: &Cancel) -> bool {
        let base = self.kv.len();
        let places: Vec<(Lane, usize)> =
            tokens.iter().map(|token| (Lane::new(base, token.lane, room), base + token.step)).collect();
        let adapter = if self.is_adapted { self.adapter.as_ref() } else { None };
        embed(&self.config, &self.embedding, tokens, &mut self.scratch);
        let mut pass = PlacedPass { config: &self.config, kernels: &mut self.kernels, kv: &mut self.kv, adapter };
        pass.run(&self.layers, &places, &mut self.scratch, || cancel.is_cancelled())
    }

    /// Checks that the tokens of continuations fit and are in the vocabulary.
    fn check_lanes(&self, tokens: &[LaneToken], room: usize) -> Result<(), ModelError> {
        let rows = tokens.iter().map(|token| token.lane + 1).max().unwrap_or(0) * room;
        let limit = self.kv.capacity();
        if rows > limit - self.kv.len() {
            return Err(ModelError::TooLong { tokens: self.kv.len() + rows, limit });
        }
        if tokens.len() > self.lanes() || tokens.iter().any(|token| token.step >= room) {
            return Err(ModelError::Engine("more continuations or longer ones than was agreed".into()));
        }
        self.check_vocab(tokens.iter().map(|token| token.id))
    }

    /// Checks that the tokens fit into the slots and are in the vocabulary.
    fn check_slots(&self, tokens: &[LaneToken], scored: usize) -> Result<(), ModelError> {
        let (count, len) = self.slots.as_ref().map_or((0, 0), |slots| (slots.count, slots.len));
        if scored > tokens.len() || !tokens.iter().all(|token| token.lane < count && token.step < len) {
            return Err(ModelError::Engine("more sequences or longer ones than there are slots for".into()));
        }
        self.check_vocab(tokens.iter().map(|token| token.id))
    }

    /// Computes the logits after the positions `skip..m` of the last batch.
    fn score(&mut self, skip: usize, m: usize) {
        let (config, s) = (&self.config, &mut self.scratch);
        let width = config.width;
        let rows = m - skip;
        norm_rows(
            self.kernels.pool(),
            &s.stream[skip * width..],
            &self.norm,
            config.eps,
            &mut s.normed[..rows * width],
        );
        s.logits.resize(rows * config.vocab, 0.0);
        self.kernels.matmul(&[&self.head], &s.normed[..rows * width], rows, &mut [&mut s.logits]);
    }
}

/// A pass over tokens at any places of a cache.
struct PlacedPass<'a> {
    config: &'a Config,
    kernels: &'a mut Kernels,
    kv: &'a mut Kv,
    adapter: Option<&'a Adapter>,
}

impl PlacedPass<'_> {
    /// Computes the embedded tokens at `places` through the layers. Returns false if `is_cancelled` returns true
    /// meanwhile.
    fn run(
        &mut self,
        layers: &[Layer],
        places: &[(Lane, usize)],
        s: &mut Scratch,
        is_cancelled: impl Fn() -> bool,
    ) -> bool {
        let Self { config, kernels, kv, adapter } = self;
        let m = places.len();
        angles(&config.rope.frequencies, places, &mut s.cos, &mut s.sin);
        let shape = shape(config, 0, m);
        for (index, layer) in layers.iter().enumerate() {
            if is_cancelled() {
                return false;
            }
            let added = adapter.map_or(&NO_ADDITIONS, |adapter| adapter.layer(index));
            project(config, layer, added, kernels, s, m);
            let pool = kernels.pool().clone();
            write_kv(config, layer, &pool, index, kv, s, places);
            arrange_queries(config, layer, &pool, s, 0, m);
            attention::attend_lanes(&pool, kv, index, shape, places, &s.grouped, &mut s.attended);
            finish_layer(config, layer, added, kernels, s, shape, 0..m);
        }
        true
    }
}

/// Writes the embeddings of the tokens to the residual stream.
fn embed(config: &Config, embedding: &Weight, tokens: &[LaneToken], s: &mut Scratch) {
    s.fit(config, tokens.len());
    for (row, token) in s.stream.chunks_exact_mut(config.width).zip(tokens) {
        embedding.embed_row(token.id as usize, row);
    }
}

impl Backend for Forward {
    fn context(&self) -> usize {
        self.kv.capacity()
    }

    fn len(&self) -> usize {
        self.kv.len()
    }

    fn truncate(&mut self, len: usize) {
        self.kv.truncate(len);
    }

    fn is_resumable(&self) -> bool {
        true
    }

    fn snapshot(&self, len: usize, to: &mut dyn Write) -> io::Result<()> {
        self.kv.snapshot(len, to)
    }

    fn restore(&mut self, len: usize, from: &mut dyn Read) -> io::Result<()> {
        self.kv.restore(len, from)
    }

    fn feed(&mut self, tokens: &[u32], cancel: &Cancel) -> Result<bool, ModelError> {
        self.check(tokens)?;
        let batches = tokens.len().div_ceil(BATCH);
        for (index, batch) in tokens.chunks(BATCH).enumerate() {
            let want = if index + 1 == batches { Want::Last } else { Want::Nothing };
            if !self.pass(batch, want, cancel) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[cfg(test)]
    fn feed_scored(
        &mut self,
        tokens: &[u32],
        cancel: &Cancel,
        each: &mut dyn FnMut(usize, &[f32]),
    ) -> Result<bool, ModelError> {
        self.check(tokens)?;
        for (batch, tokens) in tokens.chunks(SCORED_BATCH).enumerate() {
            if !self.pass(tokens, Want::All, cancel) {
                return Ok(false);
            }
            for (i, logits) in self.scratch.logits.chunks_exact(self.config.vocab).enumerate() {
                each(batch * SCORED_BATCH + i, logits);
            }
        }
        Ok(true)
    }

    fn logits(&mut self) -> &mut [f32] {
        let last = self.scratch.logits.len().saturating_sub(self.config.vocab);
        &mut self.scratch.logits[last..]
    }

    fn draft_window(&self) -> usize {
        DRAFT_WINDOW
    }

    fn feed_drafts(&mut self, tokens: &[u32], cancel: &Cancel) -> Result<bool, ModelError> {
        self.check(tokens)?;
        Ok(self.pass(tokens, Want::All, cancel))
    }

    fn logits_at(&mut self, index: usize) -> &[f32] {
        &self.scratch.logits[index * self.config.vocab..][..self.config.vocab]
    }

    fn lanes(&self) -> usize {
        (1..=LANES).rev().find(|&count| shape(&self.config, 0, count).fits_one_task()).unwrap_or(0)
    }

    fn feed_lanes(&mut self, tokens: &[LaneToken], room: usize, cancel: &Cancel) -> Result<bool, ModelError> {
        self.check_lanes(tokens, room)?;
        if !tokens.is_empty() {
            if !self.pass_lanes(tokens, room, cancel) {
                return Ok(false);
            }
            self.score(0, tokens.len());
        }
        Ok(true)
    }

    fn copy_lane(&mut self, from: usize, to: usize, steps: usize, room: usize) {
        let base = self.kv.len();
        let row = |lane: usize| Lane::new(base, lane, room).row(base);
        self.kv.copy(row(from)..row(from) + steps, row(to));
    }

    fn open_slots(&mut self, count: usize, len: usize) -> bool {
        let kv = count.checked_mul(len).and_then(|positions| Kv::new(&self.config, positions));
        self.slots = kv.map(|kv| Slots { kv, count, len });
        self.slots.is_some()
    }

    fn feed_slots(&mut self, tokens: &[LaneToken], scored: usize) -> Result<(), ModelError> {
        self.check_slots(tokens, scored)?;
        let Self { config, layers, embedding, kernels, slots: Some(slots), scratch, .. } = self else { return Ok(()) };
        if tokens.is_empty() {
            return Ok(());
        }
        let places: Vec<(Lane, usize)> =
            tokens.iter().map(|token| (Lane::slot(token.lane, slots.len), token.step)).collect();
        embed(config, embedding, tokens, scratch);
        let mut pass = PlacedPass { config, kernels, kv: &mut slots.kv, adapter: None };
        pass.run(layers, &places, scratch, || false);
        if scored > 0 {
            self.score(tokens.len() - scored, tokens.len());
        }
        Ok(())
    }

    fn copy_slot(&mut self, from: usize, to: usize, len: usize) {
        if let Some(slots) = &mut self.slots {
            let row = |slot: usize| Lane::slot(slot, slots.len).row(0);
            slots.kv.copy(row(from)..row(from) + len.min(slots.len), row(to));
        }
    }

    fn adapter(&self) -> Option<&Adapter> {
        self.adapter.as_ref()
    }

    fn adapt(&mut self, on: bool) {
        self.is_adapted = on && self.adapter.is_some();
    }

    fn describe(&self) -> String {
        format!("cpu, {} kernels, {} threads", self.kernels.tier(), self.kernels.pool().threads())
    }
}

impl Scratch {
    /// Resizes the buffers for a batch of `m` tokens.
    fn fit(&mut self, config: &Config, m: usize) {
        let (queries, keys) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
        // a shorter batch may need more padding than a longer one
        let grouped = shape(config, 0, m).len().max(shape(config, 0, 1).len());
        for (buffer, len) in [
            (&mut self.stream, m * config.width),
            (&mut self.normed, m * config.width),
            (&mut self.queries, m * queries),
            (&mut self.keys, m * keys),
            (&mut self.values, m * keys),
            (&mut self.grouped, grouped),
            (&mut self.attended, grouped),
            (&mut self.gate, m * config.hidden),
            (&mut self.up, m * config.hidden),
            (&mut self.cos, m * config.rope.frequencies.len()),
            (&mut self.sin, m * config.rope.frequencies.len()),
        ] {
            buffer.resize(len, 0.0);
        }
    }
}

fn shape(config: &Config, start: usize, count: usize) -> Shape {
    Shape { count, start, kv_heads: config.kv_heads, group: config.group(), head_dim: config.head_dim }
}

/// Computes the cosines and sines of all angles at these positions.
fn angles(frequencies: &[f32], places: &[(Lane, usize)], cos: &mut [f32], sin: &mut [f32]) {
    let pairs = frequencies.len();
    for (i, (_, position)) in places.iter().enumerate() {
        for (j, frequency) in frequencies.iter().enumerate() {
            let (s, c) = (*position as f32 * frequency).sin_cos();
            (cos[i * pairs + j], sin[i * pairs + j]) = (c, s);
        }
    }
}

/// Normalizes every row.
fn norm_rows(pool: &Pool, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let width = weight.len();
    for_rows(pool, out, width, |row, out| simd::rms_norm(&x[row * width..][..width], weight, eps, out));
}

/// Calls `task(row, piece)` for each row of `data`, on several threads if there are many.
fn for_rows(pool: &Pool, data: &mut [f32], width: usize, task: impl Fn(usize, &mut [f32]) + Sync) {
    let rows = data.len() / width;
    if rows < MIN_SHARED_ROWS {
        data.chunks_exact_mut(width).enumerate().for_each(|(row, piece)| task(row, piece));
        return;
    }
    let step = rows.div_ceil(pool.threads() * 4).max(1);
    for_pieces(pool, data, step * width, |index, piece, _| {
        for (i, piece) in piece.chunks_exact_mut(width).enumerate() {
            task(index * step + i, piece);
        }
    });
}

/// Pairs a weight with its low-rank addition.
fn adapted<'a>(weight: &'a Weight, added: &'a Option<LowRank>) -> Adapted<'a> {
    Adapted { weight, low_rank: added.as_ref() }
}

/// Computes the norm, then queries, keys and values of all positions.
fn project(config: &Config, layer: &Layer, added: &Additions, kernels: &mut Kernels, s: &mut Scratch, m: usize) {
    norm_rows(kernels.pool(), &s.stream, &layer.attention_norm, config.eps, &mut s.normed);
    kernels.matmul_adapted(
        &[
            adapted(&layer.query.weight, &added.query),
            adapted(&layer.key.weight, &added.key),
            adapted(&layer.value.weight, &added.value),
        ],
        &s.normed,
        m,
        &mut [&mut s.queries, &mut s.keys, &mut s.values],
    );
}

/// Applies bias, norm and, if `rotate`, rotation to the heads of one position.
fn bias_norm_rotate(config: &Config, projection: &Projection, x: &mut [f32], cos: &[f32], sin: &[f32], rotate: bool) {
    if let Some(bias) = &projection.bias {
        simd::add(x, bias);
    }
    for head in x.chunks_exact_mut(config.head_dim) {
        if let Some(weight) = &projection.norm {
            simd::rms_norm_in_place(head, weight, config.eps);
        }
        match (rotate, config.rope.halves) {
            (false, _) => {}
            (true, true) => simd::rotate_halves(head, cos, sin),
            (true, false) => simd::rotate_pairs(head, cos, sin),
        }
    }
}

/// Finishes the projection of keys and values and writes them to the cache.
fn write_kv(
    config: &Config,
    layer: &Layer,
    pool: &Pool,
    index: usize,
    kv: &mut Kv,
    s: &mut Scratch,
    places: &[(Lane, usize)],
) {
    let width = config.kv_heads * config.head_dim;
    let pairs = config.rope.frequencies.len();
    let len = places.len() * width;
    let (cos, sin) = (&s.cos, &s.sin);
    for (rows, projection, rotate) in [(&mut s.keys, &layer.key, true), (&mut s.values, &layer.value, false)] {
        for_rows(pool, &mut rows[..len], width, |i, row| {
            bias_norm_rotate(config, projection, row, &cos[i * pairs..][..pairs], &sin[i * pairs..][..pairs], rotate);
        });
    }
    let rows = s.keys.chunks_exact(width).zip(s.values.chunks_exact(width));
    for ((lane, position), (key, value)) in places.iter().zip(rows) {
        kv.write(index, lane.row(*position), key, value);
    }
}

/// Finishes the projection of the queries from position `skip` on, scales them and arranges them for attention.
fn arrange_queries(config: &Config, layer: &Layer, pool: &Pool, s: &mut Scratch, skip: usize, m: usize) {
    let width = config.heads * config.head_dim;
    let pairs = config.rope.frequencies.len();
    let scale = 1.0 / (config.head_dim as f32).sqrt();
    let (cos, sin) = (&s.cos, &s.sin);
    for_rows(pool, &mut s.queries[skip * width..], width, |i, query| {
        let at = (skip + i) * pairs;
        bias_norm_rotate(config, &layer.query, query, &cos[at..at + pairs], &sin[at..at + pairs], true);
        simd::scale(query, scale);
    });
    let shape = shape(config, 0, m - skip);
    let run = shape.group * shape.head_dim;
    let queries = &s.queries[skip * width..m * width];
    let arrange = |kv_head: usize, plane: &mut [f32]| {
        for (to, query) in plane.chunks_exact_mut(run).zip(queries.chunks_exact(width)) {
            to.copy_from_slice(&query[kv_head * run..][..run]);
        }
    };
    let (planes, plane) = (&mut s.grouped[..shape.len()], shape.len() / shape.kv_heads);
    if m - skip < MIN_SHARED_ROWS {
        planes.chunks_exact_mut(plane).enumerate().for_each(|(kv_head, plane)| arrange(kv_head, plane));
    } else {
        for_pieces(pool, planes, plane, |kv_head, plane, _| arrange(kv_head, plane));
    }
}

/// Computes the layer from the attended values to its end, for these positions.
fn finish_layer(
    config: &Config,
    layer: &Layer,
    added: &Additions,
    kernels: &mut Kernels,
    s: &mut Scratch,
    shape: Shape,
    positions: Range<usize>,
) {
    let rows = positions.len();
    let (width, hidden) = (config.width, config.hidden);
    let run = shape.group * shape.head_dim;
    let wide = config.heads * config.head_dim;
    let attended = &s.attended;
    for_rows(kernels.pool(), &mut s.queries[..rows * wide], wide, |i, out| {
        for (kv_head, part) in out.chunks_exact_mut(run).enumerate() {
            part.copy_from_slice(&attended[shape.at(kv_head, i)..][..run]);
        }
    });
    let stream = &mut s.stream[positions.start * width..];
    let normed = &mut s.normed[..rows * width];
    kernels.matmul_adapted(
        &[adapted(&layer.output, &added.output)],
        &s.queries[..rows * wide],
        rows,
        &mut [&mut *normed],
    );
    for_rows(kernels.pool(), stream, width, |i, row| simd::add(row, &normed[i * width..][..width]));
    norm_rows(kernels.pool(), stream, &layer.ffn_norm, config.eps, normed);
    let (gate, up) = (&mut s.gate[..rows * hidden], &mut s.up[..rows * hidden]);
    let both = [adapted(&layer.gate, &added.gate), adapted(&layer.up, &added.up)];
    kernels.matmul_adapted(&both, normed, rows, &mut [&mut *gate, &mut *up]);
    for_rows(kernels.pool(), gate, hidden, |i, gate| simd::silu_mul(gate, &up[i * hidden..][..hidden]));
    kernels.matmul_adapted(&[adapted(&layer.down, &added.down)], gate, rows, &mut [&mut *normed]);
    for_rows(kernels.pool(), stream, width, |i, row| simd::add(row, &normed[i * width..][..width]));
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;
