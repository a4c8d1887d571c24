//! Language models: what a prompt and a completion are, and every way to get one from the other.
//!
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
mod conform;
pub mod embed;
pub mod engine;
pub mod fetch;
pub mod metered;
pub mod remote;
pub mod repetition;
pub mod scripted;
pub mod tools;

use adapter::AdapterInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Who speaks in a [`Turn`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The person, or text on the person's behalf.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation. `text` is data: reserved template tokens inside it are encoded as plain characters
/// and can never open a role.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Turn {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub text: String,
    /// Documents behind the text: signatures of functions in a system turn, calls in one of the model, their results in one of
    /// the person. Data, too; see [`tools`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<String>,
}

/// How the completion begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// The model's own turn is opened, and begins with [`Prompt::prefill`].
    #[default]
    Turn,
    /// The same, and behind it a call of a function is opened.
    Call,
    /// [`Prompt::prefill`] is continued as it is: there are no turns.
    Raw,
}

/// A conversation that the model is to continue as the assistant.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Prompt {
    /// The turns so far, stable ones first: an engine reuses the longest prefix it has seen before.
    pub turns: Vec<Turn>,
    /// Text the assistant is made to begin its turn with. It is not part of the completion.
    pub prefill: String,
    /// How many leading turns are the same for every request on this machine (persona, rules, examples).
    /// An engine may keep their state on disk.
    pub stable_turns: usize,
    /// Apply the model's adapter, where one is loaded: see [`Model::adapter`].
    #[serde(default)]
    pub adapted: bool,
    /// How the completion begins.
    #[serde(default)]
    pub opening: Opening,
}

impl Prompt {
    /// A prompt with a system turn, or without one where `text` is empty.
    pub fn system(text: impl Into<String>) -> Self {
        let text = text.into();
        let mut prompt = Self::default();
        if !text.is_empty() {
            prompt.push(Role::System, text);
        }
        prompt
    }

    /// A text that is continued as it is.
    pub fn raw(text: impl Into<String>) -> Self {
        Self { prefill: text.into(), opening: Opening::Raw, ..Self::default() }
    }

    /// Adds a turn.
    pub fn push(&mut self, role: Role, text: impl Into<String>) -> &mut Self {
        self.turns.push(Turn { role, text: text.into(), blocks: Vec::new() });
        self
    }
}

/// What the completion must look like. Local engines enforce it on the logits, so that a completion that ended by
/// itself ([`Finish::Stop`]) always satisfies it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Free text that ends at the model's own end or before the first of `stop`.
    Text {
        /// Strings that end the text; none of them becomes part of it.
        stop: Vec<String>,
    },
    /// One of these strings, whole.
    Choice(Vec<String>),
    /// A JSON document for this JSON schema.
    Json(serde_json::Value),
    /// A grammar in llguidance's Lark dialect.
    Lark(String),
}

impl Shape {
    /// A JSON schema with the spacing that models write by themselves, `{"a": 1, "b": 2}`, and no other: forced spacing costs no
    /// decoding, and a small model cannot lose itself in white space. A schema with its own `x-guidance` keeps it.
    ///
    /// # Errors
    /// [`ModelError::BadShape`] for what is no schema.
    pub fn compact(schema: &serde_json::Value) -> Result<serde_json::Value, ModelError> {
        let mut schema = match schema {
            serde_json::Value::Object(map) => map.clone(),
            serde_json::Value::Bool(true) => serde_json::Map::new(),
            other => return Err(ModelError::BadShape(format!("{other} is no JSON schema"))),
        };
        schema.entry("x-guidance").or_insert_with(
            || serde_json::json!({"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": false}),
        );
        Ok(serde_json::Value::Object(schema))
    }
}

/// How tokens are chosen.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sampling {
    /// 0 is greedy.
    pub temperature: f32,
    /// Nucleus mass, 1 for all.
    pub top_p: f32,
    /// Seed of the random choice; unused when greedy.
    pub seed: u64,
}

impl Sampling {
    /// Always the likeliest token that the shape allows.
    pub const GREEDY: Self = Self { temperature: 0.0, top_p: 1.0, seed: 0 };

    /// How the completion of this number is chosen, of several for one prompt: the first greedily, each other one with a
    /// seed of its own.
    pub fn of_sample(self, index: usize) -> Self {
        if index == 0 { Self::GREEDY } else { Self { seed: self.seed.wrapping_add(index as u64), ..self } }
    }
}

/// Stops a generation from outside, and at a deadline.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Cancel {
    /// A switch nobody has pulled, with no deadline.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same switch with a deadline of its own.
    pub fn with_deadline(&self, deadline: Instant) -> Self {
        Self { flag: self.flag.clone(), deadline: Some(deadline) }
    }

    /// The deadline, where there is one.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Pulls the switch, for every clone of it.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// True once pulled or past the deadline.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed) || self.deadline.is_some_and(|d| Instant::now() >= d)
    }
}

/// One call of a model.
#[derive(Debug, Clone)]
pub struct Request {
    /// The conversation.
    pub prompt: Prompt,
    /// The form of the completion.
    pub shape: Shape,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// The most tokens to generate.
    pub max_tokens: usize,
    /// The switch that ends it early.
    pub cancel: Cancel,
}

impl Request {
    /// One that asks for nothing: it carries the switch.
    pub fn nothing(cancel: &Cancel) -> Self {
        Self {
            prompt: Prompt::default(),
            shape: Shape::Text { stop: Vec::new() },
            sampling: Sampling::GREEDY,
            max_tokens: 0,
            cancel: cancel.clone(),
        }
    }
}

/// Returned by the streaming callback of [`Model::generate`].
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

/// What a generation cost.
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

/// What came of a [`Request`].
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
    /// What it cost.
    pub usage: Usage,
}

/// What a model can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of prompt and completion together.
    pub context: usize,
}

/// A guess at the tokens in `text` where no tokenizer is here: one for every four bytes begun, which is on the safe side for
/// English.
pub fn estimated(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// A language model. One value owns the weights; calls take turns.
pub trait Model: Send + Sync {
    /// Its id, as `--json` shows it.
    fn id(&self) -> &str;

    /// What it can take.
    fn limits(&self) -> Limits;

    /// True if what it is told stays on this machine.
    fn is_local(&self) -> bool {
        true
    }

    /// The adapter that is applied to prompts that ask for it ([`Prompt::adapted`]); without one they are answered by the model
    /// as it is.
    fn adapter(&self) -> Option<&AdapterInfo> {
        None
    }

    /// How many calls of [`Model::generate`] are computed together; one where they take turns.
    fn concurrency(&self) -> usize {
        1
    }

    /// Tokens in `text`, by the model's own tokenizer where it has one here.
    fn count(&self, text: &str) -> usize;

    /// Continues the prompt. `on` receives the text as it comes, in whole characters.
    ///
    /// # Errors
    /// See [`ModelError`]. A pulled [`Cancel`] is no error: it ends with [`Finish::Cancelled`].
    fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError>;

    /// Continues the prompt `count` times, the first time greedily and then as [`Request::sampling`] says, each with the
    /// next seed; fewer where it is cancelled on the way, or where asking again is not for free. What an engine can compute
    /// together it does.
    ///
    /// # Errors
    /// As [`Model::generate`].
    fn sample(&self, request: &Request, count: usize) -> Result<Vec<Completion>, ModelError> {
        sample_one_by_one(self, request, count)
    }
}

/// [`Model::sample`] without any batching.
fn sample_one_by_one<M: Model + ?Sized>(
    model: &M,
    request: &Request,
    count: usize,
) -> Result<Vec<Completion>, ModelError> {
    let mut completions = Vec::with_capacity(count);
    for i in 0..count {
        if request.cancel.is_cancelled() {
            break;
        }
        let sampling = request.sampling.of_sample(i);
        completions.push(model.generate(&Request { sampling, ..request.clone() }, &mut |_| Flow::Continue)?);
    }
    Ok(completions)
}

/// Why a model gave no completion.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file is damaged, truncated or no GGUF.
    #[error("{file} is not a usable model file: {reason}")]
    BadFile {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is sound, but this program has no code for it.
    #[error("{what} is not supported: {name}")]
    Unsupported {
        /// What kind of thing (`architecture`, `tokenizer`, `quantization`, `device`).
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The adapter was trained on another model.
    #[error(
        "{adapter} belongs to another model: it was trained on the file with SHA-256 {wanted}, and this one's is {base}"
    )]
    Foreign {
        /// The adapter.
        adapter: String,
        /// The sum of the file that it was trained on.
        wanted: String,
        /// The sum of this model's file.
        base: String,
    },
    /// The prompt does not fit.
    #[error("the prompt has {tokens} tokens, and the model takes {limit}")]
    TooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// What fits.
        limit: usize,
    },
    /// The shape is no valid grammar or schema.
    #[error("the grammar is not valid: {0}")]
    BadShape(String),
    /// A remote server could not be reached or answered nonsense.
    #[error("{url}: {reason}")]
    Remote {
        /// The server.
        url: String,
        /// What happened.
        reason: String,
    },
    /// A scripted model has no reply for this prompt, or its reply breaks the shape.
    #[error("scripted model: {0}")]
    Script(String),
    /// Anything else inside the engine.
    #[error("inference failed: {0}")]
    Engine(String),
}

impl ModelError {
    /// What the user can do next.
    pub fn hint(&self) -> String {
        match self {
            Self::BadFile { .. } => {
                "it is damaged or incomplete: get a file of your own again where it came from; for one that caro fetched run \
                 `caro model verify`, then `caro model rm` and `caro model pull` if it fails"
                    .into()
            }
            Self::Unsupported { what: "adapter" | "addition" | "type of adapter", .. } => {
                "leave it out with `--adapter off`; `caro model adapter list` shows those that are here".into()
            }
            Self::Unsupported { .. } => "`caro model list` shows models that are known to work".into(),
            Self::Foreign { wanted, .. } => match catalog::id_of_sum(wanted) {
                Some(id) => format!("it is one of {id}: name that with `--model {id}`, or leave it out with `--adapter off`"),
                None => "leave it out with `--adapter off`; `caro model adapter list` shows what each is for".into(),
            },
            Self::TooLong { .. } => "shorten the request".into(),
            Self::Remote { .. } => {
                "check the address and that the server is running; without `--model` caro answers locally".into()
            }
            Self::BadShape(_) | Self::Script(_) | Self::Engine(_) => {
                "run again with `--debug` to see the prompt and the raw answer".into()
            }
        }
    }
}
