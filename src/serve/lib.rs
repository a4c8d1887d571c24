//! Long-lived processes that answer others, on this machine alone.
//!
//! - [`resident`]: the process that keeps a model's weights ready between two calls of the program. It passes requests on and
//!   knows nothing of commands, manuals or the caller's directory: those stay with the caller.
//! - [`http`]: the server that other programs ask, `caro serve`. It wraps the agent's harness, never the reverse; what it needs of
//!   commands the verb hands over.
//! - [`mcp`]: the Model Context Protocol from the server's side, and its transport over standard streams. It names neither of the
//!   others; `http` has its tools do their work, and a route that speaks it.
//!
//! Who else opens sockets (downloads, remote models, servers of tools, stores that are built in on demand) is named in
//! `tests/architecture.rs`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod http;
pub mod mcp;
pub mod resident;
