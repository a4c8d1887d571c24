//! Remembers which file was verified, so that a start costs one `stat` and not 1.1 GB of SHA-256.
//!
//! The record lies beside the file as `NAME.verified.json`. Size and modification time are part of it: a file that changed
//! is verified anew. In a read-only models folder the record goes to the cache folder instead.

use super::Settings;
use caro_base::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// The most bytes of a record.
const LARGEST: u64 = 1 << 16;

/// One verification that went well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The file, absolute.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Its modification time, in nanoseconds since 1970.
    pub modified: u128,
    /// Its SHA-256.
    pub sha256: String,
}

impl Record {
    /// A record of `path` as it is now.
    pub(super) fn of(path: &Path, sha256: &str) -> std::io::Result<Self> {
        let path = std::path::absolute(path)?;
        let meta = fs::metadata(&path)?;
        Ok(Self { path, bytes: meta.len(), modified: files::changed(&meta)?, sha256: sha256.into() })
    }

    /// True if the file is still the one that was verified.
    pub(super) fn holds(&self) -> bool {
        Self::of(&self.path, &self.sha256).is_ok_and(|now| now == *self)
    }
}

/// The record of a model file of that name that `fits`, if there is one: a folder that cannot be written may keep an old one
/// beside which a newer lies elsewhere.
pub(super) fn read(settings: &Settings, name: &str, fits: impl Fn(&Record) -> bool) -> Option<Record> {
    let mut places = places(settings, name).into_iter();
    places.find_map(|path| serde_json::from_slice(&files::read(&path, LARGEST).ok()?).ok().filter(&fits))
}

/// Remembers a verification. If it can be written nowhere, the next start verifies again.
pub(super) fn write(settings: &Settings, name: &str, record: &Record) {
    let Ok(text) = serde_json::to_vec(record) else { return };
    for path in places(settings, name) {
        // whoever may read the models may read what is known about them
        if files::replace(&path, &text, files::Access::Umask).is_ok() {
            return;
        }
    }
}

/// Forgets a verification.
pub(super) fn forget(settings: &Settings, name: &str) {
    for path in places(settings, name) {
        let _ = fs::remove_file(path);
    }
}

fn places(settings: &Settings, name: &str) -> Vec<PathBuf> {
    let mut places = vec![settings.models.join(format!("{name}.verified.json"))];
    if let Some(state) = &settings.state {
        // Several models folders share the cache folder: the folder's name is part of the record's.
        let folder = std::path::absolute(&settings.models).unwrap_or_else(|_| settings.models.clone());
        let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
        let tag: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
        places.push(state.join("verified").join(format!("{tag}-{}.json", name.replace('/', "-"))));
    }
    places
}
