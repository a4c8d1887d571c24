//! Finds `find -name a -o -name b -delete`, which deletes only files called b.

use super::edit::{Edits, warning};
use super::{CheckContext, single_find};
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

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    of_find(cx).into_iter().collect()
}

fn of_find(cx: &CheckContext) -> Option<Finding> {
    let words = &single_find(cx.script)?.words;
    let is_or = |w: &Word| matches!(w.text.as_str(), "-o" | "-or");
    let is_action = |w: &Word| ACTIONS.contains(&w.text.as_str());
    let (first_or, last_or) = (words.iter().position(is_or)?, words.iter().rposition(is_or)?);
    let action = words.iter().position(is_action)?;
    // brackets, `-prune -o ... -print` and an action on each side are right
    let has_brackets = words.iter().any(|w| matches!(w.text.as_str(), "(" | ")" | "-prune" | "-quit" | ","));
    if has_brackets || action < last_or {
        return None;
    }
    // with a negation it is not clear what was meant
    let is_negated = words.iter().any(|w| matches!(w.text.as_str(), "!" | "-not"));
    let range = if is_negated { None } else { brackets(words, first_or, last_or, action) };
    let fix = range.and_then(|(open, close)| {
        Edits::new(cx.script).insert_before(&words[open], "\\( ").insert_after(&words[close], " \\)").apply()
    });
    const WHY: &str = "the action belongs to the last name only: put \\( ... \\) around the names joined by -o";
    Some(warning("find-or-precedence", &words[action], WHY, fix))
}

/// Returns the first and the last word inside the brackets: the single tests around every `-o` if they are of one
/// kind, else all tests before the action.
fn brackets(words: &[Word], first_or: usize, last_or: usize, action: usize) -> Option<(usize, usize)> {
    let test = |at: usize| words.get(at).map(|w| w.text.trim_start_matches("-i").trim_start_matches('-'));
    let (left, right) = (first_or.checked_sub(2)?, last_or + 1);
    if !TESTS.contains(&words[left].text.as_str()) || !TESTS.contains(&words.get(right)?.text.as_str()) {
        return None;
    }
    let middle = &words[left..=last_or + 2];
    let are_single = middle.len() % 3 == 2
        && middle.iter().enumerate().all(|(i, w)| (i % 3 == 2) == matches!(w.text.as_str(), "-o" | "-or"));
    let are_alike = (left..=right).step_by(3).all(|at| test(at) == test(left));
    if are_single && are_alike {
        return Some((left, last_or + 2));
    }
    let start = words.iter().position(|w| TESTS.contains(&w.text.as_str()))?;
    let has_depth =
        words[start..action].iter().any(|w| w.text.starts_with("-maxdepth") || w.text.starts_with("-mindepth"));
    if has_depth { None } else { Some((start, action - 1)) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn names_joined_by_or_are_bracketed() {
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
