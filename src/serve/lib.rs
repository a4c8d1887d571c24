//! Long-lived processes that serve other programs, on this machine only.
//!
//! - [`resident`]: the process that keeps a model's weights in memory between two calls of the program. It only runs
//!   the model: commands, manuals and the caller's directory stay with the caller.
//! - [`http`]: the server for other programs, `caro serve`. It wraps the agent's harness, never the reverse; commands
//!   are implemented by the verb and passed in.
//! - [`mcp`]: the server side of the Model Context Protocol, and its transport over standard streams. It depends on
//!   neither of the others; `http` implements its tools, and a route that speaks the protocol.
//!
//! The other places that open sockets (downloads, remote models, tool servers, optional stores) are listed in
//! `tests/architecture.rs`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod http;
pub mod mcp;
pub mod resident;
