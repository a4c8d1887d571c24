//! Documents that are no plain text, as markdown: their headings lead the passages and name their source.
//!
//! | ending | read by | headings |
//! | --- | --- | --- |
//! | `.html`, `.htm`, `.xhtml` | a tokenizer; scripts, styles and what only steers are left out | `h1` to `h6`, the title |
//! | `.docx` | the XML of its body, unpacked up to a limit | styles of headings |
//! | `.pdf` | `pdftotext` of the system (poppler-utils), in the sandbox, with limits of time, memory and output | one a page |
//!
//! A file that is none of what its name says, or asks for more than it may, costs its own passages: it is passed over with the
//! reason.

mod docx;
mod html;
mod pdf;

use std::path::{Path, PathBuf};

/// The most bytes of such a file: pictures may stand in it.
const PACKED: u64 = 32 << 20;
/// The most bytes of text that is made of one.
const TEXT: usize = 4 << 20;

/// Why a file is passed over.
pub(super) const TOO_LONG: &str = "its text has more than 4 MiB";

/// A form that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A web page.
    Html,
    /// A document of word processors.
    Docx,
    /// Pages as they are printed.
    Pdf,
}

/// The program that PDF files are read with.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// `pdftotext`; none where it is not here.
    pub pdftotext: Option<PathBuf>,
}

impl Programs {
    /// Those of this machine.
    pub fn find() -> Self {
        Self { pdftotext: caro_exec::find("pdftotext") }
    }
}

impl Format {
    /// The form of a file of this name; nothing for one that is a text as it is.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        match extension.as_str() {
            "html" | "htm" | "xhtml" => Some(Self::Html),
            "docx" => Some(Self::Docx),
            "pdf" => Some(Self::Pdf),
            _ => None,
        }
    }

    /// The most bytes of a file of this form.
    pub(super) fn most(self) -> u64 {
        match self {
            Self::Html => super::walk::MAX_BYTES,
            Self::Docx | Self::Pdf => PACKED,
        }
    }
}

/// A web page as markdown.
pub(super) fn html(text: &str) -> Result<String, &'static str> {
    bounded(html::markdown(text))
}

/// A file of this form as markdown.
///
/// # Errors
/// Why it is passed over.
pub(super) fn packed(format: Format, path: &Path, bytes: &[u8], programs: &Programs) -> Result<String, &'static str> {
    bounded(match format {
        Format::Html => html::markdown(&String::from_utf8_lossy(bytes)),
        Format::Docx => docx::markdown(bytes)?,
        Format::Pdf => pdf::markdown(path, bytes, programs)?,
    })
}

fn bounded(text: String) -> Result<String, &'static str> {
    if text.len() > TEXT { Err(TOO_LONG) } else { Ok(text) }
}

/// Markdown that is written block by block.
#[derive(Debug, Default)]
struct Page {
    text: String,
    /// The block under way, its white space joined.
    block: String,
    /// Its beginning: `# `, `- `.
    mark: String,
}

impl Page {
    /// Words of the block under way.
    fn say(&mut self, words: &str) {
        for (at, piece) in words.split(char::is_whitespace).enumerate() {
            let apart = at > 0 && !self.block.is_empty() && !self.block.ends_with([' ', '\n']);
            if apart {
                self.block.push(' ');
            }
            self.block.push_str(piece);
        }
    }

    /// Text as it stands, line by line.
    fn say_as_it_is(&mut self, words: &str) {
        self.block.push_str(words);
    }

    /// The block is over; the next one begins so.
    fn begin(&mut self, mark: &str) {
        let block = self.block.trim_matches('\n').trim_end();
        let block = if self.mark.is_empty() { block } else { block.trim_start() };
        if !block.trim().is_empty() {
            let list = self.mark.starts_with('-') && self.text.lines().next_back().is_some_and(|l| l.starts_with('-'));
            self.text.push_str(if self.text.is_empty() {
                ""
            } else if list {
                "\n"
            } else {
                "\n\n"
            });
            self.text.push_str(&self.mark);
            self.text.push_str(block);
        }
        self.block.clear();
        mark.clone_into(&mut self.mark);
    }

    /// The whole text.
    fn end(mut self) -> String {
        self.begin("");
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text
    }
}

/// The mark of a heading of this level.
fn heading(level: usize) -> String {
    format!("{} ", "#".repeat(level.clamp(1, 6)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stand_apart_and_white_space_is_joined() {
        let mut page = Page::default();
        page.say("  before \n");
        page.begin("# ");
        page.say(" A  title ");
        page.begin("");
        page.say("one");
        page.say(" two");
        page.begin("- ");
        page.say("a");
        page.begin("- ");
        page.say("b");
        page.begin("");
        page.say_as_it_is("\n  x\n    y\n");
        assert_eq!(page.end(), "before\n\n# A title\n\none two\n\n- a\n- b\n\n  x\n    y\n");
        assert_eq!(Page::default().end(), "");
    }

    #[test]
    fn the_name_says_what_it_is() {
        for (name, format) in [
            ("a.HTML", Some(Format::Html)),
            ("a.htm", Some(Format::Html)),
            ("b.docx", Some(Format::Docx)),
            ("c.pdf", Some(Format::Pdf)),
            ("c.md", None),
            ("pdf", None),
        ] {
            assert_eq!(Format::of(Path::new(name)), format, "{name}");
        }
    }
}
