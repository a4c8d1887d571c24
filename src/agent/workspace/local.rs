//! Stores files on the local disk. The crate's own store for disks is not used: it follows links out of its folder,
//! has no lock, hides files whose names end in `#1`, and does not sync renamed files to the disk.

use super::storage::{Edit, Item, Storage};
use caro_base::files;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The prefix of a file's name until it is complete.
const PARTIAL_PREFIX: &str = ".new-";

/// Most bytes read of a file.
const MAX_BYTES: u64 = 256 << 20;

/// A local folder.
#[derive(Debug)]
pub struct Local {
    root: PathBuf,
}

impl Local {
    /// Creates the storage of a folder, which need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Locks out every other writer, of this process and of others, until the result is dropped; the system releases
    /// the lock when a process ends. Every writer takes it, since an append reads before it writes.
    fn lock(&self) -> io::Result<File> {
        fs::create_dir_all(&self.root)?;
        let lock = File::options().create(true).append(true).open(self.root.join(".lock"))?;
        match lock.lock() {
            // a file system without locks is hardly ever shared by several processes
            Err(e) if e.kind() != io::ErrorKind::Unsupported => Err(e),
            _ => Ok(lock),
        }
    }
}

/// Converts metadata; that of a link is its target's.
fn item(meta: &fs::Metadata) -> Item {
    Item { folder: meta.is_dir(), bytes: meta.len(), modified: meta.modified().ok() }
}

/// Returns `None` if the file does not exist.
fn optional<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

impl Storage for Local {
    fn metadata(&self, key: &Path) -> io::Result<Option<Item>> {
        Ok(optional(fs::metadata(self.root.join(key)))?.as_ref().map(item))
    }

    fn read(&self, key: &Path) -> io::Result<Vec<u8>> {
        files::read(&self.root.join(key), MAX_BYTES)
    }

    /// Writes a temporary file first and then renames it.
    fn put(&self, key: &Path, content: &[u8]) -> io::Result<()> {
        let file = self.root.join(key);
        fs::create_dir_all(file.parent().unwrap_or(&self.root))?;
        let mut new = tempfile::Builder::new().prefix(PARTIAL_PREFIX).tempfile_in(&self.root)?;
        new.write_all(content)?;
        new.as_file().sync_all()?;
        new.persist(file).map_err(|e| e.error)?;
        Ok(())
    }

    fn change(&self, key: &Path, edit: &mut Edit<'_>) -> io::Result<()> {
        let _lock = self.lock()?;
        let before = optional(self.read(key))?;
        match edit(before.as_deref()) {
            Some(new) => self.put(key, &new),
            None => Ok(()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _lock = self.lock()?;
        let target = self.root.join(to);
        if target.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::create_dir_all(target.parent().unwrap_or(&self.root))?;
        fs::rename(self.root.join(from), target)
    }

    fn remove(&self, key: &Path) -> io::Result<()> {
        if key.as_os_str().is_empty() {
            // this also removes the lock
            return fs::remove_dir_all(&self.root);
        }
        let _lock = self.lock()?;
        let file = self.root.join(key);
        if file.is_dir() { fs::remove_dir_all(file) } else { fs::remove_file(file) }
    }

    fn list(&self, key: &Path) -> io::Result<Vec<(String, Item)>> {
        let entry = |e: fs::DirEntry| {
            // a deleted entry is skipped; a broken link counts as a file
            let meta = fs::metadata(e.path()).or_else(|_| e.metadata()).ok()?;
            Some((e.file_name().to_string_lossy().into_owned(), item(&meta)))
        };
        Ok(fs::read_dir(self.root.join(key))?.flatten().filter_map(entry).collect())
    }

    /// True if the existing part of the path, with links resolved, is not below the root.
    fn leads_out(&self, key: &Path) -> bool {
        let file = self.root.join(key);
        // no separate check for existence: another process may delete the file in between
        let existing = file.ancestors().take_while(|p| p.starts_with(&self.root)).find_map(|p| p.canonicalize().ok());
        let (Some(real), Ok(root)) = (existing, self.root.canonicalize()) else { return false };
        !real.starts_with(root)
    }

    fn address(&self, key: &Path) -> PathBuf {
        self.root.join(key)
    }

    fn is_local(&self) -> bool {
        true
    }

    fn below(&self, name: &str) -> Arc<dyn Storage> {
        Arc::new(Self::new(self.root.join(name)))
    }

    fn sweep(&self, before: SystemTime) {
        let is_new = |e: &fs::DirEntry| e.file_name().to_string_lossy().starts_with(PARTIAL_PREFIX);
        for half in fs::read_dir(&self.root).into_iter().flatten().flatten().filter(is_new) {
            if half.metadata().and_then(|meta| meta.modified()).is_ok_and(|time| time < before) {
                // the next sweep tries again
                let _ = fs::remove_file(half.path());
            }
        }
    }
}
