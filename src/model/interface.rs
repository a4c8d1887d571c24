//! The interface of every model.

use super::adapter::AdapterInfo;
use super::completion::{Completion, Flow};
use super::error::ModelError;
use super::request::Request;

/// The limits of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of prompt and completion together.
    pub context: usize,
}

/// A guess at the tokens in `text` where no tokenizer is here: one for every four bytes begun, which is on the safe side for
/// English.
pub fn estimated(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// A language model. One value owns the weights; calls take turns.
pub trait Model: Send + Sync {
    /// Its id, as `--json` shows it.
    fn id(&self) -> &str;

    /// Its limits.
    fn limits(&self) -> Limits;

    /// True if what it is told stays on this machine.
    fn is_local(&self) -> bool {
        true
    }

    /// The adapter that is applied to prompts that ask for it ([`Prompt::adapted`](crate::Prompt::adapted)); without one
    /// they are answered by the model as it is.
    fn adapter(&self) -> Option<&AdapterInfo> {
        None
    }

    /// How many calls of [`Model::generate`] are computed together; one where they take turns.
    fn concurrency(&self) -> usize {
        1
    }

    /// Tokens in `text`, by the model's own tokenizer where it has one here.
    fn count(&self, text: &str) -> usize;

    /// Continues the prompt. `on` receives the text as it comes, in whole characters.
    ///
    /// # Errors
    /// See [`ModelError`]. A pulled [`Cancel`](crate::Cancel) is no error: it ends with
    /// [`Finish::Cancelled`](crate::Finish::Cancelled).
    fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError>;

    /// Continues the prompt `count` times, the first time greedily and then as [`Request::sampling`] says, each with the
    /// next seed; fewer where it is cancelled on the way, or where asking again is not for free. What an engine can compute
    /// together it does.
    ///
    /// # Errors
    /// As [`Model::generate`].
    fn sample(&self, request: &Request, count: usize) -> Result<Vec<Completion>, ModelError> {
        sample_one_by_one(self, request, count)
    }
}

/// [`Model::sample`] without any batching.
pub(super) fn sample_one_by_one<M: Model + ?Sized>(
    model: &M,
    request: &Request,
    count: usize,
) -> Result<Vec<Completion>, ModelError> {
    let mut completions = Vec::with_capacity(count);
    for i in 0..count {
        if request.cancel.is_cancelled() {
            break;
        }
        let sampling = request.sampling.of_sample(i);
        completions.push(model.generate(&Request { sampling, ..request.clone() }, &mut |_| Flow::Continue)?);
    }
    Ok(completions)
}
