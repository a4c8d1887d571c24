//! Splits a text into words for comparison: stems, without fillers and names.

/// File endings that count as words, as the format decides which program is used.
const FORMATS: [&str; 33] = [
    "7z", "avi", "bz2", "csv", "flac", "gif", "gz", "html", "ini", "jpeg", "jpg", "json", "jsonl", "mkv", "mov", "mp3",
    "mp4", "pdf", "png", "rar", "sql", "svg", "tar", "tgz", "toml", "tsv", "wav", "webp", "xml", "xz", "yaml", "yml",
    "zip",
];
/// Stems of words that only say that something is wanted, or connect other words.
const FILLERS: [&str; 22] = [
    "a", "an", "and", "by", "display", "find", "for", "from", "get", "giv", "in", "list", "me", "of", "on", "or",
    "print", "show", "tell", "the", "to", "with",
];

/// True if a text has words to compare.
pub(crate) fn has_words(text: &str) -> bool {
    !topic(text).is_empty()
}

/// Returns the characters outside of quotes, each with its byte offset.
pub(crate) fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let (mut quote, mut before) = (None, ' ');
    text.char_indices().filter(move |&(_, c)| {
        let opens = quote.is_none() && (matches!(c, '"' | '`') || c == '\'' && !before.is_alphanumeric());
        let outside = quote.is_none() && !opens;
        // an apostrophe inside a word is no quote
        if opens {
            quote = Some(c);
        } else if quote == Some(c) {
            quote = None;
        }
        before = c;
        outside
    })
}

/// Returns the stems of the words that say what is done, sorted and without duplicates. Quoted text and file names
/// are left out, except for the format of a file. Fillers are left out unless there is nothing else.
pub(super) fn topic(text: &str) -> Vec<String> {
    let mut stems = Vec::new();
    for_each_word(text, |word| stems.push(stem(word)));
    stems.sort_unstable();
    stems.dedup();
    if stems.iter().any(|word| !is_filler(word)) {
        stems.retain(|word| !is_filler(word));
    }
    stems
}

/// True for the stem of a word that does not distinguish requests.
pub(super) fn is_filler(word: &str) -> bool {
    FILLERS.contains(&word)
}

/// Calls `each` with the words of a [`topic`] as they are written.
pub(super) fn for_each_word(text: &str, mut each: impl FnMut(&str)) {
    let plain: String = unquoted(text).map(|(_, c)| c).collect();
    for piece in plain.split_whitespace() {
        let name = piece.trim_matches([',', ';', ':', '(', ')', '?', '!', '.']);
        if !name.contains(['.', '/', '_', '~']) {
            piece
                .split(|c: char| !c.is_alphanumeric())
                .filter(|word| word.contains(char::is_alphabetic))
                .for_each(&mut each);
        } else if let Some(format) = name.rsplit_once('.').and_then(|(_, end)| FORMATS.iter().find(|f| **f == end)) {
            each(format);
        }
    }
}

/// Returns a word in lower case without its plural or verb ending, so that `files`, `listing` and `sorted` equal
/// `file`, `list` and `sort`.
pub(super) fn stem(word: &str) -> String {
    let mut word = word.to_lowercase();
    cut_ending(&mut word);
    word
}

fn cut_ending(word: &mut String) {
    let ends = |word: &str, end: &str, left: usize| word.len() >= end.len() + left && word.ends_with(end);
    if !word.is_ascii() {
        return;
    }
    if ends(word, "ies", 2) {
        word.truncate(word.len() - 3);
        word.push('y');
        return;
    }
    if ["sses", "shes", "ches", "xes", "zes"].iter().any(|end| ends(word, end, 1)) {
        word.truncate(word.len() - 2);
    } else if ends(word, "s", 3) && !ends(word, "ss", 0) && !ends(word, "us", 0) && !ends(word, "is", 0) {
        word.truncate(word.len() - 1);
    }
    for (end, left) in [("ing", 3), ("ed", 3)] {
        if ends(word, end, left) {
            word.truncate(word.len() - end.len());
            let twice = word.as_bytes().ends_with(&[word.as_bytes()[word.len() - 1]; 2]);
            if twice && !word.ends_with("ll") && !word.ends_with("ss") {
                word.truncate(word.len() - 1);
            }
            break;
        }
    }
    if ends(word, "e", 3) {
        word.truncate(word.len() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        for_each_word(text, |word| all.push(stem(word)));
        all
    }

    #[test]
    fn forms_of_a_word_have_the_same_stem() {
        assert_eq!(stems("Listing the FILES of notes.txt, 42 copies"), ["list", "the", "fil", "of", "copy"]);
        for (one, other) in [
            ("files", "file"),
            ("directories", "directory"),
            ("sorted", "sort"),
            ("sorting", "sort"),
            ("stopped", "stop"),
            ("matches", "match"),
            ("killed", "kill"),
            ("processes", "process"),
            ("modified", "modified"),
            ("sizes", "size"),
            ("caches", "cache"),
        ] {
            assert_eq!(stems(one), stems(other), "{one}");
        }
        // letters that only look like an ending
        for word in ["this", "status", "class", "bed", "ring", "naïves"] {
            assert_eq!(stems(word), [word]);
        }
        assert!(stems("10 * 7 ... 🙂").is_empty());
    }

    #[test]
    fn names_and_fillers_are_left_out() {
        assert_eq!(topic("Show 'the old' files of a/b.txt, don't ask"), ["ask", "don", "fil", "t"]);
        assert_eq!(topic("convert people.csv to json"), ["convert", "csv", "json"]);
        assert_eq!(topic("show me"), ["me", "show"], "there is nothing else");
        assert!(FILLERS.is_sorted(), "for the reader");
    }
}
