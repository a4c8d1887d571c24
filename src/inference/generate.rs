//! The one place that asks a model.

use caro_model::{Completion, Finish, Flow, Model, ModelError, Request};
use std::future::Future;
use std::sync::Arc;

/// Asks the model on a thread where it may block. It begins at once, also before the future is first polled; `on` is told
/// the text as it comes, on that thread. Needs a Tokio runtime.
///
/// # Errors
/// The model's own; a panic of the model is [`ModelError::Engine`].
pub fn generate(
    model: Arc<dyn Model>,
    request: Request,
    mut on: impl FnMut(&str) -> Flow + Send + 'static,
) -> impl Future<Output = Result<Completion, ModelError>> {
    asked(model, move |model| model.generate(&request, &mut on))
}

/// The same, ended where the text is `lost`: nothing will come of it any more, and it was cut off.
///
/// # Errors
/// As [`generate`].
pub fn generate_until(
    model: Arc<dyn Model>,
    request: Request,
    lost: fn(&str) -> bool,
    mut on: impl FnMut(&str) + Send + 'static,
) -> impl Future<Output = Result<Completion, ModelError>> {
    let mut said = String::new();
    let generation = generate(model, request, move |piece| {
        on(piece);
        said.push_str(piece);
        if lost(&said) { Flow::Stop } else { Flow::Continue }
    });
    async move {
        let mut completion = generation.await?;
        if lost(&completion.text) {
            completion.finish = Finish::Length;
        }
        Ok(completion)
    }
}

/// Asks the model several times, as [`Model::sample`] does.
///
/// # Errors
/// As [`generate`].
pub async fn sample(model: Arc<dyn Model>, request: Request, count: usize) -> Result<Vec<Completion>, ModelError> {
    asked(model, move |model| model.sample(&request, count)).await
}

/// Asks on a thread where it may block, at once.
fn asked<T: Send + 'static>(
    model: Arc<dyn Model>,
    ask: impl FnOnce(&dyn Model) -> Result<T, ModelError> + Send + 'static,
) -> impl Future<Output = Result<T, ModelError>> {
    let work = tokio::task::spawn_blocking(move || ask(&*model));
    async { work.await.map_err(|e| ModelError::Engine(e.to_string()))? }
}
