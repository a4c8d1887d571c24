//! Results that are too long for a prompt: kept whole beside it, with a preview in their place.

use crate::tool::Call;
use caro_base::id;
use caro_policy::text::head_tail;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// A result longer than this many bytes is offloaded,
const LONG_BYTES: usize = 2000;
/// or than this many tokens.
const LONG_TOKENS: usize = 500;
/// Tokens of a preview at most.
const PREVIEW_TOKENS: usize = 150;
/// Lines of a preview at most.
const PREVIEW_LINES: usize = 10;
/// How many of them are the last ones.
const PREVIEW_LAST: usize = 3;

/// The tools whose results are never offloaded, however long: those that read artifacts, and those of the workspace. What
/// is read out of a file of the harness would otherwise become another file of it. The only list of them.
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

/// Of these, the ones that read artifacts: of no use before there is one.
pub const ARTIFACT_TOOLS: &[&str] = NEVER_OFFLOADED.split_at(4).0;

/// True if a result is too long for a prompt.
pub fn is_long(text: &str, count: &dyn Fn(&str) -> usize) -> bool {
    text.len() > LONG_BYTES || (text.len() > LONG_TOKENS && count(text) > LONG_TOKENS)
}

/// What is known about an artifact beside its text.
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
    /// Bytes.
    pub bytes: usize,
    /// Tokens.
    pub tokens: usize,
    /// Lines.
    pub lines: usize,
    /// Milliseconds since 1970, UTC.
    pub created: u64,
}

/// Where artifacts are kept.
pub trait Artifacts: Send + Sync {
    /// Keeps one, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    fn put(&self, artifact: &Artifact, text: &str) -> std::io::Result<()>;

    /// The whole text of one.
    ///
    /// # Errors
    /// `NotFound` if there is none of that id.
    fn get(&self, id: &str) -> std::io::Result<String>;

    /// Every one, oldest first.
    ///
    /// # Errors
    /// If the place cannot be read.
    fn list(&self) -> std::io::Result<Vec<Artifact>>;

    /// The file that an artifact's text is in, where it is one that other programs can read.
    fn place(&self, _: &Artifact) -> Option<PathBuf> {
        None
    }
}

/// A result that was put away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offload {
    /// The artifact.
    pub id: String,
    /// Tokens of the whole.
    pub tokens: usize,
    bytes: usize,
    lines: usize,
    preview: String,
    saved: usize,
    place: Option<PathBuf>,
}

impl Offload {
    /// Puts a result away.
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

    /// What stands in the prompt in its place, with what was `cut` out of it before, in a sentence.
    pub fn message(&self, cut: Option<&str>) -> String {
        let place = self.place.as_ref().map(|path| format!(" in {}", path.display())).unwrap_or_default();
        let said = cut.map(|cut| format!(" {cut}")).unwrap_or_default();
        let what = if cut.is_none() { "The whole" } else { "What is not left out" };
        format!(
            "[TOOL RESPONSE OFFLOADED] id={} size={} bytes, {} lines, {} tokens ({} saved).{said} It begins and ends:\n{}\n\
             [{what} is kept{place}: use read_artifact, tail_artifact or search_artifact with this id.]",
            self.id, self.bytes, self.lines, self.tokens, self.saved, self.preview
        )
    }
}

/// The first lines and the last, within the limits of a preview: how it ended (an error, an exit code) stands at the end.
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

/// What the text is, by how it begins and ends.
fn extension(text: &str) -> &'static str {
    let trimmed = text.trim();
    let framed = |open, close| trimmed.starts_with(open) && trimmed.ends_with(close);
    if (framed('{', '}') || framed('[', ']')) && serde_json::from_str::<serde::de::IgnoredAny>(trimmed).is_ok() {
        "json"
    } else if framed('<', '>') {
        "xml"
    } else {
        "txt"
    }
}

/// Artifacts in memory, for tests and for runs without a folder.
#[derive(Debug, Default)]
pub struct MemoryArtifacts {
    kept: Mutex<Vec<(Artifact, String)>>,
    full: bool,
}

impl MemoryArtifacts {
    /// A place that takes nothing, as a full disk does.
    pub fn full() -> Self {
        Self { kept: Mutex::default(), full: true }
    }
}

impl Artifacts for MemoryArtifacts {
    fn put(&self, artifact: &Artifact, text: &str) -> std::io::Result<()> {
        if self.full {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((artifact.clone(), text.to_owned()));
        Ok(())
    }

    fn get(&self, id: &str) -> std::io::Result<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(a, _)| a.id == id).map(|(_, t)| t.clone()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }

    fn list(&self) -> std::io::Result<Vec<Artifact>> {
        Ok(self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(a, _)| a.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kinds_of_text_have_their_extension() {
        assert_eq!(extension(" {\"a\": 1}\n"), "json");
        assert_eq!(extension("{not json}"), "txt");
        assert_eq!(extension("<a></a>"), "xml");
        assert_eq!(extension("plain"), "txt");
    }

    proptest! {
        #[test]
        fn a_preview_is_short_and_has_both_ends(text in "(\\PC{0,80}\n){0,40}") {
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
