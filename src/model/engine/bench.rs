//! How fast the engine is on this machine.

use super::{Engine, Options};
use crate::model::{Cancel, ModelError, Shape};
use std::path::Path;
use std::time::{Duration, Instant};

/// What [`bench`] measured.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Report {
    /// Device, kernels and threads.
    pub backend: String,
    /// Opening the file up to a usable engine, tokenizer included.
    pub load: Duration,
    /// Setting up a grammar of some size.
    pub grammar: Duration,
    /// From a fresh engine to the first token after a prompt of 32 tokens.
    pub first_token: Duration,
    /// Prompt lengths and the best rate at each, in tokens per second.
    pub prefill: Vec<(usize, f64)>,
    /// Best rate of single tokens after a prompt of 64, in tokens per second.
    pub decode: f64,
    /// Most memory that this process ever held, in bytes; on Linux only.
    pub peak_memory: Option<u64>,
}

/// One line that is a command, or a refusal.
const SAMPLE_GRAMMAR: &str = r#"start: LINE | "none"
LINE: /[^\s`#][^\n\r]*/"#;

/// Measures a model: `runs` times each prompt of 8, 32, 128 and 512 tokens, and 64 single tokens. The prompts are the same
/// arbitrary tokens each time and share no prefix with what is held.
///
/// # Errors
/// As [`Engine::open`] and [`crate::model::Model::generate`].
pub fn bench(path: &Path, options: &Options, runs: usize) -> Result<Report, ModelError> {
    let began = Instant::now();
    let engine = Engine::open(path, "bench", options)?;
    let load = began.elapsed();
    let cancel = Cancel::new();
    let mut sequence = engine.sequence();
    let backend = sequence.backend();
    let vocab = engine.tokenizer().vocab().len() as u32;
    let prompt = |len: u32| (0..len).map(|i| (1000 + i * 7 % 5000) % vocab).collect::<Vec<u32>>();
    backend.feed(&prompt(32), &cancel)?;
    let first_token = began.elapsed();
    let grammar_began = Instant::now();
    engine.grammar.guide(&Shape::Lark(SAMPLE_GRAMMAR.into()))?;
    let grammar = grammar_began.elapsed();
    let mut prefill = Vec::new();
    for len in [8, 32, 128, 512] {
        let tokens = prompt(len);
        let mut best = 0f64;
        for _ in 0..runs.max(1) {
            backend.truncate(0);
            let start = Instant::now();
            backend.feed(&tokens, &cancel)?;
            best = best.max(f64::from(len) / start.elapsed().as_secs_f64());
        }
        prefill.push((len as usize, best));
    }
    let mut decode = 0f64;
    for _ in 0..runs.max(1) {
        backend.truncate(0);
        backend.feed(&[1234 % vocab; 64], &cancel)?;
        let start = Instant::now();
        let mut token = 1234 % vocab;
        for _ in 0..64 {
            backend.feed(&[token], &cancel)?;
            token = super::sample::Peak::of(backend.logits()).best;
        }
        decode = decode.max(64.0 / start.elapsed().as_secs_f64());
    }
    let backend = sequence.describe();
    Ok(Report { backend, load, grammar, first_token, prefill, decode, peak_memory: peak_memory() })
}

/// The high-water mark of resident memory, as Linux tells it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
