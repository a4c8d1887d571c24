//! The state of a run: files read and changed, calls made, errors. Plain data that guards read and the turn stores.

use super::event::Tokens;
use super::known::{self, Known};
use super::tool::{Call, Effects, Outcome, ToolResult, file_of};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The number of changes to a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Changes so far.
    pub version: u64,
}

/// The limits of what a run may cost; 0 for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Requests to the model.
    pub requests: u64,
    /// Tokens, prompts and completions.
    pub tokens: u64,
}

/// The cost of requests to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Requests to the model.
    pub requests: u64,
    /// Their tokens.
    pub tokens: Tokens,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, more: Self) {
        self.requests += more.requests;
        self.tokens.request += more.tokens.request;
        self.tokens.cached += more.tokens.cached;
        self.tokens.response += more.tokens.response;
    }
}

/// One call, as the loop guard sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The tool and its arguments, see [`Call::signature`].
    pub signature: String,
    /// SHA-256 of the output.
    pub output: String,
    /// [`RunState::changes`] when it was called.
    pub changes: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// True once its result has been folded out of the prompt: the call may be repeated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub folded: bool,
}

/// The state of a run. Every lookup takes O(1) or O(log n).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// The changes to every file, by path.
    pub files: BTreeMap<String, FileState>,
    /// The version of its file when each text (a file or a part of one) was last shown.
    pub shown: BTreeMap<String, u64>,
    /// Files that were read.
    pub visited: BTreeSet<String>,
    /// Files that were changed.
    pub modified: BTreeSet<String>,
    /// The number of all changes, foreseen or not.
    pub changes: u64,
    /// The number of calls whose changes could not be foreseen: any file may have changed in each of them.
    pub unforeseen: u64,
    /// The latest calls, oldest first, at most [`RunState::REMEMBERED`].
    pub calls: Vec<Record>,
    /// The number of calls so far.
    pub total_calls: u64,
    /// The number of latest steps in a row in which nothing succeeded and something failed.
    pub errors_in_a_row: u32,
    /// Requests to the model so far.
    pub requests: u64,
    /// Tokens so far, prompts and completions.
    pub tokens: u64,
    /// The limits of requests and tokens.
    #[serde(default)]
    pub limits: Limits,
    /// The reason, once the run repeats itself: from then on it may only answer.
    pub stuck: Option<String>,
    /// The number of read-only calls that succeeded.
    pub looks: u64,
    /// The number of steps in which something succeeded.
    pub successes: u64,
    /// Numbers and file names that tools have shown.
    pub facts: BTreeSet<String>,
    /// Texts that were read, the latest last, for the next run of the session; at most [`known::MAX_STORED`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Known>,
    /// Kinds of calls that the user has allowed for the rest of the run.
    pub always: BTreeSet<String>,
}

impl RunState {
    /// Most calls that are remembered.
    pub const REMEMBERED: usize = 50;

    /// Most facts that are remembered.
    const MAX_FACTS: usize = 2000;

    /// Returns the version of a file, which grows with every change to it.
    pub fn version(&self, path: &str) -> u64 {
        self.files.get(path).map_or(0, |f| f.version) + self.unforeseen
    }

    /// True if a text was shown before and its file has not changed since.
    pub fn is_redundant_read(&self, shown: &str) -> bool {
        self.shown.get(shown).is_some_and(|version| *version == self.version(file_of(shown)))
    }

    /// Records the result of a call.
    pub fn settle(&mut self, result: &ToolResult) {
        let ToolResult { call, outcome, hash, .. } = result;
        if *outcome == Outcome::Succeeded {
            self.record_reads(&call.effects);
            self.looks += u64::from(call.effects.is_read_only());
        }
        if let Some(known) = Known::of(result) {
            self.read.push(known);
            self.read.drain(..self.read.len().saturating_sub(known::MAX_STORED));
        }
        // a test run that fails still prints how many tests failed
        if matches!(outcome, Outcome::Succeeded | Outcome::FailedLate) {
            self.learn(&result.text);
            // the sums of a shortened text would be wrong
            if result.is_whole() {
                let sums: Vec<String> = totals(&result.text).iter().map(u64::to_string).collect();
                self.learn(&sums.join(" "));
            }
        }
        // a call that failed or timed out may still have written
        if !matches!(outcome, Outcome::Blocked | Outcome::Denied) {
            self.record_writes(call, *outcome == Outcome::Succeeded);
        }
        let (signature, changes) = (call.signature(), self.changes);
        self.calls.push(Record { signature, output: hash.clone(), changes, outcome: *outcome, folded: false });
        self.total_calls += 1;
        if self.calls.len() > Self::REMEMBERED {
            self.calls.remove(0);
        }
    }

    /// Records that only the results of the latest `left` calls are still in the prompt: the others may be repeated,
    /// and all files may be read again.
    pub fn fold(&mut self, left: usize) {
        let folded = self.calls.len().saturating_sub(left);
        self.calls.iter_mut().take(folded).for_each(|call| call.folded = true);
        self.shown.clear();
    }

    /// Records texts that are in the prompt from the start, read by earlier runs, as shown.
    pub fn recall(&mut self, known: &[Known]) {
        for shown in known.iter().flat_map(|one| &one.shows) {
            self.record_shown(shown);
        }
    }

    /// Adds the cost of requests to the model.
    pub fn charge(&mut self, cost: Cost) {
        self.requests += cost.requests;
        self.tokens += cost.tokens.request + cost.tokens.response;
    }

    /// True if a tool has shown this number or file name. Always true once so many facts are stored that later ones are
    /// not recorded.
    pub fn has_shown(&self, fact: &str) -> bool {
        self.facts.len() >= Self::MAX_FACTS || self.facts.contains(fact) || self.has_measured(fact)
    }

    /// True if a tool has shown this size in another unit, or rounded to other digits.
    fn has_measured(&self, fact: &str) -> bool {
        let Some(size) = Size::of(fact) else { return false };
        self.facts.iter().any(|shown| match Size::of(shown) {
            Some(shown) => size.is_near(&shown),
            None => shown.parse().is_ok_and(|bytes: f64| size.is_near(&Size { bytes: [bytes; 2], step: [0.0; 2] })),
        })
    }

    /// Records the facts of a text as shown.
    pub fn learn(&mut self, text: &str) {
        let room = Self::MAX_FACTS.saturating_sub(self.facts.len());
        let plain = without_thousands(text);
        self.facts.extend(facts(text).chain(facts(&plain)).chain(date_parts(text)).take(room));
    }

    fn record_reads(&mut self, effects: &Effects) {
        for path in &effects.reads {
            self.visited.insert(name(path));
        }
        effects.shows.iter().for_each(|shown| self.record_shown(shown));
    }

    fn record_shown(&mut self, shown: &str) {
        let version = self.version(file_of(shown));
        self.visited.insert(file_of(shown).to_owned());
        self.shown.insert(shown.to_owned(), version);
    }

    fn record_writes(&mut self, call: &Call, succeeded: bool) {
        for path in &call.effects.writes {
            self.files.entry(name(path)).or_default().version += 1;
            self.changes += 1;
            if succeeded {
                self.modified.insert(name(path));
            }
        }
        if call.effects.opaque {
            self.unforeseen += 1;
            self.changes += 1;
        }
    }

    /// Records a whole batch: a step in which nothing succeeded and something failed is an error.
    pub fn settle_batch(&mut self, batch: &[ToolResult]) {
        let succeeded = batch.iter().any(|s| s.outcome == Outcome::Succeeded);
        let failed = batch.iter().any(|s| s.outcome.is_error());
        if succeeded {
            self.errors_in_a_row = 0;
            self.successes += 1;
        } else if failed {
            self.errors_in_a_row += 1;
        }
    }

    /// Returns the counts for the report.
    pub fn stats(&self) -> Stats {
        Stats { visited_files: self.visited.len(), modified_files: self.modified.len() }
    }
}

/// Counts of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Files that were read.
    pub visited_files: usize,
    /// Files that were changed.
    pub modified_files: usize,
}

/// A size with a unit, read in thousands and in 1024s.
struct Size {
    bytes: [f64; 2],
    /// The least difference that its digits can show.
    step: [f64; 2],
}

impl Size {
    /// Parses `4.0k`, `10kb`, `1.5mib`; `None` for anything else, and for a number without a unit.
    fn of(word: &str) -> Option<Self> {
        let digits = word.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = (&word[..digits], word[digits..].to_ascii_lowercase());
        let power = ["b", "k", "m", "g", "t"].iter().position(|letter| unit.starts_with(letter))? as i32;
        if !(unit.len() == 1 || power > 0 && matches!(&unit[1..], "b" | "ib")) {
            return None;
        }
        let decimals = number.split_once('.').map_or(0, |(_, behind)| behind.len()) as i32;
        let value: f64 = number.parse().ok()?;
        let units = [1000_f64, 1024.0].map(|base| base.powi(power));
        Some(Self { bytes: units.map(|unit| value * unit), step: units.map(|unit| unit / 10_f64.powi(decimals)) })
    }

    /// True if both may be the same size, each rounded up or down to its digits.
    fn is_near(&self, other: &Self) -> bool {
        (0..2).any(|a| (0..2).any(|b| (self.bytes[a] - other.bytes[b]).abs() < self.step[a].max(other.step[b])))
    }
}

/// True for a character that separates words, numbers and file names.
fn is_separator(c: char) -> bool {
    !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Returns the facts of a text that can be checked: numbers of two or more digits, sizes with a unit, and file names
/// with an extension but without their folder.
pub fn facts(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(is_separator).filter_map(|word| {
        let word = word.trim_matches(['.', '-', '_']);
        let number = word.len() >= 2 && word.bytes().all(|b| b.is_ascii_digit());
        let is_file_name = word.rsplit_once('.').is_some_and(|(stem, extension)| {
            stem.chars().any(char::is_alphabetic)
                && (1..=5).contains(&extension.len())
                && extension.chars().all(|c| c.is_ascii_alphanumeric())
        });
        let is_abbreviation = ["e.g", "i.e"].iter().any(|latin| word.eq_ignore_ascii_case(latin));
        (number || is_file_name && !is_abbreviation || Size::of(word).is_some()).then(|| word.to_lowercase())
    })
}

/// Removes the commas between the thousands of numbers: `1,234` becomes `1234`.
pub fn without_thousands(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let comma =
        |at: usize| at > 0 && digit(at - 1) && digit(at + 1) && digit(at + 2) && digit(at + 3) && !digit(at + 4);
    text.char_indices().filter(|&(at, c)| c != ',' || !comma(at)).map(|(_, c)| c).collect()
}

/// Returns the numbers in words like `2026-11-22`: an answer may give them in another order.
fn date_parts(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(is_separator).filter(|word| word.contains(['-', '.']));
    let numbers = words.flat_map(|word| word.split(|c: char| !c.is_ascii_digit()));
    numbers.filter(|number| number.len() >= 2).map(str::to_owned)
}

/// Returns the sums of the columns of a text whose lines all have the same count of numbers: an answer may give them
/// although no tool has shown them. A last line with a total, and notes in parentheses, are not added.
fn totals(text: &str) -> Vec<u64> {
    let is_note = |line: &&str| line.starts_with('(') && line.ends_with(')');
    let mut lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_note(line)).collect();
    if lines.last().is_some_and(|line| line.to_lowercase().contains("total")) {
        lines.pop();
    }
    let numbers = |line: &&str| line.split(is_separator).filter_map(|word| word.parse().ok()).collect::<Vec<u64>>();
    let rows: Vec<Vec<u64>> = lines.iter().map(numbers).filter(|row| !row.is_empty()).collect();
    let width = rows.first().map_or(0, Vec::len);
    if rows.len() < 2 || rows.iter().any(|row| row.len() != width) {
        return Vec::new();
    }
    let sum = |column: usize| rows.iter().try_fold(0u64, |sum, row| sum.checked_add(row[column]));
    (0..width).filter_map(sum).collect()
}

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Args;
    use caro_base::id;
    use proptest::prelude::*;
    use std::path::PathBuf;

    #[test]
    fn numbers_and_dates_match_in_other_notations() {
        let mut state = RunState::default();
        state.learn("1234567 a.bin\n2026-11-22 b.bin 7,654,321");
        for shown in ["1234567", "22", "2026", "7654321", "654"] {
            assert!(state.has_shown(shown), "{shown}");
        }
        assert_eq!(
            without_thousands("1,234,567 and 1,2 and 12,3456, or 5,678."),
            "1234567 and 1,2 and 12,3456, or 5678."
        );
        assert_eq!(facts("e.g. two, i.e. a.md").collect::<Vec<_>>(), ["a.md"]);
    }

    fn result(effects: Effects, outcome: Outcome) -> ToolResult {
        let call = Call { id: "s1c1".into(), tool: "t".into(), args: Args::new(), effects };
        ToolResult { call, outcome, text: String::new(), hash: String::new(), ms: 0 }
    }

    fn read(path: &str) -> ToolResult {
        result(Effects { reads: vec![path.into()], shows: vec![path.into()], ..Effects::default() }, Outcome::Succeeded)
    }

    fn write(path: &str) -> ToolResult {
        result(Effects { writes: vec![PathBuf::from(path)], ..Effects::default() }, Outcome::Succeeded)
    }

    #[test]
    fn a_read_is_redundant_until_the_file_changes() {
        let mut state = RunState::default();
        assert!(!state.is_redundant_read("/a"));
        state.settle(&read("/a"));
        assert!(state.is_redundant_read("/a"));
        assert!(!state.is_redundant_read("/a#101"), "another part");
        state.settle(&write("/b"));
        assert!(state.is_redundant_read("/a"), "another file");
        state.settle(&write("/a"));
        assert!(!state.is_redundant_read("/a"));
        state.settle(&read("/a"));
        assert!(state.is_redundant_read("/a"));
        state.settle(&result(Effects { opaque: true, ..Effects::default() }, Outcome::Failed));
        assert!(!state.is_redundant_read("/a"), "nobody knows what it did");
        assert_eq!(state.stats(), Stats { visited_files: 1, modified_files: 2 });
    }

    #[test]
    fn numbers_and_names_are_facts() {
        let found: Vec<String> = facts("- `logs/Web.log`: 17 errors (v1.2), 5 warnings. See a-b_c.txt.").collect();
        assert_eq!(found, ["web.log", "17", "v1.2", "a-b_c.txt"]);
    }

    #[test]
    fn a_failed_read_does_not_count_as_read() {
        let mut state = RunState::default();
        state.settle(&ToolResult { outcome: Outcome::Failed, ..read("/a") });
        assert!(!state.is_redundant_read("/a"));
        assert_eq!(state.stats().visited_files, 0);
    }

    #[test]
    fn the_output_of_failing_tests_is_learned_and_counts_as_an_error() {
        let mut state = RunState::default();
        let failed = |outcome| ToolResult { text: "3 failed, 14 passed".into(), ..result(Effects::default(), outcome) };
        state.settle(&failed(Outcome::Failed));
        assert!(!state.has_shown("14"));
        let late = failed(Outcome::FailedLate);
        state.settle(&late);
        assert!(state.has_shown("14"));
        state.settle_batch(&[late]);
        assert_eq!(state.errors_in_a_row, 1);
    }

    #[test]
    fn errors_in_a_row_end_with_a_success() {
        let mut state = RunState::default();
        let failed = result(Effects::default(), Outcome::Failed);
        state.settle_batch(std::slice::from_ref(&failed));
        state.settle_batch(std::slice::from_ref(&failed));
        assert_eq!(state.errors_in_a_row, 2);
        state.settle_batch(&[result(Effects::default(), Outcome::Blocked)]);
        assert_eq!(state.errors_in_a_row, 2, "a blocked call is neither");
        state.settle_batch(&[failed, read("/a")]);
        assert_eq!(state.errors_in_a_row, 0);
    }

    proptest! {
        /// The definition: shown, and no change of that file since.
        #[test]
        fn redundancy_matches_its_definition(ops in prop::collection::vec((0u8..3, 0usize..3), 0..40)) {
            let paths = ["/a", "/b", "/c#5"];
            let mut state = RunState::default();
            let mut fresh = [false; 3];
            for (op, at) in ops {
                match op {
                    0 => { state.settle(&read(paths[at])); fresh[at] = true; }
                    1 => { state.settle(&write(file_of(paths[at]))); fresh[at] = false; }
                    _ => {
                        state.settle(&result(Effects { opaque: true, ..Effects::default() }, Outcome::Succeeded));
                        fresh = [false; 3];
                    }
                }
                for (path, fresh) in paths.iter().zip(fresh) {
                    prop_assert_eq!(state.is_redundant_read(path), fresh);
                }
            }
        }
    }

    #[test]
    fn sums_of_columns_count_as_shown() {
        for (text, sums) in [
            ("a.log:17\nb.log:55\nc.log:42\n", vec![114]),
            ("12 30 a\n\n10 31 b\n", vec![22, 61]),
            ("./a:0\n./b:3\n(exit code 1)", vec![3]),
            ("  5 a.txt\n  3 b.txt\n  8 total\n", vec![8]),
            ("name,n\nx,40\ny,2\n", vec![42]),
            ("one 1\ntwo 1 2\n", vec![]),
            ("17\n", vec![]),
            ("18446744073709551615\n1\n", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(totals(text), sums, "{text}");
        }
        let mut state = RunState::default();
        let shown = |text: &str, whole: &str| ToolResult { text: text.into(), hash: id::hash(whole), ..read("a") };
        state.settle(&shown("a.log:17\nb.log:55\n", "a.log:17\nb.log:55\n"));
        state.settle(&shown("a.log:100\nb.log:300\n", "a.log:100\nb.log:300\nc.log:1\n"));
        assert!(state.has_shown("72") && state.has_shown("300"));
        assert!(!state.has_shown("400"), "it is a part of what was printed");
    }
}
