//! A model's answer: its tokens, why it ended and what it cost.

use std::time::Duration;

/// Returned by the streaming callback of [`Model::generate`](crate::Model::generate).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Continues the generation.
    Continue,
    /// Ends the generation; the completion so far is returned with [`Finish::Cancelled`].
    Stop,
}

/// One generated token, as the model scored it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Token {
    /// Its bytes (a token may end inside a UTF-8 character).
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability in the model's own, unmasked distribution. `None` if the model does not
    /// report it.
    pub logprob: Option<f32>,
    /// Natural logarithm of the probability of the likeliest *other* token.
    pub runner_up: Option<f32>,
}

/// The reason why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model, a stop string or the shape ended it.
    Stop,
    /// `max_tokens` or the context window ended it.
    Length,
    /// The caller ended it.
    Cancelled,
}

/// The cost of a generation.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// The number of these whose state was cached and needed no computing.
    pub cached_tokens: usize,
    /// Tokens generated.
    pub completion_tokens: usize,
    /// Tokens drafted for speculative decoding.
    #[serde(default)]
    pub drafted_tokens: usize,
    /// The number of drafted tokens that were accepted.
    #[serde(default)]
    pub accepted_tokens: usize,
    /// Time to load the weights, if this call did so.
    pub load: Duration,
    /// Time to compute the prompt.
    pub prefill: Duration,
    /// Time to generate.
    pub decode: Duration,
    /// Time spent on enforcing the shape, without its set-up. All but the beginning is part of `decode`.
    #[serde(default)]
    pub shaping: Duration,
    /// True if the model's adapter was applied.
    #[serde(default)]
    pub adapted: bool,
}

/// The answer to a [`Request`](crate::Request).
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Completion {
    /// The text, without any stop string.
    pub text: String,
    /// Its tokens.
    pub tokens: Vec<Token>,
    /// Natural logarithm of the probability that it ends where it does. `None` if the model did not choose to end, or
    /// does not report it.
    #[serde(default)]
    pub end: Option<f32>,
    /// The reason why it ended.
    pub finish: Finish,
    /// Its cost.
    pub usage: Usage,
}

impl Completion {
    /// Returns a completion that the caller ended, with the text so far.
    pub fn cancelled(text: String) -> Self {
        Self { text, tokens: Vec::new(), end: None, finish: Finish::Cancelled, usage: Usage::default() }
    }
}
