//! Offloads results that are too long for a prompt: stores the whole and returns a preview for the prompt.

use crate::tool::Call;
use caro_base::id;
use caro_policy::text::head_tail;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Longest result that is not offloaded, bytes.
const LONG_BYTES: usize = 2000;
/// Longest result that is not offloaded, tokens.
const LONG_TOKENS: usize = 500;
/// Most tokens of a preview.
const PREVIEW_TOKENS: usize = 150;
/// Most lines of a preview.
const PREVIEW_LINES: usize = 10;
/// The number of preview lines taken from the end.
const PREVIEW_LAST: usize = 3;

/// The tools whose results are never offloaded, however long: those that read artifacts, and those of the workspace.
/// Otherwise reading one of these files would create another. The only such list.
pub const NEVER_OFFLOADED: [&str; 11] = [
    "read_artifact",
    "tail_artifact",
    "search_artifact",
    "list_artifacts",
    "workspace_view",
    "workspace_write",
    "workspace_replace",
    "workspace_insert",
    "workspace_delete",
    "workspace_rename",
    "workspace_clear",
];

/// The tools among them that read artifacts; useless until there is one.
pub const ARTIFACT_TOOLS: &[&str] = NEVER_OFFLOADED.split_at(4).0;

/// True if a result is too long for a prompt.
pub fn is_long(text: &str, count: &dyn Fn(&str) -> usize) -> bool {
    text.len() > LONG_BYTES || (text.len() > LONG_TOKENS && count(text) > LONG_TOKENS)
}

/// The metadata of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// `tool_YYYYMMDD_HHMMSS_hash8`.
    pub id: String,
    /// `json`, `xml` or `txt`.
    pub extension: String,
    /// The tool it comes from.
    pub tool: String,
    /// The call it comes from.
    pub call: String,
    /// The length in bytes.
    pub bytes: usize,
    /// The length in tokens.
    pub tokens: usize,
    /// The number of lines.
    pub lines: usize,
    /// The time of creation, milliseconds since 1970, UTC.
    pub created: u64,
}

/// A store of artifacts.
pub trait Artifacts: Send + Sync {
    /// Stores an artifact atomically.
    ///
    /// # Errors
    /// If it cannot be written.
    fn put(&self, artifact: &Artifact, text: &str) -> std::io::Result<()>;

    /// Returns the whole text of an artifact.
    ///
    /// # Errors
    /// `NotFound` if there is none with that id.
    fn get(&self, id: &str) -> std::io::Result<String>;

    /// Returns all artifacts, oldest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn list(&self) -> std::io::Result<Vec<Artifact>>;

    /// Returns the file that holds an artifact's text, if other programs can read it.
    fn place(&self, _: &Artifact) -> Option<PathBuf> {
        None
    }
}

/// A result that was offloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offload {
    /// The artifact's id.
    pub id: String,
    /// The tokens of the whole result.
    pub tokens: usize,
    bytes: usize,
    lines: usize,
    preview: String,
    saved: usize,
    place: Option<PathBuf>,
}

impl Offload {
    /// Stores a result as an artifact.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn store(
        artifacts: &dyn Artifacts,
        call: &Call,
        text: &str,
        count: &dyn Fn(&str) -> usize,
    ) -> std::io::Result<Self> {
        let now = SystemTime::now();
        let name = format!("{}_{}_{}", call.tool, id::stamp(now), &id::hash(text)[..8]);
        let tokens = count(text);
        let lines = text.lines().count();
        let artifact = Artifact {
            id: name.clone(),
            extension: extension(text).into(),
            tool: call.tool.clone(),
            call: call.id.clone(),
            bytes: text.len(),
            tokens,
            lines,
            created: id::millis(now),
        };
        artifacts.put(&artifact, text)?;
        let preview = preview(text, count);
        let saved = tokens.saturating_sub(count(&preview));
        Ok(Self { id: name, tokens, bytes: text.len(), lines, preview, saved, place: artifacts.place(&artifact) })
    }

    /// Returns the text for the prompt; `cut` is a sentence that says what was missing of the result before.
    pub fn message(&self, cut: Option<&str>) -> String {
        let place = self.place.as_ref().map(|path| format!(" in {}", path.display())).unwrap_or_default();
        let note = cut.map(|cut| format!(" {cut}")).unwrap_or_default();
        let what = if cut.is_none() { "The whole" } else { "What is not left out" };
        format!(
            "[TOOL RESPONSE OFFLOADED] id={} size={} bytes, {} lines, {} tokens ({} saved).{note} It begins and ends:\n{}\n\
             [{what} is kept{place}: use read_artifact, tail_artifact or search_artifact with this id.]",
            self.id, self.bytes, self.lines, self.tokens, self.saved, self.preview
        )
    }
}

/// Returns the first and the last lines, within the limits of a preview. The end usually shows errors and exit codes.
fn preview(text: &str, count: &dyn Fn(&str) -> usize) -> String {
    let text = text.trim_end_matches('\n');
    if text.lines().count() <= PREVIEW_LINES && count(text) <= PREVIEW_TOKENS {
        return text.to_owned();
    }
    let breaks: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let (mut head, mut tail) = if breaks.len() >= PREVIEW_LINES {
        let last = breaks[breaks.len() - PREVIEW_LAST];
        (&text[..breaks[PREVIEW_LINES - PREVIEW_LAST - 2]], &text[last + 1..])
    } else {
        // few long lines
        let half = text.chars().count() / 2;
        head_tail(text, half, half)
    };
    loop {
        let hidden = text.chars().count() - head.chars().count() - tail.chars().count();
        let shown = format!("{head}\n[... {hidden} characters hidden ...]\n{tail}");
        if count(&shown) <= PREVIEW_TOKENS || head.is_empty() && tail.is_empty() {
            return shown;
        }
        // long lines: half of each until it fits
        head = head_tail(head, head.chars().count() / 2, 0).0;
        tail = head_tail(tail, 0, tail.chars().count() / 2).1;
    }
}

/// Guesses the file extension from the start and end of a text.
fn extension(text: &str) -> &'static str {
    let trimmed = text.trim();
    let is_enclosed = |open, close| trimmed.starts_with(open) && trimmed.ends_with(close);
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(trimmed).is_ok();
    if (is_enclosed('{', '}') || is_enclosed('[', ']')) && is_json() {
        "json"
    } else if is_enclosed('<', '>') {
        "xml"
    } else {
        "txt"
    }
}

/// Artifacts in memory, for tests and for runs without a folder.
#[derive(Debug, Default)]
pub struct MemoryArtifacts {
    entries: Mutex<Vec<(Artifact, String)>>,
    full: bool,
}

impl MemoryArtifacts {
    /// Creates a store in which every write fails, like a full disk.
    pub fn full() -> Self {
        Self { entries: Mutex::default(), full: true }
    }
}

impl Artifacts for MemoryArtifacts {
    fn put(&self, artifact: &Artifact, text: &str) -> std::io::Result<()> {
        if self.full {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push((artifact.clone(), text.to_owned()));
        Ok(())
    }

    fn get(&self, id: &str) -> std::io::Result<String> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let found = entries.iter().find(|(artifact, _)| artifact.id == id);
        found.map(|(_, text)| text.clone()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> std::io::Result<Vec<Artifact>> {
        Ok(self.entries.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(a, _)| a.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_extension_follows_from_the_text() {
        assert_eq!(extension(" {\"a\": 1}\n"), "json");
        assert_eq!(extension("{not json}"), "txt");
        assert_eq!(extension("<a></a>"), "xml");
        assert_eq!(extension("plain"), "txt");
    }

    proptest! {
        #[test]
        fn a_preview_is_short_and_shows_both_ends(text in "(\\PC{0,80}\n){0,40}") {
            let count = |t: &str| t.chars().count() / 3;
            let preview = preview(&text, &count);
            prop_assert!(count(&preview) <= PREVIEW_TOKENS && preview.lines().count() <= PREVIEW_LINES);
            match preview.split_once("\n[... ") {
                None => prop_assert_eq!(&preview, text.trim_end_matches('\n')),
                Some((head, rest)) => {
                    let tail = rest.split_once(" ...]\n").unwrap().1;
                    prop_assert!(text.starts_with(head) && text.trim_end_matches('\n').ends_with(tail));
                }
            }
        }
    }
}
