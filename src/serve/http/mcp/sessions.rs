//! The sessions of clients of the Model Context Protocol over HTTP.

use super::super::Token;
use crate::mcp::Session;
use caro_base::id;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Sessions that are kept. The one that was silent for longest makes room.
const SESSIONS: usize = 256;

/// The sessions of clients.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<HashMap<String, Kept>>);

/// One of them.
#[derive(Debug)]
struct Kept {
    session: Shared,
    used: Instant,
}

/// A session that several requests may be under way in.
pub type Shared = Arc<Mutex<Session>>;

/// The session, for as long as nobody else has it.
pub fn lock(session: &Shared) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps one; its name.
    pub fn keep(&self, session: Shared) -> String {
        let mut all = self.all();
        if all.len() >= SESSIONS {
            // one at work is the last to go
            let oldest = all.iter().min_by_key(|(_, kept)| (lock(&kept.session).is_busy(), kept.used));
            if let Some(gone) = oldest.map(|(name, _)| name.clone()).and_then(|name| all.remove(&name)) {
                lock(&gone.session).stop();
            }
        }
        // nobody guesses it
        let name = Token::random().map_or_else(|_| id::fresh("mcp"), |token| token.text().to_owned());
        all.insert(name.clone(), Kept { session, used: Instant::now() });
        name
    }

    /// The session of that name, which is used now.
    pub fn find(&self, name: &str) -> Option<Shared> {
        let mut all = self.all();
        let kept = all.get_mut(name)?;
        kept.used = Instant::now();
        Some(kept.session.clone())
    }

    /// Takes one off the list.
    pub fn remove(&self, name: &str) -> Option<Shared> {
        self.all().remove(name).map(|kept| kept.session)
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
    fn there_are_so_many_sessions_and_the_oldest_makes_room() {
        let sessions = Sessions::default();
        let names: Vec<String> = (0..SESSIONS + 3).map(|_| sessions.keep(session())).collect();
        assert_eq!(sessions.all().len(), SESSIONS);
        assert!(sessions.find(&names[0]).is_none() && sessions.find(&names[2]).is_none());
        // one that was used meanwhile stays
        assert!(sessions.find(&names[3]).is_some());
        sessions.keep(session());
        assert!(sessions.find(&names[3]).is_some() && sessions.find(&names[4]).is_none());
        assert!(sessions.remove(&names[3]).is_some() && sessions.remove(&names[3]).is_none());
    }
}
