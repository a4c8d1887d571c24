//! Finds side effects of `awk` programs: `print > file`, `print | "command"`, `"command" | getline`,
//! `system("command")`.

use super::SideEffect;

/// A token of an awk program.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    Text(String),
    /// A number, a field or a pattern: a value whose content does not matter.
    Value,
    Mark(&'static str),
    Other(char),
    /// A string literal or pattern without an end: something before it was misread.
    Unterminated,
}

/// Returns the side effects of an awk program.
pub(super) fn side_effects(text: &str) -> Vec<SideEffect> {
    let tokens = tokens(text);
    let mut side_effects = Vec::new();
    let mut depth = 0usize;
    // the depth of brackets of a `print`, at which `>` is a redirection; deeper it compares
    let mut printing = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Other('(' | '[') => depth += 1,
            Token::Other(')' | ']') => depth = depth.saturating_sub(1),
            Token::Other(';' | '}' | '{' | '\n') => printing = None,
            Token::Name(name) if name == "print" || name == "printf" => printing = Some(depth),
            Token::Name(name) if name == "system" => {
                side_effects.push(SideEffect::Run(literal_at(&tokens, at + 2, &[')'])))
            }
            Token::Mark(">" | ">>") if printing == Some(depth) => {
                side_effects.push(SideEffect::Write(literal_at(&tokens, at + 1, &[';', '}', '\n'])))
            }
            Token::Mark("|" | "|&") => {
                let reads = matches!(tokens.get(at + 1), Some(Token::Name(name)) if name == "getline");
                side_effects.push(SideEffect::Run(if reads {
                    literal_before(&tokens, at)
                } else {
                    literal_at(&tokens, at + 1, &[';', '}', '\n'])
                }));
            }
            // gawk: loads an extension or another program
            Token::Other('@') | Token::Unterminated => side_effects.push(SideEffect::Run(None)),
            _ => {}
        }
    }
    side_effects
}

/// Returns the string literal at `at`, unless it is concatenated: one of `ends`, or nothing, must follow.
fn literal_at(tokens: &[Token], at: usize, ends: &[char]) -> Option<String> {
    let Some(Token::Text(text)) = tokens.get(at) else { return None };
    let is_last = match tokens.get(at + 1) {
        None => true,
        Some(Token::Other(c)) => ends.contains(c),
        Some(_) => false,
    };
    is_last.then(|| text.clone())
}

/// Returns the string literal right before `at`, unless it is concatenated.
fn literal_before(tokens: &[Token], at: usize) -> Option<String> {
    let Some(Token::Text(text)) = tokens.get(at.checked_sub(1)?) else { return None };
    let first = at < 2 || matches!(tokens.get(at - 2), Some(Token::Other(';' | '{' | '(' | '\n' | '&' | '!')));
    first.then(|| text.clone())
}

fn tokens(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '#' => while chars.next_if(|c| *c != '\n').is_some() {},
            '\\' => {
                chars.next();
            }
            '"' => found.push(string_literal(&mut chars).map_or(Token::Unterminated, Token::Text)),
            // after a value, `/` is a division
            '/' if divides(found.last()) => found.push(Token::Other('/')),
            '/' => found.push(if skip_pattern(&mut chars) { Token::Value } else { Token::Unterminated }),
            c if c.is_alphabetic() || c == '_' => {
                let mut name = c.to_string();
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    name.push(c);
                }
                found.push(Token::Name(name));
            }
            c if c.is_ascii_digit() => {
                while chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '.').is_some() {}
                found.push(Token::Value);
            }
            '|' if chars.next_if_eq(&'|').is_some() => found.push(Token::Other('&')),
            '|' if chars.next_if_eq(&'&').is_some() => found.push(Token::Mark("|&")),
            '|' => found.push(Token::Mark("|")),
            '>' if chars.next_if_eq(&'=').is_some() => found.push(Token::Other('=')),
            '>' if chars.next_if_eq(&'>').is_some() => found.push(Token::Mark(">>")),
            '>' => found.push(Token::Mark(">")),
            c if c.is_whitespace() && c != '\n' => {}
            c => found.push(Token::Other(c)),
        }
    }
    found
}

fn divides(last: Option<&Token>) -> bool {
    match last {
        Some(Token::Name(name)) => {
            !matches!(name.as_str(), "print" | "printf" | "return" | "in" | "case" | "else" | "do")
        }
        Some(Token::Text(_) | Token::Value | Token::Other(')' | ']' | '$')) => true,
        _ => false,
    }
}

/// Reads a string literal up to its closing quote.
fn string_literal(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some(text),
            '\\' => match chars.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                c => text.push(c),
            },
            c => text.push(c),
        }
    }
    None
}

/// Skips a pattern; false if it has no end.
fn skip_pattern(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let mut class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' => class = true,
            ']' => class = false,
            '/' if !class => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_effects_of_awk_programs_are_found() {
        let file = |name: &str| SideEffect::Write(Some(name.into()));
        let run = |command: &str| SideEffect::Run(Some(command.into()));
        for (text, side_effects) in [
            ("{ print > \"out\" }", vec![file("out")]),
            ("{ print $1, $2 >> \"/etc/passwd\"; x++ }", vec![file("/etc/passwd")]),
            ("{ print > $1\".txt\" }", vec![SideEffect::Write(None)]),
            ("{ print > \"a\" $1 }", vec![SideEffect::Write(None)]),
            ("{ printf(\"%s\\n\", $0) > \"o\" }", vec![file("o")]),
            ("$3 > 1000 { print $1 }", vec![]),
            ("{ print ($1 > 5) }", vec![]),
            ("{ if ($1 >= 2 || $2 > 3) print }", vec![]),
            ("/a > b|c/ { print }", vec![]),
            ("{ print \"a > b | c\" }", vec![]),
            ("{ print a / b, c / d }", vec![]),
            ("{ print | \"sh\" }", vec![run("sh")]),
            ("{ print $1 | \"sort -u\" }", vec![run("sort -u")]),
            ("BEGIN { \"rm -rf ~\" | getline }", vec![run("rm -rf ~")]),
            ("BEGIN { \"date\" | getline now; print now }", vec![run("date")]),
            ("BEGIN { while (\"ls\" | getline f) print f }", vec![run("ls")]),
            ("{ system(\"id\") }", vec![run("id")]),
            ("{ system(\"rm \" $1) }", vec![SideEffect::Run(None)]),
            ("{ cmd = \"x\"; cmd | getline y }", vec![SideEffect::Run(None)]),
            ("# system(\"x\") > \"y\"\n{ print }", vec![]),
            ("@load \"x\"", vec![SideEffect::Run(None)]),
            ("{ print", vec![]),
            ("\"", vec![SideEffect::Run(None)]),
            ("{ if (0) x; else /\"/; print > \"out\" }", vec![file("out")]),
            ("{ do /\"/; while (x++ < 2); print > \"out\" }", vec![file("out")]),
            ("{ if (0) /\"/; print > \"out\" }", vec![SideEffect::Run(None)]),
            ("/a", vec![SideEffect::Run(None)]),
            ("{ print $1/2, (a)/b, x[1]/y } /[/\"]/ { n++ }", vec![]),
        ] {
            assert_eq!(super::side_effects(text), side_effects, "{text}");
        }
    }
}
