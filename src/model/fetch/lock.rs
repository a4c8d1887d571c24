//! An advisory lock on a file beside the model, so that of two concurrent runs only one fetches. The system releases it
//! when the process ends, however it ends.

use super::cx::Cx;
use super::error::{FetchError, io_error};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A held lock, released on drop.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    /// False if the file system has no locks, so that another process may write at the same time.
    pub(super) is_exclusive: bool,
}

impl Lock {
    /// Takes the lock of `target`, and waits while another process holds it.
    pub(super) fn take(target: &Path, cx: &Cx<'_>) -> Result<Self, FetchError> {
        let mut name = target.as_os_str().to_os_string();
        name.push(".lock");
        let path = PathBuf::from(name);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|e| io_error("create", &path, e))?;
        let mut is_waiting = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file, path, is_exclusive: true }),
                Err(TryLockError::WouldBlock) => {
                    if !is_waiting {
                        let name = target.file_name().unwrap_or_default().to_string_lossy();
                        cx.progress.note(&format!("another caro is fetching {name}; waiting for it"));
                        is_waiting = true;
                    }
                    if cx.cancel.is_cancelled() {
                        return Err(FetchError::Cancelled);
                    }
                    std::thread::sleep(Duration::from_millis(100));
                }
                // some network file systems have no locks; fetching twice is better than not fetching
                Err(TryLockError::Error(_)) => return Ok(Self { file, path, is_exclusive: false }),
            }
        }
    }

    /// Releases the lock and deletes its file after a successful fetch. A waiting process has the file open, and will
    /// find the model.
    pub(super) fn release(self) {
        let Self { file, path, .. } = self;
        let _ = std::fs::remove_file(path);
        drop(file);
    }
}
