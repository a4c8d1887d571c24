//! Finds `grep` commands that match something else than intended: nothing, a literal plus sign, or matches that are
//! never equal.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::{Finding, Invocation};

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    if let Some(nothing) = contradicted(cx) {
        return vec![nothing];
    }
    let greps = cx.script.commands.iter().filter(|c| matches!(c.name(), Some("grep" | "egrep" | "fgrep")));
    greps.filter_map(|grep| literal_plus(cx, grep).or_else(|| file_names(cx, grep))).collect()
}

/// `grep x | grep -v x` leaves no line.
fn contradicted(cx: &CheckContext) -> Option<Finding> {
    let commands = &cx.script.commands;
    let finds = |c: &Invocation| c.name() == Some("grep") && !c.has_option(Some('v'), "invert-match");
    // both have to use the same kind of pattern
    let flags = |c: &Invocation| -> Option<Vec<String>> {
        let all = c.args().iter().filter(|w| w.text.starts_with('-') && w.text != "-v");
        all.map(|w| matches!(w.text.as_str(), "-E" | "-F" | "-i" | "-w" | "-P").then(|| w.text.clone())).collect()
    };
    commands.iter().filter(|c| finds(c)).find_map(|grep| {
        let other = cx.script.reader(grep).filter(|c| c.name() == Some("grep"))?;
        let (pattern, excluded) = (grep.operands().next()?, other.operands().next()?);
        let is_same = pattern.value.is_some() && pattern.value == excluded.value && flags(grep)? == flags(other)?;
        let inverts = other.args().iter().any(|w| w.text == "-v");
        let why = "this leaves out every line that the grep before it found";
        (is_same && inverts).then(|| warning("nothing-left", excluded, why, None))
    })
}

/// `grep -ro x logs | sort -u`: each match follows the name of its file, so that equal matches in two files differ.
fn file_names(cx: &CheckContext, grep: &Invocation) -> Option<Finding> {
    let has = |letter: char, long: &str| grep.has_option(Some(letter), long);
    let reads_several = has('r', "recursive")
        || has('R', "dereference-recursive")
        || grep.via.iter().any(|by| matches!(by.as_str(), "xargs" | "find"))
        || grep.operands().skip(1).any(|w| w.glob)
        || grep.operands().count() > 2;
    let is_explicit =
        has('h', "no-filename") || has('H', "with-filename") || has('n', "line-number") || has('c', "count");
    // a program that cuts columns may expect the names
    let is_plain = cx.script.commands.iter().all(|c| {
        matches!(c.name(), Some("grep" | "egrep" | "sort" | "uniq" | "head" | "tail" | "wc" | "xargs" | "find"))
    });
    // equal matches are to be merged, which the different names prevent
    let dedups =
        |c: &Invocation| c.name() == Some("uniq") || c.name() == Some("sort") && c.has_option(Some('u'), "unique");
    let is_deduped = cx.script.commands.iter().any(dedups);
    if !(is_deduped && is_plain && reads_several && has('o', "only-matching")) || is_explicit {
        return None;
    }
    let program = grep.words.first()?;
    let fix = Edits::new(cx.script).insert_after(program, " -h").apply();
    Some(warning("names-in-output", program, "each match stands behind the name of its file: -h leaves it out", fix))
}

/// `grep -o '[a-z]+'`: without `-E` the plus is literal.
fn literal_plus(cx: &CheckContext, grep: &Invocation) -> Option<Finding> {
    let has_kind = grep.has_option(Some('E'), "extended-regexp")
        || grep.has_option(Some('P'), "perl-regexp")
        || grep.has_option(Some('F'), "fixed-strings")
        || grep.has_option(Some('f'), "file");
    let (program, pattern) = (grep.words.first()?, grep.operands().next()?);
    let text = pattern.value.as_deref()?;
    // a backslash suggests that a basic expression is meant
    let repeats = ["]+", "]{", ")+"].iter().any(|mark| text.contains(mark)) && !text.contains('\\');
    let fix = Edits::new(cx.script).insert_after(program, " -E").apply();
    (grep.name() == Some("grep") && !has_kind && repeats)
        .then(|| warning("plain-plus", pattern, "without -E + and { are plain characters", fix))
}
