//! The changes that a rehearsal reports: plain data.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Most entries of deleted folders that are compared with what was made; more count as lost.
const MAX_COMPARED: usize = 10_000;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It did not exist before.
    Created,
    /// Its content, mode, owner, target or time changed.
    Changed,
    /// It was deleted, with everything below it.
    Deleted,
}

/// One difference that a script made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The kind.
    pub kind: ChangeKind,
    /// The absolute path, with invalid UTF-8 replaced.
    pub path: PathBuf,
    /// The bytes of the path if it is not valid UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub raw: Option<Vec<u8>>,
    /// The new state; `None` if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub now: Option<Entry>,
    /// True if only the time of modification differs.
    #[serde(default)]
    pub time_only: bool,
}

impl Change {
    /// Returns the path that identifies the file on disk.
    pub fn place(&self) -> PathBuf {
        match &self.raw {
            #[cfg(unix)]
            Some(raw) => <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(raw.clone()).into(),
            _ => self.path.clone(),
        }
    }
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// Anything else: a pipe, a socket.
    Other,
}

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The kind of file.
    pub kind: EntryKind,
    /// Permission bits.
    pub mode: u32,
    /// The owner's number.
    pub user: u32,
    /// The group's number.
    pub group: u32,
    /// Size in bytes.
    pub size: u64,
    /// Time of modification, in seconds since 1970.
    pub modified: i64,
    /// The target of a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// SHA-256 of a file's content, if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<String>,
}

/// Returns the SHA-256 of a file's content.
pub(super) fn digest(file: &Path) -> Option<String> {
    let mut hash = Sha256::new();
    std::io::copy(&mut File::open(file).ok()?, &mut hash).ok()?;
    Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// True if a deleted file, or one in a deleted folder, has a content that no new file has: a renamed file is not lost.
/// The deleted files are still on the disk, and the changes have digests.
pub(super) fn loses_files(changes: &[Change]) -> bool {
    let new = || changes.iter().filter_map(|change| change.now.as_ref());
    let kept: HashSet<&str> = new().filter_map(|now| now.digest.as_deref()).collect();
    let targets: HashSet<&str> = new().filter_map(|now| now.target.as_deref()).collect();
    let mut left = MAX_COMPARED;
    let mut pending: Vec<PathBuf> =
        changes.iter().filter(|change| change.kind == ChangeKind::Deleted).map(Change::place).collect();
    while let Some(path) = pending.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        left -= 1;
        let is_lost = if meta.is_dir() {
            pending.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            false
        } else if meta.is_symlink() {
            fs::read_link(&path).is_ok_and(|target| !targets.contains(&*target.to_string_lossy()))
        } else if meta.is_file() {
            digest(&path).is_none_or(|digest| !kept.contains(digest.as_str()))
        } else {
            false
        };
        if is_lost || left == 0 {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_lost_unless_a_new_one_has_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("sub/deep")).unwrap();
        fs::write(at("sub/deep/a"), "text").unwrap();
        let change = |kind, name: &str, content: Option<&str>| {
            let digest = content.map(|content| {
                fs::write(at("content"), content).unwrap();
                digest(&at("content")).unwrap()
            });
            let now = digest.is_some().then_some(Entry {
                kind: EntryKind::File,
                mode: 0o644,
                user: 0,
                group: 0,
                size: 0,
                modified: 0,
                target: None,
                digest,
            });
            Change { kind, path: at(name), raw: None, now, time_only: false }
        };
        let deleted = || change(ChangeKind::Deleted, "sub", None);
        assert!(loses_files(&[deleted()]));
        assert!(loses_files(&[deleted(), change(ChangeKind::Created, "b", Some("other"))]));
        assert!(!loses_files(&[deleted(), change(ChangeKind::Created, "b", Some("text"))]), "it is renamed");
        assert!(!loses_files(&[change(ChangeKind::Changed, "sub/deep/a", Some("new"))]));
    }
}
