//! Tests the adapters of a user: adding, listing, verifying and removing them.

use super::*;
use crate::engine::gguf_writer::Writer;
use crate::engine::quant::Kind;
use crate::fetch::{Silent, Spawn, SpawnEnd, SpawnJob};
use crate::{Cancel, ModelError};

/// Starts no process.
struct NoSpawn;

impl Spawn for NoSpawn {
    fn find(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    fn run(&self, _: &SpawnJob, _: &Cancel) -> Result<SpawnEnd, String> {
        Err("nothing is started here".into())
    }
}

/// The models folder and another folder.
struct Place {
    models: tempfile::TempDir,
    elsewhere: tempfile::TempDir,
    settings: Settings,
}

impl Place {
    fn new() -> Self {
        let (models, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let settings = Settings::new(Some(models.path().into()), None, []).unwrap();
        Self { models, elsewhere, settings }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.elsewhere.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn with_fetcher<T>(&self, work: impl FnOnce(&Fetcher<'_>) -> T) -> T {
        work(&Fetcher { settings: &self.settings, spawn: &NoSpawn, progress: &Silent, cancel: &Cancel::new() })
    }

    /// Adds a model with the header and tensors that adapters are checked against, and returns its SHA-256.
    fn add_model(&self, width: u32) -> String {
        let mut writer = Writer::default().text("general.architecture", "qwen2");
        for (key, value) in [
            ("block_count", 1),
            ("embedding_length", width),
            ("feed_forward_length", 64),
            ("attention.head_count", 2),
            ("context_length", 64),
        ] {
            writer = writer.u32(&format!("qwen2.{key}"), value);
        }
        let zeros = vec![0.0; 8 * width as usize];
        let writer = writer.f32("qwen2.attention.layer_norm_rms_epsilon", 1e-6).floats(
            "token_embd.weight",
            &[width.into(), 8],
            &zeros,
        );
        let path = self.file(&format!("model-{width}.gguf"), &writer.finish());
        let card = self.with_fetcher(|fetcher| crate::fetch::add(&path, None, fetcher)).unwrap();
        card.files[0].sha256.clone().unwrap()
    }
}

/// Returns the file of an adapter for a model of this width.
fn adapter(width: u64, base: Option<&str>, seed: u8) -> Vec<u8> {
    let mut writer = Writer::default()
        .text("general.architecture", "qwen2")
        .text("general.type", "adapter")
        .text("adapter.type", "lora")
        .f32("adapter.lora.alpha", 4.0)
        .text("caro.adapter.prompt", "1");
    if let Some(base) = base {
        writer = writer.text("caro.adapter.base_sha256", base);
    }
    writer
        .tensor("blk.0.ffn_up.weight.lora_a", Kind::F16, &[width, 2], &vec![seed; 4 * width as usize])
        .tensor("blk.0.ffn_up.weight.lora_b", Kind::F16, &[2, 64], &[0; 256])
        .finish()
}

#[test]
fn an_adapter_is_added_listed_verified_and_removed() {
    let place = Place::new();
    let settings = &place.settings;
    let sum = place.add_model(32);
    let path = place.file("terse.gguf", &adapter(32, Some(&sum), 0));
    let added = add_adapter(&path, settings).unwrap();
    let copy = place.models.path().join("adapters/terse.gguf");
    assert_eq!((&added.source, added.model.as_deref()), (&AdapterSource::File(copy.clone()), Some("model-32")));
    assert!(added.is_checked);
    assert_eq!((added.info.name.as_str(), added.info.rank, added.info.prompt.as_deref()), ("terse", 2, Some("1")));
    fs::remove_file(&path).unwrap();
    let all: Vec<ListedAdapter> = list_adapters(settings).into_iter().map(Result::unwrap).collect();
    assert!(all.contains(&added));
    assert_eq!(adapter_of_spec("terse", settings).unwrap(), added.source);
    let (_, sum) = verify_adapter(added.source.clone(), settings).unwrap();
    assert_eq!(sum, crate::fetch::hex(&Sha256::digest(fs::read(&copy).unwrap())));
    assert_eq!(remove_adapter("terse", settings).unwrap(), (copy, added.bytes));
    for error in [remove_adapter("terse", settings).err(), adapter_of_spec("terse", settings).err()] {
        assert!(matches!(error, Some(FetchError::NoAdapter { .. })), "{error:?}");
    }
}

/// Each adapter of the list is either removed or refused with the way to do without it; none is called unknown.
#[test]
fn an_adapter_that_comes_with_the_program_is_refused_by_name() {
    let place = Place::new();
    let embedded: Vec<String> = adapter_sources(&place.settings).iter().map(AdapterSource::name).collect();
    assert!(!embedded.is_empty());
    for name in embedded {
        let error = remove_adapter(&name, &place.settings).unwrap_err();
        assert!(matches!(&error, FetchError::AdapterEmbedded { name: of } if *of == name), "{error:?}");
        assert!(error.hint().contains("`caro config set adapter off`"), "{}", error.hint());
    }
}

#[test]
fn a_model_that_was_copied_or_touched_is_here_and_not_verified() {
    let place = Place::new();
    let settings = &place.settings;
    let sum = place.add_model(32);
    add_adapter(&place.file("terse.gguf", &adapter(32, Some(&sum), 0)), settings).unwrap();
    let card = crate::fetch::find("model-32", settings).unwrap().unwrap();
    let state = || {
        let listed = list(settings).into_iter().flatten().find(|model| model.card.id == card.id).unwrap();
        let adapter = list_adapters(settings).into_iter().flatten().find(|one| one.info.name == "terse").unwrap();
        let unverified = crate::fetch::locate_unverified(&card, settings).is_some();
        let here = (listed.path.is_some(), listed.is_unverified, unverified);
        (here, (adapter.model.as_deref() == Some("model-32"), adapter.is_checked, adapter.is_model_unverified))
    };
    assert_eq!(state(), ((true, false, false), (true, true, false)));
    let path = place.elsewhere.path().join("model-32.gguf");
    let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    fs::File::options().append(true).open(&path).unwrap().set_modified(earlier).unwrap();
    assert_eq!(state(), ((false, true, true), (true, false, true)));
    place.with_fetcher(|fetcher| crate::fetch::verify(&card, fetcher)).unwrap();
    assert_eq!(state(), ((true, false, false), (true, true, false)));
    fs::remove_file(&path).unwrap();
    assert_eq!(state(), ((false, false, false), (true, false, false)));
}

#[test]
fn an_unusable_adapter_is_not_added() {
    let place = Place::new();
    let sum = place.add_model(32);
    let add = |name: &str, bytes: &[u8]| add_adapter(&place.file(name, bytes), &place.settings);
    let too_wide = add("wide.gguf", &adapter(64, Some(&sum), 0)).unwrap_err();
    assert!(too_wide.to_string().contains("not [32, 2]"), "{too_wide}");
    assert!(matches!(add("no.gguf", b"no GGUF"), Err(FetchError::Adapter(ModelError::BadFile { .. }))));
    assert!(matches!(add("a b.gguf", &adapter(32, None, 0)), Err(FetchError::Card(_))));
    assert!(matches!(add_adapter(Path::new("nowhere"), &place.settings), Err(FetchError::NoFile { .. })));
    add("one.gguf", &adapter(32, Some(&sum), 0)).unwrap();
    assert!(matches!(add("one.gguf", &adapter(32, Some(&sum), 1)), Err(FetchError::AdapterTaken { .. })));
    add("one.gguf", &adapter(32, Some(&sum), 0)).unwrap();
    // the adapter of an unknown model cannot be checked
    let foreign = add("foreign.gguf", &adapter(64, Some(&"a".repeat(64)), 0)).unwrap();
    assert_eq!((foreign.model, foreign.is_checked), (None, false));
    let without_base = add("unsaid.gguf", &adapter(64, None, 0)).unwrap();
    assert_eq!((without_base.model, without_base.info.base_sha256), (None, None));
}

#[test]
fn an_adapter_is_named_by_name_or_path() {
    let place = Place::new();
    let path = place.file("some.gguf", &adapter(32, None, 0));
    let spec = |spec: &str| adapter_of_spec(spec, &place.settings);
    assert_eq!(spec(path.to_str().unwrap()).unwrap(), AdapterSource::File(path.clone()));
    add_adapter(&path, &place.settings).unwrap();
    assert_eq!(spec("some").unwrap().name(), "some");
    for missing in ["nowhere/x", "x.gguf"] {
        assert!(matches!(spec(missing), Err(FetchError::NoFile { .. })), "{missing}");
    }
    let unknown = spec("sme").unwrap_err();
    assert!(unknown.hint().contains("some"), "{}", unknown.hint());
}

#[test]
fn the_sum_of_a_file_is_recorded_until_the_file_changes() {
    let place = Place::new();
    let path = place.file("model.gguf", b"one");
    let sum = || place.with_fetcher(|fetcher| file_sum(&path, fetcher)).unwrap();
    let hash = |bytes: &[u8]| crate::fetch::hex(&Sha256::digest(bytes));
    assert_eq!(sum(), hash(b"one"));
    // same size and modification time: the record still holds
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, b"two").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    assert_eq!(sum(), hash(b"one"), "nothing is hashed twice");
    fs::write(&path, b"three").unwrap();
    assert_eq!(sum(), hash(b"three"));
    let card = Card { adapter: None, ..catalog::embedded(catalog::DEFAULT_MODEL).unwrap().unwrap() };
    assert_eq!(base_sum(&card, &place.settings), card.files[0].sha256);
}
