//! Breaks text between words to fit a terminal.

use unicode_width::UnicodeWidthStr;

/// The number of columns of a text on a terminal. Ideographs and emoji take two.
pub fn columns_of(text: &str) -> usize {
    text.width()
}

/// Splits a text after blanks, but not within a command in backquotes: it is copied, and the terminal itself breaks one
/// that is longer than a line. Text in double quotes is kept together if it is less than `width` columns wide.
fn pieces(text: &str, width: usize) -> Vec<&str> {
    let (mut found, mut start, mut kept_to, mut end_mark) = (Vec::new(), 0, 0, None);
    for (at, c) in text.char_indices().filter(|(_, c)| matches!(c, ' ' | '`' | '"')) {
        let next = at + 1;
        if at < kept_to || end_mark == Some(at) {
            continue;
        }
        if c == ' ' {
            found.push(&text[start..next]);
            start = next;
        } else if let Some(length) = text[next..].find(c) {
            let end = next + length;
            match c == '`' || painted_columns(&text[next..end]) < width {
                true => kept_to = end + 1,
                false => end_mark = Some(end),
            }
        }
    }
    found.push(&text[start..]);
    found
}

/// The number of columns of a painted text: escape sequences take none.
fn painted_columns(text: &str) -> usize {
    columns_of(&anstream::adapter::strip_str(text).to_string())
}

/// Breaks the parts of a text, each with its role, between words into lines of at most `width` columns.
pub fn break_parts<R: Copy>(parts: &[(R, String)], width: usize) -> Vec<Vec<(R, &str)>> {
    let mut lines = vec![Vec::new()];
    let mut used = 0;
    for (role, text) in parts {
        for word in pieces(text, width) {
            let spaced = columns_of(word);
            let shown = spaced - (word.len() - word.trim_end_matches(' ').len());
            if used > 0 && used + shown > width {
                lines.push(Vec::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                line.push((*role, word));
            }
            used += spaced;
        }
    }
    lines
}

/// Breaks a painted line at blanks into lines of at most `width` columns.
pub fn folded(painted: &str, width: usize, indent: &str) -> String {
    let mut text = String::with_capacity(painted.len());
    let (mut used, mut has_word) = (0, false);
    for piece in pieces(painted, width) {
        let (shown, spaced) = (painted_columns(piece.trim_end_matches(' ')), painted_columns(piece));
        if has_word && used + shown > width {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
            text.push_str(indent);
            (used, has_word) = (indent.len(), false);
        }
        text.push_str(piece);
        used += spaced;
        has_word |= shown > 0;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::ui::Role;

    #[test]
    fn a_text_is_broken_between_words_and_loses_nothing() {
        let parts = [(Role::Danger, "danger"), (Role::Plain, ": it deletes everything below the folder")];
        let parts = parts.map(|(role, text)| (role, text.to_owned()));
        let lines = |width| -> Vec<String> {
            break_parts(&parts, width).iter().map(|line| line.iter().map(|(_, text)| *text).collect()).collect()
        };
        assert_eq!(lines(usize::MAX), ["danger: it deletes everything below the folder"]);
        assert_eq!(lines(20), ["danger: it deletes ", "everything below the ", "folder"]);
        for width in 0..60 {
            assert_eq!(lines(width).concat(), lines(usize::MAX)[0], "{width}");
        }
    }

    #[test]
    fn a_painted_line_is_folded_by_its_visible_width() {
        let bold = anstyle::Style::new().bold();
        let word = format!("{bold}danger{bold:#}");
        let line = format!("type {word} to run it, e to edit it:");
        assert_eq!(folded(&line, 80, ""), line);
        assert_eq!(folded(&line, 19, "  "), format!("type {word} to run\n  it, e to edit it:"));
        assert_eq!(folded("  a  b", 80, ""), "  a  b");
        assert_eq!(folded("  abcdef", 4, "  "), "  abcdef", "no line is left empty");
    }

    #[test]
    fn a_command_to_be_copied_is_not_broken() {
        assert_eq!(folded("say `caro undo --list` again", 20, ""), "say\n`caro undo --list`\nagain");
        assert_eq!(folded("say `caro undo --list`, again", 10, ""), "say\n`caro undo --list`,\nagain");
        assert_eq!(folded("say \"find files\" now", 15, ""), "say\n\"find files\"\nnow");
        // a long quotation, whose end opens no other, and a mark that stands alone
        assert_eq!(folded("\"one two three\" `four", 8, ""), "\"one two\nthree\"\n`four");
        assert_eq!(folded("\"one two three\" four \"five\"", 8, ""), "\"one two\nthree\"\nfour\n\"five\"");
        assert_eq!(folded("\"one `two 2` three\"", 8, ""), "\"one\n`two 2`\nthree\"");
        for text in ["a `b c` d", "`", "a \"b", "  x  ", "", "ä `ö ü` ß"] {
            assert_eq!(pieces(text, 80).concat(), text);
        }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(folded("日本語 の 文字 は 幅", 10, ""), "日本語 の\n文字 は 幅");
        assert_eq!(folded("👍 👩\u{200d}💻 ok", 5, ""), "👍 👩\u{200d}💻\nok");
        assert_eq!(folded("e\u{301}te\u{301} ok", 6, ""), "e\u{301}te\u{301} ok", "combining marks take none");
        let parts = [(Role::Plain, "文字 文字 文字".to_owned())];
        assert_eq!(break_parts(&parts, 9).len(), 2);
    }
}
