//! The embedding model: searched for on this machine, never fetched.

use caro_model::embed::Embedder;
use std::sync::{Arc, Mutex, PoisonError};

/// Finds the embedding model, if it is on this machine. Fetches nothing.
pub type Find = Box<dyn Fn() -> Option<Arc<dyn Embedder>> + Send + Sync>;

/// The embedding model, cached from the first request that finds it.
pub struct Embedding {
    find: Find,
    found: Mutex<Option<Arc<dyn Embedder>>>,
}

impl Embedding {
    /// Creates it; `find` is called when it is needed.
    pub fn new(find: Find) -> Self {
        Self { find, found: Mutex::default() }
    }

    /// Returns the model, if it has been found by now; until then each call searches the disk.
    pub fn model(&self) -> Option<Arc<dyn Embedder>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_none() {
            *found = (self.find)();
        }
        found.clone()
    }
}
