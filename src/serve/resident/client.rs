//! The calling side: a model whose weights are in another process, as long as that one answers, and in this one after that.

use super::Open;
use super::link::Link;
use super::wire::{Call, MOST_CALL, Reply, Work};
use caro_model::adapter::AdapterInfo;
use caro_model::{Completion, Finish, Flow, Limits, Model, ModelError, Request};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting client looks at its [`caro_model::Cancel`].
const LOOK: Duration = Duration::from_millis(20);
/// A resident at work says something several times a second: silent for this many looks (1.5 s), it hangs. Looks and not
/// time, since the whole machine may have slept.
const SILENCE: u32 = 75;
/// How long a client waits for others to be served: about as long as it takes to load the model itself.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a resident may take to stop when it is told to.
const STOPPING: Duration = Duration::from_millis(300);

/// A model behind a resident process.
pub struct Client {
    id: String,
    adapter: Option<AdapterInfo>,
    pid: u32,
    /// `None` once the resident has failed.
    link: Mutex<Option<Link>>,
    /// Why it has.
    failed: Mutex<Option<&'static str>>,
    local: Mutex<Option<Arc<dyn Model>>>,
    open: Box<Open>,
}

impl Client {
    pub(super) fn new(id: String, adapter: Option<AdapterInfo>, link: Link, open: Box<Open>) -> Self {
        let pid = link.pid;
        Self { id, adapter, pid, link: Mutex::new(Some(link)), failed: Mutex::new(None), local: Mutex::new(None), open }
    }

    /// The resident's process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Why the resident answers no more, and this process does.
    pub fn failed(&self) -> Option<&'static str> {
        *lock(&self.failed)
    }

    /// The model in this process.
    fn local(&self) -> Result<Arc<dyn Model>, ModelError> {
        let mut local = lock(&self.local);
        if let Some(model) = &*local {
            return Ok(model.clone());
        }
        let model = (self.open)()?;
        *local = Some(model.clone());
        Ok(model)
    }

    /// Has the resident do something; `None`, and never again, if it fails.
    fn relay<T>(&self, work: impl FnOnce(&mut Link) -> Result<T, Failed>) -> Option<T> {
        let mut link = lock(&self.link);
        match work(link.as_mut()?) {
            Ok(done) => Some(done),
            Err(Failed { why, hangs }) => {
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
            // Without a model, generating tells why.
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
        // What the caller has been given already.
        let mut said = String::new();
        let done = self.relay(|link| link.work(Work::of(request), request, on, &mut said)).transpose()?;
        if let Some(completion) = done.and_then(|mut completions| completions.pop()) {
            return Ok(completion);
        }
        if request.cancel.is_cancelled() {
            return Ok(Completion::cancelled(said));
        }
        // The same request has the same completion here: the caller gets the rest of it.
        let mut again = 0;
        self.local()?.generate(request, &mut |text| {
            let known = said.len().saturating_sub(again);
            again += text.len();
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
        let done = self.relay(|link| link.work(work, request, &mut silently, &mut String::new())).transpose()?;
        match done {
            Some(completions) => Ok(completions),
            None if request.cancel.is_cancelled() => Ok(Vec::new()),
            None => self.local()?.sample(request, count),
        }
    }
}

/// Tells nothing on the way.
fn silently(_: &str) -> Flow {
    Flow::Continue
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("id", &self.id).field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// Why the resident is not asked again.
struct Failed {
    why: &'static str,
    /// True if it would fail the next caller too.
    hangs: bool,
}

const fn failed(why: &'static str) -> Failed {
    Failed { why, hangs: false }
}

const GONE: Failed = failed("ended");
const DEAF: Failed = failed("did not stop");
const HANGS: Failed = Failed { why: "does not answer any more", hangs: true };
const STRANGE: Failed = Failed { why: "said something that is no answer", hangs: true };

impl Link {
    fn begin(&mut self, call: &Call) -> Result<(), Failed> {
        if self.left {
            return Err(DEAF);
        }
        self.channel.send(call).map_err(|_| GONE)
    }

    /// A question with a short answer.
    fn ask<T>(&mut self, call: &Call, read: impl FnOnce(Reply) -> Option<T>) -> Result<T, Failed> {
        self.begin(call)?;
        let mut silent = 0;
        loop {
            silent += 1;
            match self.channel.receive(Some(LOOK)) {
                Ok(None) if silent > SILENCE => return Err(HANGS),
                Ok(None) => {}
                Ok(Some(Reply::Beat { .. })) => silent = 0,
                Ok(Some(Reply::Failed(_))) => return Err(failed("could not do it")),
                Ok(Some(reply)) => return read(reply).ok_or(STRANGE),
                Err(e) => return Err(broken(&e)),
            }
        }
    }

    /// The whole of a generation: one completion, or those sampled together, or what is wrong with the request. `said` is
    /// what `on` was given.
    fn work(
        &mut self,
        work: Work,
        request: &Request,
        on: &mut dyn FnMut(&str) -> Flow,
        said: &mut String,
    ) -> Result<Result<Vec<Completion>, ModelError>, Failed> {
        let call = Call::Generate(Box::new(work));
        if serde_json::to_vec(&call).map_or(usize::MAX, |frame| frame.len()) > MOST_CALL {
            return Err(failed("takes no request of that length"));
        }
        self.begin(&call)?;
        let (began, mut silent) = (Instant::now(), 0);
        // Since when it is to stop, and whether the reader of the text wanted that.
        let (mut stopping, mut enough) = (None, false);
        loop {
            let reply = self.channel.receive(Some(LOOK)).map_err(|e| broken(&e))?;
            silent = if reply.is_some() { 0 } else { silent + 1 };
            match reply {
                None if silent > SILENCE => return Err(HANGS),
                None | Some(Reply::Beat { queued: false }) => {}
                Some(Reply::Beat { queued: true }) if began.elapsed() > PATIENCE => return Err(failed("is busy")),
                Some(Reply::Beat { queued: true }) => {}
                Some(Reply::Text(text)) if stopping.is_none() => {
                    said.push_str(&text);
                    enough = on(&text) == Flow::Stop;
                    if enough {
                        self.channel.send(&Call::Cancel).map_err(|_| GONE)?;
                        stopping = Some(Instant::now());
                    }
                }
                // What came between our word and its end was not wanted any more.
                Some(Reply::Text(_)) => {}
                Some(Reply::Done(completion)) if enough => return Ok(Ok(vec![cut(*completion, said)])),
                Some(Reply::Done(completion)) => return Ok(Ok(vec![*completion])),
                Some(Reply::Sampled(completions)) => return Ok(Ok(completions)),
                Some(Reply::Refused(why)) => return Ok(Err(why.into())),
                Some(Reply::Failed(_)) => return Err(failed("could not do it")),
                Some(_) => return Err(STRANGE),
            }
            if stopping.is_none() && request.cancel.is_cancelled() {
                self.channel.send(&Call::Cancel).map_err(|_| GONE)?;
                stopping = Some(Instant::now());
            }
            if stopping.is_some_and(|since| since.elapsed() > STOPPING) {
                if enough {
                    // The reader has what it wanted, and the next call is made here.
                    self.left = true;
                    self.channel.close();
                    return Ok(Ok(vec![Completion::cancelled(said.clone())]));
                }
                return Err(DEAF);
            }
        }
    }
}

fn broken(e: &std::io::Error) -> Failed {
    if e.kind() == std::io::ErrorKind::InvalidData { STRANGE } else { GONE }
}

/// A completion that its reader ended after `said`.
fn cut(mut completion: Completion, said: &str) -> Completion {
    let mut length = 0;
    completion.tokens.retain(|token| {
        let keep = length < said.len();
        length += token.bytes.len();
        keep
    });
    completion.text.truncate(said.len());
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
    fn a_completion_is_cut_where_its_reader_stopped() {
        let token = |text: &str| Token { bytes: text.into(), logprob: None, runner_up: None };
        let whole = Completion {
            text: "ls -la".into(),
            tokens: vec![token("ls"), token(" -"), token("la")],
            end: Some(-0.5),
            finish: Finish::Stop,
            usage: Usage::default(),
        };
        let cut = cut(whole, "ls -");
        assert_eq!((cut.text.as_str(), cut.tokens.len(), cut.finish), ("ls -", 2, Finish::Cancelled));
    }
}
