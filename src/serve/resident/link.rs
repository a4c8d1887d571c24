//! Finds the resident for a call, replaces one of another program or model, and starts one if there is none.

use super::folder::{Folder, SocketId, socket_id};
use super::record::Record;
use super::server::{self, Hosted};
use super::wire::{Call, Channel, MAX_REPLY_BYTES, PROTOCOL, Reply};
use super::{Absent, Client, Open, Orders, Setup, WORD, identity, memory, peer, record};
use caro_exec as exec;
use caro_model::Model;
use rustix::process::Resource;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time for a resident to answer the greeting, which takes less than a millisecond if a core is free.
const GREETING_TIMEOUT: Duration = Duration::from_millis(500);
/// Time for a resident that was just started to answer the greeting.
const START_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for a resident that does not answer to end after SIGTERM, and after SIGKILL.
const END_TIMEOUT: Duration = Duration::from_millis(300);
/// Time to wait for another process that is starting a resident.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// A connection to a resident that matches.
#[derive(Debug)]
pub(super) struct Link {
    pub channel: Channel,
    pub pid: u32,
    /// True once this side has closed it, because the resident did not stop in time.
    pub is_closed: bool,
    socket: SocketFile,
}

/// A socket's path and the file that was found there.
#[derive(Debug, Clone)]
struct SocketFile {
    folder: Folder,
    path: PathBuf,
    /// The file that existed before this process connected to it.
    id: Option<SocketId>,
}

impl Link {
    /// Removes the socket of a resident that hangs, so that the next call starts another one. The resident ends when
    /// it finds its socket removed.
    pub fn abandon(self) {
        self.channel.close();
        self.socket.remove();
    }
}

impl SocketFile {
    fn of(folder: &Folder, path: &Path) -> Self {
        Self { folder: folder.clone(), path: path.into(), id: socket_id(path) }
    }

    /// Removes the socket, if it is still the same file.
    fn remove(&self) {
        if let Ok(_lock) = self.folder.lock(LOCK_TIMEOUT)
            && self.id.is_some()
            && socket_id(&self.path) == self.id
        {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The state of the resident at a socket.
enum Found {
    /// It has the wanted program and model.
    Matching(Link),
    /// It has another program or model file, or is ending. With its connection and process id.
    Outdated(Option<Channel>, Option<u32>),
    /// No process listens.
    NotRunning,
    /// A process listens but does not answer.
    Unresponsive(SocketFile),
}

/// The resident that a caller expects.
struct Wanted<'a> {
    setup: &'a Setup,
    folder: Folder,
    socket: PathBuf,
    program: String,
    model: String,
}

/// Connects to the resident with these weights, and starts it if it is not running. `open` opens the model in this
/// process if the resident fails.
///
/// # Errors
/// The reason that there is none. It takes about a second if a resident does not answer, and 3 s at worst: if an old
/// one, other processes that start one and the new one all take their full time.
pub fn attach(setup: &Setup, open: Box<Open>) -> Result<Client, Absent> {
    let wanted = Wanted::of(setup)?;
    let link = match wanted.find(GREETING_TIMEOUT)? {
        Found::Matching(link) => link,
        Found::Unresponsive(socket) => {
            socket.remove();
            return Err(Absent::Lost("does not answer"));
        }
        Found::NotRunning => wanted.start(None)?,
        Found::Outdated(channel, pid) => {
            retire(channel);
            wanted.start(pid)?
        }
    };
    Ok(Client::new(setup.weights.id(), setup.weights.adapter(), link, open))
}

/// Makes this process, which has the model open, the resident for this user's other calls. A running resident ends
/// after the requests in progress.
///
/// # Errors
/// The reason that it cannot be.
pub fn host(setup: &Setup, model: Arc<dyn Model>) -> Result<Hosted, Absent> {
    let wanted = Wanted::of(setup)?;
    let (channel, retired) = match wanted.find(GREETING_TIMEOUT)? {
        Found::Matching(link) => (Some(link.channel), Some(link.pid)),
        Found::Outdated(channel, pid) => (channel, pid),
        Found::Unresponsive(_) | Found::NotRunning => (None, None),
    };
    retire(channel);
    let _lock = wanted.folder.lock(LOCK_TIMEOUT)?;
    wanted.end_others(retired)?;
    let (listener, orders) = wanted.bind()?;
    peer::listen(&listener)?;
    Ok(server::host(orders, listener, model)?)
}

/// Tells a resident to end after the requests in progress.
fn retire(channel: Option<Channel>) {
    if let Some(mut channel) = channel {
        // an error means that it has ended already
        let _ = channel.send(&Call::Retire);
    }
}

impl<'a> Wanted<'a> {
    fn of(setup: &'a Setup) -> Result<Self, Absent> {
        let folder = Folder::open(&setup.folder)?;
        let socket = folder.socket(&setup.weights.slot(&setup.program))?;
        let model = setup.weights.identity();
        let model =
            model.ok_or_else(|| Absent::Weights("the model's file or its adapter's cannot be looked at".into()))?;
        Ok(Self { setup, folder, socket, program: identity::of_program(&setup.program), model })
    }

    /// Connects to the socket and greets the resident, which has `timeout` to answer.
    fn find(&self, timeout: Duration) -> Result<Found, Absent> {
        let socket = SocketFile::of(&self.folder, &self.socket);
        let stream = match peer::connect(&self.socket) {
            Ok(stream) => stream,
            // no socket, or one whose process has ended
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Ok(Found::NotRunning);
            }
            // its queue is full because it accepts no connections: it hangs or is stopped
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Found::Unresponsive(socket)),
            Err(e) => return Err(e.into()),
        };
        let peer = peer::of(&stream)?;
        if peer.uid != rustix::process::geteuid().as_raw() {
            return Err(Absent::Stranger(peer.uid));
        }
        let mut channel = Channel::new(stream, MAX_REPLY_BYTES)?;
        let hello = Call::Hello { idle_s: idle_seconds(self.setup.idle) };
        // if sending fails, there may still be a reply with the reason
        let _ = channel.send(&hello);
        Ok(match channel.receive(Some(timeout)) {
            Ok(None) => Found::Unresponsive(socket),
            Ok(Some(Reply::Hello { protocol: PROTOCOL, program, model, pid }))
                if program == self.program && model == self.model =>
            {
                Found::Matching(Link { channel, pid, is_closed: false, socket })
            }
            Ok(Some(Reply::Hello { protocol: PROTOCOL, .. })) => Found::Outdated(Some(channel), peer.pid),
            Ok(Some(Reply::Failed(_))) => return Err(Absent::Busy),
            // it speaks another protocol or is ending; it ends by itself when its socket is replaced
            Ok(Some(_)) | Err(_) => Found::Outdated(None, peer.pid),
        })
    }

    /// Starts the resident, unless another process has done so meanwhile. `retired` is the process id of one that was
    /// told to retire.
    fn start(&self, retired: Option<u32>) -> Result<Link, Absent> {
        let lock = self.folder.lock(LOCK_TIMEOUT)?;
        if let Found::Matching(link) = self.find(GREETING_TIMEOUT)? {
            return Ok(link);
        }
        self.check_resources()?;
        self.end_others(retired)?;
        // The socket is created here and inherited by the resident: callers that connect from now on wait in its
        // queue, and notice at once if the process ends before it listens.
        let (listener, orders) = self.bind()?;
        let orders = serde_json::to_string(&orders).map_err(|e| Absent::Weights(e.to_string()))?;
        exec::detach(&self.setup.program, &[OsString::from(WORD), orders.into()], listener.into())?;
        drop(lock);
        match self.find(START_TIMEOUT)? {
            Found::Matching(link) => Ok(link),
            Found::Unresponsive(_) => Err(Absent::Lost("was started and is not ready yet")),
            Found::Outdated(..) | Found::NotRunning => Err(Absent::Lost("ended when it was started")),
        }
    }

    /// Replaces the socket, and returns its listener and the orders of the new resident. Needs the folder's lock.
    fn bind(&self) -> Result<(UnixListener, Orders), Absent> {
        match fs::remove_file(&self.socket) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
        let (socket, weights) = (self.socket.clone(), self.setup.weights.clone());
        let listener = UnixListener::bind(&socket)?;
        Ok((listener, Orders { socket, weights, idle_s: idle_seconds(self.setup.idle) }))
    }

    /// Ends the other residents of this slot, each of which has a whole model in memory; one that will end by itself
    /// is left alone, unless it is stopped.
    fn end_others(&self, retired: Option<u32>) -> Result<(), Absent> {
        let slot = self.setup.weights.slot(&self.setup.program);
        let ends_itself = |one: &Record| one.leaving || retired == Some(one.pid);
        let mut others = record::all(&self.folder, Some(&slot)).into_iter();
        match others.all(|one| ends_itself(&one) && !one.is_stopped() || one.terminate(END_TIMEOUT)) {
            true => Ok(()),
            false => Err(Absent::Lost("does not answer, and cannot be ended")),
        }
    }

    /// Checks that a resident would have normal priority, no limits and enough memory, unless the caller insists on
    /// one.
    fn check_resources(&self) -> Result<(), Absent> {
        if self.setup.insist {
            return Ok(());
        }
        let nice = rustix::process::getpriority_process(None).unwrap_or(0);
        check_limits(nice, [Resource::Cpu, Resource::As].map(|what| rustix::process::getrlimit(what).current))?;
        let size = fs::metadata(self.setup.weights.file()).map_or(0, |meta| meta.len());
        check_memory(memory::Machine::now(), size)
    }
}

/// Returns the seconds for which a resident stays: at least one, so that a caller that greets or starts it can send
/// its request.
fn idle_seconds(idle: Duration) -> f64 {
    idle.max(Duration::from_secs(1)).as_secs_f64()
}

/// Checks that this process has no low priority and no limits (of processor time, of memory), which a resident would
/// inherit for all later calls.
fn check_limits(nice: i32, limits: [Option<u64>; 2]) -> Result<(), Absent> {
    match limits {
        _ if nice > 0 => Err(Absent::Hindered("a low priority")),
        [Some(_), _] => Err(Absent::Hindered("a limit of processor time")),
        [_, Some(_)] => Err(Absent::Hindered("a limit of memory")),
        [None, None] => Ok(()),
    }
}

/// Checks that the machine has enough memory for a resident with a model file of `size` bytes; `Ok` if it is not
/// known.
fn check_memory(machine: Option<memory::Machine>, size: u64) -> Result<(), Absent> {
    let Some(machine) = machine else { return Ok(()) };
    let wanted = machine.wanted(size);
    if machine.available < wanted {
        return Err(Absent::Memory { available_mb: machine.available >> 20, wanted_mb: wanted >> 20 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folder's permissions prevent this; the user is checked in case they fail.
    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_sent_to_a_listener_of_another_user() {
        use super::peer::stranger;
        use std::io::Read;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("model");
        fs::write(&file, "model").unwrap();
        let setup = Setup {
            folder: dir.path().join("run"),
            program: std::env::current_exe().unwrap(),
            weights: super::super::Weights::Script(file),
            idle: Duration::from_secs(60),
            insist: true,
        };
        let folder = Folder::open(&setup.folder).unwrap();
        let socket = folder.socket(&setup.weights.slot(&setup.program)).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        if stranger::run_as(|| peer::listen(&listener).unwrap()).is_none() {
            return;
        }
        let open = || Err(caro_model::ModelError::Engine("it is not opened".into()));
        let refused = attach(&setup, Box::new(open)).err();
        assert!(matches!(refused, Some(Absent::Stranger(stranger::UID))), "{refused:?}");
        let (mut stream, mut received) = (listener.accept().unwrap().0, Vec::new());
        stream.read_to_end(&mut received).unwrap();
        assert_eq!(String::from_utf8_lossy(&received), "");
        assert!(socket.exists(), "what is his is left alone");
    }

    #[test]
    fn no_resident_is_started_if_memory_is_short() {
        let machine = |mb: u64| Some(memory::Machine { total: 8 << 30, available: mb << 20 });
        let short = check_memory(machine(1500), 1 << 30).unwrap_err().to_string();
        assert!(short.contains("1500 MB available, 1536 MB wanted"), "{short}");
        assert!(check_memory(machine(1600), 1 << 30).is_ok() && check_memory(None, u64::MAX).is_ok());
    }

    #[test]
    fn a_resident_stays_at_least_a_second() {
        assert_eq!([Duration::from_millis(1), Duration::from_secs(900)].map(idle_seconds), [1.0, 900.0]);
    }

    /// The memory that a model uses besides its file is no longer available once it is loaded.
    #[test]
    fn a_resident_that_was_started_does_not_find_memory_short_at_once() {
        let sizes = || (20..42).map(|bits| 1_u64 << bits);
        for (total, available, size) in sizes().flat_map(|t| sizes().flat_map(move |a| sizes().map(move |s| (t, a, s))))
        {
            let machine = |available| memory::Machine { total, available };
            let started = check_memory(Some(machine(available)), size).is_ok();
            let after = machine(available.saturating_sub(512 << 20));
            assert!(!started || !after.is_short(), "{size} of {available} of {total}");
        }
    }

    #[test]
    fn no_resident_is_started_that_would_inherit_a_low_priority_or_a_limit() {
        assert!(check_limits(0, [None, None]).is_ok() && check_limits(-5, [None, None]).is_ok());
        for (nice, limits) in [(19, [None, None]), (0, [Some(10), None]), (0, [None, Some(1 << 30)])] {
            let why = check_limits(nice, limits).unwrap_err().to_string();
            assert!(why.starts_with("this process has a l"), "{why}");
        }
    }
}
