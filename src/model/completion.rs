//! A model's answer, as it comes and at the end.

use std::time::Duration;

/// Returned by the streaming callback of [`Model::generate`](crate::Model::generate).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// End here; the completion so far is returned with [`Finish::Cancelled`].
    Stop,
}

/// One generated token, as the model scored it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Token {
    /// Its bytes (a token may end inside a UTF-8 character).
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability in the model's own, unmasked distribution. `None` where the model does not tell.
    pub logprob: Option<f32>,
    /// The same of the likeliest *other* token.
    pub runner_up: Option<f32>,
}

/// Why a generation ended.
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
    /// How many of them needed no computing, because their state was kept.
    pub cached_tokens: usize,
    /// Tokens generated.
    pub completion_tokens: usize,
    /// Tokens that were guessed, to compute several at once.
    #[serde(default)]
    pub drafted_tokens: usize,
    /// How many of them were right.
    #[serde(default)]
    pub accepted_tokens: usize,
    /// Time to load weights in this call, where it was the first.
    pub load: Duration,
    /// Time to compute the prompt.
    pub prefill: Duration,
    /// Time to generate.
    pub decode: Duration,
    /// Time that holding the answer to its shape took, its set-up apart. All but the beginning is part of `decode`.
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
    /// Natural logarithm of the probability that it ends where it does. `None` where the model did not choose to end, or
    /// does not tell.
    #[serde(default)]
    pub end: Option<f32>,
    /// Why it ended.
    pub finish: Finish,
    /// Its cost.
    pub usage: Usage,
}

impl Completion {
    /// A completion that the caller ended, with the text so far.
    pub fn cancelled(said: String) -> Self {
        Self { text: said, tokens: Vec::new(), end: None, finish: Finish::Cancelled, usage: Usage::default() }
    }
}
