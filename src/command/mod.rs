//! The two-iteration recipe: a request in plain words in, a checked command out.
//!
//! Iteration 1 asks the model; the checks (no model) look at its command; iteration 2 runs only on evidence and is taken
//! only if the checks say it is better. Prints nothing, runs nothing but rehearsals that leave nothing: it answers.
//!
//! - [`answer`]: the public documents, question and answer.
//! - [`turn`]: the loop as a pure state machine; [`recipe`]: its driver; the model is asked through [`crate::agent::runtime::generate`].
//! - [`CommandAdviser`]: the same for one part of a larger task ([`crate::agent::advise`]); [`loosen`]: a search that found
//!   nothing, made wider.
//! - [`spelling`]: slips of the pen in a request. [`named`]: how the files are built that it names. [`prompt`], [`examples`], [`library`], [`documents`]: what the model is told. [`reply`]: what its words mean.
//!   [`confidence`]: how sure it was; [`grounds`]: what that is worth here.
//! - [`sample`], [`choose`], [`trial`]: one command out of several where the model is unsure, by how likely they are and what
//!   they do in a rehearsal; [`faults`]: what a rehearsal has against a command; [`pipeline`]: its stages.
//! - [`fix`]: a command that failed, repaired without a model.
//! - [`rehearsal`]: which commands may be tried out first.
//! - [`checks`]: what is wrong with a command, with evidence; [`inspect`]: brings them what they need. [`explain`]: what it does, in one line.

mod adviser;
pub mod answer;
pub mod checks;
mod choose;
pub mod confidence;
pub mod documents;
pub mod examples;
pub mod explain;
mod faults;
pub mod fix;
pub mod grounds;
pub mod inspect;
pub mod library;
mod loosen;
mod named;
mod pipeline;
pub mod prompt;
pub mod recipe;
pub mod rehearsal;
pub mod reply;
mod sample;
pub mod spelling;
mod trial;
pub mod turn;

pub use adviser::CommandAdviser;
pub use answer::{Alternative, Answer, Ask, Before, CommandError, FewShot, Refine, Said, Timing, Trace, View};
pub use named::input::{self, Input};
pub use recipe::Recipe;
