//! Undo: saves the files that a command deletes, moves, overwrites or changes before it runs, and restores them on
//! request.
//!
//! - [`plan`]: the paths that a command will touch, and how; pure. `foresee`: derives them from the effects of the
//!   parse tree, with patterns resolved on the disk (`glob`), and from the changes of a rehearsal.
//! - [`node`]: the state of a path at one time. `look`: reads it from the disk. `content`: clones and copies files.
//! - [`journal`]: the record of a command and its states; pure. [`store`]: the folder of all records.
//! - `keep`: saves files before a command and records the state after it. `restore`: restores files, and saves those
//!   it replaces.
//! - [`scope`]: counts what a command would touch within a time limit; `index`: tells which files git tracks;
//!   `git_index`: parses the index of a repository, by whose entries it is also told if that has changed.
//! - `trash`: also puts deleted files into the desktop's trash.
//! - [`preview`]: the tree of files that would be created, changed and deleted.
//!
//! **Location.** Below the data folder (`undo/ID/`, mode 0700), so that one place holds everything and `caro undo`
//! finds it from anywhere. On the file system of that folder deleted and moved files are saved as hard links, whatever
//! their size, and overwritten files as clones if the file system supports them (btrfs, XFS, bcachefs). From other
//! file systems, and without clones, files are copied, up to [`Limits::copies`].
//!
//! **Hard links.** A link protects a file from being deleted, but not from being written to. So links are used only if
//! the whole command does nothing but delete, rename and create; if any part of it writes, or might write, everything
//! is copied.
//!
//! **Crash safety.** The record goes from *planned* to *ready* once everything is on the disk; only then the command
//! runs, and the record becomes *ran*. A *planned* record without a process never ran and is deleted; *ready* and
//! *ran* ones can be undone. An undo is such a record itself: it can be interrupted and repeated, and can be undone.
#![cfg(unix)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod content;
mod error;
mod foresee;
mod git_index;
mod glob;
mod index;
pub mod journal;
mod keep;
mod look;
pub mod node;
pub mod plan;
pub mod preview;
mod restore;
pub mod scope;
pub mod store;
mod surface;
mod trash;

pub use error::UndoError;
pub use foresee::{Foreseen, Shown, foresee, foresee_file};
pub use keep::{Demand, Keeping, check_own, check_room, demand, keep};
pub use look::node as look_at;
pub use restore::{Restored, restore};
pub use store::Store;
pub use trash::to_trash;

use std::time::Duration;

/// Most files, folders and links that one command may touch.
pub const MAX_FILES: usize = 200_000;

/// The limits of size and age of saved files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes copied for one command; links and clones do not count.
    pub copies: u64,
    /// Most bytes of all saved files, including links and clones.
    pub total: u64,
    /// The age at which a record is deleted.
    pub age: Duration,
}

impl Default for Limits {
    /// 1 GiB, 10 GiB, 14 days.
    fn default() -> Self {
        Self { copies: 1 << 30, total: 10 << 30, age: Duration::from_secs(14 * 86_400) }
    }
}

/// Observes every step that changes the disk before it is taken; an error that it returns ends the work, like a full
/// disk would.
pub trait Watch {
    /// Called with the name of the next step.
    ///
    /// # Errors
    /// If the step must not be taken.
    fn step(&mut self, what: &'static str) -> std::io::Result<()>;
}

/// Allows every step.
impl Watch for () {
    fn step(&mut self, _: &'static str) -> std::io::Result<()> {
        Ok(())
    }
}
