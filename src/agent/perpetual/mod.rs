//! The perpetual loop: a model that is asked again and again, whose answers are calls of skills in s-expressions, and whose
//! end is but a rest. `caro loop` on a terminal.
//!
//! ```text
//! tick -> messages? -> turns left? -> prompt -> model -> balance, read -> skills -> history, results -> sleep -> tick ...
//!                      \- none: rest, until a message or the time to wake
//! ```
//!
//! - [`machine`]: all of that as a pure state machine with a clock it is told. [`parameters`]: its numbers, by the names of
//!   the specification.
//! - [`prompt`]: what a turn is told; `examples`: turns that are shown before it. [`skills`]: what it may call, as a list and as a grammar. [`sexpr`]: what was written,
//!   read and repaired. [`history`]: what happened, an entry a turn.
//! - [`channel`]: where messages come from and answers go: one trait, for lines and for files. `mailbox`: a channel with the
//!   store behind it.
//! - [`driver`]: drives the machine by the one loop of the program, on a harness: the one call site of a model, the one of
//!   tools with guards, sandbox and consent, the store, notes. Between two turns tasks that are due have their run
//!   ([`background`](crate::background)).
//!
//! Everything is kept at every step, in one transaction: where the machine stands, what is new in its history, which
//! messages are taken, what is to be sent. A process that is killed anywhere loses none of them and does none of them twice;
//! a command that was under way is not made again, and the model is told that nobody knows whether it was done.
//!
//! Beside the specification's own: an empty tuple ends the turns that are left where `restOnEmpty=true` says so (by default
//! each message has exactly `maxNewInputLoops` turns); the same words sent once more are new input once the turns of the
//! first are over, and not before.

pub mod call;
pub mod channel;
pub mod driver;
mod examples;
pub mod history;
pub mod machine;
mod mailbox;
pub mod parameters;
pub mod prompt;
pub mod seen;
pub mod sexpr;
pub mod skills;

pub use channel::{Channel, Files, Lines};
pub use driver::{Ended, Setup, run};
pub use history::Entry;
pub use parameters::{PARAMETERS, ParameterError, Parameters};
