//! Checks that a text about results contains them.

use super::{counts, numbers, trim_path};
use crate::state::facts;
use std::path::Path;

/// Most lines of a result that a text must contain in full; of a longer one a text may choose.
const MAX_LINES: usize = 10;
/// Most missing facts that are reported.
const MAX_REPORTED: usize = 6;

/// Returns a finding against a text that was written for a part: the results it leaves out, or too few items.
pub fn omissions<'a>(part: &str, text: &str, results: impl Iterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let missing = missing_facts(part, text, results);
    if missing.is_empty() {
        return super::text::too_few_items(part, text);
    }
    Some(format!("What was written leaves out {}.", missing.join(", ")))
}

/// Returns the facts that are missing in a text about results: the numbers that were asked for, and the files named
/// by the latest result that names any. `results` are parts with their outputs.
fn missing_facts<'a>(part: &str, text: &str, results: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    // `a report with the largest` asks for a selection
    if part.split_whitespace().any(|w| matches!(w.to_lowercase().as_str(), "with" | "about" | "only" | "of")) {
        return Vec::new();
    }
    let mut wanted: Vec<String> = Vec::new();
    let mut files: Vec<String> = Vec::new();
    for (goal, printed) in results.filter(|(_, printed)| printed.lines().count() <= MAX_LINES) {
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
        Path::new(trim_path(name)).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let mut missing: Vec<String> = wanted.into_iter().filter(|n| !has_number(n)).collect();
    missing.extend(files.into_iter().filter(|name| !lower.contains(&base(name))));
    missing.dedup();
    missing.truncate(MAX_REPORTED);
    missing
}
