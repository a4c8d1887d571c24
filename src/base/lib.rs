//! The ground of every room: bounded reads and writes of whole files, names of runs and sessions, bytes in words.
//!
//! Nothing here knows of a model, a shell or a person.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod files;
pub mod id;
pub mod size;
