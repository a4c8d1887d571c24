//! The server's side of the conversation, with a scripted model, in this process.

use super::server::run;
use super::wire::{Call, Channel, MOST_REPLY, Reply, Work};
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

/// Far more than anything here takes, on a slow machine too.
pub(super) const SOON: Duration = Duration::from_secs(60);
/// What that is held against.
pub(super) const AGES: Duration = Duration::from_secs(600);

pub(super) struct Server {
    pub dir: tempfile::TempDir,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Server {
    /// Serves a model that says `one two three ...` for "slow", almost never anything for "endless", which one it is for
    /// "in turn", and `ls` for everything else.
    fn start(idle: Duration) -> Self {
        Self::with(
            idle,
            || false,
            || {
                let script = r#"{"rules": [
                {"match": "slow", "reply": "one two three four five six seven eight nine ten", "delay_ms": 100},
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
        short: impl Fn() -> bool + Send + Sync + 'static,
        open: impl FnOnce() -> Result<Arc<dyn Model>, ModelError> + Send + 'static,
    ) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let (socket, file) = (dir.path().join("s.sock"), dir.path().join("model"));
        std::fs::write(&file, "model").unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let orders = Orders { socket, weights: Weights::Script(file), idle_s: idle.as_secs_f64() };
        let thread = std::thread::spawn(move || run(orders, listener, Box::new(short), open));
        Self { dir, thread: Some(thread) }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("s.sock")
    }

    fn raw(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream
    }

    pub fn client(&self) -> Channel {
        Channel::new(self.raw(), MOST_REPLY).unwrap()
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
        match client.receive(Some(SOON)).unwrap() {
            Some(Reply::Status(status)) => (status.waiting, status.served),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn is_soon_idle(&self) {
        let since = Instant::now();
        while self.waiting().0 > 0 {
            assert!(since.elapsed() < SOON, "still at work");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // one that is still busy with a crowd does not hear it the first time
        while !thread.is_finished() {
            if let Ok(stream) = UnixStream::connect(self.socket()) {
                let _ = Channel::new(stream, MOST_REPLY).and_then(|mut channel| channel.send(&Call::Stop));
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

/// What comes until the end of a generation: the text in pieces, the last word, whether it waited in the queue.
fn all(client: &mut Channel) -> (String, Reply, bool) {
    let (mut text, mut queued) = (String::new(), false);
    loop {
        match client.receive(Some(SOON)).unwrap().expect("an answer") {
            Reply::Text(piece) => text.push_str(&piece),
            Reply::Beat { queued: q } => queued |= q,
            last => return (text, last, queued),
        }
    }
}

#[test]
fn a_conversation_of_many_questions() {
    let server = Server::start(AGES);
    let mut client = server.client();
    client.send(&Call::Hello { idle_s: 60.0 }).unwrap();
    let hello = client.receive(Some(SOON)).unwrap().unwrap();
    assert!(matches!(hello, Reply::Hello { pid, .. } if pid == std::process::id()), "{hello:?}");
    client.send(&Call::Count("a b c".into())).unwrap();
    client.send(&Call::Limits).unwrap();
    assert_eq!(client.receive::<Reply>(Some(SOON)).unwrap(), Some(Reply::Count(3)));
    assert_eq!(client.receive::<Reply>(Some(SOON)).unwrap(), Some(Reply::Limits(4096)));
    for _ in 0..3 {
        client.send(&work("list")).unwrap();
        let (text, last, _) = all(&mut client);
        let Reply::Done(completion) = last else { panic!("{last:?}") };
        assert_eq!((text.as_str(), completion.text.as_str(), completion.finish), ("ls", "ls", Finish::Stop));
    }
    client.send(&work("broken")).unwrap();
    assert!(matches!(all(&mut client).1, Reply::Failed(_)));
    assert_eq!(server.waiting(), (0, 3));
}

#[test]
fn several_completions_come_together() {
    let server = Server::start(AGES);
    let mut client = server.client();
    let mut prompt = Prompt::default();
    prompt.push(Role::User, "list");
    let shape = Shape::Text { stop: vec![] };
    let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 64, cancel: Cancel::new() };
    client.send(&Call::Generate(Box::new(Work::sampled(&request, 3)))).unwrap();
    let (text, last, _) = all(&mut client);
    let Reply::Sampled(completions) = last else { panic!("{last:?}") };
    let texts: Vec<&str> = completions.iter().map(|c| c.text.as_str()).collect();
    assert_eq!((text.as_str(), texts), ("", vec!["ls"; 3]), "nothing on the way, all at the end");
}

#[test]
fn first_come_first_served_and_who_waits_is_told() {
    let server = Server::start(AGES);
    let mut clients: Vec<Channel> = (0..3).map(|_| server.client()).collect();
    for (before, client) in clients.iter_mut().enumerate() {
        client.send(&work("in turn")).unwrap();
        let since = Instant::now();
        let come = || server.waiting().0 + usize::try_from(server.waiting().1).unwrap();
        while come() <= before {
            assert!(since.elapsed() < SOON, "it does not come to the queue");
        }
    }
    let ended = clients.iter_mut().map(|client| {
        let (text, last, queued) = all(client);
        assert!(matches!(last, Reply::Done(_)), "{last:?}");
        (text, queued)
    });
    let turns = ["first", "second", "third"].map(|turn| (format!("{turn} a b c d e"), turn != "first"));
    assert_eq!(ended.collect::<Vec<_>>(), turns);
}

#[test]
fn who_cancels_or_leaves_stops_the_work_at_once() {
    let server = Server::start(AGES);
    let mut client = server.client();
    client.send(&work("endless")).unwrap();
    assert!(client.receive::<Reply>(Some(SOON)).unwrap().is_some());
    client.send(&Call::Cancel).unwrap();
    let (_, last, _) = all(&mut client);
    let Reply::Done(completion) = last else { panic!("{last:?}") };
    assert_eq!(completion.finish, Finish::Cancelled);
    // and by leaving, of what is under way and of what waits
    let mut others = [server.client(), server.client()];
    others.iter_mut().for_each(|c| c.send(&work("endless")).unwrap());
    while server.waiting().0 < 2 {}
    drop(others);
    server.is_soon_idle();
}

#[test]
fn nonsense_ends_a_conversation_and_nothing_else() {
    let server = Server::start(AGES);
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\xff\xff\xff\xff rest", b"\x02\0\0\0{}", b"\x04\0\0\0null"] {
        let mut raw = server.raw();
        raw.write_all(bytes).unwrap();
        assert_eq!(raw.read(&mut [0; 16]).unwrap_or(0), 0, "{bytes:?} has no answer but the end");
    }
    // two requests at once
    let mut client = server.client();
    client.send(&work("endless")).unwrap();
    client.send(&work("list")).unwrap();
    let since = Instant::now();
    while client.receive::<Reply>(Some(SOON)).is_ok() {
        assert!(since.elapsed() < SOON, "that conversation goes on");
    }
    // half a frame, and then silence: it hinders nobody
    let mut half = server.raw();
    half.write_all(b"\x10\0\0\0{\"count").unwrap();
    let mut client = server.client();
    client.send(&work("list")).unwrap();
    assert!(matches!(all(&mut client).1, Reply::Done(_)));
}

/// The folder keeps him away; this is for the day that it does not.
#[cfg(target_os = "linux")]
#[test]
fn another_user_is_not_served_and_ends_nothing() {
    use super::peer::stranger;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let server = Server::start(AGES);
    assert_eq!(server.waiting(), (0, 0), "it has begun");
    set_permissions(server.dir.path(), Permissions::from_mode(0o711)).unwrap();
    set_permissions(server.socket(), Permissions::from_mode(0o666)).unwrap();
    for call in [Call::Hello { idle_s: 60.0 }, Call::Status, work("list"), Call::Stop] {
        let said = stranger::does(|| {
            let mut client = server.client();
            // it may have hung up by now
            let _ = client.send(&call);
            client.receive::<Reply>(Some(SOON))
        });
        let Some(said) = said else { return };
        assert!(said.is_err(), "{call:?} is answered: {said:?}");
    }
    assert_eq!(server.waiting(), (0, 0), "its own user is served as before");
}

#[test]
fn a_flood_of_callers_leaves_it_alive() {
    let server = Server::start(AGES);
    let crowd: Vec<UnixStream> = (0..100).map(|_| server.raw()).collect();
    drop(crowd);
    let since = Instant::now();
    loop {
        let mut client = server.client();
        if client.send(&Call::Count("a".into())).is_ok() && client.receive::<Reply>(Some(SOON)).is_ok() {
            break;
        }
        assert!(since.elapsed() < SOON, "nobody is served any more");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn one_caller_too_many_is_told_and_not_just_left() {
    let server = Server::start(AGES);
    let hello = |client: &mut Channel| {
        let _ = client.send(&Call::Hello { idle_s: 60.0 });
        client.receive::<Reply>(Some(SOON))
    };
    let mut clients: Vec<Channel> = Vec::new();
    let told = loop {
        let mut client = server.client();
        match hello(&mut client) {
            Ok(Some(Reply::Hello { .. })) => clients.push(client),
            other => break other.unwrap(),
        }
        assert!(clients.len() < 100, "nobody is too many");
    };
    assert_eq!((told, clients.len()), (Some(Reply::Failed("busy".into())), 32));
}

#[test]
fn it_ends_when_nobody_asks_and_takes_its_socket_along() {
    let mut server = Server::start(Duration::from_millis(300));
    let mut silent = server.client();
    assert!(!server.ends_within(Duration::from_millis(150)));
    // a client may give it more time, and one that only stays connected does not keep it
    silent.send(&Call::Hello { idle_s: 0.5 }).unwrap();
    let since = Instant::now();
    assert!(server.ends_within(SOON));
    assert!(since.elapsed() >= Duration::from_millis(450), "{:?}", since.elapsed());
    assert!(!server.socket().exists());
}

#[test]
fn it_does_not_end_while_it_works() {
    let mut server = Server::start(Duration::from_millis(200));
    let mut client = server.client();
    client.send(&work("slow")).unwrap();
    assert!(matches!(all(&mut client).1, Reply::Done(_)), "a second of work, a fifth of a second of idleness");
    assert!(server.ends_within(SOON));
}

#[test]
fn who_waits_for_the_model_to_be_opened_keeps_it_there() {
    let (release, opened) = mpsc::channel::<()>();
    let server = Server::with(
        AGES,
        || false,
        move || {
            let _ = opened.recv();
            Ok(Arc::new(Scripted::parse(r#"{"rules": [{"reply": "ls"}]}"#, "script")?))
        },
    );
    let mut client = server.client();
    client.send(&work("list")).unwrap();
    assert_eq!(client.receive::<Reply>(Some(SOON)).unwrap(), Some(Reply::Beat { queued: false }));
    assert_eq!(server.waiting(), (1, 0), "nobody is counted, and so it may end under its caller");
    drop(release);
    assert!(matches!(all(&mut client).1, Reply::Done(_)));
    assert_eq!(server.waiting(), (0, 1));
}

#[test]
fn it_ends_when_its_model_or_its_socket_is_replaced() {
    for what in ["model", "s.sock"] {
        let mut server = Server::start(AGES);
        assert_eq!(server.waiting(), (0, 0), "it has begun");
        let file = server.dir.path().join(what);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "another one").unwrap();
        assert!(server.ends_within(SOON), "{what}: sooner than for idleness");
        assert_eq!(server.socket().exists(), what == "s.sock", "it removes its own socket and nobody else's");
    }
}

#[test]
fn it_gives_its_memory_back_when_others_need_it() {
    static SHORT: AtomicBool = AtomicBool::new(false);
    let script = || -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(Scripted::parse(r#"{"rules": [{"reply": "a b c d e f g h i j", "delay_ms": 200}]}"#, "script")?))
    };
    let mut server = Server::with(AGES, || SHORT.load(Ordering::Relaxed), script);
    let mut client = server.client();
    client.send(&work("anything")).unwrap();
    assert!(client.receive::<Reply>(Some(SOON)).unwrap().is_some());
    SHORT.store(true, Ordering::Relaxed);
    assert!(matches!(all(&mut client).1, Reply::Done(_)), "not before it has answered");
    assert!(server.ends_within(SOON));
}

#[test]
fn told_to_retire_it_finishes_and_told_to_stop_it_does_not() {
    let mut server = Server::start(AGES);
    let (mut client, mut other) = (server.client(), server.client());
    client.send(&work("slow")).unwrap();
    assert!(client.receive::<Reply>(Some(SOON)).unwrap().is_some());
    other.send(&Call::Retire).unwrap();
    assert_eq!(other.receive::<Reply>(Some(SOON)).unwrap(), Some(Reply::Leaving));
    assert!(matches!(all(&mut client).1, Reply::Done(_)));
    assert!(server.ends_within(SOON));

    let mut server = Server::start(AGES);
    let mut client = server.client();
    client.send(&work("endless")).unwrap();
    assert!(client.receive::<Reply>(Some(SOON)).unwrap().is_some());
    server.client().send(&Call::Stop).unwrap();
    assert!(server.ends_within(SOON));
}

#[test]
fn a_model_that_cannot_be_opened_is_told_and_ends_it() {
    let mut server = Server::with(AGES, || false, || Err(ModelError::Engine("no weights".into())));
    let mut client = server.client();
    client.send(&work("list")).unwrap();
    assert_eq!(all(&mut client).1, Reply::Failed("inference failed: no weights".into()));
    assert!(server.ends_within(SOON));
}

#[test]
fn a_model_that_breaks_off_when_it_is_opened_is_told_and_ends_it() {
    let mut server = Server::with(AGES, || false, || panic!("a test's own panic"));
    let mut client = server.client();
    client.send(&work("list")).unwrap();
    assert_eq!(all(&mut client).1, Reply::Failed("opening the model broke off".into()));
    assert!(server.ends_within(SOON));
}

/// A model that says a word, if it has one, and does not come back before the other end of this is gone, whoever cancels.
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
fn a_computation_that_does_not_heed_its_deadline_ends_it() {
    let (_held, until) = mpsc::channel();
    let model = Arc::new(Hanging { word: "", until: Mutex::new(until) });
    let mut server = Server::with(AGES, || false, move || Ok(model));
    let mut client = server.client();
    let cancel = Cancel::new().with_deadline(Instant::now() + Duration::from_millis(50));
    client.send(&Call::Generate(Box::new(Work::of(&Request::nothing(&cancel))))).unwrap();
    assert!(server.ends_within(SOON));
    assert!(!server.socket().exists());
}
