//! What the request quotes or names as a path must appear in the answer.

use super::Inspected;
use crate::shell::{Finding, Severity};

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    let answer = plain(&it.script.text);
    named(it.request)
        .into_iter()
        .filter(|name| !answer.contains(&plain(name)))
        .map(|name| Finding {
            id: "missing-name".into(),
            severity: Severity::Warning,
            why: format!("the request names `{name}`, and the command does not use it"),
            token: name,
            span: None,
            evidence: Vec::new(),
            fix: None,
        })
        .collect()
}

/// Text without the quoting and slashes in which a right answer may differ from the request.
fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\' | '`')).collect();
    text.trim_end_matches('/').to_lowercase()
}

/// What a request names word for word: absolute paths, and single words in quotes that look like a file or a host.
fn named(request: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in request.split_whitespace() {
        let word = word.trim_matches(|c: char| matches!(c, '\'' | '"' | '`' | ',' | ';' | ':' | '(' | ')' | '?' | '!'));
        let word = word.strip_suffix('.').unwrap_or(word);
        let path = word.starts_with('/') && word.len() > 1 && word[1..].chars().any(char::is_alphanumeric);
        // letters around a dot: `notes.txt`, `example.org`; not `3.5`, `e.g`, `etc.`
        let file = word.rsplit_once('.').is_some_and(|(stem, ext)| {
            stem.len() > 1
                && (2..=5).contains(&ext.len())
                && stem.chars().any(char::is_alphabetic)
                && ext.chars().all(|c| c.is_ascii_alphanumeric())
                && ext.chars().any(|c| c.is_ascii_alphabetic())
                && !stem.contains(['*', '(', '/'])
        });
        if (path || file) && !names.iter().any(|n| n == word) {
            names.push(word.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_paths_and_files() {
        assert_eq!(named("copy notes.txt to /srv/data/, please."), ["notes.txt", "/srv/data/"]);
        assert_eq!(named("ping 'example.org' e.g. 3 times or 1.5 s"), ["example.org"]);
        assert_eq!(named("what is in /etc/hosts?"), ["/etc/hosts"]);
        assert!(named("list files in / and count and/or sort them").is_empty());
    }

    #[test]
    fn quoting_makes_no_difference() {
        assert_eq!(plain("ls '/srv/My Data'/"), plain("ls /srv/my data"));
    }
}
