//! Admits a request for an answer or a run: reads its body, and waits for its turn.

use super::body::{self, GuardedBody};
use super::peer::Peer;
use super::queue::{Places, client};
use super::{Problem, Server};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Reads the body, waits for a place in the queue, and holds it until the response has ended.
pub async fn enter(
    State((server, places)): State<(Arc<Server>, Arc<Places>)>,
    request: Request,
    next: Next,
) -> Response {
    // a request that cannot be answered does not wait
    if let Err(problem) = server.engine() {
        return problem.into_response();
    }
    let (head, body) = request.into_parts();
    let client = client(&head.headers, head.extensions.get::<Peer>());
    let entered = async {
        let body = body::read(&head.headers, body).await?;
        Ok::<_, Problem>((body, places.take(&client).await?))
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
