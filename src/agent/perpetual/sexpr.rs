//! Parses, repairs and prints s-expressions: tuples of skill calls such as `((send "hi") (pin "waiting"))`.
//!
//! Completions under the grammar parse at once. Models without it write prose, bullets and unbalanced parentheses: then
//! parentheses are balanced, lines are parsed one by one, and what still fails gets one of two error codes.

use super::call::SkillCall;
use super::skills::{Skill, skill};

/// The error code of a text that is no tuple at all.
pub const REMINDER: &str = "REMEMBER:OUTPUT_NOTHING_ELSE_THAN: ((skill arg) ...)";

/// The error code of a text whose calls cannot be separated.
pub const MULTI_FAILURE: &str =
    "MULTI_COMMAND_FAILURE_NOTHING_WAS_DONE_PLEASE_CORRECT_PARENTHESES_AND_USE_QUOTES_AND_RETRY";

/// The error code of a valid call that failed or was interrupted: something may have been done.
pub const COMMAND_FAILURE: &str = "COMMAND_FAILED";

/// The error code of one call that is not valid.
pub const SINGLE_FAILURE: &str = "SINGLE_COMMAND_FORMAT_ERROR_NOTHING_WAS_DONE_PLEASE_FIX_AND_RETRY";

/// Formats calls as a tuple.
pub fn print(calls: &[SkillCall]) -> String {
    let calls: Vec<String> = calls.iter().map(SkillCall::print).collect();
    format!("({})", calls.join(" "))
}

/// Parses the model's output, repairing it if necessary.
///
/// # Errors
/// [`REMINDER`] or [`MULTI_FAILURE`], for the next prompt; then no call is made.
pub fn read(text: &str) -> Result<Vec<SkillCall>, &'static str> {
    let text = text.replace("_quote_", "\"").replace("_newline_", "\\n");
    // a code fence around the output is removed
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("```")).collect();
    let text = lines.join("\n");
    let text = text.trim();
    if !text.starts_with(['(', '-']) && skill(first_word(text)).is_none() {
        return Err(REMINDER);
    }
    let balanced = balance(text);
    if let Some(calls) = parse_all(&balanced).and_then(|all| calls_of(&balanced, &all)) {
        return Ok(calls);
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(parse_line).collect::<Option<Vec<_>>>().ok_or(MULTI_FAILURE)
}

/// Adds missing closing parentheses and removes unmatched ones. Parentheses in quotes do not count.
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

/// A node, with its end in the text.
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

/// Parses the expressions of a text; `None` if it is malformed.
fn parse_all(text: &str) -> Option<Vec<Node>> {
    /// Deepest nesting accepted, so that the stack cannot overflow; no call is as deep.
    const MAX_DEPTH: usize = 64;
    let mut open: Vec<Vec<Node>> = vec![Vec::new()];
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let kind = match bytes[at] {
            b'(' if open.len() > MAX_DEPTH => return None,
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
                let (value, end) = parse_string(text, at)?;
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

/// Parses the string literal that begins at `start`; returns its value and its end.
fn parse_string(text: &str, start: usize) -> Option<(String, usize)> {
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
                // an escape of a pattern (`\.`) is kept
                c => value.extend(['\\', c]),
            },
            c => value.push(c),
        }
    }
    None
}

/// Returns the calls of a tuple, of a single call, or of several calls without a tuple around them.
fn calls_of(text: &str, all: &[Node]) -> Option<Vec<SkillCall>> {
    let items = match all {
        [Node { kind: Kind::List(items), .. }] if items.iter().all(|item| matches!(item.kind, Kind::List(_))) => items,
        _ => all,
    };
    items.iter().map(|item| call(text, item)).collect()
}

/// Returns the call of a list that begins with a name.
fn call(text: &str, node: &Node) -> Option<SkillCall> {
    let Kind::List(items) = &node.kind else { return None };
    let (Node { kind: Kind::Symbol(name), end, .. }, arguments) = items.split_first()? else { return None };
    let quoted: Option<Vec<String>> = arguments.iter().map(text_of).collect();
    let inside = &text[*end..node.end - 1];
    Some(match (pin_call(name, inside), quoted) {
        (Some(pin), _) => pin,
        (None, Some(arguments)) => SkillCall { name: name.clone(), arguments },
        (None, None) => call_of_unquoted(name, inside),
    })
}

fn text_of(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// Reads a bullet (`-x` or `- x`) as a call of `pin`.
fn pin_call(name: &str, rest: &str) -> Option<SkillCall> {
    let first = name.strip_prefix('-')?;
    let text = format!("{first} {}", rest.trim());
    Some(SkillCall { name: "pin".into(), arguments: vec![unquote(&text)] })
}

/// Returns a call whose arguments are not all in quotes: the leading arguments are one word or string each, and the
/// rest of the text is the last one.
fn call_of_unquoted(name: &str, rest: &str) -> SkillCall {
    let count = skill(name).map_or(1, |skill| skill.arguments.len());
    let mut rest = rest.trim();
    let mut arguments = Vec::new();
    while arguments.len() + 1 < count && !rest.is_empty() {
        let (first, after) = match rest.starts_with('"').then(|| parse_string(rest, 0)).flatten() {
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
        arguments.push(unquote(rest));
    }
    SkillCall { name: name.to_owned(), arguments }
}

/// Removes the quotes around a text, but none inside it.
fn unquote(text: &str) -> String {
    let text = text.trim();
    let inside = text.strip_prefix('"').map_or(text, |rest| match rest.strip_suffix('"') {
        Some(inside) => inside,
        // an opening quote that is never closed
        None if !rest.contains('"') => rest,
        None => text,
    });
    inside.replace("\\n", "\n").replace("\\\"", "\"")
}

/// Parses a line that is one call, with or without parentheses.
fn parse_line(line: &str) -> Option<SkillCall> {
    let inside = match line.strip_prefix('(') {
        Some(rest) => rest.strip_suffix(')').unwrap_or(rest).trim(),
        None => line.trim_end_matches(')'),
    };
    if let Some(rest) = inside.strip_prefix('-') {
        return pin_call("-", rest);
    }
    let name = first_word(inside);
    let rest = &inside[name.len()..];
    skill(name).map(|Skill { name, .. }| call_of_unquoted(name, rest))
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
    fn common_malformed_outputs_are_repaired() {
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
        fn printed_calls_parse_back(
            texts in proptest::collection::vec(("send|pin|shell|nothing", "[^\u{0}]{0,40}"), 0..6)
        ) {
            // these marks are always replaced
            prop_assume!(texts.iter().all(|(_, text)| !text.contains("_quote_") && !text.contains("_newline_")));
            let calls: Vec<SkillCall> =
                texts.into_iter().map(|(name, text)| SkillCall { name, arguments: vec![text] }).collect();
            prop_assert_eq!(read(&print(&calls)).unwrap(), calls);
        }

        #[test]
        fn any_text_parses_or_gets_an_error_code(text in "[()\"\\\\ a\n-]{0,40}|[^\u{0}]{0,60}|(\\(|send|\"| |x|\\)|\n){0,30}") {
            match read(&text) {
                Ok(calls) => {
                    let again = read(&print(&calls));
                    prop_assert!(again.is_ok(), "{:?}", again);
                }
                Err(code) => prop_assert!([REMINDER, MULTI_FAILURE].contains(&code)),
            }
        }

        #[test]
        fn balancing_balances_any_text(text in "[()a \n]{0,60}") {
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
