//! The keeper of the files that a command will change, so that the person can have them back. Which that is, is decided by who
//! sets the tools up: here is only when it is asked.

use caro_shell::Script;
use std::path::Path;

/// Keeps what commands change, before they run.
pub trait Keeper: Send + Sync {
    /// The effects of a command that could not be undone, in words for the person who is asked about it. Must be quick.
    fn gaps(&self, script: &Script, cwd: &Path) -> Vec<String>;

    /// Keeps what the command will change; nothing where there is nothing to keep, or where the person was told that it would
    /// not be.
    ///
    /// # Errors
    /// Why it cannot be kept: the command must not run then.
    fn keep(&self, command: &str, script: &Script, cwd: &Path) -> Result<Option<Box<dyn Kept>>, String>;
}

/// The record of a command that runs.
pub trait Kept: Send {
    /// It ended, with this exit code.
    fn ended(self: Box<Self>, code: i32);
}
