//! Which weights a resident keeps, and how two sides find out that they mean the same.
//!
//! The *slot* (path of the program, path of the model, how it is computed) names the socket: other choices have a resident
//! of their own. The *identity* (the very bytes behind those paths, as far as size and time tell) is compared in the
//! handshake: where it differs, the program or the model has been replaced, and so is the resident.

use caro_model::adapter::{AdapterChoice, AdapterInfo, AdapterSource};
use caro_model::engine::{BatchedEngine, Device, Engine, Options};
use caro_model::scripted::Scripted;
use caro_model::{Model, ModelError};
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
        /// The adapter to load beside them, for prompts that ask for it.
        #[serde(default)]
        adapter: Option<AdapterChoice>,
    },
    /// A script, for tests.
    Script(PathBuf),
}

/// A model that has been opened.
enum Opened {
    Engine(Arc<Engine>),
    Script(Scripted),
}

impl Opened {
    fn model(self) -> Arc<dyn Model> {
        match self {
            Self::Engine(engine) => engine,
            Self::Script(script) => Arc::new(script),
        }
    }
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

    /// What their adapter says of itself; `None` without one, and for one that opening will tell the fault of.
    pub fn adapter(&self) -> Option<AdapterInfo> {
        match self {
            Self::Gguf { adapter, .. } => adapter.as_ref()?.info().ok(),
            Self::Script(_) => None,
        }
    }

    /// The very bytes that they are, as far as can be told without reading them; `None` if a file cannot be looked at.
    #[cfg(unix)]
    pub(super) fn identity(&self) -> Option<String> {
        let model = of_file(self.file())?;
        match self {
            Self::Gguf { adapter: Some(AdapterChoice { source: AdapterSource::File(file), .. }), .. } => {
                Some(format!("{model} {}", of_file(file)?))
            }
            // what is embedded is the program's, which is compared by itself
            Self::Gguf { .. } | Self::Script(_) => Some(model),
        }
    }

    /// Opens the model in this process. It guesses ahead along `phrases` ([`Options::phrases`]), what its callers often
    /// want of it.
    ///
    /// # Errors
    /// See [`Engine::open`] and [`Scripted::open`].
    pub fn open(&self, phrases: Vec<String>) -> Result<Arc<dyn Model>, ModelError> {
        Ok(self.opened(phrases)?.model())
    }

    /// The same for many callers: calls that come together are computed together, up to `slots` at once, where the device
    /// does that and there is the memory.
    ///
    /// # Errors
    /// As [`Weights::open`].
    pub fn open_for_many(&self, phrases: Vec<String>, slots: usize) -> Result<Arc<dyn Model>, ModelError> {
        Ok(match self.opened(phrases)? {
            Opened::Engine(engine) => BatchedEngine::or_alone(engine, slots),
            script @ Opened::Script(_) => script.model(),
        })
    }

    fn opened(&self, phrases: Vec<String>) -> Result<Opened, ModelError> {
        Ok(match self {
            Self::Script(file) => Opened::Script(Scripted::open(file)?),
            Self::Gguf { file, id, device, context, state_dir, adapter, .. } => {
                let options = Options {
                    device: *device,
                    context: *context,
                    state_dir: state_dir.clone(),
                    phrases,
                    adapter: adapter.as_ref().map(AdapterChoice::open).transpose()?,
                    ..Options::default()
                };
                Opened::Engine(Arc::new(Engine::open(file, id, &options)?))
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
    Some(format!("{:x}.{:x}.{number:x}", meta.len(), caro_base::files::changed(&meta).unwrap_or_default()))
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
            adapter: None,
        }
    }

    #[test]
    fn opened_for_many_it_computes_so_many_calls_together() {
        let file = caro_model::engine::testing::tiny_file();
        let weights = Weights::Gguf {
            file: file.path().into(),
            id: "tiny".into(),
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
        let Weights::Gguf { file, id, device, threads, context, state_dir, .. } = weights(2, "/a") else {
            panic!("no model file")
        };
        Weights::Gguf { file, id, device, threads, context, state_dir, adapter: Some(choice) }
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
        // an adapter's file as well as the model's
        let adapter = dir.path().join("adapter");
        let Weights::Gguf { id, device, threads, context, state_dir, adapter: choice, .. } = adapted(&adapter) else {
            panic!("no model file")
        };
        let both = Weights::Gguf { file, id, device, threads, context, state_dir, adapter: choice };
        assert_eq!(both.identity(), None, "it is not there");
        fs::write(&adapter, "one").unwrap();
        let before = both.identity();
        assert!(before.is_some());
        fs::write(&adapter, "another").unwrap();
        assert_ne!(both.identity(), before);
    }

    #[test]
    fn orders_survive_the_way_to_the_resident() {
        for weights in [weights(2, "/a"), adapted(Path::new("/b"))] {
            let orders = super::super::Orders { socket: "/s".into(), weights, idle_s: 900.0 };
            let text = serde_json::to_string(&orders).unwrap();
            assert_eq!(serde_json::from_str::<super::super::Orders>(&text).unwrap(), orders);
        }
    }
}
