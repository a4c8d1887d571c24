//! Saves the files that a call will change so that the user can undo it. The implementation is injected; this is
//! only its interface, and the error if it fails.

use crate::tool::ToolError;
use caro_shell::Script;
use std::path::Path;

/// A change that the user can undo.
#[derive(Clone, Copy)]
pub enum Change<'a> {
    /// A command that runs.
    Command {
        /// Its text.
        text: &'a str,
        /// Its parse tree.
        script: &'a Script,
    },
    /// A file that is written, with the folders that are missing above it.
    File {
        /// A title of the change, as the list of what can be undone shows it.
        text: &'a str,
        /// Its absolute path.
        path: &'a Path,
    },
}

/// Saves the files that calls change before they are made.
pub trait Keeper: Send + Sync {
    /// Returns the effects of a change that could not be undone, as sentences for the user who approves it. Must be
    /// fast.
    fn gaps(&self, change: Change<'_>, cwd: &Path) -> Vec<String>;

    /// True if a rehearsal shows that a command whose text does not tell what it changes removes files.
    fn removes(&self, _command: &str, _script: &Script, _cwd: &Path) -> bool {
        false
    }

    /// Saves the files that will change; `None` if there are none, or if undo never covers them, as [`Keeper::gaps`]
    /// tells.
    ///
    /// # Errors
    /// The reason they cannot be saved: the change must not be made then.
    fn keep(&self, change: Change<'_>, cwd: &Path) -> Result<Option<Box<dyn Kept>>, String>;
}

/// The undo record of a change that is being made.
pub trait Kept: Send {
    /// Records the exit code of the command; 0 if a file was written.
    fn ended(self: Box<Self>, code: i32);
}

/// Returns the reasons that tell the user what of a change could not be undone.
pub(super) fn reasons(keeper: &dyn Keeper, change: Change<'_>, cwd: &Path) -> impl Iterator<Item = String> + use<> {
    keeper.gaps(change, cwd).into_iter().map(|gap| format!("undo does not cover all of it: {gap}"))
}

/// Saves what will change, if there is a keeper.
///
/// # Errors
/// If it cannot be saved.
pub(super) fn keep(
    keeper: Option<&dyn Keeper>,
    change: Change<'_>,
    cwd: &Path,
) -> Result<Option<Box<dyn Kept>>, ToolError> {
    let Some(keeper) = keeper else { return Ok(None) };
    keeper.keep(change, cwd).map_err(|why| {
        let subject = if matches!(change, Change::Command { .. }) { "commands" } else { "changes" };
        ToolError::Failed(format!(
            "Not run: what it changes could not be kept for an undo ({why}). The user can allow {subject} without undo: \
             CARO_UNDO=off."
        ))
    })
}
