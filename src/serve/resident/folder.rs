//! The folder of sockets: this user's alone, mode 700, or it is not used.

use super::Absent;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The ending of a socket's name.
pub(super) const SOCKET: &str = "sock";
/// Held by whoever makes or removes a socket.
const LOCK: &str = "lock";
/// A little less than the shortest that systems give a socket's path, in bytes: 104 with the final zero on BSD and macOS.
const LONGEST: usize = 100;

/// Tells one socket file from a later one of that name: the number of a removed file is given to the next one.
pub(super) type Number = (u64, i64, i64);

/// The number of a socket, if there is one of that name.
pub(super) fn number(socket: &Path) -> Option<Number> {
    fs::symlink_metadata(socket).ok().map(|meta| (meta.ino(), meta.mtime(), meta.mtime_nsec()))
}

/// A folder that was found to be safe.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// The folder, made where it is not there.
    ///
    /// # Errors
    /// [`Absent::Folder`] if it is a link, somebody else's, or open to others.
    pub fn open(path: &Path) -> Result<Self, Absent> {
        let bad = |reason: String| Absent::Folder { folder: path.display().to_string(), reason };
        // Only the last part is private; what is above is the platform's cache or runtime folder.
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|e| bad(e.to_string()))?;
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(bad(e.to_string())),
            _ => {}
        }
        Self::existing(path)?.ok_or_else(|| bad("it went away".into()))
    }

    /// The folder if it is there.
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
            return Err(bad("it is no folder".into()));
        }
        if meta.uid() != me {
            return Err(bad(format!("it belongs to user {}", meta.uid())));
        }
        if meta.mode() & 0o077 != 0 {
            return Err(bad(format!("others may use it (mode {:o})", meta.mode() & 0o777)));
        }
        Ok(Some(Self(path.into())))
    }

    /// The socket of a slot.
    ///
    /// # Errors
    /// [`Absent::Folder`] where the system has no room for so long a name.
    pub fn socket(&self, slot: &str) -> Result<PathBuf, Absent> {
        let path = self.0.join(format!("{slot}.{SOCKET}"));
        if path.as_os_str().len() > LONGEST {
            let reason = "its name is too long for a socket in it".into();
            return Err(Absent::Folder { folder: self.0.display().to_string(), reason });
        }
        Ok(path)
    }

    /// Every socket.
    pub fn sockets(&self) -> Vec<PathBuf> {
        self.files(SOCKET)
    }

    /// Every file of that ending.
    pub fn files(&self, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == ending)).collect();
        files.sort();
        files
    }

    /// Takes the lock within `wait`; it is given back when the file is dropped, or the process ends.
    ///
    /// # Errors
    /// [`Absent::Starting`] if somebody else holds it all that time.
    pub fn lock(&self, wait: Duration) -> Result<File, Absent> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(self.0.join(LOCK))?;
        let until = Instant::now() + wait;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => return Err(Absent::Starting),
                Err(TryLockError::Error(e)) => return Err(e.into()),
            }
        }
    }
}

/// Makes a folder that is this user's alone, where it is not there.
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
    fn the_folder_is_made_private() {
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
        assert!(refused("link").contains("no folder"));
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(refused("file").contains("no folder"));
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
    fn one_holds_the_lock_and_the_others_do_not_wait_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(&dir.path().join("run")).unwrap();
        let held = folder.lock(Duration::ZERO).unwrap();
        assert!(matches!(folder.lock(Duration::from_millis(10)), Err(Absent::Starting)));
        drop(held);
        folder.lock(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_name_too_long_for_a_socket_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(&dir.path().join("x".repeat(100))).unwrap();
        assert!(folder.socket("0123456789abcdef").unwrap_err().to_string().contains("too long"));
    }
}
