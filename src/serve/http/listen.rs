//! Accepts connections within limits of time and number. If there are too many, the oldest idle one is closed, so
//! that a client that opens a thousand idle connections locks out no other client.

use super::app::app;
use super::body::GuardedBody;
use super::lifecycle::{Event, Phase, Stage};
use super::peer::Peer;
use super::{Server, blocking};
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use caro_agent::background;
use caro_agent::event::Sink;
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

/// Most time for the head of a request, and for an idle connection between two requests.
const READ_TIMEOUT: Duration = Duration::from_secs(15);
/// Most time that a write waits for a client that reads nothing, which holds its place in the queue for that time.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most connections at once, if the system allows that many open files.
const MAX_CONNECTIONS: usize = 2048;
/// Open files reserved for everything but connections.
const RESERVED_FILES: u64 = 192;
/// Most bytes of the head of a request.
const MAX_HEAD: usize = 32 << 10;
/// Pause after a failed accept, and interval at which the end of requests and runs is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Interval of checks for background tasks that are due.
const TASK_INTERVAL: Duration = Duration::from_secs(2);
/// Most time to undo a stage of the start.
const UNDO_TIMEOUT: Duration = Duration::from_secs(3);
/// Most time for requests in progress once the server is ending.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The socket that the server listens at.
pub enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A socket file, which is removed at the end.
    #[cfg(unix)]
    Local(UnixListener, SocketFile),
}

/// A socket file of this server, removed when this is dropped.
#[cfg(unix)]
#[derive(Debug)]
pub struct SocketFile(std::path::PathBuf);

#[cfg(unix)]
impl Drop for SocketFile {
    fn drop(&mut self) {
        // the file may have been removed already
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

    /// Listens at a socket file that only this user can access. A socket file without a listener is replaced.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::AddrInUse`] if another process listens there, or the path is no socket.
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
        // created in a private folder and then moved, so that no other user can ever connect
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let private = tempfile::Builder::new().prefix(".caro-").tempdir_in(folder)?;
        let socket = private.path().join("s");
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&socket, path)?;
        Ok(Self::Local(listener, SocketFile(path.to_owned())))
    }

    /// The address of a TCP port.
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
                // answers are sent in small pieces, without delay
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

/// A connection of either kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Raises this process's limit of open files as far as needed and allowed; returns the number of connections that
/// fit.
fn connection_limit() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.unwrap_or(u64::MAX).min(MAX_CONNECTIONS as u64 + RESERVED_FILES);
        let now = limit.current.unwrap_or(u64::MAX);
        let raised = now < wanted && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).is_ok();
        let files = if raised { wanted } else { now };
        usize::try_from(files.saturating_sub(RESERVED_FILES)).unwrap_or(MAX_CONNECTIONS).clamp(16, MAX_CONNECTIONS)
    }
    #[cfg(not(unix))]
    MAX_CONNECTIONS
}

/// The open connections.
#[derive(Default)]
struct Connections {
    /// By number: the oldest is the first.
    all: Mutex<BTreeMap<u64, Connection>>,
}

/// An open connection.
struct Connection {
    /// True while a request of it is in progress.
    is_busy: Arc<AtomicBool>,
    /// Closes the connection when it is dropped.
    _close: oneshot::Sender<()>,
}

impl Connections {
    /// Makes room for one more connection, by closing the oldest idle one if needed. False if all are busy.
    fn make_room(&self, most: usize) -> bool {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < most {
            return true;
        }
        let idle = all.iter().find(|(_, one)| !one.is_busy.load(Ordering::Relaxed)).map(|(number, _)| *number);
        // dropping the sender closes the connection
        idle.is_some_and(|number| all.remove(&number).is_some())
    }
}

/// Serves until the lifecycle has ended. `stop` is notified whenever the user or the system wants the server to end.
pub async fn serve(server: Arc<Server>, listener: Listener, stop: Arc<Notify>) {
    let app = app(&server);
    let (open, most) = (Arc::new(Connections::default()), connection_limit());
    let mut connections = JoinSet::new();
    let mut number = 0_u64;
    let mut drained = std::pin::pin!(wait_until_drained(server.clone()));
    let mut is_drained = false;
    let mut stopped = std::pin::pin!(undo_stages(server.clone()));
    let tasks = tokio::spawn(run_tasks(server.clone()));
    loop {
        tokio::select! {
            () = &mut stopped => break,
            () = stop.notified() => {
                server.apply(Event::Stop);
            }
            () = &mut drained, if !is_drained => {
                is_drained = true;
                server.apply(Event::Idle);
            }
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok(accepted) if open.make_room(most) => {
                    number += 1;
                    let is_busy = Arc::new(AtomicBool::new(false));
                    let (send, close) = oneshot::channel();
                    let connection = Connection { is_busy: is_busy.clone(), _close: send };
                    open.all.lock().unwrap_or_else(PoisonError::into_inner).insert(number, connection);
                    let guard = ConnectionGuard(open.clone(), number);
                    let serving = serve_connection(app.clone(), accepted, is_busy, close);
                    connections.spawn(async move {
                        let _guard = guard;
                        serving.await;
                    });
                }
                // all connections are busy: this one is closed, and the client has to retry
                Ok(_) => {}
                // no more files may be opened, or the client has closed the connection already
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            },
        }
    }
    connections.shutdown().await;
    tasks.abort();
}

/// Waits until the server is stopping, and undoes its start stage by stage.
async fn undo_stages(server: Arc<Server>) {
    server.wait_for_phase(|phase| matches!(phase, Phase::Stopping(_))).await;
    let mut engine = None;
    while let Phase::Stopping(stage) = server.phase() {
        match stage {
            Stage::Background => {
                server.live.stop();
                server.cancel.cancel();
                let runs_ended = async {
                    while !server.live.is_empty() {
                        tokio::time::sleep(POLL_INTERVAL).await;
                    }
                    wait_for_task(&server).await;
                    // clients are told that their answers end here
                    while server.active() > 0 {
                        tokio::time::sleep(POLL_INTERVAL).await;
                    }
                };
                // a run that is stopped writes a checkpoint, so that it can be resumed
                let _ = tokio::time::timeout(UNDO_TIMEOUT, runs_ended).await;
            }
            Stage::Load => engine = server.take_engine(),
            // dropping the engine ends the tool servers, which may take a moment
            Stage::Connect => {
                let engine = engine.take();
                let _ = tokio::time::timeout(UNDO_TIMEOUT, tokio::task::spawn_blocking(move || drop(engine))).await;
            }
        }
        server.apply(Event::Done);
    }
}

/// Runs background tasks when they are due, one at a time, while the server is ready.
async fn run_tasks(server: Arc<Server>) {
    loop {
        server.wait_for_phase(|phase| *phase == Phase::Ready).await;
        let running = server.task.lock().await;
        if server.phase() == Phase::Ready
            && let Ok(engine) = server.engine()
        {
            let (cancel, sinks): (_, Vec<Arc<dyn Sink>>) = (server.cancel.clone(), vec![server.live.clone()]);
            let due = async move { background::run_due(&engine.harness, &cancel, sinks).await.map(drop) };
            // a task that cannot be run now is still due at the next check
            let _ = blocking::spawn(due).await;
        }
        drop(running);
        tokio::time::sleep(TASK_INTERVAL).await;
    }
}

/// Waits until no background task runs.
async fn wait_for_task(server: &Server) {
    drop(server.task.lock().await);
}

/// Waits until the server is draining, and then until no request and no background task is in progress, or the time
/// for them has passed.
async fn wait_until_drained(server: Arc<Server>) {
    server.wait_for_phase(|phase| *phase == Phase::Draining).await;
    let idle = async {
        while server.active() > 0 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        wait_for_task(&server).await;
    };
    // requests and tasks that take longer are stopped
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, idle).await;
}

async fn serve_connection(
    app: Router,
    (stream, peer): (Box<dyn Stream>, Peer),
    is_busy: Arc<AtomicBool>,
    close: oneshot::Receiver<()>,
) {
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        let (app, guard) = (app.clone(), BusyGuard::new(is_busy.clone()));
        async move {
            let (head, body) = app.oneshot(request).await?.into_parts();
            Ok::<_, Infallible>(Response::from_parts(head, GuardedBody::wrap(body, guard)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIMEOUT)
        .max_header_size(MAX_HEAD)
        .serve_connection(TokioIo::new(with_write_timeout(stream, WRITE_TIMEOUT)), service);
    tokio::select! {
        // an error of the connection concerns only its client
        _ = connection => {}
        _ = close => {}
    }
}

/// Wraps a stream so that writes fail once the other end has read nothing for `timeout`.
fn with_write_timeout<S: AsyncRead + AsyncWrite>(stream: S, timeout: Duration) -> Pin<Box<TimeoutStream<S>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(timeout));
    Box::pin(stream)
}

/// Marks a connection as busy until it is dropped.
struct BusyGuard(Arc<AtomicBool>);

impl BusyGuard {
    fn new(is_busy: Arc<AtomicBool>) -> Self {
        is_busy.store(true, Ordering::Relaxed);
        Self(is_busy)
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Removes a connection from the open ones when it is dropped.
struct ConnectionGuard(Arc<Connections>, u64);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn writing_times_out_for_a_client_that_never_reads_but_not_for_a_slow_one() {
        let timeout = Duration::from_secs(2);
        let (silent, server) = tokio::io::duplex(16);
        let error = with_write_timeout(server, timeout).write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(silent);

        let (mut slow, server) = tokio::io::duplex(16);
        let reads = tokio::spawn(async move {
            let (mut read, mut piece) = (0, [0; 4]);
            while read < 64 {
                tokio::time::sleep(timeout / 8).await;
                read += slow.read(&mut piece).await.unwrap();
            }
        });
        with_write_timeout(server, timeout).write_all(&[0; 64]).await.unwrap();
        reads.await.unwrap();
    }
}
