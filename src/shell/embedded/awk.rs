//! `awk`: `print > file`, `print | "command"`, `"command" | getline`, `system("command")`.

use super::Act;

/// A piece of an awk program.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    Text(String),
    /// A number, a field, a pattern: something with a value, of no more interest.
    Value,
    Mark(&'static str),
    Other(char),
    /// A text or pattern that never ends: something before it was not what it was taken for.
    Torn,
}

/// What an awk program does besides reading and printing.
pub(super) fn acts(text: &str) -> Vec<Act> {
    let tokens = tokens(text);
    let mut acts = Vec::new();
    let mut depth = 0usize;
    // the depth of brackets at which a `print` stands whose `>` would be a redirection; deeper it compares
    let mut printing = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Other('(' | '[') => depth += 1,
            Token::Other(')' | ']') => depth = depth.saturating_sub(1),
            Token::Other(';' | '}' | '{' | '\n') => printing = None,
            Token::Name(name) if name == "print" || name == "printf" => printing = Some(depth),
            Token::Name(name) if name == "system" => acts.push(Act::Run(alone(&tokens, at + 2, &[')']))),
            Token::Mark(">" | ">>") if printing == Some(depth) => {
                acts.push(Act::Write(alone(&tokens, at + 1, &[';', '}', '\n'])))
            }
            Token::Mark("|" | "|&") => {
                let reads = matches!(tokens.get(at + 1), Some(Token::Name(name)) if name == "getline");
                acts.push(Act::Run(if reads {
                    before(&tokens, at)
                } else {
                    alone(&tokens, at + 1, &[';', '}', '\n'])
                }));
            }
            // gawk: an extension or another program is taken in
            Token::Other('@') | Token::Torn => acts.push(Act::Run(None)),
            _ => {}
        }
    }
    acts
}

/// The text at that place, if nothing is joined to it: what follows is one of `ends`, or nothing.
fn alone(tokens: &[Token], at: usize, ends: &[char]) -> Option<String> {
    let Some(Token::Text(text)) = tokens.get(at) else { return None };
    let ended = match tokens.get(at + 1) {
        None => true,
        Some(Token::Other(c)) => ends.contains(c),
        Some(_) => false,
    };
    ended.then(|| text.clone())
}

/// The text right before that place, if nothing is joined to it.
fn before(tokens: &[Token], at: usize) -> Option<String> {
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
            '"' => found.push(quoted(&mut chars).map_or(Token::Torn, Token::Text)),
            // after something with a value `/` divides
            '/' if divides(found.last()) => found.push(Token::Other('/')),
            '/' => found.push(if pattern(&mut chars) { Token::Value } else { Token::Torn }),
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

/// A text to its closing quote.
fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
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

/// Skips a pattern; false if it never ends.
fn pattern(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
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
    fn what_an_awk_program_writes_and_runs() {
        let file = |name: &str| Act::Write(Some(name.into()));
        let run = |command: &str| Act::Run(Some(command.into()));
        for (text, acts) in [
            ("{ print > \"out\" }", vec![file("out")]),
            ("{ print $1, $2 >> \"/etc/passwd\"; x++ }", vec![file("/etc/passwd")]),
            ("{ print > $1\".txt\" }", vec![Act::Write(None)]),
            ("{ print > \"a\" $1 }", vec![Act::Write(None)]),
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
            ("{ system(\"rm \" $1) }", vec![Act::Run(None)]),
            ("{ cmd = \"x\"; cmd | getline y }", vec![Act::Run(None)]),
            ("# system(\"x\") > \"y\"\n{ print }", vec![]),
            ("@load \"x\"", vec![Act::Run(None)]),
            ("{ print", vec![]),
            ("\"", vec![Act::Run(None)]),
            ("{ if (0) x; else /\"/; print > \"out\" }", vec![file("out")]),
            ("{ do /\"/; while (x++ < 2); print > \"out\" }", vec![file("out")]),
            ("{ if (0) /\"/; print > \"out\" }", vec![Act::Run(None)]),
            ("/a", vec![Act::Run(None)]),
            ("{ print $1/2, (a)/b, x[1]/y } /[/\"]/ { n++ }", vec![]),
        ] {
            assert_eq!(super::acts(text), acts, "{text}");
        }
    }
}
