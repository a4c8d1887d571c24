//! The routes for commands: generate, check and explain. Their documents are those of `caro --json`,
//! `caro check --json` and `caro explain --json`, made by the same code.

use super::body::Document;
use super::commands::{CancelOnDrop, CheckOrder, CommandOrder, ExplainOrder};
use super::{Problem, Server, sse};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::sync::Arc;

/// `POST /v1/command`: generates a command.
pub async fn command(
    State(server): State<Arc<Server>>,
    headers: HeaderMap,
    Document(order): Document<CommandOrder>,
) -> Result<Response, Problem> {
    let engine = server.engine()?;
    let cancel = CancelOnDrop::default();
    if !order.stream && !sse::is_wanted(&headers) {
        let document = engine.commands.command(order, cancel.0.clone(), Box::new(|_| {})).await?;
        return Ok(Json(document).into_response());
    }
    let (events, response) = sse::stream();
    tokio::spawn(async move {
        let stages = events.clone();
        let stages = Box::new(move |stage: Value| stages.try_send("stage", &stage));
        let answer = engine.commands.command(order, cancel.0.clone(), stages);
        tokio::select! {
            answer = server.within_timeout(answer) => {
                let (name, document) = match answer.flatten() {
                    Ok(document) => ("complete", document),
                    Err(problem) => ("error", problem.document()),
                };
                // fails only if the client has disconnected
                let _ = events.send(name, None, &document).await;
            }
            () = events.closed() => {}
        }
    });
    Ok(response)
}

/// `POST /v1/check`: checks a command.
pub async fn check(
    State(server): State<Arc<Server>>,
    Document(order): Document<CheckOrder>,
) -> Result<Json<Value>, Problem> {
    server.engine()?.commands.check(order).await.map(Json)
}

/// `POST /v1/explain`: explains a command.
pub async fn explain(
    State(server): State<Arc<Server>>,
    Document(order): Document<ExplainOrder>,
) -> Result<Json<Value>, Problem> {
    server.engine()?.commands.explain(order).await.map(Json)
}
