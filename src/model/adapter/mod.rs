//! Low-rank adapters: their sources and descriptions, without the weights. The [`engine`](super::engine) computes
//! with them.

mod info;

pub use info::AdapterInfo;

use super::engine::AdapterOptions;
use super::engine::bytes::Bytes;
use super::engine::gguf::Gguf;
use super::{ModelError, catalog};
use std::path::{Path, PathBuf};

/// The place of an adapter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdapterSource {
    /// Embedded in the program, by the path that its card has.
    Embedded(String),
    /// A file.
    File(PathBuf),
}

impl AdapterSource {
    /// Opens the file and reads only its header. An embedded file is not copied.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] if it does not exist or is no GGUF.
    pub fn open(&self) -> Result<Gguf, ModelError> {
        match self {
            Self::File(path) => Gguf::open(path),
            Self::Embedded(path) => match catalog::embedded_file(path) {
                Some(bytes) => Gguf::parse(path, Bytes::from(bytes)),
                None => Err(ModelError::BadFile { file: path.clone(), reason: "this program has no such part".into() }),
            },
        }
    }

    /// Returns its path: in the program, or on the disk.
    pub fn path(&self) -> &Path {
        match self {
            Self::Embedded(path) => Path::new(path),
            Self::File(path) => path,
        }
    }

    /// Returns its name: that of its file, without the extension.
    pub fn name(&self) -> String {
        self.path().file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// An adapter and the conditions of its use.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AdapterChoice {
    /// Its place.
    pub source: AdapterSource,
    /// The SHA-256 of the model's file, if known: another model's adapter is refused.
    pub base_sha256: Option<String>,
    /// False if the model answers without the adapter when the two cannot run together.
    pub is_required: bool,
}

impl AdapterChoice {
    /// Opens the file and reads only its header.
    ///
    /// # Errors
    /// [`ModelError::BadFile`] if it does not exist or is no GGUF.
    pub fn open(&self) -> Result<AdapterOptions, ModelError> {
        let (base_sha256, is_required) = (self.base_sha256.clone(), self.is_required);
        Ok(AdapterOptions { file: self.source.open()?, base_sha256, is_required })
    }

    /// Reads its description.
    ///
    /// # Errors
    /// As [`AdapterChoice::open`]; also if the file is no adapter.
    pub fn info(&self) -> Result<AdapterInfo, ModelError> {
        self.open()?.info()
    }
}
