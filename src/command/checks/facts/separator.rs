//! Finds commands on separated values without a separator, or with another one than the file has:
//! `awk '{s+=$3} ...' sales.csv` splits its lines at blanks.

use super::edit::{Edits, warning};
use super::{CheckContext, only};
use caro_shell::{Dialect, Finding, Invocation};

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
    let mut args = command.args().iter();
    let (word, raw) = args.find_map(|word| word.text.strip_prefix(option).map(|value| (word, value)))?;
    let (word, value, lead) = match raw {
        "" => args.next().map(|next| (next, next.text.as_str(), ""))?,
        value => (word, value, option),
    };
    let given = match value {
        "\\t" => '\t',
        _ => only(value.chars())?,
    };
    // a blank splits other text, and a separator that occurs in a line may be right
    if !SEPARATORS.contains(&given) || lines.iter().any(|line| line.contains(given)) {
        return None;
    }
    let fix = quoted(by, option, cx.dialect);
    let fix = fix.and_then(|quoted| Edits::new(cx.script).replace(word, &format!("{lead}{quoted}")).apply());
    let why = format!("the columns of the file are separated by {}, not by {}", name(by), name(given));
    Some(warning("csv-separator", word, why, fix))
}

/// Quotes a separator for an option; `None` if the shell cannot write it.
fn quoted(by: char, option: &str, dialect: Dialect) -> Option<String> {
    match by {
        ',' => Some(",".to_owned()),
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
