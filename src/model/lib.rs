//! Language models: what a prompt and a completion are, and every way to get one from the other.
//!
//! - `interface`: what every model can do; `request`: what it is asked; `completion`: what it says; `error`: why it says nothing.
//! - [`catalog`] and [`fetch`]: which model files exist and how their bytes come to this machine.
//! - [`adapter`]: what is known of low-rank adapters.
//! - [`engine`]: local inference. The only place that names candle.
//! - [`embed`]: texts as vectors.
//! - [`scripted`] and [`remote`]: the model of the tests, and any OpenAI-compatible server; `conform` checks their words.
//! - [`metered`]: any of them, with somebody who answers for what it is asked.
//! - [`repetition`]: how a text looks that a model finds no end of.
//! - [`tools`]: how signatures of functions, calls and their results stand in a conversation.
//!
//! Nothing here knows what a shell is: a request's meaning stays with the caller.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod adapter;
pub mod catalog;
mod completion;
mod conform;
pub mod embed;
pub mod engine;
mod error;
pub mod fetch;
mod interface;
pub mod metered;
pub mod remote;
pub mod repetition;
mod request;
pub mod scripted;
pub mod tools;

pub use completion::{Completion, Finish, Flow, Token, Usage};
pub use error::ModelError;
pub use interface::{Limits, Model, estimated};
pub use request::{Cancel, Message, Opening, Prompt, Request, Role, Sampling, Shape};
