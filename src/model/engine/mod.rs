//! Local inference: the only place that names candle.
//!
//! [`Engine`] is a [`crate::Model`] over a GGUF file. From the file up:
//!
//! - [`bytes`], [`gguf`], [`quant`]: the mapped file, its metadata, its weight formats; `readahead` reads it in
//!   advance;
//! - [`threads`], [`kernels`]: the thread pool, and products with quantised weights;
//! - `config`, `kv`, `attention`, `forward`: the forward pass; `simd` and `parallel` are its plain arithmetic;
//! - `candle`: the forward pass by candle, for other devices and architectures;
//! - `tokenizer`, `template`: text to tokens;
//! - `grammar`, `sample`, `detokenize`, `generate`, `parallel_sampling`: tokens to text; `speculate` drafts tokens;
//! - [`BatchedEngine`]: several calls computed together;
//! - `adapter`: low-rank additions to the matrices, which a prompt turns on;
//! - `prefix`: the cached state of prompts' stable prefixes on disk;
//! - `embed`: sentences as vectors, by an `encoder` whose weights are in a `safetensors` file.
//!
//! Nothing here depends on the source of a model file.

mod adapter;
#[cfg(test)]
mod agreement_tests;
mod attention;
mod backend;
mod batch;
mod bench;
pub mod bytes;
mod candle;
mod checksum;
mod config;
mod detokenize;
mod embed;
mod encoder;
mod forward;
mod generate;
pub mod gguf;
pub(crate) mod gguf_writer;
mod grammar;
pub mod kernels;
mod kv;
mod load;
mod matmul;
mod options;
mod parallel;
mod parallel_sampling;
mod prefix;
pub mod quant;
mod readahead;
mod safetensors;
mod sample;
mod simd;
mod speculate;
mod template;
#[doc(hidden)]
pub mod testing;
pub mod threads;
mod tokenizer;

pub use batch::BatchedEngine;
pub use bench::{Beside, Busy, Effective, More, Pair, Report, bench};
pub use embed::SentenceEncoder;
pub use kernels::Tier;
pub use options::{AdapterOptions, Device, EngineKind, Options};
pub use prefix::is_kept;

use super::adapter::AdapterInfo;
use super::{Completion, Flow, Limits, Model, ModelError, Request};
use generate::{Language, Sequence};
use gguf::Gguf;
use grammar::Grammar;
use prefix::Store;
use speculate::Phrases;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use template::Template;
use tokenizer::Tokenizer;

/// Checks an adapter against the model in this file, whose SHA-256 is `base` if known. Reads no weights.
///
/// # Errors
/// As [`Engine::open`] with both.
pub fn check_adapter(adapter: &Gguf, model: &Path, base: Option<&str>) -> Result<AdapterInfo, ModelError> {
    Ok(adapter::Adapter::read(adapter.clone(), &Gguf::open(model)?, base)?.info().clone())
}

/// Sets the variable from which candle's thread pool takes its size, to the number of threads that this process may use
/// rather than the number of the machine's cores.
///
/// Call it at the beginning of `main`, before any thread exists: it changes the environment. It changes nothing if the
/// variable is set already, and only matters if candle runs a model.
#[allow(unsafe_code)] // See below.
pub fn init() {
    const NAME: &str = "CANDLE_NUM_THREADS";
    if std::env::var_os(NAME).is_none() {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // SAFETY: no other thread exists yet, by this function's contract, so none reads the environment meanwhile.
        unsafe { std::env::set_var(NAME, threads.to_string()) };
    }
}

/// A local model. Calls take turns. The state of the last prompt is cached, so that the next prompt reuses its stable
/// messages or, if it has none, the longest common prefix.
pub struct Engine {
    id: String,
    context: usize,
    tokenizer: Arc<Tokenizer>,
    template: Template,
    ends: Vec<u32>,
    grammar: Grammar,
    phrases: Phrases,
    sequence: Mutex<Sequence>,
    adapter: Option<AdapterInfo>,
    /// The time that opening took; taken by the first call, which reports it.
    load: Mutex<Option<Duration>>,
}

impl Engine {
    /// Opens a model file. The weights stay on disk until they are used. The tokenizer is built on another thread
    /// meanwhile.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] for a file that cannot be read, is damaged or contradicts itself;
    /// [`ModelError::Unsupported`] for an unsupported architecture, tokenizer, chat template, quantization or device;
    /// both also for the adapter, and [`ModelError::Foreign`] for an adapter of another model.
    ///
    /// ```no_run
    /// use caro_model::engine::{Engine, Options};
    /// use caro_model::{Cancel, Flow, Model, Prompt, Request, Role, Sampling, Shape};
    ///
    /// let engine = Engine::open("model.gguf".as_ref(), "my-model", &Options::default())?;
    /// let mut prompt = Prompt::system("Answer in one word.");
    /// prompt.push(Role::User, "What is the capital of France?");
    /// let request = Request {
    ///     prompt,
    ///     shape: Shape::Text { stop: vec!["\n".into()] },
    ///     sampling: Sampling::GREEDY,
    ///     max_tokens: 16,
    ///     cancel: Cancel::new(),
    /// };
    /// let completion = engine.generate(&request, &mut |_| Flow::Continue)?;
    /// assert_eq!(completion.text, "Paris");
    /// # Ok::<(), caro_model::ModelError>(())
    /// ```
    pub fn open(path: &Path, id: &str, options: &Options) -> Result<Self, ModelError> {
        let start = Instant::now();
        readahead::read(path);
        let gguf = Gguf::open(path)?;
        let (tokenizer, backend) = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, || load::tokenizer(&gguf));
            let backend = load::backend(&gguf, path, options);
            let panicked = || ModelError::Engine("the tokenizer's preparation broke off".into());
            // if the system cannot start a thread, this one builds the tokenizer
            let tokenizer = match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(panicked())),
                Err(_) => load::tokenizer(&gguf),
            };
            (tokenizer, backend)
        });
        // if both failed, the error about the weights says more
        let backend = backend?;
        let tokenizer = Arc::new(tokenizer?);
        let (template, ends) = load::template(&gguf, &tokenizer)?;
        let store = options.state_dir.as_ref().map(|dir| Store::new(dir, path, &gguf, &backend.describe()));
        Ok(Self {
            id: id.into(),
            context: backend.context(),
            grammar: Grammar::new(tokenizer.clone(), &ends)?,
            phrases: Phrases::new(options.phrases.clone()),
            adapter: backend.adapter().map(|adapter| adapter.info().clone()),
            tokenizer,
            template,
            ends,
            sequence: Mutex::new(Sequence::new(backend, store, options.speculate)),
            load: Mutex::new(Some(start.elapsed())),
        })
    }

    /// Describes the device, kernels and threads, for people.
    pub fn describe(&self) -> String {
        self.sequence().describe()
    }

    fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    fn language(&self) -> Language<'_> {
        Language {
            tokenizer: &self.tokenizer,
            template: &self.template,
            ends: &self.ends,
            grammar: &self.grammar,
            phrases: &self.phrases,
        }
    }

    /// Locks the sequence; empties it if a call panicked.
    fn sequence(&self) -> MutexGuard<'_, Sequence> {
        self.sequence.lock().unwrap_or_else(|poisoned| {
            self.sequence.clear_poison();
            let mut sequence = poisoned.into_inner();
            sequence.backend();
            sequence
        })
    }
}

impl Model for Engine {
    fn id(&self) -> &str {
        &self.id
    }

    fn limits(&self) -> Limits {
        Limits { context: self.context }
    }

    fn adapter(&self) -> Option<&AdapterInfo> {
        self.adapter.as_ref()
    }

    fn count(&self, text: &str) -> usize {
        self.tokenizer.count(text)
    }

    fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        let mut completion = generate::generate(&mut self.sequence(), &self.language(), request, on)?;
        completion.usage.load = self.load.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        Ok(completion)
    }

    fn sample(&self, request: &Request, count: usize) -> Result<Vec<Completion>, ModelError> {
        if let Some(completions) = parallel_sampling::sample(&mut self.sequence(), &self.language(), request, count)? {
            return Ok(completions);
        }
        crate::interface::sample_one_by_one(self, request, count)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("id", &self.id).field("context", &self.context).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
