//! The events of a session: replayed from a cursor and then followed, listed, or summarized as a trace of steps. They
//! are always read from the store, each run from the last event sent, so that none is missing or sent twice.

use super::extract::{Path, Query};
use super::runs::{self, EVENT_POLL_INTERVAL};
use super::sse::{self, Disconnected, Events};
use super::{Engine, Problem, Server};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use caro_agent::event::{Event, Kind};
use caro_agent::harness::session_name;
use caro_agent::store::{Run, Session};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// The header that a browser sends when it reconnects to a stream.
const LAST_EVENT_ID: &str = "last-event-id";
/// Most events or steps listed by default.
const DEFAULT_LIMIT: usize = 200;
/// Most events or steps listed.
const MAX_LIMIT: usize = 2000;

/// The query of the routes that list the events or the steps of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Selects one run.
    #[serde(default)]
    run_id: Option<String>,
    /// Most events or steps; the latest are listed.
    #[serde(default)]
    limit: Option<usize>,
}

impl ListQuery {
    fn limit(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT)
    }
}

/// The query of the route that follows events.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowQuery {
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

/// Returns the runs of a session that a query selects.
fn selected_runs(engine: &Engine, name: &str, query: &ListQuery) -> Result<Vec<Run>, Problem> {
    let mut runs = find_session(engine, name)?.runs;
    if let Some(wanted) = &query.run_id {
        runs.retain(|run| run.id == *wanted);
        if runs.is_empty() {
            return Err(Problem::not_found(format!("the session has no run `{wanted}`")));
        }
    }
    Ok(runs)
}

/// Returns the latest events of a session or of one of its runs, up to the limit, and their number without the limit.
fn read_events(engine: &Engine, name: &str, query: &ListQuery) -> Result<(Vec<Event>, usize), Problem> {
    let most = query.limit();
    let (mut events, mut count) = (Vec::new(), 0);
    // keeps the latest runs, until there are enough events
    for run in selected_runs(engine, name, query)?.iter().rev() {
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
    Query(query): Query<ListQuery>,
) -> Result<Json<Value>, Problem> {
    let (events, total) = read_events(&*server.engine()?, &name, &query)?;
    Ok(Json(json!({"session_id": name, "count": events.len(), "total": total, "events": events})))
}

/// `GET /events/{session}/trace`: summarizes a session, and lists its latest steps.
pub async fn trace(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Value>, Problem> {
    let engine = server.engine()?;
    let mut trace = Trace::new(query.limit());
    for run in selected_runs(&engine, &name, &query)? {
        trace.add(&engine.harness.events().events(&run.id, 0)?);
    }
    Ok(Json(trace.document(&name)))
}

/// A summary of all events of a session, and its latest steps.
#[derive(Debug, Default)]
struct Trace {
    events: usize,
    runs: usize,
    model_calls: usize,
    tool_calls: usize,
    errors: usize,
    request_tokens: u64,
    response_tokens: u64,
    duration_ms: f64,
    /// The number of all steps.
    total: usize,
    /// The latest steps, at most `limit`.
    steps: VecDeque<Value>,
    limit: usize,
}

impl Trace {
    fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Adds the events of the next run, grouped to steps, each with the model's decision and its calls.
    fn add(&mut self, events: &[Event]) {
        let of = |kind: Kind| events.iter().filter(|event| event.event_type == kind).count();
        self.events += events.len();
        self.runs += of(Kind::AgentStart);
        self.model_calls += of(Kind::ModelCall);
        self.tool_calls += of(Kind::ToolCall);
        self.errors += of(Kind::ToolError) + of(Kind::ModelError) + of(Kind::RuntimeError);
        for tokens in events.iter().filter_map(|event| event.token_usage.as_ref()) {
            self.request_tokens += tokens.request;
            self.response_tokens += tokens.response;
        }
        let ends = events.iter().filter(|event| event.event_type == Kind::AgentEnd);
        self.duration_ms += ends.filter_map(|event| event.duration_ms).sum::<f64>();
        let mut steps: BTreeMap<(&str, u64), Vec<&Event>> = BTreeMap::new();
        for event in events {
            if let Some(step) = step(&event.span_id) {
                steps.entry((&event.trace_id, step)).or_default().push(event);
            }
        }
        self.total += steps.len();
        let too_many = steps.len().saturating_sub(self.limit);
        self.steps.extend(steps.iter().skip(too_many).map(|((run, step), events)| step_document(run, *step, events)));
        self.steps.drain(..self.steps.len().saturating_sub(self.limit));
    }

    fn document(self, name: &str) -> Value {
        json!({
            "session_id": name,
            "summary": {
                "events": self.events,
                "runs": self.runs,
                "model_calls": self.model_calls,
                "tool_calls": self.tool_calls,
                "errors": self.errors,
                "request_tokens": self.request_tokens,
                "response_tokens": self.response_tokens,
                "duration_ms": self.duration_ms,
            },
            "count": self.steps.len(),
            "total": self.total,
            "steps": self.steps,
        })
    }
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
    Query(query): Query<FollowQuery>,
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
    async fn send_new(&mut self, engine: &Arc<Engine>, name: &str, events: &Events) -> Result<(), Disconnected> {
        let (reader, wanted) = (engine.clone(), name.to_owned());
        let found = tokio::task::spawn_blocking(move || find_session(&reader, &wanted)).await;
        let Ok(Ok(session)) = found else { return Ok(()) };
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
    fn a_trace_summarizes_all_events_and_lists_the_latest_steps() {
        let event = |run: &str, span: &str, kind: &str| -> Event {
            let document = json!({"event_id": "e", "trace_id": run, "span_id": span, "sequence_number": 1, "timestamp": 0,
                                  "event_type": kind, "actor": "runtime", "duration_ms": 2.0,
                                  "token_usage": {"request": 3, "cached": 0, "response": 1}});
            serde_json::from_value(document).unwrap()
        };
        let mut trace = Trace::new(3);
        for run in ["b", "a"] {
            let mut events = vec![event(run, "", "agent_start")];
            for step in 1..=1000 {
                events.push(event(run, &format!("s{step}"), "model_call"));
                events.push(event(run, &format!("s{step}c1"), "tool_call"));
            }
            events.push(event(run, "", "agent_end"));
            trace.add(&events);
        }
        let document = trace.document("s");
        let summary = &document["summary"];
        assert_eq!((&summary["runs"], &summary["events"]), (&json!(2), &json!(4004)), "{summary:#}");
        assert_eq!(
            (&summary["tool_calls"], &summary["request_tokens"]),
            (&json!(2000), &json!(3 * 4004)),
            "{summary:#}"
        );
        assert_eq!(summary["duration_ms"], 4.0, "{summary:#}");
        assert_eq!((&document["total"], &document["count"]), (&json!(2000), &json!(3)));
        let steps: Vec<_> =
            document["steps"].as_array().unwrap().iter().map(|one| (&one["run_id"], &one["step"])).collect();
        assert_eq!(steps, [(&json!("a"), &json!(998)), (&json!("a"), &json!(999)), (&json!("a"), &json!(1000))]);
    }

    #[test]
    fn a_span_names_its_step() {
        assert_eq!([step("s3"), step("s12c4"), step(""), step("x3"), step("s")], [Some(3), Some(12), None, None, None]);
    }
}
