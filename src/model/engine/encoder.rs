//! BERT's encoder on the engine's own kernels (Devlin et al., "BERT", 2018): embeddings and layers of full attention.
//!
//! The matrices are rounded to eight bits when they are loaded, which moves a sentence's vector by less than a
//! hundredth of its length and makes them a quarter as large. The texts of a batch are concatenated without padding;
//! only attention needs their bounds.

use super::bytes::Bytes;
use super::kernels::{Kernels, Tier, Weight};
use super::matmul::multiply_add;
use super::parallel::for_pieces;
use super::quant::Kind;
use super::safetensors::SafeTensors;
use super::simd::{self, View};
use super::threads::Pool;
use crate::ModelError;
use half::f16;
use serde::Deserialize;
use std::ops::Range;
use std::sync::Arc;

/// Queries that are multiplied with the keys together.
const ROWS: usize = 64;

/// Rows of a task for elementwise work.
const TASK_ROWS: usize = 16;

/// The sizes of the encoder, as in `config.json`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Config {
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// Components of a state.
    pub hidden_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Heads of attention.
    pub num_attention_heads: usize,
    /// Width of the feed-forward part.
    pub intermediate_size: usize,
    /// The activation in the feed-forward part; only `gelu`.
    pub hidden_act: String,
    /// Most tokens of a text.
    pub max_position_embeddings: usize,
    /// Number of token types.
    pub type_vocab_size: usize,
    /// Term that keeps the norms from dividing by zero.
    pub layer_norm_eps: f32,
}

struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
}

struct Linear {
    weight: Weight,
    bias: Vec<f32>,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    attention_norm: Norm,
    up: Linear,
    down: Linear,
    output_norm: Norm,
}

/// The encoder with its weights and working memory.
pub(super) struct Encoder {
    config: Config,
    kernels: Kernels,
    words: Weight,
    /// The embeddings of positions, with that of the first token type added.
    positions: Vec<f32>,
    start: Norm,
    layers: Vec<Layer>,
    buffers: Buffers,
}

/// Buffers that are reused from batch to batch.
#[derive(Default)]
struct Buffers {
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    /// The results of attention, one plane for each text and head.
    planes: Vec<f32>,
    context: Vec<f32>,
    wide: Vec<f32>,
    out: Vec<f32>,
}

impl Encoder {
    /// Loads the weights from a file. The error says, in words, what is wrong with it.
    pub fn new(file: &Bytes, config: Config) -> Result<Self, String> {
        let (size, heads) = (config.hidden_size, config.num_attention_heads);
        if config.hidden_act != "gelu" {
            return Err(format!("its activation is {}", config.hidden_act));
        }
        if heads == 0 || size == 0 || !size.is_multiple_of(heads) || config.max_position_embeddings == 0 {
            return Err(format!("{heads} heads do not share {size} components"));
        }
        let loader = Loader { file: SafeTensors::new(file)?, config: &config };
        let words = loader.tensor("embeddings.word_embeddings.weight", &[config.vocab_size, size])?;
        let words = Weight::new(words.kind, config.vocab_size, size, words.bytes).map_err(|e| e.to_string())?;
        let shape = [config.max_position_embeddings, size];
        let mut positions = loader.tensor("embeddings.position_embeddings.weight", &shape)?.numbers();
        let shape = [config.type_vocab_size, size];
        let types = loader.tensor("embeddings.token_type_embeddings.weight", &shape)?.numbers();
        for position in positions.chunks_exact_mut(size) {
            simd::add(position, types.get(..size).ok_or("it knows no kind of text")?);
        }
        let start = loader.norm("embeddings.LayerNorm")?;
        let layers = (0..config.num_hidden_layers).map(|i| loader.layer(i)).collect::<Result<_, _>>()?;
        let kernels = Kernels::new(Arc::new(Pool::for_this_machine()), Tier::detect());
        Ok(Self { kernels, words, positions, start, layers, buffers: Buffers::default(), config })
    }

    /// Returns the number of components of a state.
    pub fn size(&self) -> usize {
        self.config.hidden_size
    }

    /// Computes the last layer's states of all texts, concatenated.
    ///
    /// # Errors
    /// [`ModelError::Engine`] for a token that is not in the vocabulary, [`ModelError::TooLong`] for a text beyond
    /// the last position.
    pub fn forward(&mut self, texts: &[&[u32]]) -> Result<Vec<f32>, ModelError> {
        let Self { config, kernels, words, positions, start, layers, buffers } = self;
        let size = config.hidden_size;
        let mut spans: Vec<Range<usize>> = Vec::with_capacity(texts.len());
        let mut states = Vec::new();
        for text in texts {
            if text.len() > config.max_position_embeddings {
                return Err(ModelError::TooLong { tokens: text.len(), limit: config.max_position_embeddings });
            }
            let first = states.len() / size;
            spans.push(first..first + text.len());
            for (token, position) in text.iter().zip(positions.chunks_exact(size)) {
                if *token as usize >= config.vocab_size {
                    return Err(ModelError::Engine(format!("token {token} is not in the model's vocabulary")));
                }
                let at = states.len();
                states.resize(at + size, 0.0);
                words.embed_row(*token as usize, &mut states[at..]);
                simd::add(&mut states[at..], position);
            }
        }
        let eps = config.layer_norm_eps;
        let pool = kernels.pool().clone();
        for_pieces(&pool, &mut states, TASK_ROWS * size, |_, piece, _| start.apply(piece, eps));
        for layer in layers {
            layer.forward(&mut states, &spans, config, kernels, buffers);
        }
        Ok(states)
    }
}

impl Layer {
    fn forward(
        &self,
        states: &mut [f32],
        spans: &[Range<usize>],
        config: &Config,
        kernels: &mut Kernels,
        buffers: &mut Buffers,
    ) {
        let (size, eps) = (config.hidden_size, config.layer_norm_eps);
        let tokens = states.len() / size;
        let pool = kernels.pool().clone();
        let Buffers { query, key, value, context, out, .. } = buffers;
        for buffer in [query, key, value, context, out] {
            buffer.resize(tokens * size, 0.0);
        }
        let three = [&self.query, &self.key, &self.value];
        let outs = &mut [&mut buffers.query[..], &mut buffers.key, &mut buffers.value];
        kernels.matmul(&three.map(|linear| &linear.weight), states, tokens, outs);
        for (linear, out) in three.iter().zip(outs) {
            linear.add_bias(&pool, out);
        }
        attend(&pool, spans, config, buffers);

        kernels.matmul(&[&self.output.weight], &buffers.context, tokens, &mut [&mut buffers.out]);
        self.output.add_to(&pool, &buffers.out, states, &self.attention_norm, eps);

        buffers.wide.resize(tokens * config.intermediate_size, 0.0);
        kernels.matmul(&[&self.up.weight], states, tokens, &mut [&mut buffers.wide]);
        for_pieces(&pool, &mut buffers.wide, TASK_ROWS * config.intermediate_size, |_, piece, _| {
            for row in piece.chunks_exact_mut(config.intermediate_size) {
                simd::add(row, &self.up.bias);
                simd::gelu(row);
            }
        });
        kernels.matmul(&[&self.down.weight], &buffers.wide, tokens, &mut [&mut buffers.out]);
        self.down.add_to(&pool, &buffers.out, states, &self.output_norm, eps);
    }
}

impl Linear {
    fn add_bias(&self, pool: &Pool, out: &mut [f32]) {
        let width = self.bias.len();
        for_pieces(pool, out, TASK_ROWS * width, |_, piece, _| {
            piece.chunks_exact_mut(width).for_each(|row| simd::add(row, &self.bias));
        });
    }

    /// Computes `states = norm(states + out + bias)`.
    fn add_to(&self, pool: &Pool, out: &[f32], states: &mut [f32], norm: &Norm, eps: f32) {
        let width = self.bias.len();
        for_pieces(pool, states, TASK_ROWS * width, |index, piece, _| {
            let out = out[index * TASK_ROWS * width..].chunks_exact(width);
            for (row, out) in piece.chunks_exact_mut(width).zip(out) {
                simd::add(row, out);
                simd::add(row, &self.bias);
            }
            norm.apply(piece, eps);
        });
    }
}

impl Norm {
    /// Normalizes each row to mean 0 and variance 1, then scales and shifts it (Ba, Kiros, Hinton, "Layer
    /// Normalization", 2016).
    fn apply(&self, rows: &mut [f32], eps: f32) {
        for row in rows.chunks_exact_mut(self.weight.len()) {
            simd::layer_norm(row, &self.weight, &self.bias, eps);
        }
    }
}

/// Computes every text's full attention over the queries, keys and values in `buffers`; writes the result to
/// `buffers.context`.
fn attend(pool: &Pool, spans: &[Range<usize>], config: &Config, buffers: &mut Buffers) {
    let (size, heads) = (config.hidden_size, config.num_attention_heads);
    let dim = size / heads;
    let plane = spans.iter().map(Range::len).max().unwrap_or(0).max(1) * dim;
    let Buffers { query, key, value, planes, context, .. } = buffers;
    planes.clear();
    planes.resize(spans.len() * heads * plane, 0.0);
    for_pieces(pool, planes, plane, |task, out, _| {
        let (span, head) = (spans[task / heads].clone(), task % heads);
        let (count, from) = (span.len(), span.start * size + head * dim);
        let mut transposed = vec![0.0; dim * count];
        let scale = 1.0 / (dim as f32).sqrt();
        for (i, key) in key.get(from..).unwrap_or_default().chunks(size).take(count).enumerate() {
            for (j, x) in key[..dim].iter().enumerate() {
                transposed[j * count + i] = x * scale;
            }
        }
        let mut scores = vec![0.0; ROWS.min(count) * count];
        for first in (0..count).step_by(ROWS) {
            let rows = ROWS.min(count - first);
            let scores = &mut scores[..rows * count];
            scores.fill(0.0);
            let queries = View { data: &query[from + first * size..], stride: size };
            multiply_add(queries, View { data: &transposed, stride: count }, scores, count, rows, count, dim);
            let out = &mut out[first * dim..][..rows * dim];
            let mut sums = [0.0; ROWS];
            for (row, sum) in scores.chunks_exact_mut(count).zip(&mut sums) {
                let peak = simd::largest(row);
                *sum = simd::exp_in_place(row, peak);
            }
            let values = View { data: &value[from..], stride: size };
            multiply_add(View { data: scores, stride: count }, values, out, dim, rows, dim, count);
            for (row, sum) in out.chunks_exact_mut(dim).zip(sums) {
                simd::scale(row, 1.0 / sum);
            }
        }
    });
    for (task, plane) in planes.chunks_exact(plane).enumerate() {
        let (span, head) = (spans[task / heads].clone(), task % heads);
        for (position, row) in span.zip(plane.chunks_exact(dim)) {
            context[position * size + head * dim..][..dim].copy_from_slice(row);
        }
    }
}

/// Loads weights from a file by BERT's names.
struct Loader<'a> {
    file: SafeTensors,
    config: &'a Config,
}

impl Loader<'_> {
    fn tensor(&self, name: &str, shape: &[usize]) -> Result<super::safetensors::Tensor, String> {
        // in some files the encoder is part of a larger model
        let inner = format!("bert.{name}");
        self.file.tensor(if self.file.has(&inner) { &inner } else { name }, shape)
    }

    fn norm(&self, name: &str) -> Result<Norm, String> {
        let part =
            |part: &str| Ok::<_, String>(self.tensor(&format!("{name}.{part}"), &[self.config.hidden_size])?.numbers());
        Ok(Norm { weight: part("weight")?, bias: part("bias")? })
    }

    fn linear(&self, name: &str, rows: usize, cols: usize) -> Result<Linear, String> {
        let weight = self.tensor(&format!("{name}.weight"), &[rows, cols])?.numbers();
        let bias = self.tensor(&format!("{name}.bias"), &[rows])?.numbers();
        Ok(Linear { weight: quantize(&weight, rows, cols).map_err(|e| format!("tensor {name}: {e}"))?, bias })
    }

    fn layer(&self, index: usize) -> Result<Layer, String> {
        let (size, wide) = (self.config.hidden_size, self.config.intermediate_size);
        let name = |part: &str| format!("encoder.layer.{index}.{part}");
        Ok(Layer {
            query: self.linear(&name("attention.self.query"), size, size)?,
            key: self.linear(&name("attention.self.key"), size, size)?,
            value: self.linear(&name("attention.self.value"), size, size)?,
            output: self.linear(&name("attention.output.dense"), size, size)?,
            attention_norm: self.norm(&name("attention.output.LayerNorm"))?,
            up: self.linear(&name("intermediate.dense"), wide, size)?,
            down: self.linear(&name("output.dense"), size, wide)?,
            output_norm: self.norm(&name("output.LayerNorm"))?,
        })
    }
}

/// Quantizes a matrix to [`Kind::Q8_0`]: blocks of 32 numbers of eight bits with one scale.
fn quantize(numbers: &[f32], rows: usize, cols: usize) -> Result<Weight, ModelError> {
    let mut bytes = Vec::with_capacity(numbers.len() / 32 * 34);
    for block in numbers.chunks(32) {
        let largest = block.iter().fold(0f32, |largest, x| largest.max(x.abs()));
        let scale = f16::from_f32(largest / 127.0);
        let inverse = if scale > f16::ZERO { 1.0 / scale.to_f32() } else { 0.0 };
        bytes.extend(scale.to_le_bytes());
        // `as` saturates at the type's limits
        bytes.extend(block.iter().map(|x| ((x * inverse).round() as i8).to_le_bytes()[0]));
    }
    Weight::new(Kind::Q8_0, rows, cols, bytes.into())
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
