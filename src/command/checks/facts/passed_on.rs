//! `awk -F'\t' '$4 > 0.5' a.tsv | cut -d' ' -f1`: a line that is passed on as it was is separated as it was.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::{Dialect, Finding, Invocation, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    it.script.commands.iter().filter_map(|command| mismatch(it, command)).collect()
}

/// The first reader of whole lines that takes another separator for theirs.
fn mismatch(it: &CheckContext, first: &Invocation) -> Option<Finding> {
    let by = separator(first).filter(|_| passes_on(first))?.1;
    let mut reader = it.script.reader(first)?;
    // what is piped never comes back, and a line has few stages
    for _ in 0..it.script.commands.len() {
        match separator(reader) {
            Some((_, given)) if given == by => return None,
            Some((word, ' ')) => return told(it, reader, word, by),
            Some(_) => return None,
            None if passes_on(reader) => reader = it.script.reader(reader)?,
            None => return None,
        }
    }
    None
}

fn told(it: &CheckContext, reader: &Invocation, word: &Word, by: char) -> Option<Finding> {
    let name = reader.name()?;
    let quoted = match by {
        ',' | ':' => Some(by.to_string()),
        '\t' if name != "cut" => Some("'\\t'".to_owned()),
        '\t' => matches!(it.dialect, Dialect::Bash | Dialect::Zsh).then(|| "$'\\t'".to_owned()),
        other => Some(format!("'{other}'")),
    };
    // `-d ' '` is two words, `-d' '` one
    let lead: String = word.text.strip_suffix(' ')?.into();
    let fix = quoted.and_then(|quoted| Edits::new(it.script).replace(word, &format!("{lead}{quoted}")).done());
    let shown = if by == '\t' { "tabulators".to_owned() } else { format!("`{by}`") };
    let why = format!("the lines come with their columns separated by {shown}, and {name} separates them at blanks");
    Some(warning("other-separator", word, why, fix))
}

/// The separator that awk, cut or sort is given, with the word that ends with it.
fn separator(command: &Invocation) -> Option<(&Word, char)> {
    let option = match command.name()? {
        "awk" | "gawk" | "mawk" => "-F",
        "cut" => "-d",
        "sort" => "-t",
        _ => return None,
    };
    let mut args = command.args().iter();
    let (word, rest) = args.find_map(|word| Some((word, word.value.as_deref()?.strip_prefix(option)?)))?;
    let (word, value) =
        if rest.is_empty() { args.next().and_then(|w| Some((w, w.value.as_deref()?)))? } else { (word, rest) };
    let mut letters = value.chars();
    let only = if value == "\\t" { '\t' } else { letters.next().filter(|_| letters.next().is_none())? };
    (only != '.').then_some((word, only))
}

/// True for what prints lines as it read them.
fn passes_on(command: &Invocation) -> bool {
    let letters = |of: &[char]| of.iter().any(|letter| command.has_option(Some(*letter), ""));
    match command.name() {
        // no action: the line itself
        Some("awk" | "gawk" | "mawk") => {
            let program = command.args().iter().find(|w| w.raw.starts_with('\''));
            program.is_some_and(|p| !p.text.contains('{')) && !command.args().iter().any(|w| w.text.contains("FS="))
        }
        Some("grep" | "egrep" | "fgrep") => !letters(&['o', 'c', 'l', 'L', 'n', 'H', 'r', 'R', 'b']),
        Some("uniq") => !letters(&['c']),
        Some("sort" | "head" | "tail" | "tac" | "shuf") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn what_is_passed_on_is_separated_as_it_was() {
        let mended = |command: &str| findings(check, "", command).into_iter().next().map(|f| f.fix.unwrap());
        for (wrong, right) in [
            (
                r"awk -F'\t' '$4 > 0.5' a.tsv | tail -n +2 | cut -d' ' -f1,2",
                r"awk -F'\t' '$4 > 0.5' a.tsv | tail -n +2 | cut -d$'\t' -f1,2",
            ),
            ("awk -F, '$2 == 3' a.csv | cut -d ' ' -f 1", "awk -F, '$2 == 3' a.csv | cut -d , -f 1"),
            (
                "sort -t: -k3n /etc/passwd | head -n 1 | cut -d' ' -f1",
                "sort -t: -k3n /etc/passwd | head -n 1 | cut -d: -f1",
            ),
            ("sort -t ';' -k2 a | awk -F ' ' '{ print $1 }'", "sort -t ';' -k2 a | awk -F ';' '{ print $1 }'"),
        ] {
            assert_eq!(mended(wrong).as_deref(), Some(right));
            assert_eq!(mended(right), None);
        }
        for right in [
            "awk -F, '{ print $1, $2 }' a.csv | cut -d' ' -f1",
            "awk -F, '$1 > 2' OFS=' ' a.csv | cut -d' ' -f1",
            "sort -t, -k2 a.csv | cut -d, -f3 | cut -d' ' -f1",
            "sort -t, -k2 a.csv | sed 's/,/ /g' | cut -d' ' -f1",
            "sort -t, -k2 a.csv | uniq -c | awk -F' ' '{ print $1 }'",
            "sort -t' ' -k2 a | cut -d, -f1",
            "grep x a | cut -d' ' -f1",
        ] {
            assert_eq!(mended(right), None, "{right}");
        }
    }
}
