//! What runs, and how to end it.

use super::folder::{Folder, number};
use super::record::Record;
use super::wire::{Call, Channel, MOST_REPLY, Reply};
use super::{Absent, Ended, Status, peer, record};
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

/// Every resident of this user that belongs to `folder`; for one that does not answer its process, where the system tells it.
///
/// # Errors
/// [`Absent::Folder`] if the folder is not safe.
pub fn list(folder: &Path) -> Result<Vec<Result<Status, Option<u32>>>, Absent> {
    let Some(folder) = Folder::existing(folder)? else { return Ok(Vec::new()) };
    let mut all: Vec<Result<Status, Option<u32>>> = Vec::new();
    for socket in folder.sockets() {
        let Some(mut found) = connect(&folder, &socket) else { continue };
        let said = found.channel.send(&Call::Status).and_then(|()| found.channel.receive(Some(ANSWER)));
        all.push(match said {
            Ok(Some(Reply::Status(status))) => Ok(*status),
            _ => Err(found.pid),
        });
    }
    let is_listed = |pid: u32| all.iter().any(|one| one.as_ref().map_or_else(|pid| *pid, |s| Some(s.pid)) == Some(pid));
    // those that have lost their socket, but for one that is just ending by itself
    let lost = |one: &Record| !is_listed(one.pid) && (!one.leaving || one.stands_still());
    let more: Vec<_> = record::all(&folder, None).into_iter().filter(lost).map(|one| Err(Some(one.pid))).collect();
    all.extend(more);
    Ok(all)
}

/// Ends every resident of this user that belongs to `folder`, at once: who waits for an answer computes it itself. Each is
/// asked; one that does not answer, or does not listen any more, is told by a signal and then ended by one.
///
/// # Errors
/// [`Absent::Folder`] if the folder is not safe; [`Absent::Lost`] for one that nothing ends.
pub fn stop(folder: &Path) -> Result<Vec<Ended>, Absent> {
    let Some(folder) = Folder::existing(folder)? else { return Ok(Vec::new()) };
    let mut records = record::all(&folder, None);
    let (mut ended, mut asked) = (Vec::new(), Vec::new());
    for socket in folder.sockets() {
        let Some(mut found) = connect(&folder, &socket) else { continue };
        if found.channel.send(&Call::Stop).is_ok() && is_gone(&mut found.channel) {
            asked.extend(found.pid);
            ended.push(Ended::Asked(found.pid.unwrap_or_default()));
        } else if let Some(record) = found.pid.and_then(Record::of_peer)
            && !records.iter().any(|known| known.pid == record.pid)
        {
            records.push(record);
        }
    }
    let mut stays = false;
    for record in &records {
        // it has closed its socket, and may have a moment left
        if asked.contains(&record.pid) && record.is_gone_within(END) {
            continue;
        }
        match record.end(END) {
            true => ended.push(Ended::Killed(record.pid)),
            false => stays = true,
        }
    }
    folder.sockets().iter().for_each(|socket| clear(&folder, socket));
    // of those that are gone
    record::all(&folder, None);
    if stays { Err(Absent::Lost("does not answer, and cannot be ended")) } else { Ok(ended) }
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
