//! Stands in for a catalog model that is not fetched: it only estimates the size of texts.

use caro_model::catalog::Card;
use caro_model::engine::Options;
use caro_model::{Completion, Flow, Limits, Model, ModelError, Request, estimated};

/// The model, without its weights and its tokenizer.
#[derive(Debug)]
pub struct Unfetched {
    id: String,
    context: usize,
}

impl Unfetched {
    /// Creates it with the limits that the card's model would have here.
    pub fn new(card: &Card) -> Self {
        Self { id: card.id.clone(), context: Options::default().context.min(card.ctx) }
    }
}

impl Model for Unfetched {
    fn id(&self) -> &str {
        &self.id
    }

    fn limits(&self) -> Limits {
        Limits { context: self.context }
    }

    /// An estimate: the tokenizer is in the file that is not fetched.
    fn count(&self, text: &str) -> usize {
        estimated(text)
    }

    fn generate(&self, _: &Request, _: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        Err(ModelError::Engine(format!("{} is not here", self.id)))
    }
}
