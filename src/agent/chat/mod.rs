//! What a conversation is on top of a run: what was said before, as a layer of each turn's prompt. Everything else is the
//! same loop, the same tools and guards.
//!
//! - [`History`]: the layer. [`Remember`]: how much of a session is remembered, and what becomes of the rest.
//! - [`window`]: what of that fits into a prompt. `summary`: what has a model sum up what falls out.
//! - [`is_talk`]: whether a message needs tools at all.
//!
//! The exchanges themselves are where memory is ([`crate::memory`]), beside the session's runs ([`Keeps`]); nothing is
//! kept here.

mod history;
mod remember;
mod summary;
mod talk;
mod window;

pub use history::{Fold, History, Keeps, Past};
pub use remember::{Limit, MESSAGES, Originals, RESERVE, Remember};
pub use talk::is_talk;
pub use window::{Window, window};

/// What was asked and answered.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Exchange {
    /// The run that it was; empty where it is not kept with its runs.
    #[serde(default)]
    pub run: String,
    /// The person's words.
    pub asked: String,
    /// The answer.
    pub answered: String,
}
