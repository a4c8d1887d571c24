//! Open files that no child is to have: ours are closed by exec anyway, but not those that we were started with
//! (`exec 3>>notes; caro ...`), and no fence stops who writes into a file that is open already.
#![allow(unsafe_code)] // Two system calls on descriptors by number.

/// The number of files that this process may have open, within reason. To be asked before the fork.
pub(super) fn most() -> i32 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    i32::try_from(limit.min(1 << 16)).unwrap_or(1 << 16)
}

/// Has every file but the standard ones closed by exec. For between fork and exec: makes system calls only.
pub(super) fn close_on_exec(most: i32) {
    #[cfg(target_os = "linux")]
    {
        /// `CLOSE_RANGE_CLOEXEC` of linux/close_range.h.
        const FLAG: libc::c_uint = 1 << 2;
        // SAFETY: a system call on descriptors by number; it only sets a flag on those that are open.
        if unsafe { libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, FLAG) } == 0 {
            return;
        }
    }
    for fd in 3..most {
        // SAFETY: as above; a number that is no open file is refused with EBADF.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
