//! Finds sequences that are too short: `seq 10 1`, which prints nothing, and `echo hello | head -n 5`, which prints
//! one line.

use super::CheckContext;
use super::edit::{Edits, error, warning};
use caro_shell::{Finding, Invocation, Userland, Word};

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    down(cx).or_else(|| once(cx))
}

/// `seq 10 1` counts up and prints nothing.
fn down(cx: &CheckContext) -> Option<Finding> {
    // BSD's `seq` counts down by itself
    if cx.target.userland == Userland::Bsd {
        return None;
    }
    let seq = cx.script.commands.iter().find(|c| c.name() == Some("seq"))?;
    let number = |w: &Word| w.value.as_deref()?.parse::<i64>().ok();
    let [.., first, last] = seq.args() else { return None };
    let bounds: Vec<&Word> = seq.args().iter().filter(|w| number(w).is_some()).collect();
    let are_last = bounds.len() == 2 && std::ptr::eq(bounds[0], first) && std::ptr::eq(bounds[1], last);
    let is_down = are_last && number(first)? > number(last)?;
    let fix = Edits::new(cx.script).insert_before(last, "-1 ").apply();
    let why = "seq counts up, and prints nothing here: the step stands between the two";
    is_down.then(|| error("counts-down", last, why, fix))
}

/// `echo hello | head -n 5` for "five times".
fn once(cx: &CheckContext) -> Option<Finding> {
    let [echo, head] = cx.script.commands.as_slice() else { return None };
    if head.name() != Some("head") || echo.feeds != [1] {
        return None;
    }
    let [text] = echo.args() else { return None };
    let line = match echo.name()? {
        "echo" => text.raw.clone(),
        // a single line feed, and no placeholders
        "printf" => text.raw.replacen("\\n", "", 1),
        _ => return None,
    };
    let is_line = !line.contains(['\\', '%', '\n']) && !text.expands && !text.glob && !line.is_empty();
    let (_, count) = line_count(head)?;
    let fix = Edits::new(cx.script).replace_span(&echo.words, &format!("yes {line}")).apply();
    let why = format!("this is one line, and {count} are taken: yes repeats it");
    (is_line && count > 1).then(|| warning("one-line", text, why, fix))
}

/// Returns the number of lines that `head` or `tail` takes, with its word.
pub(in crate::checks) fn line_count(command: &Invocation) -> Option<(&Word, u64)> {
    let mut args = command.args().iter();
    while let Some(word) = args.next() {
        let text = word.text.as_str();
        let prefixed =
            || text.strip_prefix("--lines=").or_else(|| text.strip_prefix("-n")).or_else(|| text.strip_prefix('-'));
        let (word, digits) = match text {
            "-n" | "--lines" => args.next().map(|next| (next, next.text.as_str()))?,
            _ => (word, prefixed().unwrap_or_default()),
        };
        if let Some(count) = unsigned(digits) {
            return Some((word, count));
        }
    }
    None
}

/// Parses a number without a sign, as `-n +3` and `-n -3` have other meanings.
fn unsigned(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}
