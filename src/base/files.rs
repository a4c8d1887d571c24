//! Files of this program and of its user: read up to a bound, and written whole or not at all.
//!
//! A path that a person names may lead to anything (`/dev/zero`, a log of gigabytes), and a disk may be full at any moment.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// When a file was last changed, in nanoseconds since 1970.
///
/// # Errors
/// Where the system does not keep that time.
pub fn changed(meta: &fs::Metadata) -> io::Result<u128> {
    Ok(meta.modified()?.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos()))
}

/// The bytes of a file, of which there may be `most`.
///
/// # Errors
/// The system's; [`ErrorKind::FileTooLarge`] where there are more, whatever size the file claims to have.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// The text of a file, of which there may be `most` bytes.
///
/// # Errors
/// As [`read`]; [`ErrorKind::InvalidData`] for what is not valid UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|e| {
        let why = format!("it is not valid UTF-8 at byte {}", e.utf8_error().valid_up_to());
        io::Error::new(ErrorKind::InvalidData, why)
    })
}

/// Who may read and write a file that [`replace`] makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Its owner alone.
    Private,
    /// Whoever the umask allows.
    Umask,
    /// As it says.
    Like(Permissions),
}

/// Writes a file whole or not at all: beside its place first, then in it. Its folder is made where there is none, and what
/// could not be written leaves the file that was there, and nothing of the new one.
///
/// # Errors
/// The system's.
pub fn replace(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    beside(path, bytes, access)?.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// The same where there is no file yet, for its owner alone.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] where there is one, or the system's.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    beside(path, bytes, Access::Private)?.persist_noclobber(path).map_err(|e| e.error)?;
    Ok(())
}

/// The file, whole and on the disk, beside its place.
fn beside(path: &Path, bytes: &[u8], access: Access) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
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
    // some file systems say only now that there is no room
    file.as_file().sync_all()?;
    Ok(file)
}

/// Makes a folder whole or not at all: `fill` is given an empty one beside it, which then takes its place.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] where there is one, what `fill` says, or the system.
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
    // it is not there any more under the name by which it would be removed
    let _ = folder.keep();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_bound_whatever_it_claims_to_be() {
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
    fn a_file_is_replaced_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/f");
        for text in ["one", "two"] {
            replace(&file, text.as_bytes(), Access::Private).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::read_dir(dir.path().join("deep")).unwrap().count(), 1, "nothing is left beside it");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_its_owners_alone_or_as_the_umask_says() {
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
