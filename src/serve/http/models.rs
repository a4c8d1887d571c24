//! The model that answers, as programs that speak OpenAI's protocol look it up.

use super::openai::check_model;
use super::{Engine, Problem, Server};
use axum::Json;
use axum::extract::{Path, State};
use caro_model::embed::EMBEDDING_MODEL;
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /v1/models`.
///
/// # Errors
/// While the model is not there.
pub async fn list(State(server): State<Arc<Server>>) -> Result<Json<Value>, Problem> {
    let engine = server.engine()?;
    let data: Vec<Value> = std::iter::once(entry(engine.model.id())).chain(vectors(&engine)).collect();
    Ok(Json(json!({ "object": "list", "data": data })))
}

/// `GET /v1/models/{id}`.
///
/// # Errors
/// While the model is not there; or if there is none of that name.
pub async fn one(State(server): State<Arc<Server>>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let engine = server.engine()?;
    if id == EMBEDDING_MODEL
        && let Some(entry) = vectors(&engine)
    {
        return Ok(Json(entry));
    }
    check_model(&engine, Some(&id))?;
    Ok(Json(entry(engine.model.id())))
}

/// The model that makes vectors, if it is here.
fn vectors(engine: &Engine) -> Option<Value> {
    engine.embedding.model().map(|model| entry(model.id()))
}

/// A model as that protocol describes one. When it was made is not known here.
fn entry(id: &str) -> Value {
    json!({ "id": id, "object": "model", "created": 0, "owned_by": "caro" })
}
