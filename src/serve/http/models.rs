//! The list of models in the form of OpenAI's protocol: the loaded model, and the embedding model if it is on this
//! machine.

use super::extract::Path;
use super::openai::check_model;
use super::{Engine, Problem, Server};
use axum::Json;
use axum::extract::State;
use caro_model::embed::EMBEDDING_MODEL;
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /v1/models`: lists the models.
///
/// # Errors
/// If the model is not loaded.
pub async fn list(State(server): State<Arc<Server>>) -> Result<Json<Value>, Problem> {
    let engine = server.engine()?;
    let data: Vec<Value> = std::iter::once(entry(engine.model.id())).chain(embedding_entry(&engine)).collect();
    Ok(Json(json!({ "object": "list", "data": data })))
}

/// `GET /v1/models/{id}`: describes one model.
///
/// # Errors
/// If the model is not loaded, or there is none with this name.
pub async fn one(State(server): State<Arc<Server>>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let engine = server.engine()?;
    if id == EMBEDDING_MODEL
        && let Some(entry) = embedding_entry(&engine)
    {
        return Ok(Json(entry));
    }
    check_model(&engine, Some(&id))?;
    Ok(Json(entry(engine.model.id())))
}

/// The entry of the embedding model, if it is on this machine.
fn embedding_entry(engine: &Engine) -> Option<Value> {
    engine.embedding.model().map(|model| entry(model.id()))
}

/// Describes a model in OpenAI's form. The time of its creation is unknown.
fn entry(id: &str) -> Value {
    json!({ "id": id, "object": "model", "created": 0, "owned_by": "caro" })
}
