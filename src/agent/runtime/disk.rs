//! What calls changed below the working folder: it is looked at before and after. What a command was foreseen to do, and
//! what it printed, are words; this is what happened.

use crate::evidence::{Changes, Entry, Measured, Query};
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

/// Folders that programs keep for themselves: what a commit or a build puts there is not what a task is about. That they
/// are there is seen, and that they go.
const THEIRS: &[&str] = &[".git", ".hg", ".svn", "node_modules", "__pycache__"];
/// Entries that are looked at, at most: in a larger folder nobody knows.
const ENTRIES: usize = 4000;
/// Folders below each other that are gone into.
const DEPTH: usize = 12;
/// Bytes of a file that are read to see whether its text changed; of a larger one the time is what counts.
const FILE: u64 = 256 << 10;
/// Bytes that are read of all files together.
const TOTAL: u64 = 24 << 20;
/// Characters of a changed file's text that are kept.
const TEXT: u64 = 32 << 10;

/// One entry as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    folder: bool,
    mode: u32,
    length: u64,
    /// The text's hash where it was read, else the time of the last change.
    text: Result<u64, Option<SystemTime>>,
}

/// A folder as it was.
#[derive(Debug, Clone)]
pub(super) struct Snapshot(BTreeMap<String, Seen>);

impl Snapshot {
    /// Looks at a folder; `None` if it is too large to be looked at.
    pub(super) fn of(root: &Path) -> Option<Self> {
        let mut seen = BTreeMap::new();
        let mut left = TOTAL;
        let mut folders = vec![(root.to_path_buf(), String::new(), 0)];
        while let Some((folder, name, depth)) = folders.pop() {
            // what cannot be listed is the same before and after
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = format!("{name}{}", entry.file_name().to_string_lossy());
                let Ok(meta) = entry.path().symlink_metadata() else { continue };
                if meta.is_dir() && depth < DEPTH && !is_theirs(&entry.file_name()) {
                    folders.push((entry.path(), format!("{path}/"), depth + 1));
                }
                let text = digest(&entry.path(), &meta, &mut left);
                let length = if meta.is_dir() { 0 } else { meta.len() };
                seen.insert(path, Seen { folder: meta.is_dir(), mode: mode(&meta), length, text });
                if seen.len() > ENTRIES {
                    return None;
                }
            }
        }
        Some(Self(seen))
    }

    /// What has changed since.
    pub(super) fn changes(&self, root: &Path) -> Option<Changes> {
        let now = Self::of(root)?;
        let mut changes = Changes { before: self.0.keys().cloned().collect(), ..Changes::default() };
        for (path, seen) in &now.0 {
            let entry = || Entry { path: path.clone(), folder: seen.folder, text: text(&root.join(path), seen) };
            match self.0.get(path) {
                None => changes.created.push(entry()),
                Some(before) if before == seen => {}
                // a folder changes with what is in it
                Some(before) if seen.folder && before.folder && before.mode == seen.mode => {}
                Some(before) if (before.length, &before.text) == (seen.length, &seen.text) => {
                    changes.modes.push(path.clone());
                }
                Some(before) if seen.folder && before.folder => changes.modes.push(path.clone()),
                Some(_) => changes.changed.push(entry()),
            }
        }
        changes.removed = self.0.keys().filter(|path| !now.0.contains_key(*path)).cloned().collect();
        Some(changes)
    }
}

/// What a part asks for, and the files below the folder that may be it; `None` if it asks for nothing that could be held
/// against them, or if they are too many.
pub(super) fn measured(part: &str, root: &Path) -> Option<(Query, Vec<Measured>)> {
    let query = Query::of(&super::referents::placed(part, root))?;
    let mut files = Vec::new();
    let (mut entries, mut folders) = (0, vec![(root.to_path_buf(), String::new(), 0)]);
    while let Some((folder, name, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).ok()?.flatten() {
            entries += 1;
            let path = format!("{name}{}", entry.file_name().to_string_lossy());
            let meta = entry.path().symlink_metadata().ok()?;
            if meta.is_dir() && is_theirs(&entry.file_name()) {
                continue;
            }
            if meta.is_dir() {
                folders.push((entry.path(), format!("{path}/"), depth + 1));
            } else if meta.is_file() {
                files.push(Measured { path, bytes: meta.len(), taken: taken(&meta), modified: meta.modified().ok()? });
            }
            if entries > ENTRIES || depth > DEPTH {
                return None;
            }
        }
    }
    Some((query, files))
}

fn is_theirs(name: &std::ffi::OsStr) -> bool {
    THEIRS.iter().any(|theirs| name == *theirs)
}

#[cfg(unix)]
fn taken(meta: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(meta) * 512
}

#[cfg(not(unix))]
fn taken(meta: &fs::Metadata) -> u64 {
    meta.len()
}

fn digest(path: &Path, meta: &fs::Metadata, left: &mut u64) -> Result<u64, Option<SystemTime>> {
    let time = Err(meta.modified().ok());
    if !meta.is_file() || meta.len() > FILE || meta.len() > *left {
        return if meta.is_dir() { Ok(0) } else { time };
    }
    let Ok(bytes) = regular(path, FILE) else { return time };
    *left = left.saturating_sub(bytes.len() as u64);
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    Ok(hasher.finish())
}

/// The text of a small file.
fn text(path: &Path, seen: &Seen) -> Option<String> {
    if seen.folder || seen.length > TEXT {
        return None;
    }
    String::from_utf8(regular(path, TEXT).ok()?).ok()
}

/// The first `most` bytes of a regular file. A pipe without a writer would be waited for, and a link may lead to what never
/// ends.
fn regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !path.symlink_metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(unix)]
fn mode(meta: &fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    meta.permissions().mode()
}

#[cfg(not(unix))]
fn mode(meta: &fs::Metadata) -> u32 {
    u32::from(meta.permissions().readonly())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in ["a.txt", "b.txt", "c.txt", "same.txt"] {
            fs::write(root.join(name), name).unwrap();
        }
        let before = Snapshot::of(root).unwrap();
        assert!(before.changes(root).unwrap().is_empty());
        // what git keeps for itself is none of the task's
        fs::create_dir_all(root.join(".git/objects")).unwrap();
        let before = Snapshot::of(root).unwrap();
        fs::write(root.join(".git/objects/4b825dc"), "x").unwrap();
        assert!(before.changes(root).unwrap().is_empty());
        fs::remove_dir_all(root.join(".git")).unwrap();
        assert_eq!(before.changes(root).unwrap().removed, [".git"]);
        let before = Snapshot::of(root).unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        fs::rename(root.join("a.txt"), root.join("sub/a.txt")).unwrap();
        fs::write(root.join("b.txt"), "B.txt").unwrap();
        // written again, and still the same
        fs::write(root.join("same.txt"), "same.txt").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(root.join("c.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let changes = before.changes(root).unwrap();
        let paths = |entries: &[Entry]| entries.iter().map(|e| e.path.clone()).collect::<Vec<_>>();
        assert_eq!(paths(&changes.created), ["sub", "sub/a.txt"]);
        assert_eq!(paths(&changes.changed), ["b.txt"]);
        assert_eq!(changes.changed[0].text.as_deref(), Some("B.txt"));
        assert_eq!(changes.removed, ["a.txt"]);
        #[cfg(unix)]
        assert_eq!(changes.modes, ["c.txt"]);
        assert!(changes.before.contains("a.txt") && !changes.is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let before = Snapshot::of(dir.path()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("zeros")).unwrap();
        let changes = before.changes(dir.path()).unwrap();
        assert_eq!(
            changes.created.iter().map(|e| (&*e.path, e.text.as_deref())).collect::<Vec<_>>(),
            [("pipe", None), ("zeros", None)]
        );
    }

    #[test]
    fn of_a_folder_that_is_too_large_nobody_knows() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..=ENTRIES {
            fs::create_dir(dir.path().join(i.to_string())).unwrap();
        }
        assert!(Snapshot::of(dir.path()).is_none());
    }
}
