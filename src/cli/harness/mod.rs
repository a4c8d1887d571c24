//! Runs of several steps, as the verbs around them share it: `agent`, `chat`, `loop`, `task`, `forge`, `serve`.
//!
//! - [`options`]: how a run is driven, as it is typed. [`wire`]: builds the harness that runs stand on; [`servers`]: its servers of
//!   tools. [`forging`]: makes a skill.
//! - [`view`]: shows events. [`approve`]: asks before a change. [`end`]: how a run ended.

pub mod approve;
pub mod end;
pub mod forging;
pub mod options;
pub mod servers;
pub mod view;
pub mod wire;

pub use options::Drive;
