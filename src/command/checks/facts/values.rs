//! Finds comparisons such as `$7 == "Paid"` where the column has `paid`, so that nothing is equal.

use super::awk::is_awk;
use super::csv::is_csv;
use super::edit::{Edits, warning};
use super::separator::separator_of;
use super::{CheckContext, read_text};
use caro_shell::{Finding, Invocation, Word};
use regex::Regex;
use std::sync::LazyLock;

/// Matches `$7 == "Paid"`.
static EQUAL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"\$(\d{1,2})\s*[!=]=\s*"([^"\\]+)""#).ok());

/// Most bytes of a file in which a value is searched.
const MAX_FILE: u64 = 1 << 20;

/// Most comparisons examined per program.
const MAX_COMPARISONS: usize = 16;

/// Returns the program text of an awk command: its first quoted word with a block or a comparison.
fn program(awk: &Invocation) -> Option<&Word> {
    awk.args().iter().find(|w| w.raw.starts_with('\'') && w.text.contains(['{', '=', '<', '>', '~']))
}

pub(super) fn check(cx: &CheckContext, awk: &Invocation) -> Option<Finding> {
    if !is_awk(awk) {
        return None;
    }
    let (program, file) = (program(awk)?, awk.operands().find(|w| is_csv(w))?);
    // without `-F` the columns are not those of the file
    let has_separator = awk.args().iter().any(|w| w.text.starts_with("-F"));
    let is_plain = program.raw == format!("'{}'", program.text) && !program.text.contains("IGNORECASE");
    if !has_separator || !is_plain {
        return None;
    }
    let compares = EQUAL.as_ref().filter(|pattern| pattern.is_match(&program.text))?;
    let text = read_text(&cx.cwd?.join(&file.text), MAX_FILE)?;
    let by = separator_of(&[text.lines().next()?.to_owned()])?;
    let (literal, cell) = compares.captures_iter(&program.text).take(MAX_COMPARISONS).find_map(|c| {
        let (column, literal) = (c[1].parse::<usize>().ok()?.checked_sub(1)?, c.get(2)?);
        // the first line has the names
        let cells = || text.lines().skip(1).filter_map(|line| line.split(by).nth(column));
        if cells().any(|cell| cell == literal.as_str()) {
            return None;
        }
        Some((literal, cells().find(|cell| cell.to_lowercase() == literal.as_str().to_lowercase())?))
    })?;
    let (before, after) = (&program.text[..literal.start()], &program.text[literal.end()..]);
    let fix = if cell.contains(['\'', '"', '\\']) {
        None
    } else {
        Edits::new(cx.script).replace(program, &format!("'{before}{cell}{after}'")).apply()
    };
    Some(warning("other-case", program, format!("{} has `{cell}` and no `{}`", file.text, literal.as_str()), fix))
}
