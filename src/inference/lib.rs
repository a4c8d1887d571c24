//! Calls of a model: the only place that calls one ([`generate()`]), and the loop that drives everything that needs
//! its answers ([`drive()`]). The recipes above decide what is asked and what an answer means.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod drive;
mod generate;

pub use drive::{Executor, Next, StateMachine, drive};
pub use generate::{generate, generate_until, sample};
