//! What `diff` prints, where less is asked for: which files differ, how many lines do; and `comm`, which wants sorted files.

use super::Inspected;
use super::edit::{Edits, warning};
use super::words::Words;
use crate::shell::{Dialect, Finding, Invocation, Word};

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    let words = Words::of(it.request);
    which(it, &words).or_else(|| lines(it, &words)).or_else(|| unsorted(it, &words)).into_iter().collect()
}

/// `comm -23 a b` of files that nobody has sorted: what it prints is wrong, and it says so only on the side.
fn unsorted(it: &Inspected, words: &Words) -> Option<Finding> {
    let comm = it.script.commands.iter().find(|c| c.name() == Some("comm") && c.via.is_empty())?;
    let [one, other] = comm.operands().collect::<Vec<_>>()[..] else { return None };
    let plain = |w: &Word| w.value.is_some() && w.text != "-";
    let sorted = words.list().iter().any(|w| w.contains("sorted"))
        || it.script.commands.iter().any(|c| c.name() == Some("sort"));
    if sorted || !plain(one) || !plain(other) || one.text.contains("sort") || other.text.contains("sort") {
        return None;
    }
    let edits = Edits::new(it.script).replace(one, &format!("<(sort {})", one.raw));
    let fix = edits.replace(other, &format!("<(sort {})", other.raw)).done();
    let able = matches!(it.dialect, Dialect::Bash | Dialect::Zsh);
    Some(warning("not-sorted", comm.words.first()?, "comm compares sorted files only", fix.filter(|_| able)))
}

/// `diff a b` for "which files differ".
fn which(it: &Inspected, words: &Words) -> Option<Finding> {
    const SAID: [&str; 8] = [
        "which files differ",
        "what files differ",
        "which files are different",
        "files that differ",
        "files that are different",
        "names of differing files",
        "list of differing files",
        "list the differing files",
    ];
    let [diff] = it.script.commands.as_slice() else { return None };
    let short = diff.has_option(Some('q'), "brief") || diff.has_option(Some('s'), "report-identical-files");
    let program = diff.words.first().filter(|_| diff.name() == Some("diff") && words.say(&SAID) && !short)?;
    let more = words.say(&["and how", "and show", "and what", "differences", "lines"]);
    let fix = Edits::new(it.script).after(program, " -q").done();
    (!more).then(|| warning("names-asked", program, "the names of files are asked for: diff -q", fix))
}

/// `diff a b | wc -l` for "how many lines differ": the lines that say where are no lines of the files.
fn lines(it: &Inspected, words: &Words) -> Option<Finding> {
    let [diff, count] = it.script.commands.as_slice() else { return None };
    let plain = |c: &Invocation| c.args().iter().all(|w| !w.text.starts_with('-'));
    let asked = words.say(&["lines", "differences"]) && words.list().iter().any(|w| w.starts_with("diff"));
    let counts = count.name() == Some("wc") && count.args().iter().all(|w| w.text == "-l") && diff.feeds == [1];
    if diff.name() != Some("diff") || !plain(diff) || !counts || !asked {
        return None;
    }
    let fix = Edits::new(it.script).span(&count.words, "grep -c '^[<>]'").done();
    const WHY: &str = "diff also prints where the lines stand: count those that begin with < or >";
    Some(warning("hunks-counted", count.words.first()?, WHY, fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn less_is_asked_for_than_diff_prints() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        for (request, wrong, right) in [
            ("which files differ between a and b", "diff -r a b", "diff -q -r a b"),
            (
                "how many lines differ in a.txt and b.txt",
                "diff a.txt b.txt | wc -l",
                "diff a.txt b.txt | grep -c '^[<>]'",
            ),
        ] {
            assert_eq!(fix(request, wrong).as_deref(), Some(right));
            assert_eq!(fix(request, right), None);
        }
        let common = fix("lines that are in a and in b", "comm -12 a b | wc -l");
        assert_eq!(common.as_deref(), Some("comm -12 <(sort a) <(sort b) | wc -l"));
        for (request, right) in [
            ("lines that are in a and in b", "comm -12 <(sort a) <(sort b)"),
            ("lines that are in the sorted files a and b", "comm -12 a b"),
            ("lines of a that are in b", "sort a | comm -12 - b"),
            ("show the differences between a and b", "diff a b"),
            ("which files differ and how", "diff -r a b"),
            ("which files differ", "diff --brief -r a b"),
            ("how many files differ in a and b", "diff -rq a b | wc -l"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
