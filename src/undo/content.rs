//! Copies the content of files: by cloning if the file system supports it, else with its holes.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes compared at once.
const CHUNK: usize = 256 << 10;

/// Opens a regular file for reading; refuses links and everything else, such as a pipe.
///
/// # Errors
/// Errors of the system.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file any more"));
    }
    Ok(file)
}

/// Creates a file, which must not exist yet.
///
/// # Errors
/// Errors of the system.
pub(super) fn create(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).read(true).create_new(true).mode(0o600).open(path)
}

/// Copies a file to an empty one; returns true if they share their blocks.
///
/// # Errors
/// Errors of the system.
pub(super) fn copy(from: &mut File, to: &mut File) -> io::Result<bool> {
    if clone(from, to) {
        return Ok(true);
    }
    let length = from.metadata()?.len();
    let mut at = 0;
    while at < length {
        let Some((begin, end)) = next_data(from, at, length)? else { break };
        from.seek(SeekFrom::Start(begin))?;
        to.seek(SeekFrom::Start(begin))?;
        io::copy(&mut from.take(end - begin), to)?;
        at = end;
    }
    to.set_len(length)?;
    Ok(false)
}

/// Clones a file if the file system supports it; true if it did.
pub(super) fn clone(from: &File, to: &File) -> bool {
    #[cfg(target_os = "linux")]
    return rustix::fs::ioctl_ficlone(to, from).is_ok();
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (from, to);
        false
    }
}

/// Returns the next range of a file, from `at` on, that is no hole.
fn next_data(file: &File, at: u64, length: u64) -> io::Result<Option<(u64, u64)>> {
    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd"))]
    {
        use rustix::fs::{SeekFrom as Where, seek};
        use rustix::io::Errno;
        match seek(file, Where::Data(at)) {
            Ok(begin) => {
                let end = seek(file, Where::Hole(begin)).unwrap_or(length);
                return Ok((begin < length).then_some((begin, end.min(length))));
            }
            // only a hole is left
            Err(Errno::NXIO) => return Ok(None),
            // a file system without support for holes
            Err(Errno::INVAL | Errno::NOTSUP) => {}
            Err(e) => return Err(e.into()),
        }
    }
    let _ = file;
    Ok(Some((at, length)))
}

/// True if two files have the same content.
///
/// # Errors
/// If one cannot be read.
pub(super) fn same(one: &File, other: &File) -> io::Result<bool> {
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut at = 0;
    loop {
        let length = one.read_at(&mut a, at)?;
        if length == 0 {
            return Ok(true);
        }
        match other.read_exact_at(&mut b[..length], at) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        if a[..length] != b[..length] {
            return Ok(false);
        }
        at += length as u64;
    }
}

/// Syncs a folder's entries to the disk.
///
/// # Errors
/// Errors of the system.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_copy_keeps_holes_and_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let mut from = create(&path("from")).unwrap();
        from.write_all(b"head").unwrap();
        from.seek(SeekFrom::Start(8 << 20)).unwrap();
        from.write_all(b"tail").unwrap();
        from.set_len(16 << 20).unwrap();
        let mut to = create(&path("to")).unwrap();
        copy(&mut from, &mut to).unwrap();
        assert!(same(&from, &to).unwrap());
        assert_eq!(to.metadata().unwrap().len(), 16 << 20);
        assert!(to.metadata().unwrap().blocks() <= from.metadata().unwrap().blocks() + 16);
        to.write_at(b"x", 9 << 20).unwrap();
        assert!(!same(&from, &to).unwrap());
        assert!(create(&path("to")).is_err(), "nothing is written over");
    }
}
