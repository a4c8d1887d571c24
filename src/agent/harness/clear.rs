//! Forgetting a session. What goes last is what it is found by: whatever fails before that can be tried again.

use super::HarnessError;
use crate::memory::Memory;
use crate::store::{Store, is_alive};
use crate::workspace::Workspaces;

/// Forgets what was said in a session, and its files. Its runs stay, and are for the caller to delete.
///
/// # Errors
/// If it cannot be removed, or another process works in it.
pub fn empty(
    session: &str,
    store: &Store,
    memory: &Memory,
    workspaces: Option<&Workspaces>,
) -> Result<(), HarnessError> {
    store.check_idle(session, is_alive)?;
    memory.unsay(session)?;
    if let Some(all) = workspaces {
        all.forget(session)?;
    }
    Ok(())
}
