//! caro turns a request in plain words into a shell command that is right for this very machine, offline.
//!
//! The library is the whole product; `src/main.rs` only parses, wires and runs. Arrows between the modules point one
//! way (`tests/architecture.rs` holds them):
//!
//! ```text
//! cli -> command -> agent  -> model, exec, shell
//!  |         |  \-> manual -> exec, shell
//!  |         |  \-> host  -> exec, shell
//!  |         \----> model, exec, shell
//!  |-----------> undo  -> exec, shell
//!  \-> serve -> agent, model, exec
//! ```
//!
//! - [`exec`]: every child process this program ever starts.
//! - [`shell`]: parse, quote, effects, safety verdicts, platform rules. Text in, findings out; runs nothing.
//! - [`host`]: what machine this is.
//! - [`manual`]: the installed programs' own help, cached and indexed.
//! - [`model`]: language models, from the catalog to the next token. Knows nothing of shells.
//! - [`agent`]: the harness: turns, tools, guards, observations, events.
//! - [`serve`]: the resident process that keeps a model ready, and its client, which is a model again; the HTTP server.
//! - [`command`]: the two-iteration loop that makes a command out of a request.
//! - `database`: SQLite files that several processes share, for `manual` and `agent`.
//! - `files`: bounded reads, and writes of whole files; for all of them.
//! - `undo`: what a command changes, kept before it runs and put back when asked (Unix).
//! - [`cli`]: arguments, terminal, one file a verb. Nobody imports it.
// the head of a folder tells who reads the source what lies in it, private or not
#![allow(rustdoc::private_intra_doc_links)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod agent;
pub mod cli;
pub mod command;
mod database;
pub mod exec;
mod files;
pub mod host;
pub mod manual;
pub mod model;
pub mod serve;
pub mod shell;
#[cfg(unix)]
pub mod undo;
