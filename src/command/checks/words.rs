//! Splits a request into English words. Words of another language match no phrase, so that they cause no findings.

pub(super) use caro_intent::is_in;

/// Words that negate what follows them.
pub(super) const NOT: &str = "don't dont never no non not without";
/// Words that make an exception of what follows them.
const EXCEPT: &str = "except exclude excludes excluding ignore ignores ignoring outside skip skipping";
/// Words of sentences in which others may mean the opposite.
const SPARES: &str = "apart aside beyond but instead keep keeping leave leaving neither nor other preserve preserving \
    retain retaining spare sparing unless";

/// True for a word that negates what follows it, or makes an exception of it.
pub(super) fn negates(word: &str) -> bool {
    is_in(NOT, word) || is_in(EXCEPT, word)
}

/// The words of a request in lower case, without punctuation. Quoted text is left out, as it is a name.
#[derive(Debug)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// Splits a request into words.
    pub(super) fn of(request: &str) -> Self {
        let mut plain = String::with_capacity(request.len());
        let mut quote = None;
        let (mut before, mut in_path) = (' ', false);
        for c in request.chars() {
            match quote {
                Some(q) if c == q => quote = None,
                Some(_) => {}
                // an apostrophe inside a word is no quote
                None if matches!(c, '"' | '`') || c == '\'' && !before.is_alphanumeric() => {
                    quote = Some(c);
                    plain.push_str(" \u{b7} ");
                }
                // "case-insensitive", "top-level", but not "-3" or "/a-b"
                None if c == '-' && before.is_alphabetic() && !in_path => plain.push(' '),
                None => plain.extend(c.to_lowercase()),
            }
            in_path = !c.is_whitespace() && (in_path || matches!(c, '/' | '.' | '~'));
            before = c;
        }
        let trim = |w: &str| w.trim_matches([',', ';', ':', '(', ')', '?', '!', '.']).to_owned();
        Self(plain.split_whitespace().map(trim).filter(|w| !w.is_empty()).collect())
    }

    /// Returns the words in order.
    pub(super) fn list(&self) -> &[String] {
        &self.0
    }

    /// True if the request contains one of the phrases between bars, word for word.
    pub(super) fn contains_phrase(&self, phrases: &str) -> bool {
        phrases.split('|').any(|phrase| self.position_of(phrase).is_some())
    }

    /// Returns the index of the first word of a phrase.
    pub(super) fn position_of(&self, phrase: &str) -> Option<usize> {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        self.0.windows(phrase.len()).position(|w| w.iter().zip(&phrase).all(|(a, b)| a == b))
    }

    /// True if the request contains a negation or an exception, so that its other words may mean the opposite.
    pub(super) fn has_negation(&self) -> bool {
        self.0.iter().any(|w| negates(w) || is_in(SPARES, w) || w.ends_with("n't"))
    }

    /// Returns every number with its index; numbers up to twelve may be spelled out.
    pub(super) fn numbers(&self) -> Vec<(usize, u64)> {
        self.0.iter().enumerate().filter_map(|(i, w)| Some((i, number(w)?))).collect()
    }
}

/// Quotes and punctuation around a word. A full stop is part of many names, and is removed only from the end.
const PUNCTUATION: [char; 10] = ['\'', '"', '`', ',', ';', ':', '(', ')', '?', '!'];

/// Splits a request into its words as they are written, file names included, without punctuation.
pub(super) fn written_words(request: &str) -> impl Iterator<Item = &str> {
    let words = request.split(|c: char| c.is_whitespace() || PUNCTUATION.contains(&c));
    words.map(|w| w.strip_suffix('.').unwrap_or(w))
}

/// Returns a word of a request without the quotes and punctuation around it.
pub(crate) fn without_punctuation(word: &str) -> &str {
    let word = word.trim_matches(PUNCTUATION);
    // the full stop of a sentence, and then a quote before it
    word.strip_suffix('.').map_or(word, |word| word.trim_end_matches(PUNCTUATION))
}

/// True if the request asks for a single number, so that some output is certain, even if it is a 0.
pub(crate) fn asks_for_number(request: &str) -> bool {
    const BEGINNINGS: &str = "how many|count|number of|tell me how many|what is the number of|print the number of|\
        show the number of|give me the number of|find how many|find out how many|find the number of";
    // "count them and print their names" asks for both
    const MORE: &str = "and list|and print|and show|list|names|which|total size|bytes|characters|words|times|\
        occurrences";
    let words = Words::of(request);
    BEGINNINGS.split('|').any(|b| words.position_of(b) == Some(0)) && !words.contains_phrase(MORE)
}

/// Parses a whole number of at most nine digits, or a number word up to twelve.
pub(super) fn number(word: &str) -> Option<u64> {
    const SPELLED: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    match SPELLED.iter().position(|s| *s == word) {
        Some(n) => u64::try_from(n).ok(),
        None if word.len() < 10 => word.parse().ok(),
        None => None,
    }
}

/// True for a word that means subfolders.
pub(super) fn is_subfolder(word: &str) -> bool {
    is_in("nested sub subdirectories subdirectory subdirs subfolder subfolders subtree", word)
}

/// Returns the year of a date such as `2024-02-29`.
pub(super) fn year(word: &str) -> Option<u32> {
    let [year, month, day] = word.split('-').collect::<Vec<_>>()[..] else { return None };
    let digits = |text: &str, n: usize| text.len() == n && text.bytes().all(|b| b.is_ascii_digit());
    (digits(year, 4) && digits(month, 2) && digits(day, 2)).then(|| year.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_around_a_name_is_removed() {
        for (word, name) in [
            ("notes.txt", "notes.txt"),
            ("notes.txt.", "notes.txt"),
            ("'notes.txt',", "notes.txt"),
            ("(\"notes.txt\").", "notes.txt"),
            ("`notes.txt`?", "notes.txt"),
            ("don't", "don't"),
            ("...", ".."),
            ("./a.", "./a"),
            ("?", ""),
        ] {
            assert_eq!(without_punctuation(word), name);
        }
    }

    #[test]
    fn a_request_is_split_into_words() {
        let words =
            Words::of("Find 'how many' files, case-insensitively; don't touch /a-b/c.txt (in the last ten days)!");
        assert!(words.contains_phrase("case insensitively|in the last ten days") && words.has_negation());
        assert!(!words.contains_phrase("how many") && words.list().iter().any(|w| w == "/a-b/c.txt"));
        assert_eq!(words.numbers().iter().map(|n| n.1).collect::<Vec<_>>(), [10]);
        assert!(Words::of("zähle alle Dateien").numbers().is_empty());
        assert!(Words::of("").list().is_empty());
    }
}
