//! The interface of a place that stores a workspace's files.
//!
//! Keys are paths below the root of a workspace that consist of plain names ([`inside`](super::inside) checks this).
//! The content of files, edits and messages are the same for every place and belong to the layer above.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The metadata of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// True for a folder.
    pub folder: bool,
    /// The size of a file in bytes.
    pub bytes: u64,
    /// The time a file was last written, if known.
    pub modified: Option<SystemTime>,
}

/// Returns the new content of a file with this content, if it exists; `None` leaves the file unchanged.
pub type Edit<'a> = dyn FnMut(Option<&[u8]>) -> Option<Vec<u8>> + Send + 'a;

/// A place for files. Several processes may use it at once.
///
/// # Errors
/// Every method passes on errors of the system; `NotFound` means that nothing has the key.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Returns the metadata of a key, or `None` if nothing has it.
    fn metadata(&self, key: &Path) -> io::Result<Option<Item>>;

    /// Reads a whole file.
    fn read(&self, key: &Path) -> io::Result<Vec<u8>>;

    /// Writes a file atomically, replacing an existing one and creating the folders above it.
    fn put(&self, key: &Path, content: &[u8]) -> io::Result<()>;

    /// Edits or creates a file atomically. If another writer cannot be locked out, its change is detected and `edit`
    /// is called again.
    fn change(&self, key: &Path, edit: &mut Edit<'_>) -> io::Result<()>;

    /// Renames a file or a folder, creating the folders above the new name. `AlreadyExists` if the new name is taken.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Deletes a file or a folder with its content; the empty key stands for everything.
    fn remove(&self, key: &Path) -> io::Result<()>;

    /// Lists a folder, not recursively, in no particular order.
    fn list(&self, key: &Path) -> io::Result<Vec<(String, Item)>>;

    /// True if a key leads out of the workspace through a link.
    fn leads_out(&self, key: &Path) -> bool;

    /// Returns the address of a key: a path of the disk, or a URL.
    fn address(&self, key: &Path) -> PathBuf;

    /// True if other programs can open the address as a file.
    fn is_local(&self) -> bool;

    /// Returns the folder of that name as a storage of its own.
    fn below(&self, name: &str) -> Arc<dyn Storage>;

    /// Deletes partial files of writers that were killed before this time.
    fn sweep(&self, before: SystemTime);
}
