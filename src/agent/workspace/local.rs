//! Files on this machine's disk. Not the crate's own store for disks: that follows links out of its folder, knows no lock,
//! hides files whose names end in `#1`, and does not see to it that what it renames is on the disk.

use super::storage::{Edit, Item, Storage};
use caro_base::files;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// How a file is named until it is whole.
const NEW: &str = ".new-";

/// The most bytes that are read of a file.
const LARGEST: u64 = 256 << 20;

/// A folder.
#[derive(Debug)]
pub struct Local {
    root: PathBuf,
}

impl Local {
    /// The folder, which need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Keeps every other writer out, of this process and of others, until it is dropped; the system lets go of it when a
    /// process ends, however it ends. Each writer takes it: an append reads before it writes.
    fn alone(&self) -> io::Result<File> {
        fs::create_dir_all(&self.root)?;
        let lock = File::options().create(true).append(true).open(self.root.join(".lock"))?;
        match lock.lock() {
            // a file system without locks has nobody else on it but by accident
            Err(e) if e.kind() != io::ErrorKind::Unsupported => Err(e),
            _ => Ok(lock),
        }
    }
}

/// What a directory entry or a file is; a link counts as what it leads to.
fn item(meta: &fs::Metadata) -> Item {
    Item { folder: meta.is_dir(), bytes: meta.len(), modified: meta.modified().ok() }
}

fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

impl Storage for Local {
    fn look(&self, key: &Path) -> io::Result<Option<Item>> {
        Ok(found(fs::metadata(self.root.join(key)))?.as_ref().map(item))
    }

    fn read(&self, key: &Path) -> io::Result<Vec<u8>> {
        files::read(&self.root.join(key), LARGEST)
    }

    /// Where nobody looks for files first, then in its place.
    fn put(&self, key: &Path, content: &[u8]) -> io::Result<()> {
        let file = self.root.join(key);
        fs::create_dir_all(file.parent().unwrap_or(&self.root))?;
        let mut new = tempfile::Builder::new().prefix(NEW).tempfile_in(&self.root)?;
        new.write_all(content)?;
        new.as_file().sync_all()?;
        new.persist(file).map_err(|e| e.error)?;
        Ok(())
    }

    fn change(&self, key: &Path, edit: &mut Edit<'_>) -> io::Result<()> {
        let _alone = self.alone()?;
        let before = found(self.read(key))?;
        match edit(before.as_deref()) {
            Some(new) => self.put(key, &new),
            None => Ok(()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _alone = self.alone()?;
        let target = self.root.join(to);
        if target.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::create_dir_all(target.parent().unwrap_or(&self.root))?;
        fs::rename(self.root.join(from), target)
    }

    fn remove(&self, key: &Path) -> io::Result<()> {
        if key.as_os_str().is_empty() {
            // the lock goes with it
            return fs::remove_dir_all(&self.root);
        }
        let _alone = self.alone()?;
        let file = self.root.join(key);
        if file.is_dir() { fs::remove_dir_all(file) } else { fs::remove_file(file) }
    }

    fn list(&self, key: &Path) -> io::Result<Vec<(String, Item)>> {
        let entry = |e: fs::DirEntry| {
            // what is gone by now is not there; a link that leads nowhere is a file of no size
            let meta = fs::metadata(e.path()).or_else(|_| e.metadata()).ok()?;
            Some((e.file_name().to_string_lossy().into_owned(), item(&meta)))
        };
        Ok(fs::read_dir(self.root.join(key))?.flatten().filter_map(entry).collect())
    }

    /// A link may lead anywhere: what exists of the path must still be below the root.
    fn leads_out(&self, key: &Path) -> bool {
        let file = self.root.join(key);
        // in one look: another process may take it away between two
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
        let is_new = |e: &fs::DirEntry| e.file_name().to_string_lossy().starts_with(NEW);
        for half in fs::read_dir(&self.root).into_iter().flatten().flatten().filter(is_new) {
            if half.metadata().and_then(|meta| meta.modified()).is_ok_and(|time| time < before) {
                // it is tried again by the next sweep
                let _ = fs::remove_file(half.path());
            }
        }
    }
}
