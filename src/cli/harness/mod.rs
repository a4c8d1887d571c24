//! Runs of several steps, shared by the verbs `agent`, `chat`, `loop`, `task`, `forge` and `serve`.
//!
//! - [`options`]: the flags of a run. [`wire`]: builds the harness; [`servers`]: its MCP servers. [`forging`]: forges
//!   a skill.
//! - [`view`]: shows events. [`approve`]: asks before a change. [`end`]: reports the end of a run. [`removal`]: removes
//!   a session.

pub mod approve;
pub mod end;
pub mod forging;
pub mod options;
pub mod removal;
pub mod servers;
pub mod view;
pub mod wire;

pub use options::{Drive, LOOP_SESSION};
