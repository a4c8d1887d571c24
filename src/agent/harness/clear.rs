//! Deletes the conversation and the files of a session. Its runs, by which it is found, are deleted last by the caller,
//! so that a failed deletion can be repeated.

use super::HarnessError;
use crate::memory::Memory;
use crate::store::{Store, is_alive};
use crate::workspace::Workspaces;

/// Deletes the conversation and the files of a session. Its runs stay, and the caller deletes them. Returns true if
/// there was a conversation, or files on this disk.
///
/// # Errors
/// If something cannot be deleted, or another process is running in the session.
pub fn empty(
    session: &str,
    store: &Store,
    memory: &Memory,
    workspaces: Option<&Workspaces>,
) -> Result<bool, HarnessError> {
    store.check_idle(session, is_alive)?;
    let mut found = memory.forget_session(session)?;
    if let Some(all) = workspaces {
        found |= all.forget(session)?;
    }
    Ok(found)
}
