//! Admits a request for an answer or a run: reads its body, and waits for its turn.

use super::body::{self, GuardedBody};
use super::peer::Peer;
use super::queue::client;
use super::route::Load;
use super::{Problem, Server};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;

/// The session that an order for a run names; the other fields are read by the route.
#[derive(Debug, Default, Deserialize)]
struct Named {
    #[serde(default)]
    session_id: Option<String>,
}

/// Reads the body, waits for a place in the queue, and holds it until the response has ended.
pub async fn enter(State((server, load)): State<(Arc<Server>, Load)>, request: Request, next: Next) -> Response {
    // a request that cannot be answered does not wait
    if let Err(problem) = server.engine() {
        return problem.into_response();
    }
    let (head, body) = request.into_parts();
    let client = client(&head.headers, head.extensions.get::<Peer>());
    let entered = async {
        let body = body::read(&head.headers, body).await?;
        let place = if load == Load::Run {
            // the route reports a body that cannot be read
            let named: Named = serde_json::from_slice(&body).unwrap_or_default();
            server.runs.take(&client, named.session_id.as_deref()).await?
        } else {
            server.answers.take(&client, None).await?
        };
        Ok::<_, Problem>((body, place))
    };
    match entered.await {
        Ok((body, place)) => {
            let response = next.run(Request::from_parts(head, Body::from(body))).await;
            let (head, body) = response.into_parts();
            Response::from_parts(head, GuardedBody::wrap(body, place))
        }
        Err(problem) => problem.into_response(),
    }
}
