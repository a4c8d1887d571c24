//! Finds `cat jan.csv feb.csv > all.csv`, which puts the header of the second file into the middle of the result.

use super::CheckContext;
use super::csv::{first_lines, is_csv};
use super::edit::{Edits, warning};
use super::separator::{names, separator_of};
use super::words::Words;
use caro_shell::{Finding, Word};
use std::path::Path;

/// Most files that are read.
const MAX_FILES: usize = 50;

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let (cat, rest) = cx.script.commands.split_first()?;
    // the request asks for one file of several; otherwise all lines may be wanted
    let words = Words::of(cx.request);
    const JOINS: &str = "append|combine|combined|concatenate|into one|in one file|join|joined|merge|merged|one csv|\
        one file|single file";
    let asks_to_join = words.contains_phrase(JOINS) && !words.contains_phrase("count|how many|checksum|size|compare");
    let keeps_lines = rest.iter().all(|c| matches!(c.name(), Some("sort" | "uniq" | "tee")));
    if cat.name() != Some("cat") || !keeps_lines || !asks_to_join || !cat.args().iter().all(is_csv) {
        return None;
    }
    let files = read_first_lines(cat.args(), cx.cwd?)?;
    let [first, others @ ..] = files.as_slice() else { return None };
    let header = first.first()?;
    let by = separator_of(first)?;
    // names begin with a letter, and the first row has a digit
    let is_header = names(header, by).all(|name| name.starts_with(|c: char| c.is_alphabetic()))
        && first.get(1).is_some_and(|row| row.contains(|c: char| c.is_ascii_digit()));
    let keeps_headers = words.contains_phrase(
        "as they are|as is|keep the headers|keep both headers|with headers|unchanged|\
            including the headers",
    );
    if others.is_empty() || !is_header || keeps_headers || others.iter().any(|lines| lines.first() != Some(header)) {
        return None;
    }
    let program = cat.words.first()?;
    let fix = Edits::new(cx.script).replace(program, "awk 'FNR > 1 || NR == 1'").apply();
    let why = format!("each of the files begins with the line {header}: once is enough");
    Some(warning("headers-repeated", program, why, fix))
}

/// Reads the first lines of each file; `None` if the names of the files are not clear.
fn read_first_lines(words: &[Word], cwd: &Path) -> Option<Vec<Vec<String>>> {
    let mut files = Vec::new();
    for word in words {
        match word.value.as_deref() {
            Some(name) if !word.glob => files.push(cwd.join(name)),
            _ => {
                // a pattern with a single star, in the last component of the path
                let (folder, pattern) = word.text.rsplit_once('/').unwrap_or((".", &word.text));
                let (start, end) = pattern.split_once('*').filter(|(start, end)| is_plain(start) && is_plain(end))?;
                let matches = |path: &std::path::PathBuf| {
                    let name = path.file_name().and_then(|n| n.to_str());
                    name.is_some_and(|n| n.starts_with(start) && n.ends_with(end) && !n.starts_with('.'))
                };
                let entries = std::fs::read_dir(cwd.join(folder).as_path()).ok()?;
                files.extend(entries.filter_map(|e| Some(e.ok()?.path())).filter(matches).take(MAX_FILES + 1));
            }
        }
    }
    if files.len() > MAX_FILES {
        return None;
    }
    files.sort_unstable();
    Some(files.iter().map(|file| first_lines(file)).collect())
}

/// True for a text without characters that the shell expands.
fn is_plain(text: &str) -> bool {
    !text.contains(['*', '?', '[', '{', '$', '\\'])
}
