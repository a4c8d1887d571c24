//! Finds `grep -v paid invoices.csv` where "paid" is the name of a column, so that only the first line contains the
//! word.

use super::CheckContext;
use super::edit::warning;
use super::separator::{names, separator_of};
use caro_shell::{Finding, Invocation, Word};
use std::path::Path;

/// Checks one `grep`; `lines` are the first lines of the `file` that it reads.
pub(super) fn check(cx: &CheckContext, grep: &Invocation, file: &Word, lines: &[String]) -> Option<Finding> {
    if !matches!(grep.name(), Some("grep" | "egrep" | "fgrep")) {
        return None;
    }
    // the request asks for the names of the columns, or the command for the first line
    let request = cx.request.to_lowercase();
    if ["header", "column", "field"].iter().any(|word| request.contains(word)) || grep.stdin_pipe && takes_lines(cx) {
        return None;
    }
    // `cat a.csv b.csv | grep -v day` drops the first lines on purpose
    let reads_several = || cx.script.commands.iter().any(|c| c.name() == Some("cat") && c.operands().count() > 1);
    if grep.stdin_pipe && grep.has_option(Some('v'), "invert-match") && reads_several() {
        return None;
    }
    let (header, rows) = lines.split_first().filter(|(_, rows)| !rows.is_empty())?;
    let pattern = grep.operands().next()?;
    let word = pattern.value.as_deref()?.to_lowercase();
    let column = names(header, separator_of(lines)?).position(|name| name == word)?;
    // the word is also a value in the rows
    let is_value = cx.cwd.is_some_and(|cwd| has_in_rows(&cwd.join(&file.text), &word));
    if rows.iter().any(|row| row.to_lowercase().contains(&word)) || is_value {
        return None;
    }
    let why = format!("{} is the name of column {} of {}, and no value there", pattern.raw, column + 1, file.raw);
    let mut finding = warning("column-name", pattern, why, None);
    finding.evidence = lines.iter().take(3).cloned().collect();
    Some(finding)
}

/// True if the script takes only some of the lines.
fn takes_lines(cx: &CheckContext) -> bool {
    cx.script.commands.iter().any(|c| matches!(c.name(), Some("head" | "tail")))
}

/// Most bytes of a file in which a word is searched.
const MAX_FILE: u64 = 4 << 20;

/// True if a line after the first contains the word, or the file is too long to tell.
fn has_in_rows(file: &Path, word: &str) -> bool {
    if file.metadata().is_ok_and(|m| m.len() > MAX_FILE) {
        return true;
    }
    let text = caro_base::files::read(file, MAX_FILE).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().skip(1).any(|line| line.to_lowercase().contains(word))
}
