//! S-expressions: a tuple of skill calls, `((send "hi") (pin "waiting"))`, read, repaired and printed.
//!
//! Under the grammar every completion reads at once. A model that is held to none writes prose, bullets and half brackets:
//! parentheses are balanced first, then lines are read one by one, and what is still no tuple gets one of two codes.

use super::call::SkillCall;
use super::skills::{Skill, skill};

/// The error code of a text that is no tuple at all.
pub const REMINDER: &str = "REMEMBER:OUTPUT_NOTHING_ELSE_THAN: ((skill arg) ...)";

/// The error code where calls cannot be told apart.
pub const MULTI_FAILURE: &str =
    "MULTI_COMMAND_FAILURE_NOTHING_WAS_DONE_PLEASE_CORRECT_PARENTHESES_AND_USE_QUOTES_AND_RETRY";

/// The error code of one call that failed.
pub const SINGLE_FAILURE: &str = "SINGLE_COMMAND_FORMAT_ERROR_NOTHING_WAS_DONE_PLEASE_FIX_AND_RETRY";

/// The tuple of these calls.
pub fn print(calls: &[SkillCall]) -> String {
    let calls: Vec<String> = calls.iter().map(SkillCall::print).collect();
    format!("({})", calls.join(" "))
}

/// Reads what the model wrote, repaired where it has to be.
///
/// # Errors
/// One of the two codes for the next prompt, [`REMINDER`] or [`MULTI_FAILURE`]; then nothing is to be done.
pub fn read(text: &str) -> Result<Vec<SkillCall>, &'static str> {
    let text = text.replace("_quote_", "\"").replace("_newline_", "\\n");
    // a fence around it is no part of it
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("```")).collect();
    let text = lines.join("\n");
    let text = text.trim();
    if !text.starts_with(['(', '-']) && skill(first_word(text)).is_none() {
        return Err(REMINDER);
    }
    let balanced = balance(text);
    if let Some(calls) = parse_all(&balanced).and_then(|all| tuple(&balanced, &all)) {
        return Ok(calls);
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(of_line).collect::<Option<Vec<_>>>().ok_or(MULTI_FAILURE)
}

/// The text with the closing parentheses that it lacks, and without those that close nothing. What stands in quotes counts
/// for nothing.
pub fn balance(text: &str) -> String {
    let (mut balanced, mut depth, mut quoted, mut escaped) =
        (String::with_capacity(text.len() + 4), 0usize, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted && depth == 0 => continue,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        balanced.push(c);
    }
    balanced.extend(std::iter::repeat_n(')', depth));
    balanced
}

/// A node, with where it ends in the text.
#[derive(Debug)]
struct Node {
    kind: Kind,
    end: usize,
}

#[derive(Debug)]
enum Kind {
    Symbol(String),
    Text(String),
    List(Vec<Node>),
}

/// The expressions of a text; nothing if it is none.
fn parse_all(text: &str) -> Option<Vec<Node>> {
    /// So deep no call is: a text that is deeper is not read, and no stack overflows.
    const DEEPEST: usize = 64;
    let mut open: Vec<Vec<Node>> = vec![Vec::new()];
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let kind = match bytes[at] {
            b'(' if open.len() > DEEPEST => return None,
            b'(' => {
                open.push(Vec::new());
                at += 1;
                continue;
            }
            b')' => {
                at += 1;
                let items = open.pop()?;
                open.last_mut()?.push(Node { kind: Kind::List(items), end: at });
                continue;
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'"' => {
                let (value, end) = string(text, at)?;
                at = end;
                Kind::Text(value)
            }
            _ => {
                let rest = &text[at..];
                let length = rest.find(|c: char| c.is_ascii_whitespace() || "()\"".contains(c)).unwrap_or(rest.len());
                at += length;
                Kind::Symbol(rest[..length].to_owned())
            }
        };
        open.last_mut()?.push(Node { kind, end: at });
    }
    let all = open.pop()?;
    open.is_empty().then_some(all)
}

/// The value of the quoted text that begins there, and where it ends.
fn string(text: &str, start: usize) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text[start + 1..].char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, start + 1 + at + 1)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                c @ ('"' | '\\') => value.push(c),
                // a pattern's own (`\.`) stays as it is
                c => value.extend(['\\', c]),
            },
            c => value.push(c),
        }
    }
    None
}

/// The calls of a text that is a tuple of them, one alone, or several that nothing is around.
fn tuple(text: &str, all: &[Node]) -> Option<Vec<SkillCall>> {
    let items = match all {
        [Node { kind: Kind::List(items), .. }] if items.iter().all(|item| matches!(item.kind, Kind::List(_))) => items,
        _ => all,
    };
    items.iter().map(|item| call(text, item)).collect()
}

/// The call of a list that begins with a name.
fn call(text: &str, node: &Node) -> Option<SkillCall> {
    let Kind::List(items) = &node.kind else { return None };
    let (Node { kind: Kind::Symbol(name), end, .. }, arguments) = items.split_first()? else { return None };
    let quoted: Option<Vec<String>> = arguments.iter().map(quoted).collect();
    let inside = &text[*end..node.end - 1];
    Some(match (pinned(name, inside), quoted) {
        (Some(pin), _) => pin,
        (None, Some(arguments)) => SkillCall { name: name.clone(), arguments },
        (None, None) => unquoted(name, inside),
    })
}

fn quoted(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// A bullet is a note of what is under way: `-x` and `- x` are `pin`.
fn pinned(name: &str, rest: &str) -> Option<SkillCall> {
    let first = name.strip_prefix('-')?;
    let text = format!("{first} {}", rest.trim());
    Some(SkillCall { name: "pin".into(), arguments: vec![bare(&text)] })
}

/// A call whose arguments are not all in quotes: all that is left is the last one; a file's name comes before its text.
fn unquoted(name: &str, rest: &str) -> SkillCall {
    let many = skill(name).map_or(1, |skill| skill.arguments.len());
    let mut rest = rest.trim();
    let mut arguments = Vec::new();
    while arguments.len() + 1 < many && !rest.is_empty() {
        let (first, after) = match rest.starts_with('"').then(|| string(rest, 0)).flatten() {
            Some((value, end)) => (value, &rest[end..]),
            None => {
                let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                (word.to_owned(), after)
            }
        };
        arguments.push(first);
        rest = after.trim();
    }
    if !rest.is_empty() {
        arguments.push(bare(rest));
    }
    SkillCall { name: name.to_owned(), arguments }
}

/// A text without the quotes around it; those inside are its own.
fn bare(text: &str) -> String {
    let text = text.trim();
    let inside = text.strip_prefix('"').map_or(text, |rest| match rest.strip_suffix('"') {
        Some(inside) => inside,
        // one that was never closed
        None if !rest.contains('"') => rest,
        None => text,
    });
    inside.replace("\\n", "\n").replace("\\\"", "\"")
}

/// The call of a line that is one, with or without parentheses.
fn of_line(line: &str) -> Option<SkillCall> {
    let inside = match line.strip_prefix('(') {
        Some(rest) => rest.strip_suffix(')').unwrap_or(rest).trim(),
        None => line.trim_end_matches(')'),
    };
    if let Some(rest) = inside.strip_prefix('-') {
        return pinned("-", rest);
    }
    let name = first_word(inside);
    let rest = &inside[name.len()..];
    skill(name).map(|Skill { name, .. }| unquoted(name, rest))
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| c.is_whitespace() || "()\"".contains(c)).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str) -> String {
        read(text).map_or_else(str::to_owned, |calls| print(&calls))
    }

    #[test]
    fn shapes_of_what_models_write_are_repaired() {
        let write = r#"((write-file "a.txt" "two words"))"#;
        for (written, expected) in [
            (r#"((send "hi") (pin "x"))"#, r#"((send "hi") (pin "x"))"#),
            (r#"(send "hi")"#, r#"((send "hi"))"#),
            (r#"(send "hi") (pin "x")"#, r#"((send "hi") (pin "x"))"#),
            (r#"((send "hi") (pin "x""#, r#"((send "hi") (pin "x"))"#),
            (r#"((send "hi"))))"#, r#"((send "hi"))"#),
            ("send hello there", r#"((send "hello there"))"#),
            ("(send hello there)", r#"((send "hello there"))"#),
            ("send \"hi\"\npin \"x\"", r#"((send "hi") (pin "x"))"#),
            ("- look at the disk\n(-and at b)", r#"((pin "look at the disk") (pin "and at b"))"#),
            (r#"(send he said "hi" to me)"#, r#"((send "he said \"hi\" to me"))"#),
            ("write-file a.txt two words", write),
            (r#"(write-file "a.txt" two words)"#, write),
            (r#"((write-file "a.txt" "two words"))"#, write),
            ("((send _quote_a_newline_b_quote_))", r#"((send "a\nb"))"#),
            ("```lisp\n((send \"hi\"))\n```", r#"((send "hi"))"#),
            (r#"((send "it is (not) over)"))"#, r#"((send "it is (not) over)"))"#),
            (r#"(send "cut off"#, r#"((send "cut off"))"#),
            ("()", "()"),
            ("(())", MULTI_FAILURE),
            ("Sure, I will look at it.", REMINDER),
            ("", REMINDER),
            (r#"((send "hi) (pin "x"))"#, MULTI_FAILURE),
            ("((send", r#"((send))"#),
        ] {
            assert_eq!(shown(written), expected, "{written}");
        }
    }

    #[test]
    fn patterns_keep_their_backslashes() {
        let calls = read(r#"((search "a\.b\"c"))"#).unwrap();
        assert_eq!(calls[0].arguments, [r#"a\.b"c"#]);
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_as_the_same(
            texts in proptest::collection::vec(("send|pin|shell|nothing", "[^\u{0}]{0,40}"), 0..6)
        ) {
            // the repair's own marks stand for what they stand for
            prop_assume!(texts.iter().all(|(_, text)| !text.contains("_quote_") && !text.contains("_newline_")));
            let calls: Vec<SkillCall> =
                texts.into_iter().map(|(name, text)| SkillCall { name, arguments: vec![text] }).collect();
            prop_assert_eq!(read(&print(&calls)).unwrap(), calls);
        }

        #[test]
        fn whatever_is_written_is_read_or_gets_a_code(text in "[()\"\\\\ a\n-]{0,40}|[^\u{0}]{0,60}|(\\(|send|\"| |x|\\)|\n){0,30}") {
            match read(&text) {
                Ok(calls) => {
                    let again = read(&print(&calls));
                    prop_assert!(again.is_ok(), "{:?}", again);
                }
                Err(code) => prop_assert!([REMINDER, MULTI_FAILURE].contains(&code)),
            }
        }

        #[test]
        fn balanced_is_balanced(text in "[()a \n]{0,60}") {
            let balanced = balance(&text);
            let mut depth = 0i64;
            for c in balanced.chars() {
                depth += match c { '(' => 1, ')' => -1, _ => 0 };
                prop_assert!(depth >= 0);
            }
            prop_assert_eq!(depth, 0);
            prop_assert_eq!(balance(&balanced), balanced.clone());
        }
    }
}
