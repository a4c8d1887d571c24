//! Tests adapters: they compute as merged weights would, and unusable ones are refused.

use super::super::backend::Backend;
use super::super::bytes::Bytes;
use super::super::forward::Forward;
use super::super::kernels::{Kernels, Tier};
use super::super::quant::Kind;
use super::super::testing::{self, Field, Tiny};
use super::super::threads::Pool;
use super::*;
use crate::Cancel;
use std::io::Write;
use std::sync::Arc;

const PLAIN: [Kind; 2] = [Kind::F32, Kind::F32];

fn model() -> Gguf {
    testing::parse(&Tiny::new("qwen2").bytes())
}

fn tiny() -> Tiny {
    Tiny::adapter("qwen2", 64, 8, [Kind::F32, Kind::F16], 0.3)
}

fn parse(bytes: Vec<u8>) -> Result<Gguf, ModelError> {
    Gguf::parse("some/dir/tiny-adapter.gguf", Bytes::from(bytes))
}

fn read(tiny: &Tiny) -> Result<Adapter, ModelError> {
    Adapter::read(parse(tiny.bytes())?, &model(), None)
}

fn reason(tiny: &Tiny) -> String {
    read(tiny).map(|_| ()).unwrap_err().to_string()
}

/// Computes the logits after batches of several lengths.
fn logits(model: &Gguf, adapter: Option<Adapter>, tier: Tier) -> Vec<Vec<f32>> {
    let adapted = adapter.is_some();
    let forward = Forward::new(model, Kernels::new(Arc::new(Pool::new(2)), tier), 64).unwrap();
    let mut forward = forward.with_adapter(adapter);
    forward.adapt(adapted);
    let parts: [&[u32]; 4] =
        [&[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4], &[6], &[2, 6, 4], &[3, 3, 8, 3, 2, 7, 9, 5, 0]];
    let mut feed = |part: &[u32]| {
        forward.feed(part, &Cancel::new()).unwrap();
        forward.logits().to_vec()
    };
    parts.iter().map(|part| feed(part)).collect()
}

fn furthest(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Returns the model with `scale B A` added to each of these matrices.
fn merged(adapter: &mut Tiny, rank: usize, scale: f32, parts: &[&str]) -> Gguf {
    let mut model = Tiny::new("qwen2");
    for layer in 0..2 {
        for part in parts {
            let name = format!("blk.{layer}.{part}.weight");
            let a = adapter.numbers(&format!("{name}.lora_a")).to_vec();
            let b = adapter.numbers(&format!("{name}.lora_b")).to_vec();
            let cols = a.len() / rank;
            for (row, numbers) in model.numbers(&name).chunks_exact_mut(cols).enumerate() {
                for (col, number) in numbers.iter_mut().enumerate() {
                    *number += scale * (0..rank).map(|j| b[row * rank + j] * a[j * cols + col]).sum::<f32>();
                }
            }
        }
    }
    testing::parse(&model.bytes())
}

const PARTS: [&str; 7] = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];

#[test]
fn an_adapter_computes_as_merged_weights() {
    let model = model();
    for (rank, alpha, scale) in [(1, 2.0, 2.0), (4, 3.0, 0.75), (16, 16.0, 1.0), (33, 11.0, 1.0 / 3.0), (8, 0.0, 1.0)] {
        let mut adapter = Tiny::adapter("qwen2", 64, rank as u64, PLAIN, 0.2);
        adapter.set("adapter.lora.alpha", Field::F32(alpha));
        for parts in [&PARTS[..], &PARTS[6..], &PARTS[1..3]] {
            let mut some = adapter.clone();
            for part in PARTS.iter().filter(|part| !parts.contains(part)) {
                for half in
                    ["blk.0", "blk.1"].iter().flat_map(|layer| HALVES.map(|h| format!("{layer}.{part}.weight{h}")))
                {
                    some.remove_tensor(&half);
                }
            }
            let merged = merged(&mut adapter, rank, scale, parts);
            for tier in Tier::ALL.iter().copied().filter(|tier| tier.is_available()) {
                let ours = logits(&model, Some(read(&some).unwrap()), tier);
                let off = furthest(&ours, &logits(&merged, None, tier));
                let effect = furthest(&ours, &logits(&model, None, tier));
                assert!(effect > 0.05 && off < effect / 30.0, "{tier}, rank {rank}, {parts:?}: {off} of {effect}");
            }
        }
    }
}

#[test]
fn every_format_gives_nearly_the_same_result() {
    let base = testing::parse(&Tiny::quantised("qwen2", &[Kind::Q4K, Kind::Q6K]).bytes());
    let read = |kinds| {
        let adapter = Tiny::adapter("qwen2", 256, 32, kinds, 0.05);
        Adapter::read(testing::parse(&adapter.bytes()), &base, None).unwrap()
    };
    for tier in Tier::ALL.iter().copied().filter(|tier| tier.is_available()) {
        let exact = logits(&base, Some(read(PLAIN)), tier);
        let effect = furthest(&exact, &logits(&base, None, tier));
        let firsts = Kind::ALL.map(|a| [a, Kind::F16]);
        let seconds = Kind::ALL.into_iter().filter(|b| b.block_len() <= 32).map(|b| [Kind::Q8_0, b]);
        for kinds in firsts.into_iter().chain(seconds) {
            let off = furthest(&exact, &logits(&base, Some(read(kinds)), tier));
            assert!(off < effect / 3.0, "{tier} {kinds:?}: off by {off}, where the adapter moves {effect}");
        }
    }
}

#[test]
fn an_embedded_adapter_computes_as_its_file() {
    let mut file = tempfile::Builder::new().prefix("named").suffix(".gguf").tempfile().unwrap();
    let mut tiny = tiny();
    tiny.set("caro.adapter.prompt", Field::Text("7".into()));
    tiny.set("caro.adapter.base_sha256", Field::Text("AB".repeat(32)));
    file.write_all(&tiny.bytes()).unwrap();
    let from_file = Adapter::read(Gguf::open(file.path()).unwrap(), &model(), None).unwrap();
    let expected = logits(&model(), Some(from_file), Tier::detect());
    // embedded bytes need not be aligned
    for shift in [0, 1, 7] {
        let embedded: &'static [u8] = Box::leak([vec![0; shift], tiny.bytes()].concat().into_boxed_slice());
        let gguf = Gguf::parse("adapters/named.gguf", Bytes::from(&embedded[shift..])).unwrap();
        let adapter = Adapter::read(gguf, &model(), None).unwrap();
        let AdapterInfo { name, rank, prompt, base_sha256 } = adapter.info().clone();
        assert_eq!((name.as_str(), rank, prompt.as_deref()), ("named", 8, Some("7")));
        assert_eq!(base_sha256, Some("ab".repeat(32)));
        assert_eq!(logits(&model(), Some(adapter), Tier::detect()), expected, "{shift} bytes on");
    }
}

#[test]
fn an_adapter_of_another_model_is_refused_by_name() {
    let (ours, other) = ("a".repeat(64), "b".repeat(64));
    let mut tiny = tiny();
    let read =
        |tiny: &Tiny, base: Option<&str>| Adapter::read(parse(tiny.bytes()).unwrap(), &model(), base).map(|_| ());
    assert!(read(&tiny, Some(&ours)).is_ok(), "it does not say what it belongs to");
    tiny.set("caro.adapter.base_sha256", Field::Text(ours.clone()));
    assert!(read(&tiny, Some(&ours)).is_ok() && read(&tiny, None).is_ok());
    let error = read(&tiny, Some(&other)).unwrap_err();
    assert!(matches!(&error, ModelError::Foreign { .. }), "{error}");
    for name in ["tiny-adapter.gguf", &ours, &other] {
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(error.hint().contains("--adapter off"));
    // the hint names a model of the catalog
    let card = crate::catalog::embedded(crate::catalog::DEFAULT_MODEL).unwrap().unwrap();
    tiny.set("caro.adapter.base_sha256", Field::Text(card.files[0].sha256.clone().unwrap()));
    assert!(read(&tiny, Some(&other)).unwrap_err().hint().contains(&card.id));
}

#[test]
fn invalid_metadata_is_refused_with_its_key() {
    let with = |key: &str, value: Option<Field>| {
        let mut tiny = tiny();
        match value {
            Some(value) => tiny.set(key, value),
            None => tiny.remove(key),
        }
        reason(&tiny)
    };
    let text = |text: &str| Some(Field::Text(text.into()));
    for (key, value, why) in [
        ("general.type", text("model"), "it is a model and no adapter"),
        ("general.type", None, "general.type"),
        ("adapter.type", text("control_vector"), "type of adapter is not supported: control_vector"),
        ("adapter.type", None, "adapter.type"),
        ("general.architecture", text("llama"), "it is for llama, and the model is qwen2"),
        ("general.architecture", None, "it is for no architecture"),
        ("adapter.lora.alpha", Some(Field::F32(f32::NAN)), "`adapter.lora.alpha` is NaN"),
        ("adapter.lora.alpha", Some(Field::F32(f32::INFINITY)), "`adapter.lora.alpha` is inf"),
        ("adapter.lora.alpha", Some(Field::F32(-1.0)), "`adapter.lora.alpha` is -1"),
        ("adapter.lora.alpha", Some(Field::U32(16)), "no `adapter.lora.alpha`"),
        ("adapter.lora.alpha", None, "no `adapter.lora.alpha`"),
        ("caro.adapter.base_sha256", text("abc"), "base_sha256` is not a SHA-256"),
    ] {
        let reason = with(key, value);
        assert!(reason.contains(why), "{key}: {reason}");
    }
    let model = Adapter::read(model(), &self::model(), None).map(|_| ()).unwrap_err();
    assert!(model.to_string().contains("not an adapter"), "{model}");
}

#[test]
fn additions_that_do_not_fit_are_refused_with_their_tensor() {
    let (a, b) = ("blk.1.attn_k.weight.lora_a", "blk.1.attn_k.weight.lora_b");
    let with = |tensors: &[(&str, &[u64])]| {
        let mut tiny = tiny();
        tensors.iter().for_each(|(name, dims)| tiny.tensor(name, dims, 0.1));
        reason(&tiny)
    };
    for (tensors, why) in [
        (&[(a, &[65, 8][..])][..], format!("`{a}` is [65, 8], not [64, 8]")),
        (&[(a, &[64, 9])], format!("`{b}` is [8, 32], not [9, 32]")),
        (&[(b, &[8, 33])], format!("`{b}` is [8, 33], not [8, 32]")),
        (&[(b, &[7, 32])], format!("`{b}` is [7, 32], not [8, 32]")),
        (&[(a, &[64])], format!("`{a}` is [64]")),
        (&[(a, &[64, 8, 1])], format!("`{a}` is [64, 8, 1]")),
        (&[(a, &[64, 257]), (b, &[257, 32])], "is 257, and 256 is the most".into()),
        (&[("blk.2.attn_k.weight.lora_a", &[64, 8])], "addition is not supported: blk.2.attn_k.weight".into()),
        (&[("blk.01.attn_k.weight.lora_a", &[64, 8])], "blk.01.attn_k.weight".into()),
        (&[("blk.0.attn_k.bias.lora_a", &[64, 8])], "blk.0.attn_k.bias".into()),
        (&[("token_embd.weight.lora_a", &[64, 8])], "token_embd.weight".into()),
        (&[("blk.0.attn_q.weight", &[64, 64])], "`blk.0.attn_q.weight` is not half of an addition".into()),
    ] {
        let reason = with(tensors);
        assert!(reason.contains(&why), "{tensors:?}: {reason}");
    }
    for (gone, left) in [(a, b), (b, a)] {
        let mut tiny = tiny();
        tiny.remove_tensor(gone);
        let reason = reason(&tiny);
        assert!(reason.contains(&format!("no tensor `{gone}`")), "without {gone} but {left}: {reason}");
    }
    let mut none = tiny();
    for (name, dims) in [(a, [64, 0]), (b, [0, 32])] {
        none.tensor(name, &dims, 0.1);
    }
    assert!(reason(&none).contains("empty dimension"), "rank 0");
    let mut empty = tiny();
    for layer in 0..2 {
        for part in PARTS {
            HALVES.iter().for_each(|half| empty.remove_tensor(&format!("blk.{layer}.{part}.weight{half}")));
        }
    }
    assert!(reason(&empty).contains("adds to nothing"));
    let odd = Tiny::adapter("qwen2", 256, 8, [Kind::Q8_0, Kind::F16], 0.3);
    assert!(reason(&odd).contains("not [64, 8]"), "of a wider model");
}

#[test]
fn a_truncated_file_is_refused_without_a_panic() {
    let (bytes, model) = (tiny().bytes(), model());
    for cut in (0..60).map(|i| bytes.len() * i / 60).chain([1, 4, 20, bytes.len() - 1]) {
        let read = parse(bytes[..cut].to_vec()).and_then(|gguf| Adapter::read(gguf, &model, None)).map(|_| ());
        assert!(matches!(read, Err(ModelError::BadFile { .. })), "{cut}: {read:?}");
    }
}

#[test]
fn a_changed_byte_changes_the_identity() {
    let bytes = tiny().bytes();
    let identity = |bytes: Vec<u8>| Adapter::read(parse(bytes).unwrap(), &model(), None).unwrap().identity().to_owned();
    let ours = identity(bytes.clone());
    assert_eq!(identity(bytes.clone()), ours);
    let mut other = bytes;
    *other.last_mut().unwrap() ^= 1;
    assert_ne!(identity(other), ours);
}
