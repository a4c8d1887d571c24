//! `.{1,20}` for "less than 20 characters": the end of a repetition counts.

use super::edit::{Edits, warning};
use super::words::Words;
use super::{CheckContext, only};
use crate::shell::{Finding, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_script(it).into_iter().collect()
}

/// The number that is itself not meant.
#[derive(Debug, PartialEq, Eq)]
enum Beyond {
    Less(u64),
    More(u64),
}

fn of_script(it: &CheckContext) -> Option<Finding> {
    const READERS: [&str; 7] = ["grep", "egrep", "sed", "awk", "gawk", "mawk", "rg"];
    let beyond = beyond(&Words::of(it.request))?;
    let commands = it.script.commands.iter().filter(|c| c.name().is_some_and(|n| READERS.contains(&n)));
    let all = commands.flat_map(|c| c.args()).filter_map(|word| Some((word, repeats(word)?)));
    let (word, inside) = only(all)?;
    let (old, new) = mended(inside, &beyond)?;
    let fix = Edits::new(it.script).replace(word, &word.raw.replacen(old, &new, 1)).done();
    Some(warning("bound", word, format!("the number itself is not meant: `{new}` in place of `{old}`"), fix))
}

/// What stands in the only braces of a pattern: `1,20`, and of `\{1,20\}` the same.
fn repeats(word: &Word) -> Option<&str> {
    let (_, rest) = word.raw.split_once('{')?;
    let (inside, behind) = rest.split_once('}')?;
    let inside = inside.strip_suffix('\\').unwrap_or(inside);
    let numbers = inside.chars().all(|c| c.is_ascii_digit() || c == ',') && inside.matches(',').count() == 1;
    (numbers && !behind.contains('{')).then_some(inside)
}

/// The repetition as it is, and as it should be; `None` if it is right, or of other numbers.
fn mended<'a>(inside: &'a str, beyond: &Beyond) -> Option<(&'a str, String)> {
    let (low, high) = inside.split_once(',')?;
    match beyond {
        Beyond::Less(n) if high.parse() == Ok(*n) => Some((inside, format!("{low},{}", n.checked_sub(1)?))),
        Beyond::More(n) if high.is_empty() && low.parse() == Ok(*n) => {
            Some((inside, format!("{},", n.checked_add(1)?)))
        }
        _ => None,
    }
}

/// The one number of characters that a request names as a bound which is itself out of bounds.
fn beyond(words: &Words) -> Option<Beyond> {
    const UNITS: [&str; 6] = ["characters", "character", "chars", "letters", "digits", "symbols"];
    let [(at, n)] = words.numbers()[..] else { return None };
    let list = words.list();
    let of_text = list.iter().any(|w| UNITS.contains(&w.as_str()));
    let [more, than] = list.get(at.checked_sub(2)?..at)? else { return None };
    if !of_text || than != "than" || words.negate() || words.say(&["or equal", "or more", "or less", "or fewer"]) {
        return None;
    }
    match more.as_str() {
        "less" | "fewer" | "shorter" => Some(Beyond::Less(n)),
        "more" | "longer" | "greater" => Some(Beyond::More(n)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn the_number_itself_is_out_of_bounds() {
        let fix =
            |request: &str, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        for (request, wrong, right) in [
            (
                "words of less than 5 letters in a.txt",
                "grep -oE '\\b[a-z]{1,5}\\b' a.txt",
                "grep -oE '\\b[a-z]{1,4}\\b' a.txt",
            ),
            ("lines longer than 80 characters", "grep '.\\{80,\\}' a.c", "grep '.\\{81,\\}' a.c"),
        ] {
            assert_eq!(fix(request, wrong).as_deref(), Some(right));
            assert_eq!(fix(request, right), None);
        }
        for (request, right) in [
            ("lines of at least 80 characters", "grep '.\\{80,\\}' a.c"),
            ("lines not longer than 80 characters", "grep -E '^.{,80}$' a.c"),
            ("files larger than 80 bytes", "grep -E '.{80,}' a.c"),
            ("lines with less than 5 digits", "awk '{ print $5,6 }' a.c"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
