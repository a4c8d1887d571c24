//! Adds the earlier messages of a conversation to the prompt of a run, as a layer. Loop, tools and guards are those
//! of any run.
//!
//! - [`History`]: the layer. [`Remember`]: how much of a session is remembered, and what happens to the rest.
//! - [`window`]: fits the exchanges into a prompt. `summary`: the request for a summary of exchanges that drop out.
//! - [`is_talk`]: decides whether a message needs tools.
//!
//! The exchanges are stored in memory ([`crate::memory`]) and with the runs of the session ([`Keeps`]), not here.

mod history;
mod remember;
mod summary;
mod talk;
mod window;

pub use history::{Fold, History, Keeps, Past};
pub use remember::{Limit, MESSAGES, Originals, RESERVE, Remember};
pub use talk::is_talk;
pub use window::{Window, window};

/// One message of the user with its answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Exchange {
    /// The id of its run; empty if it is not stored with its run.
    #[serde(default)]
    pub run: String,
    /// The user's message.
    pub asked: String,
    /// The answer; empty if the run ended without one.
    pub answered: String,
}
