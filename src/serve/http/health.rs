//! How the server stands. None of it asks the model.

use super::Server;
use super::lifecycle::{Phase, Stage};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /health`.
pub async fn health(State(server): State<Arc<Server>>) -> Json<Value> {
    let status = match server.phase() {
        Phase::Starting(_) => "starting",
        Phase::Ready => "ok",
        _ => "draining",
    };
    Json(json!({
        "status": status,
        "agent_name": server.parts.agent,
        "uptime": server.started.elapsed().as_secs_f64(),
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

/// `GET /ready`: 200 once it can answer, 503 until then and while it ends.
pub async fn ready(State(server): State<Arc<Server>>) -> Response {
    let phase = server.phase();
    let ready = phase == Phase::Ready;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let document = json!({
        "ready": ready,
        "agent_name": server.parts.agent,
        "initialized": server.engine().is_ok(),
        "mcp_connected": phase != Phase::Starting(Stage::Connect),
    });
    (status, Json(document)).into_response()
}

/// `GET /metrics`: the counters of the server, and what the kept runs have cost.
pub async fn metrics(State(server): State<Arc<Server>>) -> Json<Value> {
    let engine = server.engine().ok();
    let model = engine.as_ref().map(|engine| engine.model.id());
    let runs = engine.as_ref().and_then(|engine| engine.harness.metrics().ok());
    Json(json!({"model": model, "server": server.counted(), "runs": runs}))
}

/// `GET /prometheus`.
pub async fn prometheus(State(server): State<Arc<Server>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], server.exposition()).into_response()
}
