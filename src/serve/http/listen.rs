//! Connections, and their limits: how long one may be silent, how many there may be. Where there are too many, the one that
//! has been silent for longest makes room: whoever opens a thousand and says nothing keeps nobody out.

use super::Server;
use super::app::app;
use super::body::Holding;
use super::lifecycle::{Event, Phase, Stage};
use super::peer::Peer;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use caro_agent::background;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

/// How long the head of a request may take, and a connection be silent between two.
const SILENCE: Duration = Duration::from_secs(15);
/// How long a client may take nothing of an answer that is ready for it. Whoever asks and never reads holds a place for no longer.
const STALLED: Duration = Duration::from_secs(10);
/// Connections at once, where the system has room for so many.
const CONNECTIONS: usize = 2048;
/// Files that are left for everything else.
const SPARE: u64 = 192;
/// The most bytes of a head.
const HEAD: usize = 32 << 10;
/// The pause after the system could not give a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// Between two looks for tasks that are due.
const DUE: Duration = Duration::from_secs(2);
/// How long a stage may take to be taken back.
const MOMENT: Duration = Duration::from_secs(3);
/// How long what is under way may take once the server is told to end.
pub const GRACE: Duration = Duration::from_secs(30);

/// Where the server listens.
pub enum Listener {
    /// A port.
    Tcp(TcpListener),
    /// A socket file, which is removed at the end.
    #[cfg(unix)]
    Local(UnixListener, SocketFile),
}

/// A socket file of ours.
#[cfg(unix)]
#[derive(Debug)]
pub struct SocketFile(std::path::PathBuf);

#[cfg(unix)]
impl Drop for SocketFile {
    fn drop(&mut self) {
        // it may have been taken away by somebody else
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Listens at a port.
    ///
    /// # Errors
    /// The system's.
    pub async fn tcp(host: &str, port: u16) -> io::Result<Self> {
        TcpListener::bind((host, port)).await.map(Self::Tcp)
    }

    /// Listens at a socket file, of this user alone. One that nobody listens at any more is replaced.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::AddrInUse`] where somebody listens there, or something else is there.
    #[cfg(unix)]
    pub fn local(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt};
        if let Ok(found) = std::fs::symlink_metadata(path) {
            let answers = std::os::unix::net::UnixStream::connect(path).is_ok();
            if !found.file_type().is_socket() || answers {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            std::fs::remove_file(path)?;
        }
        // made under a name that nobody else can open, and then put in its place
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let closed = tempfile::Builder::new().prefix(".caro-").tempdir_in(folder)?;
        let made = closed.path().join("s");
        let listener = UnixListener::bind(&made)?;
        std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&made, path)?;
        Ok(Self::Local(listener, SocketFile(path.to_owned())))
    }

    /// The address, if it is a port.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            Self::Local(..) => None,
        }
    }

    async fn accept(&self) -> io::Result<(Box<dyn Stream>, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // answers come in small pieces
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), Peer::Tcp(address)))
            }
            #[cfg(unix)]
            Self::Local(listener, _) => {
                let (stream, _) = listener.accept().await?;
                let process = stream.peer_cred().ok().and_then(|cred| cred.pid());
                Ok((Box::new(stream), Peer::Local(process)))
            }
        }
    }
}

/// A connection's two directions.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Lets this process open as many files as the system allows it, and returns how many connections fit into that.
fn room() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.unwrap_or(u64::MAX).min(CONNECTIONS as u64 + SPARE);
        let now = limit.current.unwrap_or(u64::MAX);
        let raised = now < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).is_ok();
        let files = if raised { wanted } else { now };
        usize::try_from(files.saturating_sub(SPARE)).unwrap_or(CONNECTIONS).clamp(16, CONNECTIONS)
    }
    #[cfg(not(unix))]
    CONNECTIONS
}

/// Connections that are open.
#[derive(Default)]
struct Open {
    /// By their number: the oldest is the first.
    all: Mutex<BTreeMap<u64, Connected>>,
}

/// One of them.
struct Connected {
    /// True while a request of it is under way.
    works: Arc<AtomicBool>,
    /// Closes it when it is dropped.
    _close: oneshot::Sender<()>,
}

impl Open {
    /// Makes room for one more: closes the oldest one that says nothing. False where all are at work.
    fn make_room(&self, most: usize) -> bool {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < most {
            return true;
        }
        let silent = all.iter().find(|(_, one)| !one.works.load(Ordering::Relaxed)).map(|(number, _)| *number);
        // its end of the channel goes, and it closes
        silent.is_some_and(|number| all.remove(&number).is_some())
    }
}

/// Serves until the lifecycle is over. `stop` rings whenever the person or the system wants an end.
pub async fn serve(server: Arc<Server>, listener: Listener, stop: Arc<Notify>) {
    let app = app(&server);
    let (open, most) = (Arc::new(Open::default()), room());
    let mut connections = JoinSet::new();
    let mut number = 0_u64;
    let mut drained = std::pin::pin!(drained(server.clone()));
    let mut is_drained = false;
    let mut over = std::pin::pin!(taken_back(server.clone()));
    let tasks = tokio::spawn(tasks(server.clone()));
    loop {
        tokio::select! {
            () = &mut over => break,
            () = stop.notified() => {
                server.tell(Event::Stop);
            }
            () = &mut drained, if !is_drained => {
                is_drained = true;
                server.tell(Event::Idle);
            }
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok(accepted) if open.make_room(most) => {
                    number += 1;
                    let works = Arc::new(AtomicBool::new(false));
                    let (send, close) = oneshot::channel();
                    let connected = Connected { works: works.clone(), _close: send };
                    open.all.lock().unwrap_or_else(PoisonError::into_inner).insert(number, connected);
                    let counted = Counted(open.clone(), number);
                    let connection = connection(app.clone(), accepted, works, close);
                    connections.spawn(async move {
                        let _counted = counted;
                        connection.await;
                    });
                }
                // every connection is at work: this one has to come again
                Ok(_) => {}
                // no more files, or it is gone already
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    connections.shutdown().await;
    tasks.abort();
}

/// Waits until it is time to end, and takes back what was begun, stage by stage.
async fn taken_back(server: Arc<Server>) {
    server.until(|phase| matches!(phase, Phase::Stopping(_))).await;
    let mut engine = None;
    while let Phase::Stopping(stage) = server.phase() {
        match stage {
            Stage::Background => {
                server.live.stop();
                server.cancel.cancel();
                let over = async {
                    while !server.live.is_empty() {
                        tokio::time::sleep(PAUSE).await;
                    }
                };
                // a run writes down where it stands, so that it can be gone on with
                let _ = tokio::time::timeout(MOMENT, over).await;
            }
            Stage::Load => engine = server.take_engine(),
            // the servers of tools end with it, which may take a moment
            Stage::Connect => {
                let engine = engine.take();
                let _ = tokio::time::timeout(MOMENT, tokio::task::spawn_blocking(move || drop(engine))).await;
            }
        }
        server.tell(Event::Done);
    }
}

/// Has tasks run when they are due, one after the other, while the server is ready.
async fn tasks(server: Arc<Server>) {
    loop {
        server.until(|phase| *phase == Phase::Ready).await;
        if let Ok(engine) = server.engine() {
            // a task that cannot be run now is due at the next look
            let _ = background::run_due(&engine.harness, &server.cancel, vec![server.live.clone()]).await;
        }
        tokio::time::sleep(DUE).await;
    }
}

/// Waits until the server was told to end and nothing is under way any more, or has had its time.
async fn drained(server: Arc<Server>) {
    server.until(|phase| *phase == Phase::Draining).await;
    let nothing = async {
        while server.active() > 0 {
            tokio::time::sleep(PAUSE).await;
        }
    };
    // what is not done by then is ended
    let _ = tokio::time::timeout(GRACE, nothing).await;
}

async fn connection(
    app: Router,
    (stream, peer): (Box<dyn Stream>, Peer),
    works: Arc<AtomicBool>,
    close: oneshot::Receiver<()>,
) {
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        let (app, at_work) = (app.clone(), AtWork::new(works.clone()));
        async move {
            let (head, body) = app.oneshot(request).await?.into_parts();
            Ok::<_, Infallible>(Response::from_parts(head, Holding::body(body, at_work)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE)
        .max_header_size(HEAD)
        .serve_connection(TokioIo::new(patient(stream, STALLED)), service);
    tokio::select! {
        // how a connection breaks is the client's business
        _ = connection => {}
        _ = close => {}
    }
}

/// The stream, whose writes fail once the other end has taken nothing for so long.
fn patient<S: AsyncRead + AsyncWrite>(stream: S, stalled: Duration) -> Pin<Box<TimeoutStream<S>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(stalled));
    Box::pin(stream)
}

/// Marks a connection as at work until it is dropped.
struct AtWork(Arc<AtomicBool>);

impl AtWork {
    fn new(works: Arc<AtomicBool>) -> Self {
        works.store(true, Ordering::Relaxed);
        Self(works)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// A connection that is open; not counted any more once it is dropped.
struct Counted(Arc<Open>, u64);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_client_that_never_reads_is_given_up_and_one_that_reads_slowly_is_not() {
        let stalled = Duration::from_millis(200);
        let (silent, server) = tokio::io::duplex(16);
        let error = patient(server, stalled).write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(silent);

        let (mut slow, server) = tokio::io::duplex(16);
        let reads = tokio::spawn(async move {
            let (mut read, mut piece) = (0, [0; 4]);
            while read < 64 {
                tokio::time::sleep(stalled / 8).await;
                read += slow.read(&mut piece).await.unwrap();
            }
        });
        patient(server, stalled).write_all(&[0; 64]).await.unwrap();
        reads.await.unwrap();
    }
}
