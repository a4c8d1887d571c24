//! Detects what calls changed below the working directory, by comparing it before and after. Predicted effects and
//! printed output may be wrong; this shows what happened.

use crate::evidence::{Changes, Entry, Measured, Query};
use caro_base::files::open_nonblocking;
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

/// Folders that belong to other programs: changes inside them are ignored, but not their creation and removal.
const TOOL_FOLDERS: &[&str] = &[".git", ".hg", ".svn", "node_modules", "__pycache__"];
/// Most entries compared; of a larger folder the changes are unknown.
const MAX_ENTRIES: usize = 4000;
/// Most levels of folders entered.
const MAX_DEPTH: usize = 12;
/// Largest file whose text is compared, bytes; of a larger one the modification time is compared.
const MAX_HASHED_BYTES: u64 = 256 << 10;
/// Most bytes read of all files together.
const MAX_TOTAL_BYTES: u64 = 24 << 20;
/// Longest text of a changed file that is stored, bytes.
const MAX_TEXT_BYTES: u64 = 32 << 10;

/// The state of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EntryState {
    folder: bool,
    mode: u32,
    length: u64,
    /// The hash of the text if it was read, else the modification time.
    text: Result<u64, Option<SystemTime>>,
}

/// The state of a folder.
#[derive(Debug, Clone)]
pub(super) struct Snapshot(BTreeMap<String, EntryState>);

impl Snapshot {
    /// Takes a snapshot of a folder; `None` if it has too many entries.
    pub(super) fn of(root: &Path) -> Option<Self> {
        let mut seen = BTreeMap::new();
        let mut left = MAX_TOTAL_BYTES;
        let mut folders = vec![(root.to_path_buf(), String::new(), 0)];
        while let Some((folder, name, depth)) = folders.pop() {
            // folders that cannot be read are taken as unchanged
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = format!("{name}{}", entry.file_name().to_string_lossy());
                let Ok(meta) = entry.path().symlink_metadata() else { continue };
                if meta.is_dir() && depth < MAX_DEPTH && !is_tool_folder(&entry.file_name()) {
                    folders.push((entry.path(), format!("{path}/"), depth + 1));
                }
                let text = digest(&entry.path(), &meta, &mut left);
                let length = if meta.is_dir() { 0 } else { meta.len() };
                seen.insert(path, EntryState { folder: meta.is_dir(), mode: mode(&meta), length, text });
                if seen.len() > MAX_ENTRIES {
                    return None;
                }
            }
        }
        Some(Self(seen))
    }

    /// Returns the changes since the snapshot; `None` if the folder now has too many entries.
    pub(super) fn changes(&self, root: &Path) -> Option<Changes> {
        let now = Self::of(root)?;
        let mut changes = Changes { before: self.0.keys().cloned().collect(), ..Changes::default() };
        for (path, seen) in &now.0 {
            let entry = || Entry { path: path.clone(), folder: seen.folder, text: text(&root.join(path), seen) };
            match self.0.get(path) {
                None => changes.created.push(entry()),
                Some(before) if before == seen => {}
                // of a folder only the permissions count: its contents have entries of their own
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

/// Returns the query of a part that asks for files, with all files below `root`; `None` if the part has no query that
/// can be checked, or there are too many files.
pub(super) fn measured_files(part: &str, root: &Path) -> Option<(Query, Vec<Measured>)> {
    let query = Query::of(&super::referents::mark_local_folders(part, root))?;
    let mut files = Vec::new();
    let (mut entries, mut folders) = (0, vec![(root.to_path_buf(), String::new(), 0)]);
    while let Some((folder, name, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).ok()?.flatten() {
            entries += 1;
            let path = format!("{name}{}", entry.file_name().to_string_lossy());
            let meta = entry.path().symlink_metadata().ok()?;
            if meta.is_dir() && is_tool_folder(&entry.file_name()) {
                continue;
            }
            if meta.is_dir() {
                folders.push((entry.path(), format!("{path}/"), depth + 1));
            } else if meta.is_file() {
                files.push(Measured { path, bytes: meta.len(), taken: taken(&meta), modified: meta.modified().ok()? });
            }
            if entries > MAX_ENTRIES || depth > MAX_DEPTH {
                return None;
            }
        }
    }
    Some((query, files))
}

fn is_tool_folder(name: &std::ffi::OsStr) -> bool {
    TOOL_FOLDERS.iter().any(|folder| name == *folder)
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
    if !meta.is_file() || meta.len() > MAX_HASHED_BYTES || meta.len() > *left {
        return if meta.is_dir() { Ok(0) } else { time };
    }
    let Ok(bytes) = read_regular(path, MAX_HASHED_BYTES) else { return time };
    *left = left.saturating_sub(bytes.len() as u64);
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    Ok(hasher.finish())
}

/// Reads the text of a small file.
fn text(path: &Path, seen: &EntryState) -> Option<String> {
    if seen.folder || seen.length > MAX_TEXT_BYTES {
        return None;
    }
    String::from_utf8(read_regular(path, MAX_TEXT_BYTES).ok()?).ok()
}

/// Reads the first `most` bytes of a regular file. A pipe without a writer and some files of the kernel would block, and
/// a link may lead to an endless device.
fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !path.symlink_metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    open_nonblocking(path)?.take(most).read_to_end(&mut bytes)?;
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
    fn changes_are_detected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in ["a.txt", "b.txt", "c.txt", "same.txt"] {
            fs::write(root.join(name), name).unwrap();
        }
        let before = Snapshot::of(root).unwrap();
        assert!(before.changes(root).unwrap().is_empty());
        // changes inside `.git` are ignored
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
        // rewritten with the same text
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
    fn pipes_and_links_are_not_read() {
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
    fn too_large_a_folder_has_no_snapshot() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..=MAX_ENTRIES {
            fs::create_dir(dir.path().join(i.to_string())).unwrap();
        }
        assert!(Snapshot::of(dir.path()).is_none());
    }
}
