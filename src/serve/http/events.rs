//! The events of a session: replayed from a cursor and then followed, listed, or as a trace of steps. They are read from the
//! store and nowhere else, each run from where it was left: none is missing and none comes twice.

use super::runs::{self, POLL};
use super::sse::{self, Events, Gone};
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

/// The header that a browser sends when it comes back to a stream.
const LAST: &str = "last-event-id";
/// Events that are listed where nothing is said, and at most.
const LISTED: usize = 200;
const MOST_LISTED: usize = 2000;

/// Which events are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Of that run alone.
    #[serde(default)]
    run_id: Option<String>,
    /// The latest ones, at most.
    #[serde(default)]
    limit: Option<usize>,
    /// The cursor to go on from, for who can send no header.
    #[serde(default)]
    after: Option<String>,
}

/// A cursor: a run, and the number of its last event that was seen.
fn cursor(text: &str) -> Option<(&str, u64)> {
    let (run, number) = text.rsplit_once('-')?;
    Some((run, number.parse().ok()?)).filter(|(run, _)| !run.is_empty())
}

/// The session of exactly that name.
fn found(engine: &Engine, name: &str) -> Result<Session, Problem> {
    let missing = || Problem::not_found(format!("there is no session `{name}`")).detail("GET /sessions lists them");
    if name.starts_with("run_") {
        return Err(missing());
    }
    engine.harness.events().session(name).ok().filter(|session| session.id == name).ok_or_else(missing)
}

/// The events of a session, all of them or those of one run, with the number of events there are in all.
fn listed(engine: &Engine, name: &str, wanted: &Wanted) -> Result<(Vec<Event>, usize), Problem> {
    let session = found(engine, name)?;
    if let Some(run) = &wanted.run_id
        && !session.runs.iter().any(|one| one.id == *run)
    {
        return Err(Problem::not_found(format!("the session has no run `{run}`")));
    }
    let most = wanted.limit.unwrap_or(LISTED).min(MOST_LISTED);
    let (mut events, mut count) = (Vec::new(), 0);
    // the latest first, until there are enough
    for run in session.runs.iter().rev().filter(|run| wanted.run_id.as_ref().is_none_or(|id| *id == run.id)) {
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

/// `GET /events/{session}/list`.
pub async fn list(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Value>, Problem> {
    let (events, total) = listed(&*server.engine()?, &name, &wanted)?;
    Ok(Json(json!({"session_id": name, "count": events.len(), "total": total, "events": events})))
}

/// `GET /events/{session}/trace`.
pub async fn trace(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Value>, Problem> {
    let wanted = Wanted { limit: Some(MOST_LISTED), ..wanted };
    let (events, _) = listed(&*server.engine()?, &name, &wanted)?;
    Ok(Json(traced(&name, &events)))
}

/// Steps out of events: each with what the model decided, and its calls.
fn traced(name: &str, events: &[Event]) -> Value {
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
    let steps: Vec<Value> = steps.iter().map(|((run, step), events)| one_step(run, *step, events)).collect();
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

/// The step that a span belongs to: 3 for `s3` and `s3c1`.
fn step(span: &str) -> Option<u64> {
    let number = span.strip_prefix('s')?;
    number.split('c').next()?.parse().ok()
}

fn one_step(run: &str, step: u64, events: &[&Event]) -> Value {
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
    let said = events.iter().find(|event| event.event_type == Kind::ModelResponse);
    json!({
        "run_id": run,
        "step": step,
        "decision": said.map(|event| &event.output),
        "duration_ms": said.and_then(|event| event.duration_ms),
        "calls": calls.into_iter().map(call).collect::<Vec<_>>(),
    })
}

/// `GET /events/{session}`: what happened since the cursor, and then what happens. A session that is not there yet is waited
/// for.
pub async fn follow(
    State(server): State<Arc<Server>>,
    Path(name): Path<String>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let engine = server.engine()?;
    session_name(Some(&name)).map_err(Problem::from)?;
    let header = headers.get(LAST).and_then(|value| value.to_str().ok());
    let last = header.or(wanted.after.as_deref()).filter(|text| !text.is_empty());
    let mut seen = Seen::default();
    if let Some(text) = last {
        let wrong = || Problem::unfit(format!("`{text}` is no cursor of the session")).detail("a cursor is RUN-NUMBER");
        let (run, number) = cursor(text).ok_or_else(wrong)?;
        let session = found(&engine, &name)?;
        let at = session.runs.iter().position(|one| one.id == run).ok_or_else(wrong)?;
        for before in session.runs.iter().take(at) {
            let events = engine.harness.events().events(&before.id, 0)?;
            seen.of_run.insert(before.id.clone(), events.last().map_or(0, |event| event.sequence_number));
        }
        seen.of_run.insert(run.to_owned(), number);
    }
    let (events, response) = sse::stream();
    let mut bell = server.live.bell();
    // the server is not kept from ending by who only looks on
    drop(engine);
    tokio::spawn(async move {
        let ends = server.clone();
        let going = async {
            loop {
                // a bell that rings from here on is heard below
                bell.mark_unchanged();
                let Ok(engine) = server.engine() else { return Ok(()) };
                seen.pass_on(&engine, &name, &events).await?;
                drop(engine);
                // another process rings no bell
                let _ = tokio::time::timeout(POLL, bell.changed()).await;
            }
        };
        tokio::select! {
            // how it ends is the reader's business
            Ok::<(), Gone>(()) | Err(Gone) = going => {}
            () = events.closed() => {}
            () = ends.until(|phase| !phase.admits()) => {}
        }
    });
    Ok(response)
}

/// The last event that was seen of each run of a session.
#[derive(Default)]
struct Seen {
    of_run: HashMap<String, u64>,
    /// Runs that are over and seen to their end, with the time of their latest change.
    over: HashMap<String, u64>,
}

impl Seen {
    /// Sends what is new.
    async fn pass_on(&mut self, engine: &Engine, name: &str, events: &Events) -> Result<(), Gone> {
        let Ok(session) = found(engine, name) else { return Ok(()) };
        for Run { id, updated, status, .. } in &session.runs {
            if self.over.get(id) == Some(updated) {
                continue;
            }
            let seen = self.of_run.get(id).copied().unwrap_or(0);
            let last = runs::pass_on(engine, id, seen, events).await?;
            self.of_run.insert(id.clone(), last);
            // what was over before its events were read has no more of them, until it is gone on with
            if status != "running" {
                self.over.insert(id.clone(), *updated);
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
