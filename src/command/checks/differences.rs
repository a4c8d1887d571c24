//! What `diff` prints, where less is asked for: which files differ, how many lines do; and `comm` and `join`, which want sorted
//! files.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use crate::shell::parse::How;
use crate::shell::{Dialect, Finding, Invocation, Userland, Word};
use std::path::Path;

/// Bytes of a file that are read to see whether it is sorted.
const MOST: u64 = 1 << 20;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let words = Words::of(it.request);
    let of_diff = which(it, &words).or_else(|| lines(it, &words)).or_else(|| beside(it, &words));
    let of_comm = unsorted(it, &words).or_else(|| common(it, &words));
    of_diff.or(of_comm).or_else(|| unjoined(it)).or_else(|| listed(it)).into_iter().collect()
}

/// `diff a b` for "compare them side by side".
fn beside(it: &CheckContext, words: &Words) -> Option<Finding> {
    let diff = it.script.commands.iter().find(|c| c.name() == Some("diff"))?;
    let told = diff.has_option(Some('y'), "side-by-side") || it.target.userland == Userland::Busybox;
    let program = diff.words.first().filter(|_| words.say(&["side by side", "next to each other"]) && !told)?;
    let fix = Edits::new(it.script).after(program, " -y").done();
    Some(warning("side-by-side", program, "diff prints one below the other: -y prints them side by side", fix))
}

/// `comm a b` for "the lines that both have": it prints those of one only, too.
fn common(it: &CheckContext, words: &Words) -> Option<Finding> {
    let comm = it.script.commands.iter().find(|c| c.name() == Some("comm"))?;
    let asked =
        words.say(&["common", "both", "shared"]) && !words.negate() && !words.say(&["only", "either", "unique"]);
    let told = comm.args().iter().any(|w| w.text.starts_with('-') && w.text.contains(['1', '2', '3']));
    let program = comm.words.first().filter(|_| asked && !told)?;
    let fix = Edits::new(it.script).after(program, " -12").done();
    Some(warning("not-common", program, "-12 leaves what both have, without it comes what one of them has, too", fix))
}

/// `comm -23 <(ls a.txt) <(ls b.txt)`: that compares two names. `comm -23 <(cat a.txt) <(cat b.txt)`: lines as they come.
fn listed(it: &CheckContext) -> Option<Finding> {
    let commands = &it.script.commands;
    let inside = |c: &Invocation| {
        let outer = c.inside.filter(|i| i.how == How::Process).and_then(|i| commands.get(i.command))?;
        outer.name().filter(|_| !c.stdout_pipe && c.via.is_empty())
    };
    let names = |c: &&Invocation| {
        let [_, file] = c.words.as_slice() else { return false };
        let is_file = it.cwd.zip(file.value.as_deref()).is_some_and(|(cwd, name)| cwd.join(name).is_file());
        let wrong = match c.name() {
            Some("ls") => matches!(inside(c), Some("comm" | "diff" | "join" | "paste")),
            Some("cat") => inside(c) == Some("comm") && !in_order(it, file),
            _ => false,
        };
        wrong && is_file
    };
    let lists: Vec<&Invocation> = commands.iter().filter(names).collect();
    let program = lists.first()?.words.first()?;
    let programs = lists.iter().filter_map(|c| c.words.first());
    let fix = programs.fold(Edits::new(it.script), |edits, word| edits.replace(word, "sort")).done();
    if program.text == "cat" {
        return Some(warning("not-sorted", program, "comm compares sorted files only", fix));
    }
    Some(warning("name-for-lines", program, "ls of a file is its name: its lines are compared sorted", fix))
}

/// True for a text whose lines are in order, letters big or small.
fn in_order(it: &CheckContext, file: &Word) -> bool {
    let text = it.cwd.zip(file.value.as_deref()).and_then(|(cwd, name)| super::read(&cwd.join(name), MOST));
    text.is_some_and(|text| text.lines().is_sorted() || text.lines().map(str::to_lowercase).is_sorted())
}

/// `join a b` of files that are here and not sorted: it stops, or leaves lines out.
fn unjoined(it: &CheckContext) -> Option<Finding> {
    let [join] = it.script.commands.as_slice() else { return None };
    let (options, files): (Vec<&Word>, Vec<&Word>) = join.args().iter().partition(|w| w.text.starts_with('-'));
    let by = match options.as_slice() {
        [] => String::new(),
        [by] if by.text.starts_with("-t") && by.text.len() > 2 => format!("{} -k1,1 ", by.raw),
        _ => return None,
    };
    let ([one, other], Some("join")) = (files.as_slice(), join.name()) else { return None };
    let mixed = |w: &Word| it.cwd.zip(w.value.as_deref()).is_some_and(|(cwd, name)| is_unsorted(&cwd.join(name)));
    let able = matches!(it.dialect, Dialect::Bash | Dialect::Zsh);
    if !able || !(mixed(one) || mixed(other)) {
        return None;
    }
    let sorted = |w: &Word| format!("<(sort {by}{})", w.raw);
    let fix = Edits::new(it.script).replace(one, &sorted(one)).replace(other, &sorted(other)).done();
    Some(warning("not-sorted", join.words.first()?, "join wants its files sorted, and they are not", fix))
}

/// True for a text whose first words are not in order.
fn is_unsorted(file: &Path) -> bool {
    let Some(text) = super::read(file, MOST) else { return false };
    let keys: Vec<&str> = text.lines().filter_map(|line| line.split([' ', '\t', ',', ';', ':']).next()).collect();
    keys.windows(2).any(|pair| pair[0] > pair[1])
}

/// `comm -23 a b` of files that nobody has sorted: what it prints is wrong, and it says so only on the side.
fn unsorted(it: &CheckContext, words: &Words) -> Option<Finding> {
    let comm = it.script.commands.iter().find(|c| c.name() == Some("comm") && c.via.is_empty())?;
    let [one, other] = comm.operands().collect::<Vec<_>>()[..] else { return None };
    let plain = |w: &Word| w.value.is_some() && w.text != "-";
    let sorted = words.list().iter().any(|w| w.contains("sorted"))
        || it.script.commands.iter().any(|c| c.name() == Some("sort"))
        || comm.option(None, "nocheck-order").is_some()
        || in_order(it, one) && in_order(it, other);
    if sorted || !plain(one) || !plain(other) || one.text.contains("sort") || other.text.contains("sort") {
        return None;
    }
    let edits = Edits::new(it.script).replace(one, &format!("<(sort {})", one.raw));
    let fix = edits.replace(other, &format!("<(sort {})", other.raw)).done();
    let able = matches!(it.dialect, Dialect::Bash | Dialect::Zsh);
    Some(warning("not-sorted", comm.words.first()?, "comm compares sorted files only", fix.filter(|_| able)))
}

/// `diff a b` for "which files differ".
fn which(it: &CheckContext, words: &Words) -> Option<Finding> {
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
fn lines(it: &CheckContext, words: &Words) -> Option<Finding> {
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
    fn what_is_common_and_what_stands_beside_each_other() {
        let fix =
            |request: &str, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let beside = "compare a.txt and b.txt side by side";
        assert_eq!(fix(beside, "diff a.txt b.txt").as_deref(), Some("diff -y a.txt b.txt"));
        let both = "words common to both a.txt and b.txt";
        let sorted = "comm <(sort a.txt) <(sort b.txt)";
        assert_eq!(fix(both, sorted).as_deref(), Some("comm -12 <(sort a.txt) <(sort b.txt)"));
        for (request, right) in [
            (beside, "diff -y a.txt b.txt"),
            (beside, "diff --side-by-side a.txt b.txt"),
            ("compare a.txt and b.txt", "diff a.txt b.txt"),
            (both, "comm -12 <(sort a.txt) <(sort b.txt)"),
            ("lines that only one of a.txt and b.txt has", sorted),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }

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

    #[test]
    fn lines_are_compared_and_not_names() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("a.txt", "red x\nblue y\n"), ("b.txt", "blue 1\nred 2\n"), ("c.txt", "ash 1\noak 2\n")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        std::fs::create_dir(dir.path().join("old")).unwrap();
        let fix = |command| {
            super::super::tests::findings_in(Some(dir.path()), check, "", command)
                .into_iter()
                .next()
                .and_then(|f| f.fix)
        };
        for (wrong, right) in [
            ("comm -23 <(ls a.txt) <(ls b.txt)", "comm -23 <(sort a.txt) <(sort b.txt)"),
            ("comm -12 <(cat a.txt) <(cat a.txt)", "comm -12 <(sort a.txt) <(sort a.txt)"),
            ("comm -12 a.txt b.txt", "comm -12 <(sort a.txt) <(sort b.txt)"),
            ("join a.txt b.txt", "join <(sort a.txt) <(sort b.txt)"),
            ("join -t, b.txt a.txt", "join -t, <(sort -t, -k1,1 b.txt) <(sort -t, -k1,1 a.txt)"),
        ] {
            assert_eq!(fix(wrong).as_deref(), Some(right));
            assert_eq!(fix(right), None);
        }
        for right in [
            "join b.txt c.txt",
            "comm -23 <(ls old) <(ls .)",
            "join none.txt a.log",
            "diff <(ls old) <(ls)",
            "comm -12 b.txt c.txt",
            "comm -12 <(cat b.txt) <(cat c.txt)",
            "diff <(cat a.txt) <(cat b.txt)",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
