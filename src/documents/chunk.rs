//! Cuts documents into passages. Together, the passages of a document are its complete text in order, without
//! overlaps.
//!
//! Markdown is cut at its headings and titled by them, code at the beginning of top-level items, other text between
//! paragraphs. Whatever is still too long is cut at a blank line, else at a line's end, else between words. Code is
//! cut by a rule for lines that fits all languages: an item begins at the margin after a blank line. Code that is
//! indented throughout is cut like text.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;

/// Most bytes of a passage: about what the embedder reads (256 tokens), so that no text is ignored.
pub const MAX_BYTES: usize = 1200;

/// Most lines of a passage of markdown or code, and of other text.
const MAX_LINES: [usize; 2] = [60, 50];

/// Adjacent items of code with at most this many bytes together share a passage, such as a list of imports.
const MAX_JOINED: usize = 500;

/// Most bytes of a title.
const MAX_TITLE: usize = 120;

/// The way a document is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// At its headings.
    Markdown,
    /// Between its top-level items.
    Code,
    /// Between its paragraphs.
    Text,
}

impl Kind {
    /// All kinds with their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("markdown", Self::Markdown), ("code", Self::Code), ("text", Self::Text)];

    /// Returns the kind of a file by its name.
    pub fn of(path: &Path) -> Self {
        const CODE: &[&str] = &[
            "bash", "c", "cc", "cpp", "cs", "css", "dart", "elm", "ex", "exs", "fish", "go", "h", "hpp", "hs", "java",
            "jl", "js", "jsx", "kt", "lua", "m", "ml", "nix", "php", "pl", "pm", "proto", "ps1", "py", "r", "rb", "rs",
            "scala", "sh", "sql", "swift", "tf", "ts", "tsx", "vue", "zig", "zsh",
        ];
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        match extension.as_str() {
            "md" | "markdown" | "mdx" | "mkd" | "qmd" | "rmd" => Self::Markdown,
            // these are converted to markdown (`format`)
            "html" | "htm" | "xhtml" | "docx" | "pdf" => Self::Markdown,
            code if CODE.contains(&code) => Self::Code,
            _ => Self::Text,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// A passage of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its topic: the headings above it, or the first line of an item. Often empty.
    pub title: String,
    /// Its first line, from 1.
    pub first: usize,
    /// Its last line.
    pub last: usize,
    /// Its byte range.
    pub range: Range<usize>,
}

/// Cuts a text into passages of at most [`MAX_BYTES`]; a blank text has none.
pub fn chunks(kind: Kind, text: &str) -> Vec<Chunk> {
    let sections = match kind {
        Kind::Markdown => headings(text),
        Kind::Code => items(text),
        Kind::Text => Vec::new(),
    };
    let max_lines = MAX_LINES[usize::from(kind == Kind::Text)];
    let mut chunks: Vec<Chunk> = Vec::new();
    for (range, title) in sections_of(text, sections) {
        for piece in pieces(text, range, max_lines) {
            chunks.push(Chunk { title: title.clone(), first: 0, last: 0, range: piece });
        }
    }
    merge_blank(text, &mut chunks);
    set_lines(text, &mut chunks);
    chunks
}

/// Turns the beginnings of sections into ranges, with one for the text before the first.
fn sections_of(text: &str, mut starts: Vec<(usize, String)>) -> Vec<(Range<usize>, String)> {
    if starts.first().is_none_or(|(at, _)| *at > 0) {
        starts.insert(0, (0, String::new()));
    }
    let ends: Vec<usize> = starts.iter().skip(1).map(|(at, _)| *at).chain([text.len()]).collect();
    starts.into_iter().zip(ends).map(|((from, title), to)| (from..to, title)).filter(|(r, _)| !r.is_empty()).collect()
}

/// Returns the beginnings of the sections of a markdown document, each with the path of its headings. Only headings
/// of the first three levels begin a section; one without text belongs to the next.
fn headings(text: &str) -> Vec<(usize, String)> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut trail: Vec<(HeadingLevel, String)> = Vec::new();
    let mut starts: Vec<(usize, String)> = Vec::new();
    // the beginning of the current heading; the end of the last one that began a section
    let (mut open, mut ended) = (None, None);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                open = Some(line_start(text, range.start));
                trail.retain(|(above, _)| *above < level);
                trail.push((level, String::new()));
            }
            Event::Text(words) | Event::Code(words) if open.is_some() => {
                if let Some((_, title)) = trail.last_mut() {
                    title.push_str(&words);
                }
            }
            Event::End(TagEnd::Heading(level)) => {
                let Some(start) = open.take() else { continue };
                if level > HeadingLevel::H3 {
                    continue;
                }
                let title =
                    trail.iter().map(|(_, t)| t.trim()).filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" > ");
                let title = shorten(&title);
                let empty_section = ended.is_some_and(|end: usize| end <= start && text[end..start].trim().is_empty());
                match starts.last_mut() {
                    Some(last) if empty_section => last.1 = title,
                    Some(last) if last.0 >= start => {}
                    _ => starts.push((start, title)),
                }
                ended = Some(range.end);
            }
            _ => {}
        }
    }
    starts
}

/// Returns the beginnings of the top-level items of a program, each with its first line that is no comment. Small
/// neighbours are joined.
fn items(text: &str) -> Vec<(usize, String)> {
    let mut starts: Vec<(usize, String)> = Vec::new();
    let (mut at, mut after_blank) = (0, true);
    for line in text.split_inclusive('\n') {
        let blank = line.trim().is_empty();
        let first = line.chars().next().unwrap_or(' ');
        let at_margin = !first.is_whitespace() && !matches!(first, '}' | ')' | ']');
        if after_blank && at_margin {
            starts.push((at, String::new()));
        }
        if at_margin
            && let Some((_, title)) = starts.last_mut()
            && title.is_empty()
            && !is_comment(line)
        {
            *title = shorten(line.trim().trim_end_matches(['{', ':', '(']).trim_end());
        }
        after_blank = blank;
        at += line.len();
    }
    let mut joined: Vec<(usize, String)> = Vec::new();
    for (i, (start, title)) in starts.iter().enumerate() {
        let end = starts.get(i + 1).map_or(text.len(), |(next, _)| *next);
        match joined.last_mut() {
            Some(last) if end - last.0 <= MAX_JOINED => {
                if last.1.is_empty() {
                    last.1.clone_from(title);
                }
            }
            _ => joined.push((*start, title.clone())),
        }
    }
    joined
}

/// True for a line that looks like a comment, an attribute or a decorator.
fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["//", "/*", "*", "#[", "#!", "# ", "##", "@", "--", ";;", "\"\"\"", "'''", "<!--"]
        .iter()
        .any(|m| line.starts_with(m))
}

/// Cuts a range into pieces of at most [`MAX_BYTES`] and `max_lines`.
fn pieces(text: &str, mut range: Range<usize>, max_lines: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    loop {
        let rest = &text[range.clone()];
        let by_lines = rest.match_indices('\n').nth(max_lines - 1).map_or(rest.len(), |(at, _)| at + 1);
        if rest.len() <= MAX_BYTES && by_lines == rest.len() {
            if !rest.is_empty() {
                pieces.push(range);
            }
            return pieces;
        }
        let window = &rest[..floor(rest, by_lines.min(MAX_BYTES))];
        let half = floor(window, window.len() / 2);
        // the last end of a paragraph, of a line or of a word in the second half; text after a colon stays with it
        let in_second_half = |at: Option<usize>| at.filter(|at| *at > half);
        let mut paragraphs = window.rmatch_indices("\n\n").map(|(at, _)| at);
        let cut = in_second_half(paragraphs.find(|at| !window[..*at].trim_end().ends_with(':')).map(|at| at + 2))
            .or_else(|| in_second_half(window.rfind('\n').map(|at| at + 1)))
            .or_else(|| in_second_half(window.rfind(' ').map(|at| at + 1)))
            .unwrap_or(window.len());
        pieces.push(range.start..range.start + cut);
        range.start += cut;
    }
}

/// Merges passages without text into the one before, or the first into the one after. Blanks may make a passage
/// longer than the limit; they are not shown or searched.
fn merge_blank(text: &str, chunks: &mut Vec<Chunk>) {
    let mut kept: Vec<Chunk> = Vec::with_capacity(chunks.len());
    let mut before = None;
    for mut chunk in chunks.drain(..) {
        if text[chunk.range.clone()].trim().is_empty() {
            match kept.last_mut() {
                Some(last) => last.range.end = chunk.range.end,
                None => before = before.or(Some(chunk.range.start)),
            }
            continue;
        }
        if let Some(start) = before.take() {
            chunk.range.start = start;
        }
        kept.push(chunk);
    }
    *chunks = kept;
}

/// Sets the line numbers, without blank lines at the edges.
fn set_lines(text: &str, chunks: &mut [Chunk]) {
    let mut line = 1;
    for chunk in chunks {
        let body = &text[chunk.range.clone()];
        let breaks = |part: &str| part.bytes().filter(|b| *b == b'\n').count();
        let lead = body.len() - body.trim_start().len();
        chunk.first = line + breaks(&body[..lead]);
        chunk.last = line + breaks(body.trim_end());
        line += breaks(body);
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |nl| nl + 1)
}

/// Returns the last character boundary at or before `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn shorten(title: &str) -> String {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    title[..floor(&title, title.len().min(MAX_TITLE))].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn titles(kind: Kind, text: &str) -> Vec<(String, usize, usize)> {
        chunks(kind, text).into_iter().map(|c| (c.title, c.first, c.last)).collect()
    }

    fn expect(found: Vec<(String, usize, usize)>, wanted: &[(&str, usize, usize)]) {
        let found: Vec<(&str, usize, usize)> = found.iter().map(|(t, a, b)| (t.as_str(), *a, *b)).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn markdown_is_cut_at_headings() {
        let text = "intro\n\n# Guide\n\n## Install\n\nrun `make`\n\n```sh\n# no heading\n```\n\n#### deep\n\nstays\n\n\
                    ## Use `it`\nuse\n\nOther\n=====\n\nx\n";
        expect(
            titles(Kind::Markdown, text),
            &[("", 1, 1), ("Guide > Install", 3, 15), ("Guide > Use it", 17, 18), ("Other", 20, 23)],
        );
        expect(titles(Kind::Markdown, "---\ntitle: x\n---\n\nbody\n"), &[("", 1, 5)]);
        expect(titles(Kind::Markdown, "# only a heading\n"), &[("only a heading", 1, 1)]);
    }

    #[test]
    fn code_is_cut_before_items_and_their_comments() {
        let body = "    let x = 1;\n".repeat(40);
        let text = format!(
            "use a;\nuse b;\n\n/// Docs.\n#[test]\nfn first() {{\n{body}\n{body}}}\n\nfn second() {{\n{body}}}\n"
        );
        let found = titles(Kind::Code, &text);
        assert_eq!(found[0], ("use a;".into(), 1, 2));
        assert_eq!((found[1].0.as_str(), found[1].1), ("fn first()", 4));
        assert!(found.iter().any(|(title, first, _)| title == "fn second()" && *first == 90), "{found:?}");
        let python = "import os\n\nA = 1\n\n@wrap\ndef go(x):\n    pass\n";
        expect(titles(Kind::Code, python), &[("import os", 1, 7)]);
    }

    #[test]
    fn long_text_is_cut_at_the_best_place() {
        let paragraphs = format!("{}\n\n{}\n", "word ".repeat(150).trim(), "other ".repeat(150).trim());
        let found = chunks(Kind::Text, &paragraphs);
        assert_eq!(found.len(), 2);
        assert!(paragraphs[found[1].range.clone()].starts_with("other"));
        let page: String =
            (0..40).map(|i| format!("- Do thing {i:02} to it:\n\n`thing --number {i:02}`\n\n")).collect();
        for chunk in chunks(Kind::Text, &page) {
            let text = page[chunk.range].trim();
            assert!(
                text.starts_with("- Do") && text.ends_with('`'),
                "a heading is parted from what it announces: {text}"
            );
        }
        let line = "x".repeat(3000);
        assert_eq!(chunks(Kind::Text, &line).iter().map(|c| c.range.len()).collect::<Vec<_>>(), [1200, 1200, 600]);
        let lines = "ab\n".repeat(120);
        assert_eq!(
            titles(Kind::Text, &lines).iter().map(|t| (t.1, t.2)).collect::<Vec<_>>(),
            [(1, 50), (51, 100), (101, 120)]
        );
        assert!(chunks(Kind::Text, " \n\n\t\n").is_empty() && chunks(Kind::Markdown, "").is_empty());
    }

    #[test]
    fn the_file_name_determines_the_kind() {
        for (name, kind) in
            [("a.md", Kind::Markdown), ("b/C.RS", Kind::Code), ("Makefile", Kind::Text), ("x.log", Kind::Text)]
        {
            assert_eq!(Kind::of(Path::new(name)), kind, "{name}");
            assert_eq!(Kind::ALL.iter().find(|(n, _)| *n == kind.name()).unwrap().1, kind);
        }
    }

    fn document() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "\\PC{0,90}",
            Just(String::new()),
            "#{1,4} [a-zäß ]{0,20}",
            "fn [a-z]{1,8}\\(\\) \\{",
            "    [a-zé]{0,30}",
            Just("```".to_owned()),
            "[日本語ab ]{400,700}",
            Just("---".to_owned()),
            "> # [a-z]{3}",
            "\\PC{0,9}\r",
        ];
        proptest::collection::vec(line, 0..60).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #[test]
        fn every_byte_is_in_exactly_one_passage(text in document()) {
            for (_, kind) in Kind::ALL {
                let chunks = chunks(kind, &text);
                if text.trim().is_empty() {
                    prop_assert!(chunks.is_empty());
                    continue;
                }
                let mut at = 0;
                for chunk in &chunks {
                    prop_assert_eq!(chunk.range.start, at, "{:?}", kind);
                    // slicing panics inside of a character
                    let body = &text[chunk.range.clone()];
                    prop_assert!(!body.trim().is_empty());
                    prop_assert!(body.trim().len() <= MAX_BYTES && chunk.title.len() <= MAX_TITLE);
                    prop_assert!(chunk.first <= chunk.last && chunk.last - chunk.first < 60);
                    at = chunk.range.end;
                }
                prop_assert_eq!(at, text.len(), "{:?}", kind);
            }
        }
    }
}
