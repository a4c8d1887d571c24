//! Commands as the server asks for them: the orders that clients send, and who makes the documents that answer them.

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
    /// The folder that it is to run in, absolute; the server's own without one.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The machine that it is for; the server's own without one.
    #[serde(default)]
    pub target: Option<String>,
    /// The shell that it is for.
    #[serde(default)]
    pub shell: Option<String>,
    /// True to be told each stage as it comes.
    #[serde(default)]
    pub stream: bool,
}

/// A command that is to be checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckOrder {
    /// The command.
    pub command: String,
    /// The folder that it is to run in, absolute.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The machine that it is for.
    #[serde(default)]
    pub target: Option<String>,
    /// The shell that it is for.
    #[serde(default)]
    pub shell: Option<String>,
    /// True to have it tried out in a view that is thrown away.
    #[serde(default)]
    pub rehearse: bool,
}

/// A command that is to be explained.
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
    /// The program whose manual is searched; all that were read before without one.
    #[serde(default)]
    pub program: Option<String>,
    /// The most options that are listed.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// Told of each stage on the way to a command.
pub type Stages = Box<dyn FnMut(Value) + Send>;

/// Makes commands, and knows what is to be said of them. The terminal's verbs have it.
pub trait Commands: Send + Sync {
    /// The document of `caro --json`.
    fn command(&self, order: CommandOrder, cancel: Cancel, stages: Stages) -> BoxFuture<'_, Result<Value, Problem>>;

    /// The document of `caro check --json`.
    fn check(&self, order: CheckOrder) -> BoxFuture<'_, Result<Value, Problem>>;

    /// The document of `caro explain --json`.
    fn explain(&self, order: ExplainOrder) -> BoxFuture<'_, Result<Value, Problem>>;

    /// The options that are found, as `caro manual search --json` lists them, below `hits`.
    fn search(&self, order: SearchOrder) -> BoxFuture<'_, Result<Value, Problem>>;
}

/// Pulls a switch when it is dropped: with the future of a client that went away.
#[derive(Debug, Default)]
pub struct CancelOnDrop(pub Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
