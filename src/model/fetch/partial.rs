//! An incomplete download: `NAME.partial`, with its marks in `NAME.partial.json` beside it.
//!
//! The file is always a *prefix* of the complete one, whichever source wrote it, so that one source can resume where
//! another stopped. Every mark has the SHA-256 of all bytes before it: after a crash, a power cut or a disk error
//! only the verified prefix is kept, and no byte is hashed twice while it is downloaded.

use super::cx::{Cx, hex};
use super::error::{FetchError, io_error};
use caro_base::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Most bytes of the file with the marks.
const MAX_STATE_BYTES: u64 = 4 << 20;

/// The stored state of a partial file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// The identity of the complete file: its SHA-256, or the version that the source reports.
    identity: String,
    /// The marks, in order.
    marks: Vec<Mark>,
}

/// A prefix that was written completely: its length in bytes and its SHA-256.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    end: u64,
    sha256: String,
}

/// An incomplete download, open for writing.
#[derive(Debug)]
pub(super) struct Partial {
    path: PathBuf,
    state_path: PathBuf,
    state: State,
    file: File,
    len: u64,
    /// The hash of the bytes up to the last mark.
    hash_at_mark: Sha256,
    /// The hash of all bytes.
    hash: Sha256,
}

impl Partial {
    /// Returns the paths of the partial of `target` and of its marks.
    pub(super) fn paths(target: &Path) -> [PathBuf; 2] {
        let mut name = target.as_os_str().to_os_string();
        name.push(".partial");
        let path = PathBuf::from(&name);
        name.push(".json");
        [path, PathBuf::from(name)]
    }

    /// Opens the partial of `target`. Keeps its verified prefix if it has the same `identity`.
    pub(super) fn open(target: &Path, identity: &str, cx: &Cx<'_>) -> Result<Self, FetchError> {
        let [path, state_path] = Self::paths(target);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|e| io_error("create", &path, e))?;
        let state = files::read(&state_path, MAX_STATE_BYTES).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let state: State = state.unwrap_or_default();
        let mut partial = Self {
            path,
            state_path,
            state: State { identity: identity.into(), marks: Vec::new() },
            file,
            len: 0,
            hash_at_mark: Sha256::new(),
            hash: Sha256::new(),
        };
        if state.identity == identity {
            partial.restore(state.marks, cx)?;
        }
        partial.rollback()?;
        Ok(partial)
    }

    /// Returns the number of bytes written so far.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the identity of the complete file.
    pub(super) fn identity(&self) -> &str {
        &self.state.identity
    }

    /// Appends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        self.file.write_all(bytes).map_err(|e| io_error("write", &self.path, e))?;
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Adds a mark at the end of the bytes written so far, and saves it.
    pub(super) fn mark(&mut self) -> Result<(), FetchError> {
        if self.len == self.end_of_marks() {
            return Ok(());
        }
        self.state.marks.push(Mark { end: self.len, sha256: self.sum() });
        self.hash_at_mark = self.hash.clone();
        let text = serde_json::to_vec(&self.state).map_err(io::Error::from);
        text.and_then(|t| files::replace(&self.state_path, &t, files::Access::Umask))
            .map_err(|e| io_error("write", &self.state_path, e))
    }

    /// Drops the bytes after the last mark.
    pub(super) fn rollback(&mut self) -> Result<(), FetchError> {
        self.len = self.end_of_marks();
        self.hash = self.hash_at_mark.clone();
        let cut = self.file.set_len(self.len).and_then(|()| self.file.seek(SeekFrom::Start(self.len)));
        cut.map(drop).map_err(|e| io_error("write", &self.path, e))
    }

    /// Drops all bytes, and sets another identity.
    pub(super) fn restart(&mut self, identity: &str) -> Result<(), FetchError> {
        self.state = State { identity: identity.into(), marks: Vec::new() };
        self.hash_at_mark = Sha256::new();
        self.rollback()
    }

    /// Returns the SHA-256 of all bytes written.
    pub(super) fn sum(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    /// Syncs the file to the disk and renames it to `target`.
    pub(super) fn finish(self, target: &Path) -> Result<(), FetchError> {
        self.file.sync_all().map_err(|e| io_error("write", &self.path, e))?;
        // Windows cannot rename an open file
        let Self { path, state_path, file, .. } = self;
        drop(file);
        std::fs::rename(&path, target).map_err(|e| io_error("rename", &path, e))?;
        let _ = std::fs::remove_file(state_path);
        #[cfg(unix)]
        if let Some(folder) = target.parent().and_then(|p| File::open(p).ok()) {
            // best effort: some file systems cannot sync a folder
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Deletes the partial and its marks.
    pub(super) fn discard(self) {
        drop(self.file);
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(&self.state_path);
    }

    fn end_of_marks(&self) -> u64 {
        self.state.marks.last().map_or(0, |m| m.end)
    }

    /// Reads the file and keeps the marks before the first one whose SHA-256 does not match.
    fn restore(&mut self, marks: Vec<Mark>, cx: &Cx<'_>) -> Result<(), FetchError> {
        let Some(last) = marks.last() else { return Ok(()) };
        cx.progress.start("checking what has come before", Some(last.end));
        let mut buffer = vec![0; 1 << 20];
        let mut at = 0;
        'marks: for mark in marks {
            let mut hash = self.hash_at_mark.clone();
            while at < mark.end {
                if cx.cancel.is_cancelled() {
                    return Err(FetchError::Cancelled);
                }
                let want = buffer.len().min(usize::try_from(mark.end - at).unwrap_or(usize::MAX));
                match self.file.read(&mut buffer[..want]) {
                    Ok(0) => break 'marks,
                    Ok(n) => {
                        hash.update(&buffer[..n]);
                        at += n as u64;
                        cx.progress.advance(at);
                    }
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break 'marks,
                }
            }
            if at != mark.end || hex(&hash.clone().finalize()) != mark.sha256 {
                break;
            }
            self.hash_at_mark = hash;
            self.state.marks.push(mark);
        }
        cx.progress.finish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cancel;
    use crate::fetch::Silent;

    struct Place {
        folder: tempfile::TempDir,
        cancel: Cancel,
    }

    impl Place {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), cancel: Cancel::new() }
        }

        fn target(&self) -> PathBuf {
            self.folder.path().join("x.bin")
        }

        fn open(&self, identity: &str) -> Partial {
            Partial::open(&self.target(), identity, &Cx { progress: &Silent, cancel: &self.cancel }).unwrap()
        }
    }

    #[test]
    fn a_partial_resumes_at_the_last_mark_and_hashes_all_bytes() {
        let place = Place::new();
        let mut first = place.open("a");
        first.write(b"hello ").unwrap();
        first.mark().unwrap();
        first.write(b"lost in the kill").unwrap();
        drop(first);
        let mut second = place.open("a");
        assert_eq!(second.len(), 6);
        second.write(b"world").unwrap();
        assert_eq!(second.sum(), hex(&Sha256::digest(b"hello world")));
        second.finish(&place.target()).unwrap();
        assert_eq!(std::fs::read(place.target()).unwrap(), b"hello world");
        assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn bytes_after_the_last_valid_mark_are_dropped() {
        for damage in [Some(7), None] {
            let place = Place::new();
            let mut first = place.open("a");
            for part in [&b"one "[..], b"two ", b"three"] {
                first.write(part).unwrap();
                first.mark().unwrap();
            }
            drop(first);
            let [path, _] = Partial::paths(&place.target());
            match damage {
                Some(at) => {
                    let mut bytes = std::fs::read(&path).unwrap();
                    bytes[at] ^= 1;
                    std::fs::write(&path, bytes).unwrap();
                }
                None => OpenOptions::new().write(true).open(&path).unwrap().set_len(6).unwrap(),
            }
            let second = place.open("a");
            assert_eq!(second.len(), 4);
            assert_eq!(second.sum(), hex(&Sha256::digest(b"one ")));
        }
    }

    #[test]
    fn another_identity_or_an_invalid_state_starts_over() {
        let place = Place::new();
        let mut first = place.open("a");
        first.write(b"abc").unwrap();
        first.mark().unwrap();
        drop(first);
        assert_eq!(place.open("b").len(), 0);

        let place = Place::new();
        let [path, state] = Partial::paths(&place.target());
        std::fs::write(path, b"garbage").unwrap();
        std::fs::write(state, b"{\"identity\":\"a\",\"marks\":[{\"end\":99999999999,\"sha256\":\"x\"}]}").unwrap();
        assert_eq!(place.open("a").len(), 0);
    }

    #[test]
    fn bytes_written_after_a_mark_can_be_rolled_back() {
        let place = Place::new();
        let mut partial = place.open("a");
        partial.write(b"good").unwrap();
        partial.mark().unwrap();
        partial.write(b"bad").unwrap();
        partial.rollback().unwrap();
        partial.write(b"!").unwrap();
        assert_eq!(partial.sum(), hex(&Sha256::digest(b"good!")));
    }
}
