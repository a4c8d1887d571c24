//! Records which files were verified, so that a start costs one `stat` and not the SHA-256 of 1.1 GB.
//!
//! The record is `NAME.verified.json` beside the file. It has the size and the modification time: a file that changed
//! is verified again. If the models folder is read-only, the record is written to the cache folder.

use super::Settings;
use caro_base::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// Most bytes of a record.
const MAX_RECORD_BYTES: u64 = 1 << 16;

/// The record of a successful verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The file, absolute.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its modification time, in nanoseconds since 1970.
    pub modified: u128,
    /// Its SHA-256.
    pub sha256: String,
}

impl Record {
    /// Returns the record of `path` in its present state.
    pub(super) fn of(path: &Path, sha256: &str) -> std::io::Result<Self> {
        let path = std::path::absolute(path)?;
        let meta = fs::metadata(&path)?;
        Ok(Self { path, bytes: meta.len(), modified: files::modified_nanos(&meta)?, sha256: sha256.into() })
    }

    /// True if the file is still the one that was verified.
    pub(super) fn holds(&self) -> bool {
        Self::of(&self.path, &self.sha256).is_ok_and(|now| now == *self)
    }
}

/// Returns the first record of a model file that satisfies `is_valid`. A read-only models folder may have an outdated
/// record, and the cache folder a newer one.
pub(super) fn read(settings: &Settings, name: &str, is_valid: impl Fn(&Record) -> bool) -> Option<Record> {
    let mut paths = record_paths(settings, name).into_iter();
    paths.find_map(|path| serde_json::from_slice(&files::read(&path, MAX_RECORD_BYTES).ok()?).ok().filter(&is_valid))
}

/// Writes a record. If that fails everywhere, the next start verifies again.
pub(super) fn write(settings: &Settings, name: &str, record: &Record) {
    let Ok(text) = serde_json::to_vec(record) else { return };
    for path in record_paths(settings, name) {
        // a record is as readable as the models are
        if files::replace(&path, &text, files::Access::Umask).is_ok() {
            return;
        }
    }
}

/// Deletes the records of a model file.
pub(super) fn forget(settings: &Settings, name: &str) {
    for path in record_paths(settings, name) {
        let _ = fs::remove_file(path);
    }
}

/// Returns the paths that a record may have, the preferred one first.
fn record_paths(settings: &Settings, name: &str) -> Vec<PathBuf> {
    let mut paths = vec![settings.models.join(format!("{name}.verified.json"))];
    if let Some(state) = &settings.state {
        // several models folders share the cache folder: a hash of the folder's path is part of the name
        let folder = std::path::absolute(&settings.models).unwrap_or_else(|_| settings.models.clone());
        let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
        let tag: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
        paths.push(state.join("verified").join(format!("{tag}-{}.json", name.replace('/', "-"))));
    }
    paths
}
