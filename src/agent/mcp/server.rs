//! One server: opens it, lists its tools, calls them, and reports how it ended. Errors of a server never end the run.

use super::config::{Config, Reach};
use super::content::{short, text};
use super::http::Http;
use super::metered::{MAX_LINE, MeteredReader, OutputMeter};
use super::sse::SseTransport;
use caro_exec::{self as exec, Job, Process, Sandbox, Status};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientConfig, ClientRequest, Implementation, ListToolsRequest,
    PaginatedRequestParams, ServerResult, Tool,
};
use rmcp::service::{ClientInitializeError, NotificationContext, Peer, RoleClient, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, serve_client};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;

/// Most tools of one server.
const MAX_TOOLS: usize = 500;
/// Most pages in which a server may list its tools.
const MAX_PAGES: usize = 50;
/// Most bytes kept of the end of a server's standard error.
const MAX_STDERR_BYTES: usize = 4 << 10;
/// Delay before the tools are listed again, so that several change notifications cause one listing.
const LIST_DEBOUNCE: Duration = Duration::from_millis(50);
/// Most time a server may take to exit by itself once its input is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The reason why a server did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// It could not be started or reached.
    #[error("the MCP server `{server}` could not be started: {reason}")]
    Start {
        /// Its name.
        server: String,
        /// The reason.
        reason: String,
    },
    /// It did not answer in time when it was opened.
    #[error("the MCP server `{server}` did not answer within {seconds} s{said}")]
    Silent {
        /// Its name.
        server: String,
        /// The time waited, seconds.
        seconds: u64,
        /// The last line of its standard error, as the end of a sentence, or empty.
        said: String,
    },
    /// It has exited or closed the connection.
    #[error("the MCP server `{server}` has ended{how}")]
    Gone {
        /// Its name.
        server: String,
        /// The exit status and the last line of its standard error, as the end of a sentence.
        how: String,
    },
    /// A request did not reach it, or was rejected.
    #[error("the MCP server `{server}` did not take the call: {reason}")]
    Refused {
        /// Its name.
        server: String,
        /// The reason.
        reason: String,
    },
    /// It answered with an error.
    #[error("{reason}")]
    Said {
        /// The server's message.
        reason: String,
    },
    /// Its answer violates the protocol.
    #[error("the MCP server `{server}` answered with something else than was asked for: {reason}")]
    Nonsense {
        /// Its name.
        server: String,
        /// A description of the answer.
        reason: String,
    },
}

impl McpError {
    /// Returns a hint on what to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Start { .. } => {
                "check `command` and `env`, or `url` and `headers`, in its entry; `caro mcp check` tries again"
            }
            Self::Silent { .. } => "run its command by hand to see what it waits for, or give it a longer `timeout`",
            Self::Gone { .. } => "`caro mcp check` starts it anew and shows what it complains about",
            Self::Refused { .. } => "check `url` and `headers` in its entry",
            Self::Said { .. } => "change the arguments or take another way",
            Self::Nonsense { .. } => "check that it is a server of the Model Context Protocol, in a current version",
        }
    }
}

/// The state of a server's connection.
#[derive(Default)]
struct State {
    peer: Option<Peer<RoleClient>>,
    process: Option<Process>,
    listed: ToolList,
    error: Option<McpError>,
    took: Option<Duration>,
    title: String,
}

/// Stands for the name of a tool that has none.
const NAMELESS: &str = "(no name)";

/// The tools that a server lists.
#[derive(Default)]
struct ToolList {
    tools: Vec<Tool>,
    /// Listed entries that are no valid tools: their names and the reasons.
    unusable: Vec<(String, String)>,
}

impl ToolList {
    /// Adds an entry of the server's list, as a tool or as unusable.
    fn add(&mut self, tool: &serde_json::Value) {
        match Tool::deserialize(tool) {
            // it could not be called
            Ok(tool) if tool.name.trim().is_empty() => {
                self.unusable.push((NAMELESS.into(), "its name is empty".into()));
            }
            Ok(tool) => self.tools.push(tool),
            Err(why) => {
                let name = tool["name"].as_str().map_or_else(|| NAMELESS.into(), super::registry_name);
                self.unusable.push((name, short(&why.to_string())));
            }
        }
    }
}

/// The end of a server's standard error.
#[derive(Default)]
struct StderrTail {
    text: Mutex<Vec<u8>>,
    is_closed: AtomicBool,
}

/// One server.
pub(super) struct Server {
    pub(super) config: Config,
    state: Mutex<State>,
    stderr_tail: Arc<StderrTail>,
    meter: Arc<OutputMeter>,
    closing: Notify,
    closed: Notify,
}

impl Server {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            state: Mutex::default(),
            stderr_tail: Arc::default(),
            meter: Arc::default(),
            closing: Notify::new(),
            closed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tools that it offers now.
    pub(super) fn tools(&self) -> Vec<Tool> {
        self.state().listed.tools.clone()
    }

    /// Returns the listed entries that are no valid tools: their names and the reasons.
    pub(super) fn unusable(&self) -> Vec<(String, String)> {
        self.state().listed.unusable.clone()
    }

    /// Returns the error that keeps it from being used.
    pub(super) fn error(&self) -> Option<McpError> {
        self.state().error.clone()
    }

    /// Returns the time it took to open, once it is open.
    pub(super) fn took(&self) -> Option<Duration> {
        self.state().took
    }

    /// Returns the name and version that it reports.
    pub(super) fn title(&self) -> String {
        self.state().title.clone()
    }

    /// Opens it and lists its tools, within its timeout. An error is stored, see [`Self::error`].
    pub(super) async fn open(self: Arc<Self>, root: PathBuf, search: Option<std::ffi::OsString>, tls: Option<PathBuf>) {
        let started = Instant::now();
        let limit = self.config.timeout;
        let opened = tokio::time::timeout(limit, self.clone().connect(&root, search, tls)).await;
        let mut state = self.state();
        match opened {
            Ok(Ok(())) => state.took = Some(started.elapsed()),
            Ok(Err(error)) => {
                (state.peer, state.process) = (None, None);
                state.error = Some(error);
            }
            Err(_) => {
                (state.peer, state.process) = (None, None);
                let (server, said) = (self.config.name.clone(), self.last_complaint());
                state.error = Some(McpError::Silent { server, seconds: limit.as_secs(), said });
            }
        }
    }

    async fn connect(
        self: Arc<Self>,
        root: &Path,
        search: Option<std::ffi::OsString>,
        tls: Option<PathBuf>,
    ) -> Result<(), McpError> {
        let handler = NotificationHandler { changed: Arc::new(Notify::new()) };
        let changed = handler.changed.clone();
        let service = match &self.config.reach {
            Reach::Stdio { command, args, env, cwd } => {
                let base = self.config.base(root);
                let cwd = cwd.as_ref().map_or_else(|| base.to_path_buf(), |cwd| base.join(cwd));
                if !cwd.is_dir() {
                    return Err(self.start_error(format!("its `cwd` {} is not a folder", cwd.display())));
                }
                let program = which::which_in(command, search, &cwd)
                    .map_err(|_| self.start_error(format!("there is no program `{command}`")))?;
                let mut job = Job::new(program).args(args);
                for (name, value) in env {
                    job = job.env(name, value);
                }
                (job.cwd, job.sandbox) = (Some(cwd), Sandbox::None);
                let child = exec::piped(&job).map_err(|e| self.start_error(e.to_string()))?;
                self.state().process = Some(child.process);
                tokio::spawn(collect_stderr(child.stderr, self.stderr_tail.clone()));
                let stdout = MeteredReader::new(child.stdout, self.meter.clone());
                let transport = AsyncRwTransport::new(stdout, child.stdin).with_max_line_length(MAX_LINE);
                serve_client(handler, transport).await
            }
            Reach::Http { url, headers } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.custom_headers = header_map(headers).map_err(|why| self.start_error(why))?;
                config.max_sse_event_size = MAX_LINE;
                // do not wait long for a server that is gone
                config.session_recovery_timeout = Duration::from_secs(2);
                let http = Http { read_timeout: self.config.timeout, authorities: tls };
                serve_client(handler, StreamableHttpClientTransport::with_client(http, config)).await
            }
            Reach::Sse { url, headers } => {
                let headers = header_map(headers).map_err(|why| self.start_error(why))?;
                let http = Http { read_timeout: self.config.timeout, authorities: tls };
                let transport = SseTransport::open(http, url, headers, self.meter.clone()).await;
                serve_client(handler, transport.map_err(|error| self.start_error(with_causes(&error)))?).await
            }
        };
        let service = match service {
            Ok(service) => service,
            Err(ClientInitializeError::TransportError { error, .. }) => {
                // writing to a process that has exited fails: its exit status says more than the write error
                let how = if self.state().process.is_some() { self.how_it_ended().await } else { String::new() };
                let why = if how.is_empty() { with_causes(&*error.error) } else { format!("it ended{how}") };
                return Err(self.start_error(why));
            }
            Err(ClientInitializeError::JsonRpcError(data)) => {
                return Err(self.start_error(format!("it says: {}", short(&data.message))));
            }
            Err(ClientInitializeError::ConnectionClosed(_)) => {
                let how = self.how_it_ended().await;
                return Err(self.start_error(format!("it ended{how}")));
            }
            Err(error) => return Err(self.start_error(with_causes(&error))),
        };
        let peer = service.peer().clone();
        let mut has_tools = false;
        if let Some(info) = peer.peer_info() {
            has_tools = info.capabilities.tools.is_some();
            let one = serde_json::to_value(&*info).unwrap_or_default();
            let part = |name: &str| one.pointer(&format!("/serverInfo/{name}")).and_then(|v| v.as_str()).map(short);
            self.state().title = [part("name"), part("version")].into_iter().flatten().collect::<Vec<_>>().join(" ");
        }
        self.state().peer = Some(peer.clone());
        tokio::spawn(self.clone().watch_connection(service));
        // a server without tools need not support the request
        if has_tools {
            let listed = self.list_tools(&peer).await.map_err(|error| match error {
                McpError::Said { reason } => {
                    self.start_error(format!("it does not list its tools: {}", short(&reason)))
                }
                other => other,
            });
            let listed = listed?;
            self.state().listed = listed;
        }
        tokio::spawn(self.clone().refresh_on_change(changed));
        Ok(())
    }

    /// Waits until the connection ends, closed by either side.
    async fn watch_connection(self: Arc<Self>, service: RunningService<RoleClient, NotificationHandler>) {
        let token = service.cancellation_token();
        let mut ended = std::pin::pin!(service.waiting());
        tokio::select! {
            _ = &mut ended => {
                let how = self.how_it_ended().await;
                let mut state = self.state();
                state.peer = None;
                state.error.get_or_insert(McpError::Gone { server: self.config.name.clone(), how });
            }
            () = self.closing.notified() => {
                token.cancel();
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, ended).await;
            }
        }
        self.closed.notify_one();
    }

    /// Describes how the process ended, with the last line of its standard error.
    async fn how_it_ended(&self) -> String {
        if self.meter.is_flood() {
            return ": it never ceased to write".into();
        }
        let started = Instant::now();
        loop {
            let (ended, any) = {
                let mut state = self.state();
                (state.process.as_mut().and_then(Process::ended), state.process.is_some())
            };
            let how = match ended {
                Some(Status::Exited(code)) => format!(" with exit code {code}"),
                Some(Status::Signaled(signal)) => format!(" by signal {signal}"),
                _ if any && started.elapsed() < CLOSE_TIMEOUT => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
                _ => String::new(),
            };
            // the last lines of standard error may not have arrived yet
            while any && !self.stderr_tail.is_closed.load(Ordering::Relaxed) && started.elapsed() < CLOSE_TIMEOUT {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            return format!("{how}{}", self.last_complaint());
        }
    }

    /// Lists the tools again whenever the server notifies that they have changed.
    async fn refresh_on_change(self: Arc<Self>, changed: Arc<Notify>) {
        loop {
            changed.notified().await;
            tokio::time::sleep(LIST_DEBOUNCE).await;
            let Some(peer) = self.state().peer.clone() else { return };
            // if listing fails, the old list stays
            if let Ok(Ok(listed)) = tokio::time::timeout(self.config.timeout, self.list_tools(&peer)).await {
                self.state().listed = listed;
            }
        }
    }

    async fn list_tools(&self, peer: &Peer<RoleClient>) -> Result<ToolList, McpError> {
        let mut listed = ToolList::default();
        let mut cursors = vec![None];
        for _ in 0..MAX_PAGES {
            let cursor = cursors.last().cloned().flatten();
            let request = ListToolsRequest::with_param(PaginatedRequestParams::default().with_cursor(cursor));
            let page = self.meter.or_dropped(peer.send_request(ClientRequest::ListToolsRequest(request)));
            let next = match page.await.map_err(|fault| self.unexpected(fault))? {
                Ok(ServerResult::ListToolsResult(page)) => {
                    listed.tools.extend(page.tools);
                    page.next_cursor
                }
                // one invalid tool makes the library return the whole page as a custom result
                Ok(ServerResult::CustomResult(page)) if page.0["tools"].is_array() => {
                    page.0["tools"].as_array().into_iter().flatten().for_each(|tool| listed.add(tool));
                    page.0["nextCursor"].as_str().map(str::to_owned)
                }
                Ok(_) => return Err(self.to_mcp_error(ServiceError::UnexpectedResponse).await),
                Err(error) => return Err(self.to_mcp_error(error).await),
            };
            // a repeated cursor would repeat endlessly
            if next.is_none() || cursors.contains(&next) || listed.tools.len() >= MAX_TOOLS {
                break;
            }
            cursors.push(next);
        }
        listed.tools.truncate(MAX_TOOLS);
        listed.unusable.truncate(MAX_TOOLS);
        Ok(listed)
    }

    /// Calls a tool and returns the text of its result.
    pub(super) async fn invoke(&self, tool: String, args: super::Args) -> Result<String, McpError> {
        let Some(peer) = self.state().peer.clone() else {
            let gone = || McpError::Gone { server: self.config.name.clone(), how: String::new() };
            return Err(self.error().unwrap_or_else(gone));
        };
        self.meter.start_call();
        let call = peer.call_tool_once(CallToolRequestParams::new(tool).with_arguments(args));
        match self.meter.or_dropped(call).await.map_err(|fault| self.unexpected(fault))? {
            Ok(CallToolResponse::Complete(result)) => {
                let text = text(&result);
                if result.is_error == Some(true) { Err(McpError::Said { reason: text }) } else { Ok(text) }
            }
            Ok(_) => Err(self.unexpected("it asks back, which is not possible here")),
            Err(error) => Err(self.to_mcp_error(error).await),
        }
    }

    /// Closes the connection, and kills the process if it does not exit by itself.
    pub(super) async fn close(&self) {
        if self.state().peer.take().is_some() {
            self.closing.notify_one();
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.closed.notified()).await;
            let started = Instant::now();
            while started.elapsed() < CLOSE_TIMEOUT
                && self.state().process.as_mut().is_some_and(|process| process.ended().is_none())
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        self.kill();
    }

    /// Kills the process at once.
    pub(super) fn kill(&self) {
        drop(self.state().process.take());
    }

    async fn to_mcp_error(&self, error: ServiceError) -> McpError {
        match error {
            ServiceError::McpError(data) => McpError::Said { reason: data.message.into_owned() },
            ServiceError::TransportSend(error) if self.config.reach.is_address() => {
                McpError::Refused { server: self.config.name.clone(), reason: with_causes(&*error.error) }
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let how = self.how_it_ended().await;
                self.state().error.get_or_insert(McpError::Gone { server: self.config.name.clone(), how }).clone()
            }
            other => self.unexpected(&other.to_string()),
        }
    }

    fn start_error(&self, reason: impl Into<String>) -> McpError {
        McpError::Start { server: self.config.name.clone(), reason: self.config.masked(&reason.into()) }
    }

    fn unexpected(&self, reason: &str) -> McpError {
        McpError::Nonsense { server: self.config.name.clone(), reason: short(reason) }
    }

    /// Returns the last line of its standard error as the end of a sentence, or an empty text.
    fn last_complaint(&self) -> String {
        let tail = self.stderr_tail.text.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail);
        let last = text.lines().rev().find(|l| !l.trim().is_empty()).map(short).unwrap_or_default();
        if last.is_empty() { last } else { format!("; it says: {last}") }
    }
}

/// Returns an error's message with those of its causes, each once.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    short(&text)
}

fn header_map(pairs: &[(String, String)]) -> Result<HashMap<http::HeaderName, http::HeaderValue>, String> {
    pairs
        .iter()
        .map(|(name, value)| {
            let wrong = || format!("`{}` is not a header", short(name));
            let name: http::HeaderName = name.parse().map_err(|_| wrong())?;
            Ok((name, value.parse().map_err(|_| wrong())?))
        })
        .collect()
}

/// Handles the notifications of a server.
struct NotificationHandler {
    changed: Arc<Notify>,
}

impl ClientHandler for NotificationHandler {
    fn get_info(&self) -> ClientConfig {
        // no sampling, no roots, no elicitation: a server is given nothing but its calls
        ClientConfig::new(Default::default(), Implementation::new("caro", env!("CARGO_PKG_VERSION")))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Reads a server's standard error and keeps its end.
async fn collect_stderr(mut stream: impl AsyncRead + Unpin, tail: Arc<StderrTail>) {
    let mut buffer = [0u8; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let mut text = tail.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.extend_from_slice(&buffer[..read]);
        let excess = text.len().saturating_sub(MAX_STDERR_BYTES);
        text.drain(..excess);
    }
    tail.is_closed.store(true, Ordering::Relaxed);
}
