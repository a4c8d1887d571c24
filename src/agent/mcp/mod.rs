//! Tools of MCP servers (Model Context Protocol). The servers that the user configured are opened in parallel, and
//! their tools join the registry like any other; their results go through `observe` like any other.
//!
//! - [`config`]: the configured servers. [`trust`]: a project's servers need the user's consent.
//! - `server`: one server. `http`: the streamable HTTP transport; `sse`: the older HTTP+SSE transport.
//! - `tool`: wraps a server's tool. `schema`: simplifies its argument schema for the grammar. `example`: an example
//!   call for the prompt. `content`: results as text.
//!
//! A server that does not start, crashes, floods, hangs or breaks the protocol costs its own tools and nothing else.

pub mod config;
mod content;
mod example;
mod http;
mod metered;
mod schema;
mod server;
mod sse;
mod tool;
pub mod trust;

pub use config::{Config, ConfigError, Origin, Reach, Written};
pub use server::McpError;
pub use trust::Trust;

use super::tool::{Args, RESERVED, Tool};
use caro_model::Cancel;
use server::Server;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The surroundings that servers are opened in.
#[derive(Debug, Clone)]
pub struct Place {
    /// The working directory, in which the user's servers run if their entry gives no `cwd`.
    pub root: PathBuf,
    /// The search path for programs, as in PATH.
    pub search: Option<OsString>,
    /// Certificate authorities in addition to the built-in ones, as a PEM file.
    pub authorities: Option<PathBuf>,
}

/// The servers of a run. Dropping it closes them.
pub struct Hub {
    servers: Vec<Arc<Server>>,
    /// The runtime that drives the connections; `None` without servers.
    runtime: Option<tokio::runtime::Runtime>,
}

/// The status of a server.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Its name in the configuration.
    pub name: String,
    /// The name and version that it reports.
    pub title: String,
    /// The time it took to open, once it is open.
    pub took: Option<Duration>,
    /// The error that keeps it from being used.
    pub error: Option<McpError>,
    /// Its tools by their own names, with the reason if a tool cannot be used.
    pub tools: Vec<(String, Option<String>)>,
}

impl Hub {
    /// Opens all servers that are not disabled, in parallel, and waits at most `patience` or until cancelled. Servers
    /// that take longer are added when they are ready.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn open(configs: Vec<Config>, place: &Place, patience: Duration, cancel: &Cancel) -> std::io::Result<Self> {
        let servers: Vec<Arc<Server>> =
            configs.into_iter().filter(|c| !c.disabled).map(|c| Arc::new(Server::new(c))).collect();
        if servers.is_empty() {
            return Ok(Self { servers, runtime: None });
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("mcp").enable_all().build()?;
        let (sender, receiver) = mpsc::channel::<()>();
        for server in &servers {
            let opened = server.clone().open(place.root.clone(), place.search.clone(), place.authorities.clone());
            let sender = sender.clone();
            runtime.spawn(async move {
                opened.await;
                // the receiver may have stopped waiting
                let _ = sender.send(());
            });
        }
        drop(sender);
        let (started, mut open) = (Instant::now(), 0);
        while open < servers.len() && started.elapsed() < patience && !cancel.is_cancelled() {
            match receiver.recv_timeout(Duration::from_millis(20)) {
                Ok(()) => open += 1,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(Self { servers, runtime: Some(runtime) })
    }

    /// Returns the tools available now. A name that is `taken`, or shared by several tools, is prefixed with its
    /// server's: `server.tool`.
    pub fn tools(&self, taken: &dyn Fn(&str) -> bool) -> Vec<Arc<dyn Tool>> {
        self.named_tools(taken).into_iter().filter_map(|(_, _, tool)| tool.ok()).collect()
    }

    /// Returns the values that must not appear in events: the secrets given to the servers.
    pub fn secrets(&self) -> impl Iterator<Item = String> + '_ {
        self.servers.iter().flat_map(|server| server.config.secrets())
    }

    /// Returns the status of the servers, in the order of the configuration.
    pub fn standing(&self) -> Vec<Standing> {
        let named_tools = self.named_tools(&|_| false);
        let of = |server: &Arc<Server>| Standing {
            name: server.config.name.clone(),
            title: server.title(),
            took: server.took(),
            error: server.error(),
            tools: named_tools
                .iter()
                .filter(|(name, ..)| *name == server.config.name)
                .map(|(_, own, tool)| (own.clone(), tool.as_ref().err().cloned()))
                .chain(server.unusable().into_iter().map(|(name, why)| (name, Some(why))))
                .collect(),
        };
        self.servers.iter().map(of).collect()
    }

    /// Returns warnings for the user: servers that are not ready, and tools that cannot be used.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        for standing in self.standing() {
            match (standing.error, standing.took) {
                (Some(error), _) => all.push(error.to_string()),
                (None, None) => {
                    all.push(format!("the MCP server `{}` is not ready yet: its tools are left out", standing.name));
                }
                _ => {}
            }
            let name = &standing.name;
            let unusable = standing.tools.into_iter().filter_map(|(tool, why)| Some((tool, why?)));
            all.extend(unusable.map(|(tool, why)| format!("the tool `{tool}` of `{name}` is left out: {why}")));
        }
        all
    }

    /// Returns every tool of every server: the server's name, the tool's own name, and the tool or why it cannot be
    /// used.
    #[expect(clippy::type_complexity)] // used in this file only
    fn named_tools(&self, taken: &dyn Fn(&str) -> bool) -> Vec<(String, String, Result<Arc<dyn Tool>, String>)> {
        let Some(runtime) = &self.runtime else { return Vec::new() };
        let all: Vec<_> = self.servers.iter().flat_map(|s| s.tools().into_iter().map(move |tool| (s, tool))).collect();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (_, tool) in &all {
            *counts.entry(registry_name(&tool.name)).or_default() += 1;
        }
        let mut used: BTreeMap<String, usize> = BTreeMap::new();
        all.into_iter()
            .map(|(server, tool)| {
                let own = tool.name.to_string();
                let mut name = registry_name(&own);
                let is_unique = counts.get(&name) == Some(&1);
                if !is_unique || taken(&name) || RESERVED.contains(&&*name) || name.is_empty() {
                    name = registry_name(&format!("{}.{own}", server.config.name));
                }
                let again = used.entry(name.clone()).or_default();
                *again += 1;
                let tool = match *again {
                    1 => tool::wrap(&tool, name, server, runtime.handle()).map(|t| Arc::new(t) as Arc<dyn Tool>),
                    _ => Err(format!("there is another one with the name `{name}`")),
                };
                (server.config.name.clone(), registry_name(&own), tool)
            })
            .collect()
    }
}

/// Converts a name to the form that the registry allows: at most 64 characters of `[A-Za-z0-9_.-]`.
fn registry_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    name.chars().take(64).map(allowed).collect()
}

impl Drop for Hub {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // blocking is not allowed inside another runtime: there the servers are killed at once
        if tokio::runtime::Handle::try_current().is_err() {
            runtime.block_on(async {
                let closing: Vec<_> = self
                    .servers
                    .iter()
                    .cloned()
                    .map(|server| tokio::spawn(async move { server.close().await }))
                    .collect();
                for one in closing {
                    let _ = one.await;
                }
            });
        }
        self.servers.iter().for_each(|server| server.kill());
        runtime.shutdown_background();
    }
}
