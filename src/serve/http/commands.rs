//! The interface for commands: the orders that clients send, and the trait that answers them.

use super::Problem;
use caro_model::Cancel;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

/// A request for a command.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandOrder {
    /// The task of the command, in plain words.
    pub request: String,
    /// The folder to run it in, absolute; the server's own by default.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The platform to write it for; the server's own by default.
    #[serde(default)]
    pub target: Option<String>,
    /// The shell to write it for.
    #[serde(default)]
    pub shell: Option<String>,
    /// True to stream the stages.
    #[serde(default)]
    pub stream: bool,
}

/// A command to check.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckOrder {
    /// The command.
    pub command: String,
    /// The folder that it would run in, absolute.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The platform that it is for.
    #[serde(default)]
    pub target: Option<String>,
    /// The shell that it is for.
    #[serde(default)]
    pub shell: Option<String>,
    /// True to rehearse it: to run it in a discarded view of the file system.
    #[serde(default)]
    pub rehearse: bool,
}

/// A command to explain.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainOrder {
    /// The command.
    pub command: String,
    /// The shell that it is for.
    #[serde(default)]
    pub shell: Option<String>,
}

/// A search in the manuals of this machine's programs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchOrder {
    /// The purpose of an option, in a few words.
    pub query: String,
    /// The program whose manual is searched; by default all manuals read before.
    #[serde(default)]
    pub program: Option<String>,
    /// Most options listed.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// Called for each stage of the work on a command.
pub type Stages = Box<dyn FnMut(Value) + Send>;

/// Generates, checks and explains commands, and searches manuals. Implemented by the command line's verbs.
pub trait Commands: Send + Sync {
    /// Generates a command. Returns the document of `caro --json`.
    fn command(&self, order: CommandOrder, cancel: Cancel, stages: Stages) -> BoxFuture<'_, Result<Value, Problem>>;

    /// Checks a command. Returns the document of `caro check --json`.
    fn check(&self, order: CheckOrder) -> BoxFuture<'_, Result<Value, Problem>>;

    /// Explains a command. Returns the document of `caro explain --json`.
    fn explain(&self, order: ExplainOrder) -> BoxFuture<'_, Result<Value, Problem>>;

    /// Searches the manuals. Returns the options found under `hits`, in the form of `caro manual search --json`.
    fn search(&self, order: SearchOrder) -> BoxFuture<'_, Result<Value, Problem>>;
}

/// Cancels when it is dropped, as with the future of a client that has disconnected.
#[derive(Debug, Default)]
pub struct CancelOnDrop(pub Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
