//! Lists the running residents and ends them, for `caro status` and `caro stop`.

use super::folder::{Folder, socket_id};
use super::record::Record;
use super::wire::{Call, Channel, MAX_REPLY_BYTES, Reply};
use super::{Absent, Ended, Status, peer, record};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// Time for a resident to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);
/// Time for a resident to end.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// Time to wait for the lock of the folder.
const LOCK_TIMEOUT: Duration = Duration::from_millis(200);

/// A connection to a resident of this user.
struct Connection {
    channel: Channel,
    pid: Option<u32>,
}

/// Lists the residents of this user in `folder`: the status of each, or for one that does not answer its process id,
/// if the system reports it.
///
/// # Errors
/// [`Absent::Folder`] if the folder is not private.
pub fn list(folder: &Path) -> Result<Vec<Result<Status, Option<u32>>>, Absent> {
    let Some(folder) = Folder::existing(folder)? else { return Ok(Vec::new()) };
    let mut all: Vec<Result<Status, Option<u32>>> = Vec::new();
    for socket in folder.sockets() {
        let Some(mut found) = connect(&folder, &socket) else { continue };
        let reply = found.channel.send(&Call::Status).and_then(|()| found.channel.receive(Some(ANSWER_TIMEOUT)));
        all.push(match reply {
            Ok(Some(Reply::Status(status))) => Ok(*status),
            _ => Err(found.pid),
        });
    }
    let is_listed = |pid: u32| all.iter().any(|one| one.as_ref().map_or_else(|pid| *pid, |s| Some(s.pid)) == Some(pid));
    // residents without a socket, except those that are ending by themselves
    let is_lost = |one: &Record| !is_listed(one.pid) && (!one.leaving || one.is_stopped());
    let more: Vec<_> = record::all(&folder, None).into_iter().filter(is_lost).map(|one| Err(Some(one.pid))).collect();
    all.extend(more);
    Ok(all)
}

/// Ends the residents of this user in `folder` at once: callers that wait for an answer compute it themselves. Each is
/// asked to end; one that does not answer or no longer listens gets SIGTERM and then SIGKILL.
///
/// # Errors
/// [`Absent::Folder`] if the folder is not private; [`Absent::Lost`] if a process does not end.
pub fn stop(folder: &Path) -> Result<Vec<Ended>, Absent> {
    let Some(folder) = Folder::existing(folder)? else { return Ok(Vec::new()) };
    let mut records = record::all(&folder, None);
    let (mut ended, mut asked) = (Vec::new(), Vec::new());
    for socket in folder.sockets() {
        let Some(mut found) = connect(&folder, &socket) else { continue };
        if found.channel.send(&Call::Stop).is_ok() && wait_until_closed(&mut found.channel) {
            asked.extend(found.pid);
            ended.push(Ended::Asked(found.pid.unwrap_or_default()));
        } else if let Some(record) = found.pid.and_then(Record::of_peer)
            && !records.iter().any(|known| known.pid == record.pid)
        {
            records.push(record);
        }
    }
    let mut any_left = false;
    for record in &records {
        // it has closed its socket, but its process may take a moment to end
        if asked.contains(&record.pid) && record.wait_until_ended(END_TIMEOUT) {
            continue;
        }
        match record.terminate(END_TIMEOUT) {
            true => ended.push(Ended::Killed(record.pid)),
            false => any_left = true,
        }
    }
    folder.sockets().iter().for_each(|socket| remove_dead_socket(&folder, socket));
    // removes the records of the processes that have ended
    record::all(&folder, None);
    if any_left { Err(Absent::Lost("does not answer, and cannot be ended")) } else { Ok(ended) }
}

/// Connects to a socket; `None` if the listener is not of this user. Removes the socket if no process listens.
fn connect(folder: &Folder, socket: &Path) -> Option<Connection> {
    let stream = match peer::connect(socket) {
        Ok(stream) => stream,
        Err(e) => {
            if e.kind() == ErrorKind::ConnectionRefused {
                remove_dead_socket(folder, socket);
            }
            return None;
        }
    };
    let peer = peer::of(&stream).ok()?;
    if peer.uid != rustix::process::geteuid().as_raw() {
        return None;
    }
    Some(Connection { channel: Channel::new(stream, MAX_REPLY_BYTES).ok()?, pid: peer.pid })
}

/// Removes a socket, unless a process listens at it by now.
fn remove_dead_socket(folder: &Folder, socket: &Path) {
    let before = socket_id(socket);
    if let Ok(_lock) = folder.lock(LOCK_TIMEOUT)
        && socket_id(socket) == before
        && peer::connect(socket).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused)
    {
        let _ = fs::remove_file(socket);
    }
}

/// Waits until the other end closes the connection, as a process that ends does; false if it does not in time.
fn wait_until_closed(channel: &mut Channel) -> bool {
    loop {
        match channel.receive::<Reply>(Some(END_TIMEOUT)) {
            Ok(Some(Reply::Leaving)) => {}
            Ok(_) => return false,
            Err(e) => return e.kind() != ErrorKind::InvalidData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    /// A call creates the socket before the resident that it starts listens at it.
    #[test]
    fn a_process_that_starts_a_resident_is_not_killed() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let socket = dir.path().join("s.sock");
        let _listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(stop(dir.path()).unwrap(), []);
        assert!(socket.exists(), "somebody listens");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_listener_of_another_user_is_neither_asked_nor_ended() {
        use super::peer::stranger;
        use std::io::Read;
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let socket = dir.path().join("s.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        if stranger::run_as(|| peer::listen(&listener).unwrap()).is_none() {
            return;
        }
        assert!(list(dir.path()).unwrap().is_empty() && stop(dir.path()).unwrap().is_empty());
        for verb in ["status", "stop"] {
            let (mut stream, mut received) = (listener.accept().unwrap().0, Vec::new());
            stream.read_to_end(&mut received).unwrap();
            assert_eq!(String::from_utf8_lossy(&received), "", "{verb}");
        }
        assert!(socket.exists(), "what is his is left alone");
    }
}
