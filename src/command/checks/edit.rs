//! Mending a command as text: what is not touched stays as it was written.

use caro_shell::{Finding, Invocation, Script, Severity, Word};
use std::ops::Range;

/// Changes to a script, made all at once.
#[derive(Debug)]
pub(crate) struct Edits<'a> {
    script: &'a Script,
    changes: Vec<(Range<usize>, String)>,
    sound: bool,
}

impl<'a> Edits<'a> {
    /// No change yet.
    pub(crate) fn new(script: &'a Script) -> Self {
        Self { script, changes: Vec::new(), sound: true }
    }

    /// The word becomes this text; it is taken out, with the blank before it, if there is none.
    pub(crate) fn replace(mut self, word: &Word, text: &str) -> Self {
        let mut range = self.range(word);
        if text.is_empty() && self.script.text.get(..range.start).is_some_and(|t| t.ends_with(' ')) {
            range.start -= 1;
        }
        self.changes.push((range, text.to_owned()));
        self
    }

    /// Text is put in right after the word.
    pub(crate) fn after(mut self, word: &Word, text: &str) -> Self {
        let end = self.range(word).end;
        self.changes.push((end..end, text.to_owned()));
        self
    }

    /// Text is put in right before the word.
    pub(crate) fn before(mut self, word: &Word, text: &str) -> Self {
        let start = self.range(word).start;
        self.changes.push((start..start, text.to_owned()));
        self
    }

    /// All words from the first to the last become this text.
    pub(crate) fn span(mut self, words: &[Word], text: &str) -> Self {
        if let (Some(first), Some(last)) = (words.first(), words.last()) {
            let (start, end) = (self.range(first).start, self.range(last).end);
            self.sound &= start < end;
            self.changes.push((start..end, text.to_owned()));
        }
        self
    }

    /// The whole script, mended; `None` if a word does not stand in it as written, or changes overlap.
    pub(crate) fn done(mut self) -> Option<String> {
        self.changes.sort_by_key(|(range, _)| (range.start, range.end));
        let apart = self.changes.windows(2).all(|w| w[0].0.end <= w[1].0.start);
        if !self.sound || !apart || self.changes.is_empty() {
            return None;
        }
        let mut text = self.script.text.clone();
        for (range, new) in self.changes.into_iter().rev() {
            text.replace_range(range, &new);
        }
        (text != self.script.text).then_some(text)
    }

    /// Where a word stands. One inside `sh -c '...'` may stand nowhere: then nothing can be mended.
    fn range(&mut self, word: &Word) -> Range<usize> {
        self.sound &= self.script.text.get(word.span.clone()) == Some(word.raw.as_str());
        word.span.clone()
    }
}

/// A warning about a word.
pub(super) fn warning(id: &str, word: &Word, why: impl Into<String>, fix: Option<String>) -> Finding {
    Finding {
        id: id.into(),
        severity: Severity::Warning,
        token: word.raw.clone(),
        span: Some(word.span.clone()),
        why: why.into(),
        evidence: Vec::new(),
        fix,
    }
}

/// A cluster of short options without one of its letters; empty if none is left.
pub(super) fn without(cluster: &str, letter: char) -> String {
    let left: String = cluster.chars().filter(|c| *c != letter).collect();
    if left == "-" { String::new() } else { left }
}

/// True for a cluster of short options without a value: `-lh`.
pub(super) fn is_cluster(word: &Word) -> bool {
    word.raw.strip_prefix('-').is_some_and(|l| !l.is_empty() && l.chars().all(|c| c.is_ascii_alphabetic()))
}

/// The cluster of ls that holds this letter.
pub(super) fn ls_cluster_with(ls: &Invocation, letter: char) -> Option<&Word> {
    ls.args().iter().find(|w| is_ls_cluster(w) && w.raw.contains(letter))
}

/// A cluster of letters, and the `1` of ls.
pub(super) fn is_ls_cluster(word: &Word) -> bool {
    word.raw.strip_prefix('-').is_some_and(|l| !l.is_empty() && l.chars().all(|c| c.is_ascii_alphabetic() || c == '1'))
}

/// The command's clusters of short options hold this letter.
pub(super) fn cluster_with(args: &[Word], letter: char) -> Option<&Word> {
    args.iter().find(|w| is_cluster(w) && w.raw.contains(letter))
}
