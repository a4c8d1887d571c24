//! Read-only bytes with an owner: a mapped file, a part of the program, or memory in tests and benches. Clones share
//! it.
#![allow(unsafe_code)] // mapping a file cannot be expressed safely

use std::fs::File;
use std::ops::{Deref, Range};
use std::sync::Arc;

enum Owner {
    Map(memmap2::Mmap),
    Memory(Vec<u8>),
    Program(&'static [u8]),
}

/// A range of a mapped file (or of memory) that keeps the whole mapping alive. Cheap to clone and to slice.
#[derive(Clone)]
pub struct Bytes {
    owner: Arc<Owner>,
    range: Range<usize>,
}

impl Bytes {
    /// Maps a whole file.
    ///
    /// The mapping is only as constant as the file. Model files are replaced by rename, never rewritten in place, so
    /// the mapped inode keeps its bytes. As with every mapped file, truncating it in place ends the process with
    /// `SIGBUS`, and editing it in place changes the model.
    ///
    /// # Errors
    /// If the file cannot be mapped.
    pub fn map(file: &File) -> std::io::Result<Self> {
        // SAFETY: the map is read-only and private to this process; concurrent change of the file is the documented
        // residual risk above, and no invariant of a Rust type depends on the bytes (they are plain `u8`).
        let map = unsafe { memmap2::Mmap::map(file)? };
        let range = 0..map.len();
        Ok(Self { owner: Arc::new(Owner::Map(map)), range })
    }

    /// Returns the part `range` of these bytes, or `None` if it is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.len() {
            return None;
        }
        let start = self.range.start + range.start;
        Some(Self { owner: self.owner.clone(), range: start..start + range.len() })
    }

    /// Counts the pages of a mapped file that are in memory, without touching one. The bytes must be the whole file.
    #[cfg(all(test, target_os = "linux"))]
    pub fn pages_in_memory(&self) -> usize {
        let mut pages = vec![0u8; self.len().div_ceil(rustix::param::page_size())];
        // SAFETY: the range is a live mapping that starts at a page, and `pages` has a byte for each page of it.
        let result = unsafe { libc::mincore(self.as_ptr().cast_mut().cast(), self.len(), pages.as_mut_ptr()) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        pages.iter().filter(|&&page| page & 1 == 1).count()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(memory: Vec<u8>) -> Self {
        let range = 0..memory.len();
        Self { owner: Arc::new(Owner::Memory(memory)), range }
    }
}

/// Wraps bytes that are embedded in the program, without copying them. They need not be aligned.
impl From<&'static [u8]> for Bytes {
    fn from(embedded: &'static [u8]) -> Self {
        let range = 0..embedded.len();
        Self { owner: Arc::new(Owner::Program(embedded)), range }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let all: &[u8] = match &*self.owner {
            Owner::Map(map) => map,
            Owner::Memory(memory) => memory,
            Owner::Program(embedded) => embedded,
        };
        &all[self.range.clone()]
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({} from {})", self.len(), self.range.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn slices_share_the_owner_and_stay_in_bounds() {
        let all = Bytes::from(vec![0, 1, 2, 3, 4]);
        let part = all.slice(1..4).unwrap();
        assert_eq!(&*part, [1, 2, 3]);
        assert_eq!(&*part.slice(2..3).unwrap(), [3]);
        assert!(part.slice(0..4).is_none());
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = part.slice(2..1);
        assert!(reversed.is_none());
        drop(all);
        assert_eq!(part.len(), 3);
    }

    #[test]
    fn a_mapped_file_has_the_files_bytes() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"caro").unwrap();
        let bytes = Bytes::map(&file).unwrap();
        assert_eq!(&*bytes, b"caro");
    }
}
