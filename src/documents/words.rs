//! The words of a question, as the index is asked for them.

use caro_intent::tokens;
use std::collections::BTreeSet;

/// Words that say nothing about what a text is about. A question of nothing else is asked with all of them.
const STOP: &[&str] = &[
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "could", "describe", "did", "do",
    "does", "explain", "find", "for", "from", "give", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its",
    "list", "me", "my", "of", "on", "or", "our", "please", "s", "should", "show", "so", "tell", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "to", "us", "was", "we", "what", "when", "where",
    "which", "who", "why", "will", "with", "would", "you", "your",
];

/// More words than these are not asked for: a page that somebody pasted is no question.
const MOST: usize = 32;

/// The different words of a question, in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    words: Vec<String>,
    /// True if a word stands for every word that begins with it.
    prefix: bool,
}

impl Terms {
    /// The words of a text that say what it is about.
    pub fn of(text: &str) -> Self {
        let mut seen = BTreeSet::new();
        let mut words: Vec<String> = split(text).filter(|word| seen.insert(word.clone())).collect();
        if words.iter().any(|word| !STOP.contains(&word.as_str())) {
            words.retain(|word| !STOP.contains(&word.as_str()));
        }
        words.truncate(MOST);
        Self { words, prefix: false }
    }

    /// The same, where each word also stands for those that begin with it.
    pub fn widened(&self) -> Self {
        Self { words: self.words.clone(), prefix: true }
    }

    /// The words.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Each as an expression of FTS5.
    pub fn each(&self) -> impl Iterator<Item = String> {
        // letters and digits alone, in quotes: nothing in them is syntax
        self.words.iter().map(|word| format!("\"{word}\"{}", if self.prefix { "*" } else { "" }))
    }

    /// Any of them as one expression; nothing where there are none.
    pub fn any(&self) -> Option<String> {
        (!self.words.is_empty()).then(|| self.each().collect::<Vec<_>>().join(" OR "))
    }
}

/// The words of a text in lower case.
fn split(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// A text with the parts of its `camelCase` names behind it, so that each part is found too. (`snake_case` falls apart by
/// itself: `_` is no letter.)
pub fn with_parts(text: &str) -> String {
    let mut parts = String::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let of = tokens::parts(word);
        for part in of.iter().filter(|_| of.len() > 1) {
            parts.push(' ');
            parts.push_str(part);
        }
    }
    if parts.is_empty() { text.to_owned() } else { format!("{text}\n{parts}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_say_something_are_asked_for() {
        assert_eq!(Terms::of("How do I restart the BUILD server? Restart!").words(), ["restart", "build", "server"]);
        assert_eq!(Terms::of("what is it").words(), ["what", "is", "it"]);
        assert_eq!(Terms::of("\"x\" OR * -y").any().unwrap(), "\"x\" OR \"y\"");
        assert_eq!(Terms::of(" ?! ").any(), None);
        assert_eq!(Terms::of("deploy").widened().any().unwrap(), "\"deploy\"*");
        assert_eq!(Terms::of(&"word1 word2 ".repeat(9)).words().len(), 2);
    }

    #[test]
    fn names_are_found_by_their_parts() {
        assert_eq!(with_parts("call openFileNow(x)"), "call openFileNow(x)\n open File Now");
        assert_eq!(with_parts("parseHTTPRequest URLs"), "parseHTTPRequest URLs\n parse HTTP Request");
        assert_eq!(with_parts("ÄpfelÖl"), "ÄpfelÖl\n Äpfel Öl");
        assert_eq!(with_parts("plain words_here HTTP"), "plain words_here HTTP");
    }
}
