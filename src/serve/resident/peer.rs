//! Who is at the other end of a Unix socket, as the kernel says it.
#![allow(unsafe_code)] // Three system calls that neither std nor our build of rustix has.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The process at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    /// Its user.
    pub uid: u32,
    /// The process that connected or, seen from a client, that listens; `None` where the system does not tell.
    pub pid: Option<u32>,
}

/// The peer of a connected socket. Source: unix(7), SO_PEERCRED.
///
/// # Errors
/// The system's.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn of(socket: &impl AsFd) -> io::Result<Peer> {
    let mut credentials = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open while `socket` is borrowed; the kernel writes at most `length` bytes, which is the size
    // of the structure that the pointer is to, and any bytes are a valid one.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer { uid: credentials.uid, pid: u32::try_from(credentials.pid).ok().filter(|pid| *pid != 0) })
}

/// The peer of a connected socket. Source: getpeereid(3) of the BSDs and macOS.
///
/// # Errors
/// The system's.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn of(socket: &impl AsFd) -> io::Result<Peer> {
    let (mut uid, mut gid) = (libc::uid_t::MAX, libc::gid_t::MAX);
    // SAFETY: the descriptor is open while `socket` is borrowed, and both pointers are to live integers of the right type.
    let status = unsafe { libc::getpeereid(socket.as_fd().as_raw_fd(), &raw mut uid, &raw mut gid) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer { uid, pid: None })
}

/// Makes this process the one that listens, as clients see it: the socket was made by the one that started us. Source:
/// the kernel notes the credentials in listen(2).
///
/// # Errors
/// The system's; `InvalidInput` too for what is no bound socket.
pub(super) fn listen(socket: &impl AsFd) -> io::Result<()> {
    // SAFETY: no memory is passed; the descriptor is open while `socket` is borrowed.
    let status = unsafe { libc::listen(socket.as_fd().as_raw_fd(), 64) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn both_ends_are_this_process() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        listen(&listener).unwrap();
        let client = UnixStream::connect(dir.path().join("s")).unwrap();
        let (server, _) = listener.accept().unwrap();
        for end in [&client, &server] {
            let peer = of(end).unwrap();
            assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
            assert!(peer.pid.is_none_or(|pid| pid == std::process::id()), "{peer:?}");
        }
    }

    #[test]
    fn what_is_no_socket_has_no_peer() {
        assert!(of(&std::io::stdin()).is_err() || listen(&std::io::stdin()).is_err());
    }
}
