//! Closes open files that no child should inherit. Our own are closed by exec anyway, but not those that we were
//! started with (`exec 3>>notes; caro ...`), and no fence prevents writing to a file that is already open.
#![allow(unsafe_code)] // Two system calls on descriptors by number.

/// Returns the most files that this process may have open, with an upper bound. Must be called before the fork.
pub(super) fn max_files() -> i32 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    i32::try_from(limit.min(1 << 16)).unwrap_or(1 << 16)
}

/// Makes exec close every file but the standard ones. For use between fork and exec: makes system calls only.
pub(super) fn close_on_exec(max_files: i32) {
    #[cfg(target_os = "linux")]
    {
        /// `CLOSE_RANGE_CLOEXEC` of linux/close_range.h.
        const FLAG: libc::c_uint = 1 << 2;
        // SAFETY: a system call on descriptors by number; it only sets a flag on those that are open.
        if unsafe { libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, FLAG) } == 0 {
            return;
        }
    }
    for fd in 3..max_files {
        // SAFETY: as above; a number that is no open file is refused with EBADF.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
