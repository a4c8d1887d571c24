//! Suggests a shell command for one part of a plan, checked by the command recipe ([`CommandSuggester`]). A small
//! model is far better at writing one command than at choosing among tools, so a part that one command can do is not
//! left to that choice. A suggestion grants no permission: it becomes a call like any other, and guards and the user
//! decide about it.

mod recipe;

pub use recipe::CommandSuggester;

use crate::tool::Args;
use caro_model::metered::Meter;
use caro_model::{Cancel, ModelError};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// An earlier part and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The text of the part.
    pub goal: String,
    /// The command line that was run.
    pub command: String,
    /// Its output, screened and shortened by the observation pipeline, or its error.
    pub printed: String,
    /// True if `printed` is the whole output.
    pub whole: bool,
    /// True if the command only read.
    pub looked: bool,
    /// False if it failed, or printed nothing although something was to be shown; another command is needed then.
    pub worked: bool,
}

/// The part that a command is requested for, with its context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestRequest {
    /// The text of the part, its pronouns replaced.
    pub part: String,
    /// Facts about the working folder: its content, and the beginnings of the files that the task names. Untrusted
    /// data.
    pub place: Vec<String>,
    /// The earlier parts, oldest first.
    pub done: Vec<Done>,
}

/// A call that would do the part.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Args,
    /// The suggester's confidence, 0 to 1.
    pub confidence: f64,
    /// True if the confidence is so low that the user must be told with the result.
    pub doubt: bool,
}

/// The future suggestion; `None` if there is none for this part.
pub type SuggestFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<Suggestion>, ModelError>> + Send + 'a>>;

/// Suggests calls.
pub trait Suggester: Send + Sync {
    /// Suggests a call for the part. Requests to a model go through the meter ([`caro_model::metered`]), so that they
    /// count even if no suggestion results.
    fn suggest<'a>(
        &'a self,
        request: &'a SuggestRequest,
        meter: Arc<dyn Meter>,
        cancel: &'a Cancel,
    ) -> SuggestFuture<'a>;
}
