//! The words of a command as its program reads them: verb, operands, commands inside.

use super::reading::Reading;
use super::row::Program;
use super::table;
use crate::Dialect;
use crate::embedded::Act;
use crate::parse::{Invocation, Word};

/// Index and text of a command's first operand, with the values of options set aside: `clean` of `git -C x clean`.
pub(crate) fn verb(command: &Invocation, dialect: Dialect) -> Option<(usize, &str)> {
    let plain = Program::default();
    let program = command.key().and_then(|key| table::program(&key, dialect)).unwrap_or(&plain);
    let operand = Reading::of(command, program).operands.first().copied()?;
    let index = command.words.iter().position(|w| std::ptr::eq(w, operand.word))?;
    Some((index, operand.text()))
}

/// The operands of a command with the index of their word, the values of options set aside.
pub(crate) fn operands_of(command: &Invocation, dialect: Dialect) -> Vec<(usize, &str)> {
    let plain = Program::default();
    let program = command.key().and_then(|key| table::program(&key, dialect)).unwrap_or(&plain);
    let read = Reading::of(command, program);
    let index = |word: &Word| command.words.iter().position(|w| std::ptr::eq(w, word));
    read.operands.iter().filter_map(|o| Some((index(o.word)?, o.text()))).collect()
}

/// True if what follows this letter in a cluster of options is its value: `econds` of `date -Iseconds`.
pub(crate) fn has_value(command: &Invocation, letter: char) -> bool {
    let program = command.key().and_then(|key| table::program(&key, Dialect::Bash));
    program.is_some_and(|program| program.takes_value(&format!("-{letter}")))
}

/// The commands in a command's arguments, with the index of their word: the value of an option (`gzip` of `tar -I gzip`),
/// what a program of `awk` or `sed` hands to a shell.
pub(crate) fn commands_in(words: &[Word], dialect: Dialect) -> Vec<(usize, String)> {
    let of = |words: &[Word]| Invocation { words: words.to_vec(), ..Invocation::default() };
    let known = of(&words[..words.len().min(1)]).key().and_then(|key| table::program(&key, dialect));
    let Some(program) = known.filter(|p| !p.commands.is_empty() || p.language.is_some()) else { return Vec::new() };
    let command = of(words);
    let read = Reading::of(&command, program);
    let values = read.values.iter().filter(|v| program.commands.contains(&v.of));
    let mut held: Vec<(&Word, String)> = values.map(|v| (v.word, v.text().to_owned())).collect();
    for (word, text) in scripts(program, &read) {
        let acts = program.language.map(|l| l.acts(text)).unwrap_or_default();
        held.extend(acts.into_iter().filter_map(|act| match act {
            Act::Run(command) => Some((word, command?)),
            Act::Write(_) => None,
        }));
    }
    let index = |word: &Word| command.words.iter().position(|w| std::ptr::eq(w, word));
    held.into_iter().filter_map(|(word, text)| Some((index(word)?, text))).collect()
}

/// The files that a command sends by itself: those of this machine that it copies to another, and those that it posts.
pub(crate) fn sent(command: &Invocation, dialect: Dialect) -> Vec<&str> {
    const POSTED: [&str; 10] = [
        "-T",
        "--upload-file",
        "-F",
        "--form",
        "-d",
        "--data",
        "--data-binary",
        "--data-urlencode",
        "--data-ascii",
        "--json",
    ];
    let Some(program) = command.key().and_then(|key| table::program(&key, dialect)) else { return Vec::new() };
    let read = Reading::of(command, program);
    match command.name() {
        Some("scp" | "rsync") => {
            let is_remote = |text: &str| text.split('/').next().is_some_and(|first| first.contains(':'));
            let mut operands: Vec<&str> = read.operands.iter().map(|o| o.text()).collect();
            if !operands.pop().is_some_and(is_remote) {
                return Vec::new();
            }
            operands.retain(|text| !is_remote(text));
            operands
        }
        Some("curl") => read.values.iter().filter(|v| POSTED.contains(&v.of.as_str())).map(|v| v.text()).collect(),
        _ => Vec::new(),
    }
}

/// True if only the words of that program tell what it destroys: the table does not know it, or says so.
pub(crate) fn is_told_by_words(name: &str, dialect: Dialect) -> bool {
    table::program(&name.to_ascii_lowercase(), dialect).is_none_or(|program| program.words)
}

/// True if the table of programs knows that name.
pub fn is_known(name: &str, dialect: Dialect) -> bool {
    table::program(&name.to_ascii_lowercase(), dialect).is_some()
}

/// The arguments that are programs in a language of their own: the first operand, or the values of `-e`.
pub(super) fn scripts<'c>(program: &Program, read: &Reading<'c>) -> Vec<(&'c Word, &'c str)> {
    if program.language.is_none() {
        return Vec::new();
    }
    let given = read.values.iter().filter(|v| matches!(v.of.as_str(), "-e" | "--expression" | "--source"));
    let own = if read.has_any(&program.script) { None } else { read.operands.first() };
    given.map(|v| (v.word, v.text())).chain(own.map(|o| (o.word, o.text()))).collect()
}
