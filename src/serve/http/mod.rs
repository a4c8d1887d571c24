//! `caro serve`: the local model, the command recipe and the agent over HTTP, for programs of this machine.
//!
//! It wraps what there is ([`caro_agent::harness`], and what the verb hands over) and adds no loop, no
//! event type and no prompt. It prints nothing.
//!
//! - [`server`]: the state that all handlers share, and what it is built from. [`commands`], [`embedding`]: what the verb hands over.
//! - [`routes`]: every [`route`], in one table; [`mod@app`] is built of it. [`guard`]: what is looked at before anything else, by the
//!   rules of [`gate`]: host, origin, token, rate.
//! - [`lifecycle`]: how the server begins and ends, as a pure state machine. [`listen`]: connections, and their limits; [`peer`]: where
//!   they come from.
//! - [`queue`]: who is answered next; [`admission`]: a request on its way through it. [`body`]: bodies within their limits.
//!   [`problem`]: errors as JSON. [`metrics`]: counters.
//! - [`health`], [`command`], [`runs`], [`events`], [`sessions`], [`openapi`], [`models`], [`missing`]: handlers, a file a topic; [`live`]:
//!   the runs that are under way. [`openai`]: the doors of OpenAI's protocol. [`mod@mcp`]: the Model Context Protocol, with the tools
//!   that [`toolbox`] has. [`sse`]: streams of events. `page`: the page to ask with, and the one that shows the interface.
//! - [`settings`], [`token`]: what the person decides.

pub mod admission;
pub mod app;
pub mod body;
pub mod command;
pub mod commands;
pub mod embedding;
pub mod events;
pub mod gate;
pub mod guard;
pub mod health;
pub mod lifecycle;
pub mod listen;
pub mod live;
pub mod mcp;
pub mod metrics;
pub mod missing;
pub mod models;
pub mod openai;
pub mod openapi;
pub mod peer;
pub mod problem;
pub mod queue;
pub mod route;
pub mod routes;
pub mod runs;
pub mod server;
pub mod sessions;
pub mod settings;
pub mod sse;
pub mod token;
pub mod toolbox;

pub use app::app;
pub use commands::Commands;
pub use problem::Problem;
pub use server::{Engine, Log, Parts, Server};
pub use settings::Settings;
pub use token::Token;
