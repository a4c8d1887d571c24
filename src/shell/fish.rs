//! Walks the syntax tree of a fish script.

use super::builder::{Builder, Cx, Source};
use super::script::{Assignment, Construct, Function, How, Redirect, Word};
use super::tree::{self, Visit};
use std::collections::HashMap;
use std::ops::Range;
use tree_sitter::Node;

/// Parses a text and adds its commands to the builder.
pub(super) fn walk(builder: &mut Builder, source: &Source<'_>, cx: &Cx) {
    let (masked, constructs) = mask(source.text);
    let Some(parsed) = tree::parse(&masked, tree::Grammar::Fish) else {
        builder.error(source.map(0..source.text.len()));
        return;
    };
    for (construct, range) in constructs {
        builder.construct(construct, source, range);
    }
    for missing in tree::missing(&parsed) {
        builder.error(source.map(missing.start.min(source.text.len())..missing.end.min(source.text.len())));
    }
    let mut walker = Walker { builder, source, placed: HashMap::new() };
    walker.visit(parsed.root_node(), cx);
}

/// Replaces, byte for byte, valid fish that the grammar does not know: `&&` and `||`, brackets, carets. Returns the
/// constructs of other shells too. A line end is appended, as the grammar needs a terminator.
fn mask(text: &str) -> (String, Vec<(Construct, Range<usize>)>) {
    let mut bytes = text.as_bytes().to_vec();
    let mut found = Vec::new();
    let mut quote = None;
    let mut i = 0;
    while i < bytes.len() {
        let pair = [bytes[i], bytes.get(i + 1).copied().unwrap_or(b' ')];
        match (pair, quote) {
            ([b'\\', _], _) => i += 1,
            ([b'\'' | b'"', _], None) => quote = Some(bytes[i]),
            ([b, _], Some(q)) if b == q => quote = None,
            (_, Some(_)) => {}
            ([b'&', b'&'] | [b'|', b'|'], None) => {
                found.push((Construct::AndOr, i..i + 2));
                bytes[i..i + 2].copy_from_slice(b"; ");
                i += 1;
            }
            ([b'[', b'['], None) => {
                found.push((Construct::DoubleBracket, i..i + 2));
                bytes[i..i + 2].copy_from_slice(b"__");
                i += 1;
            }
            ([b'<', b'<'], None) => {
                found.push((Construct::HereDocument, i..i + 2));
                bytes[i] = b' ';
                i += 1;
            }
            ([b'<', b'('], None) => found.push((Construct::ProcessSubstitution, i..i + 2)),
            ([b'`', _], None) => found.push((Construct::Backticks, i..i + 1)),
            ([b'$', b'?'], None) => {
                found.push((Construct::ExitStatus, i..i + 2));
                bytes[i..i + 2].copy_from_slice(b"__");
            }
            ([b'[' | b']' | b'^', _], None) => bytes[i] = b'_',
            _ => {}
        }
        i += 1;
    }
    bytes.push(b'\n');
    (String::from_utf8(bytes).unwrap_or_else(|_| format!("{text}\n")), found)
}

struct Walker<'b, 's, 't> {
    builder: &'b mut Builder,
    source: &'s Source<'t>,
    placed: HashMap<usize, usize>,
}

impl Walker<'_, '_, '_> {
    /// Returns the range of a node in the text, without the appended line end.
    fn range(&self, node: Node<'_>) -> Range<usize> {
        let range = node.byte_range();
        range.start.min(self.source.text.len())..range.end.min(self.source.text.len())
    }

    fn word(&self, node: Node<'_>) -> Word {
        self.source.word(self.range(node))
    }
}

impl Visit for Walker<'_, '_, '_> {
    fn visit(&mut self, node: Node<'_>, cx: &Cx) {
        let range = self.range(node);
        if self.builder.exceeds_limits(self.source, range.clone(), cx) {
            return;
        }
        match node.kind() {
            "command" => self.command(node, cx),
            "pipe" => self.pipe(node, cx),
            "redirect_statement" => self.redirected_block(node, cx),
            "command_substitution" => {
                self.builder.construct(Construct::CommandSubstitution, self.source, range);
                self.visit_children(node, &cx.substituted(How::Substitution));
            }
            "conditional_execution" => {
                self.builder.construct(Construct::AndOr, self.source, range);
                self.visit_children(node, cx);
            }
            "function_definition" => {
                let name = node.child_by_field_name("name").map_or_else(String::new, |n| self.word(n).text);
                let start = self.builder.script.commands.len();
                self.visit_children(node, cx);
                let commands = start..self.builder.script.commands.len();
                let span = self.source.map(range);
                self.builder.script.functions.push(Function { name, span, commands });
            }
            "comment" => {}
            kind => {
                if kind == "ERROR" || node.is_missing() {
                    self.error_node(node, cx);
                }
                self.visit_children(node, cx);
            }
        }
    }
}

impl Walker<'_, '_, '_> {
    /// Handles an error node. The grammar reports `FOO=1 cmd`, `a 2>| b` and a lone `! a` as errors although it read
    /// all of them.
    fn error_node(&mut self, node: Node<'_>, cx: &Cx) {
        let children = tree::all(node);
        let understood = |c: &Node<'_>| matches!(c.kind(), "command" | "pipe" | "negated_statement");
        if children.iter().all(understood) && !children.is_empty() {
            return;
        }
        self.builder.error(self.source.map(self.range(node)));
        let words: Vec<Word> = children
            .iter()
            .filter(|c| is_word(c.kind()))
            .map(|c| self.word(*c))
            .filter(|w| !w.raw.is_empty())
            .collect();
        self.builder.invoke_from_error(self.source, words, cx);
    }

    /// Visits the stages of `a | b | c`. The tree leans to the left, so they are collected in a loop.
    fn pipe(&mut self, node: Node<'_>, cx: &Cx) {
        let mut stages = Vec::new();
        let mut at = Some(node);
        while let Some(pipe) = at {
            let mut children = tree::named(pipe);
            at = (children.first().is_some_and(|c| c.kind() == "pipe")).then(|| children.remove(0));
            stages.extend(children.into_iter().rev());
        }
        let pipeline = self.builder.pipeline();
        let length = stages.len();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (index, stage) in stages.into_iter().rev().enumerate() {
            let start = self.builder.script.commands.len();
            self.visit(stage, &Builder::stage(cx, pipeline, index, length));
            ranges.push(start..self.builder.script.commands.len());
        }
        self.builder.link(&ranges);
    }

    fn command(&mut self, node: Node<'_>, cx: &Cx) {
        let mut nodes = Vec::new();
        let mut redirects = Vec::new();
        for child in tree::named(node) {
            match child.kind() {
                "file_redirect" | "stream_redirect" => redirects.push(child),
                "ERROR" => self.builder.error(self.source.map(self.range(child))),
                _ if self.range(child).is_empty() => {}
                _ => nodes.push(child),
            }
        }
        let words: Vec<Word> = nodes.iter().map(|n| self.word(*n)).collect();
        if words.is_empty() {
            self.builder.error(self.source.map(self.range(node)));
            return;
        }
        let index = self.builder.script.commands.len();
        self.record_set(&words, index);
        let placed = self.builder.invoke(self.source, words, Vec::new(), cx);
        self.placed.insert(node.id(), index);
        for (node, place) in nodes.into_iter().zip(placed) {
            if let Some(place) = place {
                self.visit(node, &cx.for_owner(place));
            }
        }
        for node in redirects {
            let redirect = self.redirect(node, cx);
            if let Some(command) = self.builder.script.commands.get_mut(index) {
                command.redirects.push(redirect);
            }
        }
    }

    /// Records `set x (cmd)` as an assignment.
    fn record_set(&mut self, words: &[Word], index: usize) {
        if words[0].text != "set" {
            return;
        }
        let mut operands = words[1..].iter().skip_while(|w| w.text.starts_with('-'));
        if let (Some(name), Some(value)) = (operands.next(), operands.next()) {
            self.builder.script.assignments.push(Assignment {
                name: name.text.clone(),
                value: value.clone(),
                before: index,
                commands: index + 1..index + 2,
            });
        }
    }

    fn redirected_block(&mut self, node: Node<'_>, cx: &Cx) {
        for child in tree::named(node) {
            if matches!(child.kind(), "file_redirect" | "stream_redirect") {
                let redirect = self.redirect(child, cx);
                self.builder.script.redirects.push(redirect);
            } else {
                self.visit(child, &cx.deeper());
            }
        }
    }

    fn redirect(&mut self, node: Node<'_>, cx: &Cx) -> Redirect {
        let range = self.range(node);
        let Some(target) = node.child_by_field_name("destination") else {
            // `2>&1`, in one token
            let raw = self.source.text.get(range.clone()).unwrap_or_default();
            let split = raw.rfind('&').map_or(raw.len(), |i| i + 1);
            let target = self.source.word(range.start + split..range.end);
            return Redirect { operator: raw[..split].to_owned(), target, body: None };
        };
        let operator = self.source.text.get(range.start..target.start_byte()).unwrap_or_default().trim().to_owned();
        let word = self.word(target);
        if operator.starts_with("&>") {
            self.builder.construct(Construct::AmpersandRedirect, self.source, range.clone());
        }
        if word.text == "/dev/null" {
            self.builder.construct(Construct::DevNull, self.source, range);
        }
        self.visit(target, &cx.deeper());
        Redirect { operator, target: word, body: None }
    }
}

fn is_word(kind: &str) -> bool {
    matches!(
        kind,
        "word"
            | "concatenation"
            | "double_quote_string"
            | "single_quote_string"
            | "integer"
            | "float"
            | "variable_expansion"
            | "glob"
    )
}
