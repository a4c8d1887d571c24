//! The texts that runs of a session have read, for the run that comes after them: the texts, as long as their files are as they
//! were. A text that the prompt has is not read again; of a file that has changed nothing is told, and it can be read.
//!
//! - [`Known::of`]: what of a call's result is kept. [`current`]: what still holds, within the limits of a prompt.
//! - [`ReadBefore`]: the layer that tells it.

use super::assemble::{ContextProvider, Provided, ProviderError, Query};
use super::tool::{Outcome, ToolResult, file_of, shown_part};
use caro_policy::{is_redacted, is_secret};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// The name of the layer.
pub const LAYER: &str = "read_before";

/// Texts that a run keeps, the latest; and characters of each at most: a longer one is read again.
pub const KEPT: usize = 8;
const TEXT: usize = 2000;
/// Texts that a run is told of, and characters of all of them.
const TOLD: usize = 6;
const TOGETHER: usize = 4000;

/// A text that was read, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its parts, by the names of [`shown_part`]: these say how the files were then.
    pub shows: Vec<String>,
    /// The text, as the model was told it.
    pub text: String,
}

impl Known {
    /// The part of a call's result that is kept: the whole text of files, where it is short. Of what was cut, put aside or screened
    /// nothing is.
    pub fn of(settled: &ToolResult) -> Option<Self> {
        let effects = &settled.call.effects;
        let reads = settled.outcome == Outcome::Succeeded && effects.is_read_only() && !effects.shows.is_empty();
        let short = settled.text.chars().count() <= TEXT && !settled.text.trim().is_empty();
        if !reads || !short || !settled.is_whole() {
            return None;
        }
        Some(Self { shows: effects.shows.clone(), text: settled.text.clone() })
    }

    /// True if each of its files is as it was.
    fn is_current(&self) -> bool {
        self.shows.iter().all(|shown| {
            let file = file_of(shown);
            let part = shown[file.len()..].split_once(':').map(|(_, part)| part);
            part.is_some_and(|part| shown_part(Path::new(file), part) == *shown)
        })
    }

    /// True if it may be told without being asked for again.
    fn is_open(&self) -> bool {
        let secret = self.shows.iter().any(|shown| is_secret(Path::new(file_of(shown))));
        !secret && !is_redacted(&serde_json::Value::from(self.text.as_str()))
    }
}

/// Those of these that still hold, the latest first: each text once, and no more than a prompt has room for.
pub fn current(known: Vec<Known>) -> Vec<Known> {
    let (mut told, mut length) = (Vec::new(), 0);
    let mut seen = BTreeSet::new();
    for one in known {
        if !seen.insert(one.shows.clone()) || !one.is_open() || !one.is_current() {
            continue;
        }
        length += one.text.chars().count();
        if told.len() == TOLD || length > TOGETHER {
            break;
        }
        told.push(one);
    }
    told
}

/// The layer of what was read before. Texts that others have written: data.
pub struct ReadBefore(pub Vec<Known>);

impl ContextProvider for ReadBefore {
    fn name(&self) -> &'static str {
        LAYER
    }

    fn priority(&self) -> u16 {
        // behind the files that the task itself names
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
    fn a5_what_was_cut_failed_or_is_long_is_not_kept() {
        let path = Path::new("/tmp/a.txt");
        let long = "x".repeat(TEXT + 1);
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
    fn a5_secrets_are_not_told_again_and_there_is_a_limit() {
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
        assert_eq!(current(short).len(), TOLD);
    }
}
