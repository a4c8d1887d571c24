//! Reads the changes of a script from the upper layers of overlays. Source: Documentation/filesystems/overlayfs.rst
//! (whiteouts, opaque directories).

use super::mounts::Layer;
use super::report::{Change, ChangeKind, Entry, EntryKind, digest};
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Most changes that are listed.
const MAX_CHANGES: usize = 4096;
/// Deepest nesting of folders that is read.
const MAX_DEPTH: usize = 256;

/// Returns the changes in the layers, by path, and the number of further ones.
pub(super) fn of(layers: &[Layer], digests: bool) -> (Vec<Change>, u64) {
    let mut walk = Walk { digests, changes: Vec::new(), unlisted: 0 };
    for layer in layers {
        walk.folder(&layer.upper, &layer.lower, 0);
    }
    walk.changes.sort_by(|a, b| a.path.cmp(&b.path));
    (walk.changes, walk.unlisted)
}

struct Walk {
    digests: bool,
    changes: Vec<Change>,
    unlisted: u64,
}

impl Walk {
    fn folder(&mut self, upper: &Path, lower: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(upper) else { return };
        for entry in entries.flatten() {
            let (above, below) = (entry.path(), lower.join(entry.file_name()));
            let Ok(now) = fs::symlink_metadata(&above) else { continue };
            let before = fs::symlink_metadata(&below).ok();
            if now.file_type().is_char_device() && now.rdev() == 0 {
                if before.is_some() {
                    self.push(ChangeKind::Deleted, &below, None, false);
                }
                continue;
            }
            match before {
                None => self.push(ChangeKind::Created, &below, Some((&above, &now)), false),
                Some(before) => self.compare(&above, &now, &below, &before),
            }
            if now.is_dir() && depth < MAX_DEPTH {
                self.folder(&above, &below, depth + 1);
                if is_opaque(&above) {
                    self.add_vanished(&above, &below);
                }
            }
        }
    }

    /// Adds the files that were in a folder that was replaced.
    fn add_vanished(&mut self, upper: &Path, lower: &Path) {
        let Ok(entries) = fs::read_dir(lower) else { return };
        for entry in entries.flatten() {
            if fs::symlink_metadata(upper.join(entry.file_name())).is_err() {
                self.push(ChangeKind::Deleted, &entry.path(), None, false);
            }
        }
    }

    /// Adds a change if there is one: an overlay copies up every file that is opened for writing, even if it stays
    /// the same.
    fn compare(&mut self, above: &Path, now: &Metadata, below: &Path, before: &Metadata) {
        let attributes = |m: &Metadata| (m.file_type(), m.mode(), m.uid(), m.gid());
        let same = attributes(now) == attributes(before)
            && match kind(now) {
                EntryKind::File => now.len() == before.len() && same_content(above, below),
                EntryKind::Link => fs::read_link(above).ok() == fs::read_link(below).ok(),
                EntryKind::Folder | EntryKind::Other => true,
            };
        let same_time = now.is_dir() || (now.mtime(), now.mtime_nsec()) == (before.mtime(), before.mtime_nsec());
        if !(same && same_time) {
            self.push(ChangeKind::Changed, below, Some((above, now)), same);
        }
    }

    fn push(&mut self, kind: ChangeKind, path: &Path, now: Option<(&Path, &Metadata)>, time_only: bool) {
        if self.changes.len() >= MAX_CHANGES {
            self.unlisted += 1;
            return;
        }
        let raw = path.to_str().is_none().then(|| path.as_os_str().as_bytes().to_vec());
        let path = path.to_string_lossy().into_owned().into();
        let now = now.map(|(at, meta)| self.entry(at, meta));
        self.changes.push(Change { kind, path, raw, now, time_only });
    }

    fn entry(&self, at: &Path, meta: &Metadata) -> Entry {
        let kind = kind(meta);
        Entry {
            kind,
            mode: meta.mode() & 0o7777,
            user: meta.uid(),
            group: meta.gid(),
            size: if kind == EntryKind::File { meta.len() } else { 0 },
            modified: meta.mtime(),
            target: (kind == EntryKind::Link)
                .then(|| fs::read_link(at).map(|t| t.to_string_lossy().into_owned()).unwrap_or_default()),
            digest: (self.digests && kind == EntryKind::File).then(|| digest(at).unwrap_or_default()),
        }
    }
}

fn kind(meta: &Metadata) -> EntryKind {
    let kind = meta.file_type();
    if kind.is_file() {
        EntryKind::File
    } else if kind.is_dir() {
        EntryKind::Folder
    } else if kind.is_symlink() {
        EntryKind::Link
    } else {
        EntryKind::Other
    }
}

/// True for a folder that hides the lower one.
fn is_opaque(folder: &Path) -> bool {
    ["user.overlay.opaque", "trusted.overlay.opaque"].iter().any(|name| {
        let mut value = [0u8; 1];
        rustix::fs::lgetxattr(folder, *name, &mut value).is_ok() && value == *b"y"
    })
}

fn same_content(one: &Path, other: &Path) -> bool {
    let (Ok(mut one), Ok(mut other)) = (File::open(one), File::open(other)) else { return false };
    let (mut a, mut b) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let Ok(n) = one.read(&mut a) else { return false };
        if n == 0 {
            return matches!(other.read(&mut b), Ok(0));
        }
        if other.read_exact(&mut b[..n]).is_err() || a[..n] != b[..n] {
            return false;
        }
    }
}
