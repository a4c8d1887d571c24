//! Finds commands that search subfolders although the request asks for one folder only.

use super::edit::{Edits, cluster_with, warning, without_letter};
use super::facts::excluded::negated;
use super::words::{Words, is_subfolder};
use super::{CheckContext, single_find, starting_points};
use caro_shell::{Finding, Invocation};

/// The depth that a request asks for: one folder, or its subfolders too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    One,
    All,
}

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let asked = depth(&Words::of(cx.request));
    let found = nothing_left(cx, asked).or_else(|| if asked? == Depth::One { one_level(cx) } else { None });
    found.into_iter().collect()
}

/// `find DIR ! -path 'DIR/*'` excludes everything in DIR.
fn nothing_left(cx: &CheckContext, asked: Option<Depth>) -> Option<Finding> {
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
    let fix = if asked == Some(Depth::One) {
        let edits = Edits::new(cx.script).replace(not, "").replace(path, "").replace(pattern, "");
        edits.insert_after(&command.words[last_start(command)], " -maxdepth 1").apply()
    } else {
        None
    };
    let why = format!("everything in {root} matches {all}, and is left out");
    Some(warning("nothing-left", pattern, why, fix))
}

/// Returns the depth that a request asks for, if it is clear.
fn depth(words: &Words) -> Option<Depth> {
    const NOT: [&str; 12] = [
        "not",
        "no",
        "without",
        "excluding",
        "exclude",
        "ignore",
        "ignoring",
        "skip",
        "skipping",
        "don't",
        "never",
        "non",
    ];
    const FILLER: [&str; 18] = [
        "in",
        "its",
        "the",
        "any",
        "of",
        "to",
        "into",
        "descend",
        "descending",
        "include",
        "including",
        "go",
        "going",
        "look",
        "looking",
        "search",
        "searching",
        "from",
    ];
    let list = words.list();
    let is_about_depth = |w: &str| is_subfolder(w) || w.starts_with("recurs");
    let mut found = None;
    for (i, _) in list.iter().enumerate().filter(|(_, w)| is_about_depth(w)) {
        let lead = list[..i].iter().rposition(|w| !FILLER.contains(&w.as_str()));
        let negation = lead.filter(|at| NOT.contains(&list[*at].as_str()));
        // "folders without subfolders" is a property of folders
        let is_property = negation.is_some_and(|at| is_property_of_folders(&list[..at]));
        let is_included = list[i].starts_with("recurs")
            || list[..i]
                .iter()
                .rev()
                .take_while(|w| matches!(w.as_str(), "its" | "all" | "any" | "the" | "including"))
                .any(|w| w == "including")
            || list[..i].ends_with(&["in".into(), "all".into()]);
        let this = match (negation.is_some(), is_property, is_included) {
            (true, false, _) => Depth::One,
            (false, _, true) => Depth::All,
            _ => return None,
        };
        if found.is_some_and(|other| other != this) {
            return None;
        }
        found = Some(this);
    }
    found.or_else(|| {
        words
            .contains_phrase(&TREE)
            .then_some(Depth::All)
            .or_else(|| words.contains_phrase(&["top level only", "only the top level"]).then_some(Depth::One))
    })
}

/// Phrases for a whole tree.
const TREE: [&str; 7] = [
    "whole directory tree",
    "entire directory tree",
    "whole tree",
    "entire tree",
    "full tree",
    "at any depth",
    "however deep",
];

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
        const BOUND: [&str; 9] =
            ["-maxdepth", "-prune", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-depth", "-links"];
        if command.args().iter().any(|w| BOUND.contains(&w.text.as_str())) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_in_a_request_is_recognized() {
        let of = |request| depth(&Words::of(request));
        for one in [
            "files here, not in subfolders",
            "delete logs without descending into subdirectories",
            "list files non-recursively",
            "do not include subdirectories",
            "files in this folder, ignoring any subfolders",
        ] {
            assert_eq!(of(one), Some(Depth::One), "{one}");
        }
        for all in [
            "list files recursively",
            "grep x in all subdirectories",
            "including its subfolders",
            "newest file of the whole tree",
        ] {
            assert_eq!(of(all), Some(Depth::All), "{all}");
        }
        for none in [
            "folders without subfolders",
            "directories that have no subdirectories",
            "list files and subdirectories",
            "files not owned by root in subfolders",
            "recursively list the files, no subfolders named x",
        ] {
            assert_ne!(of(none), Some(Depth::One), "{none}");
        }
    }

    #[test]
    fn excluding_the_content_of_the_folder_leaves_nothing() {
        let fix =
            |request, command| super::super::tests::findings(check, request, command).into_iter().map(|f| f.fix).next();
        let wrong = "find /srv -name '*.txt' -not -path '/srv/*' -delete";
        let right = "find /srv -maxdepth 1 -name '*.txt' -delete";
        assert_eq!(fix("delete the text files of /srv, but not in its subfolders", wrong), Some(Some(right.into())));
        assert_eq!(fix("delete the text files of /srv", wrong), Some(None));
        assert_eq!(fix("files, not in subfolders", "find ! -path './*'"), Some(Some("find -maxdepth 1".into())));
        assert_eq!(fix("files, not in subfolders", "find /srv ! -path '/srv/*/*'"), None);
        assert_eq!(fix("files of /srv outside a", "find /srv ! -path '/srv/a/*'"), None);
    }
}
