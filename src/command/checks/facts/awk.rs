//! Finds awk programs that use a variable which is never set, as in `awk '... END {print sum, max}'`, where awk
//! silently takes `max` for an empty string; and programs that print nothing, as in `awk '{ sum += $1 }'`.

use super::CheckContext;
use super::edit::{error, warning};
use super::words::is_in;
use caro_shell::{Finding, Invocation, Word};
use std::collections::HashSet;

/// Built-in variables of awk and gawk.
const BUILT_IN: &str = "ARGC ARGIND ARGV BINMODE CONVFMT ENVIRON ERRNO FIELDWIDTHS FILENAME FNR FPAT FS FUNCTAB \
    IGNORECASE LINT NF NR OFMT OFS ORS PROCINFO RLENGTH RS RSTART RT SUBSEP SYMTAB TEXTDOMAIN";

/// Keywords, and functions that may be called without parentheses.
const KEYWORDS: &str = "BEGIN BEGINFILE END ENDFILE break case continue default delete do else exit for func function \
    getline if in length next nextfile print printf return switch while";

/// True for a call of awk.
pub(super) fn is_awk(command: &Invocation) -> bool {
    matches!(command.name(), Some("awk" | "gawk" | "mawk" | "nawk"))
}

pub(super) fn check(_: &CheckContext, awk: &Invocation) -> Option<Finding> {
    // part of the program may be in a file
    let is_in_file = |w: &Word| w.text.starts_with("-f") || w.text.starts_with("--file") || w.text == "-i";
    if !is_awk(awk) || awk.args().iter().any(is_in_file) {
        return None;
    }
    let program = awk.args().iter().find(|w| w.raw.starts_with('\'') && w.text.contains(['{', '$']))?;
    let text = program.value.as_deref()?;
    let tokens = tokens(text)?;
    // a line break ends a rule, but is not among the tokens
    let prints_nothing = !text.contains('\n') && prints_nothing(&tokens);
    if prints_nothing { Some(silent(program)) } else { unset(awk, program, &tokens) }
}

fn silent(program: &Word) -> Finding {
    let why =
        "nothing in it prints: what it works out is lost without a print, in END { ... } if it is one for all lines";
    error("awk-silent", program, why, None)
}

/// True if every rule has an action, and no action prints, runs a command or exits.
fn prints_nothing(tokens: &[Token]) -> bool {
    const EFFECTS: &str = "print printf system exit function func";
    let (mut depth, mut has_pattern) = (0_usize, false);
    for token in tokens {
        match token {
            Token::Name(name) if is_in(EFFECTS, name) => return false,
            Token::Sign('@') => return false,
            Token::Sign('{') => (depth, has_pattern) = (depth + 1, false),
            Token::Sign('}') => depth = depth.saturating_sub(1),
            // a pattern without an action prints the line
            Token::Sign(';') if depth == 0 && has_pattern => return false,
            Token::Sign(';') => {}
            _ => has_pattern |= depth == 0,
        }
    }
    !has_pattern
}

fn unset(awk: &Invocation, program: &Word, tokens: &[Token]) -> Option<Finding> {
    // `-v name=`, or `name=` among the files
    let is_given = |name: &str| awk.args().iter().any(|w| w.text.contains(&format!("{name}=")) && w != program);
    let set = set_names(tokens);
    let name = tokens.iter().enumerate().find_map(|(at, token)| {
        let name = token.name().filter(|name| !is_in(BUILT_IN, name) && !is_in(KEYWORDS, name))?;
        let is_call = matches!(tokens.get(at + 1), Some(Token::Sign('(')));
        // `@include "lib.awk"`
        let is_directive = at.checked_sub(1).is_some_and(|at| tokens[at] == Token::Sign('@'));
        (!set.contains(name) && !is_call && !is_directive && !is_given(name)).then_some(name)
    })?;
    Some(warning("awk-unset", program, format!("nothing sets {name}: to awk it is an empty text, or 0"), None))
}

/// Returns the names that are assigned somewhere, are arrays, or may be assigned by a function that they are passed
/// to.
fn set_names<'a>(tokens: &[Token<'a>]) -> HashSet<&'a str> {
    let mut set = HashSet::new();
    // for each open parenthesis, whether it belongs to a call that may set its arguments
    let mut open: Vec<bool> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Sign('(') => {
                let function = at.checked_sub(1).and_then(|before| tokens[before].name());
                // inside further parentheses, a name is still an argument of the outer call
                let may_set = function.map_or_else(
                    || open.last().copied().unwrap_or_default(),
                    |name| !is_in(PURE_FUNCTIONS, name) && !is_in(KEYWORDS, name),
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

/// Functions that do not change their arguments.
const PURE_FUNCTIONS: &str = "cos exp index int length log printf sin sqrt sprintf substr tolower toupper";

/// True if the name at this index is assigned there, or is an array.
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
    // `getline line`; `split(text, parts)` and parameters of functions are recognized by their parentheses
    let read = matches!(before(1), Some(Token::Name("getline")));
    assigned || stepped || array || in_loop || read
}

/// A rule of a program: its pattern and its action.
type Rule<'a> = (Vec<Token<'a>>, Vec<Token<'a>>);

/// Splits a program into its rules; `None` if one has no action, or blocks in it.
fn rules(program: &str) -> Option<Vec<Rule<'_>>> {
    let (mut rules, mut rule, mut is_action) = (Vec::new(), Rule::default(), false);
    for token in tokens(program)? {
        match token {
            Token::Sign('{') if is_action => return None,
            Token::Sign('{') => is_action = true,
            Token::Sign('}') => {
                rule.1.pop_if(|last| *last == Token::Sign(';'));
                rules.push(std::mem::take(&mut rule));
                is_action = false;
            }
            Token::Sign('(' | ')') => {}
            _ if is_action => rule.1.push(token),
            _ => rule.0.push(token),
        }
    }
    (!is_action && rule.0.is_empty()).then_some(rules)
}

/// Returns the only field that a program reads, if it does nothing with each line but print, and whether it prints
/// the field alone: 2 for `{ print $2 }`.
pub(super) fn shown_field(program: &str) -> Option<(u32, bool)> {
    let rules = rules(program)?;
    let [(pattern, action)] = rules.as_slice() else { return None };
    let mut fields = action.windows(2).filter(|pair| pair[0] == Token::Sign('$')).map(|pair| &pair[1]);
    let Token::Number(field) = fields.next()? else { return None };
    let only_prints = action.iter().filter_map(Token::name).all(|name| matches!(name, "print" | "printf"));
    let is_only = fields.all(|other| *other == Token::Number(field));
    let is_alone = matches!(action.as_slice(), [Token::Name("print"), _, _]);
    if pattern.is_empty() && only_prints && is_only { Some((field.parse().ok()?, is_alone)) } else { None }
}

/// Returns the field that a program adds up over all lines, if it prints the sum at the end, and whether it prints
/// nothing else: 1 for `{ s += $1 } END { print s }`.
pub(super) fn summed_field(program: &str) -> Option<(u32, bool)> {
    use Token::{Name, Number, Sign, Value};
    let rules = rules(program)?;
    let [(pattern, add), (end, print)] = rules.as_slice() else { return None };
    let (sum, field) = match add.as_slice() {
        [Name(sum), Sign('+'), Sign('='), Sign('$'), Number(field)] => (sum, field),
        [Name(sum), Sign('='), Name(same), Sign('+'), Sign('$'), Number(field)] if sum == same => (sum, field),
        _ => return None,
    };
    let ([Name("print" | "printf"), printed @ ..], [Name("END")], []) =
        (print.as_slice(), end.as_slice(), pattern.as_slice())
    else {
        return None;
    };
    let is_shown = |token: &Token| matches!(token, Value | Sign(',')) || token.name() == Some(sum);
    if !printed.contains(&Name(sum)) || !printed.iter().all(is_shown) {
        return None;
    }
    Some((field.parse().ok()?, matches!(print.as_slice(), [Name("print"), Name(_)])))
}

/// A token of an awk program.
#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Name(&'a str),
    /// A punctuation mark, or a character of an operator.
    Sign(char),
    Number(&'a str),
    /// A string or a regular expression.
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

/// Splits a program into tokens; `None` if a string or regular expression in it does not end.
fn tokens(program: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = program;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => literal_length(rest, '"')?,
            '/' if !tokens.last().is_some_and(ends_value) => literal_length(rest, '/')?,
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
            _ if c.is_ascii_digit() => tokens.push(Token::Number(piece)),
            _ if c.is_alphabetic() || c == '_' => tokens.push(Token::Name(piece)),
            _ => tokens.push(Token::Sign(c)),
        }
    }
    Some(tokens)
}

/// True if the token ends a value, so that a `/` after it is a division.
fn ends_value(token: &Token) -> bool {
    match token {
        Token::Name(name) => !is_in(KEYWORDS, name) || *name == "length",
        Token::Number(_) | Token::Value => true,
        Token::Sign(c) => matches!(c, ')' | ']' | '$'),
    }
}

/// Returns the length in bytes of the string or regular expression that the text begins with. In the brackets of a
/// regular expression its delimiter is a character like any other.
fn literal_length(text: &str, mark: char) -> Option<usize> {
    let (mut escaped, mut bracket) = (false, None);
    text.char_indices().skip(1).find_map(|(at, c)| {
        let ends = c == mark && !escaped && bracket.is_none();
        match (bracket, c) {
            (None, '[') if mark == '/' && !escaped => bracket = Some(at),
            // a `]` that comes first in the brackets is one of the characters: `[]a]`, `[^]a]`
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
    fn a_long_program_is_checked_quickly() {
        let names = "x ".repeat(60_000);
        let since = std::time::Instant::now();
        assert_eq!(findings(check, "", &format!("awk '{{ print {names}; (((x = 1 }}' a.txt")).len(), 0);
        assert!(since.elapsed() < std::time::Duration::from_secs(20), "{:?}", since.elapsed());
    }

    #[test]
    fn a_line_break_ends_a_pattern_and_an_unset_variable_is_named() {
        assert_eq!(findings(check, "", "awk 'NR == 1\n{ x++ }' a.txt"), []);
        for (wrong, name) in [
            ("awk -F, '{s += $2; n++} END {print s/n, max}' a.csv", "max"),
            ("awk '{print column}' a.txt", "column"),
            ("awk 'NR > 1 && $2 > limit {print $1}' a.txt", "limit"),
            ("awk '{ if ($2 == top) print }' a.txt", "top"),
        ] {
            let found = findings(check, "", wrong);
            assert!(found.first().is_some_and(|f| f.why.contains(name)), "{wrong}: {found:?}");
        }
    }
}
