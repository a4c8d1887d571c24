//! The interface that every language model implements.

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

/// Estimates the tokens of a text without a tokenizer: a quarter of its bytes, rounded up, which is on the safe side
/// for English.
pub fn estimated(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// A language model. One value owns the weights; calls take turns.
pub trait Model: Send + Sync {
    /// Returns its id, as `--json` shows it.
    fn id(&self) -> &str;

    /// Returns its limits.
    fn limits(&self) -> Limits;

    /// True if prompts stay on this machine.
    fn is_local(&self) -> bool {
        true
    }

    /// Returns the adapter that is applied to prompts that ask for it ([`Prompt::adapted`](crate::Prompt::adapted)).
    /// Without an adapter the model answers them as it is.
    fn adapter(&self) -> Option<&AdapterInfo> {
        None
    }

    /// Returns how many calls of [`Model::generate`] are computed together; 1 if they take turns.
    fn concurrency(&self) -> usize {
        1
    }

    /// Counts the tokens in `text`, with the model's own tokenizer if it is available, else by an estimate.
    fn count(&self, text: &str) -> usize;

    /// Continues the prompt. `on` receives the text as it comes, in whole characters.
    ///
    /// # Errors
    /// See [`ModelError`]. Cancelling ([`Cancel`](crate::Cancel)) is no error: the completion ends with
    /// [`Finish::Cancelled`](crate::Finish::Cancelled).
    fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError>;

    /// Continues the prompt `count` times, the first time greedily and then as [`Request::sampling`] says, each with
    /// the next seed. Returns fewer completions if it is cancelled meanwhile, or if repeated requests cost money. An
    /// engine may compute them together.
    ///
    /// # Errors
    /// As [`Model::generate`].
    fn sample(&self, request: &Request, count: usize) -> Result<Vec<Completion>, ModelError> {
        sample_one_by_one(self, request, count)
    }
}

/// Implements [`Model::sample`] without batching.
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
