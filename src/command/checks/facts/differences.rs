//! Finds `comm` and `join` on files that are not sorted, and comparisons of file names in place of their lines.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::parse::How;
use caro_shell::{Dialect, Finding, Invocation, Word};
use std::path::Path;

/// Most bytes of a file that is read to see whether it is sorted.
const MAX_FILE: u64 = 1 << 20;

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    unsorted_comm(cx).or_else(|| unsorted_join(cx)).or_else(|| wrong_lists(cx))
}

/// `comm -23 <(ls a.txt) <(ls b.txt)` compares two names; `comm -23 <(cat a.txt) <(cat b.txt)` compares unsorted
/// lines.
fn wrong_lists(cx: &CheckContext) -> Option<Finding> {
    let commands = &cx.script.commands;
    let reader = |c: &Invocation| {
        if c.stdout_pipe || !c.via.is_empty() {
            return None;
        }
        c.inside.filter(|i| i.how == How::Process).and_then(|i| commands.get(i.command))?.name()
    };
    let is_wrong = |c: &&Invocation| {
        let [_, file] = c.words.as_slice() else { return false };
        let is_file = cx.cwd.zip(file.value.as_deref()).is_some_and(|(cwd, name)| cwd.join(name).is_file());
        let wrong = match c.name() {
            Some("ls") => matches!(reader(c), Some("comm" | "diff" | "join" | "paste")),
            Some("cat") => reader(c) == Some("comm") && !is_sorted(cx, file),
            _ => false,
        };
        wrong && is_file
    };
    let lists: Vec<&Invocation> = commands.iter().filter(is_wrong).collect();
    let program = lists.first()?.words.first()?;
    let programs = lists.iter().filter_map(|c| c.words.first());
    let fix = programs.fold(Edits::new(cx.script), |edits, word| edits.replace(word, "sort")).apply();
    if program.text == "cat" {
        return Some(warning("not-sorted", program, "comm compares sorted files only", fix));
    }
    Some(warning("name-for-lines", program, "ls of a file is its name: its lines are compared sorted", fix))
}

/// True for a text file whose lines are sorted, with or without regard to case.
fn is_sorted(cx: &CheckContext, file: &Word) -> bool {
    let text = cx.cwd.zip(file.value.as_deref()).and_then(|(cwd, name)| super::read_text(&cwd.join(name), MAX_FILE));
    text.is_some_and(|text| text.lines().is_sorted() || text.lines().map(str::to_lowercase).is_sorted())
}

/// `join a b` of files that are not sorted: it stops, or leaves lines out.
fn unsorted_join(cx: &CheckContext) -> Option<Finding> {
    let [join] = cx.script.commands.as_slice() else { return None };
    let (options, files): (Vec<&Word>, Vec<&Word>) = join.args().iter().partition(|w| w.text.starts_with('-'));
    let by = match options.as_slice() {
        [] => String::new(),
        [by] if by.text.starts_with("-t") && by.text.len() > 2 => format!("{} -k1,1 ", by.raw),
        _ => return None,
    };
    let ([one, other], Some("join")) = (files.as_slice(), join.name()) else { return None };
    let is_mixed =
        |w: &Word| cx.cwd.zip(w.value.as_deref()).is_some_and(|(cwd, name)| has_unsorted_keys(&cwd.join(name)));
    let has_substitution = matches!(cx.dialect, Dialect::Bash | Dialect::Zsh);
    if !has_substitution || !(is_mixed(one) || is_mixed(other)) {
        return None;
    }
    let sorted = |w: &Word| format!("<(sort {by}{})", w.raw);
    let fix = Edits::new(cx.script).replace(one, &sorted(one)).replace(other, &sorted(other)).apply();
    Some(warning("not-sorted", join.words.first()?, "join wants its files sorted, and they are not", fix))
}

/// True for a text file whose first columns are not sorted.
fn has_unsorted_keys(file: &Path) -> bool {
    let Some(text) = super::read_text(file, MAX_FILE) else { return false };
    let keys: Vec<&str> = text.lines().filter_map(|line| line.split([' ', '\t', ',', ';', ':']).next()).collect();
    keys.windows(2).any(|pair| pair[0] > pair[1])
}

/// `comm -23 a b` of files that are not sorted: its output is wrong, with only a warning on standard error.
fn unsorted_comm(cx: &CheckContext) -> Option<Finding> {
    let comm = cx.script.commands.iter().find(|c| c.name() == Some("comm") && c.via.is_empty())?;
    let [one, other] = comm.operands().collect::<Vec<_>>()[..] else { return None };
    let is_file = |w: &Word| w.value.is_some() && w.text != "-";
    let sorted = cx.request.to_lowercase().contains("sorted")
        || cx.script.commands.iter().any(|c| c.name() == Some("sort"))
        || comm.option(None, "nocheck-order").is_some()
        || is_sorted(cx, one) && is_sorted(cx, other);
    if sorted || !is_file(one) || !is_file(other) || one.text.contains("sort") || other.text.contains("sort") {
        return None;
    }
    let fix = if matches!(cx.dialect, Dialect::Bash | Dialect::Zsh) {
        let edits = Edits::new(cx.script).replace(one, &format!("<(sort {})", one.raw));
        edits.replace(other, &format!("<(sort {})", other.raw)).apply()
    } else {
        None
    };
    Some(warning("not-sorted", comm.words.first()?, "comm compares sorted files only", fix))
}
