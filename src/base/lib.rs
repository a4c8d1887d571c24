//! Helpers shared by the other crates: bounded reads and atomic writes of files, names of runs and sessions, sizes in
//! words, wildcards in names, and the only item of an iterator.
//!
//! Nothing here depends on a model, a shell or a terminal.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod files;
pub mod id;
pub mod iter;
pub mod size;
pub mod wildcard;
