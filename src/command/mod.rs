//! The two-iteration recipe: a request in plain words in, a checked command out.
//!
//! Iteration 1 asks the model; the checks (no model) look at its command; iteration 2 runs only on evidence and is taken
//! only if the checks say it is better. Prints nothing, runs nothing: it answers.

pub mod answer;

pub use answer::{Answer, Ask, CommandError, Recipe, Refine, Timing, Trace};
