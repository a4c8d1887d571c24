//! The receivers of events.

use super::Event;
use std::sync::{Mutex, PoisonError};

/// A receiver of events: gets each event once and in order.
pub trait Sink: Send + Sync {
    /// Receives one event. A sink that fails (a full disk) must not stop the run: it stores the error and reports it
    /// when asked.
    fn take(&self, event: &Event);
}

/// Collects events in memory, for tests and for a summary at the end.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Vec<Event>>);

impl Memory {
    /// Returns all events so far.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for Memory {
    fn take(&self, event: &Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
    }
}
