//! caro's own: a command for a request, and what is to be said of one. The documents are those of `caro --json`,
//! `caro check --json` and `caro explain --json`, made by whoever makes them for these verbs.

use super::body::Document;
use super::{Problem, Server, sse};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use caro_model::Cancel;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

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

/// `POST /v1/command`.
pub async fn command(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    Document(order): Document<CommandOrder>,
) -> Result<Response, Problem> {
    let engine = server.engine()?;
    let cancel = CancelOnDrop::default();
    if !order.stream && !sse::wanted(&headers) {
        let document = engine.commands.command(order, cancel.0.clone(), Box::new(|_| {})).await?;
        return Ok(Json(document).into_response());
    }
    let (events, response) = sse::stream();
    tokio::spawn(async move {
        let stages = events.clone();
        let stages = Box::new(move |stage: Value| stages.offer("stage", &stage));
        let answer = engine.commands.command(order, cancel.0.clone(), stages);
        tokio::select! {
            answer = server.in_time(answer) => {
                let (name, document) = match answer.flatten() {
                    Ok(document) => ("complete", document),
                    Err(problem) => ("error", problem.document()),
                };
                // whoever has gone by now misses nothing
                let _ = events.send(name, None, &document).await;
            }
            () = events.closed() => {}
        }
    });
    Ok(response)
}

/// `POST /v1/check`.
pub async fn check(
    State(server): State<Arc<Server>>,
    Document(order): Document<CheckOrder>,
) -> Result<Json<Value>, Problem> {
    server.engine()?.commands.check(order).await.map(Json)
}

/// `POST /v1/explain`.
pub async fn explain(
    State(server): State<Arc<Server>>,
    Document(order): Document<ExplainOrder>,
) -> Result<Json<Value>, Problem> {
    server.engine()?.commands.explain(order).await.map(Json)
}
