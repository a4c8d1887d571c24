//! What `grep` is to find: files without something, whole words, whole lines, and what repeats.

use super::CheckContext;
use super::edit::{Edits, cluster_with, warning, without};
use super::words::Words;
use crate::shell::{Finding, Invocation};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    if let Some(nothing) = contradicted(it) {
        return vec![nothing];
    }
    let words = Words::of(it.request);
    let greps = it.script.commands.iter().filter(|c| matches!(c.name(), Some("grep" | "egrep" | "fgrep")));
    let of = |grep| lacking(it, grep, &words).or_else(|| whole(it, grep, &words));
    let more = |grep| lines(it, grep, &words).or_else(|| repeated(it, grep)).or_else(|| extracted(it, grep, &words));
    greps.filter_map(|grep| of(grep).or_else(|| more(grep))).collect()
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
fn extracted(it: &CheckContext, grep: &Invocation, words: &Words) -> Option<Finding> {
    const TAKES: [&str; 7] = ["extract", "extracting", "collect", "unique", "distinct", "duplicates", "different"];
    const PLACE: [&str; 9] = [
        "file name",
        "file names",
        "filename",
        "filenames",
        "which file",
        "which files",
        "where",
        "per file",
        "each file",
    ];
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
    let asked = (words.say(&TAKES) || it.script.commands.iter().any(dedups)) && !words.say(&PLACE);
    let program = grep.words.first().filter(|_| asked && plain && several && !told && has('o', "only-matching"))?;
    let fix = Edits::new(it.script).after(program, " -h").done();
    Some(warning("names-in-output", program, "each match stands behind the name of its file: -h leaves it out", fix))
}

/// `grep -v -f b a` for "the lines of a that are not in b": its lines are no patterns, and parts of lines match.
fn lines(it: &CheckContext, grep: &Invocation, words: &Words) -> Option<Finding> {
    const PART: [&str; 16] = [
        "contain",
        "contains",
        "containing",
        "have",
        "having",
        "include",
        "match",
        "matches",
        "matching",
        "mention",
        "names",
        "pattern",
        "patterns",
        "terms",
        "with",
        "words",
    ];
    let is_part = |w: &String| PART.contains(&w.as_str()) || w == "any" || w == "word";
    let asked = words.list().iter().any(|w| w == "lines") && words.negate() && !words.list().iter().any(is_part);
    let from = grep.has_option(Some('f'), "file") && grep.has_option(Some('v'), "invert-match");
    let exact = grep.has_option(Some('x'), "line-regexp") || grep.has_option(Some('w'), "word-regexp");
    let program = grep.words.first().filter(|_| asked && from && !exact)?;
    let fixed = grep.has_option(Some('F'), "fixed-strings") || grep.name() == Some("fgrep");
    let fix = Edits::new(it.script).after(program, if fixed { " -x" } else { " -Fx" }).done();
    Some(warning("part-of-line", program, "lines are compared as patterns, and in part: -Fx compares them whole", fix))
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

/// `grep -l -v x` names the files with any line that has no x: nearly all. `grep -L x` names those without an x.
fn lacking(it: &CheckContext, grep: &Invocation, words: &Words) -> Option<Finding> {
    let asked = words.negate() || words.say(&["lack", "lacking", "missing"]);
    let names = cluster_with(grep.args(), 'l').filter(|_| asked)?;
    let inverts = cluster_with(grep.args(), 'v')?;
    let named = |cluster: &str| cluster.replace('l', "L");
    let edits = Edits::new(it.script);
    let fix = if names.span == inverts.span {
        edits.replace(names, &named(&without(&names.raw, 'v')))
    } else {
        edits.replace(names, &named(&names.raw)).replace(inverts, &without(&inverts.raw, 'v'))
    };
    const WHY: &str = "-l with -v names files with any other line: -L names the files without a match";
    Some(warning("files-without", names, WHY, fix.done()))
}

/// "As a whole word", and nothing that says so to grep.
fn whole(it: &CheckContext, grep: &Invocation, words: &Words) -> Option<Finding> {
    const SAID: [&str; 7] =
        ["whole word", "whole words", "entire word", "full word", "complete word", "exact word", "word boundaries"];
    let program = grep.words.first().filter(|_| words.say(&SAID))?;
    let bounded = |text: &str| ["\\b", "\\<", "\\W", "[^"].iter().any(|mark| text.contains(mark));
    // what excludes lines is no search for the word
    let other = grep.has_option(Some('w'), "word-regexp")
        || grep.has_option(Some('x'), "line-regexp")
        || grep.has_option(Some('v'), "invert-match");
    if other || grep.args().iter().any(|w| bounded(&w.text)) {
        return None;
    }
    let fix = Edits::new(it.script).after(program, " -w").done();
    Some(warning("whole-word", program, "a whole word is asked for, and parts of words match: -w", fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    fn fix(request: &str, command: &str) -> Option<String> {
        findings(check, request, command).into_iter().next().and_then(|f| f.fix)
    }

    #[test]
    fn files_without_a_match_are_named_by_another_letter() {
        let request = "ini files that do not contain debug";
        for (wrong, right) in [
            ("grep -rl -v debug conf", "grep -rL debug conf"),
            ("grep -lv debug *.ini", "grep -L debug *.ini"),
            ("grep -r --include='*.ini' -v -l debug .", "grep -r --include='*.ini' -L debug ."),
        ] {
            assert_eq!(fix(request, wrong).as_deref(), Some(right));
            assert_eq!(fix(request, right), None);
        }
        assert_eq!(fix(request, "grep -v debug a.ini"), None);
        assert_eq!(fix("files with a line other than x", "grep -l -v x *").as_deref(), Some("grep -L x *"));
        assert_eq!(fix("files that have any line beside x", "grep -l -v x *"), None);
    }

    #[test]
    fn whole_lines_and_repetition_are_said_to_grep() {
        let request = "lines of a.txt that are not in b.txt";
        for (wrong, right) in [
            ("grep -v -f b.txt a.txt", "grep -Fx -v -f b.txt a.txt"),
            ("grep -vFf b.txt a.txt", "grep -x -vFf b.txt a.txt"),
            ("grep -o '[a-z]+' a.txt", "grep -E -o '[a-z]+' a.txt"),
            ("grep '[0-9]{3}' a.txt", "grep -E '[0-9]{3}' a.txt"),
        ] {
            assert_eq!(fix(request, wrong).as_deref(), Some(right));
            assert_eq!(fix(request, right), None);
        }
        for right in ["grep -vxFf b.txt a.txt", "grep 'c++' a.txt", "grep '[a-z]\\+' a.txt", "grep -P '[a-z]+' a.txt"] {
            assert_eq!(fix(request, right), None, "{right}");
        }
        for part in [
            "all but the names in b.txt",
            "lines without the names in b.txt",
            "lines of a.txt that don't contain any word of b.txt",
            "lines of a.txt that match none of the patterns in b.txt, not even in part",
        ] {
            assert_eq!(fix(part, "grep -vf b.txt a.txt"), None, "{part}");
        }
    }

    #[test]
    fn a_whole_word_is_said_to_grep() {
        let request = "lines with main as a whole word";
        assert_eq!(fix(request, "grep main a.c").as_deref(), Some("grep -w main a.c"));
        for right in ["grep -w main a.c", "grep '\\bmain\\b' a.c", "grep -nw main a.c", "grep -v main a.c"] {
            assert_eq!(fix(request, right), None, "{right}");
        }
        assert_eq!(fix("lines with main", "grep main a.c"), None);
    }

    #[test]
    fn what_is_extracted_has_no_file_names() {
        let fix = |request, command| findings(check, request, command).into_iter().map(|f| f.fix).next();
        let request = "extract all mail addresses from the files in letters";
        let mended = |text: &str| Some(Some(text.to_owned()));
        assert_eq!(fix(request, "grep -Ero '[a-z]+@[a-z.]+' letters"), mended("grep -h -Ero '[a-z]+@[a-z.]+' letters"));
        assert_eq!(
            fix("unique ids in the logs", "grep -oE 'id=[0-9]+' *.log | sort -u"),
            mended("grep -h -oE 'id=[0-9]+' *.log | sort -u")
        );
        for (request, right) in [
            (request, "grep -Ehro '[a-z]+@[a-z.]+' letters"),
            (request, "grep -Ero '[a-z]+@[a-z.]+' letters | cut -d: -f2"),
            (request, "cat letters/* | grep -Eo '[a-z]+@[a-z.]+'"),
            ("extract the ids from a.log", "grep -oE 'id=[0-9]+' a.log"),
            ("extract the ids and tell which file they are in", "grep -roE 'id=[0-9]+' ."),
            ("find TODO in src", "grep -ro TODO src"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
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
