//! Helpers for the engine's tests: a tiny random model with a tiny vocabulary, the `tokenizers` crate as the oracle,
//! and the path of a real model. Other crates' tests open the tiny model too, so it is no `cfg(test)`; no program
//! uses it.
#![allow(clippy::unwrap_used, clippy::print_stderr, dead_code)]

use super::AdapterOptions;
use super::bytes::Bytes;
use super::gguf::Gguf;
use super::gguf_writer::Writer;
use super::quant::Kind;
use super::tokenizer::{Source, Tokenizer};
use crate::{Cancel, Completion, Flow, Model, Prompt, Request, Role, Sampling, Shape};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use std::path::PathBuf;

pub(super) fn candle_kind(kind: Kind) -> GgmlDType {
    match kind {
        Kind::F32 => GgmlDType::F32,
        Kind::F16 => GgmlDType::F16,
        Kind::BF16 => GgmlDType::BF16,
        Kind::Q4_0 => GgmlDType::Q4_0,
        Kind::Q4_1 => GgmlDType::Q4_1,
        Kind::Q5_0 => GgmlDType::Q5_0,
        Kind::Q5_1 => GgmlDType::Q5_1,
        Kind::Q8_0 => GgmlDType::Q8_0,
        Kind::Q4K => GgmlDType::Q4K,
        Kind::Q5K => GgmlDType::Q5K,
        Kind::Q6K => GgmlDType::Q6K,
    }
}

/// Quantises values to blocks of a kind with candle.
pub(super) fn quantised(kind: Kind, values: &[f32]) -> Vec<u8> {
    let tensor = Tensor::from_vec(values.to_vec(), values.len(), &Device::Cpu).unwrap();
    QTensor::quantize(&tensor, candle_kind(kind)).unwrap().data().unwrap().into_owned()
}

/// A metadata value to write.
#[derive(Debug, Clone)]
pub(super) enum Field {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    I32s(Vec<i32>),
}

/// Tokens, kinds and merges.
#[derive(Debug, Clone)]
pub(super) struct Vocabulary {
    pub tokens: Vec<String>,
    pub kinds: Vec<i32>,
    pub merges: Vec<String>,
}

/// Returns a vocabulary of all bytes, some merges and the reserved tokens of both template families.
pub(super) fn tiny_vocabulary() -> Vocabulary {
    const MERGES: &str = "Ġ t|h e|i n|Ġ a|r e|o n|Ġt he|e r|Ġ Ġ|ĠĠ ĠĠ|Ċ Ċ|s t|l l|Ġ s|o r|e n|l o|h i|he ll|hell o|Ġ hello\
        |Ġ -|- -|1 2|12 3|a b|ab c|abc e|c h|l e|le ll|' s|æ Ĺ|æĹ ¥|æĹ¥ æ|Ã ©|: Ġ|\" :|a s|y s|ys t|yst em|e m|u s|us er\
        |l s|l a|' t|st i|in st|i c|r in|s in|t i|b o";
    let merges: Vec<String> = MERGES.split('|').map(str::to_owned).collect();
    let mut tokens: Vec<String> =
        (0..=255u8).map(|b| char::from_u32(super::tokenizer::char_of(b)).unwrap().to_string()).collect();
    for merge in &merges {
        let token = merge.replace(' ', "");
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    let mut kinds = vec![1; tokens.len()];
    for (token, kind) in [
        ("<|im_start|>", 3),
        ("<|im_end|>", 3),
        ("<|endoftext|>", 3),
        ("<|begin_of_text|>", 3),
        ("<|start_header_id|>", 3),
        ("<|end_header_id|>", 3),
        ("<|eot_id|>", 3),
        ("<think>", 4),
        ("</think>", 4),
        ("<tool_call>", 4),
        ("[PAD0]", 5),
        ("[PAD1]", 5),
    ] {
        tokens.push(token.into());
        kinds.push(kind);
    }
    Vocabulary { tokens, kinds, merges }
}

/// Returns the tokenizer of [`tiny_vocabulary`] with a family's way to split.
pub(super) fn tiny_tokenizer(pre: &str) -> Tokenizer {
    let vocabulary = tiny_vocabulary();
    let source = Source {
        model: "gpt2",
        pre,
        tokens: &mut vocabulary.tokens.iter().map(|t| t.as_bytes()),
        kinds: &mut vocabulary.kinds.iter().copied(),
        merges: &mut vocabulary.merges.iter().map(|m| m.as_bytes()),
    };
    Tokenizer::build(source, &|reason| panic!("{reason}")).unwrap()
}

/// Reads the vocabulary of a real file.
pub(super) fn vocabulary_of(gguf: &Gguf) -> Vocabulary {
    let strings = |key: &str| {
        let array = gguf.array(key).unwrap();
        array.strings().unwrap().map(|s| String::from_utf8(s.to_vec()).unwrap()).collect()
    };
    let kinds = gguf.array("tokenizer.ggml.token_type").unwrap().integers().unwrap().map(|k| k as i32).collect();
    Vocabulary { tokens: strings("tokenizer.ggml.tokens"), kinds, merges: strings("tokenizer.ggml.merges") }
}

/// Returns a tokenizer of the `tokenizers` crate with this vocabulary and the family's published expressions.
pub(super) fn oracle(pre: &str, vocabulary: &Vocabulary) -> tokenizers::Tokenizer {
    use tokenizers::models::bpe::{BPE, Vocab};
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;
    use tokenizers::pre_tokenizers::digits::Digits;
    use tokenizers::pre_tokenizers::sequence::Sequence;
    use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
    use tokenizers::{PreTokenizerWrapper, SplitDelimiterBehavior};

    let normal = |id: usize| vocabulary.kinds[id] == 1;
    let ids: Vocab = vocabulary.tokens.iter().cloned().zip(0u32..).filter(|(_, id)| normal(*id as usize)).collect();
    let merges = vocabulary.merges.iter().map(|merge| {
        let (left, right) = merge.split_once(' ').unwrap();
        (left.to_owned(), right.to_owned())
    });
    let bpe = BPE::builder().vocab_and_merges(ids, merges.collect()).ignore_merges(pre == "llama-bpe").build().unwrap();
    let mut tokenizer = tokenizers::Tokenizer::new(bpe);
    if pre == "qwen2" {
        tokenizer.with_normalizer(Some(tokenizers::normalizers::unicode::NFC)).unwrap();
    }
    let bytes = |regex| ByteLevel::new(false, false, regex);
    let modern = |numbers: &str| -> PreTokenizerWrapper {
        let pattern = format!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        );
        let split = Split::new(SplitPattern::Regex(pattern), SplitDelimiterBehavior::Isolated, false).unwrap();
        Sequence::new(vec![split.into(), bytes(false).into()]).into()
    };
    tokenizer.with_pre_tokenizer(Some(match pre {
        "qwen2" => modern(r"\p{N}"),
        "llama-bpe" => modern(r"\p{N}{1,3}"),
        "smollm" => Sequence::new(vec![Digits::new(true).into(), bytes(true).into()]).into(),
        "gpt-2" => bytes(true).into(),
        other => panic!("{other}"),
    }));
    tokenizer
}

/// Writes the file of a model with random weights, for tests that open one.
pub fn tiny_file() -> tempfile::NamedTempFile {
    Tiny::new("qwen2").file()
}

/// A model of two layers with random weights, which tests can change before it is written.
#[derive(Debug, Clone)]
pub(super) struct Tiny {
    fields: Vec<(String, Field)>,
    tensors: Vec<(String, Vec<u64>, Vec<f32>)>,
    /// Formats of the matrices, in turn; plain numbers if empty.
    kinds: Vec<Kind>,
}

impl Tiny {
    /// Returns a model of an architecture (`qwen2`, `llama`, `qwen3`), 64 wide.
    pub fn new(architecture: &str) -> Self {
        Self::sized(architecture, 64, 128)
    }

    /// Returns a model with matrices in these block formats in turn, 256 wide, which is enough for all formats.
    pub fn quantised(architecture: &str, kinds: &[Kind]) -> Self {
        Self { kinds: kinds.to_vec(), ..Self::sized(architecture, 256, 512) }
    }

    fn sized(architecture: &str, width: u64, hidden: u64) -> Self {
        let vocabulary = tiny_vocabulary();
        let (dim, heads, kv_heads) = (16, width / 16, 2);
        let vocab = vocabulary.tokens.len() as u64;
        let llama = architecture == "llama";
        let id = |name: &str| vocabulary.tokens.iter().position(|t| t == name).unwrap() as u32;
        let template = if llama { "<|start_header_id|>" } else { "<|im_start|>" };
        let mut tiny = Self { fields: Vec::new(), tensors: Vec::new(), kinds: Vec::new() };
        for (key, value) in [
            ("general.architecture", Field::Text(architecture.into())),
            ("?.block_count", Field::U32(2)),
            ("?.context_length", Field::U32(512)),
            ("?.embedding_length", Field::U32(width as u32)),
            ("?.feed_forward_length", Field::U32(hidden as u32)),
            ("?.attention.head_count", Field::U32(heads as u32)),
            ("?.attention.head_count_kv", Field::U32(kv_heads as u32)),
            ("?.attention.key_length", Field::U32(dim as u32)),
            ("?.attention.value_length", Field::U32(dim as u32)),
            ("?.attention.layer_norm_rms_epsilon", Field::F32(1e-6)),
            ("?.rope.freq_base", Field::F32(10_000.0)),
            ("?.rope.dimension_count", Field::U32(dim as u32)),
            ("tokenizer.ggml.model", Field::Text("gpt2".into())),
            ("tokenizer.ggml.pre", Field::Text(if llama { "llama-bpe" } else { "qwen2" }.into())),
            ("tokenizer.ggml.add_bos_token", Field::Bool(false)),
            ("tokenizer.ggml.eos_token_id", Field::U32(id(if llama { "<|eot_id|>" } else { "<|im_end|>" }))),
            ("tokenizer.chat_template", Field::Text(template.into())),
            ("tokenizer.ggml.tokens", Field::Texts(vocabulary.tokens)),
            ("tokenizer.ggml.token_type", Field::I32s(vocabulary.kinds)),
            ("tokenizer.ggml.merges", Field::Texts(vocabulary.merges)),
        ] {
            tiny.set(&key.replace('?', architecture), value);
        }
        tiny.tensor("token_embd.weight", &[width, vocab], 1.0);
        tiny.tensor("output_norm.weight", &[width], 1.0);
        if !llama {
            tiny.tensor("output.weight", &[width, vocab], 0.3);
        }
        for layer in 0..2 {
            let mut add =
                |name: &str, dims: &[u64], scale| tiny.tensor(&format!("blk.{layer}.{name}.weight"), dims, scale);
            add("attn_norm", &[width], 1.0);
            add("attn_q", &[width, heads * dim], 0.3);
            add("attn_k", &[width, kv_heads * dim], 0.3);
            add("attn_v", &[width, kv_heads * dim], 0.3);
            add("attn_output", &[heads * dim, width], 0.2);
            add("ffn_norm", &[width], 1.0);
            add("ffn_gate", &[width, hidden], 0.2);
            add("ffn_up", &[width, hidden], 0.2);
            add("ffn_down", &[hidden, width], 0.2);
            if architecture == "qwen3" {
                add("attn_q_norm", &[dim], 1.0);
                add("attn_k_norm", &[dim], 1.0);
            }
            if architecture == "qwen2" {
                for (name, heads) in [("attn_q", heads), ("attn_k", kv_heads), ("attn_v", kv_heads)] {
                    tiny.tensor(&format!("blk.{layer}.{name}.bias"), &[heads * dim], 0.5);
                }
            }
        }
        tiny
    }

    /// Returns an adapter for a model of this width (64 for [`Self::new`], 256 for [`Self::quantised`]), with `A` and
    /// `B` in these formats and all numbers within `scale`.
    pub fn adapter(architecture: &str, width: u64, rank: u64, [a, b]: [Kind; 2], scale: f32) -> Self {
        let (hidden, keys) = (2 * width, 32);
        let mut adapter = Self { fields: Vec::new(), tensors: Vec::new(), kinds: vec![a, b] };
        for (key, value) in [
            ("general.architecture", Field::Text(architecture.into())),
            ("general.type", Field::Text("adapter".into())),
            ("adapter.type", Field::Text("lora".into())),
            ("adapter.lora.alpha", Field::F32(2.0 * rank as f32)),
        ] {
            adapter.set(key, value);
        }
        for layer in 0..2 {
            for (name, cols, rows) in [
                ("attn_q", width, width),
                ("attn_k", width, keys),
                ("attn_v", width, keys),
                ("attn_output", width, width),
                ("ffn_gate", width, hidden),
                ("ffn_up", width, hidden),
                ("ffn_down", hidden, width),
            ] {
                adapter.tensor(&format!("blk.{layer}.{name}.weight.lora_a"), &[cols, rank], scale);
                adapter.tensor(&format!("blk.{layer}.{name}.weight.lora_b"), &[rank, rows], scale);
            }
        }
        adapter
    }

    /// Returns the numbers of a tensor.
    pub fn numbers(&mut self, name: &str) -> &mut [f32] {
        &mut self.tensors.iter_mut().find(|(n, ..)| n == name).unwrap().2
    }

    /// Sets a metadata value.
    pub fn set(&mut self, key: &str, value: Field) {
        self.remove(key);
        self.fields.push((key.into(), value));
    }

    /// Removes a metadata key.
    pub fn remove(&mut self, key: &str) {
        self.fields.retain(|(k, _)| k != key);
    }

    /// Adds or replaces a tensor of random numbers within `scale`.
    pub fn tensor(&mut self, name: &str, dims: &[u64], scale: f32) {
        self.remove_tensor(name);
        let mut state = name.bytes().fold(2_166_136_261u32, |h, b| (h ^ u32::from(b)).wrapping_mul(16_777_619));
        let values = (0..dims.iter().product()).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 8) as f32 / (1 << 23) as f32 - 1.0) * scale
        });
        self.tensors.push((name.into(), dims.to_vec(), values.collect()));
    }

    /// Removes a tensor.
    pub fn remove_tensor(&mut self, name: &str) {
        self.tensors.retain(|(n, ..)| n != name);
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        for (key, value) in &self.fields {
            writer = match value {
                Field::U32(value) => writer.u32(key, *value),
                Field::F32(value) => writer.f32(key, *value),
                Field::Bool(value) => writer.bool(key, *value),
                Field::Text(value) => writer.text(key, value),
                Field::Texts(values) => writer.texts(key, values),
                Field::I32s(values) => writer.i32s(key, values),
            };
        }
        let mut kinds = self.kinds.iter().cycle();
        for (name, dims, values) in &self.tensors {
            writer = match kinds.next() {
                Some(&kind) if dims.len() == 2 => writer.tensor(name, kind, dims, &quantised(kind, values)),
                _ => writer.floats(name, dims, values),
            };
        }
        writer.finish()
    }

    /// Writes the file; it is deleted when the handle is dropped.
    pub fn file(&self) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, &self.bytes()).unwrap();
        file
    }
}

/// Parses a file in memory.
pub(super) fn parse(bytes: &[u8]) -> Gguf {
    Gguf::parse("tiny.gguf", Bytes::from(bytes.to_vec())).unwrap()
}

/// Returns the options of an adapter in memory.
pub(super) fn adapter_options(adapter: &Tiny) -> AdapterOptions {
    let file = Gguf::parse("tiny-adapter.gguf", Bytes::from(adapter.bytes())).unwrap();
    AdapterOptions { file, base_sha256: None, is_required: true }
}

/// Returns the default model's file in the models folder. If it is missing, prints that and returns `None`.
///
/// # Panics
/// If it is missing and `CARO_REQUIRE_MODEL` is 1.
pub(super) fn real_model() -> Option<PathBuf> {
    let name = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";
    let folder = std::env::var_os("CARO_MODELS_DIR")
        .map(PathBuf::from)
        .or_else(|| Some(directories::ProjectDirs::from("", "", "caro")?.cache_dir().join("models")));
    let path = folder.map(|folder| folder.join(name)).filter(|path| path.exists());
    if path.is_none() {
        let required = std::env::var_os("CARO_REQUIRE_MODEL").is_some_and(|v| v == "1");
        assert!(!required, "CARO_REQUIRE_MODEL=1, but {name} is not in the models folder: run `caro model pull`");
        eprintln!("skipped: {name} is not in the models folder; `caro model pull` fetches it");
    }
    path
}

/// Returns a request with a short prompt.
pub(super) fn request(text: &str, shape: Shape) -> Request {
    let mut prompt = Prompt::system("be brief");
    prompt.push(Role::User, text);
    Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 24, cancel: Cancel::new() }
}

/// Returns the shape of free text.
pub(super) fn free() -> Shape {
    Shape::Text { stop: vec![] }
}

/// Generates a completion, and checks that its text is the streamed text.
pub(super) fn run(model: &dyn Model, request: &Request) -> Completion {
    let mut streamed = String::new();
    let completion = model
        .generate(request, &mut |text| {
            streamed += text;
            Flow::Continue
        })
        .unwrap();
    assert_eq!(streamed, completion.text, "what is streamed is the text");
    assert_eq!(completion.usage.completion_tokens, completion.tokens.len());
    completion
}
