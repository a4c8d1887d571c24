//! The runs of one session come one after the other. Between processes the store holds that; this does within one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::OwnedMutexGuard;

/// The sessions that a run works in or waits for.
#[derive(Default)]
pub(super) struct Queue(Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl Queue {
    /// Waits until no other run of this process works in the session, which is then taken for as long as the result lives.
    pub(super) async fn enter(&self, session: &str) -> OwnedMutexGuard<()> {
        self.door(session).lock_owned().await
    }

    fn door(&self, session: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, door| door.strong_count() > 0);
        let known = sessions.get(session).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let door = Arc::default();
            sessions.insert(session.to_owned(), Arc::downgrade(&door));
            door
        })
    }
}
