//! Removes what the inventory lists. No link is followed, and no other file system is entered.

use super::inventory::{Extent, Item};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A path that could not be removed, and the reason.
pub type NotRemoved = (PathBuf, String);

/// Removes an item. Returns what could not be removed.
pub fn remove(item: &Item) -> Vec<NotRemoved> {
    match &item.extent {
        Extent::Link(_) => failures(&item.path, allow_absent(fs::remove_file(&item.path))),
        Extent::Whole => remove_tree(&item.path),
        Extent::Entries(entries) => {
            let all: Vec<NotRemoved> = entries.iter().flat_map(|entry| remove_tree(entry)).collect();
            // a folder with other entries stays
            if !entries.contains(&item.path) {
                let inner = entries.iter().filter_map(|entry| entry.parent());
                inner.chain([item.path.as_path()]).for_each(|folder| drop(fs::remove_dir(folder)));
            }
            all
        }
    }
}

/// Removes a file, a link, or a folder with everything in it except what is mounted there.
fn remove_tree(path: &Path) -> Vec<NotRemoved> {
    let meta = match path.symlink_metadata() {
        Ok(meta) => meta,
        Err(e) if e.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(e) => return vec![(path.into(), e.to_string())],
    };
    if !meta.is_dir() {
        return failures(path, allow_absent(fs::remove_file(path)));
    }
    let mounted = mounts(path, &meta);
    if mounted.is_empty() {
        return failures(path, remove_folder(path));
    }
    // removes the entries one by one; what is mounted and the folders above it stay
    let entries: Vec<PathBuf> = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let mut all = Vec::new();
    for entry in entries {
        match mounted.contains(&entry) {
            true => all.push((entry, "another file system is mounted there".into())),
            false => all.extend(remove_tree(&entry)),
        }
    }
    all
}

/// Removes a folder with its contents. `remove_dir_all` follows no link, even one that is made meanwhile.
fn remove_folder(path: &Path) -> io::Result<()> {
    match allow_absent(fs::remove_dir_all(path)) {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            make_accessible(path);
            allow_absent(fs::remove_dir_all(path))
        }
        done => done,
    }
}

/// Counts a path that does not exist as removed.
fn allow_absent(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn failures(path: &Path, done: io::Result<()>) -> Vec<NotRemoved> {
    done.err().map(|e| (path.into(), e.to_string())).into_iter().collect()
}

/// The folders below this one at which another file system begins.
#[cfg(unix)]
fn mounts(path: &Path, meta: &fs::Metadata) -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let (mut mounts, mut waiting) = (Vec::new(), vec![path.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(inner) = entry.metadata() else { continue };
            if inner.dev() != meta.dev() {
                mounts.push(entry.path());
            } else if inner.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    mounts
}

#[cfg(not(unix))]
fn mounts(_: &Path, _: &fs::Metadata) -> Vec<PathBuf> {
    Vec::new()
}

/// Makes the folders accessible to us: undo stores folders with the modes that they had.
#[cfg(unix)]
fn make_accessible(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mut waiting = vec![path.to_owned()];
    while let Some(folder) = waiting.pop() {
        let is_folder = folder.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if !is_folder {
            continue;
        }
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        waiting.extend(fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()));
    }
}

#[cfg(not(unix))]
fn make_accessible(_: &Path) {}

#[cfg(all(test, unix))]
mod tests {
    use super::super::inventory::{Purpose, measure};
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn item(path: &Path, extent: Extent) -> Item {
        let (bytes, files) = measure(path);
        Item { purpose: Purpose::Data, path: path.into(), extent, bytes, files }
    }

    #[test]
    fn the_targets_of_links_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (outside, ours) = (dir.path().join("outside"), dir.path().join("caro"));
        fs::create_dir_all(outside.join("deep")).unwrap();
        fs::write(outside.join("deep/letter"), "dear").unwrap();
        fs::create_dir_all(ours.join("a/b")).unwrap();
        symlink(&outside, ours.join("a/b/out")).unwrap();
        symlink(outside.join("deep/letter"), ours.join("letter")).unwrap();
        assert_eq!(remove(&item(&ours, Extent::Whole)), []);
        assert!(!ours.exists());
        assert_eq!(fs::read_to_string(outside.join("deep/letter")).unwrap(), "dear");
        // a folder of ours that is itself a link
        symlink(&outside, &ours).unwrap();
        assert_eq!(remove(&item(&ours, Extent::Link(outside.clone()))), []);
        assert!(ours.symlink_metadata().is_err() && outside.join("deep/letter").exists());
    }

    #[test]
    fn in_a_folder_of_others_only_our_entries_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["manual.db", "prefix/state", "letter"] {
            fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let entries = || ["manual.db", "prefix", "gone"].map(|name| dir.path().join(name)).to_vec();
        assert_eq!(remove(&item(dir.path(), Extent::Entries(entries()))), []);
        let rest: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(rest, ["letter"]);
        fs::remove_file(dir.path().join("letter")).unwrap();
        assert_eq!(remove(&item(dir.path(), Extent::Entries(entries()))), []);
        assert!(!dir.path().exists(), "nobody has anything in it");
        fs::create_dir(dir.path()).unwrap();
    }

    /// As root this passes in any case.
    #[test]
    fn inaccessible_folders_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let ours = dir.path().join("caro");
        fs::create_dir_all(ours.join("undo/1/closed")).unwrap();
        fs::write(ours.join("undo/1/closed/file"), "x").unwrap();
        fs::set_permissions(ours.join("undo/1/closed"), fs::Permissions::from_mode(0o0)).unwrap();
        assert_eq!(remove(&item(&ours, Extent::Whole)), []);
        assert!(!ours.exists());
    }
}
