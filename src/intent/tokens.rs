//! Splits text into words, and names into parts.

/// Words that do not tell what a text is about.
pub const STOP: &[&str] = &[
    "and", "are", "for", "from", "how", "into", "its", "of", "the", "them", "then", "this", "that", "to", "what",
    "with", "in", "is", "it", "on", "or", "by", "an", "at", "be", "me", "my",
];

/// Returns the words of a text in lower case. `snake_case` and `camelCase` are split, plurals lose their `s`.
pub fn words(text: &str) -> Vec<String> {
    let names = text.split(|c: char| !c.is_alphanumeric()).filter(|name| !name.is_empty());
    let mut words: Vec<String> = names.flat_map(parts).map(str::to_lowercase).collect();
    for word in &mut words {
        if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
    }
    words
}

/// Splits a name into parts: `open` and `File` of `openFile`, `HTTP` and `Server` of `HTTPServer`. `URLs` is one
/// part.
pub fn parts(name: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = name.char_indices().collect();
    let (mut parts, mut from) = (Vec::new(), 0);
    for (i, pair) in chars.windows(2).enumerate() {
        let ((_, before), (at, c)) = (pair[0], pair[1]);
        let next_is_small = chars.get(i + 2).is_some_and(|(_, next)| next.is_lowercase());
        let is_plural = &name[at + c.len_utf8()..] == "s";
        let begins_word = before.is_uppercase() && next_is_small && !is_plural;
        if c.is_uppercase() && (before.is_lowercase() || before.is_numeric() || begins_word) {
            parts.push(&name[from..at]);
            from = at;
        }
    }
    parts.push(&name[from..]);
    parts
}

/// True if a word tells what a text is about: it has at least two characters, not only digits, and is not in
/// [`STOP`].
pub fn is_significant(word: &str) -> bool {
    word.chars().count() > 1 && !word.chars().all(char::is_numeric) && !STOP.contains(&word)
}

/// Returns the words of a part in lower case; file names and paths are not split.
pub fn path_words(part: &str) -> Vec<String> {
    part.to_lowercase()
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/')))
        .map(|w| w.trim_matches('.').to_owned())
        .filter(|w| !w.is_empty())
        .collect()
}

/// True if a word is in a list of words separated by blanks.
pub fn is_in(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("read_file listDirs HTTP2 naïve's"), ["read", "file", "list", "dir", "http2", "naïve", "s"]);
        assert_eq!(words("HTTPServer parseHTTPRequest URLs"), ["http", "server", "parse", "http", "request", "url"]);
        assert_eq!(words("  "), [""; 0]);
    }
}
