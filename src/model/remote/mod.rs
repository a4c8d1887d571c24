//! A [`Model`] on an OpenAI-compatible server (llama-server, llama-cpp-python, vLLM, Ollama ...), `--model
//! openai:URL#NAME`, or on one that speaks Anthropic's protocol, `--model anthropic:NAME`.
//!
//! - `wire`: OpenAI's wire format. `messages`: Anthropic's. Here: the connection, and the check of an answer's shape,
//!   which a server need not enforce.
//!
//! Nothing is sent anywhere unless the user named the server.

mod messages;
mod wire;

use super::catalog::ANTHROPIC;
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
    /// The index of the [`Level`] that this server was found to support.
    level: AtomicU8,
}

/// The protocol of a server.
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

    /// Returns the parser of one event of an answer.
    fn parser(self) -> fn(&str) -> Result<Chunk, String> {
        match self {
            Self::OpenAi => wire::chunk,
            Self::Anthropic => messages::chunk,
        }
    }

    /// Returns the name of the environment variable with the API key.
    fn key_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "CARO_API_KEY",
            Self::Anthropic => "ANTHROPIC_API_KEY",
        }
    }

    /// Returns the address of the protocol's only endpoint below a base address.
    fn endpoint(self, base: &str) -> String {
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

/// Settings of the connection to a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The API key.
    pub api_key: Option<String>,
    /// Timeout of connecting.
    pub connect: Duration,
    /// Timeout of each read, which includes the time to compute the prompt.
    pub silence: Duration,
    /// Tokens of prompt and completion together; the protocol does not report them.
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

/// Most bytes of a line of a stream.
const MAX_LINE: u64 = 4 << 20;

/// Extra tokens that an answer may have beyond the request's limit, because servers count differently.
const EXTRA_TOKENS: usize = 16;

/// Most bytes of an answer that is not a stream, and of an error message.
const MAX_BODY: u64 = 16 << 20;

impl Remote {
    /// Returns the model `name` of a server at a base address (`http://localhost:8080`, with or without `/v1`), without
    /// connecting yet.
    pub fn new(url: &str, name: &str, options: Options) -> Self {
        Self::with_protocol(Protocol::OpenAi, "openai", url, name, options)
    }

    /// Returns the model `name` of a server that speaks Anthropic's protocol; without an address, of Anthropic's own.
    pub fn anthropic(url: Option<&str>, name: &str, options: Options) -> Self {
        Self::with_protocol(Protocol::Anthropic, "anthropic", url.unwrap_or(ANTHROPIC), name, options)
    }

    fn with_protocol(protocol: Protocol, kind: &str, base: &str, name: &str, options: Options) -> Self {
        let (id, url) = (format!("{kind}:{name}"), protocol.endpoint(base));
        Self { id, url, name: name.into(), options, protocol, level: AtomicU8::new(0) }
    }

    fn error(&self, reason: impl Into<String>) -> ModelError {
        ModelError::Remote { url: self.url.clone(), reason: reason.into() }
    }

    /// Sends a request on the highest level that the server supports, and reads the answer.
    fn exchange(
        &self,
        request: &Request,
        objection: Option<(&str, &str)>,
        on: &mut dyn FnMut(&str) -> Flow,
    ) -> Result<Completion, ModelError> {
        let mut level = Level::from_index(self.level.load(Ordering::Relaxed));
        // `retry`: the same request may be sent once more. `explicit`: all refusals so far named an unsupported field.
        let (mut retry, mut explicit) = (true, true);
        loop {
            let body = self.protocol.body(&self.name, request, level, objection);
            let refusal = match self.send(request, &body, on)? {
                Answer::Done(completion) => {
                    if explicit {
                        self.level.store(level.index(), Ordering::Relaxed);
                    }
                    return Ok(completion);
                }
                Answer::Refused(_, Cause::Unclear) if std::mem::take(&mut retry) => continue,
                Answer::Refused(reason, cause) => {
                    explicit &= matches!(cause, Cause::Field);
                    reason
                }
            };
            level = level.below().ok_or_else(|| self.error(refusal))?;
        }
    }

    fn send(&self, request: &Request, body: &Value, on: &mut dyn FnMut(&str) -> Flow) -> Result<Answer, ModelError> {
        let start = Instant::now();
        let patience = Patience { connect: self.options.connect, read: self.options.silence };
        let client = Client::new(patience, self.options.authorities.as_deref(), &request.cancel);
        let client = client.map_err(|e| self.error(net::no_thread(&e)))?;
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
        let parser = self.protocol.parser();
        let response = match post.send_json(body) {
            Ok(response) if (200..300).contains(&response.status()) => response,
            Ok(response) => return Err(self.error(format!("HTTP status {}", response.status()))),
            Err(_) if request.cancel.is_cancelled() => {
                return Ok(Answer::Done(Stream::new(request, on, start, parser).cancelled()));
            }
            Err(ureq::Error::Status(status, response)) => {
                let mut text = String::new();
                // a part of the message is enough
                let _ = response.into_reader().take(MAX_BODY).read_to_string(&mut text);
                let message = wire::error_text(&text);
                return match status {
                    // llama-cpp-python answers 500 to an unknown field
                    400 | 422 | 500 if names_a_field(&message, body) => {
                        Ok(Answer::Refused(format!("HTTP status {status}: {message}"), Cause::Field))
                    }
                    // 529: Anthropic's servers are overloaded
                    500 | 529 => Ok(Answer::Refused(format!("HTTP status {status}: {message}"), Cause::Unclear)),
                    401 | 403 => {
                        let variable = self.protocol.key_variable();
                        Err(self.error(format!("it wants another key in {variable} (HTTP status {status}: {message})")))
                    }
                    404 => Err(self.error(format!(
                        "it knows no model `{}`, or not this address (HTTP status 404: {message})",
                        self.name
                    ))),
                    429 => Err(self.error(format!("too many requests: {message}"))),
                    _ => Err(self.error(format!("HTTP status {status}: {message}"))),
                };
            }
            Err(ureq::Error::Transport(error)) => return Err(self.error(net::reason(&error))),
        };
        let mut stream = Stream::new(request, on, start, parser);
        let streams = response.content_type() == "text/event-stream";
        let result = if streams {
            stream.events(BufReader::new(response.into_reader()))
        } else {
            stream.document(response.into_reader())
        };
        match result {
            Ok(()) => Ok(Answer::Done(stream.done())),
            Err(_) if request.cancel.is_cancelled() => Ok(Answer::Done(stream.cancelled())),
            // llama-cpp-python reports this only in the stream
            Err(reason) if stream.completion.text.is_empty() && reason.contains("logprobs is not supported") => {
                Ok(Answer::Refused(reason, Cause::Field))
            }
            Err(reason) => Err(self.error(reason)),
        }
    }
}

enum Answer {
    Done(Completion),
    /// The server does not support the request; it may support a lower level.
    Refused(String, Cause),
}

/// The cause of a refusal.
enum Cause {
    /// A field of the request that the server does not support.
    Field,
    /// Unknown: an unsupported field, or a temporary fault, so that the same request may succeed later.
    Unclear,
}

/// True if an error message names an optional field that the request has.
fn names_a_field(message: &str, body: &Value) -> bool {
    let message = message.to_ascii_lowercase();
    // each field, with the words by which servers refer to it
    let words = [
        ("logprobs", &["logprobs"][..]),
        ("stream_options", &["stream_options"]),
        ("response_format", &["response_format", "schema", "grammar"]),
        ("temperature", &["temperature"]),
        ("output_config", &["output_config", "schema"]),
    ];
    let has_prefill =
        body["messages"].as_array().and_then(|all| all.last()).is_some_and(|last| last["role"] == "assistant");
    if has_prefill && message.contains("prefill") {
        return true;
    }
    words.iter().any(|(field, words)| body.get(field).is_some() && words.iter().any(|word| message.contains(word)))
}

impl Model for Remote {
    fn id(&self) -> &str {
        &self.id
    }

    fn limits(&self) -> Limits {
        Limits { context: self.options.context }
    }

    /// False, because prompts are sent to the server.
    fn is_local(&self) -> bool {
        false
    }

    /// Estimates the tokens, because the tokenizer is on the server.
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
        // first checks the shape itself; an answer is shown only once it is accepted
        drop(conform::check(&request.shape, "")?);
        let mut objection: Option<(String, String)> = None;
        loop {
            let last = objection.as_ref().map(|(answer, wrong)| (answer.as_str(), wrong.as_str()));
            let mut completion = self.exchange(request, last, &mut |_| Flow::Continue)?;
            if completion.finish == Finish::Cancelled {
                return Ok(completion);
            }
            // servers often add a line end, which means nothing
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
                // a truncated answer need not have the shape
                Err(_) if completion.finish == Finish::Length => return Ok(completion),
                Err(wrong) if objection.is_some() => {
                    let (url, answer) = (self.url.clone(), Box::new(completion));
                    return Err(ModelError::WrongShape { url, reason: wrong, answer });
                }
                Err(mut wrong) => {
                    let allowed = conform::allowed_instead(&request.shape, &completion.text);
                    if !allowed.is_empty() {
                        wrong.push_str(&format!("; allowed there: {}", allowed.join(", ")));
                    }
                    objection = Some((completion.text, wrong));
                }
            }
        }
    }

    /// Returns none: each call of a server may cost time and money.
    fn sample(&self, _: &Request, _: usize) -> Result<Vec<Completion>, ModelError> {
        Ok(Vec::new())
    }
}

/// The state of reading an answer.
struct Stream<'a> {
    completion: Completion,
    on: &'a mut dyn FnMut(&str) -> Flow,
    shape: &'a Shape,
    /// The prefill, as long as the server may still be repeating it.
    prefill: &'a str,
    /// Bytes of the text that were shown. The rest may turn out to be the beginning of a stop string.
    shown: usize,
    start: Instant,
    /// The time of the first text.
    first: Option<Instant>,
    /// True once the answer has ended.
    ended: bool,
    /// Tokens after which the answer is cut off, in case the server ignores the limit.
    max_tokens: usize,
    /// Parses one event.
    parser: fn(&str) -> Result<Chunk, String>,
}

impl<'a> Stream<'a> {
    fn new(
        request: &'a Request,
        on: &'a mut dyn FnMut(&str) -> Flow,
        start: Instant,
        parser: fn(&str) -> Result<Chunk, String>,
    ) -> Self {
        let completion = Completion {
            text: String::new(),
            tokens: Vec::new(),
            end: None,
            finish: Finish::Stop,
            usage: Usage::default(),
        };
        let prefill = &request.prompt.prefill;
        let max_tokens = request.max_tokens.saturating_add(EXTRA_TOKENS);
        let shape = &request.shape;
        Self { completion, on, shape, prefill, shown: 0, start, first: None, ended: false, max_tokens, parser }
    }

    /// Reads server-sent events to their end.
    fn events(&mut self, mut reader: impl BufRead) -> Result<(), String> {
        let mut finished = false;
        let mut line = Vec::new();
        while !self.ended {
            line.clear();
            let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
            match read {
                // the answer is complete, however the connection ends
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
            // comments, event names and empty lines are skipped
            let Some(data) = text.strip_prefix("data:").map(str::trim) else { continue };
            if data == "[DONE]" {
                return Ok(());
            }
            if !data.is_empty() {
                let chunk = (self.parser)(data)?;
                if chunk.is_last {
                    return Ok(());
                }
                finished |= chunk.finish.is_some();
                self.add(chunk);
            }
        }
        Ok(())
    }

    /// Reads the answer of a server that does not stream.
    fn document(&mut self, reader: impl Read) -> Result<(), String> {
        let mut text = String::new();
        reader.take(MAX_BODY).read_to_string(&mut text).map_err(|e| format!("the answer was cut off: {e}"))?;
        let chunk = (self.parser)(&text)?;
        self.add(chunk);
        Ok(())
    }

    fn add(&mut self, chunk: Chunk) {
        let completion = &mut self.completion;
        if let Some((prompt, cached, generated)) = chunk.usage {
            // several events of a stream may have counts, each a total so far
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
            self.ended = true;
        } else if self.completion.tokens.len() >= self.max_tokens {
            // the server ignores the limit
            self.completion.finish = Finish::Length;
            self.ended = true;
        }
        self.show(false);
    }

    /// Removes the prefill from the beginning of the text, which some servers repeat.
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

    /// Shows the new text that cannot be part of the prefill or a stop string, or `all` of it.
    fn show(&mut self, all: bool) {
        let text = &self.completion.text;
        let repeating = !all && !self.prefill.is_empty();
        let end = if all || self.ended { text.len() } else { text.len() - held_back(self.shape, text) };
        if repeating || end <= self.shown {
            return;
        }
        let new = &text[self.shown..end];
        self.shown = end;
        if (self.on)(new) == Flow::Stop {
            self.completion.finish = Finish::Cancelled;
            self.ended = true;
        }
    }

    fn done(mut self) -> Completion {
        if self.completion.finish != Finish::Cancelled {
            self.show(true);
        }
        self.with_times()
    }

    fn cancelled(mut self) -> Completion {
        self.completion.finish = Finish::Cancelled;
        self.with_times()
    }

    fn with_times(mut self) -> Completion {
        let first = self.first.unwrap_or_else(Instant::now);
        let usage = &mut self.completion.usage;
        // includes network and waiting, which cannot be told apart
        usage.prefill = first - self.start;
        usage.decode = first.elapsed();
        if usage.completion_tokens == 0 {
            usage.completion_tokens = self.completion.tokens.len();
        }
        self.completion
    }
}

/// Returns the number of bytes at the end of the text that may be the beginning of a stop string.
fn held_back(shape: &Shape, text: &str) -> usize {
    let Shape::Text { stop } = shape else { return 0 };
    let matching = |stop: &String| {
        let ends = stop.char_indices().map(|(i, _)| i).skip(1).filter(|i| text.ends_with(&stop[..*i]));
        ends.max().unwrap_or(0)
    };
    stop.iter().map(matching).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_appended_to_a_base_address() {
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
    fn the_beginning_of_a_stop_string_is_held_back() {
        let shape = Shape::Text { stop: vec!["END".into(), "\n\n".into()] };
        let all = ["ls", "ls E", "ls EN", "ls\n", "ls ENx"].map(|text| held_back(&shape, text));
        assert_eq!(all, [0, 1, 2, 1, 0]);
    }
}
