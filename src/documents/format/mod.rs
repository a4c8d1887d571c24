//! Converts documents that are not plain text to markdown, whose headings name the source of passages.
//!
//! | extension | converted by | headings |
//! | --- | --- | --- |
//! | `.html`, `.htm`, `.xhtml` | a tokenizer; scripts, styles and navigation are left out | `h1` to `h6`, the title |
//! | `.docx` | the XML of its body, unpacked up to a limit | styles of headings |
//! | `.pdf` | `pdftotext` of the system (poppler-utils), in the sandbox, with limits of time, memory and output | one per page |
//!
//! A file that is not in the format of its name, or that exceeds a limit, is skipped, with the reason.

mod docx;
mod html;
mod pdf;

use std::path::{Path, PathBuf};

/// Most bytes of such a file, which may contain pictures.
const MAX_PACKED: u64 = 32 << 20;
/// Most bytes of the text of a document.
const MAX_TEXT: usize = 4 << 20;

/// The reason why a file is skipped.
pub(super) const TOO_LONG: &str = "its text has more than 4 MiB";

/// A format that is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A web page.
    Html,
    /// A document of a word processor.
    Docx,
    /// A printed document.
    Pdf,
}

/// The programs for converting PDF files.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// The path of `pdftotext`; `None` if it is not installed.
    pub pdftotext: Option<PathBuf>,
}

impl Programs {
    /// Finds the programs of this machine.
    pub fn find() -> Self {
        Self { pdftotext: caro_exec::find("pdftotext") }
    }
}

impl Format {
    /// Returns the format of a file by its name; `None` for plain text.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        match extension.as_str() {
            "html" | "htm" | "xhtml" => Some(Self::Html),
            "docx" => Some(Self::Docx),
            "pdf" => Some(Self::Pdf),
            _ => None,
        }
    }

    /// Returns the most bytes of a file of this format.
    pub(super) fn max_bytes(self) -> u64 {
        match self {
            Self::Html => super::walk::MAX_BYTES,
            Self::Docx | Self::Pdf => MAX_PACKED,
        }
    }
}

/// Converts a web page to markdown.
pub(super) fn html(text: &str) -> Result<String, &'static str> {
    check_length(html::markdown(text))
}

/// Converts a file of this format to markdown.
///
/// # Errors
/// The reason why it is skipped.
pub(super) fn convert(format: Format, path: &Path, bytes: &[u8], programs: &Programs) -> Result<String, &'static str> {
    check_length(match format {
        Format::Html => html::markdown(&String::from_utf8_lossy(bytes)),
        Format::Docx => docx::markdown(bytes)?,
        Format::Pdf => pdf::markdown(path, bytes, programs)?,
    })
}

fn check_length(text: String) -> Result<String, &'static str> {
    if text.len() > MAX_TEXT { Err(TOO_LONG) } else { Ok(text) }
}

/// Builds markdown block by block.
#[derive(Debug, Default)]
struct Page {
    text: String,
    /// The current block, with white space collapsed.
    block: String,
    /// Its prefix: `# `, `- `.
    mark: String,
}

impl Page {
    /// Appends words to the current block.
    fn push(&mut self, words: &str) {
        for (at, piece) in words.split(char::is_whitespace).enumerate() {
            let apart = at > 0 && !self.block.is_empty() && !self.block.ends_with([' ', '\n']);
            if apart {
                self.block.push(' ');
            }
            self.block.push_str(piece);
        }
    }

    /// Appends text unchanged.
    fn push_raw(&mut self, words: &str) {
        self.block.push_str(words);
    }

    /// Ends the current block and sets the prefix of the next one.
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

    /// Returns the text.
    fn end(mut self) -> String {
        self.begin("");
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text
    }
}

/// Returns the prefix of a heading.
fn heading(level: usize) -> String {
    format!("{} ", "#".repeat(level.clamp(1, 6)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_separated_and_white_space_is_collapsed() {
        let mut page = Page::default();
        page.push("  before \n");
        page.begin("# ");
        page.push(" A  title ");
        page.begin("");
        page.push("one");
        page.push(" two");
        page.begin("- ");
        page.push("a");
        page.begin("- ");
        page.push("b");
        page.begin("");
        page.push_raw("\n  x\n    y\n");
        assert_eq!(page.end(), "before\n\n# A title\n\none two\n\n- a\n- b\n\n  x\n    y\n");
        assert_eq!(Page::default().end(), "");
    }

    #[test]
    fn the_file_name_determines_the_format() {
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
