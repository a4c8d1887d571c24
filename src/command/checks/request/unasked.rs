//! Finds commands that delete files although the request only wants to see them.

use super::edit::{Edits, warning};
use super::{CheckContext, is_written_before};
use caro_shell::asked::only_looks;
use caro_shell::{Finding, Invocation, Word};

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    // a copy followed by a deletion is a move
    let copies = |c: &Invocation| matches!(c.name(), Some("cp" | "rsync" | "tar" | "zip" | "install"));
    if !only_looks(cx.request) || cx.script.commands.iter().any(copies) {
        return None;
    }
    cx.script.commands.iter().find_map(|c| removal(cx, c))
}

/// Finds the deletion of files that the script did not create itself.
fn removal(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let why = "the request only wants to see it, and this removes it";
    let program = command.words.first()?;
    match command.name()? {
        "rm" | "rmdir" | "unlink" | "shred" => {
            // `{}` is what `find` found
            let own = |w: &&Word| w.text != "{}" && (w.expands || is_written_before(cx.script, command, &w.text));
            let mut operands = command.operands().peekable();
            let all_own = operands.peek().is_some() && operands.all(|w| own(&w));
            let fix = || without_xargs(cx, command).or_else(|| without_exec(cx, command));
            (!all_own).then(|| warning("unasked-removal", program, why, fix()))
        }
        "find" => {
            let delete = command.args().iter().find(|w| w.text == "-delete")?;
            let fix = Edits::new(cx.script).replace(delete, "").apply();
            Some(warning("unasked-removal", delete, why, fix))
        }
        _ => None,
    }
}

/// Returns the script without `| xargs rm` at its end, so that it prints the files.
fn without_xargs(cx: &CheckContext, removal: &Invocation) -> Option<String> {
    if removal.via != ["xargs"] {
        return None;
    }
    let at = removal.inside?.command;
    let xargs = cx.script.commands.get(at)?;
    let (first, last) = (xargs.words.first()?, removal.words.last()?);
    let is_end = cx.script.text.get(last.span.end..)?.trim().is_empty();
    let before = cx.script.text.get(..first.span.start)?.trim_end().strip_suffix('|')?.trim_end();
    let is_null_separated = xargs.args().iter().any(|w| w.text == "--null" || has_zero_flag(&w.text));
    is_end.then(|| format!("{before}{}", if is_null_separated { " | tr '\\0' '\\n'" } else { "" }))
}

/// Returns the script without `-exec rm {} +` at its end, so that `find` prints the files.
fn without_exec(cx: &CheckContext, removal: &Invocation) -> Option<String> {
    if removal.via != ["find"] {
        return None;
    }
    let search = cx.script.commands.get(removal.inside?.command)?;
    let exec = search.words.iter().find(|w| matches!(w.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir"))?;
    let last = search.words.last()?;
    let is_end = matches!(last.text.as_str(), "+" | ";") && cx.script.text.get(last.span.end..)?.trim().is_empty();
    let is_only = search.words.iter().filter(|w| matches!(w.text.as_str(), "+" | ";")).count() == 1;
    (is_end && is_only).then(|| cx.script.text[..exec.span.start].trim_end().to_owned())
}

/// True for short options with `0`: `-0`, `-r0`.
fn has_zero_flag(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|letters| {
        letters.starts_with(|c: char| c.is_ascii_alphanumeric())
            && letters.contains('0')
            && letters.chars().all(|c| c.is_ascii_alphabetic() || c == '0')
    })
}
