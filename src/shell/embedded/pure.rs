//! Decides whether a program in an argument (`python3 -c`, `perl -ne`, `node -e`) only computes and prints. This is
//! an allowlist: every name that is called or looked up must be known to have no side effects, so a program that is
//! not understood is not pure. None of these languages is parsed, only names, string literals, patterns and numbers
//! are distinguished.

mod names;

use super::code::{actions, string_literal};
use names::{ATTRIBUTES, MODULES, NEVER, WHOLE, WORDS};

/// A language of one-line programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScriptLanguage {
    Python,
    Perl,
    Ruby,
    Php,
    Js,
    Lua,
}

impl ScriptLanguage {
    /// True if the word after the option is a program.
    pub fn takes_code(self, option: &str) -> bool {
        let ends = |letters: &[char]| option.starts_with('-') && !option.starts_with("--") && option.ends_with(letters);
        match self {
            Self::Python => ends(&['c']),
            Self::Perl => ends(&['e', 'E']),
            Self::Ruby | Self::Lua => ends(&['e']),
            Self::Php => matches!(option, "-r" | "--run"),
            Self::Js => matches!(option, "-e" | "-p" | "-pe" | "--eval" | "--print"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A name, with its sigil if it has one.
    Name(String),
    Text(String),
    Number(String),
    /// A regular expression, or the content of a quoting operator.
    Pattern,
    Mark(char),
}

/// Most bytes of a program that is examined.
const MAX_PROGRAM: usize = 4000;
/// Most digits of a number: repeating or counting to a larger one exhausts memory or time.
const MAX_DIGITS: usize = 7;

/// Returns the functions of a language that compute or print.
fn functions(language: ScriptLanguage) -> &'static str {
    match language {
        ScriptLanguage::Python => names::PYTHON,
        ScriptLanguage::Perl => names::PERL,
        ScriptLanguage::Ruby => names::RUBY,
        ScriptLanguage::Php => names::PHP,
        ScriptLanguage::Js => names::JS,
        ScriptLanguage::Lua => names::LUA,
    }
}

/// True if the name is in the list.
fn is_one_of(name: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|own| own == name)
}

/// True if the program only computes and prints, which requires that every name in it is known.
pub(crate) fn is_pure(text: &str, language: ScriptLanguage) -> bool {
    if text.len() > MAX_PROGRAM || !actions(text).is_empty() {
        return false;
    }
    let Some(tokens) = tokens(text, language) else { return false };
    is_bounded(&tokens) && (0..tokens.len()).all(|at| is_known(&tokens, at, language))
}

/// True if no number in it is so large that it could exhaust time or memory.
fn is_bounded(tokens: &[Token]) -> bool {
    let mut powers = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Number(digits)
                if digits.len() > MAX_DIGITS || digits.contains(['e', 'E']) && !digits.starts_with("0x") =>
            {
                return false;
            }
            Token::Mark('*') if tokens.get(at + 1) == Some(&Token::Mark('*')) => powers += 1,
            _ => {}
        }
    }
    // `"a" * 10 ** 9`, `9 ** 9 ** 9`
    let made = tokens.iter().any(|t| matches!(t, Token::Text(_) | Token::Mark('[')));
    let small = tokens.iter().all(|t| !matches!(t, Token::Number(digits) if digits.len() > 4));
    let loops = ["while", "until", "loop", "repeat", "def", "sub", "function", "cycle"];
    let endless = tokens.iter().any(|t| is_name(t, &loops));
    // `while True`, `while (1)`, `loop {`
    let always = tokens.iter().enumerate().any(|(at, t)| {
        let test = tokens[at + 1..].iter().find(|t| **t != Token::Mark('('));
        is_name(t, &["while", "until"])
            && test.is_some_and(|t| {
                matches!(t, Token::Number(_) | Token::Text(_)) || is_name(t, &["True", "true", "False", "false", "not"])
            })
            || is_name(t, &["loop", "cycle"])
            || is_name(t, &["for"]) && matches!(tokens[at + 1..], [Token::Mark('('), Token::Mark(';'), ..])
    });
    if always {
        return false;
    }
    powers == 0 || powers == 1 && !made && small && !endless
}

fn is_name(token: &Token, names: &[&str]) -> bool {
    matches!(token, Token::Name(name) if names.contains(&name.as_str()))
}

/// True for Python's `open` of a file of this folder, by a literal name and in a mode that only reads. A file
/// elsewhere may be a key, and it is not tracked here where its content goes.
fn opens_to_read(tokens: &[Token]) -> bool {
    let [Token::Name(open), Token::Mark('('), Token::Text(path), rest @ ..] = tokens else { return false };
    let closed = rest.iter().position(|t| *t == Token::Mark(')')).unwrap_or(rest.len());
    let is_allowed = |token: &Token| match token {
        Token::Text(text) => ["r", "rb", "rt", "utf-8", "utf8", "latin-1", "ascii", ""].contains(&text.as_str()),
        Token::Name(name) => ["encoding", "newline", "errors", "mode"].contains(&name.as_str()),
        Token::Mark(mark) => [',', '='].contains(mark),
        Token::Number(_) | Token::Pattern => false,
    };
    open == "open"
        && !path.starts_with(['/', '~', '.'])
        && !path.contains("..")
        && rest[..closed].iter().all(is_allowed)
}

/// True if the token is no name, or a known one.
fn is_known(tokens: &[Token], at: usize, language: ScriptLanguage) -> bool {
    let before = |by: usize| at.checked_sub(by).and_then(|at| tokens.get(at));
    if language == ScriptLanguage::Python && before(1) != Some(&Token::Mark('.')) && opens_to_read(&tokens[at..]) {
        return true;
    }
    let after = tokens.get(at + 1);
    let Token::Name(name) = &tokens[at] else {
        return match &tokens[at] {
            // a subscript may be the name of anything: in JavaScript, only numbers are allowed
            Token::Mark('[') if language == ScriptLanguage::Js && is_lookup(before(1)) => {
                matches!(after, Some(Token::Number(_))) && tokens.get(at + 2) == Some(&Token::Mark(']'))
            }
            // a called expression must be a name: `x[0](...)` and `$f(...)` call what is stored there
            Token::Mark('(') => match before(1) {
                Some(Token::Mark(']')) => false,
                Some(Token::Mark(')')) => !matches!(language, ScriptLanguage::Php | ScriptLanguage::Js),
                Some(Token::Text(_)) => language != ScriptLanguage::Php,
                before => language != ScriptLanguage::Php || !is_variable(before),
            },
            // a computed key
            Token::Mark(']') => language != ScriptLanguage::Js || after != Some(&Token::Mark(':')),
            Token::Mark('*') => {
                let is_import = before(1).is_some_and(|t| is_name(t, &["import"]));
                let is_glob = language == ScriptLanguage::Perl && after == Some(&Token::Mark('{'));
                !is_import && !is_glob
            }
            Token::Mark('&') if matches!(language, ScriptLanguage::Perl | ScriptLanguage::Ruby) => {
                before(1) == Some(&Token::Mark('&')) || after == Some(&Token::Mark('&'))
            }
            Token::Mark('`' | '#' | '\\' | '$' | '@') => false,
            Token::Mark('>') if before(1) == Some(&Token::Mark('-')) && language == ScriptLanguage::Perl => {
                matches!(after, Some(Token::Mark('[' | '{')))
            }
            // a file handle of that name, or the output of a command
            Token::Mark('<')
                if language == ScriptLanguage::Perl && !matches!(after, Some(Token::Mark('=' | '<' | '>'))) =>
            {
                !matches!(after, Some(Token::Name(name)) if name.starts_with('$'))
                    || matches!(before(1), Some(Token::Name(_) | Token::Number(_)))
            }
            Token::Mark('<') => {
                after != Some(&Token::Mark('<')) || matches!(tokens.get(at + 2), Some(Token::Number(_)))
            }
            _ => true,
        };
    };
    let name = name.as_str();
    let bare = name.trim_start_matches(['$', '@', '%', ':']);
    if bare.starts_with("__") && !matches!(bare, "__version__" | "__file__" | "__name__") {
        return false;
    }
    if is_access(tokens, at, language) {
        // the module search path may be printed, but not changed
        if language == ScriptLanguage::Python && chain(tokens, at) == "sys.path" {
            let shows = at >= 4
                && tokens[at - 3] == Token::Mark('(')
                && is_name(&tokens[at - 4], &["print", "pprint", "len", "join"]);
            return shows && after == Some(&Token::Mark(')'));
        }
        // `https.get`: modules are available by their names
        if language == ScriptLanguage::Js && bare == "get" {
            return false;
        }
        return is_one_of(bare, ATTRIBUTES) || is_one_of(&chain(tokens, at), WHOLE);
    }
    // `print(x, file=sys.stderr)`
    let assigned = after == Some(&Token::Mark('=')) && !matches!(tokens.get(at + 2), Some(Token::Mark('=' | '>')));
    if language == ScriptLanguage::Python && assigned && matches!(before(1), Some(Token::Mark(',' | '('))) {
        return true;
    }
    if is_one_of(bare, NEVER) && !name.starts_with(['$', '@']) && !is_one_of(name, functions(language)) {
        return false;
    }
    // `<>` reads the files of this list, and such a file may be a command
    if language == ScriptLanguage::Perl && bare == "ARGV" {
        return false;
    }
    if language == ScriptLanguage::Python && is_from_import(tokens, at) {
        return is_one_of(name, functions(language)) || is_one_of(name, ATTRIBUTES);
    }
    let reach = ["sys", "os", "io", "shutil", "socket", "urllib", "ssl", "sqlite3", "site", "locale", "process"];
    let imported = matches!(before(1), Some(t) if is_name(t, &["import", "from"]))
        || before(1) == Some(&Token::Mark(',')) && import_of(tokens, at);
    if imported && language == ScriptLanguage::Python {
        let whole = matches!(before(1), Some(t) if is_name(t, &["from"]));
        let renamed = after.is_some_and(|t| is_name(t, &["as"]));
        return is_one_of(name, MODULES) || reach.contains(&name) && !whole && !renamed && is_plain_import(tokens, at);
    }
    if reach.contains(&name) && matches!(language, ScriptLanguage::Python | ScriptLanguage::Js | ScriptLanguage::Lua) {
        let named = after == Some(&Token::Mark('.')) && matches!(tokens.get(at + 2), Some(Token::Name(_)));
        return named
            && WHOLE.split_ascii_whitespace().any(|whole| whole.starts_with(&format!("{}.", chain(tokens, at))));
    }
    // `do FILE` runs the file
    if name == "do" && language == ScriptLanguage::Perl {
        return after == Some(&Token::Mark('{'));
    }
    if matches!(name, "import" | "from") {
        return language == ScriptLanguage::Python;
    }
    if name == "require" && matches!(language, ScriptLanguage::Ruby | ScriptLanguage::Js) {
        let module = tokens.get(at + if language == ScriptLanguage::Js { 2 } else { 1 });
        let plain =
            ["json", "date", "time", "set", "digest", "securerandom", "os", "node:os", "path", "util", "bigdecimal"];
        // `require("os").hostname()`: the method is checked by its name
        return matches!(module, Some(Token::Text(module)) if plain.contains(&module.as_str()) || language == ScriptLanguage::Js && module.starts_with("./") && module.ends_with(".json"));
    }
    if is_one_of(name, WORDS)
        || is_one_of(name, functions(language))
        || is_one_of(name, MODULES) && language == ScriptLanguage::Python
    {
        return true;
    }
    if name.starts_with(['$', '@', '%', ':']) {
        // a symbol can be a method that is called later
        return !name.starts_with(':') || is_one_of(bare, ATTRIBUTES) || is_key(tokens, at);
    }
    if is_key(tokens, at) {
        return true;
    }
    let called = matches!(after, Some(Token::Mark('(' | '`')));
    match language {
        // an unbound name is an error in these languages
        ScriptLanguage::Python | ScriptLanguage::Js | ScriptLanguage::Lua => !called || is_bound(tokens, name),
        // a bare name is a call in these languages
        ScriptLanguage::Perl | ScriptLanguage::Php => false,
        ScriptLanguage::Ruby => is_bound(tokens, name),
    }
}

fn is_variable(token: Option<&Token>) -> bool {
    matches!(token, Some(Token::Name(name)) if name.starts_with('$'))
}

/// True if `[` after the token is a subscript.
fn is_lookup(before: Option<&Token>) -> bool {
    match before {
        Some(Token::Name(name)) => !is_one_of(name, WORDS),
        Some(Token::Text(_) | Token::Mark(')' | ']' | '}')) => true,
        _ => false,
    }
}

/// True for a name that is looked up in the expression before it.
fn is_access(tokens: &[Token], at: usize, language: ScriptLanguage) -> bool {
    let mark = |by: usize| at.checked_sub(by).and_then(|at| tokens.get(at));
    match (mark(2), mark(1)) {
        // a range: `1..n`
        (Some(Token::Mark('.')), Some(Token::Mark('.'))) => false,
        (_, Some(Token::Mark('.'))) => !matches!(language, ScriptLanguage::Perl | ScriptLanguage::Php),
        (Some(Token::Mark(':')), Some(Token::Mark(':'))) | (Some(Token::Mark('-')), Some(Token::Mark('>'))) => true,
        (_, Some(Token::Mark(':'))) => language == ScriptLanguage::Lua,
        _ => false,
    }
}

/// Returns a name with its qualifiers: `os.path.join`.
fn chain(tokens: &[Token], at: usize) -> String {
    let mut parts = Vec::new();
    let mut at = at;
    while let Some(Token::Name(name)) = tokens.get(at) {
        parts.push(name.as_str());
        if at < 2 || tokens[at - 1] != Token::Mark('.') {
            break;
        }
        at -= 2;
    }
    // `require("os").hostname`
    if let (Some(Token::Mark(')')), Some(Token::Text(module))) =
        (tokens.get(at), at.checked_sub(1).and_then(|i| tokens.get(i)))
    {
        parts.push(module.trim_start_matches("node:"));
    }
    parts.reverse();
    parts.join(".")
}

/// True if the name is in a list after `import`, without a `from` before it.
fn import_of(tokens: &[Token], at: usize) -> bool {
    let list = |t: &&Token| matches!(t, Token::Name(_) | Token::Mark(',' | '.'));
    let start = tokens[..at].iter().rev().take_while(list).position(|t| is_name(t, &["import"]));
    start.is_some() && is_plain_import(tokens, at)
}

/// True for a name that is imported by `from MODULE import`.
fn is_from_import(tokens: &[Token], at: usize) -> bool {
    let list = |t: &&Token| matches!(t, Token::Name(_) | Token::Mark(',' | '.' | '('));
    let behind: Vec<&Token> = tokens[..at].iter().rev().take_while(list).collect();
    let import = behind.iter().position(|t| is_name(t, &["import"]));
    import.is_some_and(|import| behind[import..].iter().any(|t| is_name(t, &["from"])))
}

/// True if the import that contains the name is no `from ... import`.
fn is_plain_import(tokens: &[Token], at: usize) -> bool {
    let list = |t: &&Token| matches!(t, Token::Name(_) | Token::Mark(',' | '.'));
    let behind: Vec<&Token> = tokens[..at].iter().rev().take_while(list).collect();
    let import = behind.iter().position(|t| is_name(t, &["import"]));
    import.is_some_and(|import| !behind[import..].iter().any(|t| is_name(t, &["from"])))
}

/// True for a name that is the key of a map or the name of an argument.
fn is_key(tokens: &[Token], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| tokens.get(at));
    let (after, then) = (tokens.get(at + 1), tokens.get(at + 2));
    let arrow = after == Some(&Token::Mark('=')) && then == Some(&Token::Mark('>'));
    let named = matches!(before, Some(Token::Mark('{' | ',' | '(')))
        && after == Some(&Token::Mark(':'))
        && then != Some(&Token::Mark(':'));
    let subscript = before == Some(&Token::Mark('{'))
        && after == Some(&Token::Mark('}'))
        && at >= 2
        && (is_variable(tokens.get(at - 2)) || tokens[at - 2] == Token::Mark('>'));
    arrow && !matches!(before, None | Some(Token::Mark(';'))) || named || subscript
}

/// True if the program itself assigns a value to the name.
fn is_bound(tokens: &[Token], name: &str) -> bool {
    let own = |at: usize| matches!(&tokens[at], Token::Name(n) if n == name);
    (0..tokens.len()).filter(|at| own(*at)).any(|at| {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let assigned = tokens.get(at + 1) == Some(&Token::Mark('=')) && tokens.get(at + 2) != Some(&Token::Mark('='));
        let introduced = before.is_some_and(|t| {
            is_name(t, &["for", "def", "lambda", "as", "function", "let", "const", "var", "local", "fn"])
        });
        let parameter = matches!(before, Some(Token::Mark('|' | ',')))
            && matches!(tokens.get(at + 1), Some(Token::Mark('|' | ',')));
        let arrow = tokens.get(at + 1) == Some(&Token::Mark('=')) && tokens.get(at + 2) == Some(&Token::Mark('>'));
        assigned || introduced || parameter || arrow
    })
}

/// Splits a program into tokens; `None` if a part is not understood.
fn tokens(text: &str, language: ScriptLanguage) -> Option<Vec<Token>> {
    let chars: Vec<char> = text.chars().collect();
    let mut found: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(c) = chars.get(at).copied() {
        let next = chars.get(at + 1).copied();
        match c {
            c if c.is_whitespace() => at += 1,
            '\'' | '"' | '`' if c != '`' || language == ScriptLanguage::Js => {
                let prefix = matches!(found.last(), Some(Token::Name(name)) if name.len() < 3 && name.to_lowercase().contains('f'));
                let adjacent = at > 0 && chars[at - 1].is_alphabetic();
                let opens = match language {
                    ScriptLanguage::Python if prefix && adjacent => Some("{"),
                    ScriptLanguage::Ruby if c == '"' => Some("#{"),
                    ScriptLanguage::Js if c == '`' => Some("${"),
                    _ => None,
                };
                let (inner, end) = string_literal(&chars, at)?;
                if matches!(language, ScriptLanguage::Perl | ScriptLanguage::Php) && c == '"' && !is_plain_text(&inner)
                {
                    return None;
                }
                if language == ScriptLanguage::Python
                    && adjacent
                    && matches!(found.last(), Some(Token::Name(name)) if name.len() < 3)
                {
                    found.pop();
                }
                for part in opens.map(|opens| interpolated_code(&inner, opens)).unwrap_or(Some(Vec::new()))? {
                    found.push(Token::Mark('('));
                    found.extend(tokens(&part, language)?);
                    found.push(Token::Mark(')'));
                    // separates the code, so that a bracket after it does not call it
                    found.push(Token::Mark(','));
                }
                found.push(Token::Text(inner));
                at = end;
            }
            '/' if takes_patterns(language) && is_operand(found.last()) => {
                at = skip_pattern(&chars, at, '/', language)?;
                found.push(Token::Pattern);
            }
            // `%x(...)` of Ruby runs a command
            '%' if language == ScriptLanguage::Ruby
                && !next.is_none_or(char::is_whitespace)
                && !(at > 0
                    && (chars[at - 1].is_alphanumeric() || matches!(chars[at - 1], ')' | ']' | '"' | '\''))) =>
            {
                return None;
            }
            '/' if next == Some('/') && language != ScriptLanguage::Python && language != ScriptLanguage::Perl => {
                return None;
            }
            '-' if next == Some('-') && language == ScriptLanguage::Lua => return None,
            c if c.is_ascii_digit() => {
                let mut end = at;
                while chars.get(end).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_')
                    || chars.get(end) == Some(&'.') && chars.get(end + 1).is_some_and(char::is_ascii_digit)
                {
                    end += 1;
                }
                let digits: String = chars[at..end].iter().filter(|c| **c != '_').collect();
                found.push(Token::Number(digits));
                at = end;
            }
            c if c.is_ascii_alphabetic() || c == '_' || is_sigil(c, next, language, found.last()) => {
                let mut end = at + 1;
                let is_special = matches!(c, '$' | '@')
                    && next.is_some_and(|n| matches!(n, '_' | '.' | '/' | ',' | ';' | '!' | '0'..='9' | '&'));
                if is_special || c == '@' && next == Some('@') {
                    end += 1;
                }
                while chars.get(end).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    end += 1;
                }
                if language == ScriptLanguage::Ruby
                    && matches!(chars.get(end), Some('?' | '!'))
                    && chars.get(end + 1) != Some(&'=')
                {
                    end += 1;
                }
                let name: String = chars[at..end].iter().collect();
                let name = name.trim_end_matches(['?', '!']).to_owned();
                at = end;
                if language == ScriptLanguage::Perl && !is_after_arrow(&found) {
                    let delimiter = chars.get(at).copied().filter(|d| {
                        !d.is_alphanumeric()
                            && !d.is_whitespace()
                            && !matches!(d, '=' | ',' | ';' | ')' | '}' | '-' | '.')
                    });
                    match (name.as_str(), delimiter) {
                        ("s" | "tr" | "y", Some(d)) if !"{([<#".contains(d) => {
                            let middle = pattern_end(&chars, at, d)?;
                            let first: String = chars[at + 1..middle].iter().collect();
                            if has_code(&first, language) {
                                return None;
                            }
                            at = skip_pattern(&chars, middle, d, language)?;
                            // with this flag the replacement is code
                            let flags = chars[..at].iter().rev().take_while(|c| c.is_ascii_alphabetic());
                            if flags.clone().any(|c| *c == 'e') {
                                return None;
                            }
                            found.push(Token::Pattern);
                            continue;
                        }
                        ("m" | "qr", Some(d)) if !"{([<#".contains(d) => {
                            at = skip_pattern(&chars, at, d, language)?;
                            found.push(Token::Pattern);
                            continue;
                        }
                        ("s" | "tr" | "y" | "m" | "qr" | "q" | "qq" | "qx", Some(_)) => return None,
                        _ => {}
                    }
                }
                found.push(Token::Name(name));
            }
            c if !c.is_ascii() => return None,
            c => {
                found.push(Token::Mark(c));
                at += 1;
            }
        }
    }
    Some(found)
}

fn takes_patterns(language: ScriptLanguage) -> bool {
    matches!(language, ScriptLanguage::Perl | ScriptLanguage::Ruby | ScriptLanguage::Js)
}

/// True if a name with a sigil begins at `c`.
fn is_sigil(c: char, next: Option<char>, language: ScriptLanguage, before: Option<&Token>) -> bool {
    let begins = next.is_some_and(|n| n.is_ascii_alphabetic() || n == '_');
    match (language, c) {
        (ScriptLanguage::Perl, '$') => {
            begins || next.is_some_and(|n| matches!(n, '.' | '/' | ',' | ';' | '!' | '0'..='9' | '&'))
        }
        (ScriptLanguage::Perl, '@') => begins,
        (ScriptLanguage::Perl, '%') => {
            begins && !matches!(before, Some(Token::Name(_) | Token::Number(_) | Token::Mark(')' | ']' | '}')))
        }
        (ScriptLanguage::Php, '$') | (ScriptLanguage::Js, '$') => begins,
        (ScriptLanguage::Ruby, '$') => begins || next.is_some_and(|n| matches!(n, '.' | '/' | ',' | '!' | '0'..='9')),
        (ScriptLanguage::Ruby, '@') => begins || next == Some('@'),
        (ScriptLanguage::Ruby, ':') => {
            begins && before != Some(&Token::Mark(':')) && !matches!(before, Some(Token::Name(_) | Token::Text(_)))
        }
        _ => false,
    }
}

fn is_after_arrow(found: &[Token]) -> bool {
    matches!(found, [.., Token::Mark('-'), Token::Mark('>')]) || matches!(found, [.., Token::Mark('{')])
}

/// True if a slash after the token begins a pattern.
fn is_operand(before: Option<&Token>) -> bool {
    match before {
        None => true,
        Some(Token::Mark(c)) => !matches!(c, ')' | ']' | '}'),
        Some(Token::Name(name)) => [
            "if", "unless", "and", "or", "not", "split", "grep", "print", "return", "when", "while", "until", "puts",
            "p",
        ]
        .contains(&name.as_str()),
        Some(Token::Text(_) | Token::Number(_) | Token::Pattern) => false,
    }
}

/// Returns the end of a pattern, including its flags; `None` if it may contain code.
fn skip_pattern(chars: &[char], at: usize, delimiter: char, language: ScriptLanguage) -> Option<usize> {
    let mut end = pattern_end(chars, at, delimiter)?;
    let inner: String = chars[at + 1..end].iter().collect();
    if has_code(&inner, language) {
        return None;
    }
    end += 1;
    while chars.get(end).is_some_and(char::is_ascii_alphabetic) {
        end += 1;
    }
    Some(end)
}

/// True if the pattern may contain code.
fn has_code(pattern: &str, language: ScriptLanguage) -> bool {
    let holds = |forms: &[&str]| forms.iter().any(|form| pattern.contains(form));
    match language {
        ScriptLanguage::Ruby => holds(&["#{"]),
        ScriptLanguage::Perl => holds(&["(?{", "(??{", "@{", "${"]) || !is_plain_text(pattern),
        _ => false,
    }
}

/// Returns the index of the next delimiter.
fn pattern_end(chars: &[char], at: usize, delimiter: char) -> Option<usize> {
    let mut end = at + 1;
    let mut class = false;
    while let Some(c) = chars.get(end).copied() {
        match c {
            '\\' => end += 1,
            '[' => class = true,
            ']' => class = false,
            c if c == delimiter && !class => return Some(end),
            _ => {}
        }
        end += 1;
    }
    None
}

/// True for a string of Perl or PHP that interpolates nothing but variables.
fn is_plain_text(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    !text.contains("@{")
        && !text.contains("${")
        && !text.contains("{$")
        && (0..chars.len()).all(|at| {
            // `$h{...}`, `$a[...]`: the subscript is code
            if !matches!(chars[at], '$' | '@') {
                return true;
            }
            let end = (at + 1..chars.len())
                .find(|i| !(chars[*i].is_ascii_alphanumeric() || chars[*i] == '_'))
                .unwrap_or(chars.len());
            let open = chars.get(end).copied();
            let close = (end + 1..chars.len()).find(|i| matches!(chars[*i], '}' | ']')).unwrap_or(chars.len());
            end == at + 1
                || !matches!(open, Some('{' | '['))
                || chars[end + 1..close.max(end + 1)]
                    .iter()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-'))
        })
}

/// Returns the interpolated code of a string.
fn interpolated_code(text: &str, opens: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text.replace("{{", "").replace("}}", "");
    if opens != "{" {
        rest = text.to_owned();
    }
    while let Some(start) = rest.find(opens) {
        let inner = rest[start + opens.len()..].to_owned();
        let mut depth = 0usize;
        let close = inner.char_indices().find_map(|(at, c)| match c {
            '{' => {
                depth += 1;
                None
            }
            '}' if depth == 0 => Some(at),
            '}' => {
                depth -= 1;
                None
            }
            _ => None,
        })?;
        let code = &inner[..close];
        // Python's format specification: `{x:>5}`, `{x!r}`
        let code = if opens == "{" { code.split([':', '!']).next().unwrap_or(code) } else { code };
        found.push(code.to_owned());
        rest = inner[close + 1..].to_owned();
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::ScriptLanguage::{Js, Lua, Perl, Php, Python, Ruby};
    use super::{ScriptLanguage, is_pure};

    const PURE: &[(ScriptLanguage, &str)] = &[
        (Python, "print(1)"),
        (Python, "print(2**64)"),
        (Python, "import json,sys; print(json.load(sys.stdin)[\"name\"])"),
        (Python, "import sys, platform; print(platform.python_version(), sys.executable)"),
        (Python, "from datetime import datetime; print(datetime.utcnow().isoformat())"),
        (Python, "import sys; [print(l.rstrip().upper()) for l in sys.stdin]"),
        (Python, "x = [i*i for i in range(10)]; print(f'{sum(x):>5}')"),
        (Python, "import torch; print(torch.cuda.is_available())"),
        (Python, "print('os.system(x)')"),
        (Python, "import sys; print(sys.path)"),
        (Python, "import sys; print('\\n'.join(sys.path))"),
        (Perl, "print join(\",\", map { $_ * 2 } 1..5), \"\\n\""),
        (Python, "print(open('f').read())"),
        (Python, "import csv; print(sum(1 for _ in csv.reader(open('a.csv', newline=''))))"),
        (Python, "import json; print(json.load(open('k.json', encoding='utf-8')))"),
        (Perl, "print $F[1]"),
        (Perl, "print if /ERROR/ && !/timeout/"),
        (Perl, "s/foo/bar/g; print"),
        (Perl, "$s += $_; END { print $s }"),
        (Perl, "print \"$F[0] $h{x}\\n\""),
        (Ruby, "puts (1..10).sum"),
        (Ruby, "puts [3,1,2].sort.map { |x| x * 2 }.join(\",\")"),
        (Ruby, "puts \"#{1 + 1} is two\""),
        (Ruby, "puts RUBY_VERSION"),
        (Php, "echo date(\"c\");"),
        (Php, "echo PHP_VERSION;"),
        (Js, "console.log([1,2,3].map(x => x*x))"),
        (Js, "Math.max(3, 9)"),
        (Js, "process.version"),
        (Js, "console.log(require(\"os\").hostname())"),
        (Js, "console.log(`${1 + 1}`)"),
        (Lua, "print(math.pi)"),
        (Lua, "print(os.date(\"%Y\"))"),
    ];

    const IMPURE: &[(ScriptLanguage, &str)] = &[
        (Python, "import os; os.system('x')"),
        (Python, "import os; o = os; o.remove('x')"),
        (Python, "from os import remove as print; print('x')"),
        (Python, "from os import remove; remove('x')"),
        (Python, "import os as json; json.remove('x')"),
        (Python, "f = eval; f('x')"),
        (Python, "list(map(exec, ['x']))"),
        (Python, "open('f', 'w')"),
        (Python, "open('f', mode='r+')"),
        (Python, "print(open('/etc/shadow').read())"),
        (Python, "print(open('../.env').read())"),
        (Python, "print(open(name).read())"),
        (Python, "from os import system as open; open('x')"),
        (Python, "import os; open = os.system; open('x')"),
        (Python, "__import__('os').system('x')"),
        (Python, "().__class__.__base__.__subclasses__()"),
        (Python, "import sys; sys.modules['os'].system('x')"),
        (Python, "import random; random._os.system('x')"),
        (Python, "from random import _os; _os.system('x')"),
        (Python, "print(f\"{__import__('os').system('x')}\")"),
        (Python, "x = 'a' * 10**10"),
        (Python, "x = 'a' * 10000000000"),
        (Python, "9**9**9"),
        (Python, "import shutil; shutil.rmtree('x')"),
        (Python, "import subprocess; subprocess.run(['ls'])"),
        (Python, "import frob; frob.go()"),
        (Python, "from frob import go; go()"),
        (Python, "import urllib.request; urllib.request.urlopen('http://x')"),
        (Python, "import operator, os; operator.attrgetter('system')(os)('x')"),
        (Python, "getattr(__builtins__, 'ev' + 'al')('1')"),
        (Python, "import pathlib; pathlib.Path('x').unlink()"),
        (Python, "frob(1)"),
        (Perl, "system('x')"),
        (Perl, "print `ls`"),
        (Perl, "s/x/system('y')/e"),
        (Perl, "print \"@{[ system('x') ]}\""),
        (Perl, "print \"$h{system('x')}\""),
        (Perl, "/(?{ system('x') })/"),
        (Perl, "unlink glob('*')"),
        (Perl, "open(F, '>f')"),
        (Perl, "print qx{ls}"),
        (Perl, "$f = 'x'; &$f()"),
        (Perl, "$x->$y()"),
        (Perl, "frob"),
        (Perl, "do './x'"),
        (Perl, "@ARGV = (\"ls|\"); print <>"),
        (Perl, "s/$h{system('x')}/y/"),
        (Perl, "*{\"main::x\"}"),
        (Php, "('sys'.'tem')('x');"),
        (Php, "'system'('x');"),
        (Js, "let {['con'+'structor']:c} = ()=>1; d = c; d('x')()"),
        (Python, "from dataclasses import _create_fn; f = _create_fn; f('x')"),
        (Python, "from os import *"),
        (Python, "from random import *; _os"),
        (Ruby, "puts %x(\"ls\")"),
        (Perl, "rename $_, \"$_.old\""),
        (Ruby, "`ls`"),
        (Ruby, "puts \"#{`ls`}\""),
        (Ruby, "puts %x(ls)"),
        (Ruby, "system 'ls'"),
        (Ruby, "exec 'ls'"),
        (Ruby, "File.delete('x')"),
        (Ruby, "Kernel.send(:system, 'x')"),
        (Ruby, "[1, 'x'].inject(:instance_eval)"),
        (Ruby, "open('|ls').read"),
        (Ruby, "frob"),
        (Php, "$f = 'system'; $f('x');"),
        (Php, "array_map('system', ['x']);"),
        (Php, "unlink('x');"),
        (Php, "echo `ls`;"),
        (Php, "file_put_contents('f', 'x');"),
        (Js, "require('fs').unlinkSync('x')"),
        (Js, "fs.unlinkSync('x')"),
        (Js, "require('child_process').execSync('x')"),
        (Js, "[]['constructor']['constructor']('x')()"),
        (Js, "k = 'con' + 'structor'; [][k][k]('x')()"),
        (Js, "Function('x')()"),
        (Js, "process.kill(1)"),
        (Js, "fetch('http://x')"),
        (Js, "https.get('http://x')"),
        (Python, "from pathlib import Path; Path('x').replace('y')"),
        (Python, "import yaml; yaml.load('x')"),
        (Python, "import torch; torch.load('x')"),
        (Js, "require(x)"),
        (Js, "console.log(`${require('fs').rmSync('x')}`)"),
        (Js, "import('fs')"),
        (Js, "import('./x.mjs')"),
        (Python, "while 1: pass"),
        (Python, "import sys; sys.path.append('/tmp'); import json"),
        (Python, "import sys; p = sys.path; p.append('/tmp'); import json"),
        (Js, "for(;;);"),
        (Ruby, "loop { 1 }"),
        (Lua, "os.execute('x')"),
        (Lua, "local o = os; o.execute('x')"),
        (Lua, "os['execute']('x')"),
        (Lua, "io.open('f', 'w')"),
        (Lua, "load('x')()"),
        (Lua, "_G.os.remove('x')"),
    ];

    #[test]
    fn pure_programs_are_recognized() {
        let wrong = |list: &[(ScriptLanguage, &str)], pure: bool| -> Vec<String> {
            let held = list.iter().filter(|(language, text)| is_pure(text, *language) != pure);
            held.map(|(language, text)| format!("{language:?}: {text}")).collect()
        };
        assert_eq!(wrong(PURE, true), Vec::<String>::new(), "only compute");
        assert_eq!(wrong(IMPURE, false), Vec::<String>::new(), "may do more");
    }
}
