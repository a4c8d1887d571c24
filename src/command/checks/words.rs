//! A request as plain English words. What another language says matches nothing here, and so accuses nobody.

/// The words of a request: lower case, without punctuation; what stands in quotes is left out, for it is a name.
#[derive(Debug)]
pub(super) struct Words(Vec<String>);

impl Words {
    /// The words of a request.
    pub(super) fn of(request: &str) -> Self {
        let mut plain = String::with_capacity(request.len());
        let mut quote = None;
        let (mut before, mut path) = (' ', false);
        for c in request.chars() {
            match quote {
                Some(q) if c == q => quote = None,
                Some(_) => {}
                // an apostrophe inside a word is none
                None if matches!(c, '"' | '`') || c == '\'' && !before.is_alphanumeric() => {
                    quote = Some(c);
                    plain.push_str(" \u{b7} ");
                }
                // "case-insensitive", "top-level", but not "-3" or "/a-b"
                None if c == '-' && before.is_alphabetic() && !path => plain.push(' '),
                None => plain.extend(c.to_lowercase()),
            }
            path = !c.is_whitespace() && (path || matches!(c, '/' | '.' | '~'));
            before = c;
        }
        let trim = |w: &str| w.trim_matches([',', ';', ':', '(', ')', '?', '!', '.']).to_owned();
        Self(plain.split_whitespace().map(trim).filter(|w| !w.is_empty()).collect())
    }

    /// The words in order.
    pub(super) fn list(&self) -> &[String] {
        &self.0
    }

    /// True if one of the phrases stands there word for word.
    pub(super) fn contains_phrase(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.at(phrase).is_some())
    }

    /// Where a phrase begins.
    pub(super) fn at(&self, phrase: &str) -> Option<usize> {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        self.0.windows(phrase.len()).position(|w| w.iter().zip(&phrase).all(|(a, b)| a == b))
    }

    /// True if something is said not to be, or to be left out: then what else is said may mean its opposite.
    pub(super) fn has_negation(&self) -> bool {
        const NEGATIONS: &[&str] = &[
            "not",
            "no",
            "non",
            "never",
            "without",
            "except",
            "excluding",
            "exclude",
            "but",
            "unless",
            "ignore",
            "ignoring",
            "skip",
            "skipping",
            "retain",
            "retaining",
            "preserve",
            "preserving",
            "leave",
            "leaving",
            "apart",
            "aside",
            "outside",
            "beyond",
            "spare",
            "sparing",
            "keep",
            "keeping",
            "neither",
            "nor",
            "other",
            "instead",
            "isn't",
        ];
        self.0.iter().any(|w| NEGATIONS.contains(&w.as_str()) || w.ends_with("n't"))
    }

    /// Every number, with its place; small ones may be spelled out.
    pub(super) fn numbers(&self) -> Vec<(usize, u64)> {
        self.0.iter().enumerate().filter_map(|(i, w)| Some((i, number(w)?))).collect()
    }
}

/// The quotes and the punctuation around a word; a full stop is part of many names, and only the last one is none.
const AROUND: [char; 10] = ['\'', '"', '`', ',', ';', ':', '(', ')', '?', '!'];

/// The words of a request as they are written, names of files among them, without the punctuation around and between them.
pub(super) fn written(request: &str) -> impl Iterator<Item = &str> {
    let words = request.split(|c: char| c.is_whitespace() || AROUND.contains(&c));
    words.map(|w| w.strip_suffix('.').unwrap_or(w))
}

/// A word of a request without the quotes and the punctuation around it.
pub(super) fn bare(word: &str) -> &str {
    let word = word.trim_matches(AROUND);
    // the end of a sentence; and then the quote that it stood behind
    word.strip_suffix('.').map_or(word, |word| word.trim_end_matches(AROUND))
}

/// A whole number, in digits or as a word up to twelve.
pub(super) fn number(word: &str) -> Option<u64> {
    const SPELLED: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    match SPELLED.iter().position(|s| *s == word) {
        Some(n) => u64::try_from(n).ok(),
        None if word.len() < 10 => word.parse().ok(),
        None => None,
    }
}

/// True for a word that means folders inside the one meant.
pub(super) fn is_subfolder(word: &str) -> bool {
    matches!(
        word,
        "subdirectories" | "subdirectory" | "subfolders" | "subfolder" | "subdirs" | "sub" | "nested" | "subtree"
    )
}

/// The year of `2024-02-29`.
pub(super) fn year(word: &str) -> Option<u32> {
    let [year, month, day] = word.split('-').collect::<Vec<_>>()[..] else { return None };
    let digits = |text: &str, n: usize| text.len() == n && text.bytes().all(|b| b.is_ascii_digit());
    (digits(year, 4) && digits(month, 2) && digits(day, 2)).then(|| year.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_bare_whatever_stands_around_it() {
        for around in ["notes.txt", "notes.txt.", "'notes.txt',", "(\"notes.txt\").", "`notes.txt`?"] {
            assert_eq!(bare(around), "notes.txt");
        }
        assert_eq!((bare("don't"), bare("..."), bare("./a."), bare("?")), ("don't", "..", "./a", ""));
    }

    #[test]
    fn a_request_is_its_words() {
        let words =
            Words::of("Find 'how many' files, case-insensitively; don't touch /a-b/c.txt (in the last ten days)!");
        assert!(words.contains_phrase(&["case insensitively", "in the last ten days"]) && words.has_negation());
        assert!(!words.contains_phrase(&["how many"]) && words.list().iter().any(|w| w == "/a-b/c.txt"));
        assert_eq!(words.numbers().iter().map(|n| n.1).collect::<Vec<_>>(), [10]);
        assert!(Words::of("zähle alle Dateien").numbers().is_empty());
        assert!(Words::of("").list().is_empty());
    }
}
