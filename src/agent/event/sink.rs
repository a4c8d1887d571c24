//! Where events go.

use super::Event;
use std::sync::{Mutex, PoisonError};

/// Takes events as they happen, each once and in order.
pub trait Sink: Send + Sync {
    /// Takes one event. A sink that cannot (a full disk) keeps that to itself and tells it when it is asked: a run is not
    /// stopped because nobody can write about it.
    fn take(&self, event: &Event);
}

/// Keeps events in memory, for tests and for a summary at the end.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Vec<Event>>);

impl Memory {
    /// What has happened so far.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for Memory {
    fn take(&self, event: &Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
    }
}
