//! Finds commands that search subfolders although the request asks for one folder only.

use super::edit::{Edits, cluster_with, warning, without_letter};
use super::facts::excluded::negated;
use super::words::{Words, is_in, is_subfolder, negates};
use super::{CheckContext, single_find, starting_points};
use caro_shell::{Finding, Invocation};

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let is_one_level = asks_for_one_level(&Words::of(cx.request));
    nothing_left(cx, is_one_level).or_else(|| if is_one_level { one_level(cx) } else { None })
}

/// `find DIR ! -path 'DIR/*'` excludes everything in DIR.
fn nothing_left(cx: &CheckContext, is_one_level: bool) -> Option<Finding> {
    let command = single_find(cx.script)?;
    let root = match last_start(command) {
        0 => ".",
        1 => command.words[1].value.as_deref()?,
        _ => return None,
    };
    let all = format!("{}/*", root.trim_end_matches('/'));
    let test = negated(command, &["-path", "-wholename"]).find(|w| w[2].text == all)?;
    if command.args().iter().any(|w| matches!(w.text.as_str(), "-maxdepth" | "-o" | "-or" | "-prune")) {
        return None;
    }
    let [not, path, pattern] = test else { return None };
    let fix = if is_one_level {
        let edits = Edits::new(cx.script).replace(not, "").replace(path, "").replace(pattern, "");
        edits.insert_after(&command.words[last_start(command)], " -maxdepth 1").apply()
    } else {
        None
    };
    let why = format!("everything in {root} matches {all}, and is left out");
    Some(warning("nothing-left", pattern, why, fix))
}

/// True if a request asks for one folder without its subfolders.
fn asks_for_one_level(words: &Words) -> bool {
    const FILLER: &str = "in its the any of to into descend descending include including go going look looking search \
        searching from";
    let list = words.list();
    let is_about_depth = |w: &str| is_subfolder(w) || w.starts_with("recurs");
    let mut mentions = (0..list.len()).filter(|&i| is_about_depth(&list[i])).peekable();
    if mentions.peek().is_none() {
        return words.contains_phrase("top level only|only the top level") && !words.contains_phrase(TREE);
    }
    mentions.all(|i| {
        let lead = list[..i].iter().rposition(|w| !is_in(FILLER, w));
        let negation = lead.filter(|at| negates(&list[*at]));
        // "folders without subfolders" is a property of folders
        negation.is_some_and(|at| !is_property_of_folders(&list[..at]))
    })
}

/// Phrases for a whole tree.
const TREE: &str = "whole directory tree|entire directory tree|whole tree|entire tree|full tree|at any depth|\
    however deep";

/// True if the words before a negation make it a property of folders: "folders without subfolders", "those that have
/// no subfolders".
fn is_property_of_folders(before: &[String]) -> bool {
    const LINKS: [&str; 9] = ["do", "does", "that", "which", "have", "has", "having", "with", "contain"];
    let noun = before.iter().rposition(|w| !LINKS.contains(&w.as_str()));
    let links = &before[noun.map_or(0, |n| n + 1)..];
    links.iter().any(|w| LINKS[4..].contains(&w.as_str()))
        || noun.is_some_and(|n| matches!(before[n].as_str(), "folders" | "directories"))
}

fn one_level(cx: &CheckContext) -> Option<Finding> {
    const WHY: &str = "subfolders are not asked for, and this looks into them";
    if let Some(command) = single_find(cx.script) {
        const BOUND: &str = "-maxdepth -prune -path -ipath -wholename -regex -iregex -depth -links";
        if command.args().iter().any(|w| is_in(BOUND, &w.text)) {
            return None;
        }
        let starts = last_start(command);
        let last = &command.words[starts];
        if command.words[1..=starts].iter().any(|w| w.glob || w.expands) {
            return None;
        }
        return Some(warning("one-level", last, WHY, Edits::new(cx.script).insert_after(last, " -maxdepth 1").apply()));
    }
    let [command] = cx.script.commands.as_slice() else { return None };
    let word = match command.name()? {
        "ls" => cluster_with(command.args(), 'R')?,
        _ => return None,
    };
    Some(warning("one-level", word, WHY, Edits::new(cx.script).replace(word, &without_letter(&word.raw, 'R')).apply()))
}

/// Returns the index of the last starting point of a `find` among its words; 0 if there is none.
fn last_start(command: &Invocation) -> usize {
    let options = command.args().iter().take_while(|w| matches!(w.text.as_str(), "-H" | "-L" | "-P")).count();
    options + starting_points(command).count()
}
