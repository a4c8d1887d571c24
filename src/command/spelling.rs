//! Corrects typing errors in a request: "delete all epmty directories". A single wrong, missing, doubled or swapped
//! letter costs a small model a sixth of its right answers, and most such errors can be corrected without the model.
//!
//! A word is corrected if it is unknown (not in [`library::vocabulary`], and not known to the caller: a single token
//! of the model, a program, a file in the folder), if a word of that vocabulary is a single edit away (of several, one
//! that is clearly the commonest), and if it is no name: not quoted, not part of a path, and not announced as one
//! ("named", "containing" ...). A request of which more than half of the words are unknown is left alone: it is in
//! another language.

use super::library;
use std::collections::HashMap;

/// Least letters of a word that is corrected: shorter words are one edit away from too many others.
const MIN_LETTERS: usize = 5;
/// The factor by which the commonest candidate must exceed the next one.
const MIN_RATIO: u32 = 3;
/// Words before a name or a search text, which is not corrected.
const BEFORE_NAMES: [&str; 44] = [
    "branch",
    "called",
    "column",
    "command",
    "contain",
    "container",
    "containing",
    "contains",
    "field",
    "for",
    "group",
    "grep",
    "has",
    "have",
    "holding",
    "host",
    "image",
    "key",
    "like",
    "matching",
    "mention",
    "mentioning",
    "mentions",
    "module",
    "named",
    "package",
    "pattern",
    "phrase",
    "process",
    "program",
    "remote",
    "say",
    "saying",
    "says",
    "server",
    "service",
    "string",
    "tag",
    "text",
    "to",
    "unit",
    "user",
    "variable",
    "word",
];

/// A corrected word.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Slip {
    /// The word as it was written.
    pub written: String,
    /// The word that it was corrected to.
    pub read: String,
}

impl Slip {
    /// True if only the ending tells the words apart, as in `todays` and `today`: nobody has to be told.
    pub fn is_other_form(&self) -> bool {
        let (written, read) = (self.written.to_lowercase(), self.read.to_lowercase());
        written.strip_suffix('s') == Some(read.as_str()) || read.strip_suffix('s') == Some(written.as_str())
    }
}

/// Corrects the typing errors in a request and returns it with the corrected words; `None` if there are none.
/// `is_known` is true for a word, in lower case, that the model knows or that names a program or a file.
pub fn correct(request: &str, is_known: impl Fn(&str) -> bool) -> Option<(String, Vec<Slip>)> {
    let (words, vocabulary) = (plain_words(request), library::vocabulary());
    let is_unknown = |word: &str| !vocabulary.contains_key(word.to_lowercase().as_str());
    // words of another language may be one letter away from English ones
    if 2 * words.iter().filter(|(_, word)| is_unknown(word)).count() > words.len() {
        return None;
    }
    let (mut text, mut slips) = (request.to_owned(), Vec::new());
    // from the end, so that the offsets of the words before stay valid
    for &(at, word) in words.iter().rev() {
        let before = request[..at].split_whitespace().next_back().unwrap_or_default().to_lowercase();
        let is_announced = BEFORE_NAMES.contains(&before.as_str());
        if word.len() < MIN_LETTERS || !is_unknown(word) || is_announced || is_name(request, at) {
            continue;
        }
        // `is_known` may ask another process, so it comes last
        let lower = word.to_lowercase();
        if let Some(read) = nearest(&lower, vocabulary)
            && !is_known(&lower)
        {
            text.replace_range(at..at + word.len(), read);
            slips.insert(0, Slip { written: word.to_owned(), read: read.to_owned() });
        }
    }
    (!slips.is_empty()).then_some((text, slips))
}

/// Returns the words that consist of ASCII letters only and are not in quotes, each with its byte offset.
fn plain_words(request: &str) -> Vec<(usize, &str)> {
    let begins = library::unquoted(request).filter(|(at, c)| {
        let before = request[..*at].chars().next_back().unwrap_or(' ');
        c.is_ascii_alphabetic() && (before.is_whitespace() || before == '(')
    });
    let words = begins.map(|(at, _)| {
        let rest = &request[at..];
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        (at, rest[..end].trim_end_matches([',', ';', ':', '.', '?', '!', ')']))
    });
    words.filter(|(_, word)| word.bytes().all(|b| b.is_ascii_alphabetic())).collect()
}

/// True for a word with a capital letter other than the first of a sentence: a name or a constant.
fn is_name(request: &str, at: usize) -> bool {
    let word = &request[at..];
    let opens = at == 0 || request[..at].trim_end().ends_with(['.', '!', '?']);
    let end = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    word[..end].bytes().skip(usize::from(opens)).any(|b| b.is_ascii_uppercase())
}

/// Returns the only word of the vocabulary that is one edit away, or the one that is clearly the commonest.
fn nearest<'v>(word: &str, vocabulary: &HashMap<&'v str, u32>) -> Option<&'v str> {
    let mut near: Vec<(u32, &str)> = vocabulary
        .iter()
        .filter(|(other, _)| other.len().abs_diff(word.len()) <= 1 && strsim::osa_distance(word, other) == 1)
        // the first letter is rarely wrong: `hogging` is not `logging`
        .filter(|(other, _)| other.len() != word.len() || other[..1] == word[..1] || other[..1] == word[1..2])
        .map(|(other, count)| (*count, *other))
        .collect();
    near.sort_unstable_by(|a, b| b.cmp(a));
    match near[..] {
        [] => None,
        [(_, only)] => Some(only),
        [(most, best), (next, _), ..] => (most >= MIN_RATIO * next).then_some(best),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Corrects a request with a model that knows only a few words.
    fn read(request: &str) -> String {
        let common = ["bank", "recieve", "webapp"];
        correct(request, |word| common.contains(&word)).map_or_else(|| request.to_owned(), |(text, _)| text)
    }

    #[test]
    fn one_wrong_letter_is_corrected() {
        for (written, meant) in [
            ("delete all epmty directories", "delete all empty directories"),
            ("list the lrgest files here, biggset first", "list the largest files here, biggest first"),
            ("Cuont the liens of notes.txt", "count the lines of notes.txt"),
            ("show hiddden files (and foldres)", "show hidden files (and folders)"),
        ] {
            assert_eq!(read(written), meant);
        }
        let (_, slips) = correct("delete all epmty files", |_| false).unwrap();
        assert_eq!(slips, [Slip { written: "epmty".into(), read: "empty".into() }]);
    }

    #[test]
    fn a_word_with_another_ending_is_the_same_word() {
        let is_form = |written: &str, read: &str| Slip { written: written.into(), read: read.into() }.is_other_form();
        assert!(is_form("todays", "today") && is_form("Folder", "folders"));
        assert!(!is_form("epmty", "empty") && !is_form("sise", "size"));
    }

    #[test]
    fn names_and_search_texts_are_not_corrected() {
        for written in [
            "list the largest files here",
            "find lines containing epmty in notes.txt",
            "show files named lrgest",
            "move 'epmty' to the folder old",
            "count the lines of epmty.txt in ./foldres",
            "print the value of EPMTY and of epMty here",
            "files that have a bank in their name",
            "what is hogging the disk",
            "lista los directorios vacios",
            "zeige alle versteckten Dateien",
            "",
            "epmty",
        ] {
            assert_eq!(read(written), written);
        }
    }

    #[test]
    fn our_own_requests_have_at_most_one_correction_each() {
        for text in [include_str!("../../benches/requests.txt"), include_str!("../../tests/refusals.txt")] {
            for line in text.lines() {
                // even if the model knows no word
                let slips = correct(line, |_| false).map(|(_, slips)| slips).unwrap_or_default();
                assert!(slips.len() <= 1, "{line}: {slips:?}");
            }
        }
    }

    #[test]
    fn the_model_is_asked_only_about_unknown_words_with_a_near_one() {
        let asked = std::cell::RefCell::new(Vec::new());
        let request = "list the largest files of the folder xylograph, epmty ones too";
        correct(request, |word| {
            asked.borrow_mut().push(word.to_owned());
            false
        });
        assert_eq!(asked.into_inner(), ["epmty"]);
    }

    proptest! {
        #[test]
        fn only_single_words_change(text in "[a-zA-Zäé'\"`./ ,]{0,60}") {
            if let Some((read, slips)) = correct(&text, |_| false) {
                prop_assert_eq!(read.split_whitespace().count(), text.split_whitespace().count());
                prop_assert!(!slips.is_empty());
            }
        }
    }
}
