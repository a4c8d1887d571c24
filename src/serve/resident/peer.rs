//! Who is at the other end of a Unix socket, as the kernel says it.
#![allow(unsafe_code)] // Five system calls that neither std nor our build of rustix has.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

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

/// Connects, and does not wait where the queue of whoever listens is full: std would, for ever.
///
/// # Errors
/// The system's: `WouldBlock` where the queue is full (on some systems `ConnectionRefused`).
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    // SAFETY: passes integers and returns a descriptor or -1.
    let socket = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else's.
    let stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(socket) });
    rustix::io::fcntl_setfd(&stream, rustix::io::FdFlags::CLOEXEC)?;
    // SAFETY: all zeros is a valid address without a name; the zero that ends the name is among them.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = path.as_os_str().as_bytes();
    if name.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in address.sun_path.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    stream.set_nonblocking(true)?;
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the descriptor is open while `stream` lives; the kernel reads `length` bytes, the size of the structure.
    let status = unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), length) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Another user, for tests of what he is not to do.
#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::print_stdout)] // a test that is skipped says why
pub(super) mod stranger {
    use rustix::process::Uid;

    /// Nobody, or somebody else: not who runs the tests.
    pub const UID: u32 = 65534;

    /// Does something as that user, in a thread of its own: to Linux each thread has its own. `None`, with a printed reason,
    /// where that is not allowed.
    pub fn does<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
        let user = Uid::from_raw(UID);
        let become_it = || rustix::thread::set_thread_res_uid(user, user, user).is_ok();
        let done = std::thread::scope(|scope| scope.spawn(|| become_it().then(work)).join().unwrap());
        if done.is_none() {
            println!("skipped: only root can be another user");
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn both_ends_are_this_process() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        listen(&listener).unwrap();
        let client = connect(&dir.path().join("s")).unwrap();
        let (server, _) = listener.accept().unwrap();
        for end in [&client, &server] {
            let peer = of(end).unwrap();
            assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
            assert!(peer.pid.is_none_or(|pid| pid == std::process::id()), "{peer:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn each_end_is_told_the_others_user() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        if stranger::does(|| listen(&listener).unwrap()).is_none() {
            return;
        }
        let client = connect(&dir.path().join("s")).unwrap();
        let (server, _) = listener.accept().unwrap();
        let users = [&client, &server].map(|end| of(end).unwrap().uid);
        assert_eq!(users, [stranger::UID, rustix::process::geteuid().as_raw()]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_queue_is_told_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        listen(&listener).unwrap();
        let mut crowd = Vec::new();
        let full = loop {
            match connect(&path) {
                Ok(one) => crowd.push(one),
                Err(e) => break e.kind(),
            }
            assert!(crowd.len() < 1000, "nobody is too many");
        };
        assert_eq!(full, io::ErrorKind::WouldBlock);
        assert_eq!(connect(&dir.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(connect(&dir.path().join("n".repeat(200))).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn what_is_no_socket_has_no_peer() {
        assert!(of(&std::io::stdin()).is_err() || listen(&std::io::stdin()).is_err());
    }
}
