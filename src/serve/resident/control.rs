//! What runs, and how to end it.

use super::folder::Folder;
use super::link::number;
use super::wire::{Call, Channel, MOST_REPLY, Reply};
use super::{Absent, Ended, Status, WORD, peer};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// The time that a resident has to answer.
const ANSWER: Duration = Duration::from_millis(500);
/// The time that it has to end.
const END: Duration = Duration::from_secs(2);
/// How long somebody else may hold the lock.
const LOCK: Duration = Duration::from_millis(200);

/// Somebody who listens.
struct Found {
    channel: Channel,
    pid: Option<u32>,
}

/// Every resident of this user whose socket is in `folder`; `None` for one that does not answer, with its process where the
/// system tells it.
///
/// # Errors
/// [`Absent::Folder`] if the folder is not safe.
pub fn list(folder: &Path) -> Result<Vec<Result<Status, Option<u32>>>, Absent> {
    let Some(folder) = Folder::existing(folder)? else { return Ok(Vec::new()) };
    let all = folder.sockets().into_iter().filter_map(|socket| {
        let mut found = connect(&folder, &socket)?;
        let said = found.channel.send(&Call::Status).and_then(|()| found.channel.receive(Some(ANSWER)));
        Some(match said {
            Ok(Some(Reply::Status(status))) => Ok(*status),
            _ => Err(found.pid),
        })
    });
    Ok(all.collect())
}

/// Ends every resident of this user whose socket is in `folder`, at once: who waits for an answer computes it itself.
///
/// # Errors
/// [`Absent::Folder`] if the folder is not safe.
pub fn stop(folder: &Path) -> Result<Vec<Ended>, Absent> {
    let Some(folder) = Folder::existing(folder)? else { return Ok(Vec::new()) };
    let ended = folder.sockets().into_iter().filter_map(|socket| {
        let mut found = connect(&folder, &socket)?;
        let asked = found.channel.send(&Call::Stop).is_ok() && is_gone(&mut found.channel);
        if !asked {
            kill(found.pid.filter(|pid| is_resident(*pid))?);
            is_gone(&mut found.channel);
        }
        clear(&folder, &socket);
        Some(if asked { Ended::Asked(found.pid.unwrap_or_default()) } else { Ended::Killed(found.pid?) })
    });
    Ok(ended.collect())
}

/// Whoever listens at the socket, if it is this user; a socket that nobody listens at is removed.
fn connect(folder: &Folder, socket: &Path) -> Option<Found> {
    let stream = match peer::connect(socket) {
        Ok(stream) => stream,
        Err(e) => {
            if e.kind() == ErrorKind::ConnectionRefused {
                clear(folder, socket);
            }
            return None;
        }
    };
    let peer = peer::of(&stream).ok().filter(|peer| peer.uid == rustix::process::geteuid().as_raw())?;
    Some(Found { channel: Channel::new(stream, MOST_REPLY).ok()?, pid: peer.pid })
}

/// Removes a socket, unless somebody listens there after all.
fn clear(folder: &Folder, socket: &Path) {
    let before = number(socket);
    if let Ok(_lock) = folder.lock(LOCK)
        && number(socket) == before
        && peer::connect(socket).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused)
    {
        let _ = fs::remove_file(socket);
    }
}

/// Waits until the other end has closed, which its process does when it ends.
fn is_gone(channel: &mut Channel) -> bool {
    loop {
        match channel.receive::<Reply>(Some(END)) {
            Ok(Some(Reply::Leaving)) => {}
            Ok(_) => return false,
            Err(e) => return e.kind() != ErrorKind::InvalidData,
        }
    }
}

/// True of a process that was started as a resident. Until one that is just being started begins, the kernel names who starts
/// it: somebody's call. Source: proc_pid_cmdline(5); where there is no such file, the kernel does not name processes either.
fn is_resident(pid: u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(WORD.as_bytes())
}

/// Ends a process that does not listen to words. The kernel named it as the one behind the socket just now.
fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    /// As a call does that has made the socket for a resident which does not listen yet.
    #[test]
    fn who_starts_a_resident_is_not_killed_in_its_stead() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let socket = dir.path().join("s.sock");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(stop(dir.path()).unwrap(), []);
        assert!(socket.exists(), "somebody listens");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn another_user_who_listens_is_neither_asked_nor_ended() {
        use super::peer::stranger;
        use std::io::Read;
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let socket = dir.path().join("s.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        if stranger::does(|| peer::listen(&listener).unwrap()).is_none() {
            return;
        }
        assert!(list(dir.path()).unwrap().is_empty() && stop(dir.path()).unwrap().is_empty());
        for verb in ["status", "stop"] {
            let (mut stream, mut said) = (listener.accept().unwrap().0, Vec::new());
            stream.read_to_end(&mut said).unwrap();
            assert_eq!(String::from_utf8_lossy(&said), "", "{verb}");
        }
        assert!(socket.exists(), "what is his is left alone");
    }
}
