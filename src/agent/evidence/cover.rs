//! Texts about results: what was found is in them.

use super::{counts, normal, numbers};
use crate::state::facts;
use std::path::Path;

/// Lines of a result that a text is expected to hold: of a longer one a choice is made.
const LINES: usize = 10;
/// What is told as missing, at most.
const TOLD: usize = 6;

/// What speaks against a text that was written for a part: what of the results it leaves out, and how much it has.
pub fn lacks<'a>(part: &str, text: &str, results: impl Iterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let missing = left_out(part, text, results);
    if missing.is_empty() {
        return super::text::fewer(part, text);
    }
    Some(format!("What was written leaves out {}.", missing.join(", ")))
}

/// What of the results is not in a text that was to be written about them: the numbers that were asked for, and the
/// files that the latest of them names. `results` are parts with what was shown for each.
fn left_out<'a>(part: &str, text: &str, results: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    // `a report with the largest`: a choice
    if part.split_whitespace().any(|w| matches!(w.to_lowercase().as_str(), "with" | "about" | "only" | "of")) {
        return Vec::new();
    }
    let mut wanted: Vec<String> = Vec::new();
    let mut files: Vec<String> = Vec::new();
    for (goal, printed) in results.filter(|(_, printed)| printed.lines().count() <= LINES) {
        if counts(goal) {
            let rows = printed.lines().filter(|line| !line.trim_end().ends_with(" total"));
            wanted.extend(rows.flat_map(numbers).map(str::to_owned));
        }
        let named: Vec<String> =
            facts(printed).filter(|fact| fact.contains('.') && fact.contains(char::is_alphabetic)).collect();
        if !named.is_empty() {
            files = named;
        }
    }
    let lower = text.to_lowercase();
    let has_number = |n: &String| lower.split(|c: char| !c.is_ascii_digit()).any(|word| word == n);
    let base = |name: &String| {
        Path::new(normal(name)).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let mut missing: Vec<String> = wanted.into_iter().filter(|n| !has_number(n)).collect();
    missing.extend(files.into_iter().filter(|name| !lower.contains(&base(name))));
    missing.dedup();
    missing.truncate(TOLD);
    missing
}
