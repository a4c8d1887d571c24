//! Shortens a file to a few lines: its first lines, its declarations, and the lines with words of the question. It
//! works line by line, so that it handles every language alike.

use caro_documents::chunk::Kind;
use std::path::Path;

/// Most lines in an outline.
const MAX_LINES: usize = 60;
/// Most characters of a line in an outline.
const MAX_LINE_CHARS: usize = 120;
/// Most lines taken from the head of a file.
const HEAD_LINES: usize = 3;
/// Characters of a question's word that are compared, so that `configuration` finds `config`.
const STEM_CHARS: usize = 6;
/// Hits counted for a file whose name has a word of the question; a line with one counts 1.
const NAME_HITS: usize = 4;
/// Shortest word of a question that is used, characters.
const MIN_WORD_CHARS: usize = 4;

/// Words that begin a line with a declaration in a common language.
const DECLARATION_WORDS: &[&str] = &[
    "abstract",
    "async",
    "class",
    "const",
    "def",
    "enum",
    "export",
    "extern",
    "final",
    "fn",
    "func",
    "function",
    "impl",
    "interface",
    "macro_rules!",
    "mod",
    "module",
    "namespace",
    "package",
    "private",
    "protected",
    "pub",
    "public",
    "pub(crate)",
    "pub(super)",
    "static",
    "struct",
    "sub",
    "template",
    "trait",
    "type",
    "typedef",
    "union",
    "virtual",
];

/// The outline of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The lines in the order of the file, each with its rank; 0 is the most important.
    lines: Vec<(u8, String)>,
    /// The number of lines with a word of the question, plus [`NAME_HITS`] if the name has one.
    hits: usize,
}

/// Returns the words of a question to search for, cut to their first characters.
pub fn words(question: &str) -> Vec<String> {
    let words = question.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= MIN_WORD_CHARS);
    let common =
        ["which", "what", "where", "when", "they", "them", "with", "from", "that", "this", "files", "file", "have"];
    let words = words.map(str::to_lowercase).filter(|word| !common.contains(&word.as_str()));
    words.map(|word| word.chars().take(STEM_CHARS).collect()).collect()
}

/// Makes the outline of a file.
pub fn outline(name: &str, text: &str, words: &[String]) -> Outline {
    let kind = Kind::of(Path::new(name));
    let lower = name.to_lowercase();
    let is_named = words.iter().any(|word| lower.contains(word.as_str()));
    let mut outline = Outline { hits: if is_named { NAME_HITS } else { 0 }, ..Outline::default() };
    let mut head = 0;
    let mut under_heading = false;
    for line in text.lines() {
        let shown = line.trim();
        if shown.len() < 3 || outline.lines.len() >= MAX_LINES {
            continue;
        }
        let lower = shown.to_lowercase();
        let hit = words.iter().any(|word| lower.contains(word.as_str()));
        let declared = match kind {
            Kind::Markdown => shown.starts_with('#') || std::mem::take(&mut under_heading),
            Kind::Code => declares(line),
            Kind::Text => shown.starts_with('['),
        };
        under_heading = kind == Kind::Markdown && shown.starts_with('#');
        // shebangs and imports do not count as the head of a file
        let is_skipped = ["#!", "use ", "import "].iter().any(|start| shown.starts_with(*start));
        let begins = head < HEAD_LINES && !is_skipped;
        let rank = match (begins, hit, declared) {
            (true, _, _) if head == 0 => 0,
            (_, true, true) => 1,
            (true, _, _) => 2,
            (_, _, true) => 3,
            (_, true, false) => 4,
            _ => continue,
        };
        head += usize::from(begins);
        outline.hits += usize::from(hit);
        let shown = shown.trim_end_matches(['{', ':']).trim_end();
        outline.lines.push((rank, shown.chars().take(MAX_LINE_CHARS).collect()));
    }
    outline
}

/// Makes the outline of a passage: all of its lines; those with words of the question rank first.
pub fn passage_outline(text: &str, words: &[String]) -> Outline {
    let mut outline = Outline::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()).take(MAX_LINES) {
        let lower = line.to_lowercase();
        let hit = words.iter().any(|word| lower.contains(word.as_str()));
        outline.hits += usize::from(hit);
        outline.lines.push((if hit { 1 } else { 3 }, line.chars().take(4 * MAX_LINE_CHARS).collect()));
    }
    outline
}

/// True if a line begins a declaration at the margin or one level below it.
fn declares(line: &str) -> bool {
    let indent = line.len() - line.trim_start().len();
    let first = line.split_whitespace().next().unwrap_or_default();
    let shell = || line.trim_end().ends_with("() {");
    indent <= 4 && (DECLARATION_WORDS.contains(&first) || shell())
}

/// Formats the outlines as one text of at most `bytes` bytes. Files that match the question get a larger share.
pub fn text(files: &[(String, Outline)], bytes: usize) -> String {
    let names: usize = files.iter().map(|(name, _)| name.len() + 4).sum();
    let shares: usize = files.iter().map(|(_, outline)| share(outline)).sum();
    let left = bytes.saturating_sub(names);
    let mut text = String::new();
    for (name, outline) in files {
        if text.len() + name.len() + 4 > bytes {
            break;
        }
        text.push_str(&format!("## {name}\n"));
        let room = (left * share(outline)).checked_div(shares).unwrap_or_default().min(bytes - text.len());
        text.push_str(&outline.within(room));
    }
    text
}

/// Formats the outlines as one text of at most `tokens` tokens.
pub fn text_within_tokens(files: &[(String, Outline)], tokens: usize, count: &dyn Fn(&str) -> usize) -> String {
    let mut bytes = tokens * 4;
    let mut shown = text(files, bytes);
    while count(&shown) > tokens {
        bytes = bytes * 4 / 5;
        shown = text(files, bytes);
    }
    shown
}

fn share(outline: &Outline) -> usize {
    1 + outline.hits.min(8)
}

impl Outline {
    /// Returns the number of matches with words of the question.
    pub fn evidence(&self) -> usize {
        self.hits
    }

    /// Returns all lines below the file's name.
    pub fn all(&self, name: &str) -> String {
        let lines = self.lines.iter().map(|(_, line)| format!("{line}\n"));
        std::iter::once(format!("{name}\n")).chain(lines).collect()
    }

    /// Returns the most important lines that fit into `bytes` bytes, in the order of the file.
    fn within(&self, mut bytes: usize) -> String {
        let mut order: Vec<usize> = (0..self.lines.len()).collect();
        order.sort_by_key(|at| self.lines[*at].0);
        let mut selected = vec![false; self.lines.len()];
        for at in order {
            let needs = self.lines[at].1.len() + 1;
            if needs <= bytes {
                bytes -= needs;
                selected[at] = true;
            }
        }
        let lines = self.lines.iter().zip(selected).filter(|(_, selected)| *selected);
        lines.map(|((_, line), _)| format!("{line}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c18_an_outline_has_head_declarations_and_matching_lines() {
        let words = words("which files deal with configuration?");
        assert_eq!(words, ["deal", "config"]);
        let rust = "//! Reads settings.\n\nuse std::fs;\n\n/// One.\npub struct Config {\n    path: u8,\n}\n\nfn f() {\n    let x = 1;\n    \
                    merge(config);\n}\n";
        let all = text(&[("a.rs".into(), outline("a.rs", rust, &words))], 1000);
        assert_eq!(all, "## a.rs\n//! Reads settings.\n/// One.\npub struct Config\nfn f()\nmerge(config);\n");
        let little = text(&[("a.rs".into(), outline("a.rs", rust, &words))], 48);
        assert_eq!(little, "## a.rs\n//! Reads settings.\npub struct Config\n");
        let sh = outline("a.sh", "#!/bin/sh\n# starts it\nmain() {\n  echo\n}\n", &[]);
        assert_eq!(sh.within(100), "# starts it\nmain()\necho\n");
        let markdown = outline("a.md", "# One\nabout one\nand more\n## Two\nof two\nrest\n", &[]);
        assert_eq!(markdown.within(100), "# One\nabout one\nand more\n## Two\nof two\n");
    }

    #[test]
    fn c18_words_in_a_name_and_in_lines_are_evidence() {
        let of = |name, text| outline(name, text, &["config".into()]).evidence();
        let evidence = [of("a.rs", "fn f()\n"), of("a.rs", "fn config()\n"), of("Config.rs", "fn f()\n")];
        assert_eq!(evidence, [0, 1, NAME_HITS]);
    }

    proptest::proptest! {
        #[test]
        fn c18_an_outline_is_never_longer_than_it_may_be(files in proptest::collection::vec(".{0,200}", 0..6), bytes in 0usize..400) {
            let files: Vec<_> = files.iter().map(|t| ("a.py".to_owned(), outline("a.py", t, &["x".into()]))).collect();
            proptest::prop_assert!(text(&files, bytes).len() <= bytes);
        }
    }
}
