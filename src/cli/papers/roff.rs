//! Blocks of a paper in the language of manual pages.

use super::markdown::{Block, Look, Piece, Text};

/// The blocks below a heading of their own.
pub fn section(heading: &str, blocks: &[Block]) -> String {
    let mut page = format!(".SH {}\n", quoted(&heading.to_uppercase()));
    for block in blocks {
        match block {
            Block::Heading(text) => page.push_str(&format!(".SS {}\n", quoted(text))),
            Block::Paragraph(text) => page.push_str(&format!(".PP\n{}\n", line(text))),
            Block::Item(None, _, text) => page.push_str(&format!(".IP \\(bu 3\n{}\n", line(text))),
            Block::Item(Some(number), _, text) => page.push_str(&format!(".IP {number}. 4\n{}\n", line(text))),
            Block::Code(code) => {
                page.push_str(".PP\n.RS 4\n.nf\n");
                code.iter().for_each(|code| page.push_str(&format!("{}\n", begun(&escaped(code)))));
                page.push_str(".fi\n.RE\n");
            }
            Block::Row(term, said) => page.push_str(&format!(".TP\n{}\n{}\n", line(term), line(said))),
        }
    }
    page
}

/// A text in one line, in its fonts.
fn line(text: &Text) -> String {
    let pieces = text.iter().map(|Piece { look, text }| match look {
        Look::Plain => escaped(text),
        Look::Code | Look::Strong => format!("\\fB{}\\fR", escaped(text)),
    });
    let joined: String = pieces.collect();
    begun(&joined.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A text without what the language takes for its own.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// A line that does not begin as an order does.
fn begun(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text).replace('"', "\\(dq"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::markdown::blocks;

    #[test]
    fn what_the_language_takes_for_its_own_is_escaped() {
        let page = section("What is kept", &blocks("Take `a\\b -x`, **now**.\n\n    .hidden\n\n- one\n"));
        assert_eq!(
            page,
            ".SH \"WHAT IS KEPT\"\n.PP\nTake \\fBa\\eb \\-x\\fR, \\fBnow\\fR.\n.PP\n.RS 4\n.nf\n\\&.hidden\n.fi\n.RE\n.IP \\(bu 3\none\n"
        );
    }

    #[test]
    fn rows_are_terms() {
        assert_eq!(
            section("x", &blocks("| | |\n| --- | --- |\n| `a` | b `c` d |\n")),
            ".SH \"X\"\n.TP\n\\fBa\\fR\nb \\fBc\\fR d\n"
        );
    }
}
