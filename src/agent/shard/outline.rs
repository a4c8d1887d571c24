//! A file as a few lines: what its author says it is, what it declares, and what of it has words of the question. Read by
//! lines, so that it works alike in every language.

use caro_documents::chunk::Kind;
use std::path::Path;

/// The most lines that are kept of a file, and characters of a line.
const MOST: (usize, usize) = (60, 120);
/// The most lines of what stands at the beginning of a file.
const HEAD: usize = 3;
/// A word of a question is compared by its beginning: `configuration` finds `config`.
const BEGINNING: usize = 6;
/// A word of the question in the name of a file counts as much as in so many of its lines.
const IN_NAME: usize = 4;
/// The shortest word of a question that says something.
const SHORTEST: usize = 4;

/// Words that begin a declaration in one of the usual languages, alone or behind another one of them.
const DECLARES: &[&str] = &[
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

/// The lines that are kept of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// Lines in the order of the file, each with how much it matters: 0 most.
    lines: Vec<(u8, String)>,
    /// How many of them have a word of the question, its name counted too.
    hits: usize,
}

/// The words of a question that files are searched for.
pub fn words(question: &str) -> Vec<String> {
    let words = question.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= SHORTEST);
    let common =
        ["which", "what", "where", "when", "they", "them", "with", "from", "that", "this", "files", "file", "have"];
    let words = words.map(str::to_lowercase).filter(|word| !common.contains(&word.as_str()));
    words.map(|word| word.chars().take(BEGINNING).collect()).collect()
}

/// The outline of a file.
pub fn outline(name: &str, text: &str, words: &[String]) -> Outline {
    let kind = Kind::of(Path::new(name));
    let lower = name.to_lowercase();
    let is_named = words.iter().any(|word| lower.contains(word.as_str()));
    let mut outline = Outline { hits: if is_named { IN_NAME } else { 0 }, ..Outline::default() };
    let mut head = 0;
    let mut under_heading = false;
    for line in text.lines() {
        let shown = line.trim();
        if shown.len() < 3 || outline.lines.len() >= MOST.0 {
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
        // a line of an author's own words is worth more than the first line of code
        let begins =
            head < HEAD && !shown.starts_with("#!") && !shown.starts_with("use ") && !shown.starts_with("import ");
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
        outline.lines.push((rank, shown.chars().take(MOST.1).collect()));
    }
    outline
}

/// A passage of a text: its lines as they stand, those first that have words of the question.
pub fn whole(text: &str, words: &[String]) -> Outline {
    let mut outline = Outline::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()).take(MOST.0) {
        let lower = line.to_lowercase();
        let hit = words.iter().any(|word| lower.contains(word.as_str()));
        outline.hits += usize::from(hit);
        outline.lines.push((if hit { 1 } else { 3 }, line.chars().take(4 * MOST.1).collect()));
    }
    outline
}

/// True for a line that begins an item, at the margin or one level below it.
fn declares(line: &str) -> bool {
    let indent = line.len() - line.trim_start().len();
    let first = line.split_whitespace().next().unwrap_or_default();
    let shell = || line.trim_end().ends_with("() {");
    indent <= 4 && (DECLARES.contains(&first) || shell())
}

/// The files' outlines as one text of at most `bytes`: each with its name, and more of those that have words of the question.
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

/// The files' outlines in at most so many tokens.
pub fn fitted(files: &[(String, Outline)], tokens: usize, count: &dyn Fn(&str) -> usize) -> String {
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
    /// How much of it has words of the question: 0 where nothing has.
    pub fn evidence(&self) -> usize {
        self.hits
    }

    /// All of it, under its file's name.
    pub fn all(&self, name: &str) -> String {
        let lines = self.lines.iter().map(|(_, line)| format!("{line}\n"));
        std::iter::once(format!("{name}\n")).chain(lines).collect()
    }

    /// The lines that matter most and fit, in the order of the file.
    fn within(&self, mut bytes: usize) -> String {
        let mut order: Vec<usize> = (0..self.lines.len()).collect();
        order.sort_by_key(|at| self.lines[*at].0);
        let mut kept = vec![false; self.lines.len()];
        for at in order {
            let needs = self.lines[at].1.len() + 1;
            if needs <= bytes {
                bytes -= needs;
                kept[at] = true;
            }
        }
        let lines = self.lines.iter().zip(kept).filter(|(_, kept)| *kept);
        lines.map(|((_, line), _)| format!("{line}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c18_a_file_is_its_head_its_declarations_and_what_is_asked_for() {
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
        assert_eq!([of("a.rs", "fn f()\n"), of("a.rs", "fn config()\n"), of("Config.rs", "fn f()\n")], [0, 1, IN_NAME]);
    }

    proptest::proptest! {
        #[test]
        fn c18_an_outline_is_never_longer_than_it_may_be(files in proptest::collection::vec(".{0,200}", 0..6), bytes in 0usize..400) {
            let files: Vec<_> = files.iter().map(|t| ("a.py".to_owned(), outline("a.py", t, &["x".into()]))).collect();
            proptest::prop_assert!(text(&files, bytes).len() <= bytes);
        }
    }
}
