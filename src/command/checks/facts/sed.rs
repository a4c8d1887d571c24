//! What the programs that mend text understand otherwise than it was meant: `\d`, and brackets that group nothing.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use caro_shell::{Finding, Invocation, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let of = |c: &Invocation| digit(it, c).or_else(|| group(it, c));
    it.script.commands.iter().filter_map(of).collect()
}

/// `\d`, which only Perl's expressions know.
fn digit(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    let name = command.name().filter(|n| matches!(*n, "sed" | "awk" | "gawk" | "mawk"))?;
    let word = command.args().iter().find(|w| digits(&w.raw).is_some())?;
    let fix = Edits::new(it.script).replace(word, &digits(&word.raw)?).done();
    Some(warning("no-such-class", word, format!("{name} knows no \\d: [0-9]"), fix))
}

/// The text with every `\d` as a class, or as a part of the one it stands in; `None` if there is none. GNU sed's `\d065`
/// is another thing.
fn digits(raw: &str) -> Option<String> {
    let (mut out, mut inside, mut found) = (String::with_capacity(raw.len()), false, false);
    let mut rest = raw;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\\d") {
            let code = after.chars().take(3).filter(char::is_ascii_digit).count() == 3;
            found |= !code;
            out.push_str(if code {
                "\\d"
            } else if inside {
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
            '[' if !inside => inside = true,
            ']' if !out.ends_with('[') && !out.ends_with("[^") => inside = false,
            _ => {}
        }
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    found.then_some(out)
}

/// `sed 's/\(.*\)//'` for "what stands in parentheses": without `-E` these brackets group, and nothing uses the group.
fn group(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    let extended = command.args().iter().any(|w| {
        matches!(w.text.as_str(), "--regexp-extended")
            || w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains(['E', 'P', 'F'])
            || command.name() == Some("sed") && w.text == "-r"
    });
    let words = Words::of(it.request);
    let said = words.list().iter().any(|w| w.starts_with("parenthes") || w.starts_with("bracket"))
        && !words.list().iter().any(|w| matches!(w.as_str(), "square" | "curly" | "angle"));
    if !matches!(command.name(), Some("sed" | "grep"))
        || extended
        || !said
        || it.request.contains('(') && it.request.contains("\\(")
    {
        return None;
    }
    let word: &Word = command.args().iter().find(|w| w.raw.contains("\\(") && w.raw.contains("\\)"))?;
    let raw = word.raw.as_str();
    // a group that is repeated, chosen from or put back is one
    let used = raw.contains("\\|") || (1..=9).any(|n| raw.contains(&format!("\\{n}")));
    let repeated = raw.match_indices("\\)").any(|(at, _)| {
        let after = &raw[at + 2..];
        after.starts_with('*') || ["\\{", "\\+", "\\?"].iter().any(|mark| after.starts_with(mark))
    });
    if used || repeated {
        return None;
    }
    let fix = Edits::new(it.script).replace(word, &raw.replace("\\(", "(").replace("\\)", ")")).done();
    Some(warning("no-bracket", word, "without -E \\( and \\) only group: plain ( and ) are the characters", fix))
}
