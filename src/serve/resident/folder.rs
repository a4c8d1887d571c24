//! Opens the folder of sockets, which is used only if it belongs to this user and has mode 700.

use super::Absent;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file extension of sockets.
const EXTENSION: &str = "sock";
/// The name of the lock file, locked by a process that creates or removes a socket.
const LOCK_FILE: &str = "lock";
/// Most bytes of a socket's path: a little below the smallest system limit, 104 with the final zero on BSD and macOS.
const MAX_PATH_BYTES: usize = 100;

/// Identifies a socket file by its inode and its time of change, since a new file may reuse the inode of a removed
/// one.
pub(super) type SocketId = (u64, i64, i64);

/// Returns the id of a socket file; `None` if it does not exist.
pub(super) fn socket_id(socket: &Path) -> Option<SocketId> {
    fs::symlink_metadata(socket).ok().map(|meta| (meta.ino(), meta.mtime(), meta.mtime_nsec()))
}

/// A folder that was checked to be private.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Opens the folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// [`Absent::Folder`] if it is a link, belongs to another user, or is accessible to others.
    pub fn open(path: &Path) -> Result<Self, Absent> {
        let bad = |reason: String| Absent::Folder { folder: path.display().to_string(), reason };
        // Only the last component is made private: its parent is the platform's cache or runtime folder.
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|e| bad(e.to_string()))?;
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(bad(e.to_string())),
            _ => {}
        }
        Self::existing(path)?.ok_or_else(|| bad("it went away".into()))
    }

    /// Opens the folder; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn existing(path: &Path) -> Result<Option<Self>, Absent> {
        let bad = |reason: String| Absent::Folder { folder: path.display().to_string(), reason };
        let meta = match fs::symlink_metadata(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            meta => meta.map_err(|e| bad(e.to_string()))?,
        };
        let me = rustix::process::geteuid().as_raw();
        if !meta.is_dir() {
            return Err(bad("it is not a folder".into()));
        }
        if meta.uid() != me {
            return Err(bad(format!("it belongs to user {}", meta.uid())));
        }
        if meta.mode() & 0o077 != 0 {
            return Err(bad(format!("others may use it (mode {:o})", meta.mode() & 0o777)));
        }
        Ok(Some(Self(path.into())))
    }

    /// Returns the path of a slot's socket.
    ///
    /// # Errors
    /// [`Absent::Folder`] if the path is too long for a socket.
    pub fn socket(&self, slot: &str) -> Result<PathBuf, Absent> {
        let path = self.0.join(format!("{slot}.{EXTENSION}"));
        if path.as_os_str().len() > MAX_PATH_BYTES {
            let reason = "its name is too long for a socket in it".into();
            return Err(Absent::Folder { folder: self.0.display().to_string(), reason });
        }
        Ok(path)
    }

    /// Lists the sockets, sorted.
    pub fn sockets(&self) -> Vec<PathBuf> {
        self.files(EXTENSION)
    }

    /// Lists the files with an extension, sorted.
    pub fn files(&self, extension: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == extension)).collect();
        files.sort();
        files
    }

    /// Takes the lock within `timeout`; it is released when the file is dropped or the process ends.
    ///
    /// # Errors
    /// [`Absent::Starting`] if another process holds it for that time.
    pub fn lock(&self, timeout: Duration) -> Result<File, Absent> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(self.0.join(LOCK_FILE))?;
        let deadline = Instant::now() + timeout;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => return Err(Absent::Starting),
                Err(TryLockError::Error(e)) => return Err(e.into()),
            }
        }
    }
}

/// Creates a folder that only this user can access, if it does not exist.
///
/// # Errors
/// As [`Folder::open`].
pub fn make_private(path: &Path) -> Result<(), Absent> {
    Folder::open(path).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_folder_is_created_with_mode_700() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/run");
        assert!(Folder::existing(&path).unwrap().is_none());
        Folder::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        Folder::open(&path).unwrap();
        assert!(Folder::existing(&path).unwrap().is_some());
    }

    #[test]
    fn links_files_and_folders_open_to_others_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |name: &str| Folder::open(&dir.path().join(name)).unwrap_err().to_string();
        fs::create_dir(dir.path().join("mine")).unwrap();
        fs::set_permissions(dir.path().join("mine"), fs::Permissions::from_mode(0o700)).unwrap();
        symlink(dir.path().join("mine"), dir.path().join("link")).unwrap();
        assert!(refused("link").contains("not a folder"));
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(refused("file").contains("not a folder"));
        for mode in [0o750, 0o701, 0o777, 0o707] {
            fs::set_permissions(dir.path().join("mine"), fs::Permissions::from_mode(mode)).unwrap();
            assert!(refused("mine").contains("others may use it"), "{mode:o}");
        }
        if rustix::process::geteuid().is_root() {
            fs::set_permissions(dir.path().join("mine"), fs::Permissions::from_mode(0o700)).unwrap();
            std::os::unix::fs::chown(dir.path().join("mine"), Some(12345), None).unwrap();
            assert!(refused("mine").contains("belongs to user 12345"));
        } else {
            println!("skipped: only root can make a folder somebody else's");
        }
    }

    #[test]
    fn waiting_for_a_lock_that_is_held_times_out() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(&dir.path().join("run")).unwrap();
        let held = folder.lock(Duration::ZERO).unwrap();
        assert!(matches!(folder.lock(Duration::from_millis(10)), Err(Absent::Starting)));
        drop(held);
        folder.lock(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(&dir.path().join("x".repeat(100))).unwrap();
        assert!(folder.socket("0123456789abcdef").unwrap_err().to_string().contains("too long"));
    }
}
