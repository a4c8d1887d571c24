//! Restores the metadata of paths (mode, owner, attributes, times), and pipes and devices, which consist of nothing
//! else.

use super::look;
use super::node::{Attribute, Kind, Node, Role};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Sets the metadata that differs.
///
/// # Errors
/// The system's error for the first item that cannot be set.
pub(super) fn set(path: &Path, node: &Node) -> io::Result<()> {
    let current = look::node(path, Role::Surface)?;
    let is_link = node.kind == Kind::Link;
    let same_owner = (current.user, current.group) == (node.user, node.group);
    if !same_owner {
        let (user, group) = (Uid::from_raw(node.user), Gid::from_raw(node.group));
        rustix::fs::chownat(CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    // a change of owner clears the setuid and setgid bits
    if !is_link && (!same_owner || current.mode != node.mode) {
        fs::set_permissions(path, Permissions::from_mode(node.mode))?;
    }
    set_attributes(path, node, &if same_owner { current } else { look::node(path, Role::Surface)? })?;
    set_times(path, node)
}

/// Sets the times of access and modification.
///
/// # Errors
/// Errors of the system.
pub(super) fn set_times(path: &Path, node: &Node) -> io::Result<()> {
    let time = |(seconds, nanoseconds): (i64, i64)| Timespec { tv_sec: seconds as _, tv_nsec: nanoseconds as _ };
    let times = Timestamps { last_access: time(node.accessed), last_modification: time(node.modified) };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn set_attributes(path: &Path, node: &Node, current: &Node) -> io::Result<()> {
    use rustix::fs::{XattrFlags, lremovexattr, lsetxattr};
    for surplus in missing(&current.attributes, &node.attributes) {
        if !node.attributes.iter().any(|one| one.name() == surplus.name()) {
            lremovexattr(path, surplus.name())?;
        }
    }
    for attribute in missing(&node.attributes, &current.attributes) {
        lsetxattr(path, attribute.name(), &attribute.value, XattrFlags::empty())?;
    }
    Ok(())
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn set_attributes(_: &Path, node: &Node, current: &Node) -> io::Result<()> {
    let _ = missing(&node.attributes, &current.attributes);
    Ok(())
}

/// Creates a pipe or a device.
///
/// # Errors
/// Errors of the system; for a socket always.
pub(super) fn make_special(node: &Node) -> io::Result<()> {
    match node.kind {
        Kind::Pipe => make(node, FileType::Fifo),
        Kind::Device => make(node, FileType::CharacterDevice),
        Kind::BlockDevice => make(node, FileType::BlockDevice),
        _ => Err(io::Error::other("only the program that listens at it can make a socket again")),
    }
}

#[cfg(not(target_vendor = "apple"))]
fn make(node: &Node, kind: FileType) -> io::Result<()> {
    Ok(rustix::fs::mknodat(CWD, &node.path, kind, Mode::from_raw_mode(0o600), node.special)?)
}

#[cfg(target_vendor = "apple")]
fn make(node: &Node, _: FileType) -> io::Result<()> {
    let _ = (Mode::empty(), &node.path);
    Err(io::Error::other("pipes and devices cannot be made again on this system"))
}

/// Runs `act` while a file or folder of this user temporarily has more rights.
///
/// # Errors
/// The error of `act`, or that of the system if the rights cannot be changed.
pub(super) fn with_rights<T>(path: &Path, rights: u32, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mode = fs::symlink_metadata(path)?.permissions().mode() & 0o7777;
    fs::set_permissions(path, Permissions::from_mode(mode | rights))?;
    let done = act();
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    done
}

/// Returns the attributes of a list that another list does not have.
pub(super) fn missing<'a>(of: &'a [Attribute], other: &[Attribute]) -> Vec<&'a Attribute> {
    of.iter().filter(|one| !other.contains(one)).collect()
}
