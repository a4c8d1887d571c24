//! "The largest", "the oldest": the end of a sorted list that is taken is the other one.

use super::edit::{Edits, is_cluster, is_ls_cluster, ls_cluster_with, warning, without};
use super::words::Words;
use super::{CheckContext, only};
use caro_shell::{Finding, Invocation, Word};

/// What a list is sorted by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Size,
    Time,
}

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).into_iter().collect()
}

fn check_script(it: &CheckContext) -> Option<Finding> {
    let commands = &it.script.commands;
    let sorting = commands.iter().filter(|c| matches!(c.name(), Some("sort" | "ls")));
    let sort = only(sorting)?;
    let mut taker = it.script.reader(sort)?;
    let mut takers = 1;
    // the line "total" of `ls -l` is left out before
    if sort.name() == Some("ls") && taker.name() == Some("tail") && skips_one(taker) {
        (taker, takers) = (it.script.reader(taker)?, 2);
    }
    let first = first_taken(taker)?;
    // who takes from what was taken, or turns it around, means something else
    if commands.iter().any(|c| c.name() == Some("tac")) || commands.iter().filter(|c| takes(c)).count() != takers {
        return None;
    }
    let (key, reversal, up) = if sort.name() == Some("ls") { listed(sort)? } else { sorted(sort, commands)? };
    let wants_high = wanted(&Words::of(it.request), key)?;
    let has_high = (reversal.is_none() == up) != first;
    let why = match (key, wants_high) {
        (Key::Size, true) => "the largest are asked for, and this takes the smallest",
        (Key::Size, false) => "the smallest are asked for, and this takes the largest",
        (Key::Time, true) => "the newest are asked for, and this takes the oldest",
        (Key::Time, false) => "the oldest are asked for, and this takes the newest",
    };
    let flag = reversal.or_else(|| sort.args().iter().find(|w| is_ls_cluster(w)))?;
    let turned = if reversal.is_some() { without(&flag.raw, 'r') } else { format!("{}r", flag.raw) };
    let fix = Edits::new(it.script).replace(flag, &turned).done();
    (has_high != wants_high).then(|| warning("wrong-end", flag, why, fix))
}

/// `tail -n +2`: all but the first line.
fn skips_one(tail: &Invocation) -> bool {
    matches!(&tail.args().iter().map(|w| w.text.as_str()).collect::<Vec<_>>()[..], ["-n", "+2"] | ["-n+2"])
}

fn takes(command: &Invocation) -> bool {
    matches!(command.name(), Some("head" | "tail"))
}

/// True if the first lines are taken, false for the last; `None` if all but some are.
fn first_taken(command: &Invocation) -> Option<bool> {
    let all_but = |w: &Word| w.text.starts_with('+') || w.text.starts_with("-n+") || w.text.starts_with("-n-");
    let minus = command.args().windows(2).any(|w| w[0].text == "-n" && w[1].text.starts_with('-'));
    (takes(command) && !minus && !command.args().iter().any(all_but)).then(|| command.name() == Some("head"))
}

/// What `ls` sorts by, the cluster that turns it around, and whether it goes up otherwise.
fn listed(ls: &Invocation) -> Option<(Key, Option<&Word>, bool)> {
    let key = match (ls_cluster_with(ls, 't'), ls_cluster_with(ls, 'S')) {
        (Some(_), None) => Key::Time,
        (None, Some(_)) => Key::Size,
        _ => return None,
    };
    let long = ls.args().iter().any(|w| w.text.starts_with("--"));
    (!long).then(|| (key, ls_cluster_with(ls, 'r'), false))
}

/// The same for a numeric `sort` by the first column of what is known to begin with sizes or times.
fn sorted<'a>(sort: &'a Invocation, commands: &[Invocation]) -> Option<(Key, Option<&'a Word>, bool)> {
    let mut sources = commands.iter().filter(|c| !matches!(c.name(), Some("sort" | "head" | "tail" | "cut" | "xargs")));
    let source = sources.next()?;
    // what find hands its files to prints
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
    let numeric = clusters().any(|w| w.raw.contains(['n', 'h', 'g']));
    // other columns and long options are not looked into
    let plain = sort.args().iter().all(|w| is_cluster(w) && !w.raw.contains(['k', 't', 'o', 'S', 'T']));
    (numeric && plain).then(|| (key, clusters().find(|w| w.raw.contains('r')), true))
}

/// True if the high end is asked for, false for the low one; `None` if neither or both are.
fn wanted(words: &Words, key: Key) -> Option<bool> {
    let (high, low): (&[&str], &[&str]) = match key {
        Key::Size => (&["largest", "biggest", "heaviest"], &["smallest", "tiniest"]),
        Key::Time => (&["newest", "latest", "most recent", "most recently"], &["oldest", "least recently"]),
    };
    let (high, low) = (words.contains_phrase(high), words.contains_phrase(low));
    (high != low && !words.has_negation()).then_some(high)
}
