//! Walks the syntax tree of a bash, zsh or POSIX sh script.

use super::builder::{Builder, Cx, Place, Source, assignment_of};
use super::mask::mask;
use super::script::{Assignment, Construct, Function, How, Invocation, Loop, Redirect, Word};
use super::{Dialect, effects, substitution, tree};
use std::collections::HashMap;
use std::ops::Range;
use tree_sitter::Node;

/// Parses a text and adds its commands to the builder.
pub(super) fn walk(builder: &mut Builder, source: &Source<'_>, cx: &Cx) {
    let extended = builder.script.text.contains("extglob");
    let masked = mask(source.text, source.dialect, extended);
    let Some(parsed) = tree::parse(&masked, tree::Grammar::Bash) else {
        builder.error(source.map(0..source.text.len()));
        return;
    };
    for missing in tree::missing(&parsed) {
        builder.error(source.map(missing));
    }
    let mut walker = Walker { builder, source, visited: HashMap::new(), trailing_words: HashMap::new() };
    walker.visit(parsed.root_node(), cx);
}

/// Variables that bash and zsh set themselves, unlike POSIX sh.
const OWN_VARIABLES: &[&str] =
    &["RANDOM", "SECONDS", "EPOCHSECONDS", "FUNCNAME", "BASH_SOURCE", "PIPESTATUS", "HOSTNAME"];

/// True for an expansion that transforms its value in a way that POSIX lacks: `${x/a/b}`, `${x:0:3}`, `${x^^}`,
/// `${!x}`.
fn transforms(expansion: &str) -> bool {
    let inner = expansion.trim_start_matches("${");
    if inner.len() > 2 && inner.starts_with('!') {
        return true;
    }
    let named = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    // `${#x}` and `${@:1}`: a special parameter is one character
    let rest = if named.len() < inner.len() { named } else { inner.get(1..).unwrap_or_default() };
    let rest = rest.strip_prefix('[').and_then(|r| r.split_once(']')).map_or(rest, |(_, rest)| rest);
    match rest.strip_prefix(':') {
        Some(after) => !after.starts_with(['-', '=', '?', '+']),
        None => rest.starts_with(['/', '^', ',', '@', '~']),
    }
}

struct Walker<'b, 's, 't> {
    builder: &'b mut Builder,
    source: &'s Source<'t>,
    /// The index of the command of each visited `command` node, by node id.
    visited: HashMap<usize, usize>,
    /// Words of a `command` node that follow a redirection: `-rf /` of `rm 2>/dev/null -rf /`.
    trailing_words: HashMap<usize, Vec<Range<usize>>>,
}

impl Walker<'_, '_, '_> {
    fn word(&self, node: Node<'_>) -> Word {
        self.source.word(node.byte_range())
    }

    fn text(&self, node: Node<'_>) -> &str {
        self.source.text.get(node.byte_range()).unwrap_or_default()
    }

    fn construct(&mut self, construct: Construct, node: Node<'_>) {
        self.builder.construct(construct, self.source, node.byte_range());
    }

    fn visit(&mut self, node: Node<'_>, cx: &Cx) {
        if self.builder.exceeds_limits(self.source, node.byte_range(), cx) {
            return;
        }
        match node.kind() {
            "command" => self.command(node, cx),
            "declaration_command" | "unset_command" | "test_command" => self.keyword_command(node, cx),
            "pipeline" => {
                let stages = tree::named(node);
                self.pipes(node, &stages, cx);
            }
            "list" => self.list(node, cx),
            "redirected_statement" => self.redirected_statement(node, cx),
            "variable_assignment" => self.assignment(node, cx),
            "function_definition" => self.function(node, cx),
            "command_substitution" => self.substitution(node, cx),
            "process_substitution" => {
                self.construct(Construct::ProcessSubstitution, node);
                self.children(node, &cx.substituted(How::Process));
            }
            "file_redirect" | "herestring_redirect" | "heredoc_redirect" => {
                let redirect = self.redirect(node, cx);
                self.builder.script.redirects.push(redirect);
            }
            "ERROR" => self.error_node(node, cx),
            "comment" | "heredoc_end" | "heredoc_start" => {}
            // a pattern or a default that the grammar does not parse: `${x#$(cmd)}`
            "regex" | "word" | "extglob_pattern" if node.child_count() == 0 => {
                self.visit_unparsed(node.byte_range(), node.kind() == "word", cx);
            }
            kind => {
                if node.is_missing() {
                    self.builder.error(self.source.map(node.byte_range()));
                }
                self.record_constructs(kind, node);
                let start = self.builder.script.commands.len();
                self.children(node, cx);
                if self.is_endless(kind, node) {
                    let commands = start..self.builder.script.commands.len();
                    self.builder.script.loops.push(Loop { span: self.source.map(node.byte_range()), commands });
                }
            }
        }
    }

    /// Records constructs that dialect rules refer to.
    fn record_constructs(&mut self, kind: &str, node: Node<'_>) {
        let text = self.text(node);
        let more = match kind {
            "for_statement" if text.starts_with("select") => Some(Construct::Select),
            "c_style_for_statement" => Some(Construct::DoubleParen),
            _ => None,
        };
        let construct = match kind {
            "if_statement" | "while_statement" | "for_statement" | "case_statement" | "c_style_for_statement" => {
                Construct::BourneBlock
            }
            "compound_statement" if text.starts_with("((") => Construct::DoubleParen,
            "arithmetic_expansion" if text.starts_with("$((") => Construct::Arithmetic,
            "ansi_c_string" => Construct::AnsiQuote,
            "array" | "subscript" => Construct::Array,
            "simple_expansion" if text == "$?" => Construct::ExitStatus,
            "simple_expansion" | "expansion" if OWN_VARIABLES.contains(&text.trim_matches(['$', '{', '}'])) => {
                Construct::OwnVariable
            }
            "expansion" if transforms(text) => Construct::ParameterTransform,
            _ => return,
        };
        for construct in [Some(construct), more].into_iter().flatten() {
            self.construct(construct, node);
        }
    }

    /// True for a loop whose own condition never ends it.
    fn is_endless(&self, kind: &str, node: Node<'_>) -> bool {
        let condition = node.child_by_field_name("condition").map(|c| self.text(c).trim_end_matches([';', ' ', '\n']));
        match kind {
            "while_statement" if self.text(node).starts_with("until") => condition == Some("false"),
            "while_statement" => {
                const TRUE: [&str; 9] =
                    ["true", ":", "[ 1 ]", "[ true ]", "[[ 1 ]]", "[[ true ]]", "((1))", "(( 1 ))", "test 1"];
                condition.is_some_and(|c| TRUE.contains(&c))
            }
            "c_style_for_statement" => condition.is_none_or(|c| c == "1"),
            _ => false,
        }
    }

    fn children(&mut self, node: Node<'_>, cx: &Cx) {
        if node.child_count() == 0 {
            return;
        }
        let deeper = cx.deeper();
        let mut before = None;
        for child in tree::all(node) {
            if child.kind() == "&"
                && let Some(range) = before.take()
            {
                self.builder.script.background.push(self.source.map(range));
            }
            if child.is_named() {
                before = Some(child.byte_range());
            }
        }
        for child in tree::named(node) {
            self.visit(child, &deeper);
        }
    }

    fn list(&mut self, node: Node<'_>, cx: &Cx) {
        self.construct(Construct::AndOr, node);
        let deeper = cx.deeper();
        for part in parts(node) {
            self.visit(part, &deeper);
        }
    }

    fn pipes<'n>(&mut self, node: Node<'n>, stages: &[Node<'n>], cx: &Cx) {
        let (stages, after) = flatten(stages);
        if tree::all(node).iter().any(|c| c.kind() == "|&") {
            self.construct(Construct::PipeBoth, node);
        }
        let pipeline = self.builder.pipeline();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (index, (stage, redirects)) in stages.iter().enumerate() {
            let start = self.builder.script.commands.len();
            self.collect_trailing_words(redirects, *stage);
            self.visit(*stage, &Builder::stage(cx, pipeline, index, stages.len()));
            self.redirects(redirects, Some(*stage), cx);
            ranges.push(start..self.builder.script.commands.len());
        }
        self.builder.link(&ranges);
        if !after.is_empty() {
            self.construct(Construct::AndOr, node);
        }
        for part in after {
            self.visit(part, &cx.deeper());
        }
    }

    fn command(&mut self, node: Node<'_>, cx: &Cx) {
        let mut assignments = Vec::new();
        let mut nodes: Vec<Node<'_>> = Vec::new();
        let mut redirects = Vec::new();
        for child in tree::all(node) {
            match child.kind() {
                "variable_assignment" => {
                    self.construct(Construct::PrefixAssignment, child);
                    assignments.push(self.prefix_assignment(child, cx));
                }
                "file_redirect" | "herestring_redirect" => redirects.push(child),
                "comment" => {}
                "ERROR" => {
                    self.builder.error(self.source.map(child.byte_range()));
                    nodes.extend(tree::named(child).into_iter().filter(|c| is_word(c.kind())));
                }
                "subshell" => self.visit(child, cx),
                _ if child.is_missing() || child.byte_range().is_empty() => {
                    self.builder.error(self.source.map(child.byte_range()));
                }
                // the grammar ends a command name at some characters where the shell does not: adjacent nodes are
                // joined
                _ => nodes.push(child),
            }
        }
        let missing = nodes.first().is_none_or(|n| n.byte_range().is_empty());
        if missing {
            self.builder.error(self.source.map(node.byte_range()));
            return;
        }
        let words = self.join_adjacent(&nodes);
        let behind = self.trailing_words.remove(&node.id()).unwrap_or_default();
        let list = words.iter().map(|(word, _)| word.clone());
        let list = list.chain(behind.into_iter().map(|range| self.source.word(range))).collect();
        let index = self.builder.script.commands.len();
        let placed = self.builder.invoke(self.source, list, assignments, cx);
        self.visited.insert(node.id(), index);
        for ((_, parts), place) in words.iter().zip(placed) {
            let Some(place) = place else { continue };
            for part in parts {
                self.visit(*part, &cx.for_owner(place));
            }
        }
        for redirect in redirects {
            let redirect = self.redirect(redirect, &owner(cx, index));
            if let Some(command) = self.builder.script.commands.get_mut(index) {
                command.redirects.push(redirect);
            }
        }
    }

    /// Turns nodes into words. Nodes that are adjacent in the text, or separated by a line continuation only, are one
    /// word.
    fn join_adjacent<'n>(&self, nodes: &[Node<'n>]) -> Vec<(Word, Vec<Node<'n>>)> {
        let mut groups: Vec<(Range<usize>, Vec<Node<'n>>)> = Vec::new();
        for node in nodes {
            let range = node.byte_range();
            match groups.last_mut() {
                Some((span, parts)) if self.is_adjacent(span.end, range.start) => {
                    span.end = range.end;
                    parts.push(*node);
                }
                _ => groups.push((range, vec![*node])),
            }
        }
        groups.into_iter().map(|(span, parts)| (self.source.word(span), parts)).collect()
    }

    /// True if there is at most a line continuation between two positions.
    fn is_adjacent(&self, end: usize, start: usize) -> bool {
        self.source.text.get(end..start).is_some_and(|between| between.replace("\\\n", "").is_empty())
    }

    /// Adds `export A=b`, `unset x`, `[ -f x ]` as commands, which the grammar reads as keywords. `[[` is no command.
    fn keyword_command(&mut self, node: Node<'_>, cx: &Cx) {
        let range = node.byte_range();
        let text = self.text(node);
        if text.starts_with("[[") {
            self.construct(Construct::DoubleBracket, node);
            return self.children(node, cx);
        }
        let mut words = Vec::new();
        let mut at = range.start;
        for piece in tree::split_words(self.source.text.get(range.clone()).unwrap_or_default()) {
            words.push(self.source.word(range.start + piece.start..range.start + piece.end));
            at = range.start + piece.end;
        }
        if words.is_empty() || at == range.start {
            return self.children(node, cx);
        }
        let before = self.builder.script.commands.len();
        let dialect = self.source.dialect;
        let exported: Vec<Assignment> =
            words.iter().skip(1).filter_map(|w| assignment_of(w, before, dialect)).collect();
        self.builder.script.assignments.extend(exported);
        self.visited.insert(node.id(), before);
        self.builder.invoke(self.source, words, Vec::new(), cx);
        let mut inner = owner(cx, before);
        inner.depth += 1;
        for child in tree::named(node) {
            match child.kind() {
                // already recorded as this command's; its value may still contain substitutions
                "variable_assignment" => self.children(child, &inner),
                _ => self.visit(child, &inner),
            }
        }
    }

    fn redirected_statement<'n>(&mut self, node: Node<'n>, cx: &Cx) {
        let children = tree::all(node);
        let is_redirect = |n: &Node<'_>| n.kind().ends_with("_redirect");
        let body = children.iter().copied().find(|c| c.is_named() && !is_redirect(c));
        // `cat <<EOF | sh`: the grammar attaches the rest of the pipeline to the here-document
        let rest = children
            .iter()
            .filter(|c| c.kind() == "heredoc_redirect")
            .find_map(|c| tree::named(*c).into_iter().find(|n| n.kind() == "pipeline"));
        if let (Some(body), Some(rest)) = (body, rest) {
            let mut stages = vec![body];
            let nested = |n: Node<'n>| if n.kind() == "pipeline" { tree::named(n) } else { vec![n] };
            stages.extend(tree::named(rest).into_iter().flat_map(nested));
            self.pipes(rest, &stages, cx);
        } else if let Some(body) = body {
            let redirects: Vec<Node<'_>> = children.iter().copied().filter(is_redirect).collect();
            self.collect_trailing_words(&redirects, body);
            self.visit(body, &cx.deeper());
        }
        let redirects: Vec<Node<'_>> = children.into_iter().filter(is_redirect).collect();
        self.redirects(&redirects, body, cx);
    }

    /// Records the words after redirections for the command that they belong to; the grammar attaches them to the
    /// redirection.
    fn collect_trailing_words(&mut self, redirects: &[Node<'_>], body: Node<'_>) {
        let mut at = body;
        while at.kind() != "command" {
            if !matches!(at.kind(), "pipeline" | "list" | "negated_command" | "redirected_statement") {
                return;
            }
            match tree::named(at).into_iter().rev().find(|c| !c.kind().ends_with("_redirect")) {
                Some(last) => at = last,
                None => return,
            }
        }
        let literal = |n: &Node<'_>| n.kind() != "file_descriptor" && !n.kind().ends_with("_redirect");
        let own = redirects.iter().filter(|r| r.kind() == "file_redirect");
        let behind = own.flat_map(|r| tree::named(*r).into_iter().filter(literal).skip(1));
        // `>& f 0>&1`: a word adjacent to the next redirection is the number of a descriptor
        let follows = |end: usize| self.source.text[end..].starts_with(['<', '>']);
        let ranges: Vec<Range<usize>> = behind.map(|n| n.byte_range()).filter(|range| !follows(range.end)).collect();
        if !ranges.is_empty() {
            self.trailing_words.entry(at.id()).or_default().extend(ranges);
        }
    }

    /// Attaches redirections after `body`, which has been visited, to its last command.
    fn redirects(&mut self, redirects: &[Node<'_>], body: Option<Node<'_>>, cx: &Cx) {
        let target = body.and_then(|b| self.target(b));
        for redirect in redirects {
            let cx = target.map_or_else(|| cx.clone(), |t| owner(cx, t));
            let redirect = self.redirect(*redirect, &cx);
            match target.and_then(|t| self.builder.script.commands.get_mut(t)) {
                Some(command) => command.redirects.push(redirect),
                None => self.builder.script.redirects.push(redirect),
            }
        }
    }

    /// Returns the command that a redirection after `node` belongs to: its last simple command.
    fn target(&self, node: Node<'_>) -> Option<usize> {
        let mut at = node;
        loop {
            if let Some(index) = self.visited.get(&at.id()) {
                return Some(*index);
            }
            if !matches!(at.kind(), "pipeline" | "list" | "negated_command" | "redirected_statement") {
                return None;
            }
            at = tree::named(at).into_iter().rev().find(|c| !c.kind().ends_with("_redirect"))?;
        }
    }

    fn redirect(&mut self, node: Node<'_>, cx: &Cx) -> Redirect {
        let range = node.byte_range();
        let children = tree::all(node);
        let is_target = |n: &&Node<'_>| n.is_named() && !matches!(n.kind(), "file_descriptor" | "ERROR");
        let target = children.iter().find(is_target).copied();
        let start = target.map_or(range.end, |t| t.start_byte());
        let operator = self.source.text.get(range.start..start).unwrap_or_default();
        let operator: String = operator.chars().filter(|c| !c.is_whitespace()).collect();
        let word = target.map_or_else(Word::default, |t| self.word(t));
        if node.kind() == "heredoc_redirect" {
            self.construct(Construct::HereDocument, node);
            return self.heredoc(node, operator, word, cx);
        }
        if node.kind() == "herestring_redirect" {
            self.construct(Construct::HereString, node);
        }
        if operator.starts_with("&>") || operator == ">&" && !word.text.chars().all(|c| c.is_ascii_digit() || c == '-')
        {
            self.construct(Construct::AmpersandRedirect, node);
        }
        if word.text == "/dev/null" {
            self.construct(Construct::DevNull, node);
        }
        // a word after the target belongs to the command, and may contain a substitution
        for part in children.iter().filter(is_target) {
            self.visit(*part, &cx.deeper());
        }
        Redirect { operator, target: word, body: None }
    }

    fn heredoc(&mut self, node: Node<'_>, operator: String, delimiter: Word, cx: &Cx) -> Redirect {
        let mut body = None;
        for child in tree::named(node) {
            match child.kind() {
                "heredoc_body" => {
                    let mut word = Word::literal(self.text(child), self.source.map(child.byte_range()));
                    if !delimiter.quoted && word.text.contains(['$', '`']) {
                        word.value = None;
                        word.expands = true;
                        // the grammar finds only some of the substitutions
                        self.visit_unparsed(child.byte_range(), false, cx);
                    }
                    body = Some(word);
                }
                "pipeline" | "heredoc_start" | "heredoc_end" | "file_descriptor" => {}
                kind if kind.ends_with("_redirect") => {
                    let redirect = self.redirect(child, cx);
                    match cx.owner.and_then(|(command, _)| self.builder.script.commands.get_mut(command)) {
                        Some(command) => command.redirects.push(redirect),
                        None => self.builder.script.redirects.push(redirect),
                    }
                }
                _ => self.visit(child, &Cx { owner: None, ..cx.deeper() }),
            }
        }
        let operator = if operator.contains("<<-") { "<<-" } else { "<<" }.to_owned();
        Redirect { operator, target: delimiter, body }
    }

    fn prefix_assignment(&mut self, node: Node<'_>, cx: &Cx) -> Assignment {
        let before = self.builder.script.commands.len();
        let name = node.child_by_field_name("name").map_or_else(String::new, |n| self.text(n).to_owned());
        let value = node.child_by_field_name("value");
        let word = value.map_or_else(Word::default, |v| self.word(v));
        self.children(node, &Cx { owner: None, ..cx.deeper() });
        Assignment { name, value: word, before, commands: before..self.builder.script.commands.len() }
    }

    fn assignment(&mut self, node: Node<'_>, cx: &Cx) {
        self.construct(Construct::Assignment, node);
        if tree::all(node).iter().any(|c| c.kind() == "+=") {
            self.construct(Construct::AppendAssignment, node);
        }
        let assignment = self.prefix_assignment(node, cx);
        self.builder.script.assignments.push(assignment);
    }

    fn function(&mut self, node: Node<'_>, cx: &Cx) {
        let keyword = self.text(node).starts_with("function");
        self.construct(if keyword { Construct::FunctionKeyword } else { Construct::FunctionParens }, node);
        let name = node.child_by_field_name("name").map_or_else(String::new, |n| self.text(n).to_owned());
        let start = self.builder.script.commands.len();
        self.children(node, cx);
        let commands = start..self.builder.script.commands.len();
        self.builder.script.functions.push(Function { name, span: self.source.map(node.byte_range()), commands });
    }

    fn substitution(&mut self, node: Node<'_>, cx: &Cx) {
        let backticks = self.text(node).starts_with('`');
        self.construct(if backticks { Construct::Backticks } else { Construct::CommandSubstitution }, node);
        let inner = self.text(node).strip_prefix('`').and_then(|t| t.strip_suffix('`')).unwrap_or_default();
        if backticks && inner.contains("\\`") {
            let text = substitution::unescape(inner);
            let place = Place::Within(self.source.map(node.byte_range()));
            let source = Source { text: &text, dialect: self.source.dialect, place };
            return self.builder.walk(&source, &cx.substituted(How::Substitution));
        }
        self.children(node, &cx.substituted(How::Substitution));
    }

    /// Walks the substitutions in a text that the grammar does not parse.
    fn visit_unparsed(&mut self, range: Range<usize>, files: bool, cx: &Cx) {
        let text = self.source.text.get(range.clone()).unwrap_or_default();
        for part in substitution::find_all(text, files) {
            let how = match text[..part.start].ends_with("<(") || text[..part.start].ends_with(">(") {
                true => How::Process,
                false => How::Substitution,
            };
            let backticks = text[..part.start].ends_with('`');
            let span = range.start + part.start..range.start + part.end;
            self.builder.construct(
                if backticks { Construct::Backticks } else { Construct::CommandSubstitution },
                self.source,
                span.clone(),
            );
            self.visit_range(span, &cx.substituted(how));
        }
    }

    /// Walks a part of the text on its own.
    fn visit_range(&mut self, range: Range<usize>, cx: &Cx) {
        let place = match &self.source.place {
            Place::At(offset) => Place::At(offset + range.start),
            Place::Within(whole) => Place::Within(whole.clone()),
        };
        let text = self.source.text.get(range).unwrap_or_default();
        self.builder.walk(&Source { text, dialect: self.source.dialect, place }, cx);
    }

    /// Handles an error node: whatever looks like a command in it still counts.
    fn error_node(&mut self, node: Node<'_>, cx: &Cx) {
        self.builder.error(self.source.map(node.byte_range()));
        let before = self.builder.script.commands.len();
        let mut words: Vec<Node<'_>> = Vec::new();
        for child in tree::all(node) {
            if is_word(child.kind()) {
                words.push(child);
                continue;
            }
            self.add_command(&std::mem::take(&mut words), cx);
            if child.is_named() {
                self.visit(child, &cx.deeper());
            }
        }
        self.add_command(&words, cx);
        let text = self.text(node);
        for part in substitution::simple_commands(text) {
            let part = node.start_byte() + part.start..node.start_byte() + part.end;
            let start = self.source.map(part.clone()).start;
            let placed = matches!(self.source.place, Place::At(_));
            let seen = |c: &Invocation| placed && c.words.first().is_some_and(|w| w.span.start == start);
            let missed = !self.builder.script.commands[before..].iter().any(seen);
            if missed && is_command(self.source.text.get(part.clone()).unwrap_or_default(), self.source.dialect) {
                self.visit_range(part, &cx.deeper());
            }
        }
    }

    fn add_command(&mut self, nodes: &[Node<'_>], cx: &Cx) {
        if nodes.len() < 2 {
            return;
        }
        let words = self.join_adjacent(nodes);
        let list = words.into_iter().map(|(word, _)| word).collect();
        self.builder.invoke(self.source, list, Vec::new(), cx);
    }
}

/// Returns the parts of `a && b || c`. The left spine may be as long as the text, so it is walked in a loop.
fn parts(list: Node<'_>) -> Vec<Node<'_>> {
    let mut parts = Vec::new();
    let mut at = Some(list);
    while let Some(list) = at {
        let mut children = tree::named(list);
        at = (children.first().is_some_and(|c| c.kind() == "list")).then(|| children.remove(0));
        parts.extend(children.into_iter().rev());
    }
    parts.reverse();
    parts
}

/// A stage of a pipeline with the redirections after it.
type Level<'n> = (Node<'n>, Vec<Node<'n>>);

/// Flattens the stages of a pipeline; also returns what follows the pipeline. The grammar nests them: it reads `a | b
/// | c && d` as `a | (b | c && d)`, and the first two of `a | b 2>&1 | c` as one stage with a redirection.
fn flatten<'n>(stages: &[Node<'n>]) -> (Vec<Level<'n>>, Vec<Node<'n>>) {
    let (mut flat, mut after) = (Vec::new(), Vec::new());
    let mut todo: Vec<Level<'n>> = stages.iter().rev().map(|stage| (*stage, Vec::new())).collect();
    while let Some((stage, redirects)) = todo.pop() {
        let children = tree::named(stage);
        let split = children.iter().position(|c| c.kind().ends_with("_redirect")).unwrap_or(children.len());
        match (stage.kind(), &children[..split]) {
            ("comment", _) => {}
            ("pipeline", _) => {
                let start = todo.len();
                todo.extend(children.into_iter().rev().map(|child| (child, Vec::new())));
                if let Some((_, last)) = todo.get_mut(start) {
                    *last = redirects;
                }
            }
            ("list", _) if todo.is_empty() && redirects.is_empty() => {
                let mut parts = parts(stage).into_iter();
                todo.extend(parts.next().map(|first| (first, redirects)));
                after.splice(0..0, parts);
            }
            ("redirected_statement", [body])
                if body.kind() == "pipeline" && children[split..].iter().all(|c| c.kind() == "file_redirect") =>
            {
                let more = children[split..].iter().copied().chain(redirects).collect();
                todo.push((*body, more));
            }
            _ => flat.push((stage, redirects)),
        }
    }
    (flat, after)
}

fn owner(cx: &Cx, command: usize) -> Cx {
    Cx { owner: Some((command, None)), ..cx.deeper() }
}

/// True for a text that begins with a known program, apart from assignments. Any other text is not shell, for example
/// a part of an awk program.
fn is_command(text: &str, dialect: Dialect) -> bool {
    let first = text.split_whitespace().find(|word| !word.contains('=')).unwrap_or_default();
    effects::is_known(first.trim_start_matches('\\').rsplit('/').next().unwrap_or_default(), dialect)
}

fn is_word(kind: &str) -> bool {
    matches!(
        kind,
        "word"
            | "concatenation"
            | "string"
            | "raw_string"
            | "ansi_c_string"
            | "number"
            | "simple_expansion"
            | "expansion"
            | "command_name"
    )
}
