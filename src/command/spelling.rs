//! Slips of the pen in a request: "delete all epmty directories". One letter that is wrong, missing, doubled or in another's
//! place costs a small model a sixth of its right answers, and most of them can be mended without it.
//!
//! A word is mended if nobody knows it (neither [`library::vocabulary`] nor the model, for which a word that is one token is
//! a common one), if one word of that vocabulary is a single slip away, and if it is no name: not quoted, not a part of a
//! path, no file here, no program, and not said to be one ("named", "containing" ...). Only in English requests.

use super::library;
use std::collections::HashMap;

/// The least letters of a word that is mended: shorter ones are a slip away from too many.
const LEAST: usize = 5;
/// How many times more common the likeliest word has to be than the next one.
const CLEARLY: u32 = 3;
/// Behind these stand names and what is searched for, as they are.
const NAMING: [&str; 44] = [
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

/// A word that was read as another.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Slip {
    /// As it was written.
    pub written: String,
    /// As it was read.
    pub read: String,
}

/// The request with its slips mended, and these; nothing where there are none. `is_known` tells of a word, in lower case,
/// whether it is one to somebody: the model, the programs and files here.
pub fn mended(request: &str, is_known: impl Fn(&str) -> bool) -> Option<(String, Vec<Slip>)> {
    let (words, vocabulary) = (plain_words(request), library::vocabulary());
    let strange = |word: &str| !vocabulary.contains_key(word.to_lowercase().as_str());
    // another language has words that are one letter away from English ones
    if 2 * words.iter().filter(|(_, word)| strange(word)).count() > words.len() {
        return None;
    }
    let (mut text, mut slips) = (request.to_owned(), Vec::new());
    for (i, &(at, word)) in words.iter().enumerate().rev() {
        let names = i > 0 && NAMING.contains(&words[i - 1].1.to_lowercase().as_str());
        if word.len() < LEAST || !strange(word) || names || is_name(request, at) {
            continue;
        }
        // who knows words may be another process: it is asked last
        let lower = word.to_lowercase();
        if let Some(read) = nearest(&lower, vocabulary).filter(|_| !is_known(&lower)) {
            text.replace_range(at..at + word.len(), read);
            slips.insert(0, Slip { written: word.to_owned(), read: read.to_owned() });
        }
    }
    (!slips.is_empty()).then_some((text, slips))
}

/// The words of letters alone that stand by themselves and not in quotes, each with its place.
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

/// True for a word with a capital letter inside of a sentence: a name, or a constant.
fn is_name(request: &str, at: usize) -> bool {
    let word = &request[at..];
    let opens = at == 0 || request[..at].trim_end().ends_with(['.', '!', '?']);
    let end = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    word[..end].bytes().skip(usize::from(opens)).any(|b| b.is_ascii_uppercase())
}

/// The one word that is a slip away; none where two could be meant.
fn nearest<'v>(word: &str, vocabulary: &HashMap<&'v str, u32>) -> Option<&'v str> {
    let mut near: Vec<(u32, &str)> = vocabulary
        .iter()
        .filter(|(other, _)| other.len().abs_diff(word.len()) <= 1 && strsim::osa_distance(word, other) == 1)
        // hardly anybody's first letter is another one: `hogging` is no `logging`
        .filter(|(other, _)| other.len() != word.len() || other[..1] == word[..1] || other[..1] == word[1..2])
        .map(|(other, count)| (*count, *other))
        .collect();
    near.sort_unstable_by(|a, b| b.cmp(a));
    match near[..] {
        [] => None,
        [(_, only)] => Some(only),
        [(most, best), (next, _), ..] => (most >= CLEARLY * next).then_some(best),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As a model that knows only what is common.
    fn read(request: &str) -> String {
        let common = ["bank", "recieve", "webapp"];
        mended(request, |word| common.contains(&word)).map_or_else(|| request.to_owned(), |(text, _)| text)
    }

    #[test]
    fn one_wrong_letter_is_mended() {
        for (written, meant) in [
            ("delete all epmty directories", "delete all empty directories"),
            ("list the lrgest files here, biggset first", "list the largest files here, biggest first"),
            ("Cuont the liens of notes.txt", "count the lines of notes.txt"),
            ("show hiddden files (and foldres)", "show hidden files (and folders)"),
        ] {
            assert_eq!(read(written), meant);
        }
        let (_, slips) = mended("delete all epmty files", |_| false).unwrap();
        assert_eq!(slips, [Slip { written: "epmty".into(), read: "empty".into() }]);
    }

    #[test]
    fn names_and_what_is_searched_for_stay() {
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
    fn our_own_requests_have_no_slips() {
        for text in [include_str!("../../benches/requests.txt"), include_str!("../../tests/refusals.txt")] {
            for line in text.lines() {
                // even if the model knew nothing
                let slips = mended(line, |_| false).map(|(_, slips)| slips).unwrap_or_default();
                assert!(slips.len() <= 1, "{line}: {slips:?}");
            }
        }
    }

    #[test]
    fn nobody_is_asked_about_a_word_that_people_ask_with_or_that_is_near_to_none() {
        let asked = std::cell::RefCell::new(Vec::new());
        let request = "list the largest files of the folder xylograph, epmty ones too";
        mended(request, |word| {
            asked.borrow_mut().push(word.to_owned());
            false
        });
        assert_eq!(asked.into_inner(), ["epmty"]);
    }

    proptest! {
        #[test]
        fn only_single_words_change(text in "[a-zA-Zäé'\"`./ ,]{0,60}") {
            if let Some((read, slips)) = mended(&text, |_| false) {
                prop_assert_eq!(read.split_whitespace().count(), text.split_whitespace().count());
                prop_assert!(!slips.is_empty());
            }
        }
    }
}
