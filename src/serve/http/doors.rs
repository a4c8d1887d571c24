//! Routers of other protocols behind the guards of this one, and what is said where there is no route.

use super::{Problem, Server};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tower::ServiceExt;

/// Hands a request to the routers of other protocols.
pub async fn pass(State(server): State<Arc<Server>>, request: Request) -> Response {
    let doors = match server.engine() {
        Ok(engine) => engine.doors.clone(),
        Err(problem) => return problem.into_response(),
    };
    match doors.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// There is no such route.
pub async fn nothing() -> Problem {
    Problem::not_found("there is no such route").detail("GET /openapi.json lists what there is")
}

/// There is one, of another method.
pub async fn wrong_method() -> Problem {
    Problem::method("this route has another method").detail("GET /openapi.json lists what there is")
}
