//! Any OpenAI-compatible server (llama-server, llama-cpp-python, vLLM, Ollama ...) as a [`Model`]: `--model openai:URL#NAME`;
//! and those that speak Anthropic's protocol: `--model anthropic:NAME`.
//!
//! - `wire`: the words of OpenAI's protocol. `messages`: those of Anthropic's. Here: the connection, and what a shape means on a
//!   server whose logits are not ours.
//!
//! Nothing is sent anywhere unless the user named the server.

mod messages;
mod wire;

use super::fetch::net::{self, Client, Patience};
use super::{
    Completion, Finish, Flow, Limits, Model, ModelError, Opening, Request, Shape, Token, Usage, conform, estimated,
};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use wire::{Chunk, Level};

/// A model on a server.
#[derive(Debug)]
pub struct Remote {
    id: String,
    url: String,
    name: String,
    options: Options,
    protocol: Protocol,
    /// How much of the protocol this server was found to understand.
    level: AtomicU8,
}

/// A protocol that servers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    OpenAi,
    Anthropic,
}

impl Protocol {
    fn body(self, model: &str, request: &Request, level: Level, objection: Option<(&str, &str)>) -> Value {
        match self {
            Self::OpenAi => wire::body(model, request, level, objection),
            Self::Anthropic => messages::body(model, request, level, objection),
        }
    }

    /// The reader of one event of an answer.
    fn reads(self) -> fn(&str) -> Result<Chunk, String> {
        match self {
            Self::OpenAi => wire::chunk,
            Self::Anthropic => messages::chunk,
        }
    }

    /// The variable that its key is in.
    fn variable(self) -> &'static str {
        match self {
            Self::OpenAi => "CARO_API_KEY",
            Self::Anthropic => "ANTHROPIC_API_KEY",
        }
    }

    /// The address of its one call below a base address.
    fn completed(self, base: &str) -> String {
        let call = match self {
            Self::OpenAi => "chat/completions",
            Self::Anthropic => "messages",
        };
        let base = base.trim_end_matches('/');
        let version = |last: &str| last.strip_prefix('v').is_some_and(|number| number.parse::<u8>().is_ok());
        if base.ends_with(&format!("/{call}")) {
            base.to_string()
        } else if base.rsplit('/').next().is_some_and(version) {
            format!("{base}/{call}")
        } else {
            format!("{base}/v1/{call}")
        }
    }
}

/// What a server may need to know, and how long it may take.
#[derive(Debug, Clone)]
pub struct Options {
    /// The key that it wants.
    pub api_key: Option<String>,
    /// The longest wait for a connection.
    pub connect: Duration,
    /// The longest silence, the computing of the prompt included.
    pub silence: Duration,
    /// Tokens of prompt and completion together; the protocol does not tell.
    pub context: usize,
    /// Additional certificate authorities, as a PEM file.
    pub authorities: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            api_key: None,
            connect: Duration::from_secs(5),
            silence: Duration::from_secs(120),
            context: 8192,
            authorities: None,
        }
    }
}

/// The longest line of a stream that is read.
const MAX_LINE: u64 = 4 << 20;

/// Pieces that an answer may have beyond what was asked for: servers count in their own way.
const SLACK: usize = 16;

/// The longest answer that is not a stream, and the longest error message.
const MAX_BODY: u64 = 16 << 20;

impl Remote {
    /// A model of that name at a base address (`http://localhost:8080`, with or without `/v1`). Connects to nothing yet.
    pub fn new(url: &str, name: &str, options: Options) -> Self {
        Self::speaking(Protocol::OpenAi, "openai", url, name, options)
    }

    /// The same of a server that speaks Anthropic's protocol; without an address, Anthropic's own.
    pub fn anthropic(url: Option<&str>, name: &str, options: Options) -> Self {
        Self::speaking(Protocol::Anthropic, "anthropic", url.unwrap_or(messages::ADDRESS), name, options)
    }

    fn speaking(protocol: Protocol, kind: &str, base: &str, name: &str, options: Options) -> Self {
        let (id, url) = (format!("{kind}:{name}"), protocol.completed(base));
        Self { id, url, name: name.into(), options, protocol, level: AtomicU8::new(0) }
    }

    fn failed(&self, reason: impl Into<String>) -> ModelError {
        ModelError::Remote { url: self.url.clone(), reason: reason.into() }
    }

    /// One exchange, on the highest level that the server understands.
    fn exchange(
        &self,
        request: &Request,
        objection: Option<(&str, &str)>,
        on: &mut dyn FnMut(&str) -> Flow,
    ) -> Result<Completion, ModelError> {
        let mut level = Level::from_index(self.level.load(Ordering::Relaxed));
        // Whether to ask again, and whether the server has said all the way what it does not understand.
        let (mut again, mut clear) = (true, true);
        loop {
            let body = self.protocol.body(&self.name, request, level, objection);
            let refused = match self.send(request, &body, on)? {
                Answer::Done(completion) => {
                    if clear {
                        self.level.store(level.index(), Ordering::Relaxed);
                    }
                    return Ok(completion);
                }
                Answer::Refused(_, Why::Unclear) if std::mem::take(&mut again) => continue,
                Answer::Refused(reason, why) => {
                    clear &= matches!(why, Why::Asked);
                    reason
                }
            };
            level = level.below().ok_or_else(|| self.failed(refused))?;
        }
    }

    fn send(&self, request: &Request, body: &Value, on: &mut dyn FnMut(&str) -> Flow) -> Result<Answer, ModelError> {
        let begun = Instant::now();
        let patience = Patience { connect: self.options.connect, read: self.options.silence };
        let client = Client::new(patience, self.options.authorities.as_deref(), &request.cancel);
        let client = client.map_err(|e| self.failed(net::no_thread(&e)))?;
        let mut post = client.request("POST", &self.url).set("Accept", "text/event-stream, application/json");
        if self.protocol == Protocol::Anthropic {
            post = post.set("anthropic-version", messages::VERSION);
        }
        if let Some(key) = &self.options.api_key {
            post = match self.protocol {
                Protocol::OpenAi => post.set("Authorization", &format!("Bearer {key}")),
                Protocol::Anthropic => post.set("x-api-key", key),
            };
        }
        let reads = self.protocol.reads();
        let response = match post.send_json(body) {
            Ok(response) if (200..300).contains(&response.status()) => response,
            Ok(response) => return Err(self.failed(format!("HTTP status {}", response.status()))),
            Err(_) if request.cancel.is_cancelled() => {
                return Ok(Answer::Done(Stream::new(request, on, begun, reads).cancelled()));
            }
            Err(ureq::Error::Status(status, response)) => {
                let mut text = String::new();
                // What can be read of it is enough.
                let _ = response.into_reader().take(MAX_BODY).read_to_string(&mut text);
                let said = wire::error_text(&text);
                return match status {
                    // llama-cpp-python says 500 to a field that it does not know.
                    400 | 422 | 500 if names_a_field(&said, body) => {
                        Ok(Answer::Refused(format!("HTTP status {status}: {said}"), Why::Asked))
                    }
                    // 529: Anthropic's servers are overloaded
                    500 | 529 => Ok(Answer::Refused(format!("HTTP status {status}: {said}"), Why::Unclear)),
                    401 | 403 => {
                        let variable = self.protocol.variable();
                        Err(self.failed(format!("it wants another key in {variable} (HTTP status {status}: {said})")))
                    }
                    404 => Err(self.failed(format!(
                        "it knows no model `{}`, or not this address (HTTP status 404: {said})",
                        self.name
                    ))),
                    429 => Err(self.failed(format!("too many requests: {said}"))),
                    _ => Err(self.failed(format!("HTTP status {status}: {said}"))),
                };
            }
            Err(ureq::Error::Transport(error)) => return Err(self.failed(net::reason(&error))),
        };
        let mut stream = Stream::new(request, on, begun, reads);
        let streams = response.content_type() == "text/event-stream";
        let read = if streams {
            stream.events(BufReader::new(response.into_reader()))
        } else {
            stream.document(response.into_reader())
        };
        match read {
            Ok(()) => Ok(Answer::Done(stream.done())),
            Err(_) if request.cancel.is_cancelled() => Ok(Answer::Done(stream.cancelled())),
            // llama-cpp-python finds out while it streams.
            Err(reason) if stream.completion.text.is_empty() && reason.contains("logprobs is not supported") => {
                Ok(Answer::Refused(reason, Why::Asked))
            }
            Err(reason) => Err(self.failed(reason)),
        }
    }
}

enum Answer {
    Done(Completion),
    /// The server does not understand the request; maybe it understands less.
    Refused(String, Why),
}

/// Why a server refuses.
enum Why {
    /// What was asked for.
    Asked,
    /// That, or its own trouble of the moment: the same may go well when it is asked again.
    Unclear,
}

/// True if an error speaks of something that the request has, and need not have.
fn names_a_field(said: &str, body: &Value) -> bool {
    let said = said.to_ascii_lowercase();
    // A schema is told by what it is, and by what servers make of it.
    let words = [
        ("logprobs", &["logprobs"][..]),
        ("stream_options", &["stream_options"]),
        ("response_format", &["response_format", "schema", "grammar"]),
        ("temperature", &["temperature"]),
        ("output_config", &["output_config", "schema"]),
    ];
    let goes_on =
        body["messages"].as_array().and_then(|all| all.last()).is_some_and(|last| last["role"] == "assistant");
    if goes_on && said.contains("prefill") {
        return true;
    }
    words.iter().any(|(field, words)| body.get(field).is_some() && words.iter().any(|word| said.contains(word)))
}

impl Model for Remote {
    fn id(&self) -> &str {
        &self.id
    }

    fn limits(&self) -> Limits {
        Limits { context: self.options.context }
    }

    /// Whoever serves it hears all that it is told.
    fn is_local(&self) -> bool {
        false
    }

    /// A guess: the tokenizer is on the server.
    fn count(&self, text: &str) -> usize {
        estimated(text)
    }

    fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        if request.prompt.opening == Opening::Raw {
            let name = format!("{} answers conversations", self.id);
            return Err(ModelError::Unsupported { what: "text that is continued as it is", name });
        }
        if matches!(request.shape, Shape::Text { .. }) {
            return self.exchange(request, None, on);
        }
        // Of an answer that may be thrown away nothing is shown. The first question is the shape's own soundness.
        drop(conform::check(&request.shape, "")?);
        let mut objection: Option<(String, String)> = None;
        loop {
            let last = objection.as_ref().map(|(answer, wrong)| (answer.as_str(), wrong.as_str()));
            let mut completion = self.exchange(request, last, &mut |_| Flow::Continue)?;
            if completion.finish == Finish::Cancelled {
                return Ok(completion);
            }
            // Servers love to add a line end, which means nothing.
            if conform::check(&request.shape, &completion.text)?.is_err() {
                completion.text = completion.text.trim().to_string();
            }
            match conform::check(&request.shape, &completion.text)? {
                Ok(()) => {
                    if on(&completion.text) == Flow::Stop {
                        completion.finish = Finish::Cancelled;
                    }
                    return Ok(completion);
                }
                // Half of an answer need not have the shape of a whole one.
                Err(_) if completion.finish == Finish::Length => return Ok(completion),
                Err(wrong) if objection.is_some() => {
                    return Err(self.failed(format!("its answer has not the shape that was asked for, twice: {wrong}")));
                }
                Err(wrong) => objection = Some((completion.text, wrong)),
            }
        }
    }

    /// None: a server is asked once for an answer, since each call may cost time and money.
    fn sample(&self, _: &Request, _: usize) -> Result<Vec<Completion>, ModelError> {
        Ok(Vec::new())
    }
}

/// A completion on its way.
struct Stream<'a> {
    completion: Completion,
    on: &'a mut dyn FnMut(&str) -> Flow,
    shape: &'a Shape,
    /// The prefill, as long as the server may still be repeating it.
    prefill: &'a str,
    /// Bytes of the text that were shown. The rest may turn out to be the beginning of a stop string.
    shown: usize,
    begun: Instant,
    first: Option<Instant>,
    over: bool,
    /// Pieces after which an answer is over, whatever the server thinks.
    most: usize,
    /// Reads an event of the server's protocol.
    reads: fn(&str) -> Result<Chunk, String>,
}

impl<'a> Stream<'a> {
    fn new(
        request: &'a Request,
        on: &'a mut dyn FnMut(&str) -> Flow,
        begun: Instant,
        reads: fn(&str) -> Result<Chunk, String>,
    ) -> Self {
        let completion = Completion {
            text: String::new(),
            tokens: Vec::new(),
            end: None,
            finish: Finish::Stop,
            usage: Usage::default(),
        };
        let prefill = &request.prompt.prefill;
        let most = request.max_tokens.saturating_add(SLACK);
        Self { completion, on, shape: &request.shape, prefill, shown: 0, begun, first: None, over: false, most, reads }
    }

    /// Reads server-sent events to their end.
    fn events(&mut self, mut reader: impl BufRead) -> Result<(), String> {
        let mut finished = false;
        let mut line = Vec::new();
        while !self.over {
            line.clear();
            let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
            match read {
                // The answer is whole, however the connection ends.
                Ok(0) if finished => return Ok(()),
                Err(e) if finished && e.kind() != std::io::ErrorKind::Interrupted => return Ok(()),
                Ok(0) => return Err("the answer was cut off".into()),
                Ok(n) if n as u64 == MAX_LINE => return Err("it sends an endless line".into()),
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) if net::is_silence(&e) => return Err("it fell silent".into()),
                Err(e) => return Err(format!("the answer was cut off: {e}")),
            }
            let text = String::from_utf8_lossy(&line);
            // Comments, event names and empty lines mean nothing here.
            let Some(data) = text.strip_prefix("data:").map(str::trim) else { continue };
            if data == "[DONE]" {
                return Ok(());
            }
            if !data.is_empty() {
                let chunk = (self.reads)(data)?;
                if chunk.is_last {
                    return Ok(());
                }
                finished |= chunk.finish.is_some();
                self.take(chunk);
            }
        }
        Ok(())
    }

    /// Reads the answer of a server that does not stream.
    fn document(&mut self, reader: impl Read) -> Result<(), String> {
        let mut text = String::new();
        reader.take(MAX_BODY).read_to_string(&mut text).map_err(|e| format!("the answer was cut off: {e}"))?;
        let chunk = (self.reads)(&text)?;
        self.take(chunk);
        Ok(())
    }

    fn take(&mut self, chunk: Chunk) {
        let completion = &mut self.completion;
        if let Some((prompt, cached, generated)) = chunk.usage {
            // a stream may count in several events, each up to there
            let usage = &mut completion.usage;
            usage.prompt_tokens = usage.prompt_tokens.max(prompt);
            usage.cached_tokens = usage.cached_tokens.max(cached);
            usage.completion_tokens = usage.completion_tokens.max(generated);
        }
        if chunk.finish.as_deref() == Some("length") {
            completion.finish = Finish::Length;
        }
        if chunk.text.is_empty() {
            return;
        }
        self.first.get_or_insert_with(Instant::now);
        if chunk.tokens.is_empty() {
            completion.tokens.push(Token { bytes: chunk.text.clone().into(), logprob: None, runner_up: None });
        } else {
            completion.tokens.extend(chunk.tokens);
        }
        completion.text.push_str(&chunk.text);
        self.drop_prefill();
        let cut = conform::cut(self.shape, &self.completion.text).len();
        if cut < self.completion.text.len() {
            self.completion.text.truncate(cut);
            self.completion.finish = Finish::Stop;
            self.over = true;
        } else if self.completion.tokens.len() >= self.most {
            // a server that was told and goes on
            self.completion.finish = Finish::Length;
            self.over = true;
        }
        self.show(false);
    }

    /// Some servers repeat the beginning that they were given.
    fn drop_prefill(&mut self) {
        let text = &mut self.completion.text;
        if self.prefill.is_empty() || self.prefill.starts_with(text.as_str()) && text.len() < self.prefill.len() {
            return;
        }
        if text.starts_with(self.prefill) {
            text.drain(..self.prefill.len());
        }
        self.prefill = "";
    }

    /// Shows what is certain to stay.
    fn show(&mut self, all: bool) {
        let text = &self.completion.text;
        let repeating = !all && !self.prefill.is_empty();
        let end = if all || self.over { text.len() } else { text.len() - held_back(self.shape, text) };
        if repeating || end <= self.shown {
            return;
        }
        let new = &text[self.shown..end];
        self.shown = end;
        if (self.on)(new) == Flow::Stop {
            self.completion.finish = Finish::Cancelled;
            self.over = true;
        }
    }

    fn done(mut self) -> Completion {
        if self.completion.finish != Finish::Cancelled {
            self.show(true);
        }
        self.timed()
    }

    fn cancelled(mut self) -> Completion {
        self.completion.finish = Finish::Cancelled;
        self.timed()
    }

    fn timed(mut self) -> Completion {
        let first = self.first.unwrap_or_else(Instant::now);
        let usage = &mut self.completion.usage;
        // Network and waiting included: nobody else can tell.
        usage.prefill = first - self.begun;
        usage.decode = first.elapsed();
        if usage.completion_tokens == 0 {
            usage.completion_tokens = self.completion.tokens.len();
        }
        self.completion
    }
}

/// Bytes at the end of the text that may be the beginning of a stop string.
fn held_back(shape: &Shape, text: &str) -> usize {
    let Shape::Text { stop } = shape else { return 0 };
    let begun = |stop: &String| {
        let ends = stop.char_indices().map(|(i, _)| i).skip(1).filter(|i| text.ends_with(&stop[..*i]));
        ends.max().unwrap_or(0)
    };
    stop.iter().map(begun).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_completed_and_left_alone_if_complete() {
        let url = |base: &str| Remote::new(base, "m", Options::default()).url;
        assert_eq!(url("http://h:1"), "http://h:1/v1/chat/completions");
        assert_eq!(url("http://h:1/v1/"), "http://h:1/v1/chat/completions");
        assert_eq!(url("https://h/api/v3"), "https://h/api/v3/chat/completions");
        assert_eq!(url("https://h/x/chat/completions"), "https://h/x/chat/completions");
        assert_eq!(url("https://h/verbose"), "https://h/verbose/v1/chat/completions");
        let url = |base: Option<&str>| Remote::anthropic(base, "m", Options::default()).url;
        assert_eq!(url(None), "https://api.anthropic.com/v1/messages");
        assert_eq!(url(Some("http://h:1/v1")), "http://h:1/v1/messages");
        assert_eq!(url(Some("http://h:1/proxy/v1/messages")), "http://h:1/proxy/v1/messages");
    }

    #[test]
    fn what_may_become_a_stop_string_is_held_back() {
        let shape = Shape::Text { stop: vec!["END".into(), "\n\n".into()] };
        let all = ["ls", "ls E", "ls EN", "ls\n", "ls ENx"].map(|text| held_back(&shape, text));
        assert_eq!(all, [0, 1, 2, 1, 0]);
    }
}
