//! Resolves and applies the quotes and escapes of words, for each dialect.

use super::Dialect;

/// A resolved word.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// The text without quotes and escapes; expansions as written.
    pub text: String,
    pub glob: bool,
    pub expands: bool,
    pub quoted: bool,
    /// True if it has `{a,b}` or `{1..5}`.
    pub braces: bool,
    /// True if nothing is left for the shell to expand.
    pub literal: bool,
}

/// Resolves the quotes and escapes of a raw word.
pub(super) fn resolve(raw: &str, dialect: Dialect) -> Resolved {
    let mut reader = Reader { chars: raw.char_indices().collect(), raw, at: 0, out: Resolved::default(), dialect };
    match dialect {
        Dialect::Bash | Dialect::Zsh | Dialect::Sh => reader.posix(),
        Dialect::Fish => reader.fish(),
        Dialect::PowerShell => reader.powershell(),
    }
    let mut out = reader.out;
    // PowerShell passes wildcards on to the cmdlet; the other shells expand them
    out.literal = !out.expands && (!out.glob || dialect == Dialect::PowerShell);
    out
}

struct Reader<'a> {
    chars: Vec<(usize, char)>,
    raw: &'a str,
    at: usize,
    out: Resolved,
    dialect: Dialect,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).map(|(_, c)| *c)
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        Some(c)
    }

    /// Copies an expansion as written, from the current `$`, backtick or bracket to its end.
    fn expansion(&mut self, end: Option<(char, char)>) {
        self.out.expands = true;
        let Some((open, close)) = end else { return };
        let mut depth = 0usize;
        while let Some(c) = self.next() {
            self.out.text.push(c);
            if c == '\\' {
                let escaped = self.next();
                self.out.text.extend(escaped);
            } else if c == close && (depth == 1 || open == close && depth > 0) {
                return;
            } else if c == close {
                depth = depth.saturating_sub(1);
            } else if c == open {
                depth += 1;
            }
        }
    }

    /// Reads a `$` and what follows it. Returns true if it is an expansion.
    fn dollar(&mut self) -> bool {
        match self.peek(1) {
            Some('(') => {
                self.at += 1;
                self.out.text.push('$');
                self.expansion(Some(('(', ')')));
            }
            Some('{') => {
                self.at += 1;
                self.out.text.push('$');
                self.expansion(Some(('{', '}')));
            }
            Some(c) if c.is_alphanumeric() || "_@*#?-$!".contains(c) => {
                if self.dialect == Dialect::Fish && !c.is_alphanumeric() && c != '_' && c != '$' {
                    return false;
                }
                self.expansion(None);
                self.out.text.push('$');
                self.at += 1;
            }
            _ => return false,
        }
        true
    }

    /// True if the current brace opens `{a,b}` or `{1..5}` inside of this word.
    fn braces(&self) -> bool {
        let rest = self.raw.get(self.chars[self.at].0..).unwrap_or_default();
        let mut depth = 0usize;
        let (mut comma, mut before) = (false, ' ');
        for c in rest.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 1 => return comma,
                '}' => depth -= 1,
                ',' if depth == 1 => comma = true,
                '.' if depth == 1 && before == '.' => comma = true,
                ' ' | '\'' | '"' if depth == 0 => return false,
                _ => {}
            }
            before = c;
        }
        false
    }

    fn posix(&mut self) {
        if self.peek(0) == Some('~') {
            self.out.expands = true;
        }
        if matches!((self.peek(0), self.peek(1)), (Some('<' | '>' | '='), Some('('))) {
            self.out.expands = true;
        }
        while let Some(c) = self.peek(0) {
            match c {
                '\\' => {
                    self.at += 1;
                    self.out.quoted = true;
                    match self.next() {
                        Some('\n') => {}
                        Some(c) => self.out.text.push(c),
                        None => self.out.text.push('\\'),
                    }
                    continue;
                }
                '\'' => {
                    self.at += 1;
                    self.single();
                    continue;
                }
                '"' => {
                    self.at += 1;
                    self.posix_double();
                    continue;
                }
                '$' if self.peek(1) == Some('\'') && self.dialect != Dialect::Sh => {
                    self.at += 2;
                    self.ansi();
                    continue;
                }
                '$' if self.peek(1) == Some('"') && self.dialect != Dialect::Sh => {
                    self.at += 2;
                    self.posix_double();
                    continue;
                }
                '$' if self.dollar() => continue,
                '`' => {
                    self.expansion(Some(('`', '`')));
                    continue;
                }
                '*' | '?' => self.out.glob = true,
                '[' => self.out.glob |= self.raw[self.chars[self.at].0..].contains(']') && self.raw.len() > 1,
                '{' if self.braces() => {
                    self.out.braces = true;
                    self.out.expands |= self.dialect != Dialect::Sh;
                }
                _ => {}
            }
            self.out.text.push(c);
            self.at += 1;
        }
    }

    fn single(&mut self) {
        self.out.quoted = true;
        while let Some(c) = self.next() {
            if c == '\'' {
                return;
            }
            self.out.text.push(c);
        }
    }

    fn posix_double(&mut self) {
        self.out.quoted = true;
        while let Some(c) = self.peek(0) {
            match c {
                '"' => {
                    self.at += 1;
                    return;
                }
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(c @ ('$' | '`' | '"' | '\\')) => self.out.text.push(c),
                        Some(c) => self.out.text.extend(['\\', c]),
                        None => self.out.text.push('\\'),
                    }
                }
                '$' if self.dollar() => {}
                '`' => self.expansion(Some(('`', '`'))),
                _ => {
                    self.out.text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    /// Reads the inside of `$'...'`, with the escapes that bash and zsh share.
    fn ansi(&mut self) {
        self.out.quoted = true;
        while let Some(c) = self.next() {
            match c {
                '\'' => return,
                '\\' => match self.next() {
                    Some('n') => self.out.text.push('\n'),
                    Some('t') => self.out.text.push('\t'),
                    Some('r') => self.out.text.push('\r'),
                    Some('a') => self.out.text.push('\u{7}'),
                    Some('b') => self.out.text.push('\u{8}'),
                    Some('f') => self.out.text.push('\u{c}'),
                    Some('v') => self.out.text.push('\u{b}'),
                    Some('e' | 'E') => self.out.text.push('\u{1b}'),
                    Some('x') => self.code(16, 2),
                    Some('u') => self.code(16, 4),
                    Some('U') => self.code(16, 8),
                    Some('0'..='7') => {
                        self.at -= 1;
                        self.code(8, 3);
                    }
                    Some(c) => self.out.text.push(c),
                    None => self.out.text.push('\\'),
                },
                _ => self.out.text.push(c),
            }
        }
    }

    /// Reads up to `most` digits as the code of a character.
    fn code(&mut self, radix: u32, most: usize) {
        let mut code = 0u32;
        for _ in 0..most {
            let Some(digit) = self.peek(0).and_then(|c| c.to_digit(radix)) else { break };
            code = code.saturating_mul(radix).saturating_add(digit);
            self.at += 1;
        }
        self.out.text.extend(char::from_u32(code).filter(|c| *c != '\0'));
    }

    fn fish(&mut self) {
        if self.peek(0) == Some('~') {
            self.out.expands = true;
        }
        while let Some(c) = self.peek(0) {
            match c {
                '\\' => {
                    self.at += 1;
                    self.out.quoted = true;
                    match self.next() {
                        Some('\n') => {}
                        Some('n') => self.out.text.push('\n'),
                        Some('t') => self.out.text.push('\t'),
                        Some('r') => self.out.text.push('\r'),
                        Some('e') => self.out.text.push('\u{1b}'),
                        Some('x' | 'X') => self.code(16, 2),
                        Some('u') => self.code(16, 4),
                        Some('U') => self.code(16, 8),
                        Some(c) => self.out.text.push(c),
                        None => self.out.text.push('\\'),
                    }
                }
                '\'' => {
                    self.at += 1;
                    self.fish_quoted('\'');
                }
                '"' => {
                    self.at += 1;
                    self.fish_quoted('"');
                }
                '$' if self.dollar() => {}
                '(' => self.expansion(Some(('(', ')'))),
                _ => {
                    self.out.glob |= matches!(c, '*' | '?');
                    if c == '{' && self.braces() {
                        self.out.braces = true;
                        self.out.expands = true;
                    }
                    self.out.text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    fn fish_quoted(&mut self, quote: char) {
        self.out.quoted = true;
        while let Some(c) = self.peek(0) {
            match c {
                c if c == quote => {
                    self.at += 1;
                    return;
                }
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some(c) if c == quote || c == '\\' || quote == '"' && c == '$' => self.out.text.push(c),
                        Some('\n') => {}
                        Some(c) => self.out.text.extend(['\\', c]),
                        None => self.out.text.push('\\'),
                    }
                }
                '$' if quote == '"' && self.dollar() => {}
                _ => {
                    self.out.text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    fn powershell(&mut self) {
        while let Some(c) = self.peek(0) {
            match c {
                '`' => {
                    self.at += 1;
                    self.out.quoted = true;
                    self.powershell_escape();
                }
                '\'' => {
                    self.at += 1;
                    self.out.quoted = true;
                    while let Some(c) = self.next() {
                        if is_single_quote(c) {
                            if !self.peek(0).is_some_and(is_single_quote) {
                                break;
                            }
                            self.at += 1;
                        }
                        self.out.text.push(c);
                    }
                }
                '"' => {
                    self.at += 1;
                    self.out.quoted = true;
                    self.powershell_double();
                }
                '$' if self.dollar() => {}
                '(' | '@' if matches!((c, self.peek(1)), ('(', _) | ('@', Some('(' | '{'))) => {
                    self.out.expands = true;
                    self.out.text.push(c);
                    self.at += 1;
                }
                _ => {
                    self.out.glob |= matches!(c, '*' | '?');
                    self.out.text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    fn powershell_escape(&mut self) {
        match self.next() {
            Some('n') => self.out.text.push('\n'),
            Some('t') => self.out.text.push('\t'),
            Some('r') => self.out.text.push('\r'),
            Some('0' | '\n') | None => {}
            Some(c) => self.out.text.push(c),
        }
    }

    fn powershell_double(&mut self) {
        while let Some(c) = self.peek(0) {
            match c {
                '"' if self.peek(1) == Some('"') => {
                    self.out.text.push('"');
                    self.at += 2;
                }
                '"' => {
                    self.at += 1;
                    return;
                }
                '`' => {
                    self.at += 1;
                    self.powershell_escape();
                }
                '$' if self.dollar() => {}
                _ => {
                    self.out.text.push(c);
                    self.at += 1;
                }
            }
        }
    }
}

/// True for single quotes; PowerShell accepts typographic ones.
fn is_single_quote(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}')
}

/// Quotes `word` so that the shell reads it as exactly one argument. Plain words are returned unchanged.
///
/// ```
/// use caro_shell::{Dialect, quote};
/// assert_eq!(quote("it's", Dialect::Bash), r"'it'\''s'");
/// assert_eq!(quote("it's", Dialect::PowerShell), "'it''s'");
/// assert_eq!(quote("notes.txt", Dialect::Fish), "notes.txt");
/// ```
pub fn quote(word: &str, dialect: Dialect) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_+:./-".contains(c) || c == '=' && word.starts_with('-');
    // to PowerShell, a number or a lone dash is an expression or a parameter
    let bare = !word.is_empty()
        && word.chars().all(plain)
        && (dialect != Dialect::PowerShell || word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/'));
    if bare {
        return word.to_owned();
    }
    let mut out = String::with_capacity(word.len() + 2);
    out.push('\'');
    for c in word.chars() {
        match dialect {
            Dialect::Bash | Dialect::Zsh | Dialect::Sh if c == '\'' => out.push_str(r"'\''"),
            Dialect::Fish if c == '\'' || c == '\\' => out.extend(['\\', c]),
            Dialect::PowerShell if is_single_quote(c) => out.extend([c, c]),
            _ => out.push(c),
        }
    }
    out.push('\'');
    out
}
