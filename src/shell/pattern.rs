//! Regular expressions in data files, compiled on first use: a run needs few of them.

use regex::Regex;
use std::sync::OnceLock;

/// A regular expression over the resolved text of a word, or of several joined with blanks.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(from = "String")]
pub struct Pattern {
    text: String,
    regex: OnceLock<Option<Regex>>,
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self { text, regex: OnceLock::new() }
    }
}

impl Pattern {
    /// True if the text matches. A pattern that is no regular expression matches nothing; tests hold that there is none.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|r| r.is_match(text))
    }

    /// The text with `new` in the place of the match, the groups as `$1` or `${1}` in it; `None` without a match.
    pub fn replaced(&self, text: &str, new: &str) -> Option<String> {
        self.regex().filter(|r| r.is_match(text)).map(|r| r.replace(text, new).into_owned())
    }

    fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| Regex::new(&self.text).ok()).as_ref()
    }

    /// True if it is a regular expression.
    #[cfg(test)]
    pub fn is_sound(&self) -> bool {
        Regex::new(&self.text).is_ok()
    }
}

/// A pattern that must fit the whole text.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(from = "String")]
pub struct Whole(Pattern);

impl From<String> for Whole {
    fn from(text: String) -> Self {
        Self(Pattern::from(format!("^(?:{text})$")))
    }
}

impl Whole {
    /// True if it fits the text from end to end.
    pub fn fits(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// True if it is a regular expression.
    #[cfg(test)]
    pub fn is_sound(&self) -> bool {
        self.0.is_sound()
    }
}
