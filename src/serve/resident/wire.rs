//! What is said over the socket: frames of a length (u32, little-endian) and that many bytes of JSON.
//!
//! [`Call::Hello`] and [`Reply::Hello`] keep their form in every version, so that versions can tell that they differ; all
//! else may change with [`PROTOCOL`].

use super::Status;
use caro_model::{Cancel, Completion, ModelError, Prompt, Request, Sampling, Shape};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The version of everything but the greeting.
pub(super) const PROTOCOL: u32 = 7;

/// The most bytes of a frame to a resident: many times what any context window takes.
pub(super) const MOST_CALL: usize = 2 << 20;

/// The most bytes of a frame to a client: a completion of a few thousand tokens, each with its bytes and figures.
pub(super) const MOST_REPLY: usize = 8 << 20;

/// The longest that a write may wait for a reader.
const WRITE: Duration = Duration::from_secs(2);

/// The shortest wait that the system takes for one.
const SHORTEST: Duration = Duration::from_millis(1);

/// From a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Call {
    /// The first frame.
    Hello {
        /// Seconds that the resident is to stay after the last request.
        idle_s: f64,
    },
    /// What the model takes.
    Limits,
    /// Tokens of a text.
    Count(String),
    /// Continue a prompt. One at a time.
    Generate(Box<Work>),
    /// End what is being generated.
    Cancel,
    /// Tell about yourself.
    Status,
    /// Take no new client for granted any more, and end after what is under way.
    Retire,
    /// End now.
    Stop,
}

/// From a resident.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// The answer to [`Call::Hello`].
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// See [`super::identity::of_program`].
        program: String,
        /// See [`super::identity::of_file`].
        model: String,
        /// Its process.
        pid: u32,
    },
    /// Still at work, sent several times a second.
    Beat {
        /// Not begun: others are before.
        queued: bool,
    },
    /// Tokens of prompt and completion together.
    Limits(usize),
    /// Tokens of the text.
    Count(usize),
    /// The next piece of a completion.
    Text(String),
    /// The whole completion.
    Done(Box<Completion>),
    /// All completions of [`Work::sampled`].
    Sampled(Vec<Completion>),
    /// It cannot be done here.
    Failed(String),
    /// It cannot be done anywhere.
    Refused(Refusal),
    /// About the resident.
    Status(Box<Status>),
    /// To [`Call::Retire`] and [`Call::Stop`].
    Leaving,
}

/// What is wrong with a request itself: the same model in the caller's process would say no other word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Refusal {
    /// [`ModelError::TooLong`].
    TooLong { tokens: usize, limit: usize },
    /// [`ModelError::BadShape`].
    BadShape(String),
}

impl Refusal {
    /// `None` for an error that may be this process's own.
    pub fn of(error: &ModelError) -> Option<Self> {
        match error {
            ModelError::TooLong { tokens, limit } => Some(Self::TooLong { tokens: *tokens, limit: *limit }),
            ModelError::BadShape(why) => Some(Self::BadShape(why.clone())),
            _ => None,
        }
    }
}

impl From<Refusal> for ModelError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TooLong { tokens, limit } => Self::TooLong { tokens, limit },
            Refusal::BadShape(why) => Self::BadShape(why),
        }
    }
}

/// What is wanted of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Task {
    /// One completion, with its text as it comes.
    Complete,
    /// So many completions together.
    Sample(usize),
}

/// A [`Request`] without its switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Work {
    prompt: Prompt,
    shape: Shape,
    sampling: Sampling,
    max_tokens: usize,
    /// Milliseconds until nobody wants the answer any more.
    left_ms: Option<u64>,
    /// What is wanted.
    task: Task,
}

impl Work {
    pub fn of(request: &Request) -> Self {
        let left = request.cancel.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        Self {
            prompt: request.prompt.clone(),
            shape: request.shape.clone(),
            sampling: request.sampling,
            max_tokens: request.max_tokens,
            left_ms: left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
            task: Task::Complete,
        }
    }

    /// The same for several completions together.
    pub fn sampled(request: &Request, count: usize) -> Self {
        Self { task: Task::Sample(count), ..Self::of(request) }
    }

    /// What is wanted, and the request with a switch of its own.
    pub fn open(self) -> (Task, Request) {
        // A deadline too far to be told apart from none is none.
        let deadline = self.left_ms.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        let cancel = match deadline {
            Some(deadline) => Cancel::new().with_deadline(deadline),
            None => Cancel::new(),
        };
        let Self { prompt, shape, sampling, max_tokens, task, .. } = self;
        (task, Request { prompt, shape, sampling, max_tokens, cancel })
    }
}

/// One end of a conversation.
#[derive(Debug)]
pub(super) struct Channel {
    stream: UnixStream,
    /// Bytes read that are no whole frame yet.
    read: Vec<u8>,
    /// The most bytes of a frame that is accepted.
    most: usize,
}

impl Channel {
    pub fn new(stream: UnixStream, most: usize) -> io::Result<Self> {
        stream.set_write_timeout(Some(WRITE))?;
        Ok(Self { stream, read: Vec::new(), most })
    }

    /// A second handle of the same end, for another thread: one receives, the other sends.
    pub fn second(&self) -> io::Result<Self> {
        Ok(Self { stream: self.stream.try_clone()?, read: Vec::new(), most: self.most })
    }

    /// Ends the conversation for both handles.
    pub fn close(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// If the other end is gone or does not read.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut frame = vec![0; 4];
        serde_json::to_writer(&mut frame, message)?;
        let length = u32::try_from(frame.len() - 4).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
        frame[..4].copy_from_slice(&length.to_le_bytes());
        self.stream.write_all(&frame)
    }

    /// The next frame; `None` if none came within `wait`, which is for ever if `None`.
    ///
    /// # Errors
    /// If the other end is gone, or what it sends is no frame.
    pub fn receive<T: DeserializeOwned>(&mut self, wait: Option<Duration>) -> io::Result<Option<T>> {
        let until = wait.map(|wait| Instant::now() + wait);
        loop {
            if let Some(message) = self.parse()? {
                return Ok(Some(message));
            }
            // Once at least: what came while this process was stopped is there.
            let left = until.map(|until| until.saturating_duration_since(Instant::now()).max(SHORTEST));
            self.stream.set_read_timeout(left)?;
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                // A frame in very small pieces does not hold us longer than that either.
                Ok(n) => {
                    self.read.extend_from_slice(&chunk[..n]);
                    if until.is_some_and(|until| Instant::now() >= until) {
                        return self.parse();
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Takes the first frame off what was read, if it is whole.
    fn parse<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some((head, rest)) = self.read.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > self.most {
            return Err(io::Error::new(ErrorKind::InvalidData, "the frame is too long"));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(body)?;
        self.read.drain(..4 + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_model::{Finish, Role, Token, Usage};

    const SOON: Option<Duration> = Some(Duration::from_millis(20));

    fn pair() -> (Channel, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Channel::new(ours, 1000).unwrap(), theirs)
    }

    #[test]
    fn frames_survive_being_cut_anywhere_and_sent_together() {
        let (mut channel, mut raw) = pair();
        let frame = |body: &str| [&(body.len() as u32).to_le_bytes()[..], body.as_bytes()].concat();
        let both = [frame(r#"{"count":"a"}"#), frame(r#""cancel""#)].concat();
        for cut in 0..both.len() {
            raw.write_all(&both[..cut]).unwrap();
            let early = channel.receive::<Call>(Some(Duration::from_millis(1))).unwrap();
            raw.write_all(&both[cut..]).unwrap();
            let mut got: Vec<Call> = early.into_iter().collect();
            while got.len() < 2 {
                got.push(channel.receive(SOON).unwrap().unwrap());
            }
            assert_eq!(got, [Call::Count("a".into()), Call::Cancel], "cut at {cut}");
        }
        assert_eq!(channel.receive::<Call>(SOON).unwrap(), None);
    }

    #[test]
    fn garbage_floods_and_silence_are_told_apart() {
        for (bytes, kind) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], ErrorKind::InvalidData),
            (b"\xff\xff\xff\xff", ErrorKind::InvalidData),
            (b"\x02\0\0\0no", ErrorKind::InvalidData),
            (b"\x01\0\0\0", ErrorKind::UnexpectedEof),
        ] {
            let (mut channel, mut raw) = pair();
            raw.write_all(bytes).unwrap();
            drop(raw);
            assert_eq!(channel.receive::<Call>(SOON).unwrap_err().kind(), kind, "{bytes:?}");
        }
        let (mut channel, _raw) = pair();
        assert_eq!(channel.receive::<Call>(SOON).unwrap(), None);
    }

    #[test]
    fn a_frame_longer_than_the_limit_is_refused_before_it_is_read() {
        let (mut channel, mut raw) = pair();
        raw.write_all(&1001u32.to_le_bytes()).unwrap();
        assert_eq!(channel.receive::<Call>(SOON).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn who_never_reads_does_not_hold_the_writer() {
        let (channel, _raw) = pair();
        let mut channel = Channel { most: MOST_REPLY, ..channel };
        channel.stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        let text = Reply::Text("x".repeat(1 << 20));
        assert!((0..8).any(|_| channel.send(&text).is_err()));
    }

    #[test]
    fn a_completion_crosses_unchanged() {
        let completion = Completion {
            text: "ls \u{1F980}".into(),
            tokens: vec![Token { bytes: vec![0xf0, 0x9f], logprob: Some(-0.123_456_79), runner_up: None }],
            end: Some(-0.5),
            finish: Finish::Length,
            usage: Usage { prompt_tokens: 3, prefill: Duration::from_micros(1234), adapted: true, ..Usage::default() },
        };
        let reply = Reply::Done(Box::new(completion));
        let text = serde_json::to_string(&reply).unwrap();
        assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), reply);
    }

    #[test]
    fn a_request_crosses_with_its_deadline() {
        let mut prompt = Prompt::system("s");
        prompt.push(Role::User, "u").stable_messages = 1;
        prompt.adapted = true;
        let cancel = Cancel::new().with_deadline(Instant::now() + Duration::from_secs(60));
        let request = Request {
            prompt,
            shape: Shape::Lark("start: /x/".into()),
            sampling: Sampling { temperature: 0.8, top_p: 0.95, seed: u64::MAX },
            max_tokens: 7,
            cancel,
        };
        let text = serde_json::to_string(&Call::Generate(Box::new(Work::of(&request)))).unwrap();
        let Call::Generate(work) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
        let (task, there) = work.open();
        assert_eq!(task, Task::Complete);
        assert_eq!((there.prompt, there.shape, there.sampling, there.max_tokens), {
            let r = request;
            (r.prompt, r.shape, r.sampling, r.max_tokens)
        });
        let left = there.cancel.deadline().unwrap().saturating_duration_since(Instant::now());
        assert!(left > Duration::from_secs(50) && left <= Duration::from_secs(60), "{left:?}");
    }
}
