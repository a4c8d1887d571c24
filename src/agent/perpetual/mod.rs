//! The perpetual loop (`caro loop`): a model is asked again and again, and its answers are skill calls in
//! s-expressions. When its turns are used up it rests until a message arrives or it is time to wake.
//!
//! ```text
//! tick -> messages? -> turns left? -> prompt -> model -> balance, parse -> skills -> history, results -> sleep -> ...
//!                      \- none: rest until a message or the time to wake
//! ```
//!
//! - [`machine`]: the loop as a pure state machine. [`parameters`]: its parameters, by the names of the specification.
//! - [`prompt`]: the prompt of a turn; `examples`: example turns in it. [`skills`]: the skills, as a list and as a
//!   grammar. [`sexpr`]: parses and repairs the model's output. [`history`]: one entry per turn.
//! - [`channel`]: the trait for messages and answers, with lines and files. `mailbox`: connects a channel with the
//!   store, which has a position for each file that messages come from.
//! - [`driver`]: runs the machine on a harness, with its model, tools, guards, sandbox, consent, store and notes.
//!   Between two turns, background tasks that are due are run ([`background`](crate::background)).
//!
//! After every step one transaction stores the machine, its new history, the messages taken, and the texts to send. A
//! process that is killed at any point loses no message and repeats none. An interrupted call is repeated only if
//! that is harmless; else the model is told that it is unknown whether it was done.
//!
//! Additions to the specification: with `restOnEmpty=true` an empty tuple ends the remaining turns (by default each
//! message has exactly `maxNewInputLoops` turns); a repeated message is new input only once the turns of the first one
//! are used up.

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
