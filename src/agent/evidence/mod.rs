//! What speaks for it that a part of a task is done. A small model believes that it has done what it set out to do, and a
//! command that ends well may have done nothing, or something else. So what came of a call is held against the words of
//! the part: exactly, without a model, and only where the words leave no doubt about what should be there now.
//!
//! - [`change`]: what was to be changed has changed, and nothing else; [`look`]: what was to be shown is shown;
//!   [`order`]: what was to be sorted is in order; [`cover`]: a text about results holds them.
//! - [`text`]: what was written is a text, and enough of it; [`rest`]: where all of a kind were meant, none is left;
//!   [`told`]: what changes come to, in words; [`named`]: which files the task says are to be there; [`files`]: which files are meant, found out a second time.
//!
//! A finding is no error: it is told to whoever goes about the part next, and a run that ends with one ends as not
//! verified. No finding is no proof.

mod change;
mod cover;
mod files;
mod look;
mod order;
mod promised_files;
mod rest;
mod text;
mod told;

pub use cover::lacks;
pub use files::{Measured, NAMED, Query};
pub use promised_files::promised;
pub use text::chosen;
use told::shown;
pub use told::{answer, told};

use super::tool::Effects;
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A file or folder that came to be, or is another one than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path, from the working folder.
    pub path: String,
    /// True for a folder.
    pub folder: bool,
    /// Its text now, if it is small and text.
    pub text: Option<String>,
}

/// What calls changed below the working folder. Paths start there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// What was not there before.
    pub created: Vec<Entry>,
    /// What is no longer there.
    pub removed: Vec<String>,
    /// Files with another text.
    pub changed: Vec<Entry>,
    /// What has other permissions and nothing else.
    pub modes: Vec<String>,
    /// What was there before.
    pub before: BTreeSet<String>,
}

impl Changes {
    /// True if all is as it was.
    pub fn is_empty(&self) -> bool {
        self.created.is_empty() && self.removed.is_empty() && self.changed.is_empty() && self.modes.is_empty()
    }

    /// What these and `later` ones come to, without what stands in the files and what was there before.
    #[must_use]
    pub fn then(&self, later: &Self) -> Self {
        let bare = |entry: &Entry| Entry { text: None, ..entry.clone() };
        let mut all = Self { created: self.created.iter().map(bare).collect(), ..Self::default() };
        all.removed.clone_from(&self.removed);
        all.changed = self.changed.iter().map(bare).collect();
        all.modes.clone_from(&self.modes);
        for path in &later.removed {
            let made = all.created.iter().position(|entry| entry.path == *path);
            match made {
                Some(at) => _ = all.created.remove(at),
                None => all.removed.push(path.clone()),
            }
            all.changed.retain(|entry| entry.path != *path);
            all.modes.retain(|mode| mode != path);
        }
        for entry in &later.created {
            match all.removed.iter().position(|path| *path == entry.path) {
                Some(at) => {
                    all.removed.remove(at);
                    all.changed.push(bare(entry));
                }
                None => all.created.push(bare(entry)),
            }
        }
        let known = |all: &[Entry], path: &str| all.iter().any(|entry| entry.path == path);
        for entry in &later.changed {
            if !known(&all.created, &entry.path) && !known(&all.changed, &entry.path) {
                all.changed.push(bare(entry));
            }
        }
        all.modes.extend(later.modes.iter().filter(|path| !self.modes.contains(path)).cloned());
        all
    }

    /// What is new or another.
    pub fn made(&self) -> impl Iterator<Item = &Entry> {
        self.created.iter().chain(&self.changed)
    }
}

/// A call that ended well, and what it is to be evidence for.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The words of the part.
    pub part: &'a str,
    /// True if more is said beside these words: what is to be left alone, for one.
    pub limited: bool,
    /// The files that its pronoun stands for; empty where it has none.
    pub names: &'a [String],
    /// The command line, where it was one.
    pub command: Option<&'a str>,
    /// What the call was foreseen to do.
    pub effects: &'a Effects,
    /// What it printed.
    pub printed: &'a str,
    /// True if that is all of it.
    pub whole: bool,
    /// How many files that there are it names; `None` if nobody looked.
    pub found: Option<usize>,
    /// What was shown for the parts before.
    pub earlier: &'a [String],
    /// True if a later part goes on with what is shown here.
    pub goes_on: bool,
    /// What it changed below the working folder; `None` if nobody knows.
    pub changes: Option<&'a Changes>,
}

/// What speaks against it that the part is done now; for whoever goes about it next, and for the person.
pub fn finding(claim: &Claim) -> Option<String> {
    // `add up the amounts` adds nothing to anything
    let sums = words(claim.part).windows(2).next().is_some_and(|w| w[0].eq_ignore_ascii_case("add") && w[1] == "up");
    let found = if crate::intent::changes(claim.part) && !sums { change::finding(claim) } else { look::finding(claim) };
    found.or_else(|| text::finding(claim))
}

/// A path as changes have it.
fn normal(path: &str) -> &str {
    path.trim_start_matches("./").trim_end_matches('/')
}

/// The words of a part as they are written, without what stands around them.
fn words(part: &str) -> Vec<&str> {
    let around = |c: char| matches!(c, '"' | '\'' | '`' | ',' | ';' | ':' | '(' | ')' | '!' | '?');
    part.split_whitespace()
        .map(|word| word.trim_matches(around))
        .map(|word| if word.len() > 1 { word.trim_end_matches('.') } else { word })
        .filter(|word| !word.is_empty())
        .collect()
}

fn verb(part: &str) -> String {
    words(part).first().map(|word| word.to_lowercase()).unwrap_or_default()
}

/// A number word or a number.
fn number(word: &str) -> Option<usize> {
    const WORDS: [&str; 11] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    WORDS.iter().position(|w| w.eq_ignore_ascii_case(word)).or_else(|| word.parse().ok())
}

/// Words for a number that is wanted.
static COUNTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)^count\b|\bhow (?:many|much|often)\b|\bnumber of\b|\bcount of\b").ok());

/// True if a number is asked for.
pub fn counts(part: &str) -> bool {
    COUNTS.as_ref().is_some_and(|form| form.is_match(part))
}

/// True for a part that asks for something that can be measured: a number, a size, the largest of them.
pub fn measures(part: &str) -> bool {
    const MEASURES: &[&str] = &[
        "average", "biggest", "height", "largest", "latest", "length", "longest", "newest", "oldest", "shortest",
        "size", "smallest", "width",
    ];
    counts(part) || words(part).iter().any(|w| MEASURES.contains(&w.to_lowercase().as_str()))
}

/// Whole numbers that stand alone in a text.
fn numbers(text: &str) -> Vec<&str> {
    let ends = |c: char| c.is_whitespace() || matches!(c, ':' | ',' | ';' | '=' | '(' | ')' | '|' | '*' | '`' | '"');
    text.split(ends)
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()))
        .collect()
}

#[cfg(test)]
mod tests;
