//! What a conversation is on top of a run: what was said before, as a layer of each turn's prompt. Everything else is the
//! same loop, the same tools and guards.
//!
//! The exchanges themselves are the session's runs, which the store keeps; nothing is kept here.

mod history;
mod talk;

pub use history::{Exchange, History, Window, window};
pub use talk::is_talk;
