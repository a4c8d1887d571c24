//! The folder of all records: made for its owner alone, swept of what is old, abandoned or too much.

use super::journal::{Entry, State};
use super::{Limits, UndoError};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, DirEntryExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The folder of an entry that holds files, by number.
pub(super) const FILES: &str = "files";
/// A folder that is on its way out begins so.
const GONE: &str = "gone-";
/// The file that whoever works at an entry holds.
const LOCK: &str = "lock";

/// The folder of all records.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    limits: Limits,
}

impl Store {
    /// The store in that folder, which need not be there yet.
    pub fn new(folder: impl Into<PathBuf>, limits: Limits) -> Self {
        Self { folder: folder.into(), limits }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How much it holds, and for how long.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// True if the file system of the store clones files, so that copies of what lies on it take no room.
    pub fn clones(&self) -> bool {
        #[cfg(target_os = "linux")]
        {
            /// btrfs, XFS, bcachefs, OCFS2. Source: linux/magic.h.
            const CLONE: [i128; 4] = [0x9123_683e, 0x5846_5342, 0xca45_1a4e, 0x7461_636f];
            let there = self.folder.ancestors().find(|folder| folder.is_dir());
            let disk = there.and_then(|folder| rustix::fs::statfs(folder).ok());
            disk.is_some_and(|disk| CLONE.contains(&i128::from(disk.f_type)))
        }
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Makes the folder where it is not, for its owner alone.
    pub(super) fn ready(&self) -> Result<(), UndoError> {
        let failed = |e| UndoError::writing(&self.folder, e);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let mode = fs::metadata(&self.folder).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(&self.folder, Permissions::from_mode(0o700)).map_err(failed)?;
        }
        Ok(())
    }

    /// Where an entry is.
    pub(super) fn place(&self, id: u64) -> PathBuf {
        self.folder.join(id.to_string())
    }

    /// A new folder with the next number, held by this process.
    pub(super) fn reserve(&self) -> Result<(u64, Hold), UndoError> {
        self.ready()?;
        let mut id = self.numbers()?.last().map_or(1, |last| last + 1);
        loop {
            let place = self.place(id);
            match DirBuilder::new().mode(0o700).create(&place) {
                Ok(()) => {
                    let hold = Hold::take(&place)?.ok_or(UndoError::Busy(id))?;
                    return Ok((id, hold));
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => id += 1,
                Err(e) => return Err(UndoError::writing(&place, e)),
            }
        }
    }

    /// The numbers of all folders, the oldest first.
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

    /// The entry of that number.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn get(&self, id: u64) -> Result<Entry, UndoError> {
        if !self.place(id).is_dir() {
            return Err(UndoError::Unknown(id));
        }
        Entry::read(&self.place(id))
    }

    /// Every entry that can be read, the oldest first, without those whose command never ran.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all(&self) -> Result<Vec<Entry>, UndoError> {
        let entries = self.numbers()?.into_iter().filter_map(|id| Entry::read(&self.place(id)).ok());
        Ok(entries.filter(|entry| entry.state != State::Planned).collect())
    }

    /// The latest command that is not undone.
    ///
    /// # Errors
    /// If there is none.
    pub fn latest(&self) -> Result<Entry, UndoError> {
        let all = self.all()?;
        all.into_iter()
            .rev()
            .find(|entry| entry.state.can_be_undone() && entry.undoes.is_none())
            .ok_or(UndoError::Nothing)
    }

    /// How many names files have in here, by their number: other names of files elsewhere, as far as they are.
    pub(super) fn names(&self) -> HashMap<u64, u64> {
        let mut names = HashMap::new();
        for id in self.numbers().unwrap_or_default() {
            for file in fs::read_dir(self.place(id).join(FILES)).into_iter().flatten().flatten() {
                *names.entry(file.ino()).or_default() += 1;
            }
        }
        names
    }

    /// Removes an entry with all that it keeps.
    ///
    /// # Errors
    /// If there is none, or a process is at it.
    pub fn remove(&self, id: u64) -> Result<(), UndoError> {
        if !self.place(id).is_dir() {
            return Err(UndoError::Unknown(id));
        }
        let hold = Hold::take(&self.place(id))?.ok_or(UndoError::Busy(id))?;
        self.take_away(id, &hold)
    }

    /// The same in passing: what a process is at stays, and is not waited for.
    fn remove_idle(&self, id: u64) -> Result<(), UndoError> {
        let hold = Hold::once(&self.place(id))?.ok_or(UndoError::Busy(id))?;
        self.take_away(id, &hold)
    }

    fn take_away(&self, id: u64, _: &Hold) -> Result<(), UndoError> {
        let place = self.place(id);
        let failed = |e| UndoError::writing(&place, e);
        // cut off, the rest of it is known by its name
        let gone = self.folder.join(format!("{GONE}{id}"));
        fs::rename(&place, &gone).map_err(failed)?;
        fs::remove_dir_all(&gone).map_err(failed)
    }

    /// Removes what never ran, what is older than it may be, and of the rest the oldest until there is no more than may be
    /// held, `coming` bytes more counted. What cannot be removed stays. Returns the numbers of those that could have been
    /// undone.
    pub fn sweep(&self, coming: u64) -> Vec<u64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(GONE) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let mut alive = Vec::new();
        let mut swept = Vec::new();
        for id in self.numbers().unwrap_or_default() {
            match Entry::read(&self.place(id)) {
                // a damaged record may be all that is left of something: it goes only when it is told to
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
        let mut held: u64 = alive.iter().map(|entry| entry.bytes).sum();
        for entry in alive.iter().filter(|entry| entry.bytes > 0) {
            if held.saturating_add(coming) <= self.limits.total {
                break;
            }
            if self.remove_idle(entry.id).is_ok() {
                held = held.saturating_sub(entry.bytes);
                swept.push(entry.id);
            }
        }
        swept
    }
}

/// An entry that this process is at. It is let go when this is dropped, and when the process ends however it does.
#[derive(Debug)]
pub(super) struct Hold {
    file: File,
}

impl Hold {
    /// Takes it; `None` if another process has it.
    pub(super) fn take(place: &Path) -> Result<Option<Self>, UndoError> {
        /// A process that is just being started has the files of its parent for a moment.
        const TRIES: u32 = 10;
        const MOMENT: Duration = Duration::from_millis(10);
        for _ in 0..TRIES {
            if let Some(hold) = Self::once(place)? {
                return Ok(Some(hold));
            }
            std::thread::sleep(MOMENT);
        }
        Ok(None)
    }

    /// The same without waiting for anything.
    fn once(place: &Path) -> Result<Option<Self>, UndoError> {
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

impl Drop for Hold {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}
