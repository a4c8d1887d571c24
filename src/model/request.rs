//! A request to a model: a conversation, the form of the answer, how tokens are chosen, and the switch that ends it.

use super::error::ModelError;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The speaker of a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The user, or text on the user's behalf.
    User,
    /// The model.
    Assistant,
}

/// One message of a conversation. `text` is data: reserved template tokens inside it are encoded as plain characters
/// and can never open a role.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Message {
    /// The speaker.
    pub role: Role,
    /// The text.
    pub text: String,
    /// Documents behind the text: function signatures in a system message, calls in a message of the model, their
    /// results in a message of the user. Data, too; see [`tools`](crate::tools).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<String>,
}

/// The beginning of the completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opening {
    /// A message of the model that begins with [`Prompt::prefill`].
    #[default]
    Message,
    /// As `Message`, followed by the beginning of a function call.
    Call,
    /// [`Prompt::prefill`] is continued as plain text; there are no messages.
    Raw,
}

/// A conversation that the model is to continue as the assistant.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Prompt {
    /// The messages so far, stable ones first: an engine reuses the longest cached prefix.
    #[serde(alias = "turns")]
    pub messages: Vec<Message>,
    /// Text that the assistant's message is made to begin with. It is not part of the completion.
    pub prefill: String,
    /// The number of leading messages that are the same for every request on this machine (persona, rules, examples).
    /// An engine may cache their state on disk.
    #[serde(alias = "stable_turns")]
    pub stable_messages: usize,
    /// True to apply the model's adapter, if one is loaded: see [`Model::adapter`](crate::Model::adapter).
    #[serde(default)]
    pub adapted: bool,
    /// The beginning of the completion.
    #[serde(default)]
    pub opening: Opening,
}

impl Prompt {
    /// Returns a prompt with a system message, or an empty prompt if `text` is empty.
    pub fn system(text: impl Into<String>) -> Self {
        let text = text.into();
        let mut prompt = Self::default();
        if !text.is_empty() {
            prompt.push(Role::System, text);
        }
        prompt
    }

    /// Returns a prompt whose text is continued as it is.
    pub fn raw(text: impl Into<String>) -> Self {
        Self { prefill: text.into(), opening: Opening::Raw, ..Self::default() }
    }

    /// Adds a message.
    pub fn push(&mut self, role: Role, text: impl Into<String>) -> &mut Self {
        self.messages.push(Message { role, text: text.into(), blocks: Vec::new() });
        self
    }
}

/// The form of the completion. Local engines enforce it on the logits, so that a completion that ended by
/// itself ([`Finish::Stop`](crate::Finish::Stop)) always satisfies it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Free text that ends where the model ends it, or before the first of `stop`.
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
    /// Returns the schema with its spacing fixed to the one that models write by themselves, `{"a": 1, "b": 2}`: forced
    /// spacing costs no decoding, and keeps a small model from endless white space. A schema's own `x-guidance` is
    /// left as it is.
    ///
    /// # Errors
    /// [`ModelError::BadShape`] if it is no schema.
    pub fn compact(schema: &serde_json::Value) -> Result<serde_json::Value, ModelError> {
        let mut schema = match schema {
            serde_json::Value::Object(map) => map.clone(),
            serde_json::Value::Bool(true) => serde_json::Map::new(),
            other => return Err(ModelError::BadShape(format!("{other} is not a JSON schema"))),
        };
        schema.entry("x-guidance").or_insert_with(
            || serde_json::json!({"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": false}),
        );
        Ok(serde_json::Value::Object(schema))
    }
}

/// The parameters of sampling.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sampling {
    /// Temperature; 0 is greedy.
    pub temperature: f32,
    /// Nucleus mass (top-p); 1 keeps all tokens.
    pub top_p: f32,
    /// Seed of the random choice; unused when greedy.
    pub seed: u64,
}

impl Sampling {
    /// Selects the likeliest token that the shape allows.
    pub const GREEDY: Self = Self { temperature: 0.0, top_p: 1.0, seed: 0 };

    /// Returns the parameters for the completion with this index, of several for one prompt: the first is greedy, every
    /// other one has its own seed.
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
    /// Returns a switch that is not yet pulled, without a deadline.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same switch with its own deadline.
    pub fn with_deadline(&self, deadline: Instant) -> Self {
        Self { flag: self.flag.clone(), deadline: Some(deadline) }
    }

    /// Returns the deadline, if there is one.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Pulls the switch, for all its clones.
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
    /// The parameters of sampling.
    pub sampling: Sampling,
    /// Most tokens to generate.
    pub max_tokens: usize,
    /// The switch that ends it early.
    pub cancel: Cancel,
}

impl Request {
    /// Returns an empty request that only carries the switch.
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
