//! Patterns of `grep` that find something else than they are written for: nothing, a plus sign, or a match that no other is equal to.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::{Finding, Invocation};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    if let Some(nothing) = contradicted(it) {
        return vec![nothing];
    }
    let greps = it.script.commands.iter().filter(|c| matches!(c.name(), Some("grep" | "egrep" | "fgrep")));
    greps.filter_map(|grep| repeated(it, grep).or_else(|| named(it, grep))).collect()
}

/// `grep x | grep -v x`: no line is left.
fn contradicted(it: &CheckContext) -> Option<Finding> {
    let commands = &it.script.commands;
    let finds = |c: &Invocation| c.name() == Some("grep") && !c.has_option(Some('v'), "invert-match");
    // what a match is has to be the same for both
    let flags = |c: &Invocation| -> Option<Vec<String>> {
        let all = c.args().iter().filter(|w| w.text.starts_with('-') && w.text != "-v");
        all.map(|w| matches!(w.text.as_str(), "-E" | "-F" | "-i" | "-w" | "-P").then(|| w.text.clone())).collect()
    };
    commands.iter().filter(|c| finds(c)).find_map(|grep| {
        let other = it.script.reader(grep).filter(|c| c.name() == Some("grep"))?;
        let (pattern, out) = (grep.operands().next()?, other.operands().next()?);
        let same = pattern.value.is_some() && pattern.value == out.value && flags(grep)? == flags(other)?;
        let inverts = other.args().iter().any(|w| w.text == "-v");
        let why = "this leaves out every line that the grep before it found";
        (same && inverts).then(|| warning("nothing-left", out, why, None))
    })
}

/// `grep -ro x logs | sort -u`: what is found stands behind the name of its file, and so is never twice the same.
fn named(it: &CheckContext, grep: &Invocation) -> Option<Finding> {
    let has = |letter: char, long: &str| grep.has_option(Some(letter), long);
    let several = has('r', "recursive")
        || has('R', "dereference-recursive")
        || grep.via.iter().any(|by| matches!(by.as_str(), "xargs" | "find"))
        || grep.operands().skip(1).any(|w| w.glob)
        || grep.operands().count() > 2;
    let told = has('h', "no-filename") || has('H', "with-filename") || has('n', "line-number") || has('c', "count");
    // whoever cuts or prints columns knows of the names
    let plain = it.script.commands.iter().all(|c| {
        matches!(c.name(), Some("grep" | "egrep" | "sort" | "uniq" | "head" | "tail" | "wc" | "xargs" | "find"))
    });
    // what is the same is to be found together, and behind different names nothing is
    let dedups =
        |c: &Invocation| c.name() == Some("uniq") || c.name() == Some("sort") && c.has_option(Some('u'), "unique");
    let compared = it.script.commands.iter().any(dedups);
    if !(compared && plain && several && has('o', "only-matching")) || told {
        return None;
    }
    let program = grep.words.first()?;
    let fix = Edits::new(it.script).after(program, " -h").done();
    Some(warning("names-in-output", program, "each match stands behind the name of its file: -h leaves it out", fix))
}

/// `grep -o '[a-z]+'`: without `-E` the plus is a plus.
fn repeated(it: &CheckContext, grep: &Invocation) -> Option<Finding> {
    let said = grep.has_option(Some('E'), "extended-regexp")
        || grep.has_option(Some('P'), "perl-regexp")
        || grep.has_option(Some('F'), "fixed-strings")
        || grep.has_option(Some('f'), "file");
    let (program, pattern) = (grep.words.first()?, grep.operands().next()?);
    let text = pattern.value.as_deref()?;
    // a backslash says that the other kind of pattern is meant
    let repeats = ["]+", "]{", ")+"].iter().any(|mark| text.contains(mark)) && !text.contains('\\');
    let fix = Edits::new(it.script).after(program, " -E").done();
    (grep.name() == Some("grep") && !said && repeats)
        .then(|| warning("plain-plus", pattern, "without -E + and { are plain characters", fix))
}
