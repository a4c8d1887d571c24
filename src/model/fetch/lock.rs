//! Two runs at once fetch once: an advisory lock on a file beside the model. The system drops it with the process,
//! however that ends.

use super::cx::Cx;
use super::error::{FetchError, io_error};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Holds the lock while it lives.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    /// False where the file system has no locks: others may write at the same time.
    pub(super) is_ours_alone: bool,
}

impl Lock {
    /// Takes the lock of `target`, waiting for whoever has it.
    pub(super) fn take(target: &Path, cx: &Cx<'_>) -> Result<Self, FetchError> {
        let mut name = target.as_os_str().to_os_string();
        name.push(".lock");
        let path = PathBuf::from(name);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|e| io_error("create", &path, e))?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file, path, is_ours_alone: true }),
                Err(TryLockError::WouldBlock) => {
                    if !told {
                        let name = target.file_name().unwrap_or_default().to_string_lossy();
                        cx.progress.note(&format!("another caro is fetching {name}; waiting for it"));
                        told = true;
                    }
                    if cx.cancel.is_cancelled() {
                        return Err(FetchError::Cancelled);
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
                // Some network file systems have no locks. Fetching twice is then better than not at all.
                Err(TryLockError::Error(_)) => return Ok(Self { file, path, is_ours_alone: false }),
            }
        }
    }

    /// Gives it back after success, when nobody will need it again. Who waits has the file open and finds the model there.
    pub(super) fn release(self) {
        let Self { file, path, .. } = self;
        let _ = std::fs::remove_file(path);
        drop(file);
    }
}
