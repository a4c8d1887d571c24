//! `awk '... END {print sum, max}'`, where nothing ever sets `max`: awk takes it for an empty text and says nothing. Nor does
//! `awk '{ sum += $1 }'`, where nothing prints.

use super::CheckContext;
use super::edit::warning;
use caro_shell::{Finding, Invocation, Severity, Word};
use std::collections::HashSet;

/// Variables of awk itself, gawk's included.
const OWN: &[&str] = &[
    "ARGC",
    "ARGIND",
    "ARGV",
    "BINMODE",
    "CONVFMT",
    "ENVIRON",
    "ERRNO",
    "FIELDWIDTHS",
    "FILENAME",
    "FNR",
    "FPAT",
    "FS",
    "FUNCTAB",
    "IGNORECASE",
    "LINT",
    "NF",
    "NR",
    "OFMT",
    "OFS",
    "ORS",
    "PROCINFO",
    "RLENGTH",
    "RS",
    "RSTART",
    "RT",
    "SUBSEP",
    "SYMTAB",
    "TEXTDOMAIN",
];

/// Words of the language, and functions that may stand without parentheses.
const WORDS: &[&str] = &[
    "BEGIN",
    "BEGINFILE",
    "END",
    "ENDFILE",
    "break",
    "case",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "exit",
    "for",
    "func",
    "function",
    "getline",
    "if",
    "in",
    "length",
    "next",
    "nextfile",
    "print",
    "printf",
    "return",
    "switch",
    "while",
];

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let awks = it.script.commands.iter().filter(|c| matches!(c.name(), Some("awk" | "gawk" | "mawk" | "nawk")));
    awks.filter_map(|awk| {
        // another program's text belongs to it
        if awk.args().iter().any(|w| w.text.starts_with("-f") || w.text.starts_with("--file") || w.text == "-i") {
            return None;
        }
        let program = awk.args().iter().find(|w| w.raw.starts_with('\'') && w.text.contains(['{', '$']))?;
        let text = program.value.as_deref()?;
        let tokens = tokens(text)?;
        // a line's end ends a rule, and no token tells it
        let mute = !text.contains('\n') && is_mute(&tokens);
        if mute { Some(silent(program)) } else { unset(awk, program, &tokens) }
    })
    .collect()
}

fn silent(program: &Word) -> Finding {
    let why =
        "nothing in it prints: what it works out is lost without a print, in END { ... } if it is one for all lines";
    Finding { severity: Severity::Error, ..warning("awk-silent", program, why, None) }
}

/// True where every rule has an action, and none prints, runs something or ends with a status.
fn is_mute(tokens: &[Token]) -> bool {
    const HEARD: [&str; 6] = ["print", "printf", "system", "exit", "function", "func"];
    let (mut depth, mut pattern) = (0_usize, false);
    for token in tokens {
        match token {
            Token::Name(name) if HEARD.contains(name) => return false,
            Token::Sign('@') => return false,
            Token::Sign('{') => (depth, pattern) = (depth + 1, false),
            Token::Sign('}') => depth = depth.saturating_sub(1),
            Token::Sign(';') if depth == 0 && pattern => return false,
            Token::Sign(';') => {}
            _ => pattern |= depth == 0,
        }
    }
    !pattern
}

fn unset(awk: &Invocation, program: &Word, tokens: &[Token]) -> Option<Finding> {
    // `-v name=`, `name=` among the files
    let given = |name: &str| awk.args().iter().any(|w| w.text.contains(&format!("{name}=")) && w != program);
    let set = set_names(tokens);
    let name = tokens.iter().enumerate().find_map(|(at, token)| {
        let name = token.name().filter(|name| !OWN.contains(name) && !WORDS.contains(name))?;
        let called = matches!(tokens.get(at + 1), Some(Token::Sign('(')));
        // `@include "lib.awk"`
        let directive = at.checked_sub(1).is_some_and(|at| tokens[at] == Token::Sign('@'));
        (!set.contains(name) && !called && !directive && !given(name)).then_some(name)
    })?;
    Some(warning("awk-unset", program, format!("nothing sets {name}: to awk it is an empty text, or 0"), None))
}

/// The names that get a value somewhere, are arrays, or may get one in a way that is not looked into.
fn set_names<'a>(tokens: &[Token<'a>]) -> HashSet<&'a str> {
    let mut set = HashSet::new();
    // for each parenthesis that is open, whether it is one of a call that may set what stands in it
    let mut open: Vec<bool> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('(') => {
                let called = at.checked_sub(1).and_then(|before| tokens[before].name());
                // between parentheses of its own a name is still an argument
                let may_set = called.map_or_else(
                    || open.last().copied().unwrap_or_default(),
                    |name| !LOOKS.contains(&name) && !WORDS.contains(&name),
                );
                open.push(may_set);
            }
            Token::Sign(')') => _ = open.pop(),
            Token::Name(name) if open.last() == Some(&true) || sets(tokens, at) => _ = set.insert(*name),
            _ => {}
        }
    }
    set
}

/// Functions that only look at what they are given.
const LOOKS: &[&str] = &[
    "cos", "exp", "index", "int", "length", "log", "printf", "sin", "sqrt", "sprintf", "substr", "tolower", "toupper",
];

/// True if the name at this place gets a value there, or is an array.
fn sets(tokens: &[Token], at: usize) -> bool {
    let after = |n: usize| tokens.get(at + n);
    let before = |n: usize| at.checked_sub(n).and_then(|i| tokens.get(i));
    let is = |token: Option<&Token>, sign: char| token == Some(&Token::Sign(sign));
    let assigned = is(after(1), '=') && !is(after(2), '=')
        || matches!(after(1), Some(Token::Sign('+' | '-' | '*' | '/' | '%' | '^')))
            && (is(after(2), '=') || after(2) == after(1));
    let stepped = matches!((before(2), before(1)), (Some(a), Some(b)) if a == b && matches!(a, Token::Sign('+' | '-')));
    let array = is(after(1), '[') || matches!(before(1), Some(Token::Name("in" | "delete")));
    let in_loop = matches!(after(1), Some(Token::Name("in")));
    // `getline line`; `split(text, parts)` and a function's parameters are seen by their parentheses
    let read = matches!(before(1), Some(Token::Name("getline")));
    assigned || stepped || array || in_loop || read
}

/// A piece of an awk program.
#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Name(&'a str),
    /// Punctuation, or a character of an operator.
    Sign(char),
    /// A number, a text or a pattern.
    Value,
}

impl<'a> Token<'a> {
    fn name(&self) -> Option<&'a str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// What a program consists of; `None` if a text or pattern in it does not end.
fn tokens(program: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = program;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => enclosed(rest, '"')?,
            '/' if !tokens.last().is_some_and(is_value) => enclosed(rest, '/')?,
            '#' => rest.find('\n').unwrap_or(rest.len()),
            _ if c.is_whitespace() => c.len_utf8(),
            _ if c.is_ascii_digit() => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len())
            }
            _ if c.is_alphabetic() || c == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            _ => c.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        rest = after;
        match c {
            '#' => {}
            _ if c.is_whitespace() => {}
            '"' => tokens.push(Token::Value),
            '/' if length > 1 => tokens.push(Token::Value),
            _ if c.is_ascii_digit() => tokens.push(Token::Value),
            _ if c.is_alphabetic() || c == '_' => tokens.push(Token::Name(piece)),
            _ => tokens.push(Token::Sign(c)),
        }
    }
    Some(tokens)
}

/// True for the end of a value: what stands behind it divides.
fn is_value(token: &Token) -> bool {
    match token {
        Token::Name(name) => !WORDS.contains(name) || *name == "length",
        Token::Value => true,
        Token::Sign(c) => matches!(c, ')' | ']' | '$'),
    }
}

/// Bytes up to the end of a text or pattern that begins here. In the brackets of a pattern its mark is a character.
fn enclosed(text: &str, mark: char) -> Option<usize> {
    let (mut escaped, mut bracket) = (false, None);
    text.char_indices().skip(1).find_map(|(at, c)| {
        let ends = c == mark && !escaped && bracket.is_none();
        match (bracket, c) {
            (None, '[') if mark == '/' && !escaped => bracket = Some(at),
            // the first one in them is one of the characters: `[]a]`, `[^]a]`
            (Some(open), ']') if !escaped && !matches!(&text[open + 1..at], "" | "^") => bracket = None,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        ends.then_some(at + c.len_utf8())
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_long_program_takes_no_time() {
        let names = "x ".repeat(60_000);
        let since = std::time::Instant::now();
        assert_eq!(findings(check, "", &format!("awk '{{ print {names}; (((x = 1 }}' a.txt")).len(), 0);
        assert!(since.elapsed() < std::time::Duration::from_secs(20), "{:?}", since.elapsed());
    }

    #[test]
    fn a_program_prints_something() {
        let told = |command| findings(check, "", command).into_iter().any(|f| f.id == "awk-silent");
        for wrong in [
            "awk '{ s += $1 }' a.txt",
            "awk -F, '$2 == \"it\" && $4 > max { max = $4; best = $1 }' staff.csv",
            "cat a.txt | awk '{ n[$1]++ } END { }'",
            "awk 'NR > 1 { sub(/a/, \"b\") }' a.txt > b.txt",
        ] {
            assert!(told(wrong), "{wrong}");
        }
        for right in [
            "awk '{ s += $1 } END { print s }' a.txt",
            "awk '$1 > 3' a.txt",
            "awk '{ $1 = 2 } 1' a.txt",
            "awk '{ $1 = 2 }; 1; { x++ }' a.txt",
            "awk '!seen[$0]++' a.txt",
            "awk '/x/ { found = 1 } END { exit !found }' a.txt",
            "awk '{ system(\"ls \" $1) }' a.txt",
            "awk '{ printf \"%s\", $0 > $1 \".txt\" }' a.txt",
            "awk 'NR == 1\n{ x++ }' a.txt",
            "awk -f prog.awk -v '{$x=1}' a.txt",
            "awk '@include \"lib.awk\"; { x++ }' a.txt",
        ] {
            assert!(!told(right), "{right}");
        }
    }

    #[test]
    fn what_is_printed_was_set() {
        let why = |command| findings(check, "", command).into_iter().next().map(|f| f.why);
        for (wrong, name) in [
            ("awk -F, '{s += $2; n++} END {print s/n, max}' a.csv", "max"),
            ("awk '{print column}' a.txt", "column"),
            ("awk 'NR > 1 && $2 > limit {print $1}' a.txt", "limit"),
            ("awk '{ if ($2 == top) print }' a.txt", "top"),
        ] {
            assert!(why(wrong).is_some_and(|w| w.contains(name)), "{wrong}");
        }
        for right in [
            "awk -v limit=3 '$2 > limit' a.txt",
            "awk '$2 > m {m = $2} END {print m}' a.txt",
            "awk '!seen[$0]++' a.txt",
            "awk '{c[$1] += $2} END {for (k in c) print k, c[k]}' a.txt",
            "awk 'NR==FNR {a[$1]; next} $1 in a' a.txt b.txt",
            "awk '/start/{on=1} on; /end/{on=0}' a.txt",
            "awk '{n = split($0, parts, \",\"); print parts[n], length, length($0)}' a.txt",
            "awk '{sum += $1} END {print sum / NR \"max\"}' a.txt",
            "awk 'function twice(x) {return 2 * x} {print twice($1)}' a.txt",
            "awk '{while ((getline line < $1) > 0) print line}' a.txt",
            "awk '{print NF, FILENAME, ENVIRON[\"HOME\"]}' a.txt",
            "awk '{$1 = toupper(substr($1, 1, 1)) substr($1, 2)} 1' a.txt",
            "awk '{print $NF / 2, x / 2}' x=3 a.txt",
            "awk '++n == 2 {print $0 > out}' out=b.txt a.txt",
            "awk -f prog.awk a.txt",
            "awk '{ gsub(/a/, \"b\", name); print name }' a.txt",
            "awk '{ gsub(/a/, (\"b\"), (name)); print name }' a.txt",
            "awk '/GET \\/[^/]* HTTP/ {n++} END {print n}' access.log",
            "awk '/[]/]x/ {print /foo/ ? 1 : 2; print $1 / length / 2}' a.txt",
            "awk '{ switch ($1) { case /^a/: print } }' a.txt",
            "awk '@include \"lib.awk\"; {print $1}' a.txt",
        ] {
            assert_eq!(why(right), None, "{right}");
        }
    }
}
