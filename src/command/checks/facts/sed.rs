//! Finds patterns that `sed`, `awk` and `grep` read in another way than intended: `\d`, and brackets that group
//! nothing.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use caro_shell::{Finding, Invocation, Word};

pub(super) fn check(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    digit(cx, command).or_else(|| group(cx, command))
}

/// `\d`, which only Perl's regular expressions have.
fn digit(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let name = command.name().filter(|n| matches!(*n, "sed" | "awk" | "gawk" | "mawk"))?;
    let word = command.args().iter().find(|w| without_digit_escape(&w.raw).is_some())?;
    let fix = Edits::new(cx.script).replace(word, &without_digit_escape(&word.raw)?).apply();
    Some(warning("no-such-class", word, format!("{name} knows no \\d: [0-9]"), fix))
}

/// Replaces every `\d` by a class, or by a range within a class; `None` if there is no `\d`. GNU sed's `\d065`, a
/// character by its decimal code, stays.
fn without_digit_escape(raw: &str) -> Option<String> {
    let (mut out, mut in_class, mut found) = (String::with_capacity(raw.len()), false, false);
    let mut rest = raw;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\\d") {
            let code = after.chars().take(3).filter(char::is_ascii_digit).count() == 3;
            found |= !code;
            out.push_str(if code {
                "\\d"
            } else if in_class {
                "0-9"
            } else {
                "[0-9]"
            });
            rest = after;
            continue;
        }
        let length =
            if c == '\\' { c.len_utf8() + rest[1..].chars().next().map_or(0, char::len_utf8) } else { c.len_utf8() };
        match c {
            '[' if !in_class => in_class = true,
            ']' if !out.ends_with('[') && !out.ends_with("[^") => in_class = false,
            _ => {}
        }
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    found.then_some(out)
}

/// `sed 's/\(.*\)//'` for "the text in parentheses": without `-E`, `\(` and `\)` form a group, which is not used.
fn group(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let is_extended = command.args().iter().any(|w| {
        matches!(w.text.as_str(), "--regexp-extended")
            || w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains(['E', 'P', 'F'])
            || command.name() == Some("sed") && w.text == "-r"
    });
    let words = Words::of(cx.request);
    let mentions_brackets = words.list().iter().any(|w| w.starts_with("parenthes") || w.starts_with("bracket"))
        && !words.list().iter().any(|w| matches!(w.as_str(), "square" | "curly" | "angle"));
    if !matches!(command.name(), Some("sed" | "grep"))
        || is_extended
        || !mentions_brackets
        || cx.request.contains('(') && cx.request.contains("\\(")
    {
        return None;
    }
    let word: &Word = command.args().iter().find(|w| w.raw.contains("\\(") && w.raw.contains("\\)"))?;
    let raw = word.raw.as_str();
    // a group that is repeated, has alternatives or is referred to is meant as one
    let used = raw.contains("\\|") || (1..=9).any(|n| raw.contains(&format!("\\{n}")));
    let repeated = raw.match_indices("\\)").any(|(at, _)| {
        let after = &raw[at + 2..];
        after.starts_with('*') || ["\\{", "\\+", "\\?"].iter().any(|mark| after.starts_with(mark))
    });
    if used || repeated {
        return None;
    }
    let fix = Edits::new(cx.script).replace(word, &raw.replace("\\(", "(").replace("\\)", ")")).apply();
    Some(warning("no-bracket", word, "without -E \\( and \\) only group: plain ( and ) are the characters", fix))
}
