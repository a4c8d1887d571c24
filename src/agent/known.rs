//! Passes the texts that the runs of a session have read on to its next run, so that unchanged files are not read
//! again. A file that has changed since is left out, and can be read again.
//!
//! - [`Known::of`]: the text of a call's result that is stored. [`current`]: those that still hold, within the limits
//!   of a prompt. [`ReadBefore`]: the layer with their texts.

use super::assemble::{ContextProvider, Provided, ProviderError, Query};
use super::tool::{Outcome, ToolResult, file_of, shown_part};
use caro_policy::{is_redacted, is_secret};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// The name of the layer.
pub const LAYER: &str = "read_before";

/// Most texts that a run stores, the latest ones.
pub const MAX_STORED: usize = 8;
/// Most characters of a stored text; a longer one is read again.
const MAX_TEXT: usize = 2000;
/// Most texts in the layer, and most characters of all of them together.
const MAX_SHOWN: usize = 6;
const MAX_TOTAL: usize = 4000;

/// A text that was read in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its parts, named by [`shown_part`]: a name holds the state of its file when it was read.
    pub shows: Vec<String>,
    /// The text, as the model was shown it.
    pub text: String,
}

impl Known {
    /// Returns the text of a call that read short files in full; `None` for any other call, and if the text was cut,
    /// moved to the workspace or screened.
    pub fn of(result: &ToolResult) -> Option<Self> {
        let effects = &result.call.effects;
        let reads = result.outcome == Outcome::Succeeded && effects.is_read_only() && !effects.shows.is_empty();
        let short = result.text.chars().count() <= MAX_TEXT && !result.text.trim().is_empty();
        if !reads || !short || !result.is_whole() {
            return None;
        }
        Some(Self { shows: effects.shows.clone(), text: result.text.clone() })
    }

    /// True if none of its files has changed.
    fn is_current(&self) -> bool {
        self.shows.iter().all(|shown| {
            let file = file_of(shown);
            let part = shown[file.len()..].split_once(':').map(|(_, part)| part);
            part.is_some_and(|part| shown_part(Path::new(file), part) == *shown)
        })
    }

    /// True if it holds no secret: a secret needs a new permission in each run.
    fn may_be_shown(&self) -> bool {
        let secret = self.shows.iter().any(|shown| is_secret(Path::new(file_of(shown))));
        !secret && !is_redacted(&serde_json::Value::from(self.text.as_str()))
    }
}

/// Returns the texts whose files have not changed, each once, up to the limits of the layer. Expects the latest first.
pub fn current(known: Vec<Known>) -> Vec<Known> {
    let (mut shown, mut length) = (Vec::new(), 0);
    let mut seen = BTreeSet::new();
    for one in known {
        if !seen.insert(one.shows.clone()) || !one.may_be_shown() || !one.is_current() {
            continue;
        }
        length += one.text.chars().count();
        if shown.len() == MAX_SHOWN || length > MAX_TOTAL {
            break;
        }
        shown.push(one);
    }
    shown
}

/// The layer of texts that were read before. They are untrusted: data.
pub struct ReadBefore(pub Vec<Known>);

impl ContextProvider for ReadBefore {
    fn name(&self) -> &'static str {
        LAYER
    }

    fn priority(&self) -> u16 {
        // after the files that the task itself names
        32
    }

    fn provide(&self, _: &Query, _: usize) -> Result<Option<Provided>, ProviderError> {
        let text = |known: &Known| {
            let mut files: Vec<&str> = known.shows.iter().map(|shown| file_of(shown)).collect();
            files.dedup();
            format!("{} was read before, and has not changed:\n{}", files.join(", "), known.text.trim_end())
        };
        let text = self.0.iter().map(text).collect::<Vec<_>>().join("\n\n");
        Ok((!text.is_empty()).then_some(Provided { text, trusted: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tool::{Args, Call, Effects};
    use super::*;
    use caro_base::id;

    fn read(path: &Path, text: &str) -> ToolResult {
        let effects = Effects { reads: vec![path.into()], shows: vec![shown_part(path, "")], ..Effects::default() };
        let call = Call { id: "s1c1".into(), tool: "read".into(), args: Args::new(), effects };
        ToolResult { call, outcome: Outcome::Succeeded, text: text.into(), hash: id::hash(text), ms: 0 }
    }

    #[test]
    fn a5_a_text_is_known_until_its_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.txt");
        std::fs::write(&file, "one\n").unwrap();
        let known = Known::of(&read(&file, "one\n")).unwrap();
        assert_eq!(current(vec![known.clone(); 2]), vec![known.clone()], "once");
        std::fs::write(&file, "one and more\n").unwrap();
        assert_eq!(current(vec![known.clone()]), []);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(current(vec![known]), []);
    }

    #[test]
    fn a5_long_cut_or_failed_reads_are_not_stored() {
        let path = Path::new("/tmp/a.txt");
        let long = "x".repeat(MAX_TEXT + 1);
        assert!(Known::of(&read(path, "one")).is_some());
        assert!(Known::of(&read(path, &long)).is_none());
        assert!(Known::of(&read(path, "  \n")).is_none());
        assert!(Known::of(&ToolResult { hash: id::hash("one and more"), ..read(path, "one") }).is_none());
        assert!(Known::of(&ToolResult { outcome: Outcome::Failed, ..read(path, "one") }).is_none());
        let mut writer = read(path, "one");
        writer.call.effects.writes = vec!["/tmp/b.txt".into()];
        assert!(Known::of(&writer).is_none());
    }

    #[test]
    fn a5_secrets_are_left_out_and_there_is_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str, text: &str| {
            let file = dir.path().join(name);
            std::fs::write(&file, text).unwrap();
            Known::of(&read(&file, text)).unwrap()
        };
        assert_eq!(current(vec![of("id_rsa", "key"), of("b.txt", "the key is [redacted]")]), []);
        let long: Vec<Known> = (0..9).map(|i| of(&format!("{i}.txt"), &"x".repeat(900))).collect();
        assert_eq!(current(long.clone()), long[..4], "the latest that have room");
        let short: Vec<Known> = (0..9).map(|i| of(&format!("s{i}.txt"), "x")).collect();
        assert_eq!(current(short).len(), MAX_SHOWN);
    }
}
