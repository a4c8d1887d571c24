//! Parses the index of a git repository, versions 2 to 4, with object ids of either length; pure. What it does not
//! understand to the last byte it does not read at all. Source: gitformat-index(5).

use caro_base::id;

/// Most bytes of an index.
pub(super) const MAX_BYTES: u64 = 64 << 20;
/// The bytes that an index begins with.
const MAGIC: &[u8] = b"DIRC";
/// Bytes of the header: the mark, the version, the number of entries.
const HEADER: usize = 12;
/// The offset of the mode in an entry, behind the times, the device and the inode.
const MODE: usize = 24;
/// The offset of the object id, behind the owner and the size.
const OBJECT: usize = 40;
/// The lengths of an object id: SHA-1, SHA-256.
const OBJECT_LENGTHS: [usize; 2] = [20, 32];
/// The flag that two more bytes of flags follow.
const EXTENDED: u16 = 0x4000;
/// The bits of the flags that hold the length of the path, or the largest value if it is longer.
const NAME_LENGTH: u16 = 0x0fff;
/// The types of an entry, the upper bits of its mode: folder of a sparse index, file, link, submodule.
const TYPES: [u32; 4] = [0o04, 0o10, 0o12, 0o16];

/// An entry, without the times and numbers that only tell git which files to compare again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexEntry<'a> {
    mode: u32,
    object: &'a [u8],
    /// Stage, assumed to be unchanged, length of the path.
    flags: u16,
    /// Not checked out, intended to be added.
    extended: u16,
    /// The path, below the top of the working tree.
    pub(super) path: Vec<u8>,
}

/// Returns the entries of an index; `None` if it is not understood, or holds only a part of them.
pub(super) fn entries(bytes: &[u8]) -> Option<Vec<IndexEntry<'_>>> {
    // the file does not tell the length of its ids, but only with the right one everything else fits
    OBJECT_LENGTHS.into_iter().find_map(|object| Parser { bytes, object }.entries())
}

/// Returns a digest of the entries of an index; `None` if it is not understood.
pub(super) fn digest(bytes: &[u8]) -> Option<String> {
    let mut all = Vec::new();
    for entry in entries(bytes)? {
        all.extend(entry.mode.to_be_bytes());
        all.extend(entry.object);
        all.extend([entry.flags, entry.extended].map(u16::to_be_bytes).as_flattened());
        all.extend(entry.path);
        all.push(0);
    }
    Some(id::hash(all))
}

/// Parses an index whose object ids have `object` bytes.
struct Parser<'a> {
    bytes: &'a [u8],
    object: usize,
}

impl<'a> Parser<'a> {
    fn entries(&self) -> Option<Vec<IndexEntry<'a>>> {
        let version = self.long(4)?;
        if !self.bytes.starts_with(MAGIC) || !(2..=4).contains(&version) {
            return None;
        }
        let mut found: Vec<IndexEntry<'a>> = Vec::new();
        let mut at = HEADER;
        for _ in 0..self.long(8)? {
            let last = found.last().map_or(&[][..], |entry| &entry.path);
            let (entry, end) = self.entry(at, version, last)?;
            found.push(entry);
            at = end;
        }
        if self.has_only_optional_extensions(at) { Some(found) } else { None }
    }

    /// Parses the entry at an offset, after one with the path `last`; returns it and the offset behind it.
    fn entry(&self, at: usize, version: u32, last: &[u8]) -> Option<(IndexEntry<'a>, usize)> {
        let mode = self.long(at + MODE)?;
        let flags_at = at + OBJECT + self.object;
        let object = self.bytes.get(at + OBJECT..flags_at)?;
        let flags = self.short(flags_at)?;
        let mut begin = flags_at + 2;
        let mut extended = 0;
        if flags & EXTENDED != 0 {
            extended = self.short(begin)?;
            begin += 2;
        }
        let (removed, begin) = if version == 4 { self.varint(begin)? } else { (last.len(), begin) };
        let mut path = last[..last.len().checked_sub(removed)?].to_vec();
        let length = self.bytes.get(begin..)?.iter().position(|byte| *byte == 0)?;
        path.extend(&self.bytes[begin..begin + length]);
        let end = begin + length;
        // up to version 3 an entry is padded to a multiple of eight bytes, with at least one byte
        let next = if version == 4 { end + 1 } else { at + ((end - at) / 8 + 1) * 8 };
        let is_padded = self.bytes.get(end..next)?.iter().all(|byte| *byte == 0);
        let is_long = path.len() >= usize::from(NAME_LENGTH);
        let told = usize::from(flags & NAME_LENGTH);
        let fits = if is_long { told == usize::from(NAME_LENGTH) } else { told == path.len() };
        let is_known = TYPES.contains(&(mode >> 12)) && (version > 2 || flags & EXTENDED == 0);
        if !(is_padded && fits && is_known) {
            return None;
        }
        Some((IndexEntry { mode, object, flags, extended, path }, next))
    }

    /// True if only extensions follow that may be ignored, and then the checksum. The name of one that may not, such
    /// as the link to a shared index with more entries, begins with a small letter.
    fn has_only_optional_extensions(&self, mut at: usize) -> bool {
        let Some(end) = self.bytes.len().checked_sub(self.object) else { return false };
        while at < end {
            let is_optional = self.bytes[at].is_ascii_uppercase();
            let length = self.long(at + 4).and_then(|length| usize::try_from(length).ok());
            match length.and_then(|length| (at + 8).checked_add(length)) {
                Some(next) if is_optional => at = next,
                _ => return false,
            }
        }
        at == end
    }

    fn short(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes.get(at..at + 2)?.try_into().ok()?))
    }

    fn long(&self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(self.bytes.get(at..at + 4)?.try_into().ok()?))
    }

    /// Decodes a number in the offset encoding of pack files; returns it and the offset behind it.
    fn varint(&self, mut at: usize) -> Option<(usize, usize)> {
        let mut byte = *self.bytes.get(at)?;
        let mut value = usize::from(byte & 127);
        while byte & 128 != 0 {
            at += 1;
            byte = *self.bytes.get(at)?;
            value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        }
        Some((value, at + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A change of the bytes of an entry, up to its flags.
    type Change<'a> = &'a dyn Fn(&mut [u8]);

    /// An index of these paths. `change` is applied to each entry, and `extensions` follow them.
    fn index(version: u8, object: usize, paths: &[&str], change: Change<'_>, extensions: &[u8]) -> Vec<u8> {
        let count = u8::try_from(paths.len()).unwrap();
        let mut bytes = [MAGIC, &[0, 0, 0, version, 0, 0, 0, count]].concat();
        let mut last = "";
        for path in paths {
            let mut entry = vec![0u8; OBJECT + object + 2];
            entry[MODE..MODE + 4].copy_from_slice(&0o100_644u32.to_be_bytes());
            entry[OBJECT + object + 1] = u8::try_from(path.len()).unwrap();
            change(&mut entry);
            if entry[OBJECT + object] & 0x40 != 0 {
                entry.extend([0x20, 0]);
            }
            if version == 4 {
                let common = path.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
                entry.push(u8::try_from(last.len() - common).unwrap());
                entry.extend(&path.as_bytes()[common..]);
                entry.push(0);
            } else {
                entry.extend(path.as_bytes());
                entry.resize((entry.len() / 8 + 1) * 8, 0);
            }
            bytes.extend(entry);
            last = path;
        }
        bytes.extend(extensions);
        bytes.resize(bytes.len() + object, 9);
        bytes
    }

    const PATHS: &[&str] = &["a/one", "a/two-12", "b"];

    fn same(_: &mut [u8]) {}

    #[test]
    fn each_version_is_read_with_ids_of_either_length() {
        for (version, object) in [(2, 20), (3, 20), (4, 20), (2, 32), (3, 32), (4, 32)] {
            let bytes = index(version, object, PATHS, &same, b"TREE\0\0\0\x02xx");
            let found = entries(&bytes).unwrap_or_else(|| panic!("{version} {object}"));
            let paths: Vec<&[u8]> = found.iter().map(|entry| entry.path.as_slice()).collect();
            assert_eq!(paths, PATHS.iter().map(|path| path.as_bytes()).collect::<Vec<_>>());
            assert!(found.iter().all(|entry| entry.object.len() == object && entry.mode == 0o100_644));
        }
        assert_eq!(entries(&index(2, 20, &[], &same, b"")), Some(Vec::new()));
    }

    #[test]
    fn times_numbers_and_extensions_do_not_change_the_digest_and_everything_else_does() {
        for version in 2..=4 {
            let of = |paths: &[&str], change: Change<'_>, extensions: &[u8]| {
                let digest = digest(&index(version, 20, paths, change, extensions));
                digest.unwrap_or_else(|| panic!("not read: version {version}"))
            };
            let first = of(PATHS, &same, b"");
            for at in (0..MODE).chain(MODE + 4..OBJECT) {
                assert_eq!(of(PATHS, &|entry| entry[at] = 7, b""), first, "byte {at} is none of the content");
            }
            for extensions in [&b"TREE\0\0\0\0"[..], b"UNTR\0\0\0\x03abcFSMN\0\0\0\x01x"] {
                assert_eq!(of(PATHS, &same, extensions), first);
            }
            // the mode, the object, the stage, the flag that it is assumed to be unchanged
            for (at, byte) in [(MODE + 3, 0o355), (OBJECT, 7), (OBJECT + 19, 7)] {
                assert_ne!(of(PATHS, &|entry| entry[at] = byte, b""), first, "byte {at}");
            }
            for flags in [0x10, 0x20, 0x80] {
                assert_ne!(of(PATHS, &|entry| entry[OBJECT + 20] |= flags, b""), first, "flags {flags:x}");
            }
            for paths in [&PATHS[..2], &["a/one", "a/two-13", "b"], &["a/one", "a/two-12", "b", "c"]] {
                assert_ne!(of(paths, &same, b""), first, "{paths:?}");
            }
            if version > 2 {
                assert_ne!(of(PATHS, &|entry| entry[OBJECT + 20] |= 0x40, b""), first, "to be added");
            }
        }
    }

    #[test]
    fn an_index_that_is_not_understood_is_not_read() {
        let whole = index(2, 20, PATHS, &same, b"");
        for cut in 0..whole.len() {
            assert_eq!(digest(&whole[..cut]), None, "cut at {cut}");
        }
        let changes: [(&str, Vec<u8>); 7] = [
            ("the rest is in a shared index", index(2, 20, PATHS, &same, b"link\0\0\0\0")),
            ("an unknown version", index(5, 20, PATHS, &same, b"")),
            ("an extension that is too long", index(2, 20, PATHS, &same, b"TREE\0\0\x01\0")),
            ("an unknown type", index(2, 20, PATHS, &|entry| entry[MODE + 2] = 0x10, b"")),
            ("a length that does not fit", index(2, 20, PATHS, &|entry| entry[OBJECT + 21] = 9, b"")),
            ("more flags in version 2", index(2, 20, PATHS, &|entry| entry[OBJECT + 20] |= 0x40, b"")),
            ("more than it says", [whole.clone(), vec![0]].concat()),
        ];
        for (what, bytes) in changes {
            assert_eq!(digest(&bytes), None, "{what}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..200), version in 2u8..5) {
            let _ = digest(&bytes);
            let mut headed = vec![b'D', b'I', b'R', b'C', 0, 0, 0, version, 0, 0, 0, 9];
            headed.extend(bytes);
            let _ = digest(&headed);
        }
    }
}
