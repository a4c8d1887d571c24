//! Low-rank adapters: what is known of one without its weights. Who computes with them is the [`engine`](super::engine).

mod info;

pub use info::AdapterInfo;

use super::engine::AdapterOptions;
use super::engine::bytes::Bytes;
use super::engine::gguf::Gguf;
use super::{ModelError, catalog};
use std::path::{Path, PathBuf};

/// Where an adapter is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdapterSource {
    /// The one that comes with the program, by the path that its card has.
    Embedded(String),
    /// A file.
    File(PathBuf),
}

impl AdapterSource {
    /// Opens the file, of which only the header is read. What is embedded is not copied.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] for one that is not there or no GGUF.
    pub fn open(&self) -> Result<Gguf, ModelError> {
        match self {
            Self::File(path) => Gguf::open(path),
            Self::Embedded(path) => match catalog::embedded_file(path) {
                Some(bytes) => Gguf::parse(path, Bytes::from(bytes)),
                None => Err(ModelError::BadFile { file: path.clone(), reason: "this program has no such part".into() }),
            },
        }
    }

    /// Its path: in the program, or on the disk.
    pub fn path(&self) -> &Path {
        match self {
            Self::Embedded(path) => Path::new(path),
            Self::File(path) => path,
        }
    }

    /// Its name: that of its file, without the ending.
    pub fn name(&self) -> String {
        self.path().file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// An adapter, and how it is wanted.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AdapterChoice {
    /// Where it is.
    pub source: AdapterSource,
    /// The SHA-256 of the model's file, where that is known: another model's adapter is refused.
    pub base_sha256: Option<String>,
    /// False if the model is to answer without it where the two cannot be run together.
    pub is_required: bool,
}

impl AdapterChoice {
    /// Opens the file, of which only the header is read.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] for one that is not there or no GGUF.
    pub fn open(&self) -> Result<AdapterOptions, ModelError> {
        let (base_sha256, is_required) = (self.base_sha256.clone(), self.is_required);
        Ok(AdapterOptions { file: self.source.open()?, base_sha256, is_required })
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// As [`AdapterChoice::open`]; and for a file that is no adapter.
    pub fn info(&self) -> Result<AdapterInfo, ModelError> {
        self.open()?.info()
    }
}
