//! Identifies the weights and the program of a resident, so that a caller and a resident can tell whether they match.
//!
//! The *slot* (the program's path and the choice of model and device) names the socket: other choices have a resident
//! of their own. The *identity* (size, time and inode of the files behind those paths) is compared in the handshake:
//! if it differs, the program or the model was replaced, and the resident is replaced too.

use caro_model::adapter::{AdapterChoice, AdapterInfo, AdapterSource};
use caro_model::engine::{BatchedEngine, Device, Engine, EngineKind, Options};
use caro_model::scripted::Scripted;
use caro_model::{Model, ModelError};
#[cfg(unix)]
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The model that a resident keeps loaded.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weights {
    /// A model file that the engine loads.
    Gguf {
        /// The file.
        file: PathBuf,
        /// The model's id.
        id: String,
        /// The implementation of the forward pass.
        engine: EngineKind,
        /// The device to compute on.
        device: Device,
        /// The number of threads that the caller may use. A resident inherits it from the call that starts it.
        threads: usize,
        /// Most tokens of prompt and completion together.
        context: usize,
        /// The folder for the saved state of the stable prefixes of prompts.
        state_dir: Option<PathBuf>,
        /// The adapter to load with them, for prompts that ask for it.
        #[serde(default)]
        adapter: Option<AdapterChoice>,
    },
    /// A script, for tests.
    Script(PathBuf),
}

/// A model that has been opened.
enum OpenModel {
    Engine(Arc<Engine>),
    Script(Scripted),
}

impl OpenModel {
    fn model(self) -> Arc<dyn Model> {
        match self {
            Self::Engine(engine) => engine,
            Self::Script(script) => Arc::new(script),
        }
    }
}

impl Weights {
    /// Returns the model's file.
    pub fn file(&self) -> &Path {
        match self {
            Self::Gguf { file, .. } | Self::Script(file) => file,
        }
    }

    /// Returns the model's id.
    pub fn id(&self) -> String {
        match self {
            Self::Gguf { id, .. } => id.clone(),
            Self::Script(file) => format!("script:{}", file.file_name().unwrap_or_default().to_string_lossy()),
        }
    }

    /// Returns the adapter's own description; `None` without an adapter, or if it cannot be read: opening reports why.
    pub fn adapter(&self) -> Option<AdapterInfo> {
        match self {
            Self::Gguf { adapter, .. } => adapter.as_ref()?.info().ok(),
            Self::Script(_) => None,
        }
    }

    /// Returns the identity of the files, from their metadata; `None` if that of a file cannot be read.
    #[cfg(unix)]
    pub(super) fn identity(&self) -> Option<String> {
        let model = of_file(self.file())?;
        match self {
            Self::Gguf { adapter: Some(AdapterChoice { source: AdapterSource::File(file), .. }), .. } => {
                Some(format!("{model} {}", of_file(file)?))
            }
            // an embedded adapter is part of the program, whose identity is compared too
            Self::Gguf { .. } | Self::Script(_) => Some(model),
        }
    }

    /// Opens the model in this process. Drafts of tokens are made from `phrases`, texts that resemble the expected
    /// completions ([`Options::phrases`]).
    ///
    /// # Errors
    /// See [`Engine::open`] and [`Scripted::open`].
    pub fn open(&self, phrases: Vec<String>) -> Result<Arc<dyn Model>, ModelError> {
        Ok(self.load(phrases)?.model())
    }

    /// Opens the model for many callers: concurrent calls are decoded together, up to `slots` at once, if the device
    /// supports it and there is enough memory.
    ///
    /// # Errors
    /// As [`Weights::open`].
    pub fn open_for_many(&self, phrases: Vec<String>, slots: usize) -> Result<Arc<dyn Model>, ModelError> {
        Ok(match self.load(phrases)? {
            OpenModel::Engine(engine) => BatchedEngine::or_alone(engine, slots),
            script @ OpenModel::Script(_) => script.model(),
        })
    }

    fn load(&self, phrases: Vec<String>) -> Result<OpenModel, ModelError> {
        Ok(match self {
            Self::Script(file) => OpenModel::Script(Scripted::open(file)?),
            Self::Gguf { file, id, engine, device, context, state_dir, adapter, .. } => {
                let options = Options {
                    engine: *engine,
                    device: *device,
                    context: *context,
                    state_dir: state_dir.clone(),
                    phrases,
                    adapter: adapter.as_ref().map(AdapterChoice::open).transpose()?,
                    ..Options::default()
                };
                OpenModel::Engine(Arc::new(Engine::open(file, id, &options)?))
            }
        })
    }

    /// Returns the name of the socket for these weights and this program, without the extension.
    #[cfg(unix)]
    pub(super) fn slot(&self, program: &Path) -> String {
        let text = format!("{}\n{self:?}", program.display());
        Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the identity of a file: its size, time of change and inode; `None` if its metadata cannot be read.
#[cfg(unix)]
pub(super) fn of_file(file: &Path) -> Option<String> {
    let meta = std::fs::metadata(file).ok()?;
    let inode = std::os::unix::fs::MetadataExt::ino(&meta);
    Some(format!("{:x}.{:x}.{inode:x}", meta.len(), caro_base::files::modified_nanos(&meta).unwrap_or_default()))
}

/// Returns the identity of a program: its version and its file's identity.
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
            engine: EngineKind::Auto,
            device: Device::Cpu,
            threads,
            context: 4096,
            state_dir: None,
            adapter: None,
        }
    }

    #[test]
    fn a_model_opened_for_many_has_that_concurrency() {
        let file = caro_model::engine::testing::tiny_file();
        let weights = Weights::Gguf {
            file: file.path().into(),
            id: "tiny".into(),
            engine: EngineKind::Auto,
            device: Device::Cpu,
            threads: 1,
            context: 200,
            state_dir: None,
            adapter: None,
        };
        let (one, many) = (weights.open(Vec::new()).unwrap(), weights.open_for_many(Vec::new(), 4).unwrap());
        assert_eq!((one.concurrency(), many.concurrency()), (1, 4));
        assert_eq!((many.id(), many.limits().context), ("tiny", 200), "each with the whole window");
    }

    fn adapted(file: &Path) -> Weights {
        let source = AdapterSource::File(file.into());
        let choice = AdapterChoice { source, base_sha256: None, is_required: true };
        let Weights::Gguf { file, id, engine, device, threads, context, state_dir, .. } = weights(2, "/a") else {
            panic!("no model file")
        };
        Weights::Gguf { file, id, engine, device, threads, context, state_dir, adapter: Some(choice) }
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
            slot(adapted(Path::new("/b")), "/caro"),
            slot(adapted(Path::new("/c")), "/caro"),
        ];
        for (i, one) in slots.iter().enumerate() {
            assert_eq!(one.len(), 16);
            assert!(slots[..i].iter().all(|other| other != one), "{slots:?}");
        }
        assert_eq!(slots[0], slot(weights(2, "/a"), "/caro"));
    }

    #[test]
    fn the_identity_changes_when_a_file_is_replaced_or_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("model");
        assert_eq!(of_file(&file), None);
        fs::write(&file, "one").unwrap();
        let before = of_file(&file);
        assert_eq!(of_file(&file), before);
        // another file of the same bytes, moved over the first
        let new = dir.path().join("new");
        fs::write(&new, "one").unwrap();
        fs::rename(&new, &file).unwrap();
        assert_ne!(of_file(&file), before);
        // the adapter's file counts as well as the model's
        let adapter = dir.path().join("adapter");
        let Weights::Gguf { id, engine, device, threads, context, state_dir, adapter: choice, .. } = adapted(&adapter)
        else {
            panic!("no model file")
        };
        let both = Weights::Gguf { file, id, engine, device, threads, context, state_dir, adapter: choice };
        assert_eq!(both.identity(), None, "it is not there");
        fs::write(&adapter, "one").unwrap();
        let before = both.identity();
        assert!(before.is_some());
        fs::write(&adapter, "another").unwrap();
        assert_ne!(both.identity(), before);
    }

    #[test]
    fn orders_survive_serialization() {
        for weights in [weights(2, "/a"), adapted(Path::new("/b"))] {
            let orders = super::super::Orders { socket: "/s".into(), weights, idle_s: 900.0 };
            let text = serde_json::to_string(&orders).unwrap();
            assert_eq!(serde_json::from_str::<super::super::Orders>(&text).unwrap(), orders);
        }
    }
}
