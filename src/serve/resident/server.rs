//! The resident's server: accepts clients, queues their requests, and decides when the process ends.

use super::folder::{Folder, SocketId, socket_id};
use super::record::Record;
use super::wire::{Call, Channel, MAX_CALL_BYTES, PROTOCOL, Reply, Work};
use super::worker::{ClientEvent, Job, Loaded, run_jobs};
use super::{Orders, Status, identity, memory, peer};
use caro_model::{Cancel, Model, ModelError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// The interval at which a waiting client gets a [`Reply::Beat`].
const BEAT_INTERVAL: Duration = Duration::from_millis(200);
/// Most clients at once; the next caller computes its answer itself.
const MAX_CLIENTS: usize = 32;
/// The interval at which the reasons to end are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Time for a client to send its first request after the greeting, for which an ending resident waits.
const GRACE: Duration = Duration::from_secs(1);
/// Time after its deadline at which a computation counts as hanging: it should check the deadline several times a
/// second.
const HANG_AFTER: Duration = Duration::from_secs(5);

/// The decision to end, by increasing urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Leaving {
    No,
    /// After the requests in progress and queued.
    WhenIdle,
    Now,
}

/// The resident's current work.
#[derive(Debug)]
struct Activity {
    /// The number of requests in progress or waiting.
    jobs: usize,
    served: u64,
    /// The time of the last request.
    last: Instant,
    /// The time to stay after it.
    idle_timeout: Duration,
    /// The deadline of the request in progress.
    deadline: Option<Instant>,
    leaving: Leaving,
}

struct Resident {
    orders: Orders,
    /// The socket file that this process listens at, to detect a replaced one.
    socket: Option<SocketId>,
    program_file: Option<PathBuf>,
    program: String,
    model: String,
    since: SystemTime,
    activity: Mutex<Activity>,
    changed: Condvar,
    loaded: Loaded,
    jobs: Mutex<Sender<Job>>,
    clients: AtomicUsize,
    /// `None` for a hosted resident, which stays as long as its host.
    is_memory_short: Option<Box<IsMemoryShort>>,
    record: Option<Record>,
}

/// A resident hosted by a process that has the model open anyway. Dropping it ends it and removes its socket.
pub struct Hosted {
    resident: Arc<Resident>,
    watch: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Hosted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hosted").field("socket", &self.resident.orders.socket).finish_non_exhaustive()
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.resident.leave(Leaving::Now);
        // the thread ends at once; if it panicked, nothing is left to do
        let _ = self.watch.take().map(JoinHandle::join);
    }
}

/// Serves at a socket with a model that is already open, on threads beside the other work of this process.
///
/// # Errors
/// If threads cannot be started.
pub(super) fn host(orders: Orders, listener: UnixListener, model: Arc<dyn Model>) -> io::Result<Hosted> {
    let resident = start(orders, listener, None, move || Ok(model))?;
    let watched = resident.clone();
    let watch = std::thread::Builder::new().name("caro-resident".into()).spawn(move || watched.watch())?;
    Ok(Hosted { resident, watch: Some(watch) })
}

/// Serves at an inherited socket until the resident ends.
///
/// # Errors
/// If it is not the socket that the orders name, or threads cannot be started.
pub fn serve(orders: Orders, socket: OwnedFd, phrases: Vec<String>) -> io::Result<()> {
    let listener = UnixListener::from(socket);
    if listener.local_addr()?.as_pathname() != Some(&orders.socket) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the standard input is not the resident's socket"));
    }
    peer::listen(&listener)?;
    memory::prefer_for_oom_kill();
    let weights = orders.weights.clone();
    let is_memory_short = || memory::Machine::now().is_some_and(memory::Machine::is_short);
    run(orders, listener, Box::new(is_memory_short), move || weights.open(phrases))
}

/// True if other programs need the memory.
pub(super) type IsMemoryShort = dyn Fn() -> bool + Send + Sync;

/// [`serve`] with any model and any measure of memory.
pub(super) fn run(
    orders: Orders,
    listener: UnixListener,
    is_memory_short: Box<IsMemoryShort>,
    open: impl FnOnce() -> Result<Arc<dyn Model>, ModelError> + Send + 'static,
) -> io::Result<()> {
    let resident = start(orders, listener, Some(is_memory_short), open)?;
    resident.watch();
    if let Some(record) = &resident.record {
        record.remove(&resident.orders.socket);
    }
    Ok(())
}

/// Starts the threads that accept clients and compute.
fn start(
    orders: Orders,
    listener: UnixListener,
    is_memory_short: Option<Box<IsMemoryShort>>,
    open: impl FnOnce() -> Result<Arc<dyn Model>, ModelError> + Send + 'static,
) -> io::Result<Arc<Resident>> {
    // read now, since the file may be replaced at any time
    let program_file = std::env::current_exe().ok();
    let (jobs, waiting) = mpsc::channel();
    let resident = Arc::new(Resident {
        program: program_file.as_deref().map(identity::of_program).unwrap_or_default(),
        program_file,
        model: orders.weights.identity().unwrap_or_default(),
        since: SystemTime::now(),
        activity: Mutex::new(Activity {
            jobs: 0,
            served: 0,
            last: Instant::now(),
            idle_timeout: seconds(orders.idle_s),
            deadline: None,
            leaving: Leaving::No,
        }),
        changed: Condvar::new(),
        loaded: Loaded::default(),
        jobs: Mutex::new(jobs),
        clients: AtomicUsize::new(0),
        socket: socket_id(&orders.socket),
        // a host has no record, since a call that replaces a resident ends the recorded process
        record: if is_memory_short.is_some() { Record::of_current_process() } else { None },
        is_memory_short,
        orders,
    });
    resident.write_record(Leaving::No);
    let worker = resident.clone();
    thread("model", move || {
        let opened = catch_unwind(AssertUnwindSafe(open)).map_err(|_| "opening the model broke off".to_string());
        match opened.and_then(|model| model.map_err(|e| e.to_string())) {
            Ok(model) => {
                worker.loaded.set(Ok(model.clone()));
                run_jobs(&*model, &waiting, |deadline| worker.on_job_begin(deadline), |ok| worker.on_job_end(ok));
            }
            Err(why) => {
                // the callers open the model themselves and report the error
                worker.loaded.set(Err(why));
                worker.leave(Leaving::WhenIdle);
            }
        }
    })?;
    let acceptor = resident.clone();
    thread("accept", move || acceptor.accept(&listener))?;
    Ok(resident)
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(format!("caro-{name}")).spawn(work).map(drop)
}

/// Converts seconds received from a client; an invalid number is zero.
fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or(Duration::ZERO)
}

impl Resident {
    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_job_begin(&self, deadline: Option<Instant>) {
        self.activity().deadline = deadline;
    }

    fn on_job_end(&self, succeeded: bool) {
        let mut activity = self.activity();
        activity.deadline = None;
        activity.jobs = activity.jobs.saturating_sub(1);
        activity.served += u64::from(succeeded);
        activity.last = Instant::now();
        drop(activity);
        self.changed.notify_all();
    }

    /// Writes the record beside the socket. A call that replaces this resident lets it finish if it is leaving.
    fn write_record(&self, leaving: Leaving) {
        if let Some(record) = &self.record {
            record.with_leaving(leaving > Leaving::No).write(&self.orders.socket);
        }
    }

    fn leave(&self, how: Leaving) {
        let mut activity = self.activity();
        let before = activity.leaving;
        activity.leaving = before.max(how);
        drop(activity);
        if before == Leaving::No {
            self.write_record(how);
        }
        self.changed.notify_all();
    }

    /// Waits until the resident should end, and removes its socket.
    fn watch(&self) {
        let folder = self.orders.socket.parent().and_then(|dir| Folder::existing(dir).ok().flatten());
        let owns_socket = || self.socket.is_some() && socket_id(&self.orders.socket) == self.socket;
        loop {
            let activity = self.activity();
            let wait = CHECK_INTERVAL.min(activity.idle_timeout / 4).max(Duration::from_millis(20));
            let (activity, _) = self
                .changed
                .wait_timeout_while(activity, wait, |a| a.leaving != Leaving::Now)
                .unwrap_or_else(PoisonError::into_inner);
            let (busy, idle) = (activity.jobs > 0, activity.last.elapsed());
            let (idle_timeout, leaving) = (activity.idle_timeout, activity.leaving);
            let hangs = activity.deadline.is_some_and(|deadline| deadline.elapsed() > HANG_AFTER);
            drop(activity);
            if hangs {
                // callers that wait, or would, compute their answers themselves
                self.leave(Leaving::Now);
            }
            if leaving == Leaving::No && (!owns_socket() || self.is_outdated()) {
                self.leave(Leaving::WhenIdle);
                continue;
            }
            let end = match leaving {
                Leaving::Now => true,
                _ if busy => false,
                Leaving::WhenIdle => idle >= GRACE.min(idle_timeout),
                Leaving::No => self
                    .is_memory_short
                    .as_ref()
                    .is_some_and(|is_memory_short| idle >= idle_timeout || idle >= GRACE && is_memory_short()),
            };
            if !end {
                continue;
            }
            // a call that is starting another resident holds the lock and removes the socket itself
            if let Some(Ok(_lock)) = folder.as_ref().map(|folder| folder.lock(BEAT_INTERVAL))
                && owns_socket()
            {
                let _ = std::fs::remove_file(&self.orders.socket);
            }
            if leaving == Leaving::Now {
                return;
            }
            // clients that connected before the socket was removed are still served
            std::thread::sleep(Duration::from_millis(20));
            let activity = self.activity();
            if activity.jobs == 0 && activity.last.elapsed() >= idle {
                return;
            }
            drop(activity);
            self.leave(Leaving::WhenIdle);
        }
    }

    /// True if the file of the program or the model has changed since the start.
    fn is_outdated(&self) -> bool {
        let program = self.program_file.as_deref().map(identity::of_program).unwrap_or_default();
        program != self.program || self.orders.weights.identity().unwrap_or_default() != self.model
    }

    fn accept(self: Arc<Self>, listener: &UnixListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // most likely the process has no free file descriptor; wait until a client disconnects
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            if self.clients.fetch_add(1, Ordering::Relaxed) >= MAX_CLIENTS {
                // without a reply the client would take this resident for an ending one and replace it;
                // so short a message fits into the socket's buffer
                let _ = Channel::new(stream, MAX_CALL_BYTES)
                    .and_then(|mut channel| channel.send(&Reply::Failed("busy".into())));
                self.clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let resident = self.clone();
            let started = thread("client", move || {
                // on an error the client computes the answer itself
                let _ = resident.serve_client(stream);
                resident.clients.fetch_sub(1, Ordering::Relaxed);
            });
            if started.is_err() {
                self.clients.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Serves one client until it disconnects.
    fn serve_client(&self, stream: UnixStream) -> io::Result<()> {
        if peer::of(&stream)?.uid != rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let mut channel = Channel::new(stream, MAX_CALL_BYTES)?;
        let mut reader = channel.try_clone()?;
        let (events, inbox) = mpsc::channel();
        let calls = events.clone();
        thread("reader", move || {
            while let Ok(Some(call)) = reader.receive(None) {
                if calls.send(ClientEvent::Call(call)).is_err() {
                    return;
                }
            }
            let _ = calls.send(ClientEvent::Closed);
        })?;
        // the request in progress: its cancellation, and whether it has begun
        let mut in_progress: Option<(Cancel, Arc<AtomicBool>)> = None;
        let result = loop {
            let sent = match inbox.recv_timeout(BEAT_INTERVAL) {
                Err(RecvTimeoutError::Timeout) => match &in_progress {
                    Some((_, begun)) => channel.send(&Reply::Beat { queued: !begun.load(Ordering::Relaxed) }),
                    None => Ok(()),
                },
                Err(RecvTimeoutError::Disconnected) | Ok(ClientEvent::Closed) => break Ok(()),
                Ok(ClientEvent::Text(text)) => channel.send(&Reply::Text(text)),
                Ok(ClientEvent::Done(completion)) => {
                    in_progress = None;
                    channel.send(&Reply::Done(completion))
                }
                Ok(ClientEvent::Sampled(completions)) => {
                    in_progress = None;
                    channel.send(&Reply::Sampled(completions))
                }
                Ok(ClientEvent::Failed(why)) => {
                    in_progress = None;
                    channel.send(&Reply::Failed(why))
                }
                Ok(ClientEvent::Refused(why)) => {
                    in_progress = None;
                    channel.send(&Reply::Refused(why))
                }
                Ok(ClientEvent::Call(Call::Cancel)) => {
                    if let Some((cancel, _)) = &in_progress {
                        cancel.cancel();
                    }
                    Ok(())
                }
                // a client that sends two requests at once is not ours: disconnect it
                Ok(ClientEvent::Call(Call::Generate(_))) if in_progress.is_some() => break Ok(()),
                Ok(ClientEvent::Call(Call::Generate(work))) => match self.wait_for_model(&mut channel)? {
                    Ok(_) => {
                        in_progress = Some(self.queue(*work, &events));
                        Ok(())
                    }
                    Err(why) => channel.send(&Reply::Failed(why)),
                },
                Ok(ClientEvent::Call(call)) => self.answer(&call, &mut channel),
            };
            if sent.is_err() {
                break sent;
            }
        };
        if let Some((cancel, _)) = in_progress {
            cancel.cancel();
        }
        channel.close();
        result
    }

    /// Puts a request at the end of the queue. Returns its cancellation, and a flag that is set once it has begun.
    fn queue(&self, work: Work, events: &Sender<ClientEvent>) -> (Cancel, Arc<AtomicBool>) {
        let (task, request) = work.into_request();
        let (cancel, begun) = (request.cancel.clone(), Arc::new(AtomicBool::new(false)));
        let job = Job { request, task, begun: begun.clone(), events: events.clone() };
        // count and send under one lock, so that a job that is counted has its place in the queue
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        self.activity().jobs += 1;
        // fails only if the worker has ended, and then there is no model and this is not reached
        let _ = jobs.send(job);
        (cancel, begun)
    }

    /// Returns the model. While it is being opened, sends beats, and counts the waiting client as a job so that the
    /// resident does not end.
    fn wait_for_model(&self, channel: &mut Channel) -> io::Result<Result<Arc<dyn Model>, String>> {
        if let Some(model) = self.loaded.wait(Duration::ZERO) {
            return Ok(model);
        }
        self.activity().jobs += 1;
        let opened = loop {
            match self.loaded.wait(BEAT_INTERVAL) {
                Some(model) => break Ok(model),
                None => {
                    if let Err(error) = channel.send(&Reply::Beat { queued: false }) {
                        break Err(error);
                    }
                }
            }
        };
        let mut activity = self.activity();
        activity.jobs = activity.jobs.saturating_sub(1);
        activity.last = Instant::now();
        opened
    }

    /// Answers a call that needs no queue.
    fn answer(&self, call: &Call, channel: &mut Channel) -> io::Result<()> {
        match call {
            Call::Hello { idle_s } => {
                let mut activity = self.activity();
                (activity.last, activity.idle_timeout) = (Instant::now(), seconds(*idle_s));
                drop(activity);
                channel.send(&Reply::Hello {
                    protocol: PROTOCOL,
                    program: self.program.clone(),
                    model: self.model.clone(),
                    pid: std::process::id(),
                })
            }
            Call::Limits => match self.wait_for_model(channel)? {
                Ok(model) => channel.send(&Reply::Limits(model.limits().context)),
                Err(why) => channel.send(&Reply::Failed(why)),
            },
            Call::Count(text) => match self.wait_for_model(channel)? {
                Ok(model) => channel.send(&Reply::Count(model.count(text))),
                Err(why) => channel.send(&Reply::Failed(why)),
            },
            Call::Status => channel.send(&Reply::Status(Box::new(self.status()))),
            Call::Retire | Call::Stop => {
                let how = if *call == Call::Stop { Leaving::Now } else { Leaving::WhenIdle };
                let sent = channel.send(&Reply::Leaving);
                self.leave(how);
                sent
            }
            // handled in `serve_client`
            Call::Generate(_) | Call::Cancel => Ok(()),
        }
    }

    fn status(&self) -> Status {
        let activity = self.activity();
        let idle = if activity.jobs > 0 { Duration::ZERO } else { activity.last.elapsed() };
        let (memory, own_memory) = memory::of_this_process();
        Status {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            model: self.orders.weights.id(),
            file: self.orders.weights.file().into(),
            since: self.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs(),
            served: activity.served,
            waiting: activity.jobs,
            memory,
            own_memory,
            ends_in_s: self.is_memory_short.as_ref().map(|_| activity.idle_timeout.saturating_sub(idle).as_secs_f64()),
        }
    }
}
