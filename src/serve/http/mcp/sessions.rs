//! The sessions of clients of the Model Context Protocol over HTTP.

use super::super::Token;
use crate::mcp::Session;
use caro_base::id;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Most sessions stored. Beyond that the one unused for the longest time is removed.
const MAX_SESSIONS: usize = 256;

/// The sessions of all clients, by name.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<String, Entry>>);

/// A stored session.
#[derive(Debug)]
struct Entry {
    session: Shared,
    used: Instant,
}

/// A session shared by concurrent requests.
pub type Shared = Arc<Mutex<Session>>;

/// Locks a session.
pub fn lock(session: &Shared) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a session and returns its name.
    pub fn insert(&self, session: Shared) -> String {
        let mut all = self.all();
        if all.len() >= MAX_SESSIONS {
            // idle sessions are removed before busy ones
            let oldest = all.iter().min_by_key(|(_, entry)| (lock(&entry.session).is_busy(), entry.used));
            if let Some(removed) = oldest.map(|(name, _)| name.clone()).and_then(|name| all.remove(&name)) {
                lock(&removed.session).stop();
            }
        }
        // random, so that it cannot be guessed
        let name = Token::random().map_or_else(|_| id::fresh("mcp"), |token| token.text().to_owned());
        all.insert(name.clone(), Entry { session, used: Instant::now() });
        name
    }

    /// Returns the session with this name, and notes its use.
    pub fn find(&self, name: &str) -> Option<Shared> {
        let mut all = self.all();
        let entry = all.get_mut(name)?;
        entry.used = Instant::now();
        Some(entry.session.clone())
    }

    /// Removes a session.
    pub fn remove(&self, name: &str) -> Option<Shared> {
        self.all().remove(name).map(|entry| entry.session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tools::Offer;

    fn session() -> Shared {
        Arc::new(Mutex::new(Session::new(Offer { agent: false })))
    }

    #[test]
    fn the_number_of_sessions_is_bounded_and_the_oldest_is_removed() {
        let sessions = Sessions::default();
        let names: Vec<String> = (0..MAX_SESSIONS + 3).map(|_| sessions.insert(session())).collect();
        assert_eq!(sessions.all().len(), MAX_SESSIONS);
        assert!(sessions.find(&names[0]).is_none() && sessions.find(&names[2]).is_none());
        // this session is used, so the next one is now the oldest
        assert!(sessions.find(&names[3]).is_some());
        sessions.insert(session());
        assert!(sessions.find(&names[3]).is_some() && sessions.find(&names[4]).is_none());
        assert!(sessions.remove(&names[3]).is_some() && sessions.remove(&names[3]).is_none());
    }
}
