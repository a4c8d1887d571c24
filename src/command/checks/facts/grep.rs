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

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    fn fix(command: &str) -> Option<String> {
        findings(check, "", command).into_iter().next().and_then(|f| f.fix)
    }

    #[test]
    fn repetition_is_said_to_grep() {
        for (wrong, right) in [
            ("grep -o '[a-z]+' a.txt", "grep -E -o '[a-z]+' a.txt"),
            ("grep '[0-9]{3}' a.txt", "grep -E '[0-9]{3}' a.txt"),
        ] {
            assert_eq!(fix(wrong).as_deref(), Some(right));
            assert_eq!(fix(right), None);
        }
        for right in ["grep 'c++' a.txt", "grep '[a-z]\\+' a.txt", "grep -P '[a-z]+' a.txt"] {
            assert_eq!(fix(right), None, "{right}");
        }
    }

    #[test]
    fn what_is_compared_has_no_file_names() {
        assert_eq!(
            fix("grep -oE 'id=[0-9]+' *.log | sort -u").as_deref(),
            Some("grep -h -oE 'id=[0-9]+' *.log | sort -u")
        );
        for right in [
            "grep -Ehro '[a-z]+@[a-z.]+' letters | sort | uniq -c",
            "grep -Ero '[a-z]+@[a-z.]+' letters | cut -d: -f2 | sort -u",
            "cat letters/* | grep -Eo '[a-z]+@[a-z.]+' | sort -u",
            "grep -oE 'id=[0-9]+' a.log | sort -u",
            "grep -ro TODO src",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }

    #[test]
    fn what_was_found_is_not_left_out() {
        let found = |command: &str| findings(check, "", command).into_iter().map(|f| f.id).collect::<Vec<_>>();
        assert_eq!(found("grep -E 'a.*b' f | grep -v -E 'a.*b' | wc -l"), ["nothing-left"]);
        for right in
            ["grep a f | grep -v b", "grep -i a f | grep -v a", "grep -c a f | grep -v a", "grep -v a f | grep a"]
        {
            assert_eq!(found(right), [""; 0], "{right}");
        }
    }
}
