//! Finds `find -name a -o -name b -delete`, which deletes only files called b, and `find . -delete -name a`, which
//! deletes everything.

use super::edit::{Edits, error, warning};
use super::words::is_in;
use super::{CheckContext, single_find};
use caro_shell::effects::is_narrowing_test;
use caro_shell::{Finding, Word};

const ACTIONS: &str = "-exec -execdir -ok -okdir -delete -print -print0 -printf -ls -fprint";

/// Tests with one value.
const TESTS: &str = "-name -iname -path -ipath -wholename -regex -iregex -type -user -group -perm -size -mtime -mmin \
    -newer -links";

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    of_find(cx).or_else(|| test_behind(cx))
}

/// Finds an action that is followed by tests only: an expression is evaluated from left to right, so the action is
/// taken for everything, and the tests limit nothing.
fn test_behind(cx: &CheckContext) -> Option<Finding> {
    let words = &single_find(cx.script)?.words;
    let texts: Vec<&str> = words.iter().map(|w| w.text.as_str()).collect();
    // brackets and branches may have reasons of their own
    if texts.iter().any(|text| matches!(*text, "(" | ")" | "-o" | "-or" | "," | "-prune" | "-quit")) {
        return None;
    }
    let last = texts.iter().rposition(|text| is_in(ACTIONS, text))?;
    let end = match texts[last] {
        "-exec" | "-execdir" | "-ok" | "-okdir" => last + texts[last..].iter().position(|t| matches!(*t, ";" | "+"))?,
        "-printf" | "-fprint" => last + 1,
        _ => last,
    };
    let is_test = |text: &&str| *text == "-type" || is_narrowing_test(text);
    let (behind, action) = (words.get(end + 1..)?, words.get(last..=end)?);
    if !texts[end + 1..].iter().any(is_test) {
        return None;
    }
    let source = |of: &[Word]| cx.script.text.get(of.first()?.span.start..of.last()?.span.end);
    let moved = source(behind).zip(source(action)).map(|(behind, action)| format!("{behind} {action}"));
    let fix = moved.and_then(|text| Edits::new(cx.script).replace_span(&words[last..], &text).apply());
    let name = texts[last];
    let why = format!("put {name} last: it is done to everything, as the tests behind it do not limit it");
    Some(error("find-test-behind", &words[last], why, fix))
}

fn of_find(cx: &CheckContext) -> Option<Finding> {
    let words = &single_find(cx.script)?.words;
    // `-name -o` looks for what is called so
    let is_value = |w: &Word| words.windows(2).any(|pair| is_in(TESTS, &pair[0].text) && std::ptr::eq(&pair[1], w));
    let is_or = |w: &Word| matches!(w.text.as_str(), "-o" | "-or") && !is_value(w);
    let is_action = |w: &Word| is_in(ACTIONS, &w.text);
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
    if !is_in(TESTS, &words[left].text) || !is_in(TESTS, &words.get(right)?.text) {
        return None;
    }
    let middle = &words[left..=last_or + 2];
    let are_single = middle.len() % 3 == 2
        && middle.iter().enumerate().all(|(i, w)| (i % 3 == 2) == matches!(w.text.as_str(), "-o" | "-or"));
    let are_alike = (left..=right).step_by(3).all(|at| test(at) == test(left));
    if are_single && are_alike {
        return Some((left, last_or + 2));
    }
    let start = words.iter().position(|w| is_in(TESTS, &w.text))?;
    let has_depth =
        words[start..action].iter().any(|w| w.text.starts_with("-maxdepth") || w.text.starts_with("-mindepth"));
    if has_depth { None } else { Some((start, action - 1)) }
}
