//! `comm` and `join` want sorted files, and lines to compare, not names.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::parse::How;
use caro_shell::{Dialect, Finding, Invocation, Word};
use std::path::Path;

/// Bytes of a file that are read to see whether it is sorted.
const MOST: u64 = 1 << 20;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    unsorted(it).or_else(|| unjoined(it)).or_else(|| listed(it)).into_iter().collect()
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
fn unsorted(it: &CheckContext) -> Option<Finding> {
    let comm = it.script.commands.iter().find(|c| c.name() == Some("comm") && c.via.is_empty())?;
    let [one, other] = comm.operands().collect::<Vec<_>>()[..] else { return None };
    let plain = |w: &Word| w.value.is_some() && w.text != "-";
    let sorted = it.request.to_lowercase().contains("sorted")
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

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn comm_is_given_sorted_lines() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let common = fix("lines that are in a and in b", "comm -12 a b | wc -l");
        assert_eq!(common.as_deref(), Some("comm -12 <(sort a) <(sort b) | wc -l"));
        for (request, right) in [
            ("lines that are in a and in b", "comm -12 <(sort a) <(sort b)"),
            ("lines that are in the sorted files a and b", "comm -12 a b"),
            ("lines of a that are in b", "sort a | comm -12 - b"),
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
