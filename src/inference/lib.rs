//! Asking a model: the one place that calls one ([`generate()`]), and the one loop that drives whatever needs its answers
//! ([`drive()`]). What is asked, and what an answer means, is decided by the recipes above.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod drive;
mod generate;

pub use drive::{Executor, Next, StateMachine, drive};
pub use generate::{generate, generate_until, sample};
