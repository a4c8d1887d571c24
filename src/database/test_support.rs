//! Helpers for the tests of this crate, and of those that enable its feature `test-support`.

use std::path::Path;

/// True if a file in the folder contains these bytes, to check that deleted data is gone.
///
/// # Errors
/// If the folder or a file of it cannot be read.
pub fn contains_bytes(folder: &Path, words: &str) -> std::io::Result<bool> {
    for file in std::fs::read_dir(folder)? {
        if std::fs::read(file?.path())?.windows(words.len()).any(|some| some == words.as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}
