//! Bounded reads and atomic writes of whole files.
//!
//! A path that a user names may lead to anything (`/dev/zero`, a log of gigabytes), and a disk may be full at any
//! moment.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Returns when a file was last modified, in nanoseconds since 1970.
///
/// # Errors
/// If the system does not record that time.
pub fn modified_nanos(meta: &fs::Metadata) -> io::Result<u128> {
    Ok(meta.modified()?.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos()))
}

/// Opens a file whose reads never wait: where there is nothing to read yet, as in `/proc/kmsg`, which claims to be a
/// regular file, they fail with [`ErrorKind::WouldBlock`].
///
/// # Errors
/// The system's.
pub fn open_nonblocking(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    options.open(path)
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// The system's; [`ErrorKind::FileTooLarge`] if there are more bytes, whatever size the file claims to have.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// Reads a text file of at most `most` bytes.
///
/// # Errors
/// As [`read`]; [`ErrorKind::InvalidData`] if the bytes are not valid UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|e| {
        let why = format!("it is not valid UTF-8 at byte {}", e.utf8_error().valid_up_to());
        io::Error::new(ErrorKind::InvalidData, why)
    })
}

/// The access rights of a file that [`replace`] writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Only its owner may read and write it.
    Private,
    /// As the umask allows.
    Umask,
    /// These permissions.
    Like(Permissions),
}

/// Writes a file atomically: to a temporary file in its folder, which is then renamed. Creates the folder if it is
/// missing. If it fails, the old file stays as it was and nothing of the new one is left.
///
/// # Errors
/// The system's.
pub fn replace(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    write_temporary(path, bytes, access)?.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Writes a new file atomically, as [`replace`] does; only its owner may read and write it.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if the file exists, or the system's.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_temporary(path, bytes, Access::Private)?.persist_noclobber(path).map_err(|e| e.error)?;
    Ok(())
}

/// Replaces the content of an existing file, which keeps its permissions, owner, group and other names: atomically
/// where that keeps them, else in place. If it fails, the old content stays or is restored.
///
/// # Errors
/// [`ErrorKind::PermissionDenied`] if this user may not write the file, although its folder would let it be replaced;
/// [`ErrorKind::InvalidInput`] if it is not a regular file; or the system's.
pub fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = &path.canonicalize()?;
    let before = fs::metadata(path)?;
    if !before.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let open = || File::options().write(true).open(path);
    // only asks for permission: Windows replaces no file that is open
    drop(open()?);
    let new = write_temporary(path, bytes, Access::Like(before.permissions()))?;
    if replaces(&new.as_file().metadata()?, &before) {
        new.persist(path).map_err(|e| e.error)?;
        return Ok(());
    }
    drop(new);
    write_in_place(&mut open()?, &mut &*bytes, path)
}

/// True if a new file in place of an old one keeps its owner and group, and the old one has no other name.
#[cfg(unix)]
fn replaces(new: &fs::Metadata, old: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    old.nlink() == 1 && (old.uid(), old.gid()) == (new.uid(), new.gid())
}

#[cfg(not(unix))]
fn replaces(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

/// Replaces the content of an open file. Its old content lies in a file beside it until the new one is on the disk, and
/// is restored from there if that fails.
fn write_in_place(file: &mut File, content: &mut dyn Read, path: &Path) -> io::Result<()> {
    let mut old = tempfile::Builder::new().prefix(".old-").tempfile_in(folder_of(path))?;
    io::copy(&mut File::open(path)?, &mut old)?;
    old.as_file().sync_all()?;
    let Err(why) = refill(file, content) else { return Ok(()) };
    if old.rewind().and_then(|()| refill(file, &mut old)).is_ok() {
        return Err(why);
    }
    let (_, kept) = old.keep().map_err(|e| e.error)?;
    Err(io::Error::new(why.kind(), format!("{why}; its old content is in {}", kept.display())))
}

/// Writes the whole content of an open file anew, and syncs it to the disk.
fn refill(file: &mut File, content: &mut dyn Read) -> io::Result<()> {
    file.rewind()?;
    let length = io::copy(content, file)?;
    file.set_len(length)?;
    file.sync_all()
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes the bytes to a temporary file in the folder of `path` and syncs it to the disk.
fn write_temporary(path: &Path, bytes: &[u8], access: Access) -> io::Result<NamedTempFile> {
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let mut new = tempfile::Builder::new();
    #[cfg(unix)]
    if access == Access::Umask {
        new.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut file = new.tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Access::Like(permissions) = access {
        file.as_file().set_permissions(permissions)?;
    }
    // some file systems report only now that the disk is full
    file.as_file().sync_all()?;
    Ok(file)
}

/// Locks what is kept in a file against other processes, until the returned file is dropped or the process ends. The
/// lock is a file of its own, since [`replace`] puts another file in the place of the old one. Creates its folder if
/// that is missing.
///
/// # Errors
/// The system's.
pub fn lock(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let lock = File::options().write(true).create(true).truncate(false).open(path)?;
    lock.lock()?;
    Ok(lock)
}

/// Creates a folder atomically: `fill` fills an empty temporary folder beside it, which is then renamed.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if the folder exists, the error of `fill`, or the system's.
pub fn make_folder(path: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let above = path.parent().ok_or(ErrorKind::InvalidInput)?;
    fs::create_dir_all(above)?;
    let mut new = tempfile::Builder::new();
    new.prefix(".new-");
    #[cfg(unix)]
    new.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    let folder = new.tempdir_in(above)?;
    fill(folder.path())?;
    if path.exists() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    fs::rename(folder.path(), path)?;
    // the folder has been renamed: nothing is left to remove under its temporary name
    let _ = folder.keep();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_bounded_whatever_size_a_file_claims() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read(&file, 5).unwrap(), b"12345");
        assert_eq!(read_text(&file, 5).unwrap(), "12345");
        assert_eq!(read(&file, 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        fs::write(&file, [0xff]).unwrap();
        let no_text = read_text(&file, 5).unwrap_err();
        assert_eq!((no_text.kind(), no_text.to_string().contains("UTF-8")), (ErrorKind::InvalidData, true));
        if cfg!(unix) {
            assert_eq!(read(Path::new("/dev/zero"), 1 << 16).unwrap_err().kind(), ErrorKind::FileTooLarge);
        }
    }

    #[test]
    fn replacing_a_file_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/f");
        for text in ["one", "two"] {
            replace(&file, text.as_bytes(), Access::Private).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::read_dir(dir.path().join("deep")).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_lock_is_held_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let (file, lock_file) = (dir.path().join("n"), dir.path().join("deep/n.lock"));
        fs::write(&file, "0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _lock = lock(&lock_file).unwrap();
                    let count: u32 = fs::read_to_string(&file).unwrap().parse().unwrap();
                    replace(&file, (count + 1).to_string().as_bytes(), Access::Private).unwrap();
                });
            }
        });
        assert_eq!(fs::read_to_string(&file).unwrap(), "8");
    }

    #[cfg(unix)]
    #[test]
    fn access_sets_the_mode_of_a_file() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let mode = |access| {
            let file = dir.path().join("f");
            replace(&file, b"x", access).unwrap();
            fs::metadata(file).unwrap().permissions().mode() & 0o777
        };
        assert_eq!(mode(Access::Private), 0o600);
        assert_eq!(mode(Access::Like(Permissions::from_mode(0o640))), 0o640);
        assert_eq!(mode(Access::Umask) & 0o600, 0o600);
    }

    #[test]
    fn an_existing_file_is_overwritten_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "one").unwrap();
        for text in ["two", "", "a longer text"] {
            overwrite(&file, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(overwrite(dir.path(), b"x").unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(overwrite(&dir.path().join("new"), b"x").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[cfg(unix)]
    #[test]
    fn an_overwritten_file_keeps_its_mode_its_owner_and_its_other_names() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
        let dir = tempfile::tempdir().unwrap();
        let [file, other, link] = ["f", "other", "link"].map(|name| dir.path().join(name));
        fs::write(&file, "one").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        // only root may give a file away
        let owner = chown(&file, Some(12), Some(34)).ok().map(|()| (12, 34));
        let number = |path: &Path| fs::metadata(path).unwrap().ino();
        overwrite(&file, b"two").unwrap();
        let meta = fs::metadata(&file).unwrap();
        assert_eq!(
            (meta.mode() & 0o7777, owner.unwrap_or((meta.uid(), meta.gid()))),
            (0o640, (meta.uid(), meta.gid()))
        );
        fs::hard_link(&file, &other).unwrap();
        symlink("f", &link).unwrap();
        overwrite(&link, b"thr").unwrap();
        assert_eq!((number(&file), fs::read_to_string(&other).unwrap().as_str()), (number(&other), "thr"));
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing is left beside it");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_this_user_may_not_write_is_not_overwritten() {
        use std::os::unix::fs::PermissionsExt;
        if rustix::process::geteuid().is_root() {
            eprintln!("root may write everything");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "one").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
        assert_eq!(overwrite(&file, b"two").unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    }

    #[test]
    fn a_file_written_in_place_is_restored_if_that_fails() {
        /// A content that ends with an error.
        struct Breaks(usize);

        impl Read for Breaks {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let left = self.0.min(buffer.len());
                self.0 -= left;
                buffer[..left].fill(b'x');
                if left == 0 { Err(ErrorKind::StorageFull.into()) } else { Ok(left) }
            }
        }

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "old text").unwrap();
        for length in [0, 3, 20_000] {
            let mut file = File::options().write(true).open(&path).unwrap();
            let failed = write_in_place(&mut file, &mut Breaks(length), &path).unwrap_err();
            assert_eq!(
                (failed.kind(), fs::read_to_string(&path).unwrap().as_str()),
                (ErrorKind::StorageFull, "old text")
            );
        }
        write_in_place(&mut File::options().write(true).open(&path).unwrap(), &mut &b"new"[..], &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_folder_that_cannot_be_filled_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("above/new");
        let full = |folder: &Path| {
            fs::write(folder.join("half"), "ha")?;
            Err(io::Error::from(ErrorKind::StorageFull))
        };
        assert_eq!(make_folder(&path, full).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(fs::read_dir(dir.path().join("above")).unwrap().count(), 0);
        make_folder(&path, |folder| fs::write(folder.join("whole"), "whole")).unwrap();
        assert_eq!(fs::read_to_string(path.join("whole")).unwrap(), "whole");
        assert_eq!(make_folder(&path, |_| Ok(())).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_dir(dir.path().join("above")).unwrap().count(), 1);
    }
}
