//! The agent harness, used by every subcommand in which the model acts. It owns prompt assembly, the loop, tools,
//! guards, observations, events and storage; the model is one of its parts. It prints nothing, spawns no process
//! itself, and opens sockets only to servers that the user has configured by address: tool servers ([`mcp`]) and,
//! with the features `redis` and `s3`, storage for notes and files.
//!
//! ```text
//! task -> assemble -> decide -> act -> observe -> decide ... -> reflect -> report
//!         layers      grammar   guards  raw -> text           (events all the way)
//! ```
//!
//! - [`turn`]: the loop as a pure, serialisable state machine without clock, files or model. It returns what it needs
//!   as a [`turn::Step`] and is given the result. Its state is stored at every step, so that a run can be resumed.
//! - [`harness`]: puts all parts together; the entry point for callers.
//! - [`runtime`]: drives the state machine. The only caller of [`tool::Tool::call`]; asks the model through
//!   [`caro_inference`].
//! - [`suggest`]: a checked command for a part of the plan.
//! - [`action`]: the grammar of what the model may write, and the parser of what it wrote. A call that is not admitted
//!   cannot be written.
//! - [`tool`]: the interface of tools, and the registry through which all of them are found; [`tools`]: those that
//!   need no set-up.
//! - [`mcp`]: tools of other programs; [`skill`]: instructions and scripts for a kind of task; [`chat`]: earlier
//!   messages. Text from these is untrusted: it changes neither tools nor policy.
//! - [`forge`]: makes a missing skill, test first, and adds it to the shelf if it passes.
//! - [`shard`]: answers a question about a tree of files by reading it in parts.
//! - [`subagent`]: runs that work for another run, in parallel.
//! - [`perpetual`]: a loop that never ends, whose model calls skills; [`background`]: tasks that start on a schedule.
//! - [`guard`]: decides which actions are allowed. Guards only narrow: deny beats ask beats allow, a guard that fails
//!   denies, and no text of a model, file or tool changes them.
//! - [`observe`]: the only way from a tool's output ([`observe::Raw`]) into a prompt.
//! - [`evidence`]: checks without a model whether a part of the task is done.
//! - [`assemble`]: layers of context by priority within a budget; [`blueprint`]: the layers of each kind of work;
//!   [`retrieve`]: the tools to show for a task; [`excerpt`]: shortens a long text for a question.
//! - [`plan`]: the number of steps, the parts, and whether the text is a task at all; [`reflect`]: the result of a
//!   run. Both without a model.
//! - [`knowledge`]: the layer from the user's own documents ([`caro_documents`]); [`memory`]: notes that outlive a run.
//! - [`event`]: the typed record of everything that happens, redacted before it is stored; [`clock`]: local times.
//! - [`workspace`]: files of the agent and artifacts of the runtime; [`store`]: sessions, runs, events, checkpoints;
//!   [`state`]: the state of a run; [`known`]: texts that were read, for the next run of the session. Files and
//!   memory are two things and never share a name.
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
