//! The Model Context Protocol from the side of the server: what a client sends is read, answered, and its calls of tools are
//! handed to a [`Toolbox`]. Nothing here knows of commands, models or HTTP, and nothing is printed.
//!
//! - [`message`]: JSON-RPC messages in and out. [`version`]: revisions of the protocol, and what a request says about its own.
//! - [`session`]: one client's session as a pure state machine: messages in, messages and calls out.
//! - [`tools`]: the tools as data: names, schemas, annotations. [`work`]: one call of a tool and its result.
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
pub use work::{Stages, Toolbox, Trouble};
