//! What speaks for it that a part of a task is done. A small model believes that it has done what it set out to do, and a
//! command that ends well may have done nothing, or something else. So what came of a call is held against the words of
//! the part: exactly, without a model, and only where the words leave no doubt about what should be there now.
//!
//! - [`change`]: what was to be changed has changed, and nothing else; [`look`]: what was to be shown is shown;
//!   [`order`]: what was to be sorted is in order; [`cover`]: a text about results holds them.
//! - [`text`]: what was written is a text, and enough of it; [`rest`]: where all of a kind were meant, none is left;
//!   [`told`]: what changes come to, in words; [`promised_files`]: which files the task says are to be there; [`files`]: which files are meant, found out a second time.
//!
//! A finding is no error: it is told to whoever goes about the part next, and a run that ends with one ends as not
//! verified. No finding is no proof.

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
pub use cover::lacks;
pub use files::{Measured, NAMED, Query};
pub use promised_files::promised;
pub use text::chosen;
use told::shown;
pub use told::{answer, told};

use super::tool::Effects;
use regex::Regex;
use std::sync::LazyLock;

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
    let found = if caro_intent::changes(claim.part) && !sums { change::finding(claim) } else { look::finding(claim) };
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
