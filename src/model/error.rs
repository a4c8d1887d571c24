//! The errors of models, and the next step for the user.

use super::catalog::ANTHROPIC;
use super::{Completion, catalog};

/// The reason why a model gave no completion.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file is damaged, truncated or no GGUF.
    #[error("{file} is not a usable model file: {reason}")]
    BadFile {
        /// The file.
        file: String,
        /// The fault.
        reason: String,
    },
    /// The file is valid, but this program does not support it.
    #[error("{what} is not supported: {name}")]
    Unsupported {
        /// The kind of thing (`architecture`, `tokenizer`, `quantization`, `device`, `engine`).
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
        /// The SHA-256 of the file that it was trained on.
        wanted: String,
        /// The SHA-256 of this model's file.
        base: String,
    },
    /// The prompt does not fit into the context.
    #[error("the prompt has {tokens} tokens, and the model takes {limit}")]
    TooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Most tokens that fit.
        limit: usize,
    },
    /// The shape is no valid grammar or schema.
    #[error("the grammar is not valid: {0}")]
    BadShape(String),
    /// A remote server could not be reached, or its answer was invalid.
    #[error("{url}: {reason}")]
    Remote {
        /// The server.
        url: String,
        /// The failure, in words.
        reason: String,
    },
    /// The answer of a remote server has not the requested shape, also after it was told so.
    #[error("{url}: its answer has not the shape that was asked for, twice: {reason}")]
    WrongShape {
        /// The server.
        url: String,
        /// The fault of the answer, in words.
        reason: String,
        /// The answer.
        answer: Box<Completion>,
    },
    /// A scripted model has no reply for this prompt, or its reply breaks the shape.
    #[error("scripted model: {0}")]
    Script(String),
    /// Anything else inside the engine.
    #[error("inference failed: {0}")]
    Engine(String),
}

/// The ways to see the prompt and the answer of a model, whatever the verb.
const TRACES: &str = "`--debug` of a request for a command shows the prompt and the raw answer, `caro events --json` \
                      those of a run";

impl ModelError {
    /// Returns the next step for the user, in words.
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
            Self::Unsupported { what: "engine", .. } => {
                "`--engine auto` lets candle compute what the own engine cannot".into()
            }
            Self::Unsupported { what: "device", .. } => {
                "`--device auto` takes the best that this build and this machine have, `--device cpu` works everywhere".into()
            }
            Self::Unsupported { .. } => "`caro model list` shows models that are known to work".into(),
            Self::Foreign { wanted, .. } => match catalog::id_of_sum(wanted) {
                Some(id) => format!("it is one of {id}: name that with `--model {id}`, or leave it out with `--adapter off`"),
                None => "leave it out with `--adapter off`; `caro model adapter list` shows what each is for".into(),
            },
            Self::TooLong { .. } => "shorten the request".into(),
            Self::Remote { url, .. } if url.starts_with(ANTHROPIC) => {
                "check that this machine has a network, and the key in `ANTHROPIC_API_KEY`; without `--model` caro answers \
                 locally"
                    .into()
            }
            Self::Remote { .. } => {
                "check the address and that the server is running; without `--model` caro answers locally".into()
            }
            Self::WrongShape { .. } => "a larger model keeps to the shape; without `--model` caro answers locally".into(),
            Self::Script(_) => format!("correct the script; {TRACES}"),
            Self::BadShape(_) | Self::Engine(_) => TRACES.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hint names what the error is about, and nothing that the user has not given.
    #[test]
    fn the_hint_is_about_what_is_missing() {
        let unsupported = |what| ModelError::Unsupported { what, name: "x".into() }.hint();
        for (what, word) in [
            ("device", "--device"),
            ("engine", "--engine"),
            ("adapter", "--adapter"),
            ("architecture", "caro model list"),
        ] {
            assert!(unsupported(what).contains(word), "{what}: {}", unsupported(what));
        }
        assert!(!unsupported("device").contains("model list"));
        let remote = |url: &str| ModelError::Remote { url: url.into(), reason: "no answer".into() }.hint();
        assert!(remote("http://localhost:8080/v1/chat/completions").contains("the address"));
        let own = remote(&format!("{ANTHROPIC}/v1/messages"));
        assert!(own.contains("network") && !own.contains("address"), "{own}");
    }
}
