//! Expands the words of a command as far as needed to see options that come from a variable, an array, braces or the
//! output of `echo`: `x=-delete; find . $x`, `sort {-o,out} f`.

use super::paths::{expand_braces, expand_variables};
use crate::Dialect;
use crate::parse::{How, Invocation, Script, Word};
use crate::tree::split_words;
use std::ops::Range;

/// Programs that only read unless certain options are given.
const BY_OPTION: &[&str] =
    &["find", "gfind", "fd", "fdfind", "sort", "gsort", "sed", "gsed", "tar", "gtar", "bsdtar", "curl"];

/// Programs that print names, numbers and dates, never options.
const NAME_PRINTERS: &[&str] = &[
    "basename", "brew", "date", "dirname", "fd", "fdfind", "find", "getconf", "git", "hostname", "id", "ls", "mktemp",
    "nproc", "pwd", "readlink", "realpath", "seq", "stat", "uname", "which", "whoami",
];

/// Programs that print their input or a part of it.
const FILTERS: &[&str] = &["awk", "cut", "grep", "head", "sed", "sort", "tail", "tr", "uniq", "wc", "xargs"];

/// Returns the command with its words expanded, if an option comes from an expansion.
pub(super) fn expanded(script: &Script, index: usize, command: &Invocation) -> Option<Invocation> {
    let mut words: Vec<Word> = Vec::new();
    let mut has_option = false;
    for (at, word) in command.words.iter().enumerate() {
        let parts = if at > 0 && word.expands { parts(script, index, at, word) } else { None };
        match parts.filter(|parts| parts.iter().any(|part| part.starts_with('-') && *part != word.text)) {
            Some(parts) => {
                has_option = true;
                let own = |text: String| Word { raw: word.raw.clone(), ..Word::literal(&text, word.span.clone()) };
                words.extend(parts.into_iter().map(own));
            }
            None => words.push(word.clone()),
        }
    }
    has_option.then(|| Invocation { words, ..command.clone() })
}

/// Returns a word of such a program that may expand to options, and whose value is unknown.
pub(super) fn unknown_word<'c>(script: &Script, index: usize, command: &'c Invocation) -> Option<&'c Word> {
    let may_be = |(at, word): &(usize, &Word)| {
        let is_known = || parts(script, index, *at, word).is_some();
        let (name, whole) = name_of(&word.text);
        let assigned = || script.assignments.iter().filter(|a| a.name == name && a.value.span.start <= word.span.start);
        let is_output = |range: Range<usize>| script.commands.get(range).is_some_and(|c| prints_names(c.iter()));
        if !word.expands || !word.text.starts_with(['$', '`', '(']) {
            false
        } else if whole {
            (assigned().next().is_some() || matches!(name, "@" | "*") && positional_parameters(script, index).is_some())
                && !is_known()
        } else if name.is_empty() {
            let inner = inside(script, index, *at);
            !word.quoted && inner.clone().next().is_some() && !prints_names(inner) && !is_known()
        } else {
            assigned().next_back().is_some_and(|a| a.value.value.is_none() && !is_output(a.commands.clone()))
        }
    };
    if script.dialect == Dialect::PowerShell || command.key().is_none_or(|key| !BY_OPTION.contains(&key.as_str())) {
        return None;
    }
    command.words.iter().enumerate().skip(1).find(may_be).map(|(_, word)| word)
}

/// Returns the words that a word expands to, if known. In PowerShell no value becomes an option.
fn parts(script: &Script, index: usize, at: usize, word: &Word) -> Option<Vec<String>> {
    if script.dialect == Dialect::PowerShell {
        return None;
    }
    let (name, whole) = name_of(&word.text);
    if whole {
        return if matches!(name, "@" | "*") {
            positional_parameters(script, index)?
        } else {
            array(script, name, word)
        };
    }
    if let Some(text) = echo_text(script, index, at, word) {
        return Some(split(&text, word));
    }
    let text = expand_variables(script, &word.text, word);
    let paths = if text.contains('{') { expand_braces(&text) } else { vec![text] };
    // commands in brackets: `<(ls -l)`, `(ls -l)` of fish
    let known = !paths.iter().any(|text| text.contains(['$', '`', '(']));
    known.then(|| paths.iter().flat_map(|text| split(text, word)).collect())
}

fn split(text: &str, word: &Word) -> Vec<String> {
    if word.quoted { vec![text.to_owned()] } else { text.split_whitespace().map(str::to_owned).collect() }
}

/// The variable that a word consists of, and true if it expands to all words of an array: `$x`, `${x[@]}`, `$@`.
fn name_of(text: &str) -> (&str, bool) {
    let braced = text.strip_prefix("${").and_then(|inner| inner.strip_suffix('}'));
    let name = braced.or_else(|| text.strip_prefix('$')).unwrap_or_default();
    if matches!(name, "@" | "*") {
        return (name, true);
    }
    let array = braced.and_then(|inner| inner.strip_suffix("[@]").or_else(|| inner.strip_suffix("[*]")));
    let plain = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (Some(array.unwrap_or(name)).filter(plain).unwrap_or_default(), array.is_some())
}

/// Returns the values of an array of the script at the position of the word.
fn array(script: &Script, name: &str, word: &Word) -> Option<Vec<String>> {
    let assignments = script.assignments.iter().filter(|a| a.name == name && a.value.span.start <= word.span.start);
    let mut values = None;
    for assignment in assignments {
        let listed = assignment.value.raw.strip_prefix('(')?.strip_suffix(')')?;
        let words = split_words(listed).into_iter();
        let parsed = words.map(|range| Word::new(&listed[range], 0, script.dialect).value);
        values.get_or_insert_with(Vec::new).extend(parsed.collect::<Option<Vec<String>>>()?);
    }
    values
}

/// Returns the positional parameters set by the last `set -- ...` before a command; `None` if there is none,
/// `Some(None)` if the values are unknown.
fn positional_parameters(script: &Script, index: usize) -> Option<Option<Vec<String>>> {
    let before = script.commands.get(..index)?;
    let set = before.iter().rev().find(|c| c.name() == Some("set") && c.args().iter().any(|w| w.text == "--"))?;
    Some(set.args().iter().skip_while(|w| w.text != "--").skip(1).map(|w| w.value.clone()).collect())
}

/// The commands inside of the `$(...)` of a word.
fn inside(script: &Script, index: usize, at: usize) -> impl Iterator<Item = &Invocation> + Clone {
    let here = move |c: &&Invocation| {
        c.inside.is_some_and(|i| i.command == index && i.word == Some(at) && i.how == How::Substitution)
    };
    script.commands.iter().filter(here)
}

/// Returns the output of the single `echo` or `printf` that the word is a substitution of.
fn echo_text(script: &Script, index: usize, at: usize, word: &Word) -> Option<String> {
    let whole = word.text.starts_with(['$', '(']) && word.text.contains('(') && word.text.ends_with(')')
        || word.text.len() > 1 && word.text.starts_with('`') && word.text.ends_with('`');
    if !whole {
        return None;
    }
    let mut inner = inside(script, index, at);
    let only = inner.next().filter(|c| matches!(c.name(), Some("echo" | "printf")))?;
    if inner.next().is_some() {
        return None;
    }
    let ends = |w: &&Word| only.name() == Some("printf") && w.text == "--";
    let texts: Option<Vec<&str>> = only.args().iter().skip_while(ends).map(|w| w.value.as_deref()).collect();
    texts.map(|texts| texts.join(" "))
}

/// True if all commands print names and the like, and no free text.
fn prints_names<'s>(mut commands: impl Iterator<Item = &'s Invocation>) -> bool {
    commands
        .all(|c| c.name().is_some_and(|name| NAME_PRINTERS.contains(&name) || c.stdin_pipe && FILTERS.contains(&name)))
}
