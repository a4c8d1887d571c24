//! Expands patterns of file names on the disk like a POSIX shell. Source: POSIX.1-2024, "Patterns Used for Filename
//! Expansion".

use caro_base::wildcard::is_pattern;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most paths that a pattern may match.
const MAX_PATHS: usize = super::MAX_FILES;

/// Returns the paths that a pattern matches below `root`, or the pattern itself if there are none, like a shell.
/// `None` if there are too many.
pub(super) fn paths(root: &Path, pattern: &str) -> Option<Vec<PathBuf>> {
    let start = if pattern.starts_with('/') { Path::new("/") } else { root };
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let mut found = vec![start.to_path_buf()];
    for (at, part) in parts.iter().enumerate() {
        let is_last = at + 1 == parts.len();
        let mut next = Vec::new();
        for folder in &found {
            if !is_pattern(part) {
                let path = folder.join(part);
                if is_last || path.is_dir() {
                    next.push(path);
                }
                continue;
            }
            let mut names: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
            names.retain(|entry| matches(part.as_bytes(), entry.file_name().as_bytes()));
            next.extend(names.into_iter().map(|entry| entry.path()).filter(|path| is_last || path.is_dir()));
            if next.len() > MAX_PATHS {
                return None;
            }
        }
        found = next;
    }
    found.retain(|path| fs::symlink_metadata(path).is_ok());
    if found.is_empty() {
        found.push(start.join(pattern));
    }
    Some(found)
}

/// True if a name matches a pattern. A leading dot must be matched explicitly.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.starts_with(b".") && !pattern.starts_with(b".") {
        return false;
    }
    let (mut p, mut n) = (0, 0);
    // the positions to continue from if a `*` matched too little
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        let taken = match pattern.get(p) {
            Some(b'*') => {
                back = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(b'?') => Some((p + 1, n + width(&name[n..]))),
            Some(b'[') => bracket(pattern, p, &name[n..]).map(|(after, length)| (after, n + length)),
            Some(b'\\') if p + 1 < pattern.len() => (pattern[p + 1] == name[n]).then_some((p + 2, n + 1)),
            Some(byte) => (*byte == name[n]).then_some((p + 1, n + 1)),
            None => None,
        };
        match (taken, back) {
            (Some((after, at)), _) => (p, n) = (after, at),
            (None, Some((after, at))) => {
                (p, n) = (after, at + 1);
                back = Some((after, at + 1));
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Returns the number of bytes of a name's first character; 1 if it is not UTF-8.
fn width(name: &[u8]) -> usize {
    let text = match std::str::from_utf8(&name[..name.len().min(4)]) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&name[..e.valid_up_to()]).unwrap_or_default(),
    };
    text.chars().next().map_or(1, char::len_utf8)
}

/// Matches the first character of a name against the brackets at `at`; returns the position behind them and the bytes
/// of that character if it matches.
fn bracket(pattern: &[u8], at: usize, name: &[u8]) -> Option<(usize, usize)> {
    let literal = || (name.first() == Some(&b'[')).then_some((at + 1, 1));
    let negated = matches!(pattern.get(at + 1), Some(b'!' | b'^'));
    let begin = at + 1 + usize::from(negated);
    // a leading `]` is a member, and the one that ends `[:alpha:]` does not end the brackets
    let mut end = begin + usize::from(pattern.get(begin) == Some(&b']'));
    loop {
        match pattern.get(end) {
            None => return literal(),
            Some(b']') => break,
            Some(b'[') if pattern.get(end + 1) == Some(&b':') => {
                let Some(close) = pattern[end + 2..].windows(2).position(|pair| pair == b":]") else {
                    return literal();
                };
                end += 2 + close + 2;
            }
            Some(_) => end += 1,
        }
    }
    let length = width(name);
    let text = String::from_utf8_lossy(&name[..length]);
    let one = text.chars().next()?;
    let members = String::from_utf8_lossy(&pattern[begin..end]).into_owned();
    (has_member(&members, one) != negated).then_some((end + 1, length))
}

/// True if the inside of brackets contains that character.
fn has_member(members: &str, one: char) -> bool {
    let chars: Vec<char> = members.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        if chars[at..].starts_with(&['[', ':'])
            && let Some(close) = chars[at + 2..].windows(2).position(|pair| pair == [':', ']'])
        {
            let name: String = chars[at + 2..at + 2 + close].iter().collect();
            if is_in_class(&name, one) {
                return true;
            }
            at += 2 + close + 2;
            continue;
        }
        if at + 2 < chars.len() && chars[at + 1] == '-' {
            if (chars[at]..=chars[at + 2]).contains(&one) {
                return true;
            }
            at += 3;
            continue;
        }
        if chars[at] == one {
            return true;
        }
        at += 1;
    }
    false
}

/// True for a character of a named POSIX class.
fn is_in_class(class: &str, one: char) -> bool {
    match class {
        "alpha" => one.is_alphabetic(),
        "digit" => one.is_ascii_digit(),
        "alnum" => one.is_alphanumeric(),
        "upper" => one.is_uppercase(),
        "lower" => one.is_lowercase(),
        "space" => one.is_whitespace(),
        "blank" => matches!(one, ' ' | '\t'),
        "punct" => one.is_ascii_punctuation(),
        "xdigit" => one.is_ascii_hexdigit(),
        "cntrl" => one.is_control(),
        "print" => !one.is_control(),
        "graph" => !one.is_control() && !one.is_whitespace(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsStr;

    fn fits(pattern: &str, name: &str) -> bool {
        matches(pattern.as_bytes(), name.as_bytes())
    }

    #[test]
    fn names_match_as_in_a_shell() {
        for (pattern, name) in [
            ("*", "a"),
            ("*.o", "x.o"),
            (".*", ".x"),
            ("a?c", "abc"),
            ("a?c", "aüc"),
            ("[a-c]*", "b1"),
            ("[!a]*", "b"),
            ("[^a]", "ü"),
            ("[]x]", "]"),
            ("[[:digit:]x]", "7"),
            ("[a", "[a"),
            ("**b", "aab"),
            ("a*b*c", "axxbyyc"),
            ("-*", "-rf"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*", ".x"), ("?", ""), ("[a-c]", "d"), ("[!a]", "a"), ("*.o", "o"), ("a*b", "abc"), ("[[:digit:]]", "x")]
        {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_expands_to_existing_paths() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["a", "b", ".h"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
            fs::write(dir.path().join(folder).join("x.o"), "").unwrap();
        }
        fs::write(dir.path().join(OsStr::from_bytes(b"\xff.o")), "").unwrap();
        let of = |pattern: &str| {
            let mut all = paths(dir.path(), pattern).unwrap();
            all.sort();
            all.into_iter()
                .map(|p| p.strip_prefix(dir.path()).unwrap().as_os_str().as_bytes().to_vec())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("*/x.o"), [b"a/x.o", b"b/x.o"]);
        assert_eq!(of("*.o"), [b"\xff.o".to_vec()]);
        assert_eq!(of("a/../*/*.o"), [b"a/../a/x.o", b"a/../b/x.o"]);
        assert_eq!(of("no*"), [b"no*".to_vec()]);
    }

    proptest! {
        #[test]
        fn any_pattern_and_name_is_handled(pattern in "[a*?\\[\\]!:^\\-\\\\.ü]{0,12}", name in "[a.\\]\\[ü]{0,10}") {
            let _ = fits(&pattern, &name);
        }
    }
}
