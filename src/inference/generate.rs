//! The only place that calls a model.

use caro_model::{Completion, Finish, Flow, Model, ModelError, Request};
use std::future::Future;
use std::sync::Arc;

/// Calls the model on a blocking thread. It starts at once, even before the future is polled; `on` gets the text as it
/// is generated, on that thread. Needs a Tokio runtime.
///
/// # Errors
/// Errors of the model; a panic of the model is [`ModelError::Engine`].
pub fn generate(
    model: Arc<dyn Model>,
    request: Request,
    mut on: impl FnMut(&str) -> Flow + Send + 'static,
) -> impl Future<Output = Result<Completion, ModelError>> {
    spawn(model, move |model| model.generate(&request, &mut on))
}

/// Does the same as [`generate`], but stops once the text is `lost`, which means that it cannot become useful any
/// more; such a completion counts as cut off.
///
/// # Errors
/// As [`generate`].
pub fn generate_until(
    model: Arc<dyn Model>,
    request: Request,
    lost: fn(&str) -> bool,
    mut on: impl FnMut(&str) + Send + 'static,
) -> impl Future<Output = Result<Completion, ModelError>> {
    let mut text = String::new();
    let generation = generate(model, request, move |piece| {
        on(piece);
        text.push_str(piece);
        if lost(&text) { Flow::Stop } else { Flow::Continue }
    });
    async move {
        let mut completion = generation.await?;
        if lost(&completion.text) {
            completion.finish = Finish::Length;
        }
        Ok(completion)
    }
}

/// Samples several completions with [`Model::sample`].
///
/// # Errors
/// As [`generate`].
pub async fn sample(model: Arc<dyn Model>, request: Request, count: usize) -> Result<Vec<Completion>, ModelError> {
    spawn(model, move |model| model.sample(&request, count)).await
}

/// Starts a call of the model on a blocking thread at once.
fn spawn<T: Send + 'static>(
    model: Arc<dyn Model>,
    call: impl FnOnce(&dyn Model) -> Result<T, ModelError> + Send + 'static,
) -> impl Future<Output = Result<T, ModelError>> {
    let work = tokio::task::spawn_blocking(move || call(&*model));
    async { work.await.map_err(|e| ModelError::Engine(e.to_string()))? }
}
