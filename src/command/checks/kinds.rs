//! "Files and folders", and only one kind of them is looked for; "no empty files", and nothing leaves them out.

use super::edit::{Edits, warning};
use super::words::Words;
use super::{CheckContext, find, only};
use crate::shell::{Finding, Invocation, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let words = Words::of(it.request);
    both(it, &words).or_else(|| summed(it, &words)).into_iter().chain(filled(it, &words)).collect()
}

/// True if files and folders are asked for alike.
fn says_both(words: &Words) -> bool {
    const FOLDERS: [&str; 4] = ["directories", "folders", "subdirectories", "subfolders"];
    const APART: [&str; 4] = ["only", "respectively", "separately", "each"];
    let list = words.list();
    let pair = |a: &str, b: &str| a == "files" && FOLDERS.contains(&b) || b == "files" && FOLDERS.contains(&a);
    let said = |w: &[String]| matches!(w[1].as_str(), "and" | "or") && pair(&w[0], &w[2]);
    let slashed = |w: &String| w.split_once('/').is_some_and(|(a, b)| pair(a, b));
    (list.windows(3).any(said) || list.iter().any(slashed)) && !list.iter().any(|w| APART.contains(&w.as_str()))
}

/// `find -type f` for "files and folders".
fn both(it: &CheckContext, words: &Words) -> Option<Finding> {
    // those that take files as names, not what is in them
    const NAMES: [&str; 17] = [
        "rm", "chmod", "chown", "chgrp", "ls", "mv", "cp", "du", "stat", "touch", "basename", "dirname", "sort",
        "uniq", "head", "tail", "xargs",
    ];
    let search = find(it.script).filter(|_| says_both(words))?;
    let named = it.script.commands.iter().filter(|c| c.name() != Some("find"));
    let counted = |c: &Invocation| c.name() == Some("wc") && c.via.is_empty();
    if !named.clone().all(|c| c.name().is_some_and(|n| NAMES.contains(&n)) || counted(c)) {
        return None;
    }
    let types = search.words.iter().enumerate().filter(|(_, w)| w.text == "-type");
    let (at, flag) = only(types)?;
    let value = search.words.get(at + 1).filter(|w| matches!(w.text.as_str(), "f" | "d"))?;
    let branches = |w: &Word| matches!(w.text.as_str(), "-o" | "-or" | ",");
    let negated = search.words.get(at.checked_sub(1)?).is_some_and(|w| matches!(w.text.as_str(), "!" | "-not"));
    if negated || search.words.iter().any(|w| branches(w) && w.span.start > flag.span.start && at > 2) {
        return None;
    }
    let mut edits = Edits::new(it.script).replace(flag, "").replace(value, "");
    let mut removes = search.words.iter().any(|w| w.text == "-delete");
    for removal in named.filter(|c| c.name() == Some("rm")) {
        removes = true;
        if !removal.has_option(Some('r'), "recursive") {
            edits = edits.after(removal.words.first()?, " -r");
        }
    }
    if let Some(delete) = search.words.iter().find(|w| w.text == "-delete") {
        edits = edits.replace(delete, "-exec rm -r {} +");
    }
    let kind = if value.text == "f" { "files" } else { "folders" };
    let why = format!("files and folders are asked for, and this takes {kind} only");
    // an old folder may hold new files, and a folder that only its age is asked of may be the one that is searched
    let unasked = removes && !by_name_only(search);
    Some(warning("one-kind", flag, why, edits.done().filter(|_| !unasked)))
}

/// True if names alone decide what is found.
fn by_name_only(search: &Invocation) -> bool {
    const NAMES: [&str; 8] = ["-name", "-iname", "-o", "-or", "-type", "-maxdepth", "-delete", "-exec"];
    let tests = search.words.iter().filter(|w| w.text.starts_with('-') && w.text.len() > 1);
    search.words.iter().any(|w| w.text.ends_with("name"))
        && tests.into_iter().all(|w| NAMES.contains(&w.text.as_str()))
        && !search.words.iter().any(|w| w.text == "!")
}

/// `du` for "the sizes of files and folders".
fn summed(it: &CheckContext, words: &Words) -> Option<Finding> {
    let du = it.script.commands.first().filter(|c| c.name() == Some("du") && says_both(words))?;
    let all = du.has_option(Some('a'), "all") || du.has_option(Some('s'), "summarize");
    if all || du.operands().any(|w| w.glob || w.expands) {
        return None;
    }
    let program = du.words.first()?;
    let fix = Edits::new(it.script).after(program, " -a").done();
    Some(warning("one-kind", program, "du names folders only: -a names the files in them, too", fix))
}

/// `find -type f` for "files that are not empty".
fn filled(it: &CheckContext, words: &Words) -> Option<Finding> {
    const LEFT_OUT: [&str; 10] =
        ["non", "nonempty", "ignore", "ignoring", "exclude", "excluding", "except", "skip", "skipping", "without"];
    let list = words.list();
    // "non-empty log files", "ignoring any empty ones", "that are not empty"; not "skipping empty lines"
    let at = list.iter().position(|w| matches!(w.as_str(), "empty" | "nonempty"))?;
    let lead = list[..=at].iter().rev().take(3).any(|w| LEFT_OUT.contains(&w.as_str()));
    let about = list[at + 1..].iter().take(3).any(|w| matches!(w.as_str(), "files" | "file" | "ones"));
    let after = at >= 2 && list[at - 1] == "not" && matches!(list[at - 2].as_str(), "are" | "is");
    let folders = list[at + 1..].iter().take(2).any(|w| matches!(w.as_str(), "directories" | "folders" | "lines"));
    if folders || !(lead && about || after && words.say(&["files"])) {
        return None;
    }
    let search = find(it.script)?;
    let told = |w: &Word| matches!(w.text.as_str(), "-empty" | "-size" | "-exec" | "-regex");
    let at = search.words.iter().position(|w| w.text == "-type")?;
    let value = search.words.get(at + 1).filter(|w| w.text == "f" && !search.words.iter().any(told))?;
    let fix = Edits::new(it.script).after(value, " -size +0").done();
    Some(warning("empty-too", value, "empty files are to be left out: -size +0", fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    fn fix(request: &str, command: &str) -> Option<String> {
        findings(check, request, command).into_iter().next().and_then(|f| f.fix)
    }

    #[test]
    fn files_and_folders_are_two_kinds() {
        for (request, wrong, right) in [
            ("list files and directories below src", "find src -type f", "find src"),
            ("newest files/folders in src", "find src -type f -mtime -1", "find src -mtime -1"),
            (
                "delete all files and folders called cache",
                "find . -type d -name cache -exec rm -f {} +",
                "find . -name cache -exec rm -r -f {} +",
            ),
            (
                "remove folders and files named tmp",
                "find . -type f -name tmp -delete",
                "find . -name tmp -exec rm -r {} +",
            ),
            ("sizes of all files and directories here", "du -h . | sort -h", "du -a -h . | sort -h"),
        ] {
            assert_eq!(fix(request, wrong).as_deref(), Some(right));
            assert_eq!(fix(request, right), None);
        }
        // told, but not done unasked: a folder that old may hold what is not
        let old = findings(check, "delete files and folders older than a week", "find /srv -type f -mtime +7 -delete");
        assert!(old.len() == 1 && old[0].fix.is_none(), "{old:?}");
        for (request, right) in [
            ("search files and folders for x", "find . -type f -exec grep x {} +"),
            ("set files and directories to 644 and 755 respectively", "find . -type f -exec chmod 644 {} +"),
            ("count files and directories each", "find . -type f | wc -l"),
            ("files in directories named x", "find . -type f -path '*/x/*'"),
            ("sizes of files and folders", "du -sh *"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }

    #[test]
    fn what_is_empty_is_left_out() {
        let right = "find . -type f -size +0 | head";
        for request in [
            "list the smallest files ignoring any empty files",
            "non-empty log files",
            "files that are not empty",
            "all files, skipping empty ones",
        ] {
            assert_eq!(fix(request, "find . -type f | head").as_deref(), Some(right), "{request}");
            assert_eq!(fix(request, right), None);
            assert_eq!(fix(request, "find . -type f ! -empty"), None);
        }
        for request in ["empty files", "files, skipping empty lines", "files in non-empty directories"] {
            assert_eq!(fix(request, "find . -type f"), None, "{request}");
        }
    }
}
