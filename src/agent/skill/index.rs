//! The cache of skills: their front matters and the vectors of their descriptions, each front matter valid for its
//! file's size and modification time. It is one JSON file in the cache folder; without it everything is read anew.

use super::{FILE, Front, Origin, Place, Skill, SkillError, front, read};
use caro_base::files;
use caro_base::id;
use caro_model::embed::Embedder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Most entries of each kind; a larger cache is discarded.
const MAX_ENTRIES: usize = 2000;

/// Most bytes read of the cache file; a larger one counts as absent.
const MAX_BYTES: u64 = 64 << 20;

/// The cached front matters and vectors.
#[derive(Debug, Default)]
pub struct Index {
    file: Option<PathBuf>,
    known: Known,
    changed: bool,
    /// The number of skill files read because the cache did not have them.
    pub read: usize,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    #[serde(default)]
    heads: BTreeMap<String, Entry>,
    /// By the embedder's id and the SHA-256 of the text.
    #[serde(default)]
    vectors: BTreeMap<String, Vec<f32>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    size: u64,
    changed: u64,
    front: Front,
}

impl Index {
    /// Opens the index in a file, which need not exist. An unreadable one is empty.
    pub fn open(file: Option<PathBuf>) -> Self {
        let bytes = file.as_ref().and_then(|file| files::read(file, MAX_BYTES).ok());
        let mut known: Known = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        if known.heads.len() > MAX_ENTRIES || known.vectors.len() > MAX_ENTRIES {
            known = Known::default();
        }
        Self { file, known, changed: false, read: 0 }
    }

    /// Returns the skill in a folder, with its front matter from the cache if that is current.
    pub(super) fn skill(&mut self, folder: &Path, place: &Place) -> Result<Skill, SkillError> {
        let file = folder.join(FILE);
        let path = file.display().to_string();
        let wrong = |reason: String| SkillError::Front { path: path.clone(), reason };
        let failed = |e: std::io::Error| SkillError::Read { path: path.clone(), reason: e.to_string() };
        let real = folder.canonicalize().map_err(failed)?;
        // a project's link may lead anywhere; links in the user's own folder are the user's choice
        if place.origin == Origin::Project && !place.folder.canonicalize().is_ok_and(|top| real.starts_with(top)) {
            return Err(wrong("its folder is a link that leads out of the project's skills".into()));
        }
        if !file.canonicalize().is_ok_and(|f| f.starts_with(&real)) {
            return Err(wrong("it is a link that leads out of its folder".into()));
        }
        let meta = std::fs::metadata(&file).map_err(failed)?;
        let (size, changed) = (meta.len(), meta.modified().map_or(0, nanos));
        let known = self.known.heads.get(&path).filter(|e| (e.size, e.changed) == (size, changed));
        let front = match known {
            Some(entry) => entry.front.clone(),
            None => {
                self.read += 1;
                let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                let front = front::parse(&read(&file)?, &name).map_err(wrong)?;
                self.known.heads.insert(path, Entry { size, changed, front: front.clone() });
                self.changed = true;
                front
            }
        };
        Ok(Skill { front, folder: real, origin: place.origin })
    }

    /// Returns how close each text is in meaning to the question (0 to 1), or `None` if there are no vectors to
    /// compare.
    pub fn nearness(&mut self, question: &str, texts: &[String], embedder: &dyn Embedder) -> Option<Vec<f64>> {
        let key = |text: &str| format!("{}:{}", embedder.id(), id::hash(text));
        let missing: Vec<&str> =
            texts.iter().map(String::as_str).filter(|t| !self.known.vectors.contains_key(&key(t))).collect();
        if !missing.is_empty() {
            let vectors = embedder.embed(&missing).ok()?;
            self.known.vectors.extend(missing.iter().map(|t| key(t)).zip(vectors));
            self.changed = true;
        }
        let query = embedder.embed(&[question]).ok()?.pop()?;
        let similarity = |text: &String| {
            let vector = self.known.vectors.get(&key(text))?;
            (vector.len() == query.len())
                .then(|| vector.iter().zip(&query).map(|(a, b)| f64::from(a * b)).sum::<f64>().clamp(0.0, 1.0))
        };
        texts.iter().map(similarity).collect()
    }

    /// Saves the index if it changed. Errors are ignored: a missing cache only costs time.
    pub fn save(&mut self) {
        if !self.changed {
            return;
        }
        let Some(file) = &self.file else { return };
        let _ = serde_json::to_vec(&self.known).map(|known| files::replace(file, &known, files::Access::Private));
        self.changed = false;
    }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
