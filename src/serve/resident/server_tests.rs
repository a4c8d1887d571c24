//! Tests of the resident's server, with a scripted model, in this process.

use super::server::run;
use super::wire::{Call, Channel, MAX_REPLY_BYTES, Reply, Work};
use super::{Orders, Weights};
use caro_model::scripted::Scripted;
use caro_model::{Cancel, Completion, Finish, Flow, Limits, Model, ModelError, Prompt, Request, Role, Sampling, Shape};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Timeout of each wait: far more than anything here takes, even on a slow machine.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
/// An idle time that no test reaches.
pub(super) const LONG_IDLE: Duration = Duration::from_secs(600);

pub(super) struct Server {
    pub dir: tempfile::TempDir,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Server {
    /// Starts a server with a model that answers "slow" with `one two three ...`, "endless" only after minutes, "in
    /// turn" with the number of the request, and everything else with `ls`.
    fn start(idle: Duration) -> Self {
        Self::with(
            idle,
            || false,
            || {
                let script = r#"{"rules": [
                {"match": "slow", "reply": "one two three four five six seven eight nine ten", "delay_ms": 400},
                {"match": "endless", "reply": "one two", "delay_ms": 300000},
                {"match": "in turn", "replies": ["first a b c d e", "second a b c d e", "third a b c d e"], "delay_ms": 250},
                {"match": "broken", "error": "no"},
                {"reply": "ls"}]}"#;
                Ok(Arc::new(Scripted::parse(script, "script")?))
            },
        )
    }

    pub fn with(
        idle: Duration,
        is_memory_short: impl Fn() -> bool + Send + Sync + 'static,
        open: impl FnOnce() -> Result<Arc<dyn Model>, ModelError> + Send + 'static,
    ) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let (socket, file) = (dir.path().join("s.sock"), dir.path().join("model"));
        std::fs::write(&file, "model").unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let orders = Orders { socket, weights: Weights::Script(file), idle_s: idle.as_secs_f64() };
        let thread = std::thread::spawn(move || run(orders, listener, Box::new(is_memory_short), open));
        Self { dir, thread: Some(thread) }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("s.sock")
    }

    fn raw(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    pub fn client(&self) -> Channel {
        Channel::new(self.raw(), MAX_REPLY_BYTES).unwrap()
    }

    fn ends_within(&mut self, limit: Duration) -> bool {
        let since = Instant::now();
        while since.elapsed() < limit {
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn waiting(&self) -> (usize, u64) {
        let mut client = self.client();
        client.send(&Call::Status).unwrap();
        match client.receive(Some(TIMEOUT)).unwrap() {
            Some(Reply::Status(status)) => (status.waiting, status.served),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn wait_until_idle(&self) {
        let since = Instant::now();
        while self.waiting().0 > 0 {
            assert!(since.elapsed() < TIMEOUT, "still at work");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // a server with too many clients refuses the first attempt
        while !thread.is_finished() {
            if let Ok(stream) = UnixStream::connect(self.socket()) {
                let _ = Channel::new(stream, MAX_REPLY_BYTES).and_then(|mut channel| channel.send(&Call::Stop));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = thread.join();
    }
}

fn work(words: &str) -> Call {
    let mut prompt = Prompt::default();
    prompt.push(Role::User, words);
    let shape = Shape::Text { stop: vec![] };
    let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 64, cancel: Cancel::new() };
    Call::Generate(Box::new(Work::of(&request)))
}

/// Receives until the end of a generation. Returns the text, the last reply, and whether the request was queued.
fn receive_all(client: &mut Channel) -> (String, Reply, bool) {
    let (mut text, mut queued) = (String::new(), false);
    loop {
        match client.receive(Some(TIMEOUT)).unwrap().expect("an answer") {
            Reply::Text(piece) => text.push_str(&piece),
            Reply::Beat { queued: q } => queued |= q,
            last => return (text, last, queued),
        }
    }
}

#[test]
fn one_client_sends_many_requests() {
    let server = Server::start(LONG_IDLE);
    let mut client = server.client();
    client.send(&Call::Hello { idle_s: 60.0 }).unwrap();
    let hello = client.receive(Some(TIMEOUT)).unwrap().unwrap();
    assert!(matches!(hello, Reply::Hello { pid, .. } if pid == std::process::id()), "{hello:?}");
    client.send(&Call::Count("a b c".into())).unwrap();
    client.send(&Call::Limits).unwrap();
    assert_eq!(client.receive::<Reply>(Some(TIMEOUT)).unwrap(), Some(Reply::Count(3)));
    assert_eq!(client.receive::<Reply>(Some(TIMEOUT)).unwrap(), Some(Reply::Limits(4096)));
    for _ in 0..3 {
        client.send(&work("list")).unwrap();
        let (text, last, _) = receive_all(&mut client);
        let Reply::Done(completion) = last else { panic!("{last:?}") };
        assert_eq!((text.as_str(), completion.text.as_str(), completion.finish), ("ls", "ls", Finish::Stop));
    }
    client.send(&work("broken")).unwrap();
    assert!(matches!(receive_all(&mut client).1, Reply::Failed(_)));
    server.wait_until_idle();
    assert_eq!(server.waiting(), (0, 3));
}

#[test]
fn sampled_completions_come_in_one_reply() {
    let server = Server::start(LONG_IDLE);
    let mut client = server.client();
    let mut prompt = Prompt::default();
    prompt.push(Role::User, "list");
    let shape = Shape::Text { stop: vec![] };
    let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 64, cancel: Cancel::new() };
    client.send(&Call::Generate(Box::new(Work::sampled(&request, 3)))).unwrap();
    let (text, last, _) = receive_all(&mut client);
    let Reply::Sampled(completions) = last else { panic!("{last:?}") };
    let texts: Vec<&str> = completions.iter().map(|c| c.text.as_str()).collect();
    assert_eq!((text.as_str(), texts), ("", vec!["ls"; 3]), "nothing on the way, all at the end");
}

#[test]
fn requests_are_served_in_order_and_waiting_clients_get_beats() {
    let server = Server::start(LONG_IDLE);
    let mut clients: Vec<Channel> = (0..3).map(|_| server.client()).collect();
    for (before, client) in clients.iter_mut().enumerate() {
        client.send(&work("in turn")).unwrap();
        let since = Instant::now();
        let arrived = || server.waiting().0 + usize::try_from(server.waiting().1).unwrap();
        while arrived() <= before {
            assert!(since.elapsed() < TIMEOUT, "it does not come to the queue");
        }
    }
    let ended = clients.iter_mut().map(|client| {
        let (text, last, queued) = receive_all(client);
        assert!(matches!(last, Reply::Done(_)), "{last:?}");
        (text, queued)
    });
    let turns = ["first", "second", "third"].map(|turn| (format!("{turn} a b c d e"), turn != "first"));
    assert_eq!(ended.collect::<Vec<_>>(), turns);
}

#[test]
fn a_cancelled_or_abandoned_request_stops_at_once() {
    let server = Server::start(LONG_IDLE);
    let mut client = server.client();
    client.send(&work("endless")).unwrap();
    assert!(client.receive::<Reply>(Some(TIMEOUT)).unwrap().is_some());
    client.send(&Call::Cancel).unwrap();
    let (_, last, _) = receive_all(&mut client);
    let Reply::Done(completion) = last else { panic!("{last:?}") };
    assert_eq!(completion.finish, Finish::Cancelled);
    // clients that disconnect, one with a request in progress and one with a waiting request
    let mut others = [server.client(), server.client()];
    others.iter_mut().for_each(|c| c.send(&work("endless")).unwrap());
    while server.waiting().0 < 2 {}
    drop(others);
    server.wait_until_idle();
}

#[test]
fn an_invalid_frame_ends_its_own_connection_alone() {
    let server = Server::start(LONG_IDLE);
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\xff\xff\xff\xff rest", b"\x02\0\0\0{}", b"\x04\0\0\0null"] {
        let mut raw = server.raw();
        raw.write_all(bytes).unwrap();
        assert_eq!(raw.read(&mut [0; 16]).unwrap_or(0), 0, "{bytes:?} has no answer but the end");
    }
    // two requests at once on one connection
    let mut client = server.client();
    client.send(&work("endless")).unwrap();
    client.send(&work("list")).unwrap();
    let since = Instant::now();
    while client.receive::<Reply>(Some(TIMEOUT)).is_ok() {
        assert!(since.elapsed() < TIMEOUT, "that conversation goes on");
    }
    // half a frame and then silence does not block other clients
    let mut half = server.raw();
    half.write_all(b"\x10\0\0\0{\"count").unwrap();
    let mut client = server.client();
    client.send(&work("list")).unwrap();
    assert!(matches!(receive_all(&mut client).1, Reply::Done(_)));
}

/// The folder's permissions prevent this; the user is checked in case they fail.
#[cfg(target_os = "linux")]
#[test]
fn another_user_is_not_served_and_ends_nothing() {
    use super::peer::stranger;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let server = Server::start(LONG_IDLE);
    assert_eq!(server.waiting(), (0, 0), "it has begun");
    set_permissions(server.dir.path(), Permissions::from_mode(0o711)).unwrap();
    set_permissions(server.socket(), Permissions::from_mode(0o666)).unwrap();
    for call in [Call::Hello { idle_s: 60.0 }, Call::Status, work("list"), Call::Stop] {
        let reply = stranger::run_as(|| {
            let mut client = server.client();
            // the server may have disconnected by now
            let _ = client.send(&call);
            client.receive::<Reply>(Some(TIMEOUT))
        });
        let Some(reply) = reply else { return };
        assert!(reply.is_err(), "{call:?} is answered: {reply:?}");
    }
    assert_eq!(server.waiting(), (0, 0), "its own user is served as before");
}

#[test]
fn the_server_survives_a_flood_of_connections() {
    let server = Server::start(LONG_IDLE);
    let crowd: Vec<UnixStream> = (0..100).map(|_| server.raw()).collect();
    drop(crowd);
    let since = Instant::now();
    loop {
        let mut client = server.client();
        if client.send(&Call::Count("a".into())).is_ok() && client.receive::<Reply>(Some(TIMEOUT)).is_ok() {
            break;
        }
        assert!(since.elapsed() < TIMEOUT, "nobody is served any more");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_client_beyond_the_limit_gets_a_busy_reply() {
    let server = Server::start(LONG_IDLE);
    let hello = |client: &mut Channel| {
        let _ = client.send(&Call::Hello { idle_s: 60.0 });
        client.receive::<Reply>(Some(TIMEOUT))
    };
    let mut clients: Vec<Channel> = Vec::new();
    let refusal = loop {
        let mut client = server.client();
        match hello(&mut client) {
            Ok(Some(Reply::Hello { .. })) => clients.push(client),
            other => break other.unwrap(),
        }
        assert!(clients.len() < 100, "nobody is too many");
    };
    assert_eq!((refusal, clients.len()), (Some(Reply::Failed("busy".into())), 32));
}

#[test]
fn it_ends_when_idle_and_removes_its_socket() {
    let mut server = Server::start(Duration::from_secs(3));
    let mut silent = server.client();
    assert!(!server.ends_within(Duration::from_millis(1500)));
    // a greeting extends the idle time; an open connection alone does not
    silent.send(&Call::Hello { idle_s: 4.0 }).unwrap();
    let since = Instant::now();
    assert!(server.ends_within(TIMEOUT));
    assert!(since.elapsed() >= Duration::from_millis(3900), "{:?}", since.elapsed());
    assert!(!server.socket().exists());
}

#[test]
fn it_does_not_end_during_a_request() {
    let mut server = Server::start(Duration::from_secs(2));
    let mut client = server.client();
    client.send(&work("slow")).unwrap();
    assert!(matches!(receive_all(&mut client).1, Reply::Done(_)), "four seconds of work, two of idleness");
    assert!(server.ends_within(TIMEOUT));
}

#[test]
fn it_does_not_end_while_a_client_waits_for_the_model_to_open() {
    let (release, opened) = mpsc::channel::<()>();
    let server = Server::with(
        LONG_IDLE,
        || false,
        move || {
            let _ = opened.recv();
            Ok(Arc::new(Scripted::parse(r#"{"rules": [{"reply": "ls"}]}"#, "script")?))
        },
    );
    let mut client = server.client();
    client.send(&work("list")).unwrap();
    assert_eq!(client.receive::<Reply>(Some(TIMEOUT)).unwrap(), Some(Reply::Beat { queued: false }));
    assert_eq!(server.waiting(), (1, 0), "nobody is counted, and so it may end under its caller");
    drop(release);
    assert!(matches!(receive_all(&mut client).1, Reply::Done(_)));
    server.wait_until_idle();
    assert_eq!(server.waiting(), (0, 1));
}

#[test]
fn it_ends_when_its_model_or_its_socket_is_replaced() {
    for what in ["model", "s.sock"] {
        let mut server = Server::start(LONG_IDLE);
        assert_eq!(server.waiting(), (0, 0), "it has begun");
        let file = server.dir.path().join(what);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "another one").unwrap();
        assert!(server.ends_within(TIMEOUT), "{what}: sooner than for idleness");
        assert_eq!(server.socket().exists(), what == "s.sock", "it removes its own socket and nobody else's");
    }
}

#[test]
fn it_ends_when_memory_is_short() {
    static SHORT: AtomicBool = AtomicBool::new(false);
    let script = || -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(Scripted::parse(r#"{"rules": [{"reply": "a b c d e f g h i j", "delay_ms": 200}]}"#, "script")?))
    };
    let mut server = Server::with(LONG_IDLE, || SHORT.load(Ordering::Relaxed), script);
    let mut client = server.client();
    client.send(&work("anything")).unwrap();
    assert!(client.receive::<Reply>(Some(TIMEOUT)).unwrap().is_some());
    SHORT.store(true, Ordering::Relaxed);
    assert!(matches!(receive_all(&mut client).1, Reply::Done(_)), "not before it has answered");
    assert!(server.ends_within(TIMEOUT));
}

#[test]
fn retiring_finishes_the_request_in_progress_and_stopping_does_not() {
    let mut server = Server::start(LONG_IDLE);
    let (mut client, mut other) = (server.client(), server.client());
    client.send(&work("slow")).unwrap();
    assert!(client.receive::<Reply>(Some(TIMEOUT)).unwrap().is_some());
    other.send(&Call::Retire).unwrap();
    assert_eq!(other.receive::<Reply>(Some(TIMEOUT)).unwrap(), Some(Reply::Leaving));
    assert!(matches!(receive_all(&mut client).1, Reply::Done(_)));
    assert!(server.ends_within(TIMEOUT));

    let mut server = Server::start(LONG_IDLE);
    let mut client = server.client();
    client.send(&work("endless")).unwrap();
    assert!(client.receive::<Reply>(Some(TIMEOUT)).unwrap().is_some());
    server.client().send(&Call::Stop).unwrap();
    assert!(server.ends_within(TIMEOUT));
}

#[test]
fn an_error_of_opening_the_model_is_reported_and_ends_it() {
    let mut server = Server::with(LONG_IDLE, || false, || Err(ModelError::Engine("no weights".into())));
    let mut client = server.client();
    client.send(&work("list")).unwrap();
    assert_eq!(receive_all(&mut client).1, Reply::Failed("inference failed: no weights".into()));
    assert!(server.ends_within(TIMEOUT));
}

#[test]
fn a_panic_of_opening_the_model_is_reported_and_ends_it() {
    let mut server = Server::with(LONG_IDLE, || false, || panic!("a test's own panic"));
    let mut client = server.client();
    client.send(&work("list")).unwrap();
    assert_eq!(receive_all(&mut client).1, Reply::Failed("opening the model broke off".into()));
    assert!(server.ends_within(TIMEOUT));
}

/// A model that sends a word, if it has one, and then ignores cancellation until the sender of `until` is dropped.
pub(super) struct Hanging {
    pub word: &'static str,
    pub until: Mutex<mpsc::Receiver<()>>,
}

impl Model for Hanging {
    fn id(&self) -> &str {
        "hanging"
    }

    fn limits(&self) -> Limits {
        Limits { context: 4096 }
    }

    fn count(&self, text: &str) -> usize {
        text.len()
    }

    fn generate(&self, _: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        if !self.word.is_empty() {
            on(self.word);
        }
        let _ = self.until.lock().unwrap().recv();
        Err(ModelError::Engine("it hung".into()))
    }
}

#[test]
fn a_computation_that_ignores_its_deadline_ends_it() {
    let (_release, until) = mpsc::channel();
    let model = Arc::new(Hanging { word: "", until: Mutex::new(until) });
    let mut server = Server::with(LONG_IDLE, || false, move || Ok(model));
    let mut client = server.client();
    let cancel = Cancel::new().with_deadline(Instant::now() + Duration::from_millis(50));
    client.send(&Call::Generate(Box::new(Work::of(&Request::nothing(&cancel))))).unwrap();
    assert!(server.ends_within(TIMEOUT));
    assert!(!server.socket().exists());
}
