//! A command's words as its program gets them, as far as options go that arrive in a variable, an array, braces or what
//! `echo` puts out: `x=-delete; find . $x`, `sort {-o,out} f`.

use super::paths::{filled, opened};
use crate::Dialect;
use crate::parse::{How, Invocation, Script, Word};
use crate::tree::split_words;

/// Programs that only read but for some of their options.
const BY_OPTION: &[&str] =
    &["find", "gfind", "fd", "fdfind", "sort", "gsort", "sed", "gsed", "tar", "gtar", "bsdtar", "curl"];

/// Programs that put out names, numbers and dates, which are no options.
const NAMERS: &[&str] = &[
    "basename", "brew", "date", "dirname", "fd", "fdfind", "find", "getconf", "git", "hostname", "id", "ls", "mktemp",
    "nproc", "pwd", "readlink", "realpath", "seq", "stat", "uname", "which", "whoami",
];

/// Programs that put out what comes to them, or a part of it.
const FILTERS: &[&str] = &["awk", "cut", "grep", "head", "sed", "sort", "tail", "tr", "uniq", "wc", "xargs"];

/// The command with the words in which options arrive in the place of those that stand for them, if there are any.
pub(super) fn expanded(script: &Script, index: usize, command: &Invocation) -> Option<Invocation> {
    let mut words: Vec<Word> = Vec::new();
    let mut arrive = false;
    for (at, word) in command.words.iter().enumerate() {
        let parts = if at > 0 && word.expands { parts(script, index, at, word) } else { None };
        match parts.filter(|parts| parts.iter().any(|part| part.starts_with('-') && *part != word.text)) {
            Some(parts) => {
                arrive = true;
                let own = |text: String| Word { raw: word.raw.clone(), ..Word::literal(&text, word.span.clone()) };
                words.extend(parts.into_iter().map(own));
            }
            None => words.push(word.clone()),
        }
    }
    arrive.then(|| Invocation { words, ..command.clone() })
}

/// A word of such a program that may become options, and of which nothing is known.
pub(super) fn unknown<'c>(script: &Script, index: usize, command: &'c Invocation) -> Option<&'c Word> {
    let may_be = |(at, word): &(usize, &Word)| {
        let known = || parts(script, index, *at, word).is_some();
        let (name, whole) = name_of(&word.text);
        let given = || script.assignments.iter().filter(|a| a.name == name && a.value.span.start <= word.span.start);
        let made = |range: std::ops::Range<usize>| script.commands.get(range).is_some_and(|made| names(made.iter()));
        if !word.expands || !word.text.starts_with(['$', '`', '(']) {
            false
        } else if whole {
            (given().next().is_some() || matches!(name, "@" | "*") && given_last(script, index).is_some()) && !known()
        } else if name.is_empty() {
            let inner = inside(script, index, *at);
            !word.quoted && inner.clone().next().is_some() && !names(inner) && !known()
        } else {
            given().next_back().is_some_and(|a| a.value.value.is_none() && !made(a.commands.clone()))
        }
    };
    let asked =
        script.dialect != Dialect::PowerShell && command.key().is_some_and(|key| BY_OPTION.contains(&key.as_str()));
    command.words.iter().enumerate().skip(1).filter(|_| asked).find(may_be).map(|(_, word)| word)
}

/// What the shell makes of a word, if that is known. In PowerShell no value becomes an option.
fn parts(script: &Script, index: usize, at: usize, word: &Word) -> Option<Vec<String>> {
    if script.dialect == Dialect::PowerShell {
        return None;
    }
    let (name, whole) = name_of(&word.text);
    if whole {
        return if matches!(name, "@" | "*") { given_last(script, index)? } else { array(script, name, word) };
    }
    if let Some(text) = echoed(script, index, at, word) {
        return Some(split(&text, word));
    }
    let text = filled(script, &word.text, word);
    let opened = if text.contains('{') { opened(&text) } else { vec![text] };
    // what stands in brackets are commands: `<(ls -l)`, `(ls -l)` of fish
    let known = !opened.iter().any(|text| text.contains(['$', '`', '(']));
    known.then(|| opened.iter().flat_map(|text| split(text, word)).collect())
}

fn split(text: &str, word: &Word) -> Vec<String> {
    if word.quoted { vec![text.to_owned()] } else { text.split_whitespace().map(str::to_owned).collect() }
}

/// The variable that a word is, and whether it stands for all words of an array: `$x`, `${x[@]}`, `$@`.
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

/// What an array of the script holds where that word stands.
fn array(script: &Script, name: &str, word: &Word) -> Option<Vec<String>> {
    let given = script.assignments.iter().filter(|a| a.name == name && a.value.span.start <= word.span.start);
    let mut held = None;
    for assignment in given {
        let listed = assignment.value.raw.strip_prefix('(')?.strip_suffix(')')?;
        let words = split_words(listed).into_iter();
        let values = words.map(|range| Word::new(&listed[range], 0, script.dialect).value);
        held.get_or_insert_with(Vec::new).extend(values.collect::<Option<Vec<String>>>()?);
    }
    held
}

/// What the last `set -- ...` before that command gives; `None` if there is none, and nothing in it if that is not known.
fn given_last(script: &Script, index: usize) -> Option<Option<Vec<String>>> {
    let before = script.commands.get(..index)?;
    let set = before.iter().rev().find(|c| c.name() == Some("set") && c.args().iter().any(|w| w.text == "--"))?;
    Some(set.args().iter().skip_while(|w| w.text != "--").skip(1).map(|w| w.value.clone()).collect())
}

/// The commands that stand in the `$(...)` of that word.
fn inside(script: &Script, index: usize, at: usize) -> impl Iterator<Item = &Invocation> + Clone {
    let here = move |c: &&Invocation| {
        c.inside.is_some_and(|i| i.command == index && i.word == Some(at) && i.how == How::Substitution)
    };
    script.commands.iter().filter(here)
}

/// What the lone `echo` puts out that a word is.
fn echoed(script: &Script, index: usize, at: usize, word: &Word) -> Option<String> {
    let whole = word.text.starts_with(['$', '(']) && word.text.contains('(') && word.text.ends_with(')')
        || word.text.len() > 1 && word.text.starts_with('`') && word.text.ends_with('`');
    let mut inner = inside(script, index, at).filter(|_| whole);
    let only = inner.next().filter(|c| matches!(c.name(), Some("echo" | "printf")))?;
    let ends = |w: &&Word| only.name() == Some("printf") && w.text == "--";
    let said: Option<Vec<&str>> = only.args().iter().skip_while(ends).map(|w| w.value.as_deref()).collect();
    said.filter(|_| inner.next().is_none()).map(|said| said.join(" "))
}

/// True if these put out names and the like, and nothing that somebody thought up.
fn names<'s>(mut commands: impl Iterator<Item = &'s Invocation>) -> bool {
    commands.all(|c| c.name().is_some_and(|name| NAMERS.contains(&name) || c.stdin_pipe && FILTERS.contains(&name)))
}
