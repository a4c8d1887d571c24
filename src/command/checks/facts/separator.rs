//! Finds commands on separated values without a separator, or with another one than the file has:
//! `awk '{s+=$3} ...' sales.csv` splits its lines at blanks.

use super::edit::{Edits, warning};
use super::{CheckContext, only};
use caro_shell::{Dialect, Finding, Invocation, Word};

/// The possible separators; the first is the default for an unknown file.
const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];

/// Returns the separator that is most frequent in the first line; `None` if the line has none, the default without
/// lines.
pub(crate) fn separator_of(lines: &[String]) -> Option<char> {
    let Some(first) = lines.first() else { return Some(SEPARATORS[0]) };
    let count = |c: char| first.matches(c).count();
    SEPARATORS.into_iter().rev().max_by_key(|&c| count(c)).filter(|&c| count(c) > 0)
}

pub(super) fn check(cx: &CheckContext, command: &Invocation, lines: &[String]) -> Option<Finding> {
    let args = || command.args().iter().map(|w| w.text.as_str());
    let (option, uses_columns, has_separator) = match command.name()? {
        "awk" | "gawk" | "mawk" => {
            let program = args().find(|a| a.contains('{'))?;
            let bytes = || program.bytes();
            let uses_columns = bytes().zip(bytes().skip(1)).any(|(a, b)| a == b'$' && (b'1'..=b'9').contains(&b));
            let has_option =
                args().any(|a| ["-F", "--field-separator", "--csv", "-k"].iter().any(|o| a.starts_with(o)));
            let sets = |a: &str| a.replace("OFS", "").contains("FS") || a.contains("FPAT") || a.contains("split(");
            ("-F", uses_columns, has_option || args().any(sets))
        }
        "sort" => ("-t", command.has_option(Some('k'), "key"), command.has_option(Some('t'), "field-separator")),
        "cut" => ("-d", command.has_option(Some('f'), "fields"), command.has_option(Some('d'), "delimiter")),
        _ => return None,
    };
    if has_separator {
        return other_separator(cx, command, option, lines);
    }
    let by = separator_of(lines)?;
    // cut's default is the tabulator
    if !uses_columns || (by == '\t' && option == "-d") {
        return None;
    }
    let program = command.words.first()?;
    let fix = quoted(by, option, cx.dialect);
    let fix = fix.and_then(|quoted| Edits::new(cx.script).insert_after(program, &format!(" {option}{quoted}")).apply());
    let why = format!("the columns of the file are separated by {}: say so with {option}", name(by));
    Some(warning("csv-separator", program, why, fix))
}

/// `-F,` for a file whose columns are separated by semicolons.
fn other_separator(cx: &CheckContext, command: &Invocation, option: &str, lines: &[String]) -> Option<Finding> {
    if lines.is_empty() {
        return None;
    }
    let by = separator_of(lines)?;
    let (word, lead, given) = given(command)?;
    // a blank splits other text, and a separator that occurs in a line may be right
    if !SEPARATORS.contains(&given) || lines.iter().any(|line| line.contains(given)) {
        return None;
    }
    let fix = quoted(by, option, cx.dialect);
    let fix = fix.and_then(|quoted| Edits::new(cx.script).replace(word, &format!("{lead}{quoted}")).apply());
    let why = format!("the columns of the file are separated by {}, not by {}", name(by), name(given));
    Some(warning("csv-separator", word, why, fix))
}

/// Returns the option with which a program is given its separator.
pub(super) fn option_of(command: &Invocation) -> Option<&'static str> {
    match command.name()? {
        "awk" | "gawk" | "mawk" => Some("-F"),
        "cut" => Some("-d"),
        "sort" => Some("-t"),
        _ => None,
    }
}

/// Returns the separator that a program is given: the word that ends in it, the option before it in that word, and
/// the character.
pub(super) fn given(command: &Invocation) -> Option<(&Word, &'static str, char)> {
    let option = option_of(command)?;
    let mut args = command.args().iter();
    let found = args.find_map(|word| Some((word, option, word.value.as_deref()?.strip_prefix(option)?)))?;
    let (word, lead, value) = match found {
        (_, _, "") => args.next().and_then(|word| Some((word, "", word.value.as_deref()?)))?,
        found => found,
    };
    Some((word, lead, if value == "\\t" { '\t' } else { only(value.chars())? }))
}

/// Quotes a separator for an option; `None` if the shell cannot write it.
pub(super) fn quoted(by: char, option: &str, dialect: Dialect) -> Option<String> {
    match by {
        ',' | ':' => Some(by.to_string()),
        '\t' if option == "-F" => Some("'\\t'".to_owned()),
        '\t' => matches!(dialect, Dialect::Bash | Dialect::Zsh).then(|| "$'\\t'".to_owned()),
        other => Some(format!("'{other}'")),
    }
}

fn name(separator: char) -> &'static str {
    match separator {
        ',' => "commas",
        ';' => "semicolons",
        '\t' => "tabulators",
        _ => "bars",
    }
}

/// Splits a line into cells, without blanks and double quotes around them.
pub(crate) fn cells(line: &str, by: char) -> impl Iterator<Item = &str> {
    line.split(by).map(|cell| cell.trim().trim_matches('"'))
}

/// Returns the names in a header line, in lower case.
pub(super) fn names(line: &str, by: char) -> impl Iterator<Item = String> + '_ {
    cells(line, by).map(str::to_lowercase)
}
