//! Turns a request in plain words into a checked shell command.
//!
//! Iteration 1 asks the model, and the checks (which use no model) examine its command. Iteration 2 runs only on
//! evidence of a fault, and its command is taken only if the checks find it better. Nothing is printed, and nothing
//! is run except rehearsals, which leave nothing behind.
//!
//! - [`answer`]: the public types of a request and its answer.
//! - [`refine_loop`]: the loop as a pure state machine. [`recipe`]: its driver, which asks the model through
//!   [`caro_inference::generate`].
//! - [`spelling`]: corrects typing errors in a request. [`file_schema`]: describes the files that the request names.
//!   [`prompt`], [`examples`], [`library`], [`documents`]: build the prompt. [`reply`]: parses the model's reply.
//! - [`confidence`]: the probability that a command is right. [`grounds`]: caps it where it was not measured.
//! - [`sample`], [`choose`], [`trial`]: where the model is unsure, choose one of several commands by their likelihood
//!   and by what they do in a rehearsal. [`faults`]: findings from a rehearsal. [`pipeline`]: the first stage of a
//!   pipeline.
//! - [`checks`]: find errors in a command, with evidence. [`inspect`]: runs them, with the manuals that they need.
//!   [`revised`]: finds conditions of an earlier command that its revision leaves out.
//! - [`rehearsal`]: decides which commands may be rehearsed. [`risk`]: the safety verdict for this machine.
//! - [`explain`]: explains a command in one line. [`checked`]: wraps a command that no model wrote as an answer.
//! - [`fix`]: repairs a command that failed, without a model. [`broaden`](mod@broaden): widens a search that found
//!   nothing.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod answer;
pub mod broaden;
pub mod checked;
pub mod checks;
mod choose;
pub mod confidence;
pub mod documents;
pub mod examples;
pub mod explain;
mod faults;
mod file_schema;
pub mod fix;
pub mod grounds;
pub mod inspect;
pub mod library;
mod one_word;
mod pipeline;
pub mod prompt;
pub mod recipe;
pub mod refine_loop;
pub mod rehearsal;
pub mod reply;
mod revised;
pub mod risk;
mod sample;
pub mod spelling;
pub mod trial;

pub use answer::{
    Alternative, Answer, CommandError, CommandRequest, FewShot, History, PastExchange, Refine, Timing, Trace, View,
};
pub use file_schema::input::{self, Input};
pub use recipe::Recipe;
