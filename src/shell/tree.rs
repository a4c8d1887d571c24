//! Runs the tree-sitter grammars, and has small helpers for their trees.

use super::builder::Cx;
use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};
use tree_sitter::{Language, Node, ParseOptions, Parser, Tree};

/// A built-in grammar.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    Bash,
    Fish,
    PowerShell,
}

/// Time limit of one parse: with many errors in the text, a grammar may try a great many readings.
const MAX_TIME: Duration = Duration::from_millis(1500);

thread_local! {
    static PARSERS: RefCell<[Option<Parser>; 3]> = const { RefCell::new([None, None, None]) };
}

/// Parses a text; `None` if it takes longer than [`MAX_TIME`].
pub(super) fn parse(text: &str, grammar: Grammar) -> Option<Tree> {
    PARSERS.with_borrow_mut(|parsers| {
        let slot = &mut parsers[grammar as usize];
        if slot.is_none() {
            let language: Language = match grammar {
                Grammar::Bash => tree_sitter_bash::LANGUAGE.into(),
                Grammar::Fish => tree_sitter_fish::language(),
                Grammar::PowerShell => tree_sitter_powershell::LANGUAGE.into(),
            };
            let mut parser = Parser::new();
            parser.set_language(&language).ok()?;
            *slot = Some(parser);
        }
        let parser = slot.as_mut()?;
        let deadline = Instant::now() + MAX_TIME;
        let mut late = |_: &tree_sitter::ParseState| {
            if Instant::now() > deadline { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut late);
        let bytes = text.as_bytes();
        let tree = parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options));
        if tree.is_none() {
            parser.reset();
        }
        tree
    })
}

/// Returns the places where the grammar had to assume a missing token (an unclosed bracket, a missing `fi`).
pub(super) fn missing(tree: &Tree) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut pending = vec![tree.root_node()];
    while let Some(node) = pending.pop() {
        if node.is_missing() {
            found.push(node.byte_range());
        } else if node.has_error() && found.len() < 16 {
            pending.extend(all(node));
        }
    }
    found
}

/// A visitor of a grammar's tree.
pub(super) trait Visit {
    /// Visits a node.
    fn visit(&mut self, node: Node<'_>, cx: &Cx);

    /// Visits the named children of a node.
    fn visit_children(&mut self, node: Node<'_>, cx: &Cx) {
        if node.child_count() == 0 {
            return;
        }
        let deeper = cx.deeper();
        for child in named(node) {
            self.visit(child, &deeper);
        }
    }
}

/// The named children of a node.
pub(super) fn named(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children(&mut node.walk()).collect()
}

/// All children of a node, operators included.
pub(super) fn all(node: Node<'_>) -> Vec<Node<'_>> {
    node.children(&mut node.walk()).collect()
}

/// Splits a simple command of a POSIX shell at blanks outside of quotes and brackets.
pub(super) fn split_words(text: &str) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut start = None;
    let mut quote = None;
    let mut depth = 0usize;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        let blank = c.is_whitespace() && quote.is_none() && depth == 0 && !escaped;
        match (blank, start) {
            (true, Some(s)) => {
                words.push(s..i);
                start = None;
            }
            (false, None) => start = Some(i),
            _ => {}
        }
        if escaped {
            escaped = false;
            continue;
        }
        match (c, quote) {
            ('\\', None | Some('"' | '`')) => escaped = true,
            ('\'' | '"' | '`', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            ('(' | '{', None) => depth += 1,
            (')' | '}', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    words.extend(start.map(|s| s..text.len()));
    words
}
