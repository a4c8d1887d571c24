//! The helper's system calls that the standard library lacks, each with the reason why it is safe. The helper has one
//! thread.
#![allow(unsafe_code)] // fork, mounts and namespaces exist as C functions only.

use std::ffi::{CString, c_int, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// Closes every descriptor but the standard ones: one left open by our caller would lead out of the view.
pub(super) fn close_others() -> io::Result<()> {
    let first: libc::c_uint = 3;
    // SAFETY: takes integers. Nothing of ours is open yet beyond the standard streams.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Enters new namespaces (`CLONE_NEW*`).
pub(super) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: takes an integer; the process has one thread, as CLONE_NEWUSER wants.
    check(unsafe { libc::unshare(flags) })
}

/// Mounts a file system. Pass an empty source or type if the flags do not need it.
pub(super) fn mount(source: &Path, target: &Path, kind: &str, flags: c_ulong, data: &str) -> io::Result<()> {
    let (source, target) = (c_path(source)?, c_path(target)?);
    let (kind, data) = (CString::new(kind)?, CString::new(data)?);
    // SAFETY: five pointers to strings that end in NUL and live until the call returns.
    check(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast::<c_void>())
    })
}

/// Sets attributes (`MOUNT_ATTR_*`) on a mount, and with `recursive` on all below it. Source: mount_setattr(2).
pub(super) fn set_attributes(target: &Path, attributes: u64, recursive: bool) -> io::Result<()> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        userns: u64,
    }
    let target = c_path(target)?;
    let attr = MountAttr { set: attributes, clear: 0, propagation: 0, userns: 0 };
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: a string that ends in NUL and a structure of the size that is given, both alive until the call returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            target.as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes `root` the root of this mount namespace and detaches the old one. Source: pivot_root(2), `pivot_root(".",
/// ".")`.
pub(super) fn become_root(root: &Path) -> io::Result<()> {
    std::env::set_current_dir(root)?;
    // SAFETY: two constant strings that end in NUL.
    let result = unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a constant string that ends in NUL.
    check(unsafe { libc::umount2(c".".as_ptr(), libc::MNT_DETACH) })?;
    std::env::set_current_dir("/")
}

/// The side of a fork.
pub(super) enum Fork {
    Child,
    Parent(libc::pid_t),
}

/// Forks.
pub(super) fn fork() -> io::Result<Fork> {
    // SAFETY: the process has one thread, so no lock can be held by another in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        child => Ok(Fork::Parent(child)),
    }
}

/// Ends this process at once, without the cleanup that its parent does too.
pub(super) fn exit_now(code: c_int) -> ! {
    // SAFETY: never returns, runs no handlers.
    unsafe { libc::_exit(code) }
}

/// Waits for a child, or for any if `-1`. Returns its process id and wait status; `None` if there is no child.
pub(super) fn wait(child: libc::pid_t) -> Option<(libc::pid_t, c_int)> {
    let mut status = 0;
    loop {
        // SAFETY: a pointer to an integer of ours.
        let found = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if found > 0 {
            return Some((found, status));
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
}

/// Kills a process.
pub(super) fn kill(process: libc::pid_t) {
    // SAFETY: takes two integers. The process is a child that has not been waited for, so its number is not reused.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Waits until a descriptor is readable or closed by its writers; false at the deadline.
pub(super) fn readable(fd: BorrowedFd<'_>, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let millis = c_int::try_from(left.as_millis().saturating_add(1)).unwrap_or(c_int::MAX);
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: a pointer to one structure of ours, and the number one.
        let found = unsafe { libc::poll(&raw mut poll, 1, millis) };
        if found > 0 {
            return true;
        }
        if left == Duration::ZERO {
            return false;
        }
    }
}

/// Calls `prctl` with one argument.
pub(super) fn prctl(option: c_int, argument: c_ulong) -> io::Result<()> {
    // SAFETY: the options used here (PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_CAP_AMBIENT clear-all) take integers only.
    check(unsafe { libc::prctl(option, argument, 0 as c_ulong, 0 as c_ulong, 0 as c_ulong) })
}

/// Unmounts a mount and everything on it.
pub(super) fn unmount(target: &Path) -> io::Result<()> {
    let target = c_path(target)?;
    // SAFETY: a string that ends in NUL and lives until the call returns.
    check(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) })
}
