//! Which weights a resident keeps, and how two sides find out that they mean the same.
//!
//! The *slot* (path of the program, path of the model, how it is computed) names the socket: other choices have a resident
//! of their own. The *identity* (the very bytes behind those paths, as far as size and time tell) is compared in the
//! handshake: where it differs, the program or the model has been replaced, and so is the resident.

use crate::model::engine::{Device, Engine, Options};
use crate::model::scripted::Scripted;
use crate::model::{Model, ModelError};
#[cfg(unix)]
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a resident keeps ready.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weights {
    /// A model file on the engine.
    Gguf {
        /// The file.
        file: PathBuf,
        /// The model's id.
        id: String,
        /// Where to compute.
        device: Device,
        /// Threads that the caller may use. A resident takes this over from who starts it.
        threads: usize,
        /// The most tokens of prompt and completion together.
        context: usize,
        /// Folder for the state of prompts' stable beginnings.
        state_dir: Option<PathBuf>,
    },
    /// A script, for tests.
    Script(PathBuf),
}

impl Weights {
    /// The file that they come from.
    pub fn file(&self) -> &Path {
        match self {
            Self::Gguf { file, .. } | Self::Script(file) => file,
        }
    }

    /// The model's id.
    pub fn id(&self) -> String {
        match self {
            Self::Gguf { id, .. } => id.clone(),
            Self::Script(file) => format!("script:{}", file.file_name().unwrap_or_default().to_string_lossy()),
        }
    }

    /// Opens the model in this process. It guesses ahead along `phrases` ([`Options::phrases`]), what its callers often
    /// want of it.
    ///
    /// # Errors
    /// See [`Engine::open`] and [`Scripted::open`].
    pub fn open(&self, phrases: Vec<String>) -> Result<Arc<dyn Model>, ModelError> {
        Ok(match self {
            Self::Script(file) => Arc::new(Scripted::open(file)?),
            Self::Gguf { file, id, device, context, state_dir, .. } => {
                let options = Options {
                    device: *device,
                    context: *context,
                    state_dir: state_dir.clone(),
                    phrases,
                    ..Options::default()
                };
                Arc::new(Engine::open(file, id, &options)?)
            }
        })
    }

    /// The name of their socket for this program, without its ending.
    #[cfg(unix)]
    pub(super) fn slot(&self, program: &Path) -> String {
        let text = format!("{}\n{self:?}", program.display());
        Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What a file is, as far as can be told without reading it; `None` if it cannot be looked at.
#[cfg(unix)]
pub(super) fn of_file(file: &Path) -> Option<String> {
    let meta = std::fs::metadata(file).ok()?;
    let number = std::os::unix::fs::MetadataExt::ino(&meta);
    Some(format!("{:x}.{:x}.{number:x}", meta.len(), crate::model::changed(&meta).unwrap_or_default()))
}

/// What a program is: its version and its file.
#[cfg(unix)]
pub(super) fn of_program(program: &Path) -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), of_file(program).unwrap_or_default())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;

    fn weights(threads: usize, file: &str) -> Weights {
        Weights::Gguf {
            file: file.into(),
            id: "m".into(),
            device: Device::Cpu,
            threads,
            context: 4096,
            state_dir: None,
        }
    }

    #[test]
    fn every_choice_has_a_slot_of_its_own() {
        let slot = |weights: Weights, program: &str| weights.slot(Path::new(program));
        let slots = [
            slot(weights(2, "/a"), "/caro"),
            slot(weights(1, "/a"), "/caro"),
            slot(weights(2, "/b"), "/caro"),
            slot(weights(2, "/a"), "/other/caro"),
            slot(Weights::Script("/a".into()), "/caro"),
        ];
        for (i, one) in slots.iter().enumerate() {
            assert_eq!(one.len(), 16);
            assert!(slots[..i].iter().all(|other| other != one), "{slots:?}");
        }
        assert_eq!(slots[0], slot(weights(2, "/a"), "/caro"));
    }

    #[test]
    fn a_file_that_is_replaced_or_gone_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("model");
        assert_eq!(of_file(&file), None);
        fs::write(&file, "one").unwrap();
        let before = of_file(&file);
        assert_eq!(of_file(&file), before);
        // The same bytes in another file, moved over the first.
        let new = dir.path().join("new");
        fs::write(&new, "one").unwrap();
        fs::rename(&new, &file).unwrap();
        assert_ne!(of_file(&file), before);
    }

    #[test]
    fn orders_survive_the_way_to_the_resident() {
        let orders = super::super::Orders { socket: "/s".into(), weights: weights(2, "/a"), idle_s: 900.0 };
        let text = serde_json::to_string(&orders).unwrap();
        assert_eq!(serde_json::from_str::<super::super::Orders>(&text).unwrap(), orders);
    }
}
