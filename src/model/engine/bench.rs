//! Measures the speed of the engine on this machine.

use super::backend::Backend;
use super::{Engine, Options, generate, sample};
use crate::{Cancel, ModelError, Prompt, Shape};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The measured prompt lengths.
const LENGTHS: [u32; 4] = [8, 32, 128, 512];

/// The number of single tokens measured in a row, and of the prompt tokens before them.
const DECODED: usize = 64;

/// The result of [`bench()`].
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Report {
    /// Device, kernels and threads.
    pub backend: String,
    /// Time to open the file, tokenizer included.
    pub load: Duration,
    /// Time to set up a small grammar.
    pub grammar: Duration,
    /// Time to open the file and compute a prompt of 32 tokens.
    pub first_token: Duration,
    /// Prompt lengths and the best rate at each, in tokens per second.
    pub prefill: Vec<(usize, f64)>,
    /// Best rate of single tokens after a prompt of 64, in tokens per second.
    pub decode: f64,
    /// The cost of the adapter, if one is loaded.
    pub adapter: Option<Beside>,
    /// The longer measurements, if answers were given.
    pub more: Option<More>,
    /// Peak resident memory of this process in bytes; on Linux only.
    pub peak_memory: Option<u64>,
}

/// The longer measurements.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct More {
    /// The cost of a pass over 1, 2, ... tokens, relative to one, up to the most tokens of a draft.
    pub bursts: Vec<f64>,
    /// The gain of speculative decoding.
    pub effective: Effective,
    /// Rates while another thread occupies a core.
    pub busy: Busy,
}

/// The gain of speculative decoding on given answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Effective {
    /// Tokens of all answers.
    pub tokens: usize,
    /// The number of drafted tokens.
    pub drafted: usize,
    /// The number of accepted drafted tokens.
    pub accepted: usize,
    /// Tokens per second with drafts.
    pub rate: f64,
    /// Tokens per second of the same answers one token at a time.
    pub plain: f64,
}

/// Median rates in tokens per second while another thread occupies a core, and without that, measured in turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Busy {
    /// Single tokens.
    pub decode: f64,
    /// Single tokens, undisturbed.
    pub free_decode: f64,
    /// A prompt of 128 tokens.
    pub prefill: f64,
    /// A prompt of 128 tokens, undisturbed.
    pub free_prefill: f64,
}

/// Median times with and without the adapter, measured in turn so that noise affects both.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Beside {
    /// A single token.
    pub decode: Pair,
    /// A prompt of 128 tokens.
    pub prefill_128: Pair,
    /// A prompt of 512 tokens.
    pub prefill_512: Pair,
}

/// The time of one measurement with and without the adapter.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Pair {
    /// With the adapter.
    pub with: Duration,
    /// Without it.
    pub without: Duration,
}

impl Pair {
    /// Returns the time that the adapter adds, as a fraction of the time without it.
    pub fn cost(&self) -> f64 {
        self.with.as_secs_f64() / self.without.as_secs_f64() - 1.0
    }
}

/// The grammar of a line with a command, or a refusal.
const SAMPLE_GRAMMAR: &str = r#"start: LINE | "none"
LINE: /[^\s`#][^\n\r]*/"#;

/// Measures a model: `runs` times each prompt of 8, 32, 128 and 512 tokens, and 64 single tokens. The prompts are the
/// same arbitrary tokens each time, and nothing of them is cached. With `answers` to prompts, [`More`] is measured too.
///
/// # Errors
/// As [`Engine::open`] and [`crate::Model::generate`].
pub fn bench(path: &Path, options: &Options, runs: usize, answers: &[(Prompt, String)]) -> Result<Report, ModelError> {
    let runs = runs.max(1);
    let start = Instant::now();
    let engine = Engine::open(path, "bench", options)?;
    let load = start.elapsed();
    let mut sequence = engine.sequence();
    let vocab = engine.tokenizer().vocab().len() as u32;
    let prompt = |len: u32| (0..len).map(|i| (1000 + i * 7 % 5000) % vocab).collect::<Vec<u32>>();
    sequence.backend().feed(&prompt(32), &Cancel::new())?;
    let first_token = start.elapsed();
    let grammar_start = Instant::now();
    engine.grammar.guide(&Shape::Lark(SAMPLE_GRAMMAR.into()))?;
    let grammar = grammar_start.elapsed();
    let backend = sequence.backend();
    let mut prefill = Vec::new();
    for len in LENGTHS {
        let tokens = prompt(len);
        prefill.push((len as usize, best(runs, || prefill_rate(backend, &tokens))?));
    }
    let decode = best(runs, || decode_rate(backend, vocab))?;
    let adapter = match backend.adapter() {
        Some(_) => Some(measure_adapter(backend, runs, vocab, &prompt)?),
        None => None,
    };
    let more = if answers.is_empty() {
        None
    } else {
        let bursts = measure_bursts(backend, runs, vocab)?;
        let busy = measure_busy(backend, runs, vocab, &prompt(128))?;
        Some(More { bursts, effective: measure_answers(&engine, &mut sequence, answers)?, busy })
    };
    let backend = sequence.describe();
    Ok(Report { backend, load, grammar, first_token, prefill, decode, adapter, more, peak_memory: peak_memory() })
}

fn best(runs: usize, mut rate: impl FnMut() -> Result<f64, ModelError>) -> Result<f64, ModelError> {
    (0..runs).try_fold(0.0, |best: f64, _| Ok(best.max(rate()?)))
}

fn prefill_rate(backend: &mut dyn Backend, tokens: &[u32]) -> Result<f64, ModelError> {
    backend.truncate(0);
    let start = Instant::now();
    backend.feed(tokens, &Cancel::new())?;
    Ok(tokens.len() as f64 / start.elapsed().as_secs_f64())
}

fn decode_rate(backend: &mut dyn Backend, vocab: u32) -> Result<f64, ModelError> {
    let mut token = 1234 % vocab;
    backend.truncate(0);
    backend.feed(&[token; DECODED], &Cancel::new())?;
    let start = Instant::now();
    for _ in 0..DECODED {
        backend.feed(&[token], &Cancel::new())?;
        token = sample::Peak::of(backend.logits()).best;
    }
    Ok(DECODED as f64 / start.elapsed().as_secs_f64())
}

/// Measures times with and without the adapter, in turn.
fn measure_adapter(
    backend: &mut dyn Backend,
    runs: usize,
    vocab: u32,
    prompt: &dyn Fn(u32) -> Vec<u32>,
) -> Result<Beside, ModelError> {
    let mut in_turn = |times: usize, before: &[u32], tokens: &[u32]| {
        let mut all = [Vec::new(), Vec::new()];
        backend.truncate(0);
        if !before.is_empty() {
            backend.feed(before, &Cancel::new())?;
        }
        for i in 0..2 * times {
            backend.adapt(i % 2 == 1);
            backend.truncate(before.len());
            let start = Instant::now();
            backend.feed(tokens, &Cancel::new())?;
            all[i % 2].push(start.elapsed().as_secs_f64());
        }
        backend.adapt(false);
        backend.truncate(0);
        let [without, with] = all.map(|times| Duration::from_secs_f64(median(times)));
        Ok::<_, ModelError>(Pair { with, without })
    };
    let token = [1234 % vocab];
    Ok(Beside {
        decode: in_turn(runs * 64, &[token[0]; DECODED], &token)?,
        prefill_128: in_turn(runs * 2, &[], &prompt(128))?,
        prefill_512: in_turn(runs, &[], &prompt(512))?,
    })
}

/// Measures the median time of a pass over 1, 2, ... tokens after a prompt of 64, relative to one token.
fn measure_bursts(backend: &mut dyn Backend, runs: usize, vocab: u32) -> Result<Vec<f64>, ModelError> {
    let token = 1234 % vocab;
    backend.truncate(0);
    backend.feed(&[token; DECODED], &Cancel::new())?;
    let mut times = vec![Vec::new(); backend.draft_window()];
    for _ in 0..runs * 8 {
        for (more, times) in times.iter_mut().enumerate() {
            let start = Instant::now();
            backend.feed_drafts(&vec![token; more + 1], &Cancel::new())?;
            times.push(start.elapsed().as_secs_f64());
            backend.truncate(DECODED);
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    Ok(medians.iter().map(|time| time / medians[0]).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures rates with and without a thread that occupies a core, in turn, so that noise affects both.
fn measure_busy(backend: &mut dyn Backend, runs: usize, vocab: u32, tokens: &[u32]) -> Result<Busy, ModelError> {
    let mut all: [Vec<f64>; 4] = Default::default();
    for _ in 0..runs {
        all[1].push(decode_rate(backend, vocab)?);
        all[3].push(prefill_rate(backend, tokens)?);
        let done = AtomicBool::new(false);
        let (decode, prefill) = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            // gives the scheduler time to adapt to the busy thread
            std::thread::sleep(Duration::from_millis(50));
            let rates = decode_rate(backend, vocab).and_then(|d| Ok((d, prefill_rate(backend, tokens)?)));
            done.store(true, Ordering::Relaxed);
            rates
        })?;
        all[0].push(decode);
        all[2].push(prefill);
    }
    let [decode, free_decode, prefill, free_prefill] = all.map(median);
    Ok(Busy { decode, free_decode, prefill, free_prefill })
}

/// Measures all answers, each with and without drafts.
fn measure_answers(
    engine: &Engine,
    sequence: &mut generate::Sequence,
    answers: &[(Prompt, String)],
) -> Result<Effective, ModelError> {
    let mut sum = Effective::default();
    let mut times = [Duration::ZERO; 2];
    for (prompt, answer) in answers {
        for (speculate, time) in [false, true].into_iter().zip(&mut times) {
            let usage = generate::replay(sequence, &engine.language(), prompt, answer, speculate)?;
            *time += usage.decode;
            if speculate {
                sum.tokens += usage.completion_tokens;
                sum.drafted += usage.drafted_tokens;
                sum.accepted += usage.accepted_tokens;
            }
        }
    }
    let rate = |time: Duration| sum.tokens as f64 / time.as_secs_f64();
    Ok(Effective { plain: rate(times[0]), rate: rate(times[1]), ..sum })
}

/// Returns the peak resident memory in bytes, as Linux reports it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
