//! Renders the blocks of a document as roff, the language of manual pages.

use super::markdown::{Block, Look, Piece, Text};

/// Renders blocks as a section with this heading.
pub fn section(heading: &str, blocks: &[Block]) -> String {
    let mut page = format!(".SH {}\n", quote(&heading.to_uppercase()));
    for block in blocks {
        match block {
            Block::Heading(text) => page.push_str(&format!(".SS {}\n", quote(text))),
            Block::Paragraph(text) => page.push_str(&format!(".PP\n{}\n", line(text))),
            Block::Item(None, _, text) => page.push_str(&format!(".IP \\(bu 3\n{}\n", line(text))),
            Block::Item(Some(number), _, text) => page.push_str(&format!(".IP {number}. 4\n{}\n", line(text))),
            Block::Code(code) => {
                page.push_str(".PP\n.RS 4\n.nf\n");
                code.iter().for_each(|code| page.push_str(&format!("{}\n", guard_line(&escape(code)))));
                page.push_str(".fi\n.RE\n");
            }
            Block::Row(term, description) => page.push_str(&format!(".TP\n{}\n{}\n", line(term), line(description))),
        }
    }
    page
}

/// Renders a text as one line, with its fonts.
fn line(text: &Text) -> String {
    let pieces = text.iter().map(|Piece { look, text }| match look {
        Look::Plain => escape(text),
        Look::Code | Look::Strong => format!("\\fB{}\\fR", escape(text)),
    });
    let joined: String = pieces.collect();
    guard_line(&joined.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Escapes the characters that roff interprets.
fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// Keeps a line from being read as a roff request.
fn guard_line(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

fn quote(text: &str) -> String {
    format!("\"{}\"", escape(text).replace('"', "\\(dq"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::markdown::blocks;

    #[test]
    fn characters_that_roff_interprets_are_escaped() {
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
