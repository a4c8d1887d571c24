//! How a model is opened.

use super::adapter;
use super::gguf::Gguf;
use super::kernels::Tier;
use crate::ModelError;
use crate::adapter::AdapterInfo;
use std::path::PathBuf;

/// Where a model runs.
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

/// How to run a model.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where.
    pub device: Device,
    /// Threads on the CPU; all that this process may use if `None`.
    pub threads: Option<usize>,
    /// Instruction set of the kernels; the best there is if `None`.
    pub tier: Option<Tier>,
    /// The most tokens of prompt and completion together; at most what the model was trained for.
    pub context: usize,
    /// Folder for the state of prompts' stable beginnings ([`crate::Prompt::stable_messages`]), made if it is not
    /// there; nothing is kept if `None`. A cache: whatever is wrong with it is silently computed again.
    pub state_dir: Option<PathBuf>,
    /// Guess at tokens and compute several at once where that pays: the same text in less time.
    pub speculate: bool,
    /// An adapter for prompts that ask for it.
    pub adapter: Option<AdapterOptions>,
    /// Texts like those that will be asked for, as guesses are made from: what matters is that they resemble completions.
    pub phrases: Vec<String>,
}

/// How to load an adapter.
#[derive(Debug, Clone)]
pub struct AdapterOptions {
    /// Its file.
    pub file: Gguf,
    /// The SHA-256 of the model's file, where that is known.
    pub base_sha256: Option<String>,
    /// False if the model is to be opened without it where the two cannot be run together.
    pub is_required: bool,
}

impl AdapterOptions {
    /// The description in the adapter's header.
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
