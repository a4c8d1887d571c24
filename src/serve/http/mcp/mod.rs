//! The Model Context Protocol over HTTP ("streamable HTTP"): a POST has a message or a batch, and its response has
//! the answers, or is a stream if the client wants progress notifications. The server sends nothing unasked, so there
//! is no stream to `GET`. If the client disconnects, its calls are stopped.
//!
//! Up to revision 2025-11-25 a client has a session (`Mcp-Session-Id`); later revisions have none, and each request
//! is self-contained.

pub mod sessions;

use super::commands::{CancelOnDrop, Commands};
use super::peer::Peer;
use super::queue::{self, Places};
use super::runs::{self, RunOrder};
use super::toolbox::{Means, Tools};
use super::{Problem, Server, body, sse};
use crate::mcp::work::{run_call, to_outcome};
use crate::mcp::{Session, Stages, Start, Step, ToolError, message, session, version};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use caro_agent::event::Sink;
use caro_agent::turn::Report;
use caro_model::Cancel;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::{Map, Value};
use sessions::{Shared, lock};
use std::sync::{Arc, Mutex};

/// The header that names a session.
pub const SESSION: &str = "mcp-session-id";
/// The header that names a revision of the protocol.
pub const VERSION: &str = "mcp-protocol-version";
/// The header that repeats the method, for proxies that do not read the body.
pub const METHOD: &str = "mcp-method";
/// The header that repeats the name of the tool.
pub const NAME: &str = "mcp-name";

/// Runs the tools with the means of the other routes.
struct ServerMeans(Arc<Server>);

impl Means for ServerMeans {
    fn commands(&self) -> Result<Arc<dyn Commands>, Problem> {
        Ok(self.0.engine()?.commands.clone())
    }

    fn run(&self, order: RunOrder, cancel: Cancel, sink: Arc<dyn Sink>) -> BoxFuture<'_, Result<Report, Problem>> {
        Box::pin(async move { runs::run_unattended(&self.0, order, &cancel, sink).await })
    }

    fn places(&self) -> (&Arc<Places>, &Arc<Places>) {
        (&self.0.answers, &self.0.runs)
    }
}

/// `POST /mcp`: answers a message or a batch.
///
/// # Errors
/// If the body cannot be read, or there is no such session.
pub async fn post(State(server): State<Arc<Server>>, request: Request) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    let bytes = body::read(&head.headers, body).await?;
    let client = queue::client(&head.headers, head.extensions.get::<Peer>());
    exchange(&server, &head.headers, client, &bytes).await
}

/// `DELETE /mcp`: ends a session and its calls.
///
/// # Errors
/// If there is no such session.
pub async fn delete(State(server): State<Arc<Server>>, headers: HeaderMap) -> Result<StatusCode, Problem> {
    let session = server.mcp.remove(session_name(&headers)?).ok_or_else(unknown_session)?;
    lock(&session).stop();
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the name of the session that a request belongs to.
fn session_name(headers: &HeaderMap) -> Result<&str, Problem> {
    header(headers, SESSION).ok_or_else(|| {
        Problem::bad_request("the request names no session")
            .detail("send `initialize` first, and then the Mcp-Session-Id of its answer with each request")
    })
}

fn unknown_session() -> Problem {
    Problem::not_found("there is no such session").detail("send `initialize` for a new one")
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Answers the body of a POST.
async fn exchange(
    server: &Arc<Server>,
    headers: &HeaderMap,
    client: String,
    bytes: &Bytes,
) -> Result<Response, Problem> {
    let bad = |answer: Value| Ok((StatusCode::BAD_REQUEST, Json(answer)).into_response());
    let value = match message::parse(bytes) {
        Ok(value) => value,
        Err(refusal) => return bad(refusal.answer()),
    };
    let id = value.get("id").filter(|id| message::is_id(id)).cloned().unwrap_or_default();
    if let Some(name) = headers.get(VERSION)
        && !name.to_str().is_ok_and(|name| version::known(name).is_some())
    {
        let requested = name.to_str().unwrap_or_default().into();
        return bad(message::failure(&id, &version::unsupported(&requested)));
    }
    let new_session = || Arc::new(Mutex::new(Session::new(server.parts.offer)));
    let params = value.get("params").and_then(Value::as_object);
    let is_handshake = value.get("method").and_then(Value::as_str) == Some("initialize");
    let stateless = !is_handshake && params.is_some_and(version::is_declared);
    let session = if is_handshake {
        new_session()
    } else if stateless {
        if let Some(why) = params.and_then(|params| header_mismatch(headers, &value, params)) {
            return bad(session::mismatch(&id, &why));
        }
        new_session()
    } else {
        server.mcp.find(session_name(headers)?).ok_or_else(unknown_session)?
    };
    let is_batch = value.is_array();
    let steps = lock(&session).take_value(value, bytes.len());
    let (mut direct_answer, mut calls) = (None, Vec::new());
    for step in steps {
        match step {
            Step::Send(answer) => direct_answer = Some(answer),
            Step::Start(start) => calls.push(Call::new(session.clone(), start)),
        }
    }
    if let Some(answer) = direct_answer {
        let status = if stateless { status(&answer) } else { StatusCode::OK };
        let mut response = (status, Json(answer)).into_response();
        let opens = is_handshake && lock(&session).is_open();
        if opens && let Ok(name) = HeaderValue::from_str(&server.mcp.insert(session)) {
            response.headers_mut().insert(SESSION, name);
        }
        return Ok(response);
    }
    if calls.is_empty() {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let ids: Vec<Value> = calls.iter().map(|call| call.start.id.clone()).collect();
    let wants_progress = calls.iter().any(|call| call.start.wants_progress);
    let tools = Tools { means: ServerMeans(server.clone()), client };
    // a stopped call has no answer, but an HTTP request needs one
    let stopped = move || {
        let why = rmcp::model::ErrorData::new(message::STOPPED, "the call was stopped", None);
        let mut all: Vec<Value> = ids.iter().map(|id| message::failure(id, &why)).collect();
        if is_batch { Value::Array(all) } else { all.pop().unwrap_or_default() }
    };
    if !(wants_progress && sse::is_wanted(headers)) {
        let answer = run_calls(server, &tools, calls, None).await;
        return Ok(Json(answer.unwrap_or_else(stopped)).into_response());
    }
    let (events, response) = sse::stream();
    let server = server.clone();
    tokio::spawn(async move {
        tokio::select! {
            answer = run_calls(&server, &tools, calls, Some(&events)) => {
                // fails only if the client has disconnected
                let _ = events.send("message", None, &answer.unwrap_or_else(stopped)).await;
            }
            () = events.closed() => {}
        }
    });
    Ok(response)
}

/// A call of a request. If the request is dropped, the call is stopped and removed from its session.
struct Call {
    session: Shared,
    start: Start,
    _stops: CancelOnDrop,
}

impl Call {
    fn new(session: Shared, start: Start) -> Self {
        Self { session, _stops: CancelOnDrop(start.cancel.clone()), start }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        lock(&self.session).forget(self.start.call);
    }
}

/// Runs all calls of a request concurrently; returns their answer, unless all of them were stopped.
async fn run_calls(
    server: &Arc<Server>,
    tools: &Tools<ServerMeans>,
    calls: Vec<Call>,
    events: Option<&sse::Events>,
) -> Option<Value> {
    let mut all: FuturesUnordered<_> = calls
        .into_iter()
        .map(|call| async move {
            let (session, number) = (call.session.clone(), call.start.call);
            let events = if call.start.wants_progress { events.cloned() } else { None };
            let stages: Stages = Arc::new(move |text: &str| {
                let note = events.as_ref().and_then(|events| Some((events, lock(&session).progress(number, text)?)));
                if let Some((events, note)) = note {
                    events.try_send("message", &note);
                }
            });
            let result = server.within_timeout(run_call(tools, call.start.clone(), stages)).await;
            let outcome = result.unwrap_or_else(|problem| to_outcome(Err(ToolError::from(problem))));
            lock(&call.session).finish(number, outcome)
        })
        .collect();
    let mut answer = None;
    while let Some(next) = all.next().await {
        answer = next.or(answer);
    }
    answer
}

/// Compares the headers of a request without a session with its message; returns an error text if one differs.
fn header_mismatch(headers: &HeaderMap, value: &Value, params: &Map<String, Value>) -> Option<String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let method = text(value.get("method"));
    let mut pairs = vec![
        (VERSION, text(params.get("_meta").and_then(|meta| meta.get(version::VERSION_KEY)))),
        (METHOD, method.clone()),
    ];
    if method.as_deref() == Some("tools/call") {
        pairs.push((NAME, text(params.get("name"))));
    }
    let other = pairs.into_iter().find(|(name, text)| text.is_some() && header(headers, name) != text.as_deref());
    other.map(|(name, _)| format!("the header {name} is not what the message says"))
}

/// Returns the HTTP status for an answer to a request without a session.
fn status(answer: &Value) -> StatusCode {
    match answer["error"]["code"].as_i64() {
        None => StatusCode::OK,
        Some(-32601) => StatusCode::NOT_FOUND,
        Some(_) => StatusCode::BAD_REQUEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tools::Offer;

    fn session() -> Shared {
        Arc::new(Mutex::new(Session::new(Offer { agent: false })))
    }

    #[test]
    fn a_call_whose_request_is_dropped_is_removed_and_stops() {
        let session = session();
        let take = |text: &str| lock(&session).take(text.as_bytes());
        take(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#);
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"check_command"}}"#;
        let Some(Step::Start(start)) = take(call).pop() else { panic!() };
        let cancel = start.cancel.clone();
        assert!(lock(&session).is_busy());
        drop(Call::new(session.clone(), start));
        assert!(cancel.is_cancelled() && !lock(&session).is_busy());
    }

    #[test]
    fn headers_must_match_the_message() {
        let message = serde_json::json!({
            "method": "tools/call",
            "params": {"name": "check_command", "_meta": {version::VERSION_KEY: "2026-07-28"}},
        });
        let check = |all: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in all {
                headers.insert(*name, value.parse().unwrap());
            }
            header_mismatch(&headers, &message, message["params"].as_object().unwrap())
        };
        let whole = [(VERSION, "2026-07-28"), (METHOD, "tools/call"), (NAME, "check_command")];
        assert_eq!(check(&whole), None);
        for left_out in 0..3 {
            let mut some = whole.to_vec();
            let (name, _) = some.remove(left_out);
            assert!(check(&some).unwrap().contains(name));
            some.push((name, "another"));
            assert!(check(&some).is_some(), "{name}");
        }
    }
}
