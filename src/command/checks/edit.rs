//! Edits the text of a command; everything that is not edited stays as it was written.

use caro_shell::{Finding, Invocation, Script, Severity, Word};
use std::ops::Range;

/// A list of edits to a script, which are applied together.
#[derive(Debug)]
pub(crate) struct Edits<'a> {
    script: &'a Script,
    changes: Vec<(Range<usize>, String)>,
    /// False once an edit names a word that is not in the text as written.
    is_valid: bool,
}

impl<'a> Edits<'a> {
    /// Creates an empty list.
    pub(crate) fn new(script: &'a Script) -> Self {
        Self { script, changes: Vec::new(), is_valid: true }
    }

    /// Replaces a word; an empty text removes it together with the blank before it.
    pub(crate) fn replace(mut self, word: &Word, text: &str) -> Self {
        let mut range = self.range(word);
        if text.is_empty() && self.script.text.get(..range.start).is_some_and(|t| t.ends_with(' ')) {
            range.start -= 1;
        }
        self.changes.push((range, text.to_owned()));
        self
    }

    /// Inserts text directly after a word.
    pub(crate) fn insert_after(mut self, word: &Word, text: &str) -> Self {
        let end = self.range(word).end;
        self.changes.push((end..end, text.to_owned()));
        self
    }

    /// Inserts text directly before a word.
    pub(crate) fn insert_before(mut self, word: &Word, text: &str) -> Self {
        let start = self.range(word).start;
        self.changes.push((start..start, text.to_owned()));
        self
    }

    /// Replaces everything from the first word to the last.
    pub(crate) fn replace_span(mut self, words: &[Word], text: &str) -> Self {
        if let (Some(first), Some(last)) = (words.first(), words.last()) {
            let (start, end) = (self.range(first).start, self.range(last).end);
            self.is_valid &= start < end;
            self.changes.push((start..end, text.to_owned()));
        }
        self
    }

    /// Returns the edited script; `None` if a word is not in it as written, edits overlap, or nothing changes.
    pub(crate) fn apply(mut self) -> Option<String> {
        self.changes.sort_by_key(|(range, _)| (range.start, range.end));
        let is_disjoint = self.changes.windows(2).all(|w| w[0].0.end <= w[1].0.start);
        if !self.is_valid || !is_disjoint || self.changes.is_empty() {
            return None;
        }
        let mut text = self.script.text.clone();
        for (range, new) in self.changes.into_iter().rev() {
            text.replace_range(range, &new);
        }
        (text != self.script.text).then_some(text)
    }

    /// Returns the range of a word in the text. A word inside `sh -c '...'` may have none, which makes the edits
    /// invalid.
    fn range(&mut self, word: &Word) -> Range<usize> {
        self.is_valid &= self.script.text.get(word.span.clone()) == Some(word.raw.as_str());
        word.span.clone()
    }
}

/// Makes a warning about a word.
pub(super) fn warning(id: &str, word: &Word, why: impl Into<String>, fix: Option<String>) -> Finding {
    warning_about(id, &word.raw, Some(word.span.clone()), why, fix)
}

/// Makes an error about a word.
pub(super) fn error(id: &str, word: &Word, why: impl Into<String>, fix: Option<String>) -> Finding {
    Finding { severity: Severity::Error, ..warning(id, word, why, fix) }
}

/// Makes a warning about a text, which may stand at a place in the script.
pub(super) fn warning_about(
    id: &str,
    token: &str,
    span: Option<Range<usize>>,
    why: impl Into<String>,
    fix: Option<String>,
) -> Finding {
    let (severity, token, why) = (Severity::Warning, token.to_owned(), why.into());
    Finding { id: id.into(), severity, token, span, why, evidence: Vec::new(), fix }
}

/// Returns a cluster of short options without one of its letters; empty if none is left.
pub(super) fn without_letter(cluster: &str, letter: char) -> String {
    let left: String = cluster.chars().filter(|c| *c != letter).collect();
    if left == "-" { String::new() } else { left }
}

/// True for a cluster of short options without a value: `-lh`.
pub(super) fn is_cluster(word: &Word) -> bool {
    word.raw.strip_prefix('-').is_some_and(|l| !l.is_empty() && l.chars().all(|c| c.is_ascii_alphabetic()))
}

/// Returns the cluster of options of `ls` that contains the letter.
pub(super) fn ls_cluster_with(ls: &Invocation, letter: char) -> Option<&Word> {
    ls.args().iter().find(|w| is_ls_cluster(w) && w.raw.contains(letter))
}

/// True for a cluster of short options of `ls`, which may include `1`.
pub(super) fn is_ls_cluster(word: &Word) -> bool {
    word.raw.strip_prefix('-').is_some_and(|l| !l.is_empty() && l.chars().all(|c| c.is_ascii_alphabetic() || c == '1'))
}

/// Returns the cluster of short options that contains the letter.
pub(super) fn cluster_with(args: &[Word], letter: char) -> Option<&Word> {
    args.iter().find(|w| is_cluster(w) && w.raw.contains(letter))
}
