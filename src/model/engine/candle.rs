//! A [`Backend`] that runs candle's models: for CUDA and Metal, for architectures without a forward pass here, and as
//! the oracle of the tests.

use super::Device;
use super::backend::Backend;
use super::gguf::Gguf;
use crate::{Cancel, ModelError};
use candle_core::quantized::gguf_file::{Content, Value};
use candle_core::{Device as Place, Tensor};
use candle_transformers::models::{quantized_glm4, quantized_lfm2, quantized_llama, quantized_qwen2, quantized_qwen3};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// A model run by candle.
pub(super) struct Candle {
    model: Net,
    place: Place,
    context: usize,
    vocab: usize,
    len: usize,
    logits: Vec<f32>,
}

/// A forward pass of a test: computes the logits from tokens and their position.
#[cfg(test)]
type Pass = Box<dyn FnMut(&Tensor, usize) -> candle_core::Result<Tensor> + Send>;

enum Net {
    Qwen2(quantized_qwen2::ModelWeights),
    Llama(quantized_llama::ModelWeights),
    Qwen3(quantized_qwen3::ModelWeights),
    Glm4(quantized_glm4::ModelWeights),
    Lfm2(quantized_lfm2::ModelWeights),
    #[cfg(test)]
    Test(Pass),
}

impl Candle {
    /// True if this build supports a graphics device and the machine has one.
    pub fn has_accelerator() -> bool {
        cfg!(any(feature = "cuda", feature = "metal")) && best_place().is_ok_and(|place| !place.is_cpu())
    }

    /// Loads a model. Reads the whole file into memory, or onto the device.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] for a device that this build or machine does not have and for architectures that
    /// candle does not know; [`ModelError::BadFile`] for a file that candle refuses.
    pub fn open(gguf: &Gguf, path: &Path, device: Device, context: usize) -> Result<Self, ModelError> {
        let place = place(device)?;
        let name = gguf.text("general.architecture").unwrap_or_default();
        let bad = |error: candle_core::Error| gguf.bad(error.to_string());
        let mut file = BufReader::new(File::open(path).map_err(|error| gguf.bad(error.to_string()))?);
        let mut content = Content::read(&mut file).map_err(bad)?;
        // Without this key candle's Qwen3 computes its rotary table in f16, which is too coarse from some hundred
        // tokens on; 0 means f32.
        content.metadata.insert("general.dtype".into(), Value::U32(0));
        check_header(gguf, name)?;
        // candle computes its rotary table for the context length in the file
        content.metadata.insert(format!("{name}.context_length"), Value::U32(context as u32));
        let vocab = gguf.tensor("token_embd.weight")?.dims.get(1).copied().unwrap_or(0);
        let model = match name {
            "qwen2" => Net::Qwen2(quantized_qwen2::ModelWeights::from_gguf(content, &mut file, &place).map_err(bad)?),
            "llama" => Net::Llama(quantized_llama::ModelWeights::from_gguf(content, &mut file, &place).map_err(bad)?),
            "qwen3" => Net::Qwen3(quantized_qwen3::ModelWeights::from_gguf(content, &mut file, &place).map_err(bad)?),
            "glm4" => {
                let kind = if place.is_cpu() { candle_core::DType::F32 } else { candle_core::DType::BF16 };
                Net::Glm4(quantized_glm4::ModelWeights::from_gguf(content, &mut file, &place, kind).map_err(bad)?)
            }
            "lfm2" => Net::Lfm2(quantized_lfm2::ModelWeights::from_gguf(content, &mut file, &place).map_err(bad)?),
            other => return Err(ModelError::Unsupported { what: "architecture", name: other.into() }),
        };
        Ok(Self { model, place, context, vocab, len: 0, logits: Vec::new() })
    }

    fn step(&mut self, tokens: &[u32]) -> candle_core::Result<()> {
        let input = Tensor::new(tokens, &self.place)?.unsqueeze(0)?;
        let output = match &mut self.model {
            Net::Qwen2(model) => model.forward(&input, self.len)?,
            Net::Llama(model) => model.forward(&input, self.len)?,
            Net::Qwen3(model) => model.forward(&input, self.len)?,
            Net::Glm4(model) => model.forward(&input, self.len)?,
            Net::Lfm2(model) => model.forward(&input, self.len)?,
            #[cfg(test)]
            Net::Test(forward) => forward(&input, self.len)?,
        };
        self.logits = output.flatten_all()?.to_dtype(candle_core::DType::F32)?.to_vec1()?;
        self.len += tokens.len();
        Ok(())
    }
}

impl Backend for Candle {
    fn context(&self) -> usize {
        self.context
    }

    fn len(&self) -> usize {
        self.len
    }

    /// Starts over, because candle's caches cannot be truncated. A call at position 0 replaces their content.
    fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = 0;
        }
    }

    fn feed(&mut self, tokens: &[u32], cancel: &Cancel) -> Result<bool, ModelError> {
        if tokens.len() > self.context - self.len {
            return Err(ModelError::TooLong { tokens: self.len + tokens.len(), limit: self.context });
        }
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= self.vocab) {
            return Err(ModelError::Engine(format!("token {token} is not in the model's vocabulary")));
        }
        if self.len == 0
            && let Net::Qwen3(model) = &mut self.model
        {
            model.clear_kv_cache();
        }
        // When several tokens follow single ones, candle's Qwen3 on the CPU forgets the single ones, and its LFM2
        // restarts its convolutions: so tokens are fed one by one.
        let size = match self.model {
            Net::Qwen3(_) | Net::Lfm2(_) if self.len > 0 => 1,
            _ => tokens.len().max(1),
        };
        for tokens in tokens.chunks(size) {
            if cancel.is_cancelled() {
                return Ok(false);
            }
            if let Err(error) = self.step(tokens) {
                // some layers may have cached these tokens already: start over
                self.len = 0;
                return Err(ModelError::Engine(error.to_string()));
            }
        }
        Ok(true)
    }

    fn logits(&mut self) -> &mut [f32] {
        &mut self.logits
    }

    fn describe(&self) -> String {
        let place = match &self.place {
            Place::Cpu => "cpu",
            Place::Cuda(_) => "cuda",
            Place::Metal(_) => "metal",
        };
        format!("{place}, candle")
    }
}

/// Checks the header values that candle uses unchecked: it divides by them, and allocates memory by them.
fn check_header(gguf: &Gguf, name: &str) -> Result<(), ModelError> {
    let number = |key: &str, most: usize| gguf.number(&format!("{name}.{key}"), most);
    for (key, most) in [("block_count", 1 << 10), ("attention.key_length", 1 << 10), ("shortconv.l_cache", 1 << 6)] {
        number(key, most)?;
    }
    let heads = number("attention.head_count", 1 << 10)?;
    let width = number("embedding_length", 1 << 16)?;
    let key = format!("{name}.attention.head_count_kv");
    let per_layer = gguf.array(&key).and_then(|array| Some(array.integers()?.collect::<Vec<i64>>()));
    let groups = match per_layer {
        Some(all) => all,
        None => number("attention.head_count_kv", 1 << 10)?.map(|n| n as i64).into_iter().collect(),
    };
    let Some(heads) = heads.map(|n| n as i64) else { return Ok(()) };
    // a layer without attention has no heads
    let fit = groups.iter().all(|n| *n == 0 || (1..=heads).contains(n) && heads % n == 0);
    if !fit || width.is_some_and(|width| width as i64 % heads != 0) {
        return Err(gguf.bad(format!("{heads} heads over {groups:?} make no attention")));
    }
    Ok(())
}

/// Returns candle's device for the requested one.
fn place(device: Device) -> Result<Place, ModelError> {
    let missing = |name: String| ModelError::Unsupported { what: "device", name };
    match device {
        Device::Cpu => Ok(Place::Cpu),
        Device::Auto => Ok(best_place().unwrap_or(Place::Cpu)),
        Device::Cuda if !cfg!(feature = "cuda") => Err(missing("cuda, which this build was made without".into())),
        Device::Metal if !cfg!(feature = "metal") => Err(missing("metal, which this build was made without".into())),
        Device::Cuda => Place::new_cuda(0).map_err(|error| missing(format!("cuda ({error})"))),
        Device::Metal => Place::new_metal(0).map_err(|error| missing(format!("metal ({error})"))),
    }
}

fn best_place() -> candle_core::Result<Place> {
    if cfg!(feature = "cuda") {
        Place::new_cuda(0)
    } else if cfg!(feature = "metal") {
        Place::new_metal(0)
    } else {
        Ok(Place::Cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Field, Tiny};
    use super::*;

    #[test]
    fn an_invalid_header_is_refused() {
        for (architecture, key, value) in [
            ("glm4", "attention.head_count", Field::U32(0)),
            ("glm4", "attention.head_count", Field::U32(3)),
            ("glm4", "attention.head_count_kv", Field::U32(3)),
            ("glm4", "attention.head_count_kv", Field::U32(0)),
            ("glm4", "block_count", Field::U32(u32::MAX)),
            ("glm4", "attention.key_length", Field::U32(0)),
            ("lfm2", "embedding_length", Field::U32(0)),
            ("lfm2", "shortconv.l_cache", Field::U32(0)),
            ("lfm2", "attention.head_count_kv", Field::I32s(vec![0, 3])),
            ("lfm2", "attention.head_count_kv", Field::I32s(vec![0, -1])),
        ] {
            let mut tiny = Tiny::new(architecture);
            tiny.set(&format!("{architecture}.{key}"), value.clone());
            let file = tiny.file();
            let gguf = Gguf::open(file.path()).unwrap();
            let opened = Candle::open(&gguf, file.path(), Device::Cpu, 64);
            assert!(matches!(opened, Err(ModelError::BadFile { .. })), "{architecture} {key} {value:?}");
        }
    }

    #[test]
    fn a_failure_empties_the_sequence() {
        let place = Place::Cpu;
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut calls = 0;
        let forward = move |input: &Tensor, position: usize| {
            sender.send((input.elem_count(), position)).unwrap();
            calls += 1;
            if calls == 2 {
                candle_core::bail!("out of memory")
            } else {
                Tensor::zeros(8, candle_core::DType::F32, &Place::Cpu)
            }
        };
        let model = Net::Test(Box::new(forward));
        let mut model = Candle { model, place, context: 64, vocab: 8, len: 0, logits: Vec::new() };
        let cancel = Cancel::new();
        assert!(model.feed(&[1, 2], &cancel).unwrap());
        assert!(model.feed(&[3], &cancel).is_err());
        assert_eq!(model.len(), 0);
        assert!(model.feed(&[1, 2, 3], &cancel).unwrap());
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [(2, 0), (1, 2), (3, 0)]);
    }

    #[test]
    fn lfm2_computes_several_tokens_as_one_by_one() {
        let mut tiny = Tiny::new("lfm2");
        tiny.set("lfm2.attention.head_count_kv", Field::I32s(vec![0, 2]));
        tiny.set("lfm2.shortconv.l_cache", Field::U32(3));
        for (name, dims) in [
            ("blk.0.shortconv.in_proj.weight", &[64, 192][..]),
            ("blk.0.shortconv.out_proj.weight", &[64, 64]),
            ("blk.0.shortconv.conv.weight", &[3, 64]),
            ("blk.1.attn_q_norm.weight", &[16]),
            ("blk.1.attn_k_norm.weight", &[16]),
        ] {
            tiny.tensor(name, dims, 0.5);
        }
        let file = tiny.file();
        let gguf = Gguf::open(file.path()).unwrap();
        let open = || Candle::open(&gguf, file.path(), Device::Cpu, 64).unwrap();
        let (mut together, mut alone) = (open(), open());
        let cancel = Cancel::new();
        for model in [&mut together, &mut alone] {
            assert!(model.feed(&[1, 2, 3, 4, 5], &cancel).unwrap());
        }
        assert!(together.feed(&[6, 7, 8], &cancel).unwrap());
        for token in [6, 7, 8] {
            assert!(alone.feed(&[token], &cancel).unwrap());
        }
        let off = together.logits().iter().zip(alone.logits()).map(|(a, b)| (*a - *b).abs()).fold(0.0, f32::max);
        assert!(off < 1e-3 && together.len() == 8, "off by {off}");
    }
}
