//! Prepares text for a prompt: cleans, shortens and escapes it. Cuts never split a character and keep both ends.

/// Removes what no prompt should have: terminal escape sequences, other control characters, and characters that
/// reorder or hide text. Line ends become `\n`; a line overwritten with `\r` keeps its last state. If no line ends
/// with `\n`, `\r` counts as the line end.
pub fn normalise(text: &str) -> String {
    let text = text.trim_end_matches('\r');
    let ends_lines = !text.contains('\n');
    // true if the next character overwrites the line from its beginning
    let mut is_rewound = false;
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\r' if ends_lines => clean.push('\n'),
            '\r' => is_rewound = true,
            '\n' => {
                is_rewound = false;
                clean.push(c);
            }
            c if c != '\t' && (c.is_control() || is_hidden(c)) => {}
            c => {
                if std::mem::take(&mut is_rewound) {
                    let line = clean.rfind('\n').map_or(0, |at| at + 1);
                    clean.truncate(line);
                }
                clean.push(c);
            }
        }
    }
    clean
}

/// Skips the rest of a terminal escape sequence (ECMA-48: CSI ends in `@`..`~`, OSC in BEL or ST).
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => {
            for c in chars.by_ref() {
                if ('@'..='~').contains(&c) {
                    break;
                }
            }
        }
        Some(']') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        _ => {}
    }
}

/// True for invisible characters that reorder, join or hide others (Unicode UAX #9, zero-width characters, variation
/// selectors). Joiners (U+200C, U+200D) are not included, since some scripts and emoji need them; nor are the two
/// selectors (U+FE0E, U+FE0F) that many emoji have.
pub fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
        | '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{fe00}'..='\u{fe0d}' | '\u{e0000}'..='\u{e007f}'
        | '\u{e0100}'..='\u{e01ef}')
}

/// Escapes text so that it cannot close the fence around it.
pub fn escape(text: &str) -> String {
    text.replace("</observation", "&lt;/observation").replace("<observation", "&lt;observation")
}

/// Encloses untrusted text in a tag that it cannot close, which marks it as data.
pub fn fence(name: &str, text: &str) -> String {
    let close = format!("</{name}");
    format!("<{name}>\n{}\n</{name}>", text.replace(&close, &close.replace('<', "&lt;")))
}

/// Shortens text to about `limit` characters: its beginning and its end with a note of what is hidden.
pub fn compress(text: &str, limit: usize) -> String {
    let total = text.chars().count();
    if total <= limit {
        return text.to_owned();
    }
    let half = limit / 2;
    let (head, tail) = head_tail(text, half, half);
    format!("{head}\n[... {} characters hidden ...]\n{tail}", total - 2 * half)
}

/// Returns the first `head` and the last `tail` characters, which do not overlap.
pub fn head_tail(text: &str, head: usize, tail: usize) -> (&str, &str) {
    let begin = text.char_indices().nth(head).map_or(text.len(), |(at, _)| at);
    let end = match tail {
        0 => text.len(),
        _ => text.char_indices().rev().nth(tail - 1).map_or(0, |(at, _)| at).max(begin),
    };
    (&text[..begin], &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_and_hidden_characters_are_removed() {
        assert_eq!(
            normalise("\u{1b}[31mred\u{1b}[0m\r\n10%\r20%\r\nx\u{7}\u{202e}y\u{1b}]0;title\u{7}z"),
            "red\n20%\nxyz"
        );
        assert_eq!(normalise("naïve 日本 👩\u{200d}💻 ⚠\u{fe0f}\tok"), "naïve 日本 👩\u{200d}💻 ⚠\u{fe0f}\tok");
        assert_eq!(normalise("a\u{ad}b\u{180e}c\u{fe00}d\u{e0100}e"), "abcde");
        assert_eq!(normalise("\u{1b}"), "");
    }

    #[test]
    fn any_kind_of_line_end_keeps_the_text() {
        assert_eq!(normalise("copied 12 files\r"), "copied 12 files");
        assert_eq!(normalise("a\n10%\r100%\r"), "a\n100%");
        assert_eq!(normalise("10%\r100%\r\r\nb\r\n"), "100%\nb\n");
        assert_eq!(normalise("title\rfirst\rlast\r"), "title\nfirst\nlast");
    }

    #[test]
    fn compress_keeps_both_ends() {
        let text = format!("first line\n{}\nlast line", "x".repeat(10_000));
        let short = compress(&text, 2000);
        assert!(short.starts_with("first line") && short.ends_with("last line"));
        assert!(short.contains("8021 characters hidden"), "{short}");
        assert_eq!(compress("short", 2000), "short");
    }

    proptest! {
        #[test]
        fn no_cut_splits_a_character(text in "\\PC{0,300}", limit in 0usize..100) {
            let short = compress(&text, limit);
            prop_assert!(short.chars().count() <= limit + 60);
            let (head, tail) = head_tail(&text, limit, limit);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert!(head.len() + tail.len() <= text.len());
        }

        #[test]
        fn text_cannot_close_its_fence(text in "(</?observations?>|[a-z<>/&]){0,40}") {
            prop_assert!(!escape(&text).contains("</observation"));
        }
    }
}
