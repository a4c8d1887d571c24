//! Checks whether a part of a task is done. A small model believes that it has done what it planned, and a command that
//! succeeds may have done nothing, or something else. So the result of a call is compared with the words of the part:
//! exactly, without a model, and only where the words leave no doubt about the expected result.
//!
//! - `change`: the expected changes were made, and no others; `look`: the expected output was shown; `order`:
//!   sorted rows are in order; `cover`: a text about results contains them.
//! - `text`: a written file holds a text of the expected length; `rest`: where all files of a kind were meant,
//!   none is left; `told`: describes changes in words; `promised_files`: the files that the task says will exist;
//!   `files`: finds the files that a part asks for a second time.
//!
//! A finding is no error: it is shown to the model in its next attempt, and a run that ends with one is not verified.
//! The absence of findings proves nothing.

mod change;
mod changes;
mod cover;
mod files;
mod look;
mod order;
mod promised_files;
mod rest;
mod text;
mod told;

pub use changes::{Changes, Entry};
pub use cover::omissions;
pub use files::{MAX_NAMED, Measured, Query};
pub use promised_files::promised;
pub use text::wanted_count;
use told::shown;
pub use told::{answer, describe};

use super::tool::Effects;
use regex::Regex;
use std::sync::LazyLock;

/// A call that succeeded, and the part of the task that it is meant to do.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The words of the part.
    pub part: &'a str,
    /// True if the task restricts the part further, for example by what to leave alone.
    pub limited: bool,
    /// The files that its pronoun stands for; empty if it has none.
    pub names: &'a [String],
    /// The command line, if the call ran one.
    pub command: Option<&'a str>,
    /// The foreseen effects of the call.
    pub effects: &'a Effects,
    /// Its output.
    pub printed: &'a str,
    /// True if the output is complete.
    pub whole: bool,
    /// The number of existing files named in the output; `None` if unknown.
    pub found: Option<usize>,
    /// The outputs of the parts before.
    pub earlier: &'a [String],
    /// True if a later part continues with this output.
    pub goes_on: bool,
    /// The changes below the working folder; `None` if unknown.
    pub changes: Option<&'a Changes>,
}

/// Returns the evidence against the claim, for the model's next attempt and for the user; `None` if there is none.
pub fn finding(claim: &Claim) -> Option<String> {
    // `add up the amounts` adds nothing to anything
    let sums = words(claim.part).windows(2).next().is_some_and(|w| w[0].eq_ignore_ascii_case("add") && w[1] == "up");
    let found = if caro_intent::changes(claim.part) && !sums { change::finding(claim) } else { look::finding(claim) };
    found.or_else(|| text::finding(claim))
}

/// Removes a leading `./` and a trailing `/`, so that a path compares equal to those in [`Changes`].
fn trim_path(path: &str) -> &str {
    path.trim_start_matches("./").trim_end_matches('/')
}

/// Splits a part into words without quotes and punctuation.
fn words(part: &str) -> Vec<&str> {
    let around = |c: char| matches!(c, '"' | '\'' | '`' | ',' | ';' | ':' | '(' | ')' | '!' | '?');
    part.split_whitespace()
        .map(|word| word.trim_matches(around))
        .map(|word| if word.len() > 1 { word.trim_end_matches('.') } else { word })
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns the first word of a part in lower case.
fn verb(part: &str) -> String {
    words(part).first().map(|word| word.to_lowercase()).unwrap_or_default()
}

/// Parses a number or a number word up to ten.
fn number(word: &str) -> Option<usize> {
    const WORDS: [&str; 11] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    WORDS.iter().position(|w| w.eq_ignore_ascii_case(word)).or_else(|| word.parse().ok())
}

/// The phrases that ask for a number.
static COUNTS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)^count\b|\bhow (?:many|much|often)\b|\bnumber of\b|\bcount of\b").ok());

/// True if a part asks for a number.
pub fn counts(part: &str) -> bool {
    COUNTS.as_ref().is_some_and(|form| form.is_match(part))
}

/// True if a part asks for something measurable: a number, a size, the largest of several.
pub fn measures(part: &str) -> bool {
    const MEASURES: &[&str] = &[
        "average", "biggest", "height", "largest", "latest", "length", "longest", "newest", "oldest", "shortest",
        "size", "smallest", "width",
    ];
    counts(part) || words(part).iter().any(|w| MEASURES.contains(&w.to_lowercase().as_str()))
}

/// Returns the whole numbers that are words of their own in a text.
fn numbers(text: &str) -> Vec<&str> {
    let splits = |c: char| c.is_whitespace() || matches!(c, ':' | ',' | ';' | '=' | '(' | ')' | '|' | '*' | '`' | '"');
    text.split(splits)
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()))
        .collect()
}

#[cfg(test)]
mod tests;
