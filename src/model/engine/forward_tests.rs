//! Compares the forward pass with candle, and with itself for other sizes of batches.

use super::super::candle::Candle;
use super::super::kernels::Tier;
use super::super::quant::Kind;
use super::super::testing::{self, Field, Tiny};
use super::super::{Device, Gguf};
use super::*;
use std::sync::Arc;

fn forward(gguf: &Gguf, threads: usize) -> Result<Forward, ModelError> {
    Forward::new(gguf, Kernels::new(Arc::new(Pool::new(threads)), Tier::Portable), 300)
}

fn tokens(len: usize) -> Vec<u32> {
    (0..len as u32).map(|i| (i * 37 + 11) % 250).collect()
}

fn furthest(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn every_architecture_computes_what_candle_computes() {
    for architecture in ["qwen2", "llama", "qwen3"] {
        let tiny = Tiny::new(architecture);
        let file = tiny.file();
        let gguf = Gguf::open(file.path()).unwrap();
        let mut oracle = Candle::open(&gguf, file.path(), Device::Cpu, 300).unwrap();
        for threads in [1, 3] {
            let mut ours = forward(&gguf, threads).unwrap();
            let cancel = Cancel::new();
            oracle.truncate(0);
            // a prompt, single tokens, then several together: each takes its own path
            for part in [&tokens(40)[..], &[7], &[8], &[9, 10, 11]] {
                assert!(ours.feed(part, &cancel).unwrap() && oracle.feed(part, &cancel).unwrap());
                let off = furthest(ours.logits(), oracle.logits());
                assert!(off < 0.02, "{architecture}, {threads} threads: off by {off} after {} tokens", ours.len());
            }
        }
    }
}

#[test]
fn all_positions_score_as_one_by_one() {
    let gguf = testing::parse(&Tiny::new("qwen2").bytes());
    let (mut whole, mut single) = (forward(&gguf, 2).unwrap(), forward(&gguf, 2).unwrap());
    let tokens = tokens(2 * SCORED_BATCH + 5);
    let mut seen = 0;
    let done = whole.feed_scored(&tokens, &Cancel::new(), &mut |index, logits| {
        assert_eq!(index, seen);
        single.feed(&tokens[index..=index], &Cancel::new()).unwrap();
        let off = furthest(logits, single.logits());
        assert!(off < 1e-2, "position {index} is off by {off}");
        seen += 1;
    });
    assert!(done.unwrap());
    assert_eq!((seen, whole.len()), (tokens.len(), tokens.len()));
}

/// Speculative decoding relies on this: logits, keys and values of a short batch are, bit by bit, those of its tokens
/// one by one, on every tier and with any number of threads, with an adapter too.
#[test]
fn a_short_batch_equals_its_tokens_one_by_one() {
    // `A` in blocks as those of the weights and in others, `B` in every form in which it is stored
    let adapters = [
        (4, [Kind::Q8_0, Kind::F16]),
        (16, [Kind::Q6K, Kind::F32]),
        (32, [Kind::Q4_0, Kind::Q8_0]),
        (17, [Kind::F16, Kind::BF16]),
    ];
    short_batches(None);
    adapters.into_iter().for_each(|adapter| short_batches(Some(adapter)));
}

fn short_batches(adapter: Option<(u64, [Kind; 2])>) {
    let formats: [&[Kind]; 3] = [
        &[Kind::Q4K, Kind::Q6K, Kind::Q5K],
        &[Kind::Q5_0, Kind::Q8_0, Kind::Q4K, Kind::Q6K],
        &[Kind::Q4_1, Kind::Q4_0, Kind::Q5_1, Kind::F16],
    ];
    let cancel = Cancel::new();
    let bits = |logits: &[f32]| logits.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for (architecture, kinds) in ["qwen2", "qwen3", "llama"].into_iter().zip(formats) {
        let gguf = testing::parse(&Tiny::quantised(architecture, kinds).bytes());
        let adapter = adapter.map(|(rank, kinds)| Tiny::adapter(architecture, 256, rank, kinds, 0.1).bytes());
        for tier in Tier::ALL.iter().copied().filter(|tier| tier.is_available()) {
            let open = |threads| {
                let forward = Forward::new(&gguf, Kernels::new(Arc::new(Pool::new(threads)), tier), 300).unwrap();
                let read = |bytes: &Vec<u8>| Adapter::read(testing::parse(bytes), &gguf, None).unwrap();
                let mut forward = forward.with_adapter(adapter.as_ref().map(read));
                forward.adapt(true);
                forward
            };
            let (mut alone, mut together) = (open(1), open(3));
            let prompt = tokens(20);
            alone.feed(&prompt, &cancel).unwrap();
            together.feed(&prompt, &cancel).unwrap();
            for m in [2, 3, Kernels::BIT_EXACT_BATCH] {
                let part: Vec<u32> = (0..m as u32).map(|i| (i * 91 + m as u32 * 17) % 250).collect();
                let mut expected = Vec::new();
                for token in &part {
                    alone.feed(&[*token], &cancel).unwrap();
                    expected.push(bits(alone.logits()));
                }
                let mut got = Vec::new();
                together.feed_scored(&part, &cancel, &mut |_, logits| got.push(bits(logits))).unwrap();
                assert!(got == expected, "{architecture} {tier} {m}: logits");
            }
            let (mut a, mut b) = (Vec::new(), Vec::new());
            alone.snapshot(alone.len(), &mut a).unwrap();
            together.snapshot(together.len(), &mut b).unwrap();
            assert!(a == b, "{architecture} {tier}: keys and values");
        }
    }
}

#[test]
fn the_batch_size_does_not_change_the_result() {
    let gguf = testing::parse(&Tiny::new("qwen2").bytes());
    let (mut batched, mut small) = (forward(&gguf, 2).unwrap(), forward(&gguf, 2).unwrap());
    let tokens = tokens(290);
    assert!(tokens.len() > BATCH);
    batched.feed(&tokens, &Cancel::new()).unwrap();
    for part in tokens.chunks(17) {
        small.feed(part, &Cancel::new()).unwrap();
    }
    assert!(furthest(batched.logits(), small.logits()) < 1e-2);
}

#[test]
fn truncating_and_restoring_leave_no_trace() {
    let gguf = testing::parse(&Tiny::new("qwen2").bytes());
    let mut ours = forward(&gguf, 2).unwrap();
    let cancel = Cancel::new();
    ours.feed(&tokens(20), &cancel).unwrap();
    let mut snapshot = Vec::new();
    ours.snapshot(20, &mut snapshot).unwrap();
    ours.feed(&[1, 2, 3], &cancel).unwrap();
    let straight = ours.logits().to_vec();
    ours.feed(&[4; 50], &cancel).unwrap();
    ours.truncate(20);
    ours.feed(&[1, 2, 3], &cancel).unwrap();
    assert_eq!(ours.logits(), straight, "after truncating");
    ours.truncate(0);
    ours.feed(&[5; 90], &cancel).unwrap();
    ours.restore(20, &mut &snapshot[..]).unwrap();
    ours.feed(&[1, 2, 3], &cancel).unwrap();
    assert_eq!(ours.logits(), straight, "after restoring");
}

#[test]
fn a_cancelled_batch_is_not_cached() {
    let gguf = testing::parse(&Tiny::new("qwen2").bytes());
    let mut ours = forward(&gguf, 2).unwrap();
    ours.feed(&[1, 2], &Cancel::new()).unwrap();
    let cancel = Cancel::new();
    cancel.cancel();
    assert!(!ours.feed(&tokens(20), &cancel).unwrap());
    assert_eq!(ours.len(), 2);
}

#[test]
fn too_many_or_unknown_tokens_are_refused() {
    let gguf = testing::parse(&Tiny::new("qwen2").bytes());
    let mut ours = forward(&gguf, 1).unwrap();
    assert!(matches!(ours.feed(&tokens(301), &Cancel::new()), Err(ModelError::TooLong { tokens: 301, limit: 300 })));
    assert!(matches!(ours.feed(&[u32::MAX], &Cancel::new()), Err(ModelError::Engine(_))));
    assert_eq!(ours.len(), 0);
}

#[test]
fn every_tensor_is_required_in_its_shape() {
    let whole = Tiny::new("qwen3");
    for name in ["token_embd.weight", "output_norm.weight", "blk.1.attn_k.weight", "blk.0.attn_q_norm.weight"] {
        let mut tiny = whole.clone();
        tiny.remove_tensor(name);
        let error = forward(&testing::parse(&tiny.bytes()), 1).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    for (name, dims) in [
        ("blk.1.ffn_down.weight", vec![64, 128]),
        ("blk.0.attn_norm.weight", vec![63]),
        ("output.weight", vec![64, 3]),
        ("blk.0.attn_q.weight", vec![64, 64, 1]),
    ] {
        let mut tiny = whole.clone();
        tiny.tensor(name, &dims, 1.0);
        let error = forward(&testing::parse(&tiny.bytes()), 1).map(|_| ()).unwrap_err();
        assert!(matches!(error, ModelError::BadFile { .. }) && error.to_string().contains(name), "{error}");
    }
    let mut biased = Tiny::new("qwen2");
    biased.remove_tensor("blk.1.attn_q.bias");
    assert!(forward(&testing::parse(&biased.bytes()), 1).is_err(), "qwen2 has biases");
}

#[test]
fn an_unsupported_tensor_is_refused() {
    for name in ["blk.0.attn_output.bias", "blk.1.ffn_up.bias", "blk.0.attn_q_norm.weight", "output.bias"] {
        let mut tiny = Tiny::new("llama");
        tiny.tensor(name, &[64], 1.0);
        let error = forward(&testing::parse(&tiny.bytes()), 1).map(|_| ()).unwrap_err();
        assert!(matches!(&error, ModelError::Unsupported { what: "tensor", name: n } if n == name), "{error}");
    }
    let mut old = Tiny::new("llama");
    old.tensor("blk.0.attn_rot_embd.weight", &[8], 1.0);
    assert!(forward(&testing::parse(&old.bytes()), 1).is_ok());
}

#[test]
fn llama_may_scale_its_frequencies() {
    let mut tiny = Tiny::new("llama");
    tiny.tensor("rope_freqs.weight", &[8], 1.0);
    let gguf = testing::parse(&tiny.bytes());
    let factors = gguf.tensor("rope_freqs.weight").unwrap().to_f32();
    let plain = Config::read(&testing::parse(&Tiny::new("llama").bytes())).unwrap().rope.frequencies;
    let slowed = Config::read(&gguf).unwrap().rope.frequencies;
    for i in 0..8 {
        assert!((slowed[i] * factors[i] / plain[i] - 1.0).abs() < 1e-5);
    }
    tiny.tensor("rope_freqs.weight", &[7], 1.0);
    assert!(Config::read(&testing::parse(&tiny.bytes())).is_err());
    tiny.remove_tensor("rope_freqs.weight");
    tiny.set("llama.rope.scaling.type", Field::Text("linear".into()));
    tiny.set("llama.rope.scaling.factor", Field::F32(4.0));
    let stretched = Config::read(&testing::parse(&tiny.bytes())).unwrap().rope.frequencies;
    assert_eq!(stretched[0], 0.25);
}

#[test]
fn sequences_in_slots_are_computed_as_alone() {
    let gguf = testing::parse(&Tiny::new("qwen2").bytes());
    let (first, second, third) = (tokens(90), tokens(30).split_off(7), tokens(5));
    let alone = |ids: &[u32]| {
        let mut forward = forward(&gguf, 2).unwrap();
        forward.feed(ids, &Cancel::new()).unwrap();
        forward.logits().to_vec()
    };
    let mut together = forward(&gguf, 2).unwrap();
    assert!(together.feed_slots(&[LaneToken { lane: 0, step: 0, id: 1 }], 1).is_err(), "no slots are open");
    together.feed(&tokens(12), &Cancel::new()).unwrap();
    assert!(together.open_slots(4, 100));
    let place = |lane: usize, from: usize, ids: &[u32]| -> Vec<LaneToken> {
        ids.iter().enumerate().map(|(i, &id)| LaneToken { lane, step: from + i, id }).collect()
    };
    // a part of the first; then the rest of it, and all of the second and third; the last tokens of all are scored
    together.feed_slots(&place(0, 0, &first[..60]), 0).unwrap();
    let mut rest = place(0, 60, &first[60..89]);
    rest.extend(place(2, 0, &second[..22]));
    rest.extend(place(1, 0, &third[..4]));
    let ends = [place(0, 89, &first[89..]), place(2, 22, &second[22..]), place(1, 4, &third[4..])].concat();
    rest.extend(ends);
    together.feed_slots(&rest, 3).unwrap();
    for (index, ids) in [&first, &second, &third].into_iter().enumerate() {
        let off = furthest(together.logits_at(index), &alone(ids));
        assert!(off < 0.02, "sequence {index} is off by {off}");
    }
    // a copied prefix equals a computed one
    together.copy_slot(0, 3, 40);
    let other = [&first[..40], &[9, 9]].concat();
    together.feed_slots(&place(3, 40, &[9, 9]), 1).unwrap();
    assert!(furthest(together.logits_at(0), &alone(&other)) < 0.02);
    // the main sequence has not changed
    assert_eq!(together.len(), 12);
    together.feed(&[7], &Cancel::new()).unwrap();
    assert!(furthest(together.logits(), &alone(&[&tokens(12)[..], &[7]].concat())) < 0.02);
    for wrong in [place(4, 0, &[1]), place(0, 100, &[1]), place(0, 0, &[u32::MAX])] {
        assert!(together.feed_slots(&wrong, 1).is_err());
    }
}
