//! Reads the state of paths from the disk. It follows no links and opens only folders, and the
//! indexes of git repositories.

use super::node::{Attribute, Kind, Node, Role};
use super::plan::Target;
use super::{MAX_FILES, UndoError, content, git_index};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Returns the current state of a path.
///
/// # Errors
/// Errors of the system. An absent path is no error.
pub fn node(path: &Path, role: Role) -> io::Result<Node> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Node::absent(path, role));
        }
        Err(e) => return Err(e),
    };
    let kind = kind(&meta);
    Ok(Node {
        kind,
        mode: meta.mode() & 0o7777,
        user: meta.uid(),
        group: meta.gid(),
        size: meta.len(),
        room: if kind == Kind::File { meta.len().min(meta.blocks().saturating_mul(512)) } else { 0 },
        modified: (meta.mtime(), meta.mtime_nsec()),
        accessed: (meta.atime(), meta.atime_nsec()),
        device: meta.dev(),
        inode: meta.ino(),
        names: meta.nlink(),
        special: if matches!(kind, Kind::Device | Kind::BlockDevice) { meta.rdev() } else { 0 },
        target: if kind == Kind::Link { Some(fs::read_link(path)?) } else { None },
        attributes: attributes(path)?,
        index_entries: if kind == Kind::File && role == Role::Whole { index_entries(path) } else { None },
        ..Node::absent(path, role)
    })
}

/// Returns the digest of the entries of a git index; `None` for any other file, and for an index that cannot be read.
fn index_entries(path: &Path) -> Option<String> {
    if path.file_name()? != "index" {
        return None;
    }
    let mut bytes = Vec::new();
    content::open(path).ok()?.take(git_index::MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > git_index::MAX_BYTES { None } else { git_index::digest(&bytes) }
}

fn kind(meta: &fs::Metadata) -> Kind {
    let kind = meta.file_type();
    if kind.is_file() {
        Kind::File
    } else if kind.is_dir() {
        Kind::Folder
    } else if kind.is_symlink() {
        Kind::Link
    } else if kind.is_fifo() {
        Kind::Pipe
    } else if kind.is_socket() {
        Kind::Socket
    } else if kind.is_block_device() {
        Kind::BlockDevice
    } else {
        Kind::Device
    }
}

/// Returns the extended attributes of a path, by name.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn attributes(path: &Path) -> io::Result<Vec<Attribute>> {
    /// Most bytes of all names, and of one value; no file system has more.
    const MAX_BYTES: usize = 64 << 10;
    let is_unavailable = |e: rustix::io::Errno| {
        use rustix::io::Errno;
        matches!(e, Errno::NOTSUP | Errno::NOSYS | Errno::PERM | Errno::ACCESS)
    };
    match rustix::fs::llistxattr_query(path) {
        Ok(0) => return Ok(Vec::new()),
        Err(e) if is_unavailable(e) => return Ok(Vec::new()),
        _ => {}
    }
    let mut names = vec![0u8; MAX_BYTES];
    let length = rustix::fs::llistxattr(path, &mut names[..])?;
    let mut found = Vec::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0u8; MAX_BYTES];
        match rustix::fs::lgetxattr(path, name, &mut value[..]) {
            Ok(length) => value.truncate(length),
            // it was removed meanwhile, or this user may not read it
            Err(e) if is_unavailable(e) || e == rustix::io::Errno::NODATA => continue,
            Err(e) => return Err(e.into()),
        }
        found.push(Attribute::new(OsStr::from_bytes(name).to_owned(), value));
    }
    found.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(found)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn attributes(_: &Path) -> io::Result<Vec<Attribute>> {
    Ok(Vec::new())
}

/// Returns the current states of all targets: the folders above them first, then each folder before its content.
///
/// # Errors
/// If something cannot be read, or there are more than [`MAX_FILES`].
pub fn all_nodes(targets: &[Target]) -> Result<Vec<Node>, UndoError> {
    let mut found = above(targets)?;
    for target in targets {
        walk(target, None, &mut found)?;
    }
    Ok(found)
}

/// Returns the states of the folders above the targets.
fn above(targets: &[Target]) -> Result<Vec<Node>, UndoError> {
    let mut paths: BTreeSet<&Path> = BTreeSet::new();
    for target in targets {
        paths.extend(target.path.ancestors().skip(1));
    }
    let own: BTreeSet<&Path> = targets.iter().map(|target| target.path.as_path()).collect();
    let paths = paths.into_iter().filter(|path| !own.contains(path));
    paths.map(|path| node(path, Role::Above).map_err(|e| UndoError::unreadable(path, e))).collect()
}

/// Adds the states of a target and everything below it; returns false if the deadline passed.
pub(super) fn walk(target: &Target, deadline: Option<Instant>, found: &mut Vec<Node>) -> Result<bool, UndoError> {
    let role = if target.whole() { Role::Whole } else { Role::Surface };
    let mut waiting: Vec<PathBuf> = vec![target.path.clone()];
    while let Some(path) = waiting.pop() {
        if found.len() >= MAX_FILES {
            return Err(UndoError::TooMany);
        }
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Ok(false);
        }
        let failed = |e| UndoError::unreadable(&path, e);
        let node = node(&path, role).map_err(failed)?;
        let is_folder = node.kind == Kind::Folder;
        found.push(node);
        if !is_folder || !target.deep {
            continue;
        }
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            // it was deleted meanwhile
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            Err(e) => return Err(failed(e)),
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(failed)?.file_name());
            if names.len() > MAX_FILES {
                return Err(UndoError::TooMany);
            }
        }
        names.sort_unstable_by(|a, b| b.cmp(a));
        waiting.extend(names.into_iter().map(|name| path.join(name)));
    }
    Ok(true)
}
