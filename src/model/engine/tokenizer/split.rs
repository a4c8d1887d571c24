//! Pre-tokenization: splits text into pieces before merging, as each family of models does.
//!
//! The families publish regular expressions; these functions match the same language by hand, since compiling the
//! expressions' Unicode classes takes longer than tokenizing the text of a command line. The expressions are in the
//! comments, and tests compare with the `tokenizers` crate running them.

use std::sync::OnceLock;

/// A family's way to split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
    Qwen2,
    /// As [`Scheme::Qwen2`], with `\p{N}{1,3}`.
    Llama3,
    /// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    Gpt2,
    /// Each `\p{N}` alone, the text between them as [`Scheme::Gpt2`].
    Smollm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    Space,
    Other,
}

impl Scheme {
    /// Calls `f` with each piece, in order; the pieces joined are the text.
    pub fn split<'t>(self, text: &'t str, f: &mut dyn FnMut(&'t str)) {
        if self == Self::Smollm {
            let mut rest = text;
            while !rest.is_empty() {
                let words = prefix_len(rest, |c| class(c) != Class::Number);
                Self::Gpt2.split(&rest[..words], f);
                rest = &rest[words..];
                if let Some(number) = rest.chars().next() {
                    f(&rest[..number.len_utf8()]);
                    rest = &rest[number.len_utf8()..];
                }
            }
            return;
        }
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let len = match self {
                Self::Qwen2 => modern(rest, first, 1),
                Self::Llama3 => modern(rest, first, 3),
                Self::Gpt2 | Self::Smollm => classic(rest, first),
            };
            f(&rest[..len]);
            rest = &rest[len..];
        }
    }
}

/// Returns the length of the first piece of `text`, which begins with `first`, by the Qwen2 and Llama 3 expressions.
fn modern(text: &str, first: char, digits: usize) -> usize {
    if first == '\''
        && let Some(len) = contraction(&text[1..], true)
    {
        return 1 + len;
    }
    let width = first.len_utf8();
    let second = text[width..].chars().next();
    match class(first) {
        Class::Letter => return prefix_len(text, is_letter),
        Class::Number => {
            return text.chars().take(digits).take_while(|&c| class(c) == Class::Number).map(char::len_utf8).sum();
        }
        _ if !matches!(first, '\r' | '\n') && second.is_some_and(is_letter) => {
            return width + prefix_len(&text[width..], is_letter);
        }
        Class::Space if !(first == ' ' && second.is_some_and(is_other)) => return spaces(text, true),
        Class::Space | Class::Other => {}
    }
    let marks = width + prefix_len(&text[width..], is_other);
    marks + prefix_len(&text[marks..], |c| matches!(c, '\r' | '\n'))
}

/// Returns the length of the first piece of `text`, which begins with `first`, by the GPT-2 expression.
fn classic(text: &str, first: char) -> usize {
    if first == '\''
        && let Some(len) = contraction(&text[1..], false)
    {
        return 1 + len;
    }
    let lead = usize::from(first == ' ');
    match text[lead..].chars().next().map(class) {
        Some(kind) if kind != Class::Space => lead + prefix_len(&text[lead..], |c| class(c) == kind),
        _ => spaces(text, false),
    }
}

/// Returns the length of the white space at the beginning of `text` that becomes one piece: up to its last line end if
/// `lines` and there is one, else without its last character if a word follows, because that belongs to the word.
fn spaces(text: &str, lines: bool) -> usize {
    let whole = prefix_len(text, char::is_whitespace);
    if lines && let Some(last) = text[..whole].rfind(['\r', '\n']) {
        return last + 1;
    }
    if whole == text.len() {
        return whole;
    }
    match text[..whole].char_indices().next_back() {
        Some((last, _)) if last > 0 => last,
        _ => whole,
    }
}

/// Returns the length of the part of an English contraction after its apostrophe.
fn contraction(text: &str, any_case: bool) -> Option<usize> {
    let mut chars = text.chars();
    // U+017F, the long s, is an `s` without regard to case in Unicode and in the published expressions
    let fold = |c: char| match c {
        'ſ' if any_case => 's',
        c if any_case => c.to_ascii_lowercase(),
        c => c,
    };
    let first = chars.next()?;
    match (fold(first), chars.next().map(fold)) {
        ('s' | 't' | 'm' | 'd', _) => Some(first.len_utf8()),
        ('r' | 'v', Some('e')) | ('l', Some('l')) => Some(2),
        _ => None,
    }
}

/// Returns the number of bytes of the leading characters for which `is` is true.
fn prefix_len(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is(c)).unwrap_or(text.len())
}

fn is_letter(c: char) -> bool {
    class(c) == Class::Letter
}

fn is_other(c: char) -> bool {
    class(c) == Class::Other
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' => Class::Letter,
        '0'..='9' => Class::Number,
        c if c.is_whitespace() => Class::Space,
        c if c.is_ascii() => Class::Other,
        c if c.is_numeric() => Class::Number,
        // every letter is alphabetic, but not the reverse, so the table of the category decides
        c if c.is_alphabetic() && in_letters(c) => Class::Letter,
        _ => Class::Other,
    }
}

/// True for a character of Unicode's general category L, by the table of `regex`.
fn in_letters(c: char) -> bool {
    static LETTERS: OnceLock<Vec<(char, char)>> = OnceLock::new();
    let letters = LETTERS.get_or_init(|| {
        use regex_syntax::hir::{Class, HirKind};
        match regex_syntax::parse(r"\p{L}").map(|hir| hir.into_kind()) {
            Ok(HirKind::Class(Class::Unicode(class))) => class.ranges().iter().map(|r| (r.start(), r.end())).collect(),
            // not reachable: the pattern is a constant that a test parses
            _ => Vec::new(),
        }
    });
    let next = letters.partition_point(|&(start, _)| start <= c);
    next > 0 && c <= letters[next - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(scheme: Scheme, text: &str) -> Vec<&str> {
        let mut out = Vec::new();
        scheme.split(text, &mut |piece| out.push(piece));
        out
    }

    #[test]
    fn each_family_splits_in_its_own_way() {
        let text = "it'S 1234  don't\n\n x";
        assert_eq!(pieces(Scheme::Qwen2, text), ["it", "'S", " ", "1", "2", "3", "4", " ", " don", "'t", "\n\n", " x"]);
        assert_eq!(pieces(Scheme::Llama3, text), ["it", "'S", " ", "123", "4", " ", " don", "'t", "\n\n", " x"]);
        assert_eq!(pieces(Scheme::Gpt2, text), ["it", "'", "S", " 1234", " ", " don", "'t", "\n\n", " x"]);
        assert_eq!(
            pieces(Scheme::Smollm, text),
            ["it", "'", "S", " ", "1", "2", "3", "4", " ", " don", "'t", "\n\n", " x"]
        );
    }

    #[test]
    fn letters_are_a_category_and_not_the_alphabetic_property() {
        assert!(is_letter('é') && is_letter('漢') && is_letter('ª'));
        assert_eq!(class('\u{345}'), Class::Other, "alphabetic, but a combining mark");
        assert_eq!(class('Ⅷ'), Class::Number, "alphabetic, but a letter-like number");
        assert_eq!(class('\u{a0}'), Class::Space);
        assert_eq!(class('½'), Class::Number);
    }

    proptest::proptest! {
        #[test]
        fn pieces_joined_are_the_text(text in "\\PC*|[ \\r\\n\\t'a-z0-9.]*") {
            for scheme in [Scheme::Qwen2, Scheme::Llama3, Scheme::Gpt2, Scheme::Smollm] {
                let joined = pieces(scheme, &text);
                assert!(joined.iter().all(|p| !p.is_empty()));
                assert_eq!(joined.concat(), text);
            }
        }
    }
}
