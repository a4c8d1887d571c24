//! The routes that list sessions, tools and background tasks, and the one that deletes a session.

use super::extract::{Path, Query};
use super::{Problem, Server};
use axum::Json;
use axum::extract::State;
use caro_agent::chat::Exchange;
use caro_agent::tool::{Provider, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Most sessions, or runs of background tasks, listed.
const MAX_LISTED: usize = 200;

/// `GET /sessions`: lists the sessions.
pub async fn list(State(server): State<Arc<Server>>) -> Result<Json<Value>, Problem> {
    let sessions = server.engine()?.harness.events().sessions(MAX_LISTED)?;
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

fn no_session(name: &str) -> Problem {
    Problem::not_found(format!("there is no session `{name}`")).detail("GET /sessions lists them")
}

/// Fails if there is no session with exactly this name.
fn check_exists(server: &Server, name: &str) -> Result<(), Problem> {
    let engine = server.engine()?;
    let exists = engine.harness.events().session(name).is_ok_and(|session| session.id == name);
    if exists { Ok(()) } else { Err(no_session(name)) }
}

/// `GET /sessions/{id}/history`: the messages of a session as the model's prompt has them.
pub async fn history(State(server): State<Arc<Server>>, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    check_exists(&server, &name)?;
    let past = server.engine()?.harness.history(&name)?;
    let messages: Vec<Value> = past.exchanges.iter().flat_map(messages).collect();
    Ok(Json(json!({"session_id": name, "count": messages.len(), "summary": past.summary, "messages": messages})))
}

/// Returns the messages of an exchange. One without an answer is the user's alone: its run failed.
fn messages(one: &Exchange) -> impl Iterator<Item = Value> + use<> {
    let message = |role: &str, text: &str| json!({"role": role, "content": text, "run_id": one.run});
    let answer = if one.answered.is_empty() { None } else { Some(message("assistant", &one.answered)) };
    std::iter::once(message("user", &one.asked)).chain(answer)
}

/// `DELETE /sessions/{id}`: deletes a session with its runs and files.
pub async fn delete(State(server): State<Arc<Server>>, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    check_exists(&server, &name)?;
    let engine = server.engine()?;
    // also a run of a background task
    let Some(_turn) = engine.harness.try_enter(&name) else {
        return Err(Problem::conflict("a run of the session is under way").detail("wait for it, or leave its stream"));
    };
    let runs = engine.harness.clear(&name)?;
    Ok(Json(json!({"session_id": name, "deleted": true, "runs": runs.len()})))
}

/// `GET /tools`: lists the tools of runs.
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

/// `GET /background/tasks`: lists the background tasks.
pub async fn background_tasks(State(server): State<Arc<Server>>) -> Result<Json<Value>, Problem> {
    let tasks = server.engine()?.harness.events().tasks()?;
    Ok(Json(json!({"count": tasks.len(), "tasks": tasks})))
}

/// The query of `GET /background/runs`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskQuery {
    /// The name of the task; by default, runs of all tasks are listed.
    #[serde(default)]
    task: Option<String>,
}

/// `GET /background/runs`: lists the runs of background tasks.
pub async fn background_runs(
    State(server): State<Arc<Server>>,
    Query(wanted): Query<TaskQuery>,
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
        runs.extend(store.task_runs(&task.name, MAX_LISTED)?);
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.updated));
    runs.truncate(MAX_LISTED);
    Ok(Json(json!({"count": runs.len(), "runs": runs})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_without_an_answer_has_no_message_of_the_assistant() {
        for (answered, expected) in [("There are 2.", vec!["user", "assistant"]), ("", vec!["user"])] {
            let one = Exchange { run: "run_1".into(), asked: "count them".into(), answered: answered.into() };
            let roles: Vec<String> = messages(&one).map(|m| m["role"].as_str().unwrap().to_owned()).collect();
            assert_eq!(roles, expected);
        }
    }
}
