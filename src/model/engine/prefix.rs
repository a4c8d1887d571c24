//! Caches the state of prompts' stable prefixes on disk, so that a new process need not compute it again.
//!
//! One file has the state after one list of tokens, as computed by one model, with or without one adapter, and one
//! build of this program:
//!
//! ```text
//! head    all that the state depends on, then the tokens; compared byte by byte
//! state   what the backend's `snapshot` writes
//! sum     checksum of all before it, u64 little-endian
//! ```
//!
//! The files are only a cache: an error of a file or the folder is ignored, and the state is computed again. An
//! incomplete state is never used.

use super::backend::Backend;
use super::checksum::{Sum, sum};
use super::gguf::Gguf;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The beginning of every file; its number changes with the layout of head, state or sum.
const MAGIC: &[u8] = b"caro prompt state 1\n";

/// The extension of a complete file.
const COMPLETE: &str = "state";
/// The extension of a file that is being written.
const PARTIAL: &str = "partial";

/// Most files of the cache.
const MAX_FILES: usize = 8;

/// Most bytes of one file.
const MAX_FILE_BYTES: u64 = 200 << 20;

/// Most bytes of the cache: enough for the state of a command and that of an agent.
const MAX_TOTAL_BYTES: u64 = 2 * MAX_FILE_BYTES;

/// Age at which a partial file counts as abandoned by its writer.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The cached states of one model on one machine.
pub(super) struct Store {
    folder: PathBuf,
    /// All that a state depends on besides the tokens and the adapter.
    identity: Vec<u8>,
}

impl Store {
    /// Returns the store in `folder`, which need not exist, for the model in `file` and the backend that `backend`
    /// describes: other kernels, and another build of this program, round differently.
    pub fn new(folder: &Path, file: &Path, gguf: &Gguf, backend: &str) -> Self {
        let stamp = |meta: fs::Metadata| (meta.len(), caro_base::files::modified_nanos(&meta).unwrap_or_default());
        let program = std::env::current_exe().and_then(fs::metadata).map(stamp);
        let model = fs::metadata(file).map(stamp);
        let version = env!("CARGO_PKG_VERSION");
        let sample = sample(gguf.bytes());
        let identity = format!(
            "caro {version} {:x?}\n{backend}\nmodel {:x?} {sample:x}\n",
            program.unwrap_or_default(),
            model.unwrap_or_default()
        );
        Self { folder: folder.into(), identity: identity.into_bytes() }
    }

    /// Restores the state after `tokens`, with the adapter of this identity (empty without one), in `backend`.
    /// Returns false, with `backend` empty, if there is no valid file.
    pub fn load(&self, tokens: &[u32], adapter: &str, backend: &mut dyn Backend) -> bool {
        let head = self.head(tokens, adapter);
        let loaded = File::open(self.path(&head)).and_then(|file| {
            // the least recently used files are deleted first; it does not matter if this fails
            let _ = file.set_modified(SystemTime::now());
            read(file, &head, tokens.len(), backend)
        });
        if loaded.is_err() {
            backend.truncate(0);
        }
        loaded.is_ok()
    }

    /// Writes the state after `tokens`, which are the first tokens of `backend`, and deletes the least recently used
    /// files; `adapter` as in [`Self::load`].
    pub fn save(&self, tokens: &[u32], adapter: &str, backend: &dyn Backend) {
        // errors are ignored: it is only a cache
        let _ = self.write(tokens, adapter, backend).and_then(|()| self.prune(SystemTime::now()));
    }

    fn write(&self, tokens: &[u32], adapter: &str, backend: &dyn Backend) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let head = self.head(tokens, adapter);
        // renamed once complete, so that concurrent writers do not mix; the checksum makes a sync unnecessary
        let file = tempfile::Builder::new().suffix(&format!(".{PARTIAL}")).tempfile_in(&self.folder)?;
        let mut summed = Summed::new(BufWriter::with_capacity(1 << 18, file));
        summed.write_all(&head)?;
        backend.snapshot(tokens.len(), &mut summed)?;
        let sum = summed.sum.value();
        let mut out = summed.inner;
        out.write_all(&sum.to_le_bytes())?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.persist(self.path(&head))?;
        Ok(())
    }

    /// Deletes the least recently used files beyond the limits, and abandoned partial files.
    fn prune(&self, now: SystemTime) -> io::Result<()> {
        let mut complete = Vec::new();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let (path, Ok(meta)) = (entry.path(), entry.metadata()) else { continue };
            let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some(COMPLETE) => complete.push((used, meta.len(), path)),
                Some(PARTIAL) if now.duration_since(used).is_ok_and(|age| age > ABANDONED) => {
                    drop(fs::remove_file(path))
                }
                _ => {}
            }
        }
        complete.sort_by(|a, b| b.cmp(a));
        let mut bytes = 0;
        for (index, (_, len, path)) in complete.iter().enumerate() {
            bytes += len;
            if index >= MAX_FILES || bytes > MAX_TOTAL_BYTES {
                // another process may have deleted it already
                let _ = fs::remove_file(path);
            }
        }
        Ok(())
    }

    fn head(&self, tokens: &[u32], adapter: &str) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&self.identity);
        head.extend_from_slice(adapter.as_bytes());
        head.extend((tokens.len() as u64).to_le_bytes());
        head.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
        head
    }

    /// Returns the path for a head. Two heads with the same hash share a file: the last one written wins.
    fn path(&self, head: &[u8]) -> PathBuf {
        self.folder.join(format!("{:016x}.{COMPLETE}", sum(head)))
    }
}

/// True if a state in the folder was written or used since the program and the model last changed, so that the stable
/// prefix of most prompts is cached.
pub fn is_kept(folder: &Path, program: &Path, model: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let since = time(program).max(time(model));
    let states = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    states.filter(|path| path.extension().is_some_and(|end| end == COMPLETE)).any(|path| time(&path) >= since)
}

/// Reads a file whose head must be `head` into `backend`.
fn read(file: File, head: &[u8], len: usize, backend: &mut dyn Backend) -> io::Result<()> {
    let damaged = || io::Error::from(ErrorKind::InvalidData);
    let mut summed = Summed::new(BufReader::new(file));
    let mut found = vec![0; head.len()];
    summed.read_exact(&mut found)?;
    if found != head {
        return Err(damaged());
    }
    backend.restore(len, &mut summed)?;
    let mut end = Vec::new();
    summed.inner.take(9).read_to_end(&mut end)?;
    if end == summed.sum.value().to_le_bytes() { Ok(()) } else { Err(damaged()) }
}

/// Returns a checksum of the file's beginning and samples of the rest, which tells apart model files of the same size
/// and modification time. Reading the whole file would take longer than computing the state.
fn sample(bytes: &[u8]) -> u64 {
    const BEGINNING: usize = 1 << 16;
    const PIECES: usize = 64;
    const PIECE: usize = 1 << 10;
    let (beginning, rest) = bytes.split_at(bytes.len().min(BEGINNING));
    let mut sum = Sum::new();
    sum.add(beginning);
    for piece in rest.chunks((rest.len() / PIECES).max(PIECE)) {
        sum.add(&piece[..piece.len().min(PIECE)]);
    }
    sum.value()
}

/// A reader or writer that computes a checksum of the bytes that pass through, and fails beyond [`MAX_FILE_BYTES`].
struct Summed<T> {
    inner: T,
    sum: Sum,
    passed: u64,
}

impl<T> Summed<T> {
    fn new(inner: T) -> Self {
        Self { inner, sum: Sum::new(), passed: 0 }
    }

    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.add(bytes);
        self.passed += bytes.len() as u64;
        if self.passed > MAX_FILE_BYTES { Err(ErrorKind::FileTooLarge.into()) } else { Ok(()) }
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.pass(&buffer[..count])?;
        Ok(count)
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.pass(&buffer[..count])?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
#[path = "prefix_tests.rs"]
mod tests;
