//! Asks the kernel for the user and process at the other end of a Unix socket, and connects and listens without
//! waiting.
#![allow(unsafe_code)] // five system calls that neither std nor the enabled features of rustix have

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The process at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    /// Its user id.
    pub uid: u32,
    /// The process id of the one that connected or, seen from a client, that listens; `None` if the system does not
    /// report it.
    pub pid: Option<u32>,
}

/// Returns the peer of a connected socket. Source: unix(7), SO_PEERCRED.
///
/// # Errors
/// If the system call fails.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn of(socket: &impl AsFd) -> io::Result<Peer> {
    let mut credentials = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open while `socket` is borrowed; the kernel writes at most `length` bytes, the size of
    // the structure pointed to, for which any bytes are valid.
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

/// Returns the peer of a connected socket. Source: getpeereid(3) of the BSDs and macOS.
///
/// # Errors
/// If the system call fails.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn of(socket: &impl AsFd) -> io::Result<Peer> {
    let (mut uid, mut gid) = (libc::uid_t::MAX, libc::gid_t::MAX);
    // SAFETY: the descriptor is open while `socket` is borrowed; both pointers are to live integers of the right type.
    let status = unsafe { libc::getpeereid(socket.as_fd().as_raw_fd(), &raw mut uid, &raw mut gid) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer { uid, pid: None })
}

/// Makes this process the one that clients see as listening, on a socket that its parent created: the kernel records
/// the credentials of the process that calls listen(2).
///
/// # Errors
/// If the system call fails; `InvalidInput` if it is not a bound socket.
pub(super) fn listen(socket: &impl AsFd) -> io::Result<()> {
    // SAFETY: no memory is passed; the descriptor is open while `socket` is borrowed.
    let status = unsafe { libc::listen(socket.as_fd().as_raw_fd(), 64) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Connects without waiting if the listener's queue is full, where std would wait without limit.
///
/// # Errors
/// If a system call fails: `WouldBlock` if the queue is full (on some systems `ConnectionRefused`).
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    // SAFETY: passes integers and returns a descriptor or -1.
    let socket = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and owned by nothing else.
    let stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(socket) });
    rustix::io::fcntl_setfd(&stream, rustix::io::FdFlags::CLOEXEC)?;
    // SAFETY: all zeros is a valid address without a name, and includes the zero that ends the name.
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

/// Runs code as another user, for tests of access.
#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::print_stdout)] // a skipped test prints the reason
pub(super) mod stranger {
    use rustix::process::Uid;

    /// The id of a user (`nobody`) other than the one that runs the tests.
    pub const UID: u32 = 65534;

    /// Runs `work` as that user, in a new thread: on Linux each thread has its own user id. `None`, with a printed
    /// reason, if that is not allowed.
    pub fn run_as<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
        let user = Uid::from_raw(UID);
        let become_user = || rustix::thread::set_thread_res_uid(user, user, user).is_ok();
        let result = std::thread::scope(|scope| scope.spawn(|| become_user().then(work)).join().unwrap());
        if result.is_none() {
            println!("skipped: only root can be another user");
        }
        result
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
    fn each_end_sees_the_user_of_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        if stranger::run_as(|| listen(&listener).unwrap()).is_none() {
            return;
        }
        let client = connect(&dir.path().join("s")).unwrap();
        let (server, _) = listener.accept().unwrap();
        let users = [&client, &server].map(|end| of(end).unwrap().uid);
        assert_eq!(users, [stranger::UID, rustix::process::geteuid().as_raw()]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn connecting_to_a_full_queue_fails_at_once() {
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
    fn a_descriptor_that_is_no_socket_has_no_peer() {
        assert!(of(&std::io::stdin()).is_err() || listen(&std::io::stdin()).is_err());
    }
}
