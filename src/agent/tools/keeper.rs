//! Saves the files that a command will change so that the user can undo it. The implementation is injected; this is
//! only its interface.

use caro_shell::Script;
use std::path::Path;

/// Saves the files that commands change before they run.
pub trait Keeper: Send + Sync {
    /// Returns the effects of a command that could not be undone, as sentences for the user who approves it. Must be
    /// fast.
    fn gaps(&self, script: &Script, cwd: &Path) -> Vec<String>;

    /// Saves the files that the command will change; `None` if there are none, or if the user was told that they would
    /// not be saved.
    ///
    /// # Errors
    /// The reason they cannot be saved: the command must not run then.
    fn keep(&self, command: &str, script: &Script, cwd: &Path) -> Result<Option<Box<dyn Kept>>, String>;
}

/// The undo record of a running command.
pub trait Kept: Send {
    /// Records the exit code of the command.
    fn ended(self: Box<Self>, code: i32);
}
