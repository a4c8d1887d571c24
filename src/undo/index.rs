//! Reads the tracked files of a git repository from its index. Git is not run, since a repository's configuration can
//! make it run programs. Source: gitformat-index(5).

use caro_base::files;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most bytes of an index.
const MAX_BYTES: u64 = 64 << 20;
/// Bytes of an entry before its name: times, numbers, mode, owner, size, object, flags.
const FIXED: usize = 62;
/// The offset of the flags in these.
const FLAGS: usize = 60;
/// The flag that two more bytes follow.
const EXTENDED: u16 = 0x4000;

/// The files that a repository tracks.
#[derive(Debug)]
pub(super) struct Tracked {
    top: PathBuf,
    names: HashSet<Vec<u8>>,
}

impl Tracked {
    /// Returns the tracked files of the repository around a folder; `None` if there is none, or its index is not
    /// understood.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let top = folder.ancestors().find(|top| top.join(".git").is_dir())?;
        let names = match files::read(&top.join(".git/index"), MAX_BYTES) {
            Ok(bytes) => names(&bytes)?,
            // nothing was added yet
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => HashSet::new(),
            Err(_) => return None,
        };
        Some(Self { top: top.to_path_buf(), names })
    }

    /// True if git tracks the file.
    pub(super) fn has(&self, path: &Path) -> bool {
        let name = path.strip_prefix(&self.top).unwrap_or(path);
        // git's own files do not count as untracked work
        name.starts_with(OsStr::new(".git")) || self.names.contains(name.as_os_str().as_bytes())
    }
}

/// Returns the names in an index of version 2, 3 or 4.
fn names(bytes: &[u8]) -> Option<HashSet<Vec<u8>>> {
    let number = |at: usize| -> Option<u32> { Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?)) };
    let version = number(4)?;
    if !bytes.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let count = number(8)?;
    let mut names = HashSet::new();
    let mut at = 12;
    let mut last: Vec<u8> = Vec::new();
    for _ in 0..count {
        let flags = u16::from_be_bytes(bytes.get(at + FLAGS..at + FIXED)?.try_into().ok()?);
        let mut begin = at + FIXED;
        if version >= 3 && flags & EXTENDED != 0 {
            begin += 2;
        }
        if version == 4 {
            let (cut, after) = varint(bytes, begin)?;
            last.truncate(last.len().checked_sub(cut)?);
            begin = after;
        } else {
            last.clear();
        }
        let length = bytes.get(begin..)?.iter().position(|byte| *byte == 0)?;
        last.extend(&bytes[begin..begin + length]);
        names.insert(last.clone());
        let end = begin + length;
        // up to version 3 an entry is padded to a multiple of eight bytes, with at least one byte
        at = if version == 4 { end + 1 } else { at + ((end - at) / 8 + 1) * 8 };
    }
    Some(names)
}

/// Decodes a number in the offset encoding of pack files; returns it and the position behind it.
fn varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 127);
    while byte & 128 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_version_of_an_index_is_read() {
        let entry = |name: &[u8]| {
            let mut entry = vec![0u8; FIXED];
            entry[FLAGS + 1] = u8::try_from(name.len()).unwrap();
            entry.extend(name);
            entry
        };
        let head = |version: u8, count: u8| [&b"DIRC"[..], &[0, 0, 0, version, 0, 0, 0, count]].concat();
        let mut two = head(2, 2);
        for name in [&b"a/one"[..], b"a/two-12"] {
            let mut entry = entry(name);
            entry.resize((entry.len() / 8 + 1) * 8, 0);
            two.extend(entry);
        }
        let want: HashSet<Vec<u8>> = [b"a/one".to_vec(), b"a/two-12".to_vec()].into();
        assert_eq!(names(&two), Some(want.clone()));
        let mut four = head(4, 2);
        let mut first = entry(b"");
        first.extend(b"\0a/one\0");
        let mut second = entry(b"");
        second.extend(b"\x03two-12\0");
        four.extend([first, second].concat());
        assert_eq!(names(&four), Some(want));
        assert_eq!(names(b"DIRC"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..200), version in 2u8..5) {
            let _ = names(&bytes);
            let mut headed = vec![b'D', b'I', b'R', b'C', 0, 0, 0, version, 0, 0, 0, 9];
            headed.extend(bytes);
            let _ = names(&headed);
        }
    }
}
