//! Runs work that blocks, such as all that uses the store: a process that writes to it makes the others wait. On a
//! thread of the runtime it would hold up every other request.

use super::Problem;
use axum::response::{IntoResponse, Response};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

/// Spawns a future on a thread where it may block. It goes on if the handle is dropped.
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let runtime = Handle::current();
    spawn_blocking(move || runtime.block_on(future))
}

/// Awaits the response of a handler on such a thread.
pub async fn respond(handler: impl Future<Output = Response> + Send + 'static) -> Response {
    spawn(handler).await.unwrap_or_else(|error| Problem::internal(format!("the route broke: {error}")).into_response())
}
