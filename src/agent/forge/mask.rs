//! Removes comments and the content of string literals from a script, so that a scan sees only code that is executed.

use super::language::Language;

/// Two views of a script with the same line numbers, and its string literals.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Views {
    /// The script without comments and without the content of string literals.
    pub code: String,
    /// The script without comments.
    pub text: String,
    /// The string literals, without docstrings.
    pub literals: Vec<String>,
}

struct Masker<'a> {
    rest: &'a str,
    language: Language,
    views: Views,
}

/// Creates the views of a script.
pub fn views(script: &str, language: Language) -> Views {
    let mut masker = Masker { rest: script, language, views: Views::default() };
    while let Some(c) = masker.rest.chars().next() {
        let comments = match language {
            Language::JavaScript => ["//", "/*"].iter().find(|mark| masker.rest.starts_with(**mark)).copied(),
            // in a shell a `#` within a word does not start a comment
            _ => (c == '#' && masker.may_comment()).then_some("#"),
        };
        match (comments, c) {
            (Some("/*"), _) => masker.skip_to("*/"),
            (Some(_), _) => masker.skip_to("\n"),
            (None, '"' | '\'') => masker.take_string(c),
            (None, '`') if language == Language::JavaScript => masker.take_string(c),
            (None, '\\') => masker.take(2),
            _ => masker.take(1),
        }
    }
    masker.views
}

impl Masker<'_> {
    /// True if a `#` at this place starts a comment.
    fn may_comment(&self) -> bool {
        self.language != Language::Sh
            || self.views.text.chars().next_back().is_none_or(|c| c.is_whitespace() || c == ';')
    }

    /// Copies `count` characters to both views.
    fn take(&mut self, count: usize) {
        let end = self.rest.char_indices().nth(count).map_or(self.rest.len(), |(at, _)| at);
        self.views.code.push_str(&self.rest[..end]);
        self.views.text.push_str(&self.rest[..end]);
        self.rest = &self.rest[end..];
    }

    /// Skips everything up to and including `mark`, but keeps line ends.
    fn skip_to(&mut self, mark: &str) {
        let end = self.rest.find(mark).map_or(self.rest.len(), |at| if mark == "\n" { at } else { at + mark.len() });
        let lines = self.rest[..end].matches('\n').count();
        self.views.code.push_str(&"\n".repeat(lines));
        self.views.text.push_str(&"\n".repeat(lines));
        self.rest = &self.rest[end..];
    }

    /// Reads a string literal.
    fn take_string(&mut self, quote: char) {
        let triple = quote.to_string().repeat(3);
        let python = self.language == Language::Python;
        let mark = if python && self.rest.starts_with(&triple) { triple } else { quote.to_string() };
        let inside = &self.rest[mark.len()..];
        let end = self.string_end(inside, &mark);
        let literal = &inside[..end];
        // a string of Python that its line leaves open has no closing quote
        let closing = if inside[end..].starts_with(&mark) { mark.len() } else { 0 };
        let whole = mark.len() + end + closing;
        // a triple-quoted string that starts its line is a docstring
        let line = self.views.text.rsplit('\n').next().unwrap_or_default();
        let is_docstring = python && line.trim().is_empty() && mark.len() == 3;
        // an f-string or template contains code, and so may any double-quoted string of a shell
        let has_code = python && line.trim_end().ends_with(['f', 'F']) && ends_prefix(line)
            || self.language == Language::Sh && quote == '"'
            || quote == '`';
        let kept = if has_code { literal.to_owned() } else { "\n".repeat(literal.matches('\n').count()) };
        self.views.code.push_str(&format!("{mark}{kept}{mark}"));
        if is_docstring {
            self.views.text.push_str(&"\n".repeat(literal.matches('\n').count()));
        } else {
            self.views.text.push_str(&self.rest[..whole]);
            self.views.literals.push(resolve_escapes(literal));
        }
        self.rest = &self.rest[whole..];
    }

    /// Returns the end of a string literal, in bytes after its opening quote.
    fn string_end(&self, inside: &str, mark: &str) -> usize {
        let raw = self.language == Language::Sh && mark == "'";
        let mut escaped = false;
        for (at, c) in inside.char_indices() {
            if !escaped && inside[at..].starts_with(mark) {
                return at;
            }
            // a string of Python must be closed on its line
            if c == '\n' && mark.len() == 1 && self.language == Language::Python && !escaped {
                return at;
            }
            escaped = !escaped && c == '\\' && !raw;
        }
        inside.len()
    }
}

/// True if a line ends in the prefix of a string literal (`f`, `rf`), and not in a longer name.
fn ends_prefix(line: &str) -> bool {
    let word: String = line.chars().rev().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    word.len() <= 2
}

/// Resolves the most common escape sequences.
fn resolve_escapes(text: &str) -> String {
    let mut resolved = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, chars.as_str().chars().next()) {
            ('\\', Some(escaped @ ('n' | 't' | '\'' | '"' | '\\'))) => {
                chars.next();
                resolved.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                });
            }
            _ => resolved.push(c),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_no_code_but_interpolations_are() {
        let of = |text: &str| views(text, Language::Python);
        assert_eq!(of("x = 'eval' # eval\ny").code, "x = '' \ny");
        assert_eq!(of("x = 'a\\'b' + \"c\"").literals, ["a'b", "c"]);
        assert!(of("x = f'{eval(y)}'").code.contains("eval(y)"));
        assert!(!of("def f():\n    \"\"\"eval\n    5 km\"\"\"\n").text.contains("eval"));
        assert!(of("def f():\n    \"\"\"5 km\"\"\"\n").literals.is_empty(), "it documents");
        assert_eq!(of("x = \"\"\"5 km\"\"\"").literals, ["5 km"]);
        assert_eq!(of("'#' + x").code, "'' + x");
        assert_eq!(of(r"'a\\nb\tc'").literals, ["a\\nb\tc"], "an escaped backslash escapes nothing");
        assert_eq!(of("x = 'a\ny").code.lines().count(), 2, "an open string ends with its line");
        let sh = |text: &str| views(text, Language::Sh);
        assert_eq!(sh("echo 'a & b' \"$(rm x)\" ${#x} # c").code, "echo '' \"$(rm x)\" ${#x} ");
        let js = |text: &str| views(text, Language::JavaScript);
        assert_eq!(js("a /* eval */ `${eval(x)}` // b").code, "a  `${eval(x)}` ");
        for odd in ["'", "\"\"\"", "\\", "f'", "x = 'a\nb'", "é'ü"] {
            let views = of(odd);
            assert!(views.code.len() <= odd.len() + 3, "{views:?}");
        }
    }
}
