//! Undo: what a command deletes, moves, writes over or changes is kept before it runs, and put back when asked.
//!
//! - [`plan`]: which paths a command will touch, and how; pure. `foresee`: where that is known from, which is the parse
//!   tree's effects with their patterns resolved on the disk (`glob`), and the changes that a rehearsal showed.
//! - [`node`]: a path as it was. `look`: reads that off the disk. `content`: clones and copies files.
//! - [`journal`]: the record of a command, and the states that it goes through; pure. [`store`]: the folder of all records.
//! - `keep`: before a command and after it. `restore`: puts back, and keeps what it replaces.
//! - [`scope`]: how much a command would touch, counted in a bounded time; `index`: which of it git knows.
//! - `trash`: lays what was deleted into the desktop's trash, too.
//! - [`preview`]: what would be created, changed and deleted, as a tree.
//!
//! **Where it lives.** Below the data folder (`undo/ID/`, mode 0700), so that one place holds all of it and `caro undo`
//! finds it from everywhere. On the file system of that folder deleted and moved files are kept as one more name of the same
//! file, whatever their size, and what is written over as a clone where the file system has them (btrfs, XFS, bcachefs);
//! from elsewhere, and without clones, it is copied, up to [`Limits::copies`].
//!
//! **Why a link is enough for some.** Another name keeps a file from being deleted, and not from being written to. So links
//! are used only where the whole command does nothing but delete, rename and make; if anything in it writes, or could write,
//! everything is copied.
//!
//! **Cut off anywhere.** The record goes from *planned* to *ready* when all is on the disk, only then the command runs, and
//! then it is *ran*. What is found *planned* with no process at it never ran and is thrown away; *ready* and *ran* can be
//! undone. An undo is such a record itself: it may be cut off and done again, and be undone.
#![cfg(unix)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod content;
mod error;
mod foresee;
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
pub use foresee::{Foreseen, Shown, foresee};
pub use keep::{Demand, Keeping, demand, keep};
pub use look::node as look_at;
pub use restore::{Restored, restore};
pub use store::Store;
pub use trash::to_trash;

use std::time::Duration;

/// The most files, folders and links that one command may touch.
pub const MOST: usize = 200_000;

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that are copied for one command at most; what is kept as a link or a clone is not counted.
    pub copies: u64,
    /// Bytes that all that is kept may hold, however it is kept.
    pub total: u64,
    /// How long something is kept.
    pub age: Duration,
}

impl Default for Limits {
    /// 1 GiB, 10 GiB, 14 days.
    fn default() -> Self {
        Self { copies: 1 << 30, total: 10 << 30, age: Duration::from_secs(14 * 86_400) }
    }
}

/// Told of every step that changes the disk, before it is taken; what it returns as an error ends the work there, as a full
/// disk would.
pub trait Watch {
    /// The next step, in a word, and the path that it is about.
    ///
    /// # Errors
    /// If it must not be taken.
    fn step(&mut self, what: &'static str) -> std::io::Result<()>;
}

/// Lets every step be taken.
impl Watch for () {
    fn step(&mut self, _: &'static str) -> std::io::Result<()> {
        Ok(())
    }
}
