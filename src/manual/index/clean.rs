//! Converts terminal text to plain text: overstrike, escape sequences and typographic hyphens.

/// Returns the plain text of a program's output: valid UTF-8, without backspace overstrike and escape sequences,
/// hyphens and minus signs as ASCII, tabs unchanged, carriage returns dropped.
pub(crate) fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // `x\bx` is bold and `_\bx` is underlined: the later character is the real one
            '\u{8}' => {
                out.pop();
            }
            '\u{1b}' => skip_escape(&mut chars),
            '\u{2010}' | '\u{2011}' | '\u{2212}' => out.push('-'),
            '\u{a0}' => out.push(' '),
            '\u{ad}' | '\r' => {}
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Skips a control sequence (`ESC [ ... m`), an operating system command (`ESC ] ... BEL`) or a single-letter escape.
/// Source: ECMA-48, 5.4 and 8.3.89.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
        Some(']') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    chars.next();
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bold_underline_colour_and_links_are_removed() {
        assert_eq!(clean(b"-\x08-a\x08a, _\x08F_\x08I"), "-a, FI");
        assert_eq!(clean(b"\x1b[1m-a\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\ end"), "-a link end");
        assert_eq!(clean("\u{2010}a \u{2212}\u{2212}all".as_bytes()), "-a --all");
        assert_eq!(clean(b"caf\xe9\x00\r\n\tx"), "caf\u{fffd}\n\tx");
        assert_eq!(clean(b"\x1b[999"), "");
        assert_eq!(clean(b"\x08\x08"), "");
    }
}
