//! Suggestions for one part of a plan: a shell command, thought through and checked by the command recipe ([`CommandSuggester`]). A
//! small model is far better at one command than at a choice among tools, so a part that one command can do is not left to that
//! choice. A suggestion is no permission: it becomes a call like any other, and the guards and the person decide about it.

mod recipe;

pub use recipe::CommandSuggester;

use crate::tool::Args;
use caro_model::metered::Meter;
use caro_model::{Cancel, ModelError};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A part that was gone about before, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// What was to be done.
    pub goal: String,
    /// The command line that was run.
    pub command: String,
    /// What it printed, screened and shortened by the observation pipeline; or why it failed.
    pub printed: String,
    /// True if `printed` is all of it.
    pub whole: bool,
    /// True if it only looked.
    pub looked: bool,
    /// False if it failed, or printed nothing where something was to be shown: to be gone about in another way.
    pub worked: bool,
}

/// What advice is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestRequest {
    /// The part, its pronouns replaced.
    pub part: String,
    /// What is known about the place: the folder's content, how the files begin that the task names. Data.
    pub place: Vec<String>,
    /// What was done before, oldest first.
    pub done: Vec<Done>,
}

/// A call that would do the part.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Args,
    /// How sure the adviser is, 0 to 1.
    pub confidence: f64,
    /// True if that is so little that whoever gets the result has to be told.
    pub doubt: bool,
}

/// What an adviser comes to; `None` if it knows nothing for this part.
pub type Advised<'a> = Pin<Box<dyn Future<Output = Result<Option<Suggestion>, ModelError>> + Send + 'a>>;

/// Gives advice.
pub trait Suggester: Send + Sync {
    /// A call for the part. Whoever asks a model for it asks through the meter ([`caro_model::metered`]): advice that comes
    /// to nothing costs as much.
    fn advise<'a>(&'a self, brief: &'a SuggestRequest, meter: Arc<dyn Meter>, cancel: &'a Cancel) -> Advised<'a>;
}
