//! The routes for the state and the counters of the server. None uses the model.

use super::Server;
use super::lifecycle::{Phase, Stage};
use super::metrics::Count;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// `GET /health`: the state of the server.
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

/// `GET /ready`: 200 while it can answer, 503 before that and while it ends.
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

/// `GET /metrics`: the counters of the server, and the cost of the stored runs.
pub async fn metrics(State(server): State<Arc<Server>>) -> Json<Value> {
    let engine = server.engine().ok();
    let model = engine.as_ref().map(|engine| engine.model.id());
    let runs = engine.as_ref().and_then(|engine| engine.harness.metrics().ok());
    Json(json!({"model": model, "server": counters(&server), "runs": runs}))
}

/// `GET /prometheus`: the counters for Prometheus.
pub async fn prometheus(State(server): State<Arc<Server>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], exposition(&server)).into_response()
}

/// The counters as a document.
fn counters(server: &Server) -> Value {
    let total = server.metrics.total();
    let routes = server.metrics.routes();
    let paths: Vec<Value> = routes
        .iter()
        .map(|((method, path), Count { success, error })| {
            json!({"method": method, "path": path, "success": success, "error": error})
        })
        .collect();
    let queue = |(places, waiting): (usize, usize)| json!({"under_way": places, "waiting": waiting});
    json!({
        "total_requests": total.success + total.error,
        "success": total.success,
        "error": total.error,
        "active": server.metrics.active(),
        "uptime": server.started.elapsed().as_secs_f64(),
        "answers": queue(server.answers.load()),
        "runs": queue(server.runs.load()),
        "paths": paths,
    })
}

/// The counters in the text format of Prometheus.
fn exposition(server: &Server) -> String {
    let total = server.metrics.total();
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, what: &str, value: f64| {
        // writing to a string cannot fail
        let _ = write!(text, "# HELP caro_{name} {what}\n# TYPE caro_{name} {kind}\ncaro_{name} {value}\n");
    };
    metric("requests_total", "counter", "Requests answered.", (total.success + total.error) as f64);
    metric("requests_success_total", "counter", "Those answered well.", total.success as f64);
    metric("requests_error_total", "counter", "Those answered with an error.", total.error as f64);
    metric("requests_active", "gauge", "Requests under way.", server.metrics.active() as f64);
    metric("uptime_seconds", "gauge", "Seconds since the start.", server.started.elapsed().as_secs_f64());
    for (name, (places, waiting)) in [("answers", server.answers.load()), ("runs", server.runs.load())] {
        metric(&format!("{name}_under_way"), "gauge", "Places taken.", places as f64);
        metric(&format!("{name}_waiting"), "gauge", "Requests that wait for a place.", waiting as f64);
    }
    text.push_str("# HELP caro_path_requests_total Requests by route.\n# TYPE caro_path_requests_total counter\n");
    for ((method, path), Count { success, error }) in server.metrics.routes() {
        for (outcome, count) in [("success", success), ("error", error)] {
            let labels = format!("method=\"{method}\",path=\"{path}\",outcome=\"{outcome}\"");
            let _ = writeln!(text, "caro_path_requests_total{{{labels}}} {count}");
        }
    }
    text
}
