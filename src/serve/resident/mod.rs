//! The resident process: it owns a model's weights, and answers [`caro_model::Model::generate`] over a Unix socket.
//!
//! Nobody sets it up. The first call starts it and is answered by it; it ends by itself when nobody asks any more, when
//! memory runs short, and when its program or its model's file is not what it was. Nothing of a caller goes there but the
//! request to the model: working directory, environment, manuals and checks stay in the caller's process.
//!
//! - `wire`: frames and messages. `peer`: who is at the other end. `folder`: where the sockets are, and who may be there.
//! - `identity`: which weights, which program; `link`: from a call to a resident that fits, started where there is none.
//! - [`Client`]: the [`caro_model::Model`] of the calling side. Whatever happens to the resident's process, it answers: in
//!   its own, within the same call. A computation alone that hangs costs one call its time, and then ends the resident, if
//!   that call had an end to its time.
//! - `server`, `worker`, `memory`: the process itself. `record`: what it leaves about itself, to be found by when it does not
//!   answer any more. `control`: what runs, and how to end it.
//!
//! On systems without Unix sockets there is no resident, and `attach` says so.

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

/// What a caller wants of a resident.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The folder of sockets, made if it is not there.
    pub folder: PathBuf,
    /// This program, to start the resident with.
    pub program: PathBuf,
    /// What is to be kept ready.
    pub weights: Weights,
    /// How long it stays after the last request.
    pub idle: Duration,
    /// Start one even where memory is short, or where it would keep what holds this process back.
    pub insist: bool,
}

/// What a resident is told when it is started.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Orders {
    /// The socket, which it also finds open as its standard input.
    pub socket: PathBuf,
    /// What it keeps ready.
    pub weights: Weights,
    /// Seconds that it stays after the last request.
    pub idle_s: f64,
}

/// What a resident says of itself.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// The program's version.
    pub version: String,
    /// The model's id.
    pub model: String,
    /// The model's file.
    pub file: PathBuf,
    /// When it was started, seconds since 1970.
    pub since: u64,
    /// Requests answered to their end.
    pub served: u64,
    /// Requests under way or waiting.
    pub waiting: usize,
    /// Bytes of memory in use, the model's mapped file included; `None` where the system does not tell.
    pub memory: Option<u64>,
    /// Those that are its own: the rest is the mapped file, which the system takes back when it needs room.
    pub own_memory: Option<u64>,
    /// Seconds until it ends, unless it is asked before; `None` of one that ends with its server.
    pub ends_in_s: Option<f64>,
}

/// How a resident was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It ended when it was asked to.
    Asked(u32),
    /// It did not answer, and was ended by a signal.
    Killed(u32),
}

/// Why no resident answers.
#[derive(Debug, thiserror::Error)]
pub enum Absent {
    /// This system has no Unix sockets.
    #[error("this system has no resident process")]
    System,
    /// The folder of sockets is not safe or cannot be made.
    #[error("{folder}: {reason}")]
    Folder {
        /// The folder.
        folder: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The weights cannot be served.
    #[error("{0}")]
    Weights(String),
    /// There is too little memory to leave a process behind.
    #[error("too little memory to keep a model ready ({available_mb} MB available, {wanted_mb} MB wanted)")]
    Memory {
        /// What is left.
        available_mb: u64,
        /// What there should be.
        wanted_mb: u64,
    },
    /// This process is held back by something that one started by it would keep.
    #[error("this process has {0}, which one left behind would keep")]
    Hindered(&'static str),
    /// Another process is starting one, and takes too long.
    #[error("another process is still starting the resident")]
    Starting,
    /// It could not be started.
    #[error(transparent)]
    Start(#[from] ExecError),
    /// It runs as somebody else: whoever made the socket is not this user.
    #[error("the process behind the socket belongs to user {0}")]
    Stranger(u32),
    /// It has enough to do.
    #[error("the resident process has as many callers as it takes")]
    Busy,
    /// It does not answer, or not in our language.
    #[error("the resident process {0}")]
    Lost(&'static str),
    /// The system's word.
    #[error("the resident's socket: {0}")]
    Socket(#[from] std::io::Error),
}

impl Absent {
    /// What the user can do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::System | Self::Busy => "nothing to do: the answer is computed in this process",
            Self::Folder { .. } => "mend or remove that folder, or set CARO_RUNTIME_DIR to one of your own (mode 700)",
            Self::Weights(_) | Self::Start(_) | Self::Socket(_) => "`--resident off` computes in this process",
            Self::Memory { .. } => "free some memory, or use a smaller model (`caro model list`)",
            Self::Hindered(_) => "the next call without it starts one",
            Self::Starting | Self::Lost(_) => "`caro stop` ends it, and the next call starts a new one",
            Self::Stranger(_) => "set CARO_RUNTIME_DIR to a folder that is yours alone",
        }
    }
}
