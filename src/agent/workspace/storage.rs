//! What a place for a workspace's files has to do.
//!
//! Keys are paths below the root of a workspace, of plain names only ([`inside`](super::inside) sees to that). What a file
//! says, how it is edited and what is told of it is the same in each place; it is decided above.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// What stands under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// True for a folder.
    pub folder: bool,
    /// The size of a file.
    pub bytes: u64,
    /// When a file was written last, where that is known.
    pub modified: Option<SystemTime>,
}

/// A new content for a file that had this one, or none; `None` leaves it as it is.
pub type Edit<'a> = dyn FnMut(Option<&[u8]>) -> Option<Vec<u8>> + Send + 'a;

/// A place for files. Several processes may use it at once.
///
/// # Errors
/// Every method fails with the system's word; `NotFound` says that nothing stands under the key.
pub trait Storage: Send + Sync + fmt::Debug {
    /// What stands under a key, if anything does.
    fn look(&self, key: &Path) -> io::Result<Option<Item>>;

    /// A file, whole.
    fn read(&self, key: &Path) -> io::Result<Vec<u8>>;

    /// Writes a file, and the folders above it; whole or not at all. What was there is replaced.
    fn put(&self, key: &Path, content: &[u8]) -> io::Result<()>;

    /// Edits a file, or makes it. Nobody else writes it between the look and the new content; where that cannot be
    /// forbidden it is noticed, and `edit` is called again.
    fn change(&self, key: &Path, edit: &mut Edit<'_>) -> io::Result<()>;

    /// Renames a file or a folder, and makes the folders above the new name. `AlreadyExists` if that is taken.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Deletes a file, or a folder with what is in it; under the empty key everything.
    fn remove(&self, key: &Path) -> io::Result<()>;

    /// What is in a folder, not in those below it, in no order.
    fn list(&self, key: &Path) -> io::Result<Vec<(String, Item)>>;

    /// True if a key leads out of the workspace although its words do not.
    fn leads_out(&self, key: &Path) -> bool;

    /// How a key is named outside of the workspace.
    fn address(&self, key: &Path) -> PathBuf;

    /// True if other programs can open the address as a file.
    fn is_local(&self) -> bool;

    /// The folder of that name as a place of its own.
    fn below(&self, name: &str) -> Arc<dyn Storage>;

    /// Deletes what writers that were killed before this moment have left.
    fn sweep(&self, before: SystemTime);
}
