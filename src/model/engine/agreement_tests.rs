//! Compares the engine with other implementations on the real model.
//!
//! Their results are stored in `benches/agreement/oracle.json`, since computing them takes 8 GB and some minutes: the
//! greedy answers of candle's implementation with weights and activations in `f32`, and llama.cpp's perplexity of a
//! text. To compute them again:
//!
//! ```text
//! CANDLE_DEQUANTIZE_ALL=1 cargo test --release --lib -- --ignored --nocapture record_the_oracle
//! .peer/bin/python benches/agreement/perplexity.py MODEL.gguf
//! ```
//!
//! To compare an adapter with llama.cpp, see `benches/agreement/adapter.py`.
//!
//! To compare all of it on every tier, as in `benches/records`:
//!
//! ```text
//! cargo test --release --lib -- --ignored --nocapture every_tier_on_everything
//! ```

use super::backend::Backend;
use super::*;
use crate::{Cancel, Prompt, Role};
use serde::{Deserialize, Serialize};

const PROMPTS: &str = include_str!("../../../benches/agreement/prompts.txt");
const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/agreement/oracle.json");
const TEXT: &str = include_str!("../../../benches/agreement/text.txt");

/// Positions compared after each prompt.
const TOKENS: usize = 64;
/// Tokens of a window of the text; each window is scored by itself.
const WINDOW: usize = 512;
const WINDOWS: usize = 6;

/// The stored results of other implementations.
#[derive(Serialize, Deserialize)]
struct Oracle {
    /// The model file.
    model: String,
    /// candle's own greedy text after each prompt, in exact arithmetic.
    answers: Vec<Vec<u32>>,
    /// For each window of the text, the sum of the negative natural logarithms of its tokens' probabilities, the first
    /// token's left out.
    windows: Vec<f64>,
    /// The text's tokens.
    tokens: Vec<u32>,
}

fn prompt(engine: &Engine, text: &str) -> Vec<u32> {
    let mut prompt = Prompt::default();
    prompt.push(Role::User, text);
    engine.template.encode(&prompt, &engine.tokenizer).ids
}

/// Returns the negative log-likelihood of a token.
fn surprise(logits: &[f32], next: u32) -> f64 {
    -f64::from(sample::Peak::of(logits).logprob(logits[next as usize]))
}

/// Returns the perplexity per token, from the sums of some windows.
fn perplexity(windows: &[f64]) -> f64 {
    (windows.iter().sum::<f64>() / (windows.len() * (WINDOW - 1)) as f64).exp()
}

fn open(path: &Path, tier: Tier) -> Engine {
    Engine::open(path, "real", &Options { device: Device::Cpu, tier: Some(tier), context: 1024, ..Options::default() })
        .unwrap()
}

/// Computes the negative log-likelihoods of windows of these tokens.
fn windows(backend: &mut dyn Backend, tokens: &[u32], count: usize) -> Vec<f64> {
    let one = |ids: &[u32]| {
        backend.truncate(0);
        let mut sum = 0.0;
        let each = &mut |at: usize, logits: &[f32]| sum += ids.get(at + 1).map_or(0.0, |&id| surprise(logits, id));
        assert!(backend.feed_scored(ids, &Cancel::new(), each).unwrap());
        sum
    };
    tokens.chunks_exact(WINDOW).take(count).map(one).collect()
}

/// The agreement of one tier with the oracle.
struct Agreement {
    same: usize,
    positions: usize,
    /// The largest difference of logits by which the tier preferred another token.
    widest: f32,
    perplexity: f64,
    expected: f64,
}

impl Agreement {
    /// Computes the prompts in one batch and the answers as in decoding, then windows of text in long batches.
    fn of(path: &Path, tier: Tier, oracle: &Oracle, prompts: usize, text: usize) -> Self {
        let engine = open(path, tier);
        let cancel = Cancel::new();
        let mut sequence = engine.sequence();
        let backend = sequence.backend();
        let (mut same, mut widest) = (0, 0f32);
        let mut judge = |logits: &[f32], theirs: u32| {
            let ours = sample::Peak::of(logits).best;
            same += usize::from(ours == theirs);
            widest = widest.max(logits[ours as usize] - logits[theirs as usize]);
        };
        for (text, answer) in PROMPTS.lines().zip(&oracle.answers).take(prompts) {
            backend.truncate(0);
            backend.feed(&prompt(&engine, text), &cancel).unwrap();
            judge(backend.logits(), answer[0]);
            let mut at = 1;
            for tokens in answer[..TOKENS - 1].chunks(backend.draft_window()) {
                backend.feed_drafts(tokens, &cancel).unwrap();
                (0..tokens.len()).for_each(|i| judge(backend.logits_at(i), answer[at + i]));
                at += tokens.len();
            }
        }
        let ours = windows(backend, &oracle.tokens, text);
        let expected = perplexity(&oracle.windows[..text]);
        Self { same, positions: prompts * TOKENS, widest, perplexity: perplexity(&ours), expected }
    }

    /// Returns the relative difference of the perplexities.
    fn off(&self) -> f64 {
        self.perplexity / self.expected - 1.0
    }

    fn show(&self, tier: Tier) {
        println!(
            "{tier}: {} of {} positions agree ({:.2} %), another token was preferred by {:.3} at most; perplexity {:.4}, llama.cpp {:.4} ({:+.2} %)",
            self.same,
            self.positions,
            self.same as f64 * 100.0 / self.positions as f64,
            self.widest,
            self.perplexity,
            self.expected,
            self.off() * 100.0
        );
    }
}

fn oracle(path: &Path) -> Oracle {
    let oracle: Oracle = serde_json::from_str(&std::fs::read_to_string(ORACLE).unwrap()).unwrap();
    assert_eq!(path.file_name().unwrap(), oracle.model.as_str(), "the oracle judged another model");
    assert_eq!((oracle.answers.len(), oracle.windows.len()), (PROMPTS.lines().count(), WINDOWS));
    assert!(oracle.answers.iter().all(|answer| answer.len() == TOKENS));
    let mut ids = Vec::new();
    open(path, Tier::detect()).tokenizer.encode(TEXT, &mut ids);
    assert_eq!(ids[..WINDOW * WINDOWS], oracle.tokens[..], "llama.cpp and we read the same text");
    oracle
}

/// Compares a part of it on the fast tiers.
#[test]
fn fast_tiers_agree_with_exact_arithmetic() {
    if cfg!(debug_assertions) {
        eprintln!("skipped: the real model runs in release builds only");
        return;
    }
    let Some(path) = testing::real_model() else { return };
    let oracle = oracle(&path);
    for tier in Tier::ALL.iter().copied().filter(|tier| *tier != Tier::Portable && tier.is_available()) {
        // `every_tier_on_everything` compares the whole text, which takes minutes
        let agreement = Agreement::of(&path, tier, &oracle, 8, 1);
        agreement.show(tier);
        assert!(agreement.same * 100 >= agreement.positions * 98, "{tier}");
        assert!(agreement.widest < 0.5, "{tier} errs where the choice is clear");
        // rounding, llama.cpp's too, changes the perplexity of one window by up to one percent
        assert!(agreement.off().abs() < 0.015, "{tier}");
    }
}

#[test]
#[ignore = "takes an hour: the record's figures"]
fn every_tier_on_everything() {
    let path = testing::real_model().expect("the real model");
    let oracle = oracle(&path);
    for tier in Tier::ALL.iter().rev().copied().filter(|tier| tier.is_available()) {
        // the reference takes a second a token
        let windows = if tier == Tier::Portable { 1 } else { WINDOWS };
        let agreement = Agreement::of(&path, tier, &oracle, oracle.answers.len(), windows);
        agreement.show(tier);
        // the requirement for all twenty answers
        assert!(agreement.same * 100 >= agreement.positions * 99, "{tier}");
    }
}

/// llama.cpp's results for a model with and without an adapter.
#[derive(Deserialize)]
struct WithAdapter {
    adapter_sha256: String,
    without: Vec<f64>,
    with: Vec<f64>,
}

#[test]
#[ignore = "takes minutes, an adapter, and llama.cpp's word on it"]
fn the_adapter_agrees_with_llama_cpp() {
    let path = testing::real_model().expect("the real model");
    let adapter = std::env::var_os("CARO_ADAPTER_FILE").expect("CARO_ADAPTER_FILE names the adapter");
    let expected = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/agreement/adapter.json");
    let expected: WithAdapter = serde_json::from_str(&std::fs::read_to_string(expected).unwrap()).unwrap();
    let file = Gguf::open(adapter.as_ref()).unwrap();
    let sum = <sha2::Sha256 as sha2::Digest>::digest(&file.bytes()[..]);
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(sum, expected.adapter_sha256, "llama.cpp judged another adapter");
    let tokens = oracle(&path).tokens;
    let adapter = Some(AdapterOptions { file, base_sha256: None, is_required: true });
    let options = Options { device: Device::Cpu, context: 1024, adapter, ..Options::default() };
    let engine = Engine::open(&path, "real", &options).unwrap();
    let mut sequence = engine.sequence();
    let mut effects = Vec::new();
    for (adapted, theirs) in [(false, &expected.without), (true, &expected.with)] {
        sequence.adapt(adapted);
        let ours = perplexity(&windows(sequence.backend(), &tokens, WINDOWS));
        let theirs = perplexity(theirs);
        println!(
            "adapter {adapted}: perplexity {ours:.4}, llama.cpp {theirs:.4} ({:+.2} %)",
            (ours / theirs - 1.0) * 100.0
        );
        assert!((ours / theirs - 1.0).abs() < 0.015);
        effects.push([ours, theirs]);
    }
    // the adapter's effect must be the same too
    let [ours, theirs] = [0, 1].map(|i| effects[1][i] / effects[0][i] - 1.0);
    assert!((ours - theirs).abs() < 0.01 + theirs.abs() / 10.0, "{ours} and {theirs}");
}

#[test]
#[ignore = "takes minutes and 8 GB: writes benches/agreement/oracle.json"]
fn record_the_oracle() {
    assert_eq!(
        std::env::var("CANDLE_DEQUANTIZE_ALL").as_deref(),
        Ok("1"),
        "without this candle multiplies quantised weights"
    );
    let path = testing::real_model().expect("the real model");
    let engine = open(&path, Tier::detect());
    let gguf = Gguf::open(&path).unwrap();
    let mut candle = candle::Candle::open(&gguf, &path, Device::Cpu, 1024).unwrap();
    let cancel = Cancel::new();
    let mut answers = Vec::new();
    for text in PROMPTS.lines() {
        candle.truncate(0);
        candle.feed(&prompt(&engine, text), &cancel).unwrap();
        let mut tokens = Vec::new();
        while tokens.len() < TOKENS {
            let best = sample::Peak::of(candle.logits()).best;
            tokens.push(best);
            candle.feed(&[best], &cancel).unwrap();
        }
        println!("{text} {tokens:?}");
        answers.push(tokens);
    }
    // llama.cpp's results are kept
    let mut oracle: Oracle = serde_json::from_str(&std::fs::read_to_string(ORACLE).unwrap()).unwrap();
    (oracle.model, oracle.answers) = (path.file_name().unwrap().to_string_lossy().into_owned(), answers);
    std::fs::write(ORACLE, serde_json::to_string(&oracle).unwrap() + "\n").unwrap();
}
