//! Tests the stored states of prefixes: they equal computed ones, and only their own are used.

use super::super::forward::Forward;
use super::super::generate::Sequence;
use super::super::kernels::{Kernels, Tier};
use super::super::quant::Kind;
use super::super::template::Encoded;
use super::super::testing::{self, Tiny};
use super::super::threads::Pool;
use super::super::{AdapterOptions, Device, Engine, Options};
use super::*;
use crate::{Cancel, Completion, Flow, Model, Prompt, Request, Role, Sampling, Shape, Token};
use std::sync::Arc;

const STABLE: [u32; 21] = [7, 1, 200, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
const REST: [u32; 3] = [9, 8, 7];

fn forward(gguf: &Gguf) -> Forward {
    Forward::new(gguf, Kernels::new(Arc::new(Pool::new(2)), Tier::Portable), 64).unwrap()
}

/// A tiny model, its file, and the parent of a store's folder, which does not exist yet.
struct Setup {
    gguf: Gguf,
    model: tempfile::NamedTempFile,
    parent: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let model = Tiny::new("qwen2").file();
        Self { gguf: Gguf::open(model.path()).unwrap(), model, parent: tempfile::tempdir().unwrap() }
    }

    fn folder(&self) -> PathBuf {
        self.parent.path().join("states")
    }

    fn store(&self, backend: &str) -> Store {
        Store::new(&self.folder(), self.model.path(), &self.gguf, backend)
    }

    fn computed(&self) -> Forward {
        let mut forward = forward(&self.gguf);
        assert!(forward.feed(&STABLE, &Cancel::new()).unwrap());
        forward
    }
}

fn snapshot(backend: &dyn Backend) -> Vec<u8> {
    let mut bytes = Vec::new();
    backend.snapshot(STABLE.len(), &mut bytes).unwrap();
    bytes
}

fn only_file(folder: &Path) -> PathBuf {
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn a_restored_state_equals_the_computed_one() {
    let setup = Setup::new();
    let (store, mut computed, mut restored) = (setup.store("a"), setup.computed(), forward(&setup.gguf));
    assert!(!store.load(&STABLE, "", &mut restored), "nothing is there yet");
    // later tokens do not matter
    assert!(computed.feed(&REST, &Cancel::new()).unwrap());
    store.save(&STABLE, "", &computed);
    assert!(store.load(&STABLE, "", &mut restored));
    assert_eq!(restored.len(), STABLE.len());
    assert!(snapshot(&restored) == snapshot(&computed));
    restored.feed(&REST, &Cancel::new()).unwrap();
    let bits = |logits: &[f32]| logits.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(restored.logits()), bits(computed.logits()));
}

#[test]
fn a_damaged_file_is_not_used_and_is_replaced() {
    let setup = Setup::new();
    let (store, computed) = (setup.store("a"), setup.computed());
    store.save(&STABLE, "", &computed);
    let file = only_file(&setup.folder());
    let sound = fs::read(&file).unwrap();
    let head = store.head(&STABLE, "").len();
    let flipped = |at: usize, bit: u8| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << bit;
        bytes
    };
    let mut damaged = vec![
        ("no bytes", Vec::new()),
        ("cut in the head", sound[..head - 1].to_vec()),
        ("no state", sound[..head].to_vec()),
        ("cut in the state", sound[..sound.len() / 2].to_vec()),
        ("no sum", sound[..sound.len() - 8].to_vec()),
        ("cut in the sum", sound[..sound.len() - 1].to_vec()),
        ("longer", [&sound[..], b"x"].concat()),
        ("another layout", [b"caro prompt state 0\n", &sound[MAGIC.len()..]].concat()),
        ("zeros", vec![0; sound.len()]),
    ];
    for (what, at) in [
        ("magic", 3),
        ("identity", MAGIC.len() + 5),
        ("count", head - 4 * STABLE.len() - 8),
        ("first token", head - 4 * STABLE.len()),
        ("last token", head - 4),
        ("first of the state", head),
        ("middle of the state", head + (sound.len() - head) / 2),
        ("last of the state", sound.len() - 9),
        ("sum", sound.len() - 1),
    ] {
        damaged.push((what, flipped(at, (at % 8) as u8)));
    }
    for (what, bytes) in damaged {
        fs::write(&file, bytes).unwrap();
        let mut backend = setup.computed();
        assert!(!store.load(&STABLE, "", &mut backend), "{what}");
        assert_eq!(backend.len(), 0, "{what}");
        store.save(&STABLE, "", &computed);
        assert!(fs::read(only_file(&setup.folder())).unwrap() == sound, "{what}");
        assert!(store.load(&STABLE, "", &mut backend), "{what}");
    }
}

#[test]
fn the_state_of_anything_else_is_not_used() {
    let setup = Setup::new();
    let (store, computed) = (setup.store("a"), setup.computed());
    store.save(&STABLE, "", &computed);
    let file = only_file(&setup.folder());
    // the same shape and length with other weights
    let mut tiny = Tiny::new("qwen2");
    tiny.tensor("output_norm.weight", &[64], 0.9);
    let (path, bytes) = (setup.model.path(), tiny.bytes());
    let other_weights = Store::new(&setup.folder(), path, &testing::parse(&bytes), "a");
    let touched = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    setup.model.as_file().set_modified(touched).unwrap();
    let other_time = setup.store("a");
    let mut backend = forward(&setup.gguf);
    for (what, store) in [("weights", other_weights), ("time", other_time), ("kernels", setup.store("b"))] {
        assert!(!store.load(&STABLE, "", &mut backend), "{what}");
        // nor if its file name is the same
        fs::copy(&file, store.path(&store.head(&STABLE, ""))).unwrap();
        assert!(!store.load(&STABLE, "", &mut backend), "{what}");
    }
    let mut tokens = STABLE;
    tokens[0] += 1;
    fs::copy(&file, store.path(&store.head(&tokens, ""))).unwrap();
    assert!(!store.load(&tokens, "", &mut backend) && !store.load(&STABLE[..20], "", &mut backend));
    assert!(store.load(&STABLE, "", &mut backend), "its own is still there");
}

#[test]
fn concurrent_readers_read_complete_files_or_none() {
    let setup = Setup::new();
    let wanted = snapshot(&setup.computed());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (store, computed, mut backend) = (setup.store("a"), setup.computed(), forward(&setup.gguf));
                for _ in 0..20 {
                    if store.load(&STABLE, "", &mut backend) {
                        assert!(snapshot(&backend) == wanted);
                    }
                    store.save(&STABLE, "", &computed);
                    assert!(store.load(&STABLE, "", &mut backend), "it was written, and nobody takes it away");
                }
            });
        }
    });
    assert!(only_file(&setup.folder()).extension().unwrap() == COMPLETE);
}

#[test]
fn recently_used_files_are_kept() {
    let setup = Setup::new();
    let folder = setup.folder();
    fs::create_dir(&folder).unwrap();
    let now = SystemTime::now();
    let make = |name: &str, hours: u64, len: u64| {
        let file = File::create(folder.join(name)).unwrap();
        file.set_len(len).unwrap();
        file.set_modified(now - Duration::from_secs(hours * 3600)).unwrap();
    };
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    for hours in 0..12 {
        make(&format!("{hours:02}.state"), hours, 10);
    }
    make("notes.txt", 100, 10);
    make("new.partial", 0, 10);
    make("old.partial", 2, 10);
    let store = setup.store("a");
    store.prune(now).unwrap();
    let mut wanted: Vec<String> = (0..8).map(|hours| format!("{hours:02}.state")).collect();
    wanted.extend(["new.partial".into(), "notes.txt".into()]);
    assert_eq!(names(), wanted);
    make("03.state", 3, MAX_TOTAL_BYTES - 35);
    store.prune(now).unwrap();
    assert_eq!(names(), ["00.state", "01.state", "02.state", "03.state", "new.partial", "notes.txt"]);
    // loading a state makes its file the newest
    for name in ["00", "01", "02", "03"] {
        fs::remove_file(folder.join(name).with_extension(COMPLETE)).unwrap();
    }
    store.save(&STABLE, "", &setup.computed());
    let file = store.path(&store.head(&STABLE, ""));
    File::open(&file).unwrap().set_modified(now - Duration::from_secs(3600 * 24)).unwrap();
    assert!(store.load(&STABLE, "", &mut forward(&setup.gguf)));
    assert!(fs::metadata(&file).unwrap().modified().unwrap() >= now - Duration::from_secs(60));
}

#[test]
fn the_sum_depends_on_every_bit_and_not_on_the_pieces() {
    let bytes: Vec<u8> = (0..300u32).map(|i| (i * 7 % 251) as u8).collect();
    let whole = sum(&bytes);
    for size in [1, 7, 63, 64, 65, 129] {
        let mut pieces = Sum::new();
        bytes.chunks(size).for_each(|piece| pieces.add(piece));
        assert_eq!(pieces.value(), whole, "{size}");
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut other = bytes.clone();
            other[at] ^= 1 << bit;
            assert_ne!(sum(&other), whole, "bit {bit} of byte {at}");
        }
    }
    assert_ne!(sum(&[0; 63]), sum(&[0; 64]));
    assert_ne!(sum(&bytes[..299]), whole);
}

fn open(model: &Path, folder: Option<&Path>) -> Engine {
    let options = Options { device: Device::Cpu, state_dir: folder.map(Path::to_owned), ..Options::default() };
    Engine::open(model, "prefix", &options).unwrap()
}

fn request(text: &str, shape: Shape) -> Request {
    let mut prompt = Prompt::system("You know every shell. Answer with one command.");
    prompt.push(Role::User, "list the files here").push(Role::Assistant, "ls -l");
    prompt.stable_messages = 3;
    prompt.push(Role::User, text);
    Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 8, cancel: Cancel::new() }
}

fn ask(engine: &Engine, request: &Request) -> Completion {
    engine.generate(request, &mut |_| Flow::Continue).unwrap()
}

/// Asks fresh engines and a resident one the same request, before and after others: tokens and probabilities must be
/// equal bit by bit.
fn answers_do_not_depend_on_history(model: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let shapes = [
        Shape::Text { stop: vec!["\n".into()] },
        Shape::Lark("start: /[a-z][^\\n]*/".into()),
        Shape::Choice(vec!["ls -la".into(), "ls -lh".into()]),
    ];
    for shape in shapes {
        fs::remove_dir_all(folder.path()).unwrap();
        let wanted = request("show the users in this system", shape.clone());
        let first = ask(&open(model, None), &wanted);
        let resident = open(model, Some(folder.path()));
        let cold = ask(&resident, &wanted);
        ask(&resident, &request("show", shape.clone()));
        let stable = ask(&resident, &wanted).usage.cached_tokens;
        let whole = cold.usage.prompt_tokens;
        assert_eq!(cold.usage.cached_tokens, 0);
        assert!(stable > 20 && stable < whole);
        let same = |what: &str, cached: usize, completion: Completion| {
            assert_eq!(completion.usage.cached_tokens, cached, "{what}");
            assert_eq!((&completion.text, &completion.tokens), (&first.text, &first.tokens), "{what}");
        };
        same("with a folder", 0, cold);
        same("in a new process", stable, ask(&open(model, Some(folder.path())), &wanted));
        same("again", whole, ask(&resident, &wanted));
        let sampling = Sampling { temperature: 0.9, top_p: 0.95, seed: 5 };
        let several = Request { sampling, ..wanted.clone() };
        let fresh = open(model, None).sample(&several, 3).unwrap();
        let behind = resident.sample(&several, 3).unwrap();
        assert_eq!(behind[0].usage.cached_tokens, whole, "its prompt is read already");
        for (a, b) in behind.iter().zip(&fresh) {
            assert_eq!((&a.text, &a.tokens), (&b.text, &b.tokens));
        }
        same("after several of it", whole, ask(&resident, &wanted));
        ask(&resident, &request("show the users in this system and in that one", shape.clone()));
        same("after one like it", stable, ask(&resident, &wanted));
        let mut other = request("show the users in this system", shape.clone());
        other.prompt.stable_messages = 0;
        ask(&resident, &other);
        same("after one without stable turns", stable, ask(&resident, &wanted));
        other.prompt.messages.remove(0);
        ask(&resident, &other);
        same("after one with nothing in common", stable, ask(&resident, &wanted));
        let cancelled = request("show", shape);
        cancelled.cancel.cancel();
        ask(&resident, &cancelled);
        same("after one that was cancelled", stable, ask(&resident, &wanted));
        let fresh = open(model, None);
        ask(&fresh, &cancelled);
        same("after one that was cancelled before anything was held", 0, ask(&fresh, &wanted));
    }
}

/// Asks resident engines in turn with an adapter and without, and fresh ones that share their folder, with another
/// adapter too: each must answer as it would alone, bit by bit.
fn adapters_are_not_mixed(model: &Path, adapters: [&AdapterOptions; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let open = |folder: Option<&Path>, adapter: Option<&AdapterOptions>| {
        let (state_dir, adapter) = (folder.map(Path::to_owned), adapter.cloned());
        let options = Options { device: Device::Cpu, state_dir, adapter, ..Options::default() };
        Engine::open(model, "prefix", &options).unwrap()
    };
    for stable_messages in [3, 0] {
        let wanted = |adapted: bool, text: &str| {
            let mut request = request(text, Shape::Text { stop: vec![] });
            (request.prompt.stable_messages, request.prompt.adapted) = (stable_messages, adapted);
            request
        };
        let text = "show the users in this system";
        let alone = |adapter: Option<&AdapterOptions>| {
            let completion = ask(&open(None, adapter), &wanted(adapter.is_some(), text));
            assert_eq!(completion.usage.adapted, adapter.is_some());
            completion.tokens
        };
        let expected = [alone(None), alone(Some(adapters[0])), alone(Some(adapters[1]))];
        assert!(expected[0] != expected[1] && expected[1] != expected[2] && expected[0] != expected[2]);
        let residents = [open(Some(folder.path()), Some(adapters[0])), open(Some(folder.path()), Some(adapters[1]))];
        let same = |engine: &Engine, which: usize, what: &str| {
            let request = wanted(which > 0, text);
            let completion = ask(engine, &request);
            assert_eq!(completion.usage.adapted, which > 0, "{what}");
            if stable_messages > 0 {
                assert_eq!(completion.tokens, expected[which], "{what}");
            }
            // rounding depends on a batch's length, and without stable messages the reused part may have any length
            let bytes = |tokens: &[Token]| tokens.iter().map(|token| token.bytes.clone()).collect::<Vec<_>>();
            assert_eq!(
                bytes(&completion.tokens),
                bytes(&expected[which]),
                "{what} with {stable_messages} stable turns"
            );
            let sampled = engine.sample(&request, 2).unwrap();
            assert_eq!(sampled[0].text, completion.text, "{what}, sampled");
            completion.usage.cached_tokens
        };
        for (number, which) in [0, 1, 0, 0, 1, 1, 0, 2, 0, 2, 1, 2].into_iter().enumerate() {
            let engine = &residents[usize::from(which == 2)];
            same(engine, which, &format!("request {number}"));
            // another prompt with the same beginning, cancelled or not
            let other = wanted(which == 1, "show");
            if number % 3 == 0 {
                other.cancel.cancel();
            }
            ask(&residents[0], &other);
            let fresh = open(Some(folder.path()), if which == 0 { None } else { Some(adapters[which - 1]) });
            let cached = same(&fresh, which, "a fresh engine");
            assert_eq!(cached > 0, stable_messages > 0, "what is on disk is used");
        }
        // a prompt that asks for an adapter is answered without one too
        let without = ask(&open(Some(folder.path()), None), &wanted(true, text));
        assert_eq!((without.tokens, without.usage.adapted), (expected[0].clone(), false));
    }
}

#[test]
fn states_with_different_adapters_are_not_mixed() {
    for architecture in ["qwen2", "qwen3"] {
        let adapter = |scale| {
            let kinds = [Kind::F32, Kind::F16];
            testing::adapter_options(&Tiny::adapter(architecture, 64, 8, kinds, scale))
        };
        adapters_are_not_mixed(Tiny::new(architecture).file().path(), [&adapter(0.3), &adapter(0.25)]);
    }
}

#[test]
fn answers_of_a_tiny_model_do_not_depend_on_history() {
    answers_do_not_depend_on_history(Tiny::new("qwen2").file().path());
}

#[test]
fn answers_of_the_real_model_do_not_depend_on_history() {
    if cfg!(debug_assertions) {
        eprintln!("skipped: the real model runs in release builds only");
        return;
    }
    if let Some(model) = testing::real_model() {
        answers_do_not_depend_on_history(&model);
    }
}

#[test]
fn an_unusable_folder_does_not_change_answers() {
    let model = Tiny::new("qwen2").file();
    let wanted = request("hi", Shape::Text { stop: vec![] });
    let first = ask(&open(model.path(), None), &wanted);
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    fs::write(&file, "not a folder").unwrap();
    let locked = parent.path().join("locked");
    fs::create_dir(&locked).unwrap();
    let mut permissions = fs::metadata(&locked).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&locked, permissions).unwrap();
    let device = Path::new("/dev/full/states");
    for folder in [&file, &file.join("below"), &locked, device] {
        for _ in 0..2 {
            let completion = ask(&open(model.path(), Some(folder)), &wanted);
            assert_eq!(completion.tokens, first.tokens, "{}", folder.display());
        }
    }
    assert_eq!(fs::read(&file).unwrap(), b"not a folder");
}

#[test]
fn a_state_beyond_the_limit_is_not_saved() {
    struct Large;
    impl Backend for Large {
        fn context(&self) -> usize {
            1
        }
        fn len(&self) -> usize {
            1
        }
        fn truncate(&mut self, _: usize) {}
        fn snapshot(&self, _: usize, to: &mut dyn Write) -> io::Result<()> {
            let piece = vec![0; 1 << 20];
            (0..=MAX_FILE_BYTES >> 20).try_for_each(|_| to.write_all(&piece))
        }
        fn feed(&mut self, _: &[u32], _: &Cancel) -> Result<bool, crate::ModelError> {
            Ok(true)
        }
        fn logits(&mut self) -> &mut [f32] {
            &mut []
        }
        fn describe(&self) -> String {
            String::new()
        }
    }
    let setup = Setup::new();
    setup.store("a").save(&[1], "", &Large);
    assert_eq!(fs::read_dir(setup.folder()).unwrap().count(), 0, "nor is what was begun");
}

/// A forward pass whose first call is cancelled after its first batch.
struct CancelledOnce {
    forward: Forward,
    calls: usize,
}

impl Backend for CancelledOnce {
    fn context(&self) -> usize {
        self.forward.context()
    }
    fn len(&self) -> usize {
        self.forward.len()
    }
    fn truncate(&mut self, len: usize) {
        self.forward.truncate(len);
    }
    fn is_resumable(&self) -> bool {
        true
    }
    fn feed(&mut self, tokens: &[u32], cancel: &Cancel) -> Result<bool, crate::ModelError> {
        self.calls += 1;
        let all = self.calls > 1;
        Ok(self.forward.feed(if all { tokens } else { &tokens[..256] }, cancel)? && all)
    }
    fn logits(&mut self) -> &mut [f32] {
        self.forward.logits()
    }
    fn describe(&self) -> String {
        String::new()
    }
}

#[test]
fn a_cancelled_stable_prefix_is_continued_by_the_next_call() {
    let gguf = testing::parse(&Tiny::new("qwen2").bytes());
    let forward = || Forward::new(&gguf, Kernels::new(Arc::new(Pool::new(2)), Tier::Portable), 512).unwrap();
    let ids = |first: u32| (first..first + 420).map(|i| i * 7 % 300).collect();
    let prompt = |first: u32, stable| Encoded { ids: ids(first), stable, adapted: false };
    let request = request("", Shape::Text { stop: vec![] });
    let logits = |sequence: &mut Sequence, prompt: &Encoded, reused: usize| {
        assert_eq!(sequence.reuse(prompt), reused);
        let is_complete = sequence.complete(prompt, &request).unwrap();
        is_complete.then(|| sequence.logits().iter().map(|x| x.to_bits()).collect::<Vec<_>>())
    };
    let (wanted, other) = (prompt(0, 400), prompt(1, 400));
    let alone = |prompt| logits(&mut Sequence::new(Box::new(forward()), None, false), prompt, 0);
    let cancelled = || {
        let mut sequence = Sequence::new(Box::new(CancelledOnce { forward: forward(), calls: 0 }), None, false);
        assert_eq!(logits(&mut sequence, &wanted, 0), None);
        sequence
    };
    let mut sequence = cancelled();
    assert_eq!(logits(&mut sequence, &wanted, 256), alone(&wanted));
    assert_eq!(
        logits(&mut sequence, &wanted, 420),
        alone(&wanted),
        "and it is one from then on, with what is behind it"
    );
    assert_eq!(logits(&mut cancelled(), &other, 0), alone(&other));
    // after a request without stable messages the tokens are no partial prefix any more
    let mut sequence = cancelled();
    assert!(logits(&mut sequence, &prompt(0, 0), 256).is_some());
    assert_eq!(logits(&mut sequence, &wanted, 0), alone(&wanted));
}
