//! The folder of all records, private to its owner, and swept of old, abandoned and surplus ones.

use super::journal::{Entry, State};
use super::{Limits, UndoError};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, DirEntryExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The subfolder of an entry that holds the saved files, by number.
pub(super) const FILES: &str = "files";
/// The name prefix of a folder that is being deleted.
const DELETED_PREFIX: &str = "gone-";
/// The lock file of an entry.
const LOCK: &str = "lock";

/// The folder of all records.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    limits: Limits,
}

impl Store {
    /// Creates the store of a folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>, limits: Limits) -> Self {
        Self { folder: folder.into(), limits }
    }

    /// Returns its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns its limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// True if the file system of the store can clone files, so that copies of its own files need no space.
    pub fn clones(&self) -> bool {
        #[cfg(target_os = "linux")]
        {
            /// btrfs, XFS, bcachefs, OCFS2. Source: linux/magic.h.
            const CLONE: [i128; 4] = [0x9123_683e, 0x5846_5342, 0xca45_1a4e, 0x7461_636f];
            let existing = self.folder.ancestors().find(|folder| folder.is_dir());
            let disk = existing.and_then(|folder| rustix::fs::statfs(folder).ok());
            disk.is_some_and(|disk| CLONE.contains(&i128::from(disk.f_type)))
        }
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Creates the folder if it does not exist, private to its owner.
    pub(super) fn ready(&self) -> Result<(), UndoError> {
        let failed = |e| UndoError::writing(&self.folder, e);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let mode = fs::metadata(&self.folder).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(&self.folder, Permissions::from_mode(0o700)).map_err(failed)?;
        }
        Ok(())
    }

    /// Returns the folder of an entry.
    pub(super) fn place(&self, id: u64) -> PathBuf {
        self.folder.join(id.to_string())
    }

    /// Creates a folder with the next number, locked by this process.
    pub(super) fn reserve(&self) -> Result<(u64, EntryLock), UndoError> {
        self.ready()?;
        let mut id = self.numbers()?.last().map_or(1, |last| last + 1);
        loop {
            let place = self.place(id);
            match DirBuilder::new().mode(0o700).create(&place) {
                Ok(()) => {
                    let lock = EntryLock::acquire(&place)?.ok_or(UndoError::Busy(id))?;
                    return Ok((id, lock));
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => id += 1,
                Err(e) => return Err(UndoError::writing(&place, e)),
            }
        }
    }

    /// Returns the numbers of all entries, oldest first.
    fn numbers(&self) -> Result<Vec<u64>, UndoError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(UndoError::writing(&self.folder, e)),
        };
        let mut numbers: Vec<u64> =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns the entry of that number.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn get(&self, id: u64) -> Result<Entry, UndoError> {
        if !self.place(id).is_dir() {
            return Err(UndoError::Unknown(id));
        }
        Entry::read(&self.place(id))
    }

    /// Returns every readable entry whose command may have run, oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all(&self) -> Result<Vec<Entry>, UndoError> {
        let entries = self.numbers()?.into_iter().filter_map(|id| Entry::read(&self.place(id)).ok());
        Ok(entries.filter(|entry| entry.state != State::Planned).collect())
    }

    /// Returns the commands that are not undone, latest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn undoable(&self) -> Result<Vec<Entry>, UndoError> {
        let is_open = |entry: &Entry| entry.state.can_be_undone() && entry.undoes.is_none();
        Ok(self.all()?.into_iter().rev().filter(is_open).collect())
    }

    /// Returns the latest command that is not undone.
    ///
    /// # Errors
    /// If there is none.
    pub fn latest(&self) -> Result<Entry, UndoError> {
        self.undoable()?.into_iter().next().ok_or(UndoError::Nothing)
    }

    /// Counts the hard links in this store by inode number.
    pub(super) fn names(&self) -> HashMap<u64, u64> {
        let mut names = HashMap::new();
        for id in self.numbers().unwrap_or_default() {
            for file in fs::read_dir(self.place(id).join(FILES)).into_iter().flatten().flatten() {
                *names.entry(file.ino()).or_default() += 1;
            }
        }
        names
    }

    /// Removes an entry with its saved files.
    ///
    /// # Errors
    /// If it does not exist, or another process uses it.
    pub fn remove(&self, id: u64) -> Result<(), UndoError> {
        if !self.place(id).is_dir() {
            return Err(UndoError::Unknown(id));
        }
        let lock = EntryLock::acquire(&self.place(id))?.ok_or(UndoError::Busy(id))?;
        self.delete(id, &lock)
    }

    /// Removes an entry unless another process uses it, without waiting.
    fn remove_idle(&self, id: u64) -> Result<(), UndoError> {
        let lock = EntryLock::try_acquire(&self.place(id))?.ok_or(UndoError::Busy(id))?;
        self.delete(id, &lock)
    }

    /// Deletes the folder of a locked entry.
    fn delete(&self, id: u64, _: &EntryLock) -> Result<(), UndoError> {
        let place = self.place(id);
        let failed = |e| UndoError::writing(&place, e);
        // if this is interrupted, the next sweep finds the rest by its name
        let gone = self.folder.join(format!("{DELETED_PREFIX}{id}"));
        fs::rename(&place, &gone).map_err(failed)?;
        fs::remove_dir_all(&gone).map_err(failed)
    }

    /// Removes entries that never ran or are too old, and then the oldest ones until the total, plus `coming` bytes,
    /// is within the limit. Entries that cannot be removed stay. Returns the numbers of removed entries that could
    /// have been undone.
    pub fn sweep(&self, coming: u64) -> Vec<u64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(DELETED_PREFIX) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let mut alive = Vec::new();
        let mut swept = Vec::new();
        for id in self.numbers().unwrap_or_default() {
            match Entry::read(&self.place(id)) {
                // a damaged record may belong to the only copy of a file: only the user removes it
                Err(_) if self.place(id).join(super::journal::FILE).exists() => {}
                Err(_) => drop(self.remove_idle(id)),
                Ok(entry) if entry.state == State::Planned => drop(self.remove_idle(id)),
                Ok(entry) if now.saturating_sub(entry.began) > self.limits.age.as_secs() => {
                    if self.remove_idle(id).is_ok() && entry.state.can_be_undone() {
                        swept.push(id);
                    }
                }
                Ok(entry) => alive.push(entry),
            }
        }
        let mut total: u64 = alive.iter().map(|entry| entry.bytes).sum();
        for entry in alive.iter().filter(|entry| entry.bytes > 0) {
            if total.saturating_add(coming) <= self.limits.total {
                break;
            }
            if self.remove_idle(entry.id).is_ok() {
                total = total.saturating_sub(entry.bytes);
                swept.push(entry.id);
            }
        }
        swept
    }
}

/// The lock of an entry. It is released when this is dropped, and when the process ends in any way.
#[derive(Debug)]
pub(super) struct EntryLock {
    file: File,
}

impl EntryLock {
    /// Locks an entry; `None` if another process has locked it.
    pub(super) fn acquire(place: &Path) -> Result<Option<Self>, UndoError> {
        /// Tried several times, because a process that is being started shares its parent's open files for a moment.
        const MAX_TRIES: u32 = 10;
        const INTERVAL: Duration = Duration::from_millis(10);
        for _ in 0..MAX_TRIES {
            if let Some(lock) = Self::try_acquire(place)? {
                return Ok(Some(lock));
            }
            std::thread::sleep(INTERVAL);
        }
        Ok(None)
    }

    /// Locks an entry without waiting.
    fn try_acquire(place: &Path) -> Result<Option<Self>, UndoError> {
        let path = place.join(LOCK);
        let failed = |e| UndoError::writing(&path, e);
        let file = File::options().create(true).write(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(e)) => Err(failed(e)),
        }
    }
}

impl Drop for EntryLock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}
