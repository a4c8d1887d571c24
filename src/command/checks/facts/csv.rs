//! Finds errors on files of separated values: a wrong column, and a header line that is counted as a value.

use super::edit::{Edits, warning};
use super::input::files;
use super::separator::{self, names, separator_of};
use super::words::{Words, is_in, negates};
use super::{CheckContext, column_name, only};
use caro_shell::{Finding, Invocation, Word};
use std::path::Path;

/// Most bytes of a file that are read.
const MAX_READ: u64 = 4096;

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let commands = &cx.script.commands;
    let mut found = Vec::new();
    for (at, command) in commands.iter().enumerate() {
        let own = || command.operands().find(|w| is_csv(w));
        // whole lines from a pipe still have their separators
        let passes_lines = |c: &Invocation| c.name().is_some_and(|n| PASSES_LINES.contains(&n)) || only_filters(c);
        let source = commands.iter().find(|c| c.feeds.contains(&at) && passes_lines(c));
        let piped = || {
            // `grep -o` and `grep -c` do not print whole lines
            let source = source.filter(|c| {
                !c.has_option(Some('o'), "only-matching") && !c.has_option(Some('c'), "count")
                    || c.name() == Some("head")
            })?;
            files(source)?.into_iter().chain(source.redirects.iter().map(|r| &r.target)).find(|w| is_csv(w))
        };
        let Some(file) = own().or_else(piped) else { continue };
        let lines = cx.cwd.map(|cwd| first_lines(&cwd.join(&file.text))).unwrap_or_default();
        found.extend(separator::check(cx, command, &lines));
        found.extend(column(cx, command, &lines));
        found.extend(column_name::check(cx, command, file, &lines));
        // after a filter, the first line is not the header
        let reads_header = source.is_none_or(|c| matches!(c.name(), Some("cat" | "head")));
        // the script already skips the header somewhere
        const SKIPS: [&str; 6] = ["NR>", "NR >", "NR!=", "NR !=", "NR==", "1d"];
        let skips = commands.iter().flat_map(|c| c.args()).any(|w| SKIPS.iter().any(|n| w.text.contains(n)));
        if reads_header && !skips && commands.iter().all(|c| c.name() != Some("tail")) {
            found.extend(header(cx, command, file, &lines));
        }
    }
    found
}

/// Programs that pass lines on unchanged.
const PASSES_LINES: [&str; 6] = ["cat", "egrep", "fgrep", "grep", "head", "tail"];

/// True for an awk command that only filters lines: `awk -F, '$3 > 5'`.
fn only_filters(command: &Invocation) -> bool {
    let programs = command.args().iter().filter(|w| w.raw.starts_with('\''));
    command.name() == Some("awk") && only(programs).is_some_and(|w| !w.text.contains('{'))
}

/// True for a word that ends in `.csv`.
pub(in crate::checks) fn is_csv(word: &Word) -> bool {
    word.text.to_lowercase().ends_with(".csv")
}

/// Reads the first lines of a file, the last of which may be cut off; empty if the file cannot be read.
pub(crate) fn first_lines(file: &Path) -> Vec<String> {
    let bytes = super::read_prefix(file, MAX_READ).unwrap_or_default();
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}

/// `$3` for the ages, if the header has them second.
fn column(cx: &CheckContext, command: &Invocation, lines: &[String]) -> Option<Finding> {
    if lines.len() < 2 {
        return None;
    }
    let by = separator_of(lines)?;
    let words = Words::of(cx.request);
    // `the third column` counts columns; `the amount column` names one
    let is_column = |w: &String| matches!(w.as_str(), "column" | "columns" | "field" | "fields");
    let is_in_header = |w: &String| names(&lines[0], by).any(|name| name == *w);
    let list = words.list();
    let is_counted = |at: usize| !at.checked_sub(1).is_some_and(|at| is_in_header(&list[at]));
    if list.iter().enumerate().any(|(at, w)| is_column(w) && is_counted(at)) {
        return None;
    }
    let mentioned = names(&lines[0], by).enumerate().filter(|(_, name)| mentions(&words, name)).map(|(at, _)| at + 1);
    let asked = only(mentioned)?;
    if names(&lines[0], by).nth(asked - 1).is_some_and(|name| is_left_out(list, &name)) {
        return None;
    }
    // a request mentions `unit price` and `email_address` by their parts
    let is_mentioned_in_part =
        |name: String| name.split(|c: char| !c.is_alphanumeric()).any(|part| mentions(&words, part));
    // the script may use only one column: of two, one may be printed and the other compared
    let mut all = cx.script.commands.iter().map(columns_of).collect::<Option<Vec<_>>>()?.into_iter().flatten();
    let (_, have) = all.next()?;
    if all.any(|(_, other)| other != have) || have == asked {
        return None;
    }
    if have.checked_sub(1).and_then(|at| names(&lines[0], by).nth(at)).is_some_and(is_mentioned_in_part) {
        return None;
    }
    let (word, _) = columns_of(command)?.into_iter().next()?;
    // `$2 == "Rome"` selects whole lines
    if is_compared(&word.text, have) {
        return None;
    }
    // "the most expensive item" is found by its price
    let has_numbers = |at: usize| lines[1..].iter().filter_map(|row| row.split(by).nth(at - 1)).any(is_number);
    if wants_numbers(command) && has_numbers(have) && !has_numbers(asked) {
        return None;
    }
    let mark = match command.name()? {
        "cut" if word.text.starts_with("-f") => "-f",
        "sort" if word.text.starts_with("-k") => "-k",
        "cut" | "sort" => "",
        _ => "$",
    };
    let (old, new) = (format!("{mark}{have}"), format!("{mark}{asked}"));
    let fixed = match mark {
        "$" => word.raw.replace(&old, &new),
        _ => word.raw.replacen(&old, &new, 1).replace(&format!(",{have}"), &format!(",{asked}")),
    };
    let fix = Edits::new(cx.script).replace(word, &fixed).apply();
    let why = format!("by the first line of the file that is column {asked}, and this takes column {have}");
    Some(warning("which-column", word, why, fix))
}

/// Returns the columns that a command uses, each with its word; `None` if a word lists several columns, or cannot be
/// parsed.
fn columns_of(command: &Invocation) -> Option<Vec<(&Word, usize)>> {
    let option = match command.name() {
        Some("awk" | "gawk" | "mawk") => {
            let all = command.args().iter().flat_map(|w| awk_fields(w).into_iter().map(move |field| (w, field)));
            return Some(all.collect());
        }
        Some("cut") => "-f",
        Some("sort") => "-k",
        _ => return Some(Vec::new()),
    };
    let mut all = Vec::new();
    let mut args = command.args().iter();
    while let Some(word) = args.next() {
        let Some(value) = word.text.strip_prefix(option) else { continue };
        let (word, value) = if value.is_empty() { args.next().map(|w| (w, w.text.as_str()))? } else { (word, value) };
        all.push((word, single_column(value, option == "-k")?));
    }
    Some(all)
}

/// True if an awk program compares a column with something.
fn is_compared(program: &str, column: usize) -> bool {
    let column = format!("${column}");
    program.match_indices(&column).any(|(at, _)| {
        let after = program[at + column.len()..].trim_start();
        ["==", "!=", "~", "!~", "<", ">"].iter().any(|sign| after.starts_with(sign))
    })
}

/// Parses a single column: `2`, or as a key for sorting `2nr` and `2,2nr`.
fn single_column(value: &str, is_key: bool) -> Option<usize> {
    let number = |text: &str| -> Option<usize> {
        let is_flag = |c: char| is_key && c.is_ascii_alphabetic();
        text.trim_end_matches(is_flag).parse().ok()
    };
    let range = if is_key { value.split_once(',') } else { None };
    let (first, last) = range.unwrap_or((value, value));
    number(first).filter(|at| number(last) == Some(*at))
}

/// True for a command that adds or compares numbers, or sorts by them.
fn wants_numbers(command: &Invocation) -> bool {
    match command.name() {
        Some("sort") => {
            ['n', 'g', 'h']
                .iter()
                .any(|letter| command.args().iter().any(|w| w.text.starts_with('-') && w.text.contains(*letter)))
                || command
                    .args()
                    .iter()
                    .any(|w| w.text.starts_with(|c: char| c.is_ascii_digit()) && w.text.contains('n'))
        }
        Some("awk" | "gawk" | "mawk") => {
            command.args().iter().any(|w| w.text.contains(['<', '>']) || w.text.contains("+="))
        }
        _ => false,
    }
}

fn is_number(cell: &str) -> bool {
    cell.trim().trim_matches('"').parse::<f64>().is_ok()
}

/// Returns the distinct fields of an awk program without `$0`: 1 and 3 for `$1 + $3 - $1`. Empty if a `$` is not
/// followed by a number.
pub(super) fn awk_fields(program: &Word) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for (at, _) in program.text.match_indices('$') {
        let digits: String = program.text[at + 1..].chars().take_while(char::is_ascii_digit).collect();
        match digits.parse() {
            Ok(0) => {}
            Ok(field) if !all.contains(&field) => all.push(field),
            Ok(_) => {}
            Err(_) => return Vec::new(),
        }
    }
    all
}

/// True if the request mentions the name of a column, in the singular or plural.
fn mentions(words: &Words, name: &str) -> bool {
    words.list().iter().any(|word| is_name(word, name))
}

/// True for the name of a column or its plural.
fn is_name(word: &str, name: &str) -> bool {
    let plural = name.strip_suffix('y').map(|stem| format!("{stem}ies"));
    word == name || !name.is_empty() && word.strip_suffix('s') == Some(name) || plural.as_deref() == Some(word)
}

/// True if the request leaves the column out: `without the id`, `remove the age column`.
fn is_left_out(list: &[String], name: &str) -> bool {
    const LEAVES_OUT: &str = "but delete drop hide omit remove strip";
    let leaves_out = |word: &String| negates(word) || is_in(LEAVES_OUT, word);
    let mut mentions = list.iter().enumerate().filter(|(_, word)| is_name(word, name));
    mentions.any(|(at, _)| list[at.saturating_sub(3)..at].iter().any(leaves_out))
}

/// True for an awk program to which the header counts as a value: it divides by the number of lines, looks for the
/// largest or smallest value, or groups by a column.
fn counts_header(program: &str) -> bool {
    let plain: String = program.chars().filter(|c| !c.is_whitespace()).collect();
    let (lines, end) = plain.split_once("END").unwrap_or((&plain, ""));
    let divides = plain.contains("/NR") || end.contains('/') && lines.contains("++");
    let has_extreme = ["max", "min", "highest", "lowest", "largest", "smallest"]
        .iter()
        .any(|name| lines.contains(&format!(">{name}")) || lines.contains(&format!("<{name}")));
    let groups = lines.contains("[$") && (lines.contains("+=") || lines.contains("++")) && end.contains("for(");
    divides || has_extreme || groups
}

/// Finds a header line that is counted as a value of a column that the request mentions.
fn header(cx: &CheckContext, command: &Invocation, file: &Word, lines: &[String]) -> Option<Finding> {
    let is_distinct =
        |c: &Invocation| c.name() == Some("uniq") || c.name() == Some("sort") && c.has_option(Some('u'), "unique");
    let program = command.args().iter().find(|w| w.text.starts_with('{') && w.raw.starts_with('\''));
    let counting = program.filter(|p| counts_header(&p.text));
    if counting.is_none() && !cx.script.commands.iter().any(is_distinct) || lines.len() < 2 {
        return None;
    }
    let by = separator_of(lines)?;
    let words = Words::of(cx.request);
    let is_mentioned = names(&lines[0], by).any(|name| mentions(&words, &name));
    // columns that have only numbers below the header
    let is_numeric = |at: usize| lines[1..].iter().filter_map(|row| row.split(by).nth(at - 1)).all(is_number);
    let counted = counting.map(awk_fields).unwrap_or_default();
    let are_numeric = !counted.is_empty() && counted.into_iter().all(is_numeric);
    // names consist of letters
    let are_names = names(&lines[0], by)
        .all(|name| !name.is_empty() && name.chars().all(|c| c.is_alphabetic() || matches!(c, '_' | '-' | ' ')));
    // a first line whose cell occurs again in a row is no header
    let cell = |row: &String, at| names(row, by).nth(at);
    let mut first = names(&lines[0], by).enumerate();
    let is_row = first.any(|(at, name)| lines[1..].iter().any(|row| cell(row, at).as_ref() == Some(&name)));
    if !(is_mentioned || are_numeric) || !are_names || is_row {
        return None;
    }
    let fix = match command.name()? {
        "awk" | "gawk" | "mawk" => {
            let program = program?;
            // `NR` counts the headers of several files too
            let has_several_files = command.operands().filter(|w| is_csv(w) || w.glob).count() > 1;
            if has_several_files && program.text.contains("NR") {
                return None;
            }
            // a pattern guards only the first of several rules
            let has_one_rule = program.text.split("END").next().is_some_and(|rules| rules.matches('{').count() == 1);
            let guard = if has_one_rule && !has_several_files { "NR>1 " } else { "FNR==1 {next} " };
            let raw = program.raw.replace("/NR", "/(NR-1)").replace("/ NR", "/ (NR-1)");
            Edits::new(cx.script).replace(program, &raw.replacen('\'', &format!("'{guard}"), 1)).apply()
        }
        "cut" => {
            let [only_file] = command.operands().filter(|w| is_csv(w)).collect::<Vec<_>>()[..] else { return None };
            let tail = format!("tail -n +2 {} | ", only_file.raw);
            Edits::new(cx.script).insert_before(command.words.first()?, &tail).replace(only_file, "").apply()
        }
        _ => return None,
    };
    let why = format!("the first line of {} has the columns' names, which are no values", file.text);
    Some(warning("csv-header", file, why, Some(fix?)))
}
