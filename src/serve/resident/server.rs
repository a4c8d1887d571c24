//! The resident process: accepts, converses, and knows when to end.

use super::folder::{Folder, Number, number};
use super::record::Record;
use super::wire::{Call, Channel, MOST_CALL, PROTOCOL, Reply, Work};
use super::worker::{Job, Loaded, News, work};
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

/// How often a client that waits hears of us.
const BEAT: Duration = Duration::from_millis(200);
/// The most conversations at once; the next caller is on its own.
const MOST_CLIENTS: usize = 32;
/// How often it looks around whether it should end.
const LOOK: Duration = Duration::from_secs(2);
/// A client that has said hello is about to ask: one that is to end waits this long.
const ABOUT_TO_ASK: Duration = Duration::from_secs(1);

/// A computation looks at its deadline several times a second: one that goes on for this long behind it hangs.
const OVERDUE: Duration = Duration::from_secs(5);

/// Whether to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Leaving {
    No,
    /// When nothing is under way.
    Soon,
    Now,
}

/// What goes on.
#[derive(Debug)]
struct Activity {
    /// Requests under way or waiting.
    jobs: usize,
    served: u64,
    /// When it was last asked for something.
    last: Instant,
    /// How long to stay after that.
    idle: Duration,
    /// The deadline of the request under way.
    deadline: Option<Instant>,
    leaving: Leaving,
}

struct Resident {
    orders: Orders,
    /// Which file our socket is.
    socket: Option<Number>,
    program_file: Option<PathBuf>,
    program: String,
    model: String,
    since: SystemTime,
    activity: Mutex<Activity>,
    changed: Condvar,
    loaded: Loaded,
    jobs: Mutex<Sender<Job>>,
    clients: AtomicUsize,
    /// `None` where it stays as long as its process, which has more to do than this.
    short: Option<Box<Short>>,
    record: Option<Record>,
}

/// A resident in a process that has the model open anyway. Dropped, it ends, and its socket goes.
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
        // it ends at once; one that broke off has no socket to take away any more
        let _ = self.watch.take().map(JoinHandle::join);
    }
}

/// Answers at that socket with a model that is open already, beside whatever else this process does.
///
/// # Errors
/// If the system gives no threads.
pub(super) fn host(orders: Orders, listener: UnixListener, model: Arc<dyn Model>) -> io::Result<Hosted> {
    let resident = begin(orders, listener, None, move || Ok(model))?;
    let watched = resident.clone();
    let watch = std::thread::Builder::new().name("caro-resident".into()).spawn(move || watched.watch())?;
    Ok(Hosted { resident, watch: Some(watch) })
}

/// Serves at the socket that was handed over, until it is time to end.
///
/// # Errors
/// If what was handed over is no socket that listens where the orders say, or the system gives no threads.
pub fn serve(orders: Orders, socket: OwnedFd, phrases: Vec<String>) -> io::Result<()> {
    let listener = UnixListener::from(socket);
    if listener.local_addr()?.as_pathname() != Some(&orders.socket) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the standard input is not the resident's socket"));
    }
    peer::listen(&listener)?;
    memory::be_first_to_go();
    let weights = orders.weights.clone();
    let short = || memory::Machine::now().is_some_and(memory::Machine::is_short);
    run(orders, listener, Box::new(short), move || weights.open(phrases))
}

/// Tells whether others need the memory more.
pub(super) type Short = dyn Fn() -> bool + Send + Sync;

/// [`serve`] with any model, on any machine.
pub(super) fn run(
    orders: Orders,
    listener: UnixListener,
    short: Box<Short>,
    open: impl FnOnce() -> Result<Arc<dyn Model>, ModelError> + Send + 'static,
) -> io::Result<()> {
    let resident = begin(orders, listener, Some(short), open)?;
    resident.watch();
    if let Some(record) = &resident.record {
        record.remove(&resident.orders.socket);
    }
    Ok(())
}

/// Accepts and computes, on threads of their own.
fn begin(
    orders: Orders,
    listener: UnixListener,
    short: Option<Box<Short>>,
    open: impl FnOnce() -> Result<Arc<dyn Model>, ModelError> + Send + 'static,
) -> io::Result<Arc<Resident>> {
    // Now, and not when somebody asks: it may be replaced under its name at any time.
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
            idle: seconds(orders.idle_s),
            deadline: None,
            leaving: Leaving::No,
        }),
        changed: Condvar::new(),
        loaded: Loaded::default(),
        jobs: Mutex::new(jobs),
        clients: AtomicUsize::new(0),
        socket: number(&orders.socket),
        // whoever clears the way for another resident ends the processes on record, and a host is not its resident alone
        record: if short.is_some() { Record::of_this() } else { None },
        short,
        orders,
    });
    resident.note(Leaving::No);
    let worker = resident.clone();
    thread("model", move || {
        let opened = catch_unwind(AssertUnwindSafe(open)).map_err(|_| "opening the model broke off".to_string());
        match opened.and_then(|model| model.map_err(|e| e.to_string())) {
            Ok(model) => {
                worker.loaded.set(Ok(model.clone()));
                work(&*model, &waiting, |deadline| worker.job_begun(deadline), |answered| worker.job_done(answered));
            }
            Err(why) => {
                // The callers open the model themselves, and tell what is wrong with it better than we could.
                worker.loaded.set(Err(why));
                worker.leave(Leaving::Soon);
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

/// A length of time that came over the wire.
fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s).unwrap_or(Duration::ZERO)
}

impl Resident {
    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn job_begun(&self, deadline: Option<Instant>) {
        self.activity().deadline = deadline;
    }

    fn job_done(&self, answered: bool) {
        let mut activity = self.activity();
        activity.deadline = None;
        activity.jobs = activity.jobs.saturating_sub(1);
        activity.served += u64::from(answered);
        activity.last = Instant::now();
        drop(activity);
        self.changed.notify_all();
    }

    /// Leaves word of this process beside its socket: whoever starts another one lets it end what it has under way.
    fn note(&self, leaving: Leaving) {
        if let Some(record) = &self.record {
            record.with(leaving > Leaving::No).write(&self.orders.socket);
        }
    }

    fn leave(&self, how: Leaving) {
        let mut activity = self.activity();
        let before = activity.leaving;
        activity.leaving = before.max(how);
        drop(activity);
        if before == Leaving::No {
            self.note(how);
        }
        self.changed.notify_all();
    }

    /// Returns when it is time to end, with the socket gone.
    fn watch(&self) {
        let folder = self.orders.socket.parent().and_then(|dir| Folder::existing(dir).ok().flatten());
        let ours = || self.socket.is_some() && number(&self.orders.socket) == self.socket;
        loop {
            let activity = self.activity();
            let wait = LOOK.min(activity.idle / 4).max(Duration::from_millis(20));
            let (activity, _) = self
                .changed
                .wait_timeout_while(activity, wait, |a| a.leaving != Leaving::Now)
                .unwrap_or_else(PoisonError::into_inner);
            let (busy, quiet) = (activity.jobs > 0, activity.last.elapsed());
            let (idle, leaving) = (activity.idle, activity.leaving);
            let hangs = activity.deadline.is_some_and(|deadline| deadline.elapsed() > OVERDUE);
            drop(activity);
            if hangs {
                // Who waits in the queue, or would come to it, is better off alone.
                self.leave(Leaving::Now);
            }
            if leaving == Leaving::No && (!ours() || self.is_outdated()) {
                self.leave(Leaving::Soon);
                continue;
            }
            let end = match leaving {
                Leaving::Now => true,
                _ if busy => false,
                Leaving::Soon => quiet >= ABOUT_TO_ASK.min(idle),
                Leaving::No => {
                    self.short.as_ref().is_some_and(|short| quiet >= idle || quiet >= ABOUT_TO_ASK && short())
                }
            };
            if !end {
                continue;
            }
            // Whoever is just starting another one has the lock, and takes the socket away itself.
            if let Some(Ok(_lock)) = folder.as_ref().map(|folder| folder.lock(BEAT))
                && ours()
            {
                let _ = std::fs::remove_file(&self.orders.socket);
            }
            if leaving == Leaving::Now {
                return;
            }
            // Who connected before the socket went is still served.
            std::thread::sleep(Duration::from_millis(20));
            let activity = self.activity();
            if activity.jobs == 0 && activity.last.elapsed() >= quiet {
                return;
            }
            drop(activity);
            self.leave(Leaving::Soon);
        }
    }

    /// True if program or model are not on disk any more as they were.
    fn is_outdated(&self) -> bool {
        let program = self.program_file.as_deref().map(identity::of_program).unwrap_or_default();
        program != self.program || self.orders.weights.identity().unwrap_or_default() != self.model
    }

    fn accept(self: Arc<Self>, listener: &UnixListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // Out of files, most likely: somebody will close one.
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            if self.clients.fetch_add(1, Ordering::Relaxed) >= MOST_CLIENTS {
                // Said, lest it take us for one at its end and replace us. It fits into the socket's buffer.
                let _ = Channel::new(stream, MOST_CALL).and_then(|mut one| one.send(&Reply::Failed("busy".into())));
                self.clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let resident = self.clone();
            let started = thread("client", move || {
                // A conversation that breaks is the client's to mend.
                let _ = resident.converse(stream);
                resident.clients.fetch_sub(1, Ordering::Relaxed);
            });
            if started.is_err() {
                self.clients.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// One client, from its greeting to its end.
    fn converse(&self, stream: UnixStream) -> io::Result<()> {
        if peer::of(&stream)?.uid != rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let mut channel = Channel::new(stream, MOST_CALL)?;
        let mut reader = channel.second()?;
        let (news, inbox) = mpsc::channel();
        let calls = news.clone();
        thread("reader", move || {
            while let Ok(Some(call)) = reader.receive(None) {
                if calls.send(News::Call(call)).is_err() {
                    return;
                }
            }
            let _ = calls.send(News::Gone);
        })?;
        // The request under way: its switch, and whether it has begun.
        let mut under_way: Option<(Cancel, Arc<AtomicBool>)> = None;
        let result = loop {
            let sent = match inbox.recv_timeout(BEAT) {
                Err(RecvTimeoutError::Timeout) => match &under_way {
                    Some((_, begun)) => channel.send(&Reply::Beat { queued: !begun.load(Ordering::Relaxed) }),
                    None => Ok(()),
                },
                Err(RecvTimeoutError::Disconnected) | Ok(News::Gone) => break Ok(()),
                Ok(News::Text(text)) => channel.send(&Reply::Text(text)),
                Ok(News::Done(completion)) => {
                    under_way = None;
                    channel.send(&Reply::Done(completion))
                }
                Ok(News::Sampled(completions)) => {
                    under_way = None;
                    channel.send(&Reply::Sampled(completions))
                }
                Ok(News::Failed(why)) => {
                    under_way = None;
                    channel.send(&Reply::Failed(why))
                }
                Ok(News::Refused(why)) => {
                    under_way = None;
                    channel.send(&Reply::Refused(why))
                }
                Ok(News::Call(Call::Cancel)) => {
                    if let Some((cancel, _)) = &under_way {
                        cancel.cancel();
                    }
                    Ok(())
                }
                // One at a time: whoever sends two is none of ours.
                Ok(News::Call(Call::Generate(_))) if under_way.is_some() => break Ok(()),
                Ok(News::Call(Call::Generate(work))) => match self.model(&mut channel)? {
                    Ok(_) => {
                        under_way = Some(self.queue(*work, &news));
                        Ok(())
                    }
                    Err(why) => channel.send(&Reply::Failed(why)),
                },
                Ok(News::Call(call)) => self.answer(&call, &mut channel),
            };
            if sent.is_err() {
                break sent;
            }
        };
        if let Some((cancel, _)) = under_way {
            cancel.cancel();
        }
        channel.close();
        result
    }

    /// Puts a request at the end of the queue.
    fn queue(&self, work: Work, news: &Sender<News>) -> (Cancel, Arc<AtomicBool>) {
        let (task, request) = work.open();
        let (cancel, begun) = (request.cancel.clone(), Arc::new(AtomicBool::new(false)));
        let job = Job { request, task, begun: begun.clone(), news: news.clone() };
        // Who is counted has its place in the queue.
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        self.activity().jobs += 1;
        // The worker is gone only if the model is, and then this is not reached.
        let _ = jobs.send(job);
        (cancel, begun)
    }

    /// The model, with a sign of life as long as it is being opened: who waits for that is counted, lest we end meanwhile.
    fn model(&self, channel: &mut Channel) -> io::Result<Result<Arc<dyn Model>, String>> {
        if let Some(model) = self.loaded.wait(Duration::ZERO) {
            return Ok(model);
        }
        self.activity().jobs += 1;
        let opened = loop {
            match self.loaded.wait(BEAT) {
                Some(model) => break Ok(model),
                None => {
                    if let Err(gone) = channel.send(&Reply::Beat { queued: false }) {
                        break Err(gone);
                    }
                }
            }
        };
        let mut activity = self.activity();
        activity.jobs = activity.jobs.saturating_sub(1);
        activity.last = Instant::now();
        opened
    }

    /// Answers what needs no queue.
    fn answer(&self, call: &Call, channel: &mut Channel) -> io::Result<()> {
        match call {
            Call::Hello { idle_s } => {
                let mut activity = self.activity();
                (activity.last, activity.idle) = (Instant::now(), seconds(*idle_s));
                drop(activity);
                channel.send(&Reply::Hello {
                    protocol: PROTOCOL,
                    program: self.program.clone(),
                    model: self.model.clone(),
                    pid: std::process::id(),
                })
            }
            Call::Limits => match self.model(channel)? {
                Ok(model) => channel.send(&Reply::Limits(model.limits().context)),
                Err(why) => channel.send(&Reply::Failed(why)),
            },
            Call::Count(text) => match self.model(channel)? {
                Ok(model) => channel.send(&Reply::Count(model.count(text))),
                Err(why) => channel.send(&Reply::Failed(why)),
            },
            Call::Status => channel.send(&Reply::Status(Box::new(self.status()))),
            Call::Retire | Call::Stop => {
                let how = if *call == Call::Stop { Leaving::Now } else { Leaving::Soon };
                let sent = channel.send(&Reply::Leaving);
                self.leave(how);
                sent
            }
            // Handled by the conversation.
            Call::Generate(_) | Call::Cancel => Ok(()),
        }
    }

    fn status(&self) -> Status {
        let activity = self.activity();
        let idle = if activity.jobs > 0 { Duration::ZERO } else { activity.last.elapsed() };
        let (memory, own_memory) = memory::own();
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
            ends_in_s: self.short.as_ref().map(|_| activity.idle.saturating_sub(idle).as_secs_f64()),
        }
    }
}
