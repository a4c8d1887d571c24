//! The resident process: a background process that keeps a model loaded and answers
//! [`caro_model::Model::generate`] over a Unix socket, so that later calls need not load it.
//!
//! It needs no setup. The first call starts it and is answered by it; it ends by itself when it is idle, when memory
//! runs short, and when its program or its model's file has changed. A caller sends it only the request to the model:
//! the working directory, environment, manuals and checks stay in the caller's process.
//!
//! - `wire`: frames and messages. `peer`: the process at the other end. `folder`: the private folder of sockets.
//! - `identity`: tells weights and programs apart. `link`: finds or starts the resident for a call.
//! - [`Client`]: the [`caro_model::Model`] of the calling side. If the resident fails, it computes the answer in its
//!   own process, within the same call. A computation that hangs costs one call its time; if that call had a deadline,
//!   the resident ends after it.
//! - `server`, `worker`, `memory`: the process itself. `record`: its process id on disk, by which it is found when it
//!   stops answering. `control`: lists residents and ends them.
//!
//! On systems without Unix sockets there is no resident, and `attach` returns [`Absent::System`].

mod identity;

#[cfg(unix)]
mod client;
#[cfg(all(test, unix))]
mod client_tests;
#[cfg(unix)]
mod control;
#[cfg(unix)]
mod folder;
#[cfg(unix)]
mod link;
#[cfg(unix)]
mod memory;
#[cfg(not(unix))]
mod off;
#[cfg(unix)]
mod peer;
#[cfg(unix)]
mod record;
#[cfg(unix)]
mod server;
#[cfg(all(test, unix))]
mod server_tests;
#[cfg(unix)]
mod wire;
#[cfg(unix)]
mod worker;

#[cfg(unix)]
pub use client::Client;
#[cfg(unix)]
pub use control::{list, stop};
#[cfg(unix)]
pub use folder::make_private;
pub use identity::Weights;
#[cfg(unix)]
pub use link::{attach, host};
#[cfg(unix)]
pub use memory::{Room, room};
#[cfg(not(unix))]
pub use off::{Client, Hosted, Room, attach, host, list, make_private, room, stop};
#[cfg(unix)]
pub use server::{Hosted, serve};

use caro_exec::ExecError;
use caro_model::{Model, ModelError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The first argument with which the program starts itself as a resident; the second is an [`Orders`] document.
pub const WORD: &str = "__resident";

/// Opens the model in the calling process.
pub type Open = dyn Fn() -> Result<Arc<dyn Model>, ModelError> + Send + Sync;

/// The resident that a caller wants, and how to start it.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The folder of sockets, created if it does not exist.
    pub folder: PathBuf,
    /// This program, to start the resident with.
    pub program: PathBuf,
    /// The model to keep loaded.
    pub weights: Weights,
    /// The time that it stays after the last request.
    pub idle: Duration,
    /// True to start one even if memory is short, or if it would inherit this process's low priority or limits.
    pub insist: bool,
}

/// The instructions for a resident, passed on its command line when it is started.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Orders {
    /// The path of its socket, which it inherits as its standard input.
    pub socket: PathBuf,
    /// The model to keep loaded.
    pub weights: Weights,
    /// Seconds that it stays after the last request.
    pub idle_s: f64,
}

/// The state of a resident, as it reports it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Status {
    /// Its process id.
    pub pid: u32,
    /// The program's version.
    pub version: String,
    /// The model's id.
    pub model: String,
    /// The model's file.
    pub file: PathBuf,
    /// The time at which it was started, in seconds since 1970.
    pub since: u64,
    /// The number of requests answered in full.
    pub served: u64,
    /// The number of requests in progress or waiting.
    pub waiting: usize,
    /// Bytes of memory in use, including the model's mapped file; `None` if the system does not report it.
    pub memory: Option<u64>,
    /// Bytes of it that are anonymous; the rest is the mapped file, which the system reclaims when it needs room.
    pub own_memory: Option<u64>,
    /// Seconds until it ends if no request comes; `None` if it ends with the server that hosts it.
    pub ends_in_s: Option<f64>,
}

/// The way in which a resident was ended, with its process id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It ended on request.
    Asked(u32),
    /// It did not answer and was ended by a signal.
    Killed(u32),
}

/// The reason that no resident answers.
#[derive(Debug, thiserror::Error)]
pub enum Absent {
    /// This system has no Unix sockets.
    #[error("this system has no resident process")]
    System,
    /// The folder of sockets is not private or cannot be created.
    #[error("{folder}: {reason}")]
    Folder {
        /// The folder.
        folder: String,
        /// The reason that it cannot be used.
        reason: String,
    },
    /// The weights cannot be served.
    #[error("{0}")]
    Weights(String),
    /// There is too little memory to keep a resident running.
    #[error("too little memory to keep a model ready ({available_mb} MB available, {wanted_mb} MB wanted)")]
    Memory {
        /// Megabytes available.
        available_mb: u64,
        /// Megabytes that should be available.
        wanted_mb: u64,
    },
    /// This process has a low priority or a limit that a resident would inherit.
    #[error("this process has {0}, which one left behind would keep")]
    Hindered(&'static str),
    /// Another process is starting a resident and takes too long.
    #[error("another process is still starting the resident")]
    Starting,
    /// The resident could not be started.
    #[error(transparent)]
    Start(#[from] ExecError),
    /// The process at the socket runs as another user, whose id this is.
    #[error("the process behind the socket belongs to user {0}")]
    Stranger(u32),
    /// The resident has its maximum number of clients.
    #[error("the resident process has as many callers as it takes")]
    Busy,
    /// The resident does not answer, or with something unexpected.
    #[error("the resident process {0}")]
    Lost(&'static str),
    /// An I/O error of the socket.
    #[error("the resident's socket: {0}")]
    Socket(#[from] std::io::Error),
}

impl Absent {
    /// Returns what the user can do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::System | Self::Busy => "nothing to do: the answer is computed in this process",
            Self::Folder { .. } => {
                "correct its permissions or remove it, or set CARO_RUNTIME_DIR to one of your own (mode 700)"
            }
            Self::Weights(_) | Self::Start(_) | Self::Socket(_) => "`--resident off` computes in this process",
            Self::Memory { .. } => "free some memory, or use a smaller model (`caro model list`)",
            Self::Hindered(_) => "the next call without it starts one",
            Self::Starting | Self::Lost(_) => "`caro stop` ends it, and the next call starts a new one",
            Self::Stranger(_) => "set CARO_RUNTIME_DIR to a folder that is yours alone",
        }
    }
}
