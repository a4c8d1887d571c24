//! The protocol of the socket: frames of a length (u32, little-endian) and that many bytes of JSON.
//!
//! [`Call::Hello`] and [`Reply::Hello`] have the same form in every version, so that two versions can tell that they
//! differ; everything else may change with [`PROTOCOL`].

use super::Status;
use caro_model::{Cancel, Completion, ModelError, Prompt, Request, Sampling, Shape};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The version of the protocol, except for the greeting.
pub(super) const PROTOCOL: u32 = 7;

/// Most bytes of a frame to a resident: far more than the text of any context window.
pub(super) const MAX_CALL_BYTES: usize = 2 << 20;

/// Most bytes of a frame to a client: a completion of a few thousand tokens, each with its bytes and probabilities.
pub(super) const MAX_REPLY_BYTES: usize = 8 << 20;

/// Most time that a write waits for the reader.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// The shortest read timeout: zero is invalid.
const MIN_READ_TIMEOUT: Duration = Duration::from_millis(1);

/// A message from a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Call {
    /// The greeting, in the first frame.
    Hello {
        /// Seconds that the resident should stay after the last request.
        idle_s: f64,
    },
    /// Asks for the size of the model's context window.
    Limits,
    /// Asks for the number of tokens in a text.
    Count(String),
    /// Continues a prompt. One at a time per client.
    Generate(Box<Work>),
    /// Ends the generation in progress.
    Cancel,
    /// Asks for the resident's status.
    Status,
    /// Ends the resident after the requests in progress.
    Retire,
    /// Ends the resident now.
    Stop,
}

/// A message from a resident.
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
        /// Its process id.
        pid: u32,
    },
    /// The request is still in progress or queued; sent several times a second.
    Beat {
        /// True if the request has not begun: others are before it.
        queued: bool,
    },
    /// Most tokens of prompt and completion together.
    Limits(usize),
    /// The number of tokens in the text.
    Count(usize),
    /// The next piece of a completion.
    Text(String),
    /// The whole completion.
    Done(Box<Completion>),
    /// All completions of [`Work::sampled`].
    Sampled(Vec<Completion>),
    /// The resident could not do it; the caller's process may.
    Failed(String),
    /// The request is invalid, in any process.
    Refused(Refusal),
    /// The resident's status.
    Status(Box<Status>),
    /// The answer to [`Call::Retire`] and [`Call::Stop`].
    Leaving,
}

/// The error of an invalid request: the same model in the caller's process would return it too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Refusal {
    /// [`ModelError::TooLong`].
    TooLong { tokens: usize, limit: usize },
    /// [`ModelError::BadShape`].
    BadShape(String),
}

impl Refusal {
    /// Converts an error; `None` for one that the same request may not have in another process.
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

/// The kind of a generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Task {
    /// One completion, whose text is streamed.
    Complete,
    /// This number of completions together.
    Sample(usize),
}

/// A [`Request`] that can be sent: the time left stands for its [`Cancel`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Work {
    prompt: Prompt,
    shape: Shape,
    sampling: Sampling,
    max_tokens: usize,
    /// Milliseconds until the request's deadline.
    left_ms: Option<u64>,
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

    /// Asks for `count` completions together.
    pub fn sampled(request: &Request, count: usize) -> Self {
        Self { task: Task::Sample(count), ..Self::of(request) }
    }

    /// Returns the task, and the request with a new [`Cancel`].
    pub fn into_request(self) -> (Task, Request) {
        // a deadline too far away to be represented is none
        let deadline = self.left_ms.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        let cancel = match deadline {
            Some(deadline) => Cancel::new().with_deadline(deadline),
            None => Cancel::new(),
        };
        let Self { prompt, shape, sampling, max_tokens, task, .. } = self;
        (task, Request { prompt, shape, sampling, max_tokens, cancel })
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct Channel {
    stream: UnixStream,
    /// Bytes read that are not parsed yet.
    buffer: Vec<u8>,
    /// Most bytes of a frame that is accepted.
    max_frame: usize,
}

impl Channel {
    pub fn new(stream: UnixStream, max_frame: usize) -> io::Result<Self> {
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Self { stream, buffer: Vec::new(), max_frame })
    }

    /// Returns a second handle of the same end, for another thread: one receives, the other sends.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { stream: self.stream.try_clone()?, buffer: Vec::new(), max_frame: self.max_frame })
    }

    /// Closes the connection for both handles.
    pub fn close(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// If the other end has closed or does not read.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut frame = vec![0; 4];
        serde_json::to_writer(&mut frame, message)?;
        let length = u32::try_from(frame.len() - 4).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
        frame[..4].copy_from_slice(&length.to_le_bytes());
        self.stream.write_all(&frame)
    }

    /// Receives the next frame; `None` if none comes within `timeout`. Without a timeout, waits without limit.
    ///
    /// # Errors
    /// If the other end has closed, or sends something that is not a frame.
    pub fn receive<T: DeserializeOwned>(&mut self, timeout: Option<Duration>) -> io::Result<Option<T>> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            if let Some(message) = self.parse()? {
                return Ok(Some(message));
            }
            // read at least once: bytes may have come while this process was suspended
            let left =
                deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).max(MIN_READ_TIMEOUT));
            self.stream.set_read_timeout(left)?;
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                // a frame in many small pieces does not extend the timeout
                Ok(n) => {
                    self.buffer.extend_from_slice(&chunk[..n]);
                    if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return self.parse();
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Parses the first frame in the buffer and removes it; `None` if it is not complete.
    fn parse<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some((head, rest)) = self.buffer.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > self.max_frame {
            return Err(io::Error::new(ErrorKind::InvalidData, "the frame is too long"));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(body)?;
        self.buffer.drain(..4 + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_model::{Finish, Role, Token, Usage};

    const SHORT_WAIT: Option<Duration> = Some(Duration::from_millis(20));

    fn pair() -> (Channel, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Channel::new(ours, 1000).unwrap(), theirs)
    }

    #[test]
    fn frames_arrive_when_split_anywhere_or_sent_together() {
        let (mut channel, mut raw) = pair();
        let frame = |body: &str| [&(body.len() as u32).to_le_bytes()[..], body.as_bytes()].concat();
        let both = [frame(r#"{"count":"a"}"#), frame(r#""cancel""#)].concat();
        for cut in 0..both.len() {
            raw.write_all(&both[..cut]).unwrap();
            let early = channel.receive::<Call>(Some(Duration::from_millis(1))).unwrap();
            raw.write_all(&both[cut..]).unwrap();
            let mut got: Vec<Call> = early.into_iter().collect();
            while got.len() < 2 {
                got.push(channel.receive(SHORT_WAIT).unwrap().unwrap());
            }
            assert_eq!(got, [Call::Count("a".into()), Call::Cancel], "cut at {cut}");
        }
        assert_eq!(channel.receive::<Call>(SHORT_WAIT).unwrap(), None);
    }

    #[test]
    fn invalid_frames_a_closed_end_and_silence_have_different_results() {
        for (bytes, kind) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], ErrorKind::InvalidData),
            (b"\xff\xff\xff\xff", ErrorKind::InvalidData),
            (b"\x02\0\0\0no", ErrorKind::InvalidData),
            (b"\x01\0\0\0", ErrorKind::UnexpectedEof),
        ] {
            let (mut channel, mut raw) = pair();
            raw.write_all(bytes).unwrap();
            drop(raw);
            assert_eq!(channel.receive::<Call>(SHORT_WAIT).unwrap_err().kind(), kind, "{bytes:?}");
        }
        let (mut channel, _raw) = pair();
        assert_eq!(channel.receive::<Call>(SHORT_WAIT).unwrap(), None);
    }

    #[test]
    fn a_frame_longer_than_the_limit_is_refused_before_it_is_read() {
        let (mut channel, mut raw) = pair();
        raw.write_all(&1001u32.to_le_bytes()).unwrap();
        assert_eq!(channel.receive::<Call>(SHORT_WAIT).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn writing_to_a_reader_that_never_reads_times_out() {
        let (channel, _raw) = pair();
        let mut channel = Channel { max_frame: MAX_REPLY_BYTES, ..channel };
        channel.stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        let text = Reply::Text("x".repeat(1 << 20));
        assert!((0..8).any(|_| channel.send(&text).is_err()));
    }

    #[test]
    fn a_completion_survives_serialization() {
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
    fn a_request_survives_serialization_with_its_deadline() {
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
        let (task, received) = work.into_request();
        assert_eq!(task, Task::Complete);
        assert_eq!((received.prompt, received.shape, received.sampling, received.max_tokens), {
            let r = request;
            (r.prompt, r.shape, r.sampling, r.max_tokens)
        });
        let left = received.cancel.deadline().unwrap().saturating_duration_since(Instant::now());
        assert!(left > Duration::from_secs(50) && left <= Duration::from_secs(60), "{left:?}");
    }
}
