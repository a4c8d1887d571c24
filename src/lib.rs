//! caro turns a request in plain words into a shell command that is right for this very machine, offline.
//!
//! Each folder here is a room, and a crate; this one hands them on under their short names, for who builds on them, and
//! `src/main.rs` runs [`cli`]. A room names only those below it: the arrows stand in the manifests, cargo lets none of them come
//! back, and `tests/architecture.rs` lets none be added by the way:
//!
//! ```text
//! cli -> serve -> agent -> command -> documents, inference, policy, manual -> model, shell, host, exec, intent, database, base
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
//! - [`database`]: SQLite files that several processes share.
//! - `undo`: what a command changes, kept before it runs and put back when asked (Unix).
//! - `base`: bounded reads and writes of whole files, names of runs and sessions, bytes in words; for all of them.
//! - [`cli`]: arguments, terminal, one file a verb. Nobody imports it.

pub use caro_agent as agent;
pub use caro_command as command;
pub use caro_database as database;
pub use caro_documents as documents;
pub use caro_exec as exec;
pub use caro_host as host;
pub use caro_inference as inference;
pub use caro_intent as intent;
pub use caro_manual as manual;
pub use caro_model as model;
pub use caro_policy as policy;
pub use caro_serve as serve;
pub use caro_shell as shell;
pub use caro_terminal as cli;
#[cfg(unix)]
pub use caro_undo as undo;
