//! The model that answers, as programs that speak OpenAI's protocol look it up.

use super::{Problem, Server};
use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /v1/models`.
///
/// # Errors
/// While the model is not there.
pub async fn list(State(server): State<Arc<Server>>) -> Result<Json<Value>, Problem> {
    let engine = server.engine()?;
    Ok(Json(json!({ "object": "list", "data": [entry(engine.model.id())] })))
}

/// `GET /v1/models/{id}`.
///
/// # Errors
/// While the model is not there; or if it has another name.
pub async fn one(State(server): State<Arc<Server>>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let engine = server.engine()?;
    let own = engine.model.id();
    if id != own {
        return Err(Problem::not_found("there is no such model").detail(format!("this server has {own}")));
    }
    Ok(Json(entry(own)))
}

/// A model as that protocol describes one. When it was made is not known here.
fn entry(id: &str) -> Value {
    json!({ "id": id, "object": "model", "created": 0, "owned_by": "caro" })
}
