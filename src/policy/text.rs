//! Text that is fit for a prompt: clean, bounded, escaped. Every cut falls between characters and keeps both ends.

/// Takes out what no prompt should have: escape sequences of terminals, other control characters, marks that reorder or
/// hide text. Line ends become `\n`; a line that was overwritten (`\r`) keeps its last state. Where no line ends in `\n`,
/// `\r` is what ends them.
pub fn normalise(text: &str) -> String {
    let text = text.trim_end_matches('\r');
    let ends_lines = !text.contains('\n');
    // the next character goes to where the line begins
    let mut back = false;
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\r' if ends_lines => clean.push('\n'),
            '\r' => back = true,
            '\n' => {
                back = false;
                clean.push(c);
            }
            c if c != '\t' && (c.is_control() || is_hidden(c)) => {}
            c => {
                if std::mem::take(&mut back) {
                    let line = clean.rfind('\n').map_or(0, |at| at + 1);
                    clean.truncate(line);
                }
                clean.push(c);
            }
        }
    }
    clean
}

/// Skips a terminal's escape sequence after its first character (ECMA-48: CSI ends in `@`..`~`, OSC in BEL or ST).
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

/// Characters without a look of their own that change the order or the joining of others, or hide among them (Unicode
/// UAX #9, the zero-width ones, selectors of variants). Joiners (U+200C, U+200D) stay, for some scripts and emoji need
/// them; so do the two selectors (U+FE0E, U+FE0F) that stand in half of all emoji.
pub fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
        | '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{fe00}'..='\u{fe0d}' | '\u{e0000}'..='\u{e007f}'
        | '\u{e0100}'..='\u{e01ef}')
}

/// Text that cannot end the fence it stands in.
pub fn escape(text: &str) -> String {
    text.replace("</observation", "&lt;/observation").replace("<observation", "&lt;observation")
}

/// Others' words, marked as data by a tag that they cannot close.
pub fn fence(name: &str, text: &str) -> String {
    let close = format!("</{name}");
    format!("<{name}>\n{}\n</{name}>", text.replace(&close, &close.replace('<', "&lt;")))
}

/// At most about `limit` characters: whole if it fits, else its beginning and its end with a note of what is hidden.
pub fn compress(text: &str, limit: usize) -> String {
    let total = text.chars().count();
    if total <= limit {
        return text.to_owned();
    }
    let half = limit / 2;
    let (head, tail) = head_tail(text, half, half);
    format!("{head}\n[... {} characters hidden ...]\n{tail}", total - 2 * half)
}

/// The first `head` and the last `tail` characters; they do not overlap.
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
    fn terminals_and_hidden_marks_leave_no_trace() {
        assert_eq!(
            normalise("\u{1b}[31mred\u{1b}[0m\r\n10%\r20%\r\nx\u{7}\u{202e}y\u{1b}]0;title\u{7}z"),
            "red\n20%\nxyz"
        );
        assert_eq!(normalise("naïve 日本 👩\u{200d}💻 ⚠\u{fe0f}\tok"), "naïve 日本 👩\u{200d}💻 ⚠\u{fe0f}\tok");
        assert_eq!(normalise("a\u{ad}b\u{180e}c\u{fe00}d\u{e0100}e"), "abcde");
        assert_eq!(normalise("\u{1b}"), "");
    }

    #[test]
    fn no_line_is_lost_to_what_ends_it() {
        assert_eq!(normalise("copied 12 files\r"), "copied 12 files");
        assert_eq!(normalise("a\n10%\r100%\r"), "a\n100%");
        assert_eq!(normalise("10%\r100%\r\r\nb\r\n"), "100%\nb\n");
        assert_eq!(normalise("title\rfirst\rlast\r"), "title\nfirst\nlast");
    }

    #[test]
    fn both_ends_survive() {
        let text = format!("first line\n{}\nlast line", "x".repeat(10_000));
        let short = compress(&text, 2000);
        assert!(short.starts_with("first line") && short.ends_with("last line"));
        assert!(short.contains("8021 characters hidden"), "{short}");
        assert_eq!(compress("short", 2000), "short");
    }

    proptest! {
        #[test]
        fn no_cut_falls_into_a_character(text in "\\PC{0,300}", limit in 0usize..100) {
            let short = compress(&text, limit);
            prop_assert!(short.chars().count() <= limit + 60);
            let (head, tail) = head_tail(&text, limit, limit);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert!(head.len() + tail.len() <= text.len());
        }

        #[test]
        fn the_fence_holds(text in "(</?observations?>|[a-z<>/&]){0,40}") {
            prop_assert!(!escape(&text).contains("</observation"));
        }
    }
}
