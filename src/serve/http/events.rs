//! The events of a session: replayed from a cursor and then followed, listed, or summarized as a trace of steps. They
//! are always read from the store, each run from the last event sent, so that none is missing or sent twice.

use super::runs::{self, EVENT_POLL_INTERVAL};
use super::sse::{self, Disconnected, Events};
use super::{Engine, Problem, Server};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use caro_agent::event::{Event, Kind};
use caro_agent::harness::session_name;
use caro_agent::store::{Run, Session};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The header that a browser sends when it reconnects to a stream.
const LAST_EVENT_ID: &str = "last-event-id";
/// Most events listed by default.
const DEFAULT_LIMIT: usize = 200;
/// Most events listed.
const MAX_LIMIT: usize = 2000;

/// The query of the routes for events.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Selects the events of one run.
    #[serde(default)]
    run_id: Option<String>,
    /// Most events; the latest are listed.
    #[serde(default)]
    limit: Option<usize>,
    /// The cursor to resume from, for clients that cannot send a header.
    #[serde(default)]
    after: Option<String>,
}

/// Parses a cursor: a run id, and the number of the last event received of it.
fn cursor(text: &str) -> Option<(&str, u64)> {
    let (run, number) = text.rsplit_once('-')?;
    Some((run, number.parse().ok()?)).filter(|(run, _)| !run.is_empty())
}

/// Returns the session with exactly this name.
fn find_session(engine: &Engine, name: &str) -> Result<Session, Problem> {
    let missing = || Problem::not_found(format!("there is no session `{name}`")).detail("GET /sessions lists them");
    if name.starts_with("run_") {
        return Err(missing());
    }
    engine.harness.events().session(name).ok().filter(|session| session.id == name).ok_or_else(missing)
}

/// Returns the latest events of a session or of one of its runs, up to the limit, and their number without the limit.
fn read_events(engine: &Engine, name: &str, query: &EventQuery) -> Result<(Vec<Event>, usize), Problem> {
    let session = find_session(engine, name)?;
    if let Some(run) = &query.run_id
        && !session.runs.iter().any(|one| one.id == *run)
    {
        return Err(Problem::not_found(format!("the session has no run `{run}`")));
    }
    let most = query.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
    let (mut events, mut count) = (Vec::new(), 0);
    // reads the latest runs first, until there are enough events
    for run in session.runs.iter().rev().filter(|run| query.run_id.as_ref().is_none_or(|id| *id == run.id)) {
        let mut of_run = engine.harness.events().events(&run.id, 0)?;
        count += of_run.len();
        if events.len() < most {
            of_run.append(&mut events);
            events = of_run;
        }
    }
    events.drain(..events.len().saturating_sub(most));
    Ok((events, count))
}

/// `GET /events/{session}/list`: lists the events of a session.
pub async fn list(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<EventQuery>,
) -> Result<Json<Value>, Problem> {
    let (events, total) = read_events(&*server.engine()?, &name, &query)?;
    Ok(Json(json!({"session_id": name, "count": events.len(), "total": total, "events": events})))
}

/// `GET /events/{session}/trace`: summarizes a session as steps.
pub async fn trace(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<EventQuery>,
) -> Result<Json<Value>, Problem> {
    let query = EventQuery { limit: Some(MAX_LIMIT), ..query };
    let (events, _) = read_events(&*server.engine()?, &name, &query)?;
    Ok(Json(trace_document(&name, &events)))
}

/// Groups events to steps, each with the model's decision and its calls.
fn trace_document(name: &str, events: &[Event]) -> Value {
    let of = |kind: Kind| events.iter().filter(|event| event.event_type == kind).count();
    let tokens = |of: fn(&caro_agent::event::Tokens) -> u64| -> u64 {
        events.iter().filter_map(|event| event.token_usage.as_ref()).map(of).sum()
    };
    let time: f64 = events.iter().filter(|e| e.event_type == Kind::AgentEnd).filter_map(|e| e.duration_ms).sum();
    let mut steps: BTreeMap<(String, u64), Vec<&Event>> = BTreeMap::new();
    for event in events {
        if let Some(step) = step(&event.span_id) {
            steps.entry((event.trace_id.clone(), step)).or_default().push(event);
        }
    }
    let steps: Vec<Value> = steps.iter().map(|((run, step), events)| step_document(run, *step, events)).collect();
    json!({
        "session_id": name,
        "summary": {
            "events": events.len(),
            "runs": of(Kind::AgentStart),
            "model_calls": of(Kind::ModelCall),
            "tool_calls": of(Kind::ToolCall),
            "errors": of(Kind::ToolError) + of(Kind::ModelError) + of(Kind::RuntimeError),
            "request_tokens": tokens(|t| t.request),
            "response_tokens": tokens(|t| t.response),
            "duration_ms": time,
        },
        "steps": steps,
    })
}

/// Returns the step that a span belongs to: 3 for `s3` and `s3c1`.
fn step(span: &str) -> Option<u64> {
    let number = span.strip_prefix('s')?;
    number.split('c').next()?.parse().ok()
}

fn step_document(run: &str, step: u64, events: &[&Event]) -> Value {
    let mut calls: Vec<&str> = Vec::new();
    for event in events.iter().filter(|event| event.span_id.contains('c')) {
        if !calls.contains(&event.span_id.as_str()) {
            calls.push(&event.span_id);
        }
    }
    let call = |span: &str| {
        let first = |kinds: &[Kind]| {
            events.iter().find(|event| event.span_id == span && kinds.contains(&event.event_type)).copied()
        };
        let (called, ended) = (first(&[Kind::ToolCall]), first(&[Kind::ToolResult, Kind::ToolError]));
        json!({
            "call_id": span,
            "input": called.map(|event| &event.input),
            "outcome": ended.and_then(|event| event.metadata.get("outcome")),
            "error": ended.and_then(|event| event.error.as_ref()),
            "duration_ms": ended.and_then(|event| event.duration_ms),
        })
    };
    let response = events.iter().find(|event| event.event_type == Kind::ModelResponse);
    json!({
        "run_id": run,
        "step": step,
        "decision": response.map(|event| &event.output),
        "duration_ms": response.and_then(|event| event.duration_ms),
        "calls": calls.into_iter().map(call).collect::<Vec<_>>(),
    })
}

/// `GET /events/{session}`: streams the events since the cursor, and then new ones. Waits for a session that does not
/// exist yet.
pub async fn follow(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<EventQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let engine = server.engine()?;
    session_name(Some(&name)).map_err(Problem::from)?;
    let header = headers.get(LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    let last = header.or(query.after.as_deref()).filter(|text| !text.is_empty());
    let mut sent = SentEvents::default();
    if let Some(text) = last {
        let invalid = || {
            Problem::unprocessable(format!("`{text}` is not a cursor of the session")).detail("a cursor is RUN-NUMBER")
        };
        let (run, number) = cursor(text).ok_or_else(invalid)?;
        let session = find_session(&engine, &name)?;
        let at = session.runs.iter().position(|one| one.id == run).ok_or_else(invalid)?;
        for before in session.runs.iter().take(at) {
            let events = engine.harness.events().events(&before.id, 0)?;
            sent.of_run.insert(before.id.clone(), events.last().map_or(0, |event| event.sequence_number));
        }
        sent.of_run.insert(run.to_owned(), number);
    }
    let (events, response) = sse::stream();
    let mut changes = server.live.subscribe();
    // a client that only follows must not delay the end of the server
    drop(engine);
    tokio::spawn(async move {
        let state = server.clone();
        let following = async {
            loop {
                // events from here on end the wait below
                changes.mark_unchanged();
                let Ok(engine) = server.engine() else { return Ok(()) };
                sent.send_new(&engine, &name, &events).await?;
                drop(engine);
                // events of other processes are found only by polling
                let _ = tokio::time::timeout(EVENT_POLL_INTERVAL, changes.changed()).await;
            }
        };
        tokio::select! {
            // the engine was removed, or the client has disconnected
            Ok::<(), Disconnected>(()) | Err(Disconnected) = following => {}
            () = events.closed() => {}
            () = state.wait_for_phase(|phase| !phase.admits()) => {}
        }
    });
    Ok(response)
}

/// The last event sent of each run of a session.
#[derive(Default)]
struct SentEvents {
    of_run: HashMap<String, u64>,
    /// Ended runs whose events were all sent, with the time of their latest change.
    ended: HashMap<String, u64>,
}

impl SentEvents {
    /// Sends the new events of a session.
    async fn send_new(&mut self, engine: &Engine, name: &str, events: &Events) -> Result<(), Disconnected> {
        let Ok(session) = find_session(engine, name) else { return Ok(()) };
        for Run { id, updated, status, .. } in &session.runs {
            if self.ended.get(id) == Some(updated) {
                continue;
            }
            let seen = self.of_run.get(id).copied().unwrap_or(0);
            let last = runs::send_new_events(engine, id, seen, events).await?;
            self.of_run.insert(id.clone(), last);
            // a run that had ended before its events were read gets no more of them, unless it is resumed
            if status != "running" {
                self.ended.insert(id.clone(), *updated);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_run_and_a_number() {
        assert_eq!(cursor("run_20261121_030405_1a2b-17"), Some(("run_20261121_030405_1a2b", 17)));
        assert_eq!(cursor("a-b-3"), Some(("a-b", 3)));
        for wrong in ["", "17", "-17", "run_1", "run_1-", "run_1-x", "run_1--"] {
            assert_eq!(cursor(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_span_names_its_step() {
        assert_eq!([step("s3"), step("s12c4"), step(""), step("x3"), step("s")], [Some(3), Some(12), None, None, None]);
    }
}
