//! One server: opened once, asked for its tools, called, and told apart from a dead one. Nothing that it does or says ends
//! anything of ours.

use super::config::{Config, Reach};
use super::content::{short, text};
use super::http::Http;
use super::metered::{Heard, LINE, Metered};
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

/// Tools that one server may have, and pages in which it may list them.
const MOST_TOOLS: usize = 500;
const MOST_PAGES: usize = 50;
/// Bytes kept of what a server complains about.
const COMPLAINTS: usize = 4 << 10;
/// How long a change of its tools may be followed by another one before they are listed again.
const SETTLE: Duration = Duration::from_millis(50);
/// How long a server may take to end by itself once its input is closed.
const FAREWELL: Duration = Duration::from_millis(500);

/// Why a server has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// It could not be started or reached.
    #[error("the MCP server `{server}` could not be started: {reason}")]
    Start {
        /// Its name.
        server: String,
        /// Why.
        reason: String,
    },
    /// It did not answer in time when it was opened.
    #[error("the MCP server `{server}` did not answer within {seconds} s{said}")]
    Silent {
        /// Its name.
        server: String,
        /// How long it was waited for.
        seconds: u64,
        /// Its last complaint.
        said: String,
    },
    /// It is gone.
    #[error("the MCP server `{server}` has ended{how}")]
    Gone {
        /// Its name.
        server: String,
        /// How, and its last complaint.
        how: String,
    },
    /// A request did not reach it, or was turned away.
    #[error("the MCP server `{server}` did not take the call: {reason}")]
    Refused {
        /// Its name.
        server: String,
        /// Why.
        reason: String,
    },
    /// It answered with an error.
    #[error("{reason}")]
    Said {
        /// The server's words.
        reason: String,
    },
    /// It answered with something that the protocol does not have there.
    #[error("the MCP server `{server}` answered with something else than was asked for: {reason}")]
    Nonsense {
        /// Its name.
        server: String,
        /// What.
        reason: String,
    },
}

impl McpError {
    /// What to do next.
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

/// What is known of a server's connection.
#[derive(Default)]
struct State {
    peer: Option<Peer<RoleClient>>,
    process: Option<Process>,
    listed: Listed,
    error: Option<McpError>,
    took: Option<Duration>,
    title: String,
}

/// What a tool is called that has no name.
const NAMELESS: &str = "(no name)";

/// What a server says that it has.
#[derive(Default)]
struct Listed {
    tools: Vec<Tool>,
    /// What it calls a tool and is none, by name, and why.
    odd: Vec<(String, String)>,
}

impl Listed {
    /// A tool as the server wrote it, or why it is none.
    fn add(&mut self, tool: &serde_json::Value) {
        match Tool::deserialize(tool) {
            // nobody could call it
            Ok(tool) if tool.name.trim().is_empty() => self.odd.push((NAMELESS.into(), "its name is empty".into())),
            Ok(tool) => self.tools.push(tool),
            Err(why) => {
                let name = tool["name"].as_str().map_or_else(|| NAMELESS.into(), super::plain);
                self.odd.push((name, short(&why.to_string())));
            }
        }
    }
}

/// The end of what a server complains about.
#[derive(Default)]
struct Complaints {
    text: Mutex<Vec<u8>>,
    over: AtomicBool,
}

/// One server.
pub(super) struct Server {
    pub(super) config: Config,
    state: Mutex<State>,
    complaints: Arc<Complaints>,
    heard: Arc<Heard>,
    closing: Notify,
    closed: Notify,
}

impl Server {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            state: Mutex::default(),
            complaints: Arc::default(),
            heard: Arc::default(),
            closing: Notify::new(),
            closed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools that it has now.
    pub(super) fn tools(&self) -> Vec<Tool> {
        self.state().listed.tools.clone()
    }

    /// What it lists and is no tool, by name, and why.
    pub(super) fn odd(&self) -> Vec<(String, String)> {
        self.state().listed.odd.clone()
    }

    /// What is wrong with it, if anything is.
    pub(super) fn error(&self) -> Option<McpError> {
        self.state().error.clone()
    }

    /// How long it took to open, once it is open.
    pub(super) fn took(&self) -> Option<Duration> {
        self.state().took
    }

    /// What it calls itself.
    pub(super) fn title(&self) -> String {
        self.state().title.clone()
    }

    /// Opens it and lists its tools. Never waits longer than its time limit; what goes wrong is kept.
    pub(super) async fn open(self: Arc<Self>, root: PathBuf, search: Option<std::ffi::OsString>, tls: Option<PathBuf>) {
        let begun = Instant::now();
        let limit = self.config.timeout;
        let opened = tokio::time::timeout(limit, self.clone().opened(&root, search, tls)).await;
        let mut state = self.state();
        match opened {
            Ok(Ok(())) => state.took = Some(begun.elapsed()),
            Ok(Err(error)) => {
                (state.peer, state.process) = (None, None);
                state.error = Some(error);
            }
            Err(_) => {
                (state.peer, state.process) = (None, None);
                let (server, said) = (self.config.name.clone(), self.said());
                state.error = Some(McpError::Silent { server, seconds: limit.as_secs(), said });
            }
        }
    }

    async fn opened(
        self: Arc<Self>,
        root: &Path,
        search: Option<std::ffi::OsString>,
        tls: Option<PathBuf>,
    ) -> Result<(), McpError> {
        let ears = Ears { changed: Arc::new(Notify::new()) };
        let changed = ears.changed.clone();
        let service = match &self.config.reach {
            Reach::Stdio { command, args, env, cwd } => {
                let base = self.config.base(root);
                let cwd = cwd.as_ref().map_or_else(|| base.to_path_buf(), |cwd| base.join(cwd));
                if !cwd.is_dir() {
                    return Err(self.failed(format!("its `cwd` {} is no folder", cwd.display())));
                }
                let program = which::which_in(command, search, &cwd)
                    .map_err(|_| self.failed(format!("there is no program `{command}`")))?;
                let mut job = Job::new(program).args(args);
                for (name, value) in env {
                    job = job.env(name, value);
                }
                (job.cwd, job.sandbox) = (Some(cwd), Sandbox::None);
                let child = exec::piped(&job).map_err(|e| self.failed(e.to_string()))?;
                self.state().process = Some(child.process);
                tokio::spawn(listen(child.stderr, self.complaints.clone()));
                let stdout = Metered::new(child.stdout, self.heard.clone());
                let transport = AsyncRwTransport::new(stdout, child.stdin).with_max_line_length(LINE);
                serve_client(ears, transport).await
            }
            Reach::Http { url, headers } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.custom_headers = header_map(headers).map_err(|why| self.failed(why))?;
                config.max_sse_event_size = LINE;
                // a second is enough of a server that has gone
                config.session_recovery_timeout = Duration::from_secs(2);
                let http = Http { silence: self.config.timeout, authorities: tls };
                serve_client(ears, StreamableHttpClientTransport::with_client(http, config)).await
            }
            Reach::Sse { url, headers } => {
                let headers = header_map(headers).map_err(|why| self.failed(why))?;
                let http = Http { silence: self.config.timeout, authorities: tls };
                let transport = SseTransport::open(http, url, headers, self.heard.clone()).await;
                serve_client(ears, transport.map_err(|error| self.failed(told(&error)))?).await
            }
        };
        let service = match service {
            Ok(service) => service,
            Err(ClientInitializeError::TransportError { error, .. }) => {
                // to a process that has ended nothing can be written: how it ended tells more than that
                let how = if self.state().process.is_some() { self.how_it_ended().await } else { String::new() };
                let why = if how.is_empty() { told(&*error.error) } else { format!("it ended{how}") };
                return Err(self.failed(why));
            }
            Err(ClientInitializeError::JsonRpcError(data)) => {
                return Err(self.failed(format!("it says: {}", short(&data.message))));
            }
            Err(ClientInitializeError::ConnectionClosed(_)) => {
                let how = self.how_it_ended().await;
                return Err(self.failed(format!("it ended{how}")));
            }
            Err(error) => return Err(self.failed(told(&error))),
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
        tokio::spawn(self.clone().wait(service));
        // one that has none knows no request for them
        if has_tools {
            let listed = self.list(&peer).await.map_err(|error| match error {
                McpError::Said { reason } => self.failed(format!("it does not list its tools: {}", short(&reason))),
                other => other,
            });
            let listed = listed?;
            self.state().listed = listed;
        }
        tokio::spawn(self.clone().refresh(changed));
        Ok(())
    }

    /// Waits for the end of the connection, ours or the server's.
    async fn wait(self: Arc<Self>, service: RunningService<RoleClient, Ears>) {
        let token = service.cancellation_token();
        let mut over = std::pin::pin!(service.waiting());
        tokio::select! {
            _ = &mut over => {
                let how = self.how_it_ended().await;
                let mut state = self.state();
                state.peer = None;
                state.error.get_or_insert(McpError::Gone { server: self.config.name.clone(), how });
            }
            () = self.closing.notified() => {
                token.cancel();
                let _ = tokio::time::timeout(FAREWELL, over).await;
            }
        }
        self.closed.notify_one();
    }

    /// How the process ended, and its last words.
    async fn how_it_ended(&self) -> String {
        if self.heard.is_flood() {
            return ": it never ceased to write".into();
        }
        let begun = Instant::now();
        loop {
            let (ended, any) = {
                let mut state = self.state();
                (state.process.as_mut().and_then(Process::ended), state.process.is_some())
            };
            let how = match ended {
                Some(Status::Exited(code)) => format!(" with exit code {code}"),
                Some(Status::Signaled(signal)) => format!(" by signal {signal}"),
                _ if any && begun.elapsed() < FAREWELL => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
                _ => String::new(),
            };
            // its last words may still be on their way
            while any && !self.complaints.over.load(Ordering::Relaxed) && begun.elapsed() < FAREWELL {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            return format!("{how}{}", self.said());
        }
    }

    /// Lists the tools again whenever the server says that they have changed.
    async fn refresh(self: Arc<Self>, changed: Arc<Notify>) {
        loop {
            changed.notified().await;
            tokio::time::sleep(SETTLE).await;
            let Some(peer) = self.state().peer.clone() else { return };
            // a list that does not come leaves the old one
            if let Ok(Ok(listed)) = tokio::time::timeout(self.config.timeout, self.list(&peer)).await {
                self.state().listed = listed;
            }
        }
    }

    async fn list(&self, peer: &Peer<RoleClient>) -> Result<Listed, McpError> {
        let mut listed = Listed::default();
        let mut cursors = vec![None];
        for _ in 0..MOST_PAGES {
            let cursor = cursors.last().cloned().flatten();
            let request = ListToolsRequest::with_param(PaginatedRequestParams::default().with_cursor(cursor));
            let page = self.heard.or_dropped(peer.send_request(ClientRequest::ListToolsRequest(request)));
            let next = match page.await.map_err(|fault| self.nonsense(fault))? {
                Ok(ServerResult::ListToolsResult(page)) => {
                    listed.tools.extend(page.tools);
                    page.next_cursor
                }
                // one tool that is none makes the whole page something else
                Ok(ServerResult::CustomResult(page)) if page.0["tools"].is_array() => {
                    page.0["tools"].as_array().into_iter().flatten().for_each(|tool| listed.add(tool));
                    page.0["nextCursor"].as_str().map(str::to_owned)
                }
                Ok(_) => return Err(self.error_of(ServiceError::UnexpectedResponse).await),
                Err(error) => return Err(self.error_of(error).await),
            };
            // a place in the list that comes again would come without end
            if next.is_none() || cursors.contains(&next) || listed.tools.len() >= MOST_TOOLS {
                break;
            }
            cursors.push(next);
        }
        listed.tools.truncate(MOST_TOOLS);
        listed.odd.truncate(MOST_TOOLS);
        Ok(listed)
    }

    /// Calls a tool; the text of its result.
    pub(super) async fn invoke(&self, tool: String, args: super::Args) -> Result<String, McpError> {
        let Some(peer) = self.state().peer.clone() else {
            let gone = || McpError::Gone { server: self.config.name.clone(), how: String::new() };
            return Err(self.error().unwrap_or_else(gone));
        };
        self.heard.begin();
        let call = peer.call_tool_once(CallToolRequestParams::new(tool).with_arguments(args));
        match self.heard.or_dropped(call).await.map_err(|fault| self.nonsense(fault))? {
            Ok(CallToolResponse::Complete(result)) => {
                let text = text(&result);
                if result.is_error == Some(true) { Err(McpError::Said { reason: text }) } else { Ok(text) }
            }
            Ok(_) => Err(self.nonsense("it asks back, which is not possible here")),
            Err(error) => Err(self.error_of(error).await),
        }
    }

    /// Ends the connection, and the process if it does not end by itself.
    pub(super) async fn close(&self) {
        if self.state().peer.take().is_some() {
            self.closing.notify_one();
            let _ = tokio::time::timeout(FAREWELL, self.closed.notified()).await;
            let begun = Instant::now();
            while begun.elapsed() < FAREWELL
                && self.state().process.as_mut().is_some_and(|process| process.ended().is_none())
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        self.kill();
    }

    /// Ends the process at once.
    pub(super) fn kill(&self) {
        drop(self.state().process.take());
    }

    async fn error_of(&self, error: ServiceError) -> McpError {
        match error {
            ServiceError::McpError(data) => McpError::Said { reason: data.message.into_owned() },
            ServiceError::TransportSend(error) if self.config.reach.is_address() => {
                McpError::Refused { server: self.config.name.clone(), reason: told(&*error.error) }
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let how = self.how_it_ended().await;
                self.state().error.get_or_insert(McpError::Gone { server: self.config.name.clone(), how }).clone()
            }
            other => self.nonsense(&other.to_string()),
        }
    }

    fn failed(&self, reason: impl Into<String>) -> McpError {
        McpError::Start { server: self.config.name.clone(), reason: self.config.masked(&reason.into()) }
    }

    fn nonsense(&self, reason: &str) -> McpError {
        McpError::Nonsense { server: self.config.name.clone(), reason: short(reason) }
    }

    /// Its last complaint, ready to be added to a sentence.
    fn said(&self) -> String {
        let kept = self.complaints.text.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let last = text.lines().rev().find(|l| !l.trim().is_empty()).map(short).unwrap_or_default();
        if last.is_empty() { last } else { format!("; it says: {last}") }
    }
}

/// An error with its causes, each once.
fn told(error: &dyn std::error::Error) -> String {
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
            let wrong = || format!("`{}` is no header", short(name));
            let name: http::HeaderName = name.parse().map_err(|_| wrong())?;
            Ok((name, value.parse().map_err(|_| wrong())?))
        })
        .collect()
}

/// Hears what a server says unasked.
struct Ears {
    changed: Arc<Notify>,
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        // no sampling, no roots, no questions to the person: a server gets nothing of ours but its calls
        ClientConfig::new(Default::default(), Implementation::new("caro", env!("CARGO_PKG_VERSION")))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Reads what a server complains about, keeping the end of it.
async fn listen(mut stream: impl AsyncRead + Unpin, kept: Arc<Complaints>) {
    let mut buffer = [0u8; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let mut text = kept.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.extend_from_slice(&buffer[..read]);
        let over = text.len().saturating_sub(COMPLAINTS);
        text.drain(..over);
    }
    kept.over.store(true, Ordering::Relaxed);
}
