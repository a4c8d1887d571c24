//! From a call to a resident that fits: found, replaced where it is an old one, started where there is none.

use super::folder::{Folder, Number, number};
use super::record::Record;
use super::server::{self, Hosted};
use super::wire::{Call, Channel, MOST_REPLY, PROTOCOL, Reply};
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

/// The time that a resident has to answer a greeting. It takes less than a millisecond where a core is free.
const GREETING: Duration = Duration::from_millis(500);
/// The same for one that is just being started.
const START: Duration = Duration::from_secs(1);
/// How long one that does not answer may take to end, before it is ended and after.
const ENDING: Duration = Duration::from_millis(300);
/// How long another may take to start one.
const LOCK: Duration = Duration::from_millis(500);

/// A conversation with a resident that fits.
#[derive(Debug)]
pub(super) struct Link {
    pub channel: Channel,
    pub pid: u32,
    /// True once this side has closed it, since the other did not stop in time.
    pub left: bool,
    place: Place,
}

/// Where a socket is, and which one it was.
#[derive(Debug, Clone)]
struct Place {
    folder: Folder,
    socket: PathBuf,
    /// The file that was there before we connected to it.
    number: Option<Number>,
}

impl Link {
    /// Takes the socket away from a resident that hangs, so that the next call starts another one. It ends when it finds
    /// out.
    pub fn abandon(self) {
        self.channel.close();
        self.place.clear();
    }
}

impl Place {
    fn of(folder: &Folder, socket: &Path) -> Self {
        Self { folder: folder.clone(), socket: socket.into(), number: number(socket) }
    }

    /// Removes the socket, if it is still that one.
    fn clear(&self) {
        if let Ok(_lock) = self.folder.lock(LOCK)
            && self.number.is_some()
            && number(&self.socket) == self.number
        {
            let _ = fs::remove_file(&self.socket);
        }
    }
}

/// What listens at a socket.
enum Found {
    /// The resident that is wanted.
    Fits(Link),
    /// One of another program or model file, or one that ends: not to be waited for. With its process.
    Old(Option<Channel>, Option<u32>),
    /// Nobody.
    Nobody,
    /// Somebody who says nothing.
    Mute(Place),
}

/// Who is expected.
struct Wanted<'a> {
    setup: &'a Setup,
    folder: Folder,
    socket: PathBuf,
    program: String,
    model: String,
}

/// A client of the resident that keeps these weights, which is started if there is none. `open` opens the model in this
/// process, for the case that the resident fails.
///
/// # Errors
/// Why there is none; nothing is lost then but a bounded time: about a second where one does not answer, and 3 s at worst,
/// where an old one, others that start one and the new one all take theirs.
pub fn attach(setup: &Setup, open: Box<Open>) -> Result<Client, Absent> {
    let wanted = Wanted::of(setup)?;
    let link = match wanted.find(GREETING)? {
        Found::Fits(link) => link,
        Found::Mute(place) => {
            place.clear();
            return Err(Absent::Lost("does not answer"));
        }
        Found::Nobody => wanted.start(None)?,
        Found::Old(channel, pid) => {
            retire(channel);
            wanted.start(pid)?
        }
    };
    Ok(Client::new(setup.weights.id(), setup.weights.adapter(), link, open))
}

/// Makes this process, which has the model open, the resident of this user's other calls. One that is there makes room when
/// its work is done.
///
/// # Errors
/// Why it cannot be; the process goes on without.
pub fn host(setup: &Setup, model: Arc<dyn Model>) -> Result<Hosted, Absent> {
    let wanted = Wanted::of(setup)?;
    let (channel, retired) = match wanted.find(GREETING)? {
        Found::Fits(link) => (Some(link.channel), Some(link.pid)),
        Found::Old(channel, pid) => (channel, pid),
        Found::Mute(_) | Found::Nobody => (None, None),
    };
    retire(channel);
    let _lock = wanted.folder.lock(LOCK)?;
    wanted.clear_the_way(retired)?;
    let (listener, orders) = wanted.listen()?;
    peer::listen(&listener)?;
    Ok(server::host(orders, listener, model)?)
}

/// Tells a resident to make room when its work is done.
fn retire(channel: Option<Channel>) {
    if let Some(mut channel) = channel {
        // Gone already is as good.
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

    /// Looks who is there.
    fn find(&self, wait: Duration) -> Result<Found, Absent> {
        let place = Place::of(&self.folder, &self.socket);
        let stream = match peer::connect(&self.socket) {
            Ok(stream) => stream,
            // No socket, or one that outlived its process.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Ok(Found::Nobody);
            }
            // Nobody has taken the callers before us for a while: it is stopped.
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Found::Mute(place)),
            Err(e) => return Err(e.into()),
        };
        let peer = peer::of(&stream)?;
        if peer.uid != rustix::process::geteuid().as_raw() {
            return Err(Absent::Stranger(peer.uid));
        }
        let mut channel = Channel::new(stream, MOST_REPLY)?;
        let hello = Call::Hello { idle_s: stay(self.setup.idle) };
        // Where that fails, there may still be a word of why.
        let _ = channel.send(&hello);
        Ok(match channel.receive(Some(wait)) {
            Ok(None) => Found::Mute(place),
            Ok(Some(Reply::Hello { protocol: PROTOCOL, program, model, pid }))
                if program == self.program && model == self.model =>
            {
                Found::Fits(Link { channel, pid, left: false, place })
            }
            Ok(Some(Reply::Hello { protocol: PROTOCOL, .. })) => Found::Old(Some(channel), peer.pid),
            Ok(Some(Reply::Failed(_))) => return Err(Absent::Busy),
            // Another protocol, no protocol at all, or at its end: it loses its socket, and sees that itself.
            Ok(Some(_)) | Err(_) => Found::Old(None, peer.pid),
        })
    }

    /// Starts one, unless somebody else has meanwhile. `retired` is the process of one that was told to make room.
    fn start(&self, retired: Option<u32>) -> Result<Link, Absent> {
        let lock = self.folder.lock(LOCK)?;
        if let Found::Fits(link) = self.find(GREETING)? {
            return Ok(link);
        }
        self.worth_leaving()?;
        self.clear_the_way(retired)?;
        // The socket is made here and handed over: who connects from now on waits in its queue, and sees at once when the
        // process ends before it has begun.
        let (listener, orders) = self.listen()?;
        let orders = serde_json::to_string(&orders).map_err(|e| Absent::Weights(e.to_string()))?;
        exec::detach(&self.setup.program, &[OsString::from(WORD), orders.into()], listener.into())?;
        drop(lock);
        match self.find(START)? {
            Found::Fits(link) => Ok(link),
            Found::Mute(_) => Err(Absent::Lost("was started and is not ready yet")),
            Found::Old(..) | Found::Nobody => Err(Absent::Lost("ended when it was started")),
        }
    }

    /// Listens in the place of whoever did, and says what is to be done there. Needs the folder's lock.
    fn listen(&self) -> Result<(UnixListener, Orders), Absent> {
        match fs::remove_file(&self.socket) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
        let (socket, weights) = (self.socket.clone(), self.setup.weights.clone());
        let listener = UnixListener::bind(&socket)?;
        Ok((listener, Orders { socket, weights, idle_s: stay(self.setup.idle) }))
    }

    /// Ends what is left of this slot: a process that does not answer keeps a whole model in memory. One that ends by itself
    /// when its work is done is let be, unless it stands still.
    fn clear_the_way(&self, retired: Option<u32>) -> Result<(), Absent> {
        let slot = self.setup.weights.slot(&self.setup.program);
        let ends_itself = |one: &Record| one.leaving || retired == Some(one.pid);
        let mut left = record::all(&self.folder, Some(&slot)).into_iter();
        match left.all(|one| ends_itself(&one) && !one.stands_still() || one.end(ENDING)) {
            true => Ok(()),
            false => Err(Absent::Lost("does not answer, and cannot be ended")),
        }
    }

    /// Whether this process should leave another behind, unasked.
    fn worth_leaving(&self) -> Result<(), Absent> {
        if self.setup.insist {
            return Ok(());
        }
        let nice = rustix::process::getpriority_process(None).unwrap_or(0);
        unhindered(nice, [Resource::Cpu, Resource::As].map(|what| rustix::process::getrlimit(what).current))?;
        let size = fs::metadata(self.setup.weights.file()).map_or(0, |meta| meta.len());
        enough(memory::Machine::now(), size)
    }
}

/// Seconds that a resident is to stay: whoever has greeted it, or started it, asks this much later.
fn stay(idle: Duration) -> f64 {
    idle.max(Duration::from_secs(1)).as_secs_f64()
}

/// Whether a process that we start is not held back for good by what holds us back: it is for all later calls too.
fn unhindered(nice: i32, limits: [Option<u64>; 2]) -> Result<(), Absent> {
    match limits {
        _ if nice > 0 => Err(Absent::Hindered("a low priority")),
        [Some(_), _] => Err(Absent::Hindered("a limit of processor time")),
        [_, Some(_)] => Err(Absent::Hindered("a limit of memory")),
        [None, None] => Ok(()),
    }
}

/// Whether a machine has room to keep a model file of `size` bytes ready; one that does not tell has.
fn enough(machine: Option<memory::Machine>, size: u64) -> Result<(), Absent> {
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

    /// The folder keeps him away; this is for the day that it does not.
    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_said_to_another_user_who_listens_in_our_place() {
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
        if stranger::does(|| peer::listen(&listener).unwrap()).is_none() {
            return;
        }
        let open = || Err(caro_model::ModelError::Engine("it is not opened".into()));
        let refused = attach(&setup, Box::new(open)).err();
        assert!(matches!(refused, Some(Absent::Stranger(stranger::UID))), "{refused:?}");
        let (mut stream, mut said) = (listener.accept().unwrap().0, Vec::new());
        stream.read_to_end(&mut said).unwrap();
        assert_eq!(String::from_utf8_lossy(&said), "");
        assert!(socket.exists(), "what is his is left alone");
    }

    #[test]
    fn no_process_is_left_behind_where_memory_is_short() {
        let machine = |mb: u64| Some(memory::Machine { total: 8 << 30, available: mb << 20 });
        let short = enough(machine(1500), 1 << 30).unwrap_err().to_string();
        assert!(short.contains("1500 MB available, 1536 MB wanted"), "{short}");
        assert!(enough(machine(1600), 1 << 30).is_ok() && enough(None, u64::MAX).is_ok());
    }

    #[test]
    fn a_resident_stays_long_enough_to_be_asked() {
        assert_eq!([Duration::from_millis(1), Duration::from_secs(900)].map(stay), [1.0, 900.0]);
    }

    /// What a model takes beside its file counts as in use once it is there.
    #[test]
    fn one_that_is_started_does_not_end_at_once_for_want_of_memory() {
        let sizes = || (20..42).map(|bits| 1_u64 << bits);
        for (total, available, size) in sizes().flat_map(|t| sizes().flat_map(move |a| sizes().map(move |s| (t, a, s))))
        {
            let machine = |available| memory::Machine { total, available };
            let started = enough(Some(machine(available)), size).is_ok();
            let after = machine(available.saturating_sub(512 << 20));
            assert!(!started || !after.is_short(), "{size} of {available} of {total}");
        }
    }

    #[test]
    fn no_process_is_left_behind_that_would_keep_what_holds_this_one_back() {
        assert!(unhindered(0, [None, None]).is_ok() && unhindered(-5, [None, None]).is_ok());
        for (nice, limits) in [(19, [None, None]), (0, [Some(10), None]), (0, [None, Some(1 << 30)])] {
            let why = unhindered(nice, limits).unwrap_err().to_string();
            assert!(why.starts_with("this process has a l"), "{why}");
        }
    }
}
