//! Sessions, tools, and tasks in the background: looked at, and sessions forgotten.

use super::{Problem, Server};
use axum::Json;
use axum::extract::{Path, Query, State};
use caro_agent::tool::{Provider, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Sessions and runs of tasks that are listed.
const LISTED: usize = 200;

/// `GET /sessions`.
pub async fn list(State(server): State<Arc<Server>>) -> Result<Json<Value>, Problem> {
    let sessions = server.engine()?.harness.events().sessions(LISTED)?;
    let all: Vec<Value> = sessions
        .iter()
        .map(|session| {
            let last = session.runs.last();
            json!({
                "session_id": session.id,
                "created": session.created,
                "updated": session.updated,
                "runs": session.runs.len(),
                "task": last.map(|run| &run.task),
                "status": last.map(|run| &run.status),
            })
        })
        .collect();
    Ok(Json(json!({"count": all.len(), "sessions": all})))
}

fn missing(name: &str) -> Problem {
    Problem::not_found(format!("there is no session `{name}`")).detail("GET /sessions lists them")
}

/// Fails if there is no session of exactly that name.
fn exists(server: &Server, name: &str) -> Result<(), Problem> {
    let engine = server.engine()?;
    let found = engine.harness.events().session(name).is_ok_and(|session| session.id == name);
    if found { Ok(()) } else { Err(missing(name)) }
}

/// `GET /sessions/{id}/history`: what was said in it, as the model is told it.
pub async fn history(State(server): State<Arc<Server>>, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    exists(&server, &name)?;
    let past = server.engine()?.harness.history(&name)?;
    let messages: Vec<Value> = past
        .exchanges
        .iter()
        .flat_map(|one| {
            let message = |role: &str, text: &str| json!({"role": role, "content": text, "run_id": one.run});
            [message("user", &one.asked), message("assistant", &one.answered)]
        })
        .collect();
    Ok(Json(json!({"session_id": name, "count": messages.len(), "summary": past.summary, "messages": messages})))
}

/// `DELETE /sessions/{id}`: forgets it, with its runs and files.
pub async fn delete(State(server): State<Arc<Server>>, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    exists(&server, &name)?;
    if server.live.works_in(&name) {
        return Err(Problem::conflict("a run of the session is under way").detail("wait for it, or leave its stream"));
    }
    let runs = server.engine()?.harness.clear(&name)?;
    Ok(Json(json!({"session_id": name, "deleted": true, "runs": runs.len()})))
}

/// `GET /tools`.
pub async fn tools(State(server): State<Arc<Server>>) -> Result<Json<Value>, Problem> {
    let specs = server.engine()?.harness.tools()?;
    let tools: Vec<Value> = specs.iter().map(tool).collect();
    Ok(Json(json!({"total": tools.len(), "tools": tools})))
}

fn tool(spec: &ToolSpec) -> Value {
    let kind = match &spec.provider {
        Provider::Builtin => "local",
        Provider::Workspace => "workspace",
        Provider::Mcp(_) => "mcp",
        Provider::Skill(_) => "skill",
        Provider::Subagent => "subagent",
    };
    json!({"name": spec.name, "description": spec.description, "inputSchema": spec.parameters, "type": kind})
}

/// `GET /background/tasks`.
pub async fn background_tasks(State(server): State<Arc<Server>>) -> Result<Json<Value>, Problem> {
    let tasks = server.engine()?.harness.events().tasks()?;
    Ok(Json(json!({"count": tasks.len(), "tasks": tasks})))
}

/// Of which task runs are wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfTask {
    /// Its name; of all without.
    #[serde(default)]
    task: Option<String>,
}

/// `GET /background/runs`.
pub async fn background_runs(
    State(server): State<Arc<Server>>,
    Query(wanted): Query<OfTask>,
) -> Result<Json<Value>, Problem> {
    let engine = server.engine()?;
    let store = engine.harness.events();
    let tasks = store.tasks()?;
    if let Some(name) = &wanted.task
        && !tasks.iter().any(|task| task.name == *name)
    {
        return Err(Problem::not_found(format!("there is no task `{name}`")).detail("GET /background/tasks lists them"));
    }
    let mut runs = Vec::new();
    for task in tasks.iter().filter(|task| wanted.task.as_ref().is_none_or(|name| *name == task.name)) {
        runs.extend(store.task_runs(&task.name, LISTED)?);
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.updated));
    runs.truncate(LISTED);
    Ok(Json(json!({"count": runs.len(), "runs": runs})))
}
