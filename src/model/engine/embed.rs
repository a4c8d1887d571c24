//! Computes sentence embeddings with a BERT encoder, as sentence-transformers publishes them: the mean of the last
//! layer's states, scaled to length 1. Source: Reimers and Gurevych, "Sentence-BERT" (2019), and the model's own card.

use super::bytes::Bytes;
use super::encoder::{Config, Encoder};
use crate::ModelError;
use crate::embed::{Embedder, normalize};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tokenizers::{Tokenizer, TruncationParams};

/// Most tokens of a text that are used; the model was trained with no longer texts. Source: `max_seq_length` of its
/// publisher.
pub const MAX_TOKENS: usize = 256;

/// Tokens of one batch: enough to keep the cores busy, and few enough for their caches.
const BATCH_TOKENS: usize = 2048;

/// An encoder in a folder with `model.safetensors`, `tokenizer.json` and `config.json`. The files are read when first
/// needed.
pub struct SentenceEncoder {
    id: String,
    folder: PathBuf,
    /// Loaded when first needed. Locked while computing, so that one batch at a time limits memory.
    net: Mutex<Option<Net>>,
}

struct Net {
    encoder: Encoder,
    tokenizer: Tokenizer,
}

impl SentenceEncoder {
    /// Returns the encoder in a folder.
    pub fn new(folder: &Path, id: &str) -> Self {
        Self { id: id.into(), folder: folder.into(), net: Mutex::new(None) }
    }

    /// Runs `work` with the encoder, which is loaded if necessary.
    fn with<T>(&self, work: impl FnOnce(&mut Net) -> Result<T, ModelError>) -> Result<T, ModelError> {
        let mut net = self.net.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *net {
            Some(net) => work(net),
            none => work(none.insert(Net::open(&self.folder)?)),
        }
    }
}

impl Net {
    fn open(folder: &Path) -> Result<Self, ModelError> {
        let weights = "model.safetensors";
        super::readahead::read(&folder.join(weights));
        let bad = |name: &str, reason: String| {
            let file = folder.join(name).display().to_string();
            ModelError::BadFile { file, reason }
        };
        let read = |name: &str| std::fs::read(folder.join(name)).map_err(|e| bad(name, e.to_string()));
        let config: Config =
            serde_json::from_slice(&read("config.json")?).map_err(|e| bad("config.json", e.to_string()))?;
        let max_length = MAX_TOKENS.min(config.max_position_embeddings);
        let truncation = TruncationParams { max_length, ..TruncationParams::default() };
        let mut tokenizer =
            Tokenizer::from_bytes(read("tokenizer.json")?).map_err(|e| bad("tokenizer.json", e.to_string()))?;
        tokenizer
            .with_padding(None)
            .with_truncation(Some(truncation))
            .map_err(|e| bad("tokenizer.json", e.to_string()))?;
        let file = File::open(folder.join(weights)).map_err(|e| bad(weights, e.to_string()))?;
        let bytes = Bytes::map(&file).map_err(|e| bad(weights, e.to_string()))?;
        let encoder = Encoder::new(&bytes, config).map_err(|e| bad(weights, e))?;
        Ok(Self { encoder, tokenizer })
    }

    /// Tokenizes a text, to at most [`MAX_TOKENS`].
    fn tokens(&self, text: &str) -> Result<Vec<u32>, ModelError> {
        // the beginning of a long text is enough for the most tokens
        let mut end = text.len().min(64 * MAX_TOKENS);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let encoding = self.tokenizer.encode_fast(&text[..end], true).map_err(|e| ModelError::Engine(e.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Computes the vectors of one batch.
    fn vectors(&mut self, batch: &[&[u32]]) -> Result<Vec<Vec<f32>>, ModelError> {
        let states = self.encoder.forward(batch)?;
        let size = self.encoder.size();
        let mut states = states.chunks_exact(size);
        let mean = |tokens: &&[u32]| {
            let mut sum = vec![0f32; size];
            for state in states.by_ref().take(tokens.len()) {
                sum.iter_mut().zip(state).for_each(|(sum, x)| *sum += x);
            }
            // dividing by the count is unnecessary, because the length is scaled to 1
            normalize(&mut sum);
            sum
        };
        Ok(batch.iter().map(mean).collect())
    }
}

impl Embedder for SentenceEncoder {
    fn id(&self) -> &str {
        &self.id
    }

    fn prepare(&self) -> Result<(), ModelError> {
        self.with(|_| Ok(()))
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError> {
        self.with(|net| {
            let tokens = texts.iter().map(|text| net.tokens(text)).collect::<Result<Vec<_>, _>>()?;
            // texts of similar length share a batch, so that its tasks end together
            let mut order: Vec<usize> = (0..texts.len()).collect();
            order.sort_by_key(|&i| std::cmp::Reverse(tokens[i].len()));
            let mut vectors = vec![Vec::new(); texts.len()];
            let mut rest = &order[..];
            while let Some(&longest) = rest.first() {
                let size = (BATCH_TOKENS / tokens[longest].len().max(1)).clamp(1, rest.len());
                let (batch, later) = rest.split_at(size);
                let ids: Vec<&[u32]> = batch.iter().map(|&i| &tokens[i][..]).collect();
                for (&i, vector) in batch.iter().zip(net.vectors(&ids)?) {
                    vectors[i] = vector;
                }
                rest = later;
            }
            Ok(vectors)
        })
    }

    fn count(&self, texts: &[&str]) -> Result<usize, ModelError> {
        self.with(|net| texts.iter().map(|text| net.tokens(text).map(|tokens| tokens.len())).sum())
    }
}

impl std::fmt::Debug for SentenceEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SentenceEncoder").field("id", &self.id).field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_folder_is_refused_with_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let encoder = SentenceEncoder::new(dir.path(), "x");
        let error = |encoder: &SentenceEncoder| encoder.embed(&["a"]).unwrap_err().to_string();
        assert!(error(&encoder).contains("config.json"));
        std::fs::write(dir.path().join("config.json"), "{}").unwrap();
        assert!(error(&encoder).contains("config.json"));
        std::fs::write(
            dir.path().join("config.json"),
            r#"{"vocab_size": 9, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1,
                "intermediate_size": 4, "hidden_act": "gelu", "hidden_dropout_prob": 0, "max_position_embeddings": 8,
                "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12, "pad_token_id": 0}"#,
        )
        .unwrap();
        assert!(error(&encoder).contains("tokenizer.json"));
        std::fs::write(dir.path().join("tokenizer.json"), "no tokenizer").unwrap();
        assert!(error(&encoder).contains("tokenizer.json"));
    }
}
