//! Language models: prompts, completions, and every kind of model that turns one into the other.
//!
//! - `interface`: the traits and limits of a model; `request`: prompts and sampling; `completion`: answers; `error`:
//!   errors.
//! - [`catalog`] and [`fetch`]: the known model files, and how they are downloaded.
//! - [`adapter`]: descriptions of low-rank adapters.
//! - [`engine`]: local inference. The only place that names candle.
//! - [`embed`]: texts as vectors.
//! - [`scripted`] and [`remote`]: the model of the tests, and servers that speak OpenAI's or Anthropic's protocol;
//!   `conform` checks their answers.
//! - [`metered`]: a model with a meter that limits and counts its requests.
//! - [`repetition`]: recognizes a text that repeats itself.
//! - [`tools`]: the form of function signatures, calls and results in a conversation.
//!
//! Nothing here knows what a shell is: the meaning of a request is the caller's concern.
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
