//! Finds commands that take the wrong end of a sorted list, for "the largest" or "the oldest".

use super::edit::{Edits, is_cluster, is_ls_cluster, ls_cluster_with, warning, without_letter};
use super::words::Words;
use super::{CheckContext, only};
use caro_shell::{Finding, Invocation, Word};

/// The key that a list is sorted by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Size,
    Time,
}

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let commands = &cx.script.commands;
    let sorts = commands.iter().filter(|c| matches!(c.name(), Some("sort" | "ls")));
    let sort = only(sorts)?;
    let mut taker = cx.script.reader(sort)?;
    let mut takers = 1;
    // `tail -n +2` first removes the line "total" of `ls -l`
    if sort.name() == Some("ls") && taker.name() == Some("tail") && skips_one(taker) {
        (taker, takers) = (cx.script.reader(taker)?, 2);
    }
    let takes_first = takes_first_lines(taker)?;
    // several heads and tails, or a `tac`, are not checked
    if commands.iter().any(|c| c.name() == Some("tac")) || commands.iter().filter(|c| takes(c)).count() != takers {
        return None;
    }
    let (key, reversal, is_ascending) =
        if sort.name() == Some("ls") { order_of_ls(sort)? } else { order_of_sort(sort, commands)? };
    let wants_high = wants_high_end(&Words::of(cx.request), key)?;
    let has_high = (reversal.is_none() == is_ascending) != takes_first;
    let why = match (key, wants_high) {
        (Key::Size, true) => "the largest are asked for, and this takes the smallest",
        (Key::Size, false) => "the smallest are asked for, and this takes the largest",
        (Key::Time, true) => "the newest are asked for, and this takes the oldest",
        (Key::Time, false) => "the oldest are asked for, and this takes the newest",
    };
    let flag = reversal.or_else(|| sort.args().iter().find(|w| is_ls_cluster(w)))?;
    let reversed = if reversal.is_some() { without_letter(&flag.raw, 'r') } else { format!("{}r", flag.raw) };
    let fix = Edits::new(cx.script).replace(flag, &reversed).apply();
    (has_high != wants_high).then(|| warning("wrong-end", flag, why, fix))
}

/// True for `tail -n +2`: all but the first line.
fn skips_one(tail: &Invocation) -> bool {
    matches!(&tail.args().iter().map(|w| w.text.as_str()).collect::<Vec<_>>()[..], ["-n", "+2"] | ["-n+2"])
}

fn takes(command: &Invocation) -> bool {
    matches!(command.name(), Some("head" | "tail"))
}

/// True if the command takes the first lines, false if the last; `None` if it takes all but some.
fn takes_first_lines(command: &Invocation) -> Option<bool> {
    let all_but = |w: &Word| w.text.starts_with('+') || w.text.starts_with("-n+") || w.text.starts_with("-n-");
    let minus = command.args().windows(2).any(|w| w[0].text == "-n" && w[1].text.starts_with('-'));
    (takes(command) && !minus && !command.args().iter().any(all_but)).then(|| command.name() == Some("head"))
}

/// Returns the key of `ls`, the cluster that reverses the order, and whether the order is ascending without it.
fn order_of_ls(ls: &Invocation) -> Option<(Key, Option<&Word>, bool)> {
    let key = match (ls_cluster_with(ls, 't'), ls_cluster_with(ls, 'S')) {
        (Some(_), None) => Key::Time,
        (None, Some(_)) => Key::Size,
        _ => return None,
    };
    if ls.args().iter().any(|w| w.text.starts_with("--")) {
        return None;
    }
    Some((key, ls_cluster_with(ls, 'r'), false))
}

/// Returns the same for a numeric `sort` of lines that are known to begin with a size or time.
fn order_of_sort<'a>(sort: &'a Invocation, commands: &[Invocation]) -> Option<(Key, Option<&'a Word>, bool)> {
    let mut sources = commands.iter().filter(|c| !matches!(c.name(), Some("sort" | "head" | "tail" | "cut" | "xargs")));
    let source = sources.next()?;
    // the output is that of the command that find runs
    let run = commands.iter().find(|c| source.name() == Some("find") && c.via == ["find"]);
    let source = run.unwrap_or(source);
    let text: String = source.words.iter().map(|w| format!(" {}", w.text)).collect();
    let format = |names: &[&str]| names.iter().any(|name| text.contains(name));
    let key = match source.name()? {
        "find" if format(&["-printf %T@", "-printf %A@", "-printf %C@"]) => Key::Time,
        "find" if format(&["-printf %s"]) => Key::Size,
        "stat" if format(&["-c %Y", "--format=%Y"]) => Key::Time,
        "stat" if format(&["-c %s", "--format=%s"]) => Key::Size,
        "du" | "wc" => Key::Size,
        _ => return None,
    };
    let clusters = || sort.args().iter().filter(|w| is_cluster(w));
    let is_numeric = clusters().any(|w| w.raw.contains(['n', 'h', 'g']));
    // other columns and long options are not checked
    let is_plain = sort.args().iter().all(|w| is_cluster(w) && !w.raw.contains(['k', 't', 'o', 'S', 'T']));
    (is_numeric && is_plain).then(|| (key, clusters().find(|w| w.raw.contains('r')), true))
}

/// True if the request asks for the high end, false for the low one; `None` if for neither or both.
fn wants_high_end(words: &Words, key: Key) -> Option<bool> {
    let (high, low) = match key {
        Key::Size => ("largest|biggest|heaviest", "smallest|tiniest"),
        Key::Time => ("newest|latest|most recent|most recently", "oldest|least recently"),
    };
    let (high, low) = (words.contains_phrase(high), words.contains_phrase(low));
    (high != low && !words.has_negation()).then_some(high)
}
