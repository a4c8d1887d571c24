//! Makes the runs of a session take turns within this process. Between processes the store does that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::OwnedMutexGuard;

/// The right to run in a session: no other run of this process is active in it while this lives.
pub struct SessionTurn {
    _lock: OwnedMutexGuard<()>,
}

/// The locks of the sessions in which a run is active or waiting.
#[derive(Default)]
pub(super) struct Queue(Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl Queue {
    /// Waits until no other run of this process is active in the session.
    pub(super) async fn enter(&self, session: &str) -> SessionTurn {
        SessionTurn { _lock: self.lock(session).lock_owned().await }
    }

    /// Does what [`Queue::enter`] does without waiting; `None` if a run is active in the session.
    pub(super) fn try_enter(&self, session: &str) -> Option<SessionTurn> {
        Some(SessionTurn { _lock: self.lock(session).try_lock_owned().ok()? })
    }

    fn lock(&self, session: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, lock| lock.strong_count() > 0);
        let known = sessions.get(session).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let lock = Arc::default();
            sessions.insert(session.to_owned(), Arc::downgrade(&lock));
            lock
        })
    }
}
