//! Finds substitutions in text that the grammar does not parse: patterns of `${x#...}`, here-documents, backticks in
//! backticks.

use std::ops::Range;

/// Returns the ranges of the commands in `$(...)` and backticks, in order; with `files` also those in `<(...)` and
/// `>(...)`. Single quotes are ignored: in a here-document they quote nothing.
pub(super) fn find_all(text: &str, files: bool) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let next = bytes.get(at + 1).copied().unwrap_or_default();
        match bytes[at] {
            b'\\' => at += 1,
            // in `$((1 + $(cmd)))` only the inner command runs
            b'$' if is_arithmetic(&bytes[at..]) => at += 2,
            b'$' | b'<' | b'>' if next == b'(' && (files || bytes[at] == b'$') => {
                let end = closing(bytes, at + 2);
                found.push(at + 2..end);
                at = end;
            }
            b'`' => {
                let start = at + 1;
                at = start;
                while at < bytes.len() && bytes[at] != b'`' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                at = at.min(bytes.len());
                found.push(start..at);
            }
            _ => {}
        }
        at += 1;
    }
    found.retain(|range| text.get(range.clone()).is_some_and(|t| !t.trim().is_empty()));
    found
}

/// Removes `$(...)`, backticks and `${...}` from a text.
pub(super) fn without(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut left = String::new();
    let (mut at, mut from) = (0, 0);
    while at < bytes.len() {
        let end = match bytes[at] {
            b'$' if bytes[at + 1..].starts_with(b"(") => closing(bytes, at + 2),
            b'$' if bytes[at + 1..].starts_with(b"{") => text[at..].find('}').map_or(bytes.len(), |n| at + n),
            b'`' => text[at + 1..].find('`').map_or(bytes.len(), |n| at + 1 + n),
            _ => {
                at += 1;
                continue;
            }
        };
        left.push_str(&text[from..at]);
        at = (end + 1).min(bytes.len());
        from = at;
    }
    left + &text[from..]
}

/// True for `$((1 + 2))`; false for a subshell at the beginning of a substitution: `$((a); b)`.
fn is_arithmetic(bytes: &[u8]) -> bool {
    bytes.starts_with(b"$((") && bytes.get(closing(bytes, 3) + 1) == Some(&b')')
}

/// Returns the index of the bracket that closes the one before `from`, or the length of the text.
fn closing(bytes: &[u8], from: usize) -> usize {
    let mut depth = 1usize;
    let mut quote = None;
    let mut at = from;
    while at < bytes.len() {
        match (bytes[at], quote) {
            (b'\\', None | Some(b'"')) => at += 1,
            (byte, Some(open)) if byte == open => quote = None,
            (_, Some(_)) => {}
            (byte @ (b'\'' | b'"'), None) => quote = Some(byte),
            (b'(', None) => depth += 1,
            (b')', None) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// Unescapes the text between backticks: there a backslash escapes only `$`, a backtick and itself.
pub(super) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let escaped = rest.next_if(|next| c == '\\' && matches!(next, '$' | '`' | '\\'));
        out.push(escaped.unwrap_or(c));
    }
    out
}

/// Returns the ranges of the simple commands of a text that `&&`, `||`, `;` and line ends separate outside of quotes,
/// without the keywords of blocks. For text that the grammar cannot parse as a whole.
pub(super) fn simple_commands(text: &str) -> Vec<Range<usize>> {
    const BLOCKS: [&str; 14] =
        ["then", "do", "else", "elif", "if", "while", "until", "{", "(", "!", "done", "fi", "esac", "}"];
    let mut cuts = Vec::new();
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (c, quote) {
            _ if escaped => {
                escaped = false;
                continue;
            }
            ('\\', None | Some('"')) => escaped = true,
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"' | '`', None) => quote = Some(c),
            (';' | '\n', None) => cuts.push(at..at + 1),
            ('&' | '|', None) if text[at + 1..].starts_with(c) => cuts.push(at..at + 2),
            _ => {}
        }
    }
    let starts = std::iter::once(0).chain(cuts.iter().map(|cut| cut.end));
    let ends = cuts.iter().map(|cut| cut.start).chain([text.len()]);
    let mut found = Vec::new();
    for (mut start, end) in starts.zip(ends) {
        loop {
            let part = text.get(start..end).unwrap_or_default();
            start += part.len() - part.trim_start().len();
            let word = part.split_whitespace().next().unwrap_or_default();
            if !BLOCKS.contains(&word) {
                break;
            }
            start += word.len();
        }
        found.extend((start < end).then_some(start..end));
    }
    if cuts.is_empty() { Vec::new() } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substitutions_are_found_in_plain_text() {
        let cases: [(&str, &[&str]); 9] = [
            (" a $(ls -l) `id`", &["ls -l", "id"]),
            (r"\$(ls) \`id\`", &[]),
            ("$(echo ')' \")\" $(pwd))x", &["echo ')' \")\" $(pwd)"]),
            ("$((1 + $(id)))", &["id"]),
            ("$((ls); (id))", &["(ls); (id)"]),
            (r"`echo \`ls\``", &[r"echo \`ls\`"]),
            ("it's $(ls", &["ls"]),
            ("$() ``", &[]),
            ("<(ls)", &[]),
        ];
        for (text, want) in cases {
            let found: Vec<&str> = find_all(text, false).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, want, "{text}");
        }
        assert_eq!(find_all("<(ls)", true), vec![2..4]);
        assert_eq!(unescape(r"echo \`ls \$x\` \n"), r"echo `ls $x` \n");
    }

    #[test]
    fn only_operators_separate_commands() {
        let of =
            |text: &'static str| simple_commands(text).into_iter().map(|range| text[range].trim()).collect::<Vec<_>>();
        assert_eq!(of("[[ -d ~ ]] && rm -rf ~"), ["[[ -d ~ ]]", "rm -rf ~"]);
        assert_eq!(of("if x; then a 'b; c' | d; fi"), ["x", "a 'b; c' | d"]);
        assert_eq!(of("no operator | here"), Vec::<&str>::new());
    }
}
