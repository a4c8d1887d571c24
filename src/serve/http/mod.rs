//! `caro serve`: the local model, the command recipe and the agent over HTTP, for programs of this machine.
//!
//! It wraps existing parts ([`caro_agent::harness`], and those that the verb passes in) and adds no loop, no event
//! type and no prompt. It prints nothing.
//!
//! - [`server`]: the state shared by all handlers, and the parts it is built from. [`commands`], [`embedding`]: the
//!   interfaces that the verb implements.
//! - [`routes`]: the table of every [`route`], from which [`mod@app`] builds the router. [`guard`]: the checks before
//!   every route, with the rules of [`gate`]: host, origin, token, rate.
//! - [`lifecycle`]: start and end of the server, as a pure state machine. [`listen`]: connections and their limits;
//!   [`peer`]: their other ends.
//! - [`queue`]: the fair queue of requests; [`admission`]: passes a request through it. [`body`]: bodies within their
//!   limits; [`extract`]: paths and queries. [`problem`]: errors as JSON. [`metrics`]: counters.
//! - [`health`], [`command`], [`runs`], [`events`], [`sessions`], [`openapi`], [`models`], [`missing`]: handlers, one
//!   file per topic; [`live`]: the runs in progress. [`openai`]: the routes of OpenAI's protocol. [`mod@mcp`]: the
//!   Model Context Protocol, with the tools of [`toolbox`]. [`sse`]: streams of events. `page`: the web pages for
//!   requests and for the interface description.
//! - [`settings`], [`token`]: the user's settings and the access token.

pub mod admission;
pub mod app;
mod blocking;
pub mod body;
pub mod command;
pub mod commands;
pub mod embedding;
pub mod events;
pub mod extract;
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
