//! Parses Markdown documents into blocks of text that hold no Markdown syntax.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The emphasis of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// None.
    Plain,
    /// Code: a command, a name.
    Code,
    /// Emphasised.
    Strong,
}

/// A piece of text with one emphasis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its emphasis.
    pub look: Look,
    /// The text.
    pub text: String,
}

/// Text in its pieces.
pub type Text = Vec<Piece>;

/// A block of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Paragraph(Text),
    /// An item of a list, with its number, if it has one, and its nesting depth.
    Item(Option<u64>, usize, Text),
    /// Lines of code.
    Code(Vec<String>),
    /// A row of a table: its term and the description.
    Row(Text, Text),
}

/// Parses a text into blocks. Of links only the text is kept; pictures are left out.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut reader = Reader::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        reader.take(event);
    }
    reader.blocks
}

/// The state of the parser.
#[derive(Debug, Default)]
struct Reader {
    blocks: Vec<Block>,
    text: Text,
    look: Option<Look>,
    /// The next numbers of the open lists.
    lists: Vec<Option<u64>>,
    head: Vec<Text>,
    cells: Vec<Text>,
    in_picture: bool,
    in_code: bool,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.push(self.look.unwrap_or(Look::Plain), &text),
            Event::Code(text) => self.push(Look::Code, &text),
            Event::SoftBreak | Event::HardBreak => self.push(Look::Plain, " "),
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Strong | Tag::Emphasis => self.look = Some(Look::Strong),
            Tag::Image { .. } => self.in_picture = true,
            Tag::CodeBlock(_) => self.in_code = true,
            // a list inside an item: the text before it belongs to the item
            Tag::List(first) => {
                self.item();
                self.lists.push(*first);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Strong | TagEnd::Emphasis => self.look = None,
            TagEnd::Image => self.in_picture = false,
            TagEnd::CodeBlock => {
                self.in_code = false;
                let text: String = self.take_text().into_iter().map(|piece| piece.text).collect();
                self.blocks.push(Block::Code(text.lines().map(str::to_owned).collect()));
            }
            TagEnd::Heading(_) => {
                let text: String = self.take_text().into_iter().map(|piece| piece.text).collect();
                self.blocks.push(Block::Heading(text));
            }
            TagEnd::Paragraph if self.lists.is_empty() => {
                let text = self.take_text();
                if !text.is_empty() {
                    self.blocks.push(Block::Paragraph(text));
                }
            }
            TagEnd::Paragraph => self.push(Look::Plain, " "),
            TagEnd::Item => self.item(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::TableCell => {
                let cell = self.take_text();
                self.cells.push(cell);
            }
            TagEnd::TableHead => self.head = std::mem::take(&mut self.cells),
            TagEnd::TableRow => {
                let cells = std::mem::take(&mut self.cells);
                let (term, description) = row(&self.head, cells);
                self.blocks.push(Block::Row(term, description));
            }
            _ => {}
        }
    }

    /// Ends the open item, if it has text.
    fn item(&mut self) {
        let text = self.take_text();
        if text.iter().all(|piece| piece.text.trim().is_empty()) {
            return;
        }
        let depth = self.lists.len().saturating_sub(1);
        let number = self.lists.last_mut().and_then(|number| {
            let now = *number;
            *number = number.map(|number| number + 1);
            now
        });
        self.blocks.push(Block::Item(number, depth, text));
    }

    fn push(&mut self, look: Look, text: &str) {
        if self.in_picture {
            return;
        }
        match self.text.last_mut() {
            Some(last) if last.look == look => last.text.push_str(text),
            _ => self.text.push(Piece { look, text: text.into() }),
        }
    }

    fn take_text(&mut self) -> Text {
        std::mem::take(&mut self.text)
    }
}

/// Turns a row into a term, its first cell, and a description: the last cell, with the others and their headings in
/// brackets.
fn row(head: &[Text], mut cells: Vec<Text>) -> (Text, Text) {
    if cells.is_empty() {
        return (Text::new(), Text::new());
    }
    let plain = |text: &str| Piece { look: Look::Plain, text: text.into() };
    let term = cells.remove(0);
    let Some(mut description) = cells.pop() else { return (term, Text::new()) };
    for (at, cell) in cells.into_iter().enumerate() {
        let name: String = head.get(at + 1).into_iter().flatten().map(|piece| piece.text.as_str()).collect();
        description.push(plain(if at == 0 { " (" } else { ", " }));
        if !name.is_empty() {
            // a colon separates a name of several words from the cell
            let colon = if name.contains(' ') { ":" } else { "" };
            description.push(plain(&format!("{name}{colon} ")));
        }
        description.extend(cell);
        description.extend((at + 3 == head.len()).then(|| plain(")")));
    }
    (term, description)
}

/// Returns the part of a document below a heading, up to the next heading of the same or a higher rank. Without a
/// heading, the whole document but its title.
pub fn section<'p>(paper: &'p str, heading: Option<&str>) -> Option<&'p str> {
    let rank = |line: &str| {
        let marks = line.bytes().take_while(|byte| *byte == b'#').count();
        (marks > 0 && line.as_bytes().get(marks) == Some(&b' ')).then_some(marks)
    };
    let (mut begin, mut section_rank, mut at) = (None, 0, 0);
    for line in paper.split_inclusive('\n') {
        let next = at + line.len();
        match (begin, rank(line)) {
            (None, Some(marks)) if heading.is_none_or(|heading| line[marks..].trim() == heading) => {
                begin = Some(next);
                section_rank = marks;
            }
            (Some(begin), Some(marks)) if heading.is_some() && marks <= section_rank => {
                return Some(paper[begin..at].trim_matches('\n'));
            }
            _ => {}
        }
        at = next;
    }
    begin.map(|begin| paper[begin..].trim_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &[Piece]) -> String {
        pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_rank() {
        let paper = "# Title\nlead\n\n## One\na\n\n### Deep\nb\n\n## Two\nc\n";
        assert_eq!(section(paper, Some("One")), Some("a\n\n### Deep\nb"));
        assert_eq!(section(paper, Some("Deep")), Some("b"));
        assert_eq!(section(paper, Some("Two")), Some("c"));
        assert_eq!(section(paper, Some("Three")), None);
        assert_eq!(section(paper, None), Some("lead\n\n## One\na\n\n### Deep\nb\n\n## Two\nc"));
    }

    #[test]
    fn no_markdown_syntax_is_left() {
        let found = blocks(
            "**Bold** and `code`, [a link](x.md).\n\n![picture](p.svg)\n\n    $ caro\n\n- one\n  and more\n- two\n\n1. first\n2. second\n",
        );
        let [Block::Paragraph(first), Block::Code(code), rest @ ..] = &found[..] else { panic!("{found:?}") };
        assert_eq!(text(first), "Bold and code, a link.");
        assert_eq!((first[0].look, first[2].look), (Look::Strong, Look::Code));
        assert_eq!(code, &["$ caro"]);
        let items: Vec<_> = rest
            .iter()
            .map(|block| match block {
                Block::Item(number, depth, said) => (*number, *depth, text(said)),
                other => panic!("{other:?}"),
            })
            .collect();
        let item = |number, said: &str| (number, 0, said.to_owned());
        assert_eq!(
            items,
            [item(None, "one and more"), item(None, "two"), item(Some(1), "first"), item(Some(2), "second")]
        );
    }

    #[test]
    fn a_row_is_a_term_and_its_description() {
        let rows = |markdown: &str| -> Vec<(String, String)> {
            let found = blocks(markdown).into_iter();
            found
                .map(|block| match block {
                    Block::Row(term, said) => (text(&term), text(&said)),
                    other => panic!("{other:?}"),
                })
                .collect()
        };
        assert_eq!(rows("| | |\n| --- | --- |\n| `a` | says `b` |\n"), [("a".to_owned(), "says b".to_owned())]);
        let four = "| setting | variable | default | |\n| --- | --- | --- | --- |\n| `t` | `T` | `60` | seconds |\n";
        assert_eq!(rows(four), [("t".to_owned(), "seconds (variable T, default 60)".to_owned())]);
    }
}
