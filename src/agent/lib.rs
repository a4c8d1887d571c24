//! The harness: one engine for every verb in which a model acts. It owns prompt assembly, the loop, tools, guards,
//! observations, events and storage; the model is one part of it. Prints nothing, spawns nothing itself, and opens no socket
//! but to servers that the person named by their address: of tools ([`mcp`]), and with features `redis` and `s3` of notes
//! and files.
//!
//! ```text
//! task -> assemble -> decide -> act -> observe -> decide ... -> reflect -> report
//!         layers      grammar   guards  raw -> text           (events all the way)
//! ```
//!
//! - [`turn`]: the loop as a pure, serialisable state machine. No clock, no file, no model: what it needs it is given,
//!   what it wants it returns as a [`turn::Step`]. Stored at every step, it is how a run is resumed.
//! - [`harness`]: all of it put together, for whoever wants an agent.
//! - [`runtime`]: drives it. The only caller of [`tool::Tool::call`]; it asks the model through [`caro_inference`].
//! - [`suggest`]: a checked command for a part of the plan.
//! - [`action`]: what the model may do next as a grammar, and what it wrote read back. A call that is not admitted
//!   cannot be written.
//! - [`tool`]: what a tool is, and the registry all of them are resolved through, wherever they come from;
//!   [`tools`]: the ones that need no set-up.
//! - [`mcp`]: tools of other programs; [`skill`]: how a kind of task is gone about, with scripts; [`chat`]: what was said
//!   before. What comes from there is others' words: it changes neither tools nor policy.
//! - [`forge`]: makes a skill that is missing, test first, and puts it on the shelf if it holds.
//! - [`shard`]: a question about a tree of files, read in parts.
//! - [`subagent`]: runs that work for another one, side by side.
//! - [`perpetual`]: a loop that never ends, whose model calls skills; [`background`]: tasks that begin by themselves.
//! - [`guard`]: who may do what. Guards only narrow: deny beats ask beats allow, a guard that fails denies, and no text
//!   of a model, file or tool changes them.
//! - [`observe`]: the one way from a tool's output ([`observe::Raw`]) into a prompt.
//! - [`evidence`]: what speaks for it that a part is done; no model's word does.
//! - [`assemble`]: layers of context by priority within a budget; [`blueprint`]: which of them which kind of work has;
//!   [`retrieve`]: which of many tools to show; [`excerpt`]: what of a long text.
//! - [`plan`]: how many steps, in which parts, and whether the task is a task; [`reflect`]: what came of it. No model.
//! - [`knowledge`]: the layer of a prompt from the person's own documents ([`caro_documents`]); [`memory`]: notes that outlive a run.
//! - [`event`]: the typed record of everything that happens, redacted before it is stored; [`clock`]: times as a person's clock has them.
//! - [`workspace`]: files of the agent and artifacts of the runtime; [`store`]: sessions, runs, events, checkpoints; `state`: what a run knows of itself; [`known`]: what it has read, for the next one of its session.
//!   Files and memory are two things and never share a name.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod action;
pub mod assemble;
pub mod background;
pub mod blueprint;
pub mod chat;
pub mod clock;
pub mod event;
pub mod evidence;
pub mod excerpt;
pub mod forge;
pub mod guard;
pub mod harness;
pub mod knowledge;
pub mod known;
pub mod mcp;
pub mod memory;
pub mod observe;
pub mod perpetual;
pub mod plan;
pub mod reflect;
pub mod retrieve;
pub mod runtime;
pub mod shard;
pub mod skill;
pub mod state;
pub mod store;
pub mod subagent;
pub mod suggest;
pub mod tool;
pub mod tools;
pub mod turn;
pub mod workspace;

pub use event::{Event, Kind};
pub use guard::{Guard, Guards, Verdict};
pub use harness::Harness;
pub use observe::Raw;
pub use runtime::Runtime;
pub use state::RunState;
pub use tool::{Args, Call, Effects, Outcome, Registry, Tool, ToolCx, ToolError, ToolSpec};
pub use turn::{AgentRun, Report, Step};
