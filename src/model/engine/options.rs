//! The options of opening a model.

use super::adapter;
use super::gguf::Gguf;
use super::kernels::Tier;
use crate::ModelError;
use crate::adapter::AdapterInfo;
use std::path::PathBuf;

/// The device that a model runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// A graphics device if this build and machine have one, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// An NVIDIA device; needs the `cuda` feature.
    Cuda,
    /// An Apple device; needs the `metal` feature.
    Metal,
}

impl std::str::FromStr for Device {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, ModelError> {
        Ok(match name {
            "auto" => Self::Auto,
            "cpu" => Self::Cpu,
            "cuda" => Self::Cuda,
            "metal" => Self::Metal,
            other => return Err(ModelError::Unsupported { what: "device", name: other.into() }),
        })
    }
}

/// The implementation that computes a model's forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// The own one where it can compute this model on this device, else candle.
    #[default]
    Auto,
    /// The own one: Qwen2, Qwen3 and Llama on the CPU, with drafts, saved prefixes, batches and adapters.
    Own,
    /// candle: any device, and more architectures. Every prompt is computed from its first token.
    Candle,
}

/// The options of running a model.
#[derive(Debug, Clone)]
pub struct Options {
    /// The implementation of the forward pass.
    pub engine: EngineKind,
    /// The device.
    pub device: Device,
    /// Threads on the CPU; all that this process may use if `None`.
    pub threads: Option<usize>,
    /// Instruction set of the kernels; the best available if `None`.
    pub tier: Option<Tier>,
    /// Most tokens of prompt and completion together; never more than the model was trained for.
    pub context: usize,
    /// Folder for the cached state of prompts' stable messages ([`crate::Prompt::stable_messages`]), created if
    /// missing; nothing is cached on disk if `None`. Errors of the cache are ignored: the state is computed again.
    pub state_dir: Option<PathBuf>,
    /// True to decode speculatively: drafts several tokens and computes them together if that is faster. The text is
    /// the same.
    pub speculate: bool,
    /// An adapter for prompts that ask for it.
    pub adapter: Option<AdapterOptions>,
    /// Texts that resemble the expected completions, from which tokens are drafted.
    pub phrases: Vec<String>,
}

/// The options of loading an adapter.
#[derive(Debug, Clone)]
pub struct AdapterOptions {
    /// Its file.
    pub file: Gguf,
    /// The SHA-256 of the model's file, if known.
    pub base_sha256: Option<String>,
    /// False if the model is opened without the adapter when the two cannot run together.
    pub is_required: bool,
}

impl AdapterOptions {
    /// Reads the description in the adapter's header.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] for a file that is no adapter, [`ModelError::Unsupported`] for another kind of adapter.
    pub fn info(&self) -> Result<AdapterInfo, ModelError> {
        adapter::info(&self.file)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: EngineKind::Auto,
            device: Device::Auto,
            threads: None,
            tier: None,
            context: 4096,
            state_dir: None,
            speculate: true,
            adapter: None,
            phrases: Vec::new(),
        }
    }
}
