//! The words of a question, as expressions for the index.

use caro_intent::tokens;
use std::collections::BTreeSet;

/// Words that do not tell what a text is about. They are searched only if a question has no others.
const STOP: &[&str] = &[
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "could", "describe", "did", "do",
    "does", "explain", "find", "for", "from", "give", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its",
    "list", "me", "my", "of", "on", "or", "our", "please", "s", "should", "show", "so", "tell", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "to", "us", "was", "we", "what", "when", "where",
    "which", "who", "why", "will", "with", "would", "you", "your",
];

/// Most words of a question that are searched; more of them are a pasted page.
const MAX_WORDS: usize = 32;

/// The distinct words of a question, in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    words: Vec<String>,
    /// True if each word also matches as a prefix.
    prefix: bool,
}

impl Terms {
    /// Returns the significant words of a text.
    pub fn of(text: &str) -> Self {
        let mut seen = BTreeSet::new();
        let all = split(text).flat_map(|word| segments(&word));
        let mut words: Vec<String> = all.filter(|word| seen.insert(word.clone())).collect();
        if words.iter().any(|word| !STOP.contains(&word.as_str())) {
            words.retain(|word| !STOP.contains(&word.as_str()));
        }
        words.truncate(MAX_WORDS);
        Self { words, prefix: false }
    }

    /// Returns the same terms as prefixes.
    pub fn widened(&self) -> Self {
        Self { words: self.words.clone(), prefix: true }
    }

    /// The words.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns each term as an FTS5 expression.
    pub fn each(&self) -> impl Iterator<Item = String> {
        // letters and digits only, in quotes, so nothing in them is syntax
        self.words.iter().map(|word| format!("\"{word}\"{}", if self.prefix { "*" } else { "" }))
    }

    /// Returns an expression that matches any of the terms; `None` if there are none.
    pub fn any(&self) -> Option<String> {
        (!self.words.is_empty()).then(|| self.each().collect::<Vec<_>>().join(" OR "))
    }
}

/// Returns the words of a text in lower case.
fn split(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// True for a letter of a script without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}')
        || matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Splits a word where the script changes, and the parts without spaces into pairs of letters: what lies between two
/// blanks is a whole sentence there, and two texts about one thing share pairs.
fn segments(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    let mut segments = Vec::new();
    for run in letters.chunk_by(|a, b| is_unspaced(*a) == is_unspaced(*b)) {
        match run {
            [first, _, _, ..] if is_unspaced(*first) => {
                segments.extend(run.windows(2).map(|pair| pair.iter().collect()))
            }
            run => segments.push(run.iter().collect()),
        }
    }
    segments
}

/// Appends the parts of `camelCase` names and of sentences without spaces to a text, so that each part is found too.
/// (`snake_case` is split by FTS5 itself: `_` is no letter.)
pub fn with_parts(text: &str) -> String {
    let mut parts = String::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        if word.contains(is_unspaced) {
            for part in segments(word) {
                parts.push(' ');
                parts.push_str(&part);
            }
            continue;
        }
        let of = tokens::parts(word);
        if of.len() > 1 {
            for part in of {
                parts.push(' ');
                parts.push_str(part);
            }
        }
    }
    if parts.is_empty() { text.to_owned() } else { format!("{text}\n{parts}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_significant_words_are_searched() {
        assert_eq!(Terms::of("How do I restart the BUILD server? Restart!").words(), ["restart", "build", "server"]);
        assert_eq!(Terms::of("what is it").words(), ["what", "is", "it"]);
        assert_eq!(Terms::of("\"x\" OR * -y").any().unwrap(), "\"x\" OR \"y\"");
        assert_eq!(Terms::of(" ?! ").any(), None);
        assert_eq!(Terms::of("deploy").widened().any().unwrap(), "\"deploy\"*");
        assert_eq!(Terms::of(&"word1 word2 ".repeat(9)).words().len(), 2);
    }

    #[test]
    fn text_without_spaces_is_searched_by_pairs_of_letters() {
        assert_eq!(Terms::of("備份在哪裡？").words(), ["備份", "份在", "在哪", "哪裡"]);
        assert_eq!(Terms::of("サーバーのIP").words(), ["サー", "ーバ", "バー", "ーの", "ip"]);
        assert_eq!(Terms::of("水 is wet").words(), ["水", "wet"]);
        assert_eq!(with_parts("備份在NAS上"), "備份在NAS上\n 備份 份在 NAS 上");
    }

    #[test]
    fn names_are_found_by_their_parts() {
        assert_eq!(with_parts("call openFileNow(x)"), "call openFileNow(x)\n open File Now");
        assert_eq!(with_parts("parseHTTPRequest URLs"), "parseHTTPRequest URLs\n parse HTTP Request");
        assert_eq!(with_parts("ÄpfelÖl"), "ÄpfelÖl\n Äpfel Öl");
        assert_eq!(with_parts("plain words_here HTTP"), "plain words_here HTTP");
    }
}
