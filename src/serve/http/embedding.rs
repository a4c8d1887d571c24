//! The model that makes vectors of texts: looked for on this machine, never fetched.

use caro_model::embed::Embedder;
use std::sync::{Arc, Mutex, PoisonError};

/// Finds the embedding model, if it is on this machine. Fetches nothing.
pub type Find = Box<dyn Fn() -> Option<Arc<dyn Embedder>> + Send + Sync>;

/// The embedding model, from the first request on that finds it.
pub struct Embedding {
    find: Find,
    found: Mutex<Option<Arc<dyn Embedder>>>,
}

impl Embedding {
    /// The one that `find` finds.
    pub fn new(find: Find) -> Self {
        Self { find, found: Mutex::default() }
    }

    /// The model. Looks at the disk until there is one.
    pub fn model(&self) -> Option<Arc<dyn Embedder>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_none() {
            *found = (self.find)();
        }
        found.clone()
    }
}
