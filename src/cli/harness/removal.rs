//! Removes what is kept of a session.

use super::wire;
use crate::setup::stores::notes;
use crate::term::history::History;
use crate::{Cx, Failure};
use caro_agent::harness::empty;
use caro_agent::store::{Store, is_alive};

/// Removes a session with its conversation, files, runs and the entries of the history. Returns true if there was
/// anything.
///
/// # Errors
/// If something cannot be removed, or another process is running in the session.
pub fn remove(session: &str, store: &Store, cx: &Cx) -> Result<bool, Failure> {
    let settings = cx.settings(&[])?;
    let (memory, workspaces) = (notes(cx, &settings)?, wire::workspaces(cx, &settings)?);
    let known = store.session(session).ok().filter(|found| found.id == session);
    let found = empty(session, store, &memory, workspaces.as_ref())?;
    let Some(known) = known else { return Ok(found) };
    let tasks: Vec<&str> = known.runs.iter().map(|run| run.task.as_str()).collect();
    History::of(&cx.dirs).map_or(Ok(()), |history| history.forget(&tasks))?;
    // last, so that the removal can be repeated if something failed before
    store.delete_session(session, is_alive).map_err(wire::failure)?;
    Ok(true)
}
