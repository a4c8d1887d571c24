//! `find -name a -o -name b -delete` deletes what is called b, and nothing else.

use super::edit::{Edits, warning};
use super::{CheckContext, find};
use caro_shell::{Finding, Word};

const ACTIONS: [&str; 10] =
    ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-print", "-print0", "-printf", "-ls", "-fprint"];

/// Tests with one value.
const TESTS: [&str; 16] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-type",
    "-user",
    "-group",
    "-perm",
    "-size",
    "-mtime",
    "-mmin",
    "-newer",
    "-links",
];

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_find(it).into_iter().collect()
}

fn of_find(it: &CheckContext) -> Option<Finding> {
    let words = &find(it.script)?.words;
    let is_or = |w: &Word| matches!(w.text.as_str(), "-o" | "-or");
    let is_action = |w: &Word| ACTIONS.contains(&w.text.as_str());
    let (first_or, last_or) = (words.iter().position(is_or)?, words.iter().rposition(is_or)?);
    let action = words.iter().position(is_action)?;
    // `-prune -o ... -print` and an action on each side are right as they are
    let bracketed = words.iter().any(|w| matches!(w.text.as_str(), "(" | ")" | "-prune" | "-quit" | ","));
    if bracketed || action < last_or {
        return None;
    }
    // "not this or that" says nothing of what was meant
    let turned = words.iter().any(|w| matches!(w.text.as_str(), "!" | "-not"));
    let fix = brackets(words, first_or, last_or, action).filter(|_| !turned).and_then(|(open, close)| {
        Edits::new(it.script).before(&words[open], "\\( ").after(&words[close], " \\)").done()
    });
    const WHY: &str = "the action belongs to the last name only: put \\( ... \\) around the names joined by -o";
    Some(warning("find-or-precedence", &words[action], WHY, fix))
}

/// Where the brackets go: around the one test on each side of every `-o` if those are of one kind, else around all
/// tests before the action.
fn brackets(words: &[Word], first_or: usize, last_or: usize, action: usize) -> Option<(usize, usize)> {
    let test = |at: usize| words.get(at).map(|w| w.text.trim_start_matches("-i").trim_start_matches('-'));
    let (left, right) = (first_or.checked_sub(2)?, last_or + 1);
    if !TESTS.contains(&words[left].text.as_str()) || !TESTS.contains(&words.get(right)?.text.as_str()) {
        return None;
    }
    let middle = &words[left..=last_or + 2];
    let single = middle.len() % 3 == 2
        && middle.iter().enumerate().all(|(i, w)| (i % 3 == 2) == matches!(w.text.as_str(), "-o" | "-or"));
    let alike = (left..=right).step_by(3).all(|at| test(at) == test(left));
    if single && alike {
        return Some((left, last_or + 2));
    }
    let start = words.iter().position(|w| TESTS.contains(&w.text.as_str()))?;
    let plain =
        words[start..action].iter().all(|w| !w.text.starts_with("-maxdepth") && !w.text.starts_with("-mindepth"));
    plain.then_some((start, action - 1))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn the_names_are_bracketed() {
        let fix = |command: &str| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        for (wrong, right) in [
            ("find . -name a -o -name b -delete", "find . \\( -name a -o -name b \\) -delete"),
            (
                "find /x -type f -name '*.c' -o -iname '*.h' -exec wc -l {} +",
                "find /x -type f \\( -name '*.c' -o -iname '*.h' \\) -exec wc -l {} +",
            ),
            (
                "find . -type f -name a -o -type f -name b -print0 | xargs -0 ls",
                "find . \\( -type f -name a -o -type f -name b \\) -print0 | xargs -0 ls",
            ),
            ("find . -name a -o -name b -o -name c -ls", "find . \\( -name a -o -name b -o -name c \\) -ls"),
        ] {
            assert_eq!(fix(wrong).as_deref(), Some(right));
            assert_eq!(fix(right), None);
        }
        assert_eq!(fix("find . ! -name a -o -name b -delete"), None);
        for right in [
            "find . -name a -o -name b",
            "find . -path ./x -prune -o -name y -print",
            "find . -name a -print -o -name b -print",
            "find . -name -o -delete",
        ] {
            assert!(findings(check, "", right).is_empty() || right.contains("-name -o"), "{right}");
        }
    }
}
