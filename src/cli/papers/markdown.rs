//! Our papers as blocks of text, however they are then shown: no mark of Markdown is left in them.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// How a piece of text stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Not at all.
    Plain,
    /// Code: a command, a name.
    Code,
    /// Emphasised.
    Strong,
}

/// A piece of text in one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// How it stands out.
    pub look: Look,
    /// The text.
    pub text: String,
}

/// Text in its pieces.
pub type Text = Vec<Piece>;

/// A block of a paper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Paragraph(Text),
    /// An item of a list, with its number where it has one, and how deep it stands.
    Item(Option<u64>, usize, Text),
    /// Lines of code.
    Code(Vec<String>),
    /// A row of a table: what it is about, and what is said of it.
    Row(Text, Text),
}

/// The blocks of a text. Links are their words, pictures are left out.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut reader = Reader::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        reader.take(event);
    }
    reader.blocks
}

/// The state of reading.
#[derive(Debug, Default)]
struct Reader {
    blocks: Vec<Block>,
    text: Text,
    look: Option<Look>,
    /// The numbers of the lists that are open.
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
            // a list in an item: what stands before it is the item's own
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
                let text: String = self.taken().into_iter().map(|piece| piece.text).collect();
                self.blocks.push(Block::Code(text.lines().map(str::to_owned).collect()));
            }
            TagEnd::Heading(_) => {
                let text: String = self.taken().into_iter().map(|piece| piece.text).collect();
                self.blocks.push(Block::Heading(text));
            }
            TagEnd::Paragraph if self.lists.is_empty() => {
                let text = self.taken();
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
                let cell = self.taken();
                self.cells.push(cell);
            }
            TagEnd::TableHead => self.head = std::mem::take(&mut self.cells),
            TagEnd::TableRow => {
                let cells = std::mem::take(&mut self.cells);
                let (term, said) = row(&self.head, cells);
                self.blocks.push(Block::Row(term, said));
            }
            _ => {}
        }
    }

    /// Ends the item that is open, if it has said something.
    fn item(&mut self) {
        let text = self.taken();
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

    fn taken(&mut self) -> Text {
        std::mem::take(&mut self.text)
    }
}

/// A row in two parts: its first cell, and the last with those between in brackets, under the names that they have.
fn row(head: &[Text], mut cells: Vec<Text>) -> (Text, Text) {
    if cells.is_empty() {
        return (Text::new(), Text::new());
    }
    let plain = |text: &str| Piece { look: Look::Plain, text: text.into() };
    let term = cells.remove(0);
    let Some(mut said) = cells.pop() else { return (term, Text::new()) };
    for (at, cell) in cells.into_iter().enumerate() {
        let name: String = head.get(at + 1).into_iter().flatten().map(|piece| piece.text.as_str()).collect();
        said.push(plain(if at == 0 { " (" } else { ", " }));
        if !name.is_empty() {
            // a name of several words is told from what it is the name of
            let sign = if name.contains(' ') { ":" } else { "" };
            said.push(plain(&format!("{name}{sign} ")));
        }
        said.extend(cell);
        said.extend((at + 3 == head.len()).then(|| plain(")")));
    }
    (term, said)
}

/// The part of a paper below a heading, up to the next one of its rank. Without a heading the whole paper but its title.
pub fn section<'p>(paper: &'p str, heading: Option<&str>) -> Option<&'p str> {
    let rank = |line: &str| {
        let marks = line.bytes().take_while(|byte| *byte == b'#').count();
        (marks > 0 && line.as_bytes().get(marks) == Some(&b' ')).then_some(marks)
    };
    let (mut begin, mut of, mut at) = (None, 0, 0);
    for line in paper.split_inclusive('\n') {
        let next = at + line.len();
        match (begin, rank(line)) {
            (None, Some(marks)) if heading.is_none_or(|heading| line[marks..].trim() == heading) => {
                begin = Some(next);
                of = marks;
            }
            (Some(begin), Some(marks)) if heading.is_some() && marks <= of => {
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
    fn a_section_ends_where_the_next_of_its_rank_begins() {
        let paper = "# Title\nlead\n\n## One\na\n\n### Deep\nb\n\n## Two\nc\n";
        assert_eq!(section(paper, Some("One")), Some("a\n\n### Deep\nb"));
        assert_eq!(section(paper, Some("Deep")), Some("b"));
        assert_eq!(section(paper, Some("Two")), Some("c"));
        assert_eq!(section(paper, Some("Three")), None);
        assert_eq!(section(paper, None), Some("lead\n\n## One\na\n\n### Deep\nb\n\n## Two\nc"));
    }

    #[test]
    fn no_mark_of_markdown_is_left() {
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
    fn a_row_is_what_it_is_about_and_what_is_said_of_it() {
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
