//! The two-iteration recipe: a request in plain words in, a checked command out.
//!
//! Iteration 1 asks the model; the checks (no model) look at its command; iteration 2 runs only on evidence and is taken
//! only if the checks say it is better. Prints nothing, runs nothing but rehearsals that leave nothing: it answers.
//!
//! - [`answer`]: the public documents, question and answer.
//! - [`refine_loop`]: the loop as a pure state machine; [`recipe`]: its driver; the model is asked through [`caro_inference::generate`].
//! - [`broaden`](mod@broaden): a search that found nothing, made wider, for an agent's part.
//! - [`spelling`]: slips of the pen in a request. [`file_schema`]: how the files are built that it names. [`prompt`], [`examples`], [`library`], [`documents`]: what the model is told. [`reply`]: what its words mean.
//!   [`confidence`]: how sure it was; [`grounds`]: what that is worth here.
//! - [`sample`], [`choose`], [`trial`]: one command out of several where the model is unsure, by how likely they are and what
//!   they do in a rehearsal; [`faults`]: what a rehearsal has against a command; [`pipeline`]: its stages.
//! - [`fix`]: a command that failed, repaired without a model; [`checked`]: a command that no model has written, as an answer.
//! - [`rehearsal`]: which commands may be tried out first. [`risk`]: the verdict on one that is for this machine.
//! - [`checks`]: what is wrong with a command, with evidence; [`inspect`]: brings them what they need. [`explain`]: what it does, in one line.
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
mod pipeline;
pub mod prompt;
pub mod recipe;
pub mod refine_loop;
pub mod rehearsal;
pub mod reply;
pub mod risk;
mod sample;
pub mod spelling;
pub mod trial;

pub use answer::{
    Alternative, Answer, CommandError, CommandRequest, FewShot, History, PastExchange, Refine, Timing, Trace, View,
};
pub use file_schema::input::{self, Input};
pub use recipe::Recipe;
