//! Words of a text, and the parts of names.

/// Words that say nothing about what a text is about.
pub const STOP: &[&str] = &[
    "and", "are", "for", "from", "how", "into", "its", "of", "the", "them", "then", "this", "that", "to", "what",
    "with", "in", "is", "it", "on", "or", "by", "an", "at", "be", "me", "my",
];

/// The words of a text, in lower case; `snake_case` and `camelCase` are split, plurals lose their `s`.
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

/// The parts of a name: `open` and `File` of `openFile`, `HTTP` and `Server` of `HTTPServer`; `URLs` is one.
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

/// True for a word that says something about what a text is about.
pub fn tells(word: &str) -> bool {
    word.chars().count() > 1 && !word.chars().all(char::is_numeric) && !STOP.contains(&word)
}

/// The words of a part in lower case, names of files and paths whole.
pub fn path_words(part: &str) -> Vec<String> {
    part.to_lowercase()
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/')))
        .map(|w| w.trim_matches('.').to_owned())
        .filter(|w| !w.is_empty())
        .collect()
}

/// True for a word of a list, which has a blank between two.
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
