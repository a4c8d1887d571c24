//! The calling side: a model that runs in the resident process, and in this process once the resident has failed.

use super::Open;
use super::link::Link;
use super::wire::{Call, MAX_CALL_BYTES, Reply, Work};
use caro_model::adapter::AdapterInfo;
use caro_model::{Completion, Finish, Flow, Limits, Model, ModelError, Request};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The interval at which a waiting client checks its [`caro_model::Cancel`].
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Most silent polls (1.5 s) before a resident counts as hanging: it sends something several times a second. Polls are
/// counted instead of time, since the machine may have been suspended.
const MAX_SILENT_POLLS: u32 = 75;
/// Most time that a request waits for those of others: about the time that loading the model here takes.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for a resident to stop after it was told to.
const STOP_TIMEOUT: Duration = Duration::from_millis(300);

/// A model behind a resident process.
pub struct Client {
    id: String,
    adapter: Option<AdapterInfo>,
    pid: u32,
    /// `None` once the resident has failed.
    link: Mutex<Option<Link>>,
    /// The reason that it has failed.
    failed: Mutex<Option<&'static str>>,
    /// The model in this process, once it was needed.
    local: Mutex<Option<Arc<dyn Model>>>,
    open: Box<Open>,
}

impl Client {
    pub(super) fn new(id: String, adapter: Option<AdapterInfo>, link: Link, open: Box<Open>) -> Self {
        let pid = link.pid;
        Self { id, adapter, pid, link: Mutex::new(Some(link)), failed: Mutex::new(None), local: Mutex::new(None), open }
    }

    /// Returns the resident's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the reason that the resident failed; `None` as long as it has not.
    pub fn failed(&self) -> Option<&'static str> {
        *lock(&self.failed)
    }

    /// Returns the model in this process, and opens it the first time.
    fn local(&self) -> Result<Arc<dyn Model>, ModelError> {
        let mut local = lock(&self.local);
        if let Some(model) = &*local {
            return Ok(model.clone());
        }
        let model = (self.open)()?;
        *local = Some(model.clone());
        Ok(model)
    }

    /// Lets the resident do something. `None` if it fails, or has failed before: it is not asked again.
    fn relay<T>(&self, call: impl FnOnce(&mut Link) -> Result<T, Failure>) -> Option<T> {
        let mut link = lock(&self.link);
        match call(link.as_mut()?) {
            Ok(reply) => Some(reply),
            Err(Failure { why, hangs }) => {
                *lock(&self.failed) = Some(why);
                if let Some(link) = link.take() {
                    if hangs { link.abandon() } else { link.channel.close() }
                }
                None
            }
        }
    }
}

impl Model for Client {
    fn id(&self) -> &str {
        &self.id
    }

    fn limits(&self) -> Limits {
        let context = self
            .relay(|link| link.ask(&Call::Limits, |reply| if let Reply::Limits(n) = reply { Some(n) } else { None }));
        match context {
            Some(context) => Limits { context },
            // if no model opens here either, `generate` returns the error
            None => self.local().map_or(Limits { context: 0 }, |model| model.limits()),
        }
    }

    fn adapter(&self) -> Option<&AdapterInfo> {
        self.adapter.as_ref()
    }

    fn count(&self, text: &str) -> usize {
        let call = Call::Count(text.into());
        let count =
            self.relay(|link| link.ask(&call, |reply| if let Reply::Count(n) = reply { Some(n) } else { None }));
        count.unwrap_or_else(|| self.local().map_or(0, |model| model.count(text)))
    }

    fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        // the text that the caller has received
        let mut received = String::new();
        let reply =
            self.relay(|link| link.run_generation(Work::of(request), request, on, &mut received)).transpose()?;
        if let Some(completion) = reply.and_then(|mut completions| completions.pop()) {
            return Ok(completion);
        }
        if request.cancel.is_cancelled() {
            return Ok(Completion::cancelled(received));
        }
        // the same request has the same completion here, of which the caller gets the part not yet received
        let mut repeated = 0;
        self.local()?.generate(request, &mut |text| {
            let known = received.len().saturating_sub(repeated);
            repeated += text.len();
            match text.get(known..) {
                Some("") => Flow::Continue,
                Some(rest) => on(rest),
                None if known >= text.len() => Flow::Continue,
                None => on(text),
            }
        })
    }

    fn sample(&self, request: &Request, count: usize) -> Result<Vec<Completion>, ModelError> {
        let work = Work::sampled(request, count);
        let reply =
            self.relay(|link| link.run_generation(work, request, &mut ignore, &mut String::new())).transpose()?;
        match reply {
            Some(completions) => Ok(completions),
            None if request.cancel.is_cancelled() => Ok(Vec::new()),
            None => self.local()?.sample(request, count),
        }
    }
}

/// Ignores the text.
fn ignore(_: &str) -> Flow {
    Flow::Continue
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("id", &self.id).field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// The reason that the resident is not asked again.
struct Failure {
    why: &'static str,
    /// True if it would fail for the next caller too.
    hangs: bool,
}

const fn failure(why: &'static str) -> Failure {
    Failure { why, hangs: false }
}

const ENDED: Failure = failure("ended");
const DID_NOT_STOP: Failure = failure("did not stop");
const HANGS: Failure = Failure { why: "does not answer any more", hangs: true };
const INVALID_REPLY: Failure = Failure { why: "said something that is not an answer", hangs: true };

impl Link {
    fn send(&mut self, call: &Call) -> Result<(), Failure> {
        if self.is_closed {
            return Err(DID_NOT_STOP);
        }
        self.channel.send(call).map_err(|_| ENDED)
    }

    /// Sends a call with a single reply, and returns what `read` makes of it.
    fn ask<T>(&mut self, call: &Call, read: impl FnOnce(Reply) -> Option<T>) -> Result<T, Failure> {
        self.send(call)?;
        let mut silent_polls = 0;
        loop {
            silent_polls += 1;
            match self.channel.receive(Some(POLL_INTERVAL)) {
                Ok(None) if silent_polls > MAX_SILENT_POLLS => return Err(HANGS),
                Ok(None) => {}
                Ok(Some(Reply::Beat { .. })) => silent_polls = 0,
                Ok(Some(Reply::Failed(_))) => return Err(failure("could not do it")),
                Ok(Some(reply)) => return read(reply).ok_or(INVALID_REPLY),
                Err(e) => return Err(io_failure(&e)),
            }
        }
    }

    /// Runs a whole generation: returns one completion, or those sampled together, or the error of the request.
    /// Appends to `received` the text passed to `on`.
    fn run_generation(
        &mut self,
        work: Work,
        request: &Request,
        on: &mut dyn FnMut(&str) -> Flow,
        received: &mut String,
    ) -> Result<Result<Vec<Completion>, ModelError>, Failure> {
        let call = Call::Generate(Box::new(work));
        if serde_json::to_vec(&call).map_or(usize::MAX, |frame| frame.len()) > MAX_CALL_BYTES {
            return Err(failure("takes no request of that length"));
        }
        self.send(&call)?;
        let (start, mut silent_polls) = (Instant::now(), 0);
        // the time at which it was told to stop, and whether the reader of the text asked for that
        let (mut stopping, mut reader_stopped) = (None, false);
        loop {
            let reply = self.channel.receive(Some(POLL_INTERVAL)).map_err(|e| io_failure(&e))?;
            silent_polls = if reply.is_some() { 0 } else { silent_polls + 1 };
            match reply {
                None if silent_polls > MAX_SILENT_POLLS => return Err(HANGS),
                None | Some(Reply::Beat { queued: false }) => {}
                Some(Reply::Beat { queued: true }) if start.elapsed() > QUEUE_TIMEOUT => {
                    return Err(failure("is busy"));
                }
                Some(Reply::Beat { queued: true }) => {}
                Some(Reply::Text(text)) if stopping.is_none() => {
                    received.push_str(&text);
                    reader_stopped = on(&text) == Flow::Stop;
                    if reader_stopped {
                        self.channel.send(&Call::Cancel).map_err(|_| ENDED)?;
                        stopping = Some(Instant::now());
                    }
                }
                // text sent before the resident read the cancellation is dropped
                Some(Reply::Text(_)) => {}
                Some(Reply::Done(completion)) if reader_stopped => {
                    return Ok(Ok(vec![truncate(*completion, received)]));
                }
                Some(Reply::Done(completion)) => return Ok(Ok(vec![*completion])),
                Some(Reply::Sampled(completions)) => return Ok(Ok(completions)),
                Some(Reply::Refused(why)) => return Ok(Err(why.into())),
                Some(Reply::Failed(_)) => return Err(failure("could not do it")),
                Some(_) => return Err(INVALID_REPLY),
            }
            if stopping.is_none() && request.cancel.is_cancelled() {
                self.channel.send(&Call::Cancel).map_err(|_| ENDED)?;
                stopping = Some(Instant::now());
            }
            if stopping.is_some_and(|since| since.elapsed() > STOP_TIMEOUT) {
                if reader_stopped {
                    // the reader has the text that it wanted; the next call is computed in this process
                    self.is_closed = true;
                    self.channel.close();
                    return Ok(Ok(vec![Completion::cancelled(received.clone())]));
                }
                return Err(DID_NOT_STOP);
            }
        }
    }
}

fn io_failure(e: &std::io::Error) -> Failure {
    if e.kind() == std::io::ErrorKind::InvalidData { INVALID_REPLY } else { ENDED }
}

/// Truncates a completion to the text that its reader received before it stopped.
fn truncate(mut completion: Completion, received: &str) -> Completion {
    let mut length = 0;
    completion.tokens.retain(|token| {
        let keep = length < received.len();
        length += token.bytes.len();
        keep
    });
    completion.text.truncate(received.len());
    Completion { finish: Finish::Cancelled, ..completion }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_model::{Token, Usage};

    #[test]
    fn a_completion_is_truncated_where_its_reader_stopped() {
        let token = |text: &str| Token { bytes: text.into(), logprob: None, runner_up: None };
        let whole = Completion {
            text: "ls -la".into(),
            tokens: vec![token("ls"), token(" -"), token("la")],
            end: Some(-0.5),
            finish: Finish::Stop,
            usage: Usage::default(),
        };
        let cut = truncate(whole, "ls -");
        assert_eq!((cut.text.as_str(), cut.tokens.len(), cut.finish), ("ls -", 2, Finish::Cancelled));
    }
}
