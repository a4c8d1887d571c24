//! Finds `awk -F'\t' '$4 > 0.5' a.tsv | cut -d' ' -f1`: a line that is passed on unchanged still has its own
//! separator.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::separator::{given, option_of, quoted};
use caro_shell::{Finding, Invocation, Word};

/// Finds the first reader of unchanged lines with another separator.
pub(super) fn check(cx: &CheckContext, first: &Invocation) -> Option<Finding> {
    if !passes_lines(first) {
        return None;
    }
    let (.., by) = separator(first)?;
    let mut reader = cx.script.reader(first)?;
    // a pipeline has at most as many stages as the script has commands
    for _ in 0..cx.script.commands.len() {
        match separator(reader) {
            Some((word, lead, ' ')) if by != ' ' => return finding(cx, reader, word, lead, by),
            Some(_) => return None,
            None if passes_lines(reader) => reader = cx.script.reader(reader)?,
            None => return None,
        }
    }
    None
}

fn finding(cx: &CheckContext, reader: &Invocation, word: &Word, lead: &str, by: char) -> Option<Finding> {
    let name = reader.name()?;
    let fix = quoted(by, option_of(reader)?, cx.dialect)
        .and_then(|quoted| Edits::new(cx.script).replace(word, &format!("{lead}{quoted}")).apply());
    let shown = if by == '\t' { "tabulators".to_owned() } else { format!("`{by}`") };
    let why = format!("the lines come with their columns separated by {shown}, and {name} separates them at blanks");
    Some(warning("other-separator", word, why, fix))
}

/// Returns the separator that a program is given, unless it is a dot, which a regular expression may mean.
fn separator(command: &Invocation) -> Option<(&Word, &'static str, char)> {
    given(command).filter(|(.., separator)| *separator != '.')
}

/// True for a command that prints lines unchanged.
fn passes_lines(command: &Invocation) -> bool {
    let has_any = |letters: &[char]| letters.iter().any(|letter| command.has_option(Some(*letter), ""));
    match command.name() {
        // without an action, awk prints the line itself
        Some("awk" | "gawk" | "mawk") => {
            let program = command.args().iter().find(|w| w.raw.starts_with('\''));
            program.is_some_and(|p| !p.text.contains('{')) && !command.args().iter().any(|w| w.text.contains("FS="))
        }
        Some("grep" | "egrep" | "fgrep") => !has_any(&['o', 'c', 'l', 'L', 'n', 'H', 'r', 'R', 'b']),
        Some("uniq") => !has_any(&['c']),
        Some("sort" | "head" | "tail" | "tac" | "shuf") => true,
        _ => false,
    }
}
