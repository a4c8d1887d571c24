//! The state of a file, folder or link at one time: everything that a command can change, except its content.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Serialises names, which are bytes: as text if they are valid UTF-8, else as a list of numbers.
pub(super) mod name {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    pub(crate) enum Raw {
        Text(String),
        Bytes(Vec<u8>),
    }

    impl Raw {
        pub(crate) fn of(name: &OsStr) -> Self {
            match name.to_str() {
                Some(text) => Self::Text(text.to_owned()),
                None => Self::Bytes(name.as_bytes().to_vec()),
            }
        }

        pub(crate) fn into_name(self) -> OsString {
            match self {
                Self::Text(text) => text.into(),
                Self::Bytes(bytes) => OsString::from_vec(bytes),
            }
        }
    }

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        Raw::of(path.as_os_str()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(Raw::deserialize(from)?.into_name().into())
    }
}

/// Serialises optional names.
mod maybe {
    use super::name::Raw;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::path::PathBuf;

    pub(super) fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.as_ref().map(|path| Raw::of(path.as_os_str())).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Raw>::deserialize(from)?.map(|raw| raw.into_name().into()))
    }
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Nothing exists there.
    Absent,
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
    /// A socket, which only the program that listens at it can recreate.
    Socket,
    /// A block device.
    BlockDevice,
    /// Any other device.
    Device,
}

/// The part of a path's state that a record covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Its metadata and its content.
    Whole,
    /// Only its mode, owner, times and attributes.
    Surface,
    /// A folder above another path, recreated if it is missing.
    Above,
}

/// An extended attribute: access lists, capabilities, labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    #[serde(with = "name")]
    name: PathBuf,
    /// Its value.
    pub value: Vec<u8>,
}

impl Attribute {
    pub(super) fn new(name: OsString, value: Vec<u8>) -> Self {
        Self { name: name.into(), value }
    }

    /// Its name.
    pub fn name(&self) -> &Path {
        &self.name
    }
}

/// The way the content of a file is saved, and the number of the saved file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// As a hard link.
    Linked(u64),
    /// As a copy, or a clone that shares its blocks.
    Copied(u64),
}

impl Kept {
    /// Returns the number of the saved file.
    pub fn number(self) -> u64 {
        match self {
            Self::Linked(number) | Self::Copied(number) => number,
        }
    }
}

/// The state of a path at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The absolute path, without links in its folders.
    #[serde(with = "name")]
    pub path: PathBuf,
    /// The kind of what is there.
    pub kind: Kind,
    /// The part of its state that is recorded.
    pub role: Role,
    /// Permission bits.
    pub mode: u32,
    /// The owner's id.
    pub user: u32,
    /// The group's id.
    pub group: u32,
    /// The size of a file in bytes.
    pub size: u64,
    /// The bytes that it occupies: less than its size if it has holes.
    pub room: u64,
    /// The time of modification: seconds since 1970, nanoseconds.
    pub modified: (i64, i64),
    /// The time of access, likewise.
    pub accessed: (i64, i64),
    /// The number of its file system.
    pub device: u64,
    /// Its inode number.
    pub inode: u64,
    /// The number of its hard links.
    pub names: u64,
    /// The number of a device.
    #[serde(default)]
    pub special: u64,
    /// The target of a link.
    #[serde(with = "maybe", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<PathBuf>,
    /// Its attributes, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<Attribute>,
    /// The digest of the entries, if it is the index of a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_entries: Option<String>,
    /// The saved content, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// The number of a hard link to the file itself, used to reconnect its other names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
}

impl Node {
    /// Creates the state of an absent path.
    pub fn absent(path: &Path, role: Role) -> Self {
        Self {
            path: path.to_path_buf(),
            kind: Kind::Absent,
            role,
            mode: 0,
            user: 0,
            group: 0,
            size: 0,
            room: 0,
            modified: (0, 0),
            accessed: (0, 0),
            device: 0,
            inode: 0,
            names: 0,
            special: 0,
            target: None,
            attributes: Vec::new(),
            index_entries: None,
            kept: None,
            held: None,
        }
    }

    /// True if both states are the same, as far as can be told without reading files. The modification time of a
    /// folder is ignored, because its changed entries are compared themselves. An index of git is the same while its
    /// entries are: many a command that only looks, such as `git status`, writes down the times of the files in it.
    pub fn agrees(&self, other: &Self) -> bool {
        let time = |node: &Self| if node.kind == Kind::Folder { None } else { Some(node.modified) };
        let is_same = match (&self.index_entries, &other.index_entries) {
            (Some(these), Some(those)) => these == those,
            _ => self.size_of_file() == other.size_of_file() && time(self) == time(other),
        };
        is_same && self.same_surface(other)
    }

    /// True if everything except content and times is the same.
    pub fn same_surface(&self, other: &Self) -> bool {
        let surface = |n: &Self| (n.kind, n.mode, n.user, n.group, n.special);
        surface(self) == surface(other) && self.target == other.target && self.attributes == other.attributes
    }

    fn size_of_file(&self) -> u64 {
        if self.kind == Kind::File { self.size } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn an_index_agrees_with_one_of_the_same_entries_at_any_time() {
        let node = |entries: Option<&str>, size, time| {
            let index_entries = entries.map(str::to_owned);
            let absent = Node::absent(Path::new("/w/.git/index"), Role::Whole);
            Node { kind: Kind::File, size, modified: (time, 0), index_entries, ..absent }
        };
        let one = node(Some("e"), 9, 1);
        assert!(one.agrees(&node(Some("e"), 7, 2)));
        assert!(!one.agrees(&node(Some("f"), 9, 1)));
        assert!(!one.agrees(&Node { mode: 0o600, ..node(Some("e"), 9, 1) }));
        for other in [node(None, 9, 2), node(None, 7, 1)] {
            assert!(!one.agrees(&other) && !other.agrees(&one), "one of them was not read");
            assert!(!node(None, 9, 1).agrees(&other));
        }
        assert!(node(None, 9, 1).agrees(&one), "a record of an earlier version has no digest");
    }

    #[test]
    fn a_name_that_is_not_utf8_survives_the_record() {
        for bytes in [b"/a\xff\xfe\n b".to_vec(), b"/-rf".to_vec(), "/ü \u{202e}".as_bytes().to_vec()] {
            let mut node = Node::absent(Path::new(&OsString::from_vec(bytes.clone())), Role::Whole);
            node.target = Some(OsString::from_vec(b"\xff".to_vec()).into());
            node.attributes.push(Attribute::new(OsString::from_vec(b"user.\xff".to_vec()), vec![0, 255]));
            let line = serde_json::to_string(&node).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Node>(&line).unwrap(), node);
        }
    }
}
