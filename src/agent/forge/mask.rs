//! A script with its comments left out, and with the inside of its texts left out too: what is in quotes does nothing.

use super::language::Language;

/// The two views of a script, line by line as it is, and its texts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Views {
    /// Without comments, and with nothing in quotes.
    pub code: String,
    /// Without comments.
    pub text: String,
    /// The texts in quotes, without those that only document the code.
    pub literals: Vec<String>,
}

struct Masker<'a> {
    rest: &'a str,
    language: Language,
    views: Views,
}

/// Divides a script.
pub fn views(script: &str, language: Language) -> Views {
    let mut masker = Masker { rest: script, language, views: Views::default() };
    while let Some(c) = masker.rest.chars().next() {
        let comments = match language {
            Language::JavaScript => ["//", "/*"].iter().find(|mark| masker.rest.starts_with(**mark)).copied(),
            // a `#` within a word is none in a shell
            _ => (c == '#' && masker.may_comment()).then_some("#"),
        };
        match (comments, c) {
            (Some("/*"), _) => masker.skip_to("*/"),
            (Some(_), _) => masker.skip_to("\n"),
            (None, '"' | '\'') => masker.quoted(c),
            (None, '`') if language == Language::JavaScript => masker.quoted(c),
            (None, '\\') => masker.take(2),
            _ => masker.take(1),
        }
    }
    masker.views
}

impl Masker<'_> {
    /// True if a `#` here begins a comment.
    fn may_comment(&self) -> bool {
        self.language != Language::Sh
            || self.views.text.chars().next_back().is_none_or(|c| c.is_whitespace() || c == ';')
    }

    /// Takes so many characters into both views.
    fn take(&mut self, count: usize) {
        let end = self.rest.char_indices().nth(count).map_or(self.rest.len(), |(at, _)| at);
        self.views.code.push_str(&self.rest[..end]);
        self.views.text.push_str(&self.rest[..end]);
        self.rest = &self.rest[end..];
    }

    /// Leaves out all up to this mark, which stays if it ends the line.
    fn skip_to(&mut self, mark: &str) {
        let end = self.rest.find(mark).map_or(self.rest.len(), |at| if mark == "\n" { at } else { at + mark.len() });
        let lines = self.rest[..end].matches('\n').count();
        self.views.code.push_str(&"\n".repeat(lines));
        self.views.text.push_str(&"\n".repeat(lines));
        self.rest = &self.rest[end..];
    }

    /// A text in quotes.
    fn quoted(&mut self, quote: char) {
        let triple = quote.to_string().repeat(3);
        let python = self.language == Language::Python;
        let mark = if python && self.rest.starts_with(&triple) { triple } else { quote.to_string() };
        let inside = &self.rest[mark.len()..];
        let end = self.closing(inside, &mark);
        let literal = &inside[..end];
        let whole = (mark.len() + end + mark.len()).min(self.rest.len());
        // what stands alone in its line documents the code
        let line = self.views.text.rsplit('\n').next().unwrap_or_default();
        let documents = python && line.trim().is_empty() && mark.len() == 3;
        // what is filled in is code, and in a shell's double quotes everything may be
        let filled = python && line.trim_end().ends_with(['f', 'F']) && ends_prefix(line)
            || self.language == Language::Sh && quote == '"'
            || quote == '`';
        let kept = if filled { literal.to_owned() } else { "\n".repeat(literal.matches('\n').count()) };
        self.views.code.push_str(&format!("{mark}{kept}{mark}"));
        if documents {
            self.views.text.push_str(&"\n".repeat(literal.matches('\n').count()));
        } else {
            self.views.text.push_str(&self.rest[..whole]);
            self.views.literals.push(unescaped(literal));
        }
        self.rest = &self.rest[whole..];
    }

    /// Where a text ends, in bytes of what comes behind its opening quote.
    fn closing(&self, inside: &str, mark: &str) -> usize {
        let raw = self.language == Language::Sh && mark == "'";
        let mut escaped = false;
        for (at, c) in inside.char_indices() {
            if !escaped && inside[at..].starts_with(mark) {
                return at;
            }
            // a text of Python that is not closed in its line is none
            if c == '\n' && mark.len() == 1 && self.language == Language::Python && !escaped {
                return at;
            }
            escaped = !escaped && c == '\\' && !raw;
        }
        inside.len()
    }
}

/// True if a line ends in the prefix of a text (`f`, `rf`), and not in a name that ends so.
fn ends_prefix(line: &str) -> bool {
    let word: String = line.chars().rev().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    word.len() <= 2
}

/// A text with what its commonest escapes stand for.
fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t").replace("\\'", "'").replace("\\\"", "\"").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_no_code_and_what_is_filled_in_is() {
        let of = |text: &str| views(text, Language::Python);
        assert_eq!(of("x = 'eval' # eval\ny").code, "x = '' \ny");
        assert_eq!(of("x = 'a\\'b' + \"c\"").literals, ["a'b", "c"]);
        assert!(of("x = f'{eval(y)}'").code.contains("eval(y)"));
        assert!(!of("def f():\n    \"\"\"eval\n    5 km\"\"\"\n").text.contains("eval"));
        assert!(of("def f():\n    \"\"\"5 km\"\"\"\n").literals.is_empty(), "it documents");
        assert_eq!(of("x = \"\"\"5 km\"\"\"").literals, ["5 km"]);
        assert_eq!(of("'#' + x").code, "'' + x");
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
