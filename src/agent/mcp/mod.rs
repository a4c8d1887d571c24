//! Tools of other programs, through the Model Context Protocol: servers that the person configured are opened side by side,
//! and their tools join the registry like any other. What they return goes through `observe` like any other.
//!
//! - [`config`]: which servers there are. [`trust`]: a project's own only after the person agreed.
//! - `server`: one server. `http`: those that are reached at an address; `sse`: in the older way.
//! - `tool`: a server's tool as ours. `schema`: its arguments as our grammar can have them. `example`: a call of it, for the
//!   prompt. `content`: its results as text.
//!
//! A server that does not start, dies, floods, hangs or talks nonsense costs its own tools and nothing else.

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

/// What servers are opened with.
#[derive(Debug, Clone)]
pub struct Place {
    /// The working folder: where programs of the person's own run if their entry says nothing.
    pub root: PathBuf,
    /// The folders that programs are looked for in, as PATH has them.
    pub search: Option<OsString>,
    /// Certificate authorities beside the built-in ones, as a PEM file.
    pub authorities: Option<PathBuf>,
}

/// The servers of a run. Dropping it ends them.
pub struct Hub {
    servers: Vec<Arc<Server>>,
    /// Where the connections live; a run has a runtime of its own.
    runtime: Option<tokio::runtime::Runtime>,
}

/// How a server stands.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Its name in the configuration.
    pub name: String,
    /// What it calls itself.
    pub title: String,
    /// How long it took to open, once it is open.
    pub took: Option<Duration>,
    /// What is wrong with it.
    pub error: Option<McpError>,
    /// Its tools by their own names, with the reason if one cannot be used.
    pub tools: Vec<(String, Option<String>)>,
}

impl Hub {
    /// Opens every server that is not disabled, side by side, and waits for them `patience` long or until the person has
    /// enough. Who is later joins later.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub fn open(configs: Vec<Config>, place: &Place, patience: Duration, cancel: &Cancel) -> std::io::Result<Self> {
        let servers: Vec<Arc<Server>> =
            configs.into_iter().filter(|c| !c.disabled).map(|c| Arc::new(Server::new(c))).collect();
        if servers.is_empty() {
            return Ok(Self { servers, runtime: None });
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("mcp").enable_all().build()?;
        let (say, hear) = mpsc::channel::<()>();
        for server in &servers {
            let opened = server.clone().open(place.root.clone(), place.search.clone(), place.authorities.clone());
            let say = say.clone();
            runtime.spawn(async move {
                opened.await;
                // nobody may be waiting any more
                let _ = say.send(());
            });
        }
        drop(say);
        let (begun, mut open) = (Instant::now(), 0);
        while open < servers.len() && begun.elapsed() < patience && !cancel.is_cancelled() {
            match hear.recv_timeout(Duration::from_millis(20)) {
                Ok(()) => open += 1,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(Self { servers, runtime: Some(runtime) })
    }

    /// The tools that there are now, by names that are neither `taken` nor each other's. A name that is shared gets its
    /// server's before it: `server.tool`.
    pub fn tools(&self, taken: &dyn Fn(&str) -> bool) -> Vec<Arc<dyn Tool>> {
        self.named(taken).into_iter().filter_map(|(_, _, tool)| tool.ok()).collect()
    }

    /// Values that no event may hold: what its servers are given in secret.
    pub fn secrets(&self) -> impl Iterator<Item = String> + '_ {
        self.servers.iter().flat_map(|server| server.config.secrets())
    }

    /// How the servers stand, in the order of the configuration.
    pub fn standing(&self) -> Vec<Standing> {
        let named = self.named(&|_| false);
        let of = |server: &Arc<Server>| Standing {
            name: server.config.name.clone(),
            title: server.title(),
            took: server.took(),
            error: server.error(),
            tools: named
                .iter()
                .filter(|(name, ..)| *name == server.config.name)
                .map(|(_, own, tool)| (own.clone(), tool.as_ref().err().cloned()))
                .chain(server.odd().into_iter().map(|(name, why)| (name, Some(why))))
                .collect(),
        };
        self.servers.iter().map(of).collect()
    }

    /// What the person should know: servers without an answer, and tools that cannot be used.
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
            let odd = standing.tools.into_iter().filter_map(|(tool, why)| Some((tool, why?)));
            all.extend(odd.map(|(tool, why)| format!("the tool `{tool}` of `{name}` is left out: {why}")));
        }
        all
    }

    /// Every tool of every server: the server, the tool's own name, and the tool or why not.
    #[expect(clippy::type_complexity)] // used here alone
    fn named(&self, taken: &dyn Fn(&str) -> bool) -> Vec<(String, String, Result<Arc<dyn Tool>, String>)> {
        let Some(runtime) = &self.runtime else { return Vec::new() };
        let all: Vec<_> = self.servers.iter().flat_map(|s| s.tools().into_iter().map(move |tool| (s, tool))).collect();
        let mut often: BTreeMap<String, usize> = BTreeMap::new();
        for (_, tool) in &all {
            *often.entry(plain(&tool.name)).or_default() += 1;
        }
        let mut used: BTreeMap<String, usize> = BTreeMap::new();
        all.into_iter()
            .map(|(server, tool)| {
                let own = tool.name.to_string();
                let mut name = plain(&own);
                let alone = often.get(&name) == Some(&1);
                if !alone || taken(&name) || RESERVED.contains(&&*name) || name.is_empty() {
                    name = plain(&format!("{}.{own}", server.config.name));
                }
                let again = used.entry(name.clone()).or_default();
                *again += 1;
                let tool = match *again {
                    1 => tool::wrap(&tool, name, server, runtime.handle()).map(|t| Arc::new(t) as Arc<dyn Tool>),
                    _ => Err(format!("there is another one with the name `{name}`")),
                };
                (server.config.name.clone(), plain(&own), tool)
            })
            .collect()
    }
}

/// A name as the registry has them.
fn plain(name: &str) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    name.chars().take(64).map(fine).collect()
}

impl Drop for Hub {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // inside another runtime nobody may wait: then they end at once
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
