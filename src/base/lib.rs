//! Helpers shared by the other crates: bounded reads and atomic writes of files, names of runs and sessions, sizes in
//! words.
//!
//! Nothing here depends on a model, a shell or a terminal.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod files;
pub mod id;
pub mod size;
