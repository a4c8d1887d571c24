//! Renders the blocks of a document as lines for a terminal of 80 columns.

use super::markdown::{Block, Look, Piece, Text};
use crate::term::ui::Role;

/// Most characters of a line.
const MAX_WIDTH: usize = 79;
/// The column of the description of a term.
const COLUMN: usize = 28;
/// Most characters of a piece of code that is not broken.
const MAX_UNBROKEN: usize = 40;

/// A line in its pieces.
pub type Line = Vec<(Role, String)>;

/// Renders blocks as lines, with an empty line between blocks that do not belong together.
pub fn lines(blocks: &[Block]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let is_same_kind = at > 0 && std::mem::discriminant(&blocks[at - 1]) == std::mem::discriminant(block);
        let continues = is_same_kind && matches!(block, Block::Item(..) | Block::Row(..));
        if !lines.is_empty() && !continues {
            lines.push(Line::new());
        }
        match block {
            Block::Heading(text) => lines.push(vec![(Role::Accent, text.to_uppercase())]),
            Block::Paragraph(text) => lines.extend(fill(text, 0, 0)),
            Block::Item(number, depth, text) => {
                let mark = number.map_or_else(|| "- ".to_owned(), |number| format!("{number}. "));
                let indent = 2 + 2 * depth;
                lines.extend(with_mark(fill(text, indent + mark.len(), indent + mark.len()), &mark, indent));
            }
            Block::Code(code) => {
                lines.extend(code.iter().map(|line| vec![(Role::Plain, "    ".into()), (Role::Command, line.clone())]));
            }
            Block::Row(term, description) => lines.extend(row(term, description)),
        }
    }
    lines
}

/// Renders a row of a table: the description is beside a short term, or below a long one.
fn row(term: &Text, description: &Text) -> Vec<Line> {
    let mut head = fill(term, 2, 4);
    let description = fill(description, COLUMN, COLUMN);
    let length = head.last().map_or(0, width);
    match (&mut head[..], description.split_first()) {
        ([only], Some((first, _))) if length + 2 <= COLUMN && !only.is_empty() => {
            only.push((Role::Plain, " ".repeat(COLUMN - length)));
            // without the indent of the first line, whose place the term takes
            only.extend(first.iter().skip(1).cloned());
            head.extend(description.into_iter().skip(1));
        }
        _ => head.extend(description),
    }
    head
}

/// Puts a mark into the indent of the first line.
fn with_mark(mut lines: Vec<Line>, mark: &str, indent: usize) -> Vec<Line> {
    if let Some((_, blank)) = lines.first_mut().and_then(|line| line.first_mut()) {
        *blank = format!("{}{mark}", " ".repeat(indent));
    }
    lines
}

fn width(line: &Line) -> usize {
    line.iter().map(|(_, text)| text.chars().count()).sum()
}

/// Breaks a text into lines, the first indented by `first` blanks and the others by `rest`.
fn fill(text: &Text, first: usize, rest: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut line: Line = vec![(Role::Plain, " ".repeat(first))];
    let mut is_empty = true;
    for word in words(text) {
        let length: usize = word.iter().map(|(_, part)| part.chars().count()).sum();
        if !is_empty && width(&line) + 1 + length > MAX_WIDTH {
            lines.push(std::mem::replace(&mut line, vec![(Role::Plain, " ".repeat(rest))]));
            is_empty = true;
        }
        if !is_empty {
            line.push((Role::Plain, " ".into()));
        }
        line.extend(word);
        is_empty = false;
    }
    if !is_empty {
        lines.push(line);
    }
    lines
}

/// Splits a text into words, each in its pieces: pieces without a blank between them stay together, as does short code.
fn words(text: &Text) -> Vec<Vec<(Role, String)>> {
    let mut words: Vec<Vec<(Role, String)>> = vec![Vec::new()];
    for Piece { look, text } in text {
        let role = match look {
            Look::Plain => Role::Plain,
            Look::Code | Look::Strong => Role::Command,
        };
        if *look == Look::Code && text.chars().count() <= MAX_UNBROKEN {
            if let Some(word) = words.last_mut() {
                word.push((role, text.clone()));
            }
            continue;
        }
        for (at, part) in text.split(char::is_whitespace).enumerate() {
            if at > 0 {
                words.push(Vec::new());
            }
            if let Some(word) = words.last_mut()
                && !part.is_empty()
            {
                word.push((role, part.to_owned()));
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::markdown::blocks;

    fn shown(markdown: &str) -> Vec<String> {
        lines(&blocks(markdown)).iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect()).collect()
    }

    #[test]
    fn a_paragraph_is_broken_between_words_and_code_stays_whole() {
        let text =
            "Each answer carries a verdict, with the word that earned it, and some code: `find . -delete now`, here.";
        assert_eq!(
            shown(text),
            [
                "Each answer carries a verdict, with the word that earned it, and some code:",
                "find . -delete now, here."
            ]
        );
    }

    #[test]
    fn lists_and_tables_are_indented() {
        let list = format!("- {}\n- two\n", "word ".repeat(20).trim());
        let found = shown(&list);
        assert!(found[0].starts_with("  - word") && found[1].starts_with("    word"), "{found:?}");
        assert_eq!(found[2], "  - two");
        let table =
            format!("| | |\n| --- | --- |\n| `a` | {} |\n| `{}` | b |\n", "word ".repeat(15).trim(), "x".repeat(30));
        let found = shown(&table);
        assert_eq!(found[0].find("word"), Some(COLUMN));
        assert!(found[1].starts_with(&format!("{}word", " ".repeat(COLUMN))), "{found:?}");
        assert_eq!(found[2..], [format!("  {}", "x".repeat(30)), format!("{}b", " ".repeat(COLUMN))]);
    }

    #[test]
    fn headings_and_code_are_set_apart() {
        assert_eq!(shown("## One\ntext\n\n    $ caro\n"), ["ONE", "", "text", "", "    $ caro"]);
    }
}
