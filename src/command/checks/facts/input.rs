//! Finds piped input that is ignored, as in `grep -c x a.txt | grep -c x b.txt`, where the second `grep` reads its
//! file instead of the pipe; and a first command that waits for typed input, as in `grep x | sort`.

use super::CheckContext;
use super::edit::{Edits, error, warning};
use super::words::{Words, without_punctuation};
use caro_shell::{Finding, Invocation, Word, quote};
use std::collections::BTreeSet;

/// Programs that read the files they are given, and standard input only without one: the number of operands before
/// the files, and the letters of options with a value in the next word.
const READERS: [(&str, usize, &str); 13] = [
    ("awk", 1, "Fv"),
    ("cat", 0, ""),
    ("cut", 0, "bcdf"),
    ("egrep", 1, "ABCdDem"),
    ("fgrep", 1, "ABCdDem"),
    ("grep", 1, "ABCdDem"),
    ("head", 0, "cn"),
    ("jq", 1, ""),
    ("sed", 1, "el"),
    ("sort", 0, "koSTt"),
    ("tail", 0, "cns"),
    ("uniq", 0, "fsw"),
    ("wc", 0, ""),
];

/// The id of the finding that a command has nothing to read.
pub(crate) const WAITS: &str = "no-input";

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let ignored = cx.script.commands.iter().filter(|c| is_piped_into(c, cx)).filter_map(|c| ignored_pipe(cx, c));
    ignored.chain(waiting(cx)).collect()
}

/// Finds a first command of the line that has nothing to read.
fn waiting(cx: &CheckContext) -> Option<Finding> {
    // words that say that the input is to be typed or pasted
    const TYPED: &str = "stdin|input|pipe|piped|type|typed|paste|clipboard|keyboard";
    let first = cx.script.commands.first()?;
    let program = first.words.first().filter(|w| w.span.start == 0)?;
    let has_input = first.stdin_pipe
        || first.inside.is_some()
        || first.redirects.iter().chain(&cx.script.redirects).any(|r| r.operator.starts_with('<'));
    let name = first.name()?;
    let has_flag = |letter| first.has_option(Some(letter), "");
    let needs_no_input = match name {
        // `cat > notes.txt` is meant for typing a text
        "cat" => true,
        "awk" => first.args().iter().any(|w| w.text.contains("BEGIN")),
        "jq" => has_flag('n'),
        name if name.ends_with("grep") => ['r', 'R', 'd', 'V'].into_iter().any(has_flag),
        _ => false,
    };
    if has_input
        || needs_no_input
        || !first.via.is_empty()
        || !files(first)?.is_empty()
        || Words::of(cx.request).contains_phrase(TYPED)
    {
        return None;
    }
    let words = cx.request.split_whitespace().map(without_punctuation);
    let words = words.filter(|w| !w.is_empty() && !w.starts_with('-'));
    let is_file = |name: &&str| cx.cwd.is_some_and(|cwd| cwd.join(name).is_file());
    let named: BTreeSet<&str> = words.filter(is_file).filter(|name| !cx.script.text.contains(name)).collect();
    let fix = super::only(named.into_iter()).zip(first.words.last()).and_then(|(name, last)| {
        Edits::new(cx.script).insert_after(last, &format!(" {}", quote(name, cx.dialect))).apply()
    });
    Some(warning(WAITS, program, format!("{name} is given nothing to read: it waits for somebody to type"), fix))
}

/// True if a pipe leads directly into the command, not into a loop or a group around it.
fn is_piped_into(command: &Invocation, cx: &CheckContext) -> bool {
    let start = command.words.first().map_or(0, |w| w.span.start);
    let before = cx.script.text.get(..start).unwrap_or_default().trim_end();
    command.inside.is_none() && command.via.is_empty() && before.ends_with('|') && !before.ends_with("||")
}

/// Finds a command with a pipe into it that reads a file instead.
fn ignored_pipe(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let (name, file) = (command.name()?, *files(command)?.first()?);
    // `cat` can join the piped text with the file, before or after it
    let words = Words::of(cx.request);
    let (edits, joins) = (Edits::new(cx.script), |phrases: &str| words.contains_phrase(phrases) && name == "cat");
    let fix = if joins("top|beginning|start|front|before|prepend|first") {
        edits.insert_before(file, "- ").apply()
    } else if joins("end|bottom|append|after|last") {
        command.words.last().and_then(|last| edits.insert_after(last, " -").apply())
    } else {
        None
    };
    let file_name = &file.raw;
    let why = format!("{name} reads {file_name} and nothing of what the pipe brings: one of the two is too much");
    Some(error("ignored-input", file, why, fix))
}

/// True for a program that reads text from files or from a pipe.
pub(super) fn is_reader(name: &str) -> bool {
    READERS.iter().any(|(reader, ..)| *reader == name)
}

/// Returns the files that a program reads, as far as they are given by name; `None` for other programs, or if it is
/// not clear.
pub(crate) fn files(command: &Invocation) -> Option<Vec<&Word>> {
    let name = command.name()?;
    let (_, before, valued) = READERS.iter().find(|(reader, ..)| *reader == name)?;
    let mut operands = Vec::new();
    let (mut has_pattern_option, mut is_value) = (false, false);
    for word in command.args() {
        let text = word.text.as_str();
        // `-` is the pipe itself, `-f` names a file that is no input, `<(...)` may be anything, and the word after a
        // long option may be its value
        let is_unclear = matches!(text, "-" | "/dev/stdin") || text.contains("<(");
        let letters = text.strip_prefix('-').filter(|l| !l.is_empty());
        if is_unclear
            || text.starts_with("--") && !text.contains('=')
            || letters.is_some_and(|l| l.starts_with('f') && *before > 0)
        {
            return None;
        }
        match letters {
            _ if std::mem::take(&mut is_value) => {}
            Some(letters) => {
                has_pattern_option |= letters.starts_with('e') && *before > 0;
                is_value = letters.chars().next_back().is_some_and(|last| valued.contains(last))
                    && letters.chars().filter(|c| valued.contains(*c)).count() == 1;
            }
            // awk's `name=value` sets a variable
            None if name.ends_with("awk") && (has_pattern_option || !operands.is_empty()) && is_assignment(text) => {}
            // `tail +2` is an old form of `tail -n +2`
            None if name == "tail" && is_start(text) => {}
            None => operands.push(word),
        }
    }
    Some(operands.split_off(operands.len().min(if has_pattern_option { 0 } else { *before })))
}

/// True for `+2`.
fn is_start(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
}

fn is_assignment(text: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    text.split_once('=').is_some_and(|(name, value)| is_name(name) && !value.starts_with('='))
}
