//! The server side of the Model Context Protocol: parses a client's messages, answers them, and passes tool calls to
//! a [`Toolbox`]. It depends on neither commands, models nor HTTP, and prints nothing.
//!
//! - [`message`]: JSON-RPC messages in and out. [`version`]: revisions of the protocol, and the one a request
//!   declares.
//! - [`session`]: one client's session as a pure state machine: messages in, messages and calls out.
//! - [`tools`]: the tools as data: names, schemas, annotations. [`work`]: one tool call and its result.
//! - [`stdio`]: the transport over standard streams. The one over HTTP is a route of [`super::http`].
//!
//! Source: Model Context Protocol, revisions 2024-11-05 to 2026-07-28.

pub mod message;
pub mod session;
pub mod stdio;
pub mod tools;
pub mod version;
pub mod work;

pub use session::{Session, Start, Step};
pub use tools::Name;
pub use work::{Stages, ToolError, Toolbox};
