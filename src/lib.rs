//! caro turns a request in plain words into a shell command that is right for this very machine, offline.
//!
//! The library is the whole product; `src/main.rs` only parses, wires and runs. Arrows between the modules point one
//! way (`tests/architecture.rs` holds them):
//!
//! ```text
//! cli -> serve -> agent -> command -> documents, inference, policy, manual -> model, shell, host, exec, intent, database
//! ```
//!
//! - [`exec`]: every child process this program ever starts.
//! - [`shell`]: parse, quote, effects, safety verdicts, platform rules. Text in, findings out; runs nothing.
//! - [`host`]: what machine this is.
//! - [`manual`]: the installed programs' own help, cached and indexed.
//! - [`model`]: language models, from the catalog to the next token. Knows nothing of shells.
//! - [`inference`]: the one place that asks a model, and the one loop that drives whatever needs its answers.
//! - [`intent`]: what a request says. Text in, meaning out.
//! - [`policy`]: secrets, redaction, text that speaks to a model.
//! - [`documents`]: the person's own documents, read in and searched.
//! - [`agent`]: the harness: turns, tools, guards, observations, events.
//! - [`serve`]: the resident process that keeps a model ready, and its client, which is a model again; the HTTP server.
//! - [`command`]: the two-iteration loop that makes a command out of a request.
//! - [`database`]: SQLite files that several processes share; `id`: what runs and sessions are called; `size`: bytes in words.
//! - `files`: bounded reads, and writes of whole files; for all of them.
//! - `undo`: what a command changes, kept before it runs and put back when asked (Unix).
//! - [`cli`]: arguments, terminal, one file a verb. Nobody imports it.
// the head of a folder tells who reads the source what lies in it, private or not
#![allow(rustdoc::private_intra_doc_links)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod agent;
pub mod cli;
pub mod command;
pub mod database;
pub mod documents;
pub mod exec;
mod files;
pub mod host;
mod id;
pub mod inference;
pub mod intent;
pub mod manual;
pub mod model;
pub mod policy;
pub mod serve;
pub mod shell;
mod size;
#[cfg(unix)]
pub mod undo;
