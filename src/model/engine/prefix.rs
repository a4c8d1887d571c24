//! The state of a prompt's stable beginning, kept on disk, so that a new process need not compute it again.
//!
//! One file holds the state after one list of tokens, as one model, with an adapter or without, and one build of this program
//! computed it:
//!
//! ```text
//! head    all that the state depends on, then the tokens; compared byte by byte
//! state   what the backend's `snapshot` writes
//! sum     checksum of all before it, u64 little-endian
//! ```
//!
//! The files are a cache and nothing else: whatever is wrong with one of them, or with their folder, costs the time to
//! compute and is not worth a word. Nothing is ever computed with a state that is not whole.

use super::backend::Backend;
use super::checksum::{Sum, sum};
use super::gguf::Gguf;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Begins every file; its number changes with the layout of head, state or sum.
const MAGIC: &[u8] = b"caro prompt state 1\n";

/// The name of a file ends in this; that of one still being written, in [`PARTIAL`].
const COMPLETE: &str = "state";
const PARTIAL: &str = "partial";

/// The most files kept.
const MOST_FILES: usize = 8;

/// The most bytes that one file may have.
const MOST_BYTES: u64 = 200 << 20;

/// The most bytes kept: the state of a command and that of an agent, say.
const MOST_KEPT: u64 = 2 * MOST_BYTES;

/// After this time whoever wrote a file that is not complete is gone.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The states of one model on one machine.
pub(super) struct Store {
    folder: PathBuf,
    /// What a state depends on besides the tokens.
    identity: Vec<u8>,
}

impl Store {
    /// The store in `folder`, which need not exist, for the model in `file` as `computer` computes it: the same build of
    /// this program on other kernels, or another build, rounds differently.
    pub fn new(folder: &Path, file: &Path, gguf: &Gguf, computer: &str) -> Self {
        let stamp = |meta: fs::Metadata| (meta.len(), caro_base::files::changed(&meta).unwrap_or_default());
        let program = std::env::current_exe().and_then(fs::metadata).map(stamp);
        let model = fs::metadata(file).map(stamp);
        let version = env!("CARGO_PKG_VERSION");
        let sample = sample(gguf.bytes());
        let identity = format!(
            "caro {version} {:x?}\n{computer}\nmodel {:x?} {sample:x}\n",
            program.unwrap_or_default(),
            model.unwrap_or_default()
        );
        Self { folder: folder.into(), identity: identity.into_bytes() }
    }

    /// Puts the state after `tokens` into `backend`, as it is with the adapter of that identity, which is empty without one.
    /// False, and nothing held, if there is no sound file of it.
    pub fn load(&self, tokens: &[u32], adapter: &str, backend: &mut dyn Backend) -> bool {
        let head = self.head(tokens, adapter);
        let loaded = File::open(self.path(&head)).and_then(|file| {
            // Files that are used stay longest. Where that cannot be noted, they go a little earlier.
            let _ = file.set_modified(SystemTime::now());
            read(file, &head, tokens.len(), backend)
        });
        if loaded.is_err() {
            backend.truncate(0);
        }
        loaded.is_ok()
    }

    /// Writes the state after `tokens`, which are the first that `backend` holds, and drops the files least needed; `adapter`
    /// as in [`Self::load`].
    pub fn save(&self, tokens: &[u32], adapter: &str, backend: &dyn Backend) {
        // A folder that cannot be written is no reason to bother anybody.
        let _ = self.write(tokens, adapter, backend).and_then(|()| self.prune(SystemTime::now()));
    }

    fn write(&self, tokens: &[u32], adapter: &str, backend: &dyn Backend) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let head = self.head(tokens, adapter);
        // Complete under its own name or not there at all, whoever else writes the same; the sum stands in for a sync.
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

    /// Keeps the files used last, within the limits, and nothing abandoned.
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
            if index >= MOST_FILES || bytes > MOST_KEPT {
                // Another process may have been here first.
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

    /// Two heads may share a file: the one written last is there, and the other is computed.
    fn path(&self, head: &[u8]) -> PathBuf {
        self.folder.join(format!("{:016x}.{COMPLETE}", sum(head)))
    }
}

/// True if a state was written or used in that folder since the program and the model are what they are: what stands at the
/// beginning of most prompts need not be computed then.
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

/// Tells model files apart that were changed at the same time and have one size: their beginning, and pieces of the rest.
/// Reading them whole would take longer than what they are told apart for.
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

/// A reader or writer that sums what passes.
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
        if self.passed > MOST_BYTES { Err(ErrorKind::FileTooLarge.into()) } else { Ok(()) }
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
