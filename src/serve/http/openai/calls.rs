//! Splits the output of a model, while it is generated, into text and the function calls after it. The grammar of
//! [`tools`](super::tools) guarantees the form of the calls.
//!
//! Some models write a single call without its marks, as a JSON document that is the whole answer: [`bare`] finds it.

use super::bare;
use caro_model::tools::{CALL, CALL_END};

/// The text of a call before the function's name.
const BEFORE_NAME: &str = "{\"name\": \"";
/// The text between the name and the arguments.
const BEFORE_ARGUMENTS: &str = "\", \"arguments\": ";

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text outside of calls.
    Text(String),
    /// The start of a call of this function.
    Call(String),
    /// The next piece of the call's arguments, which together are a JSON document.
    Arguments(String),
}

/// The position in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// Before the arguments of a call.
    Head,
    Arguments,
    /// After a call.
    AfterCall,
}

/// A parser of an answer, fed piece by piece.
#[derive(Debug)]
pub struct Calls {
    state: State,
    /// Text that is not yet assigned to a part.
    pending: String,
    /// The number of calls that have started.
    count: usize,
    /// The functions whose call may be the whole answer, without marks; empty once the answer is another one.
    bare: Vec<String>,
}

impl Calls {
    /// Creates a parser. `is_opened` is true if the prompt already ends with the opening mark of a call.
    pub fn new(is_opened: bool) -> Self {
        Self {
            state: if is_opened { State::Head } else { State::Text },
            pending: String::new(),
            count: 0,
            bare: Vec::new(),
        }
    }

    /// Also accepts an answer that is a call of one of these functions without marks.
    #[must_use]
    pub fn or_bare(mut self, names: &[String]) -> Self {
        self.bare = names.to_vec();
        self
    }

    /// The number of calls that have started.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Parses the next piece of the answer.
    pub fn push(&mut self, piece: &str) -> Vec<Part> {
        self.pending.push_str(piece);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// Parses the end of the answer, which is complete or truncated.
    pub fn finish(&mut self, is_complete: bool) -> Vec<Part> {
        let rest = std::mem::take(&mut self.pending);
        if let Some((name, arguments)) = bare::call(&rest, &self.bare) {
            self.count += 1;
            return vec![Part::Call(name), Part::Arguments(arguments)];
        }
        match self.state {
            State::Text if !rest.is_empty() => vec![Part::Text(rest)],
            // of a complete call only its closing brace is left, which is not part of the arguments
            State::Arguments if !is_complete && !rest.is_empty() => vec![Part::Arguments(rest)],
            _ => Vec::new(),
        }
    }

    /// Advances by at most one state; false if more text is needed.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.state {
            State::Text => {
                if !self.bare.is_empty() {
                    if bare::may_become_call(&self.pending) {
                        return false;
                    }
                    self.bare.clear();
                }
                if let Some((text, rest)) = self.pending.split_once(CALL) {
                    // the line end before a call is not part of the text
                    let (text, rest) = (text.trim_end().to_owned(), rest.to_owned());
                    self.enter(State::Head, rest);
                    if !text.is_empty() {
                        parts.push(Part::Text(text));
                    }
                    return true;
                }
                let certain = self.pending[..partial_start(&self.pending, CALL)].trim_end().len();
                self.release(certain, parts, Part::Text);
                false
            }
            State::Head => {
                let Some((name, rest)) = self.pending.split_once(BEFORE_ARGUMENTS) else { return false };
                let name = name.trim_start().trim_start_matches(BEFORE_NAME).to_owned();
                let rest = rest.to_owned();
                self.enter(State::Arguments, rest);
                self.count += 1;
                parts.push(Part::Call(name));
                true
            }
            State::Arguments => {
                let end = format!("}}\n{CALL_END}");
                if let Some((arguments, rest)) = self.pending.split_once(&end) {
                    let (arguments, rest) = (arguments.to_owned(), rest.to_owned());
                    self.enter(State::AfterCall, rest);
                    if !arguments.is_empty() {
                        parts.push(Part::Arguments(arguments));
                    }
                    return true;
                }
                let certain = partial_start(&self.pending, &end);
                self.release(certain, parts, Part::Arguments);
                false
            }
            State::AfterCall => {
                let Some((_, rest)) = self.pending.split_once(CALL) else { return false };
                let rest = rest.to_owned();
                self.enter(State::Head, rest);
                true
            }
        }
    }

    fn enter(&mut self, state: State, rest: String) {
        self.state = state;
        self.pending = rest;
    }

    /// Emits the first `bytes` of the pending text as a part.
    fn release(&mut self, bytes: usize, parts: &mut Vec<Part>, part: fn(String) -> Part) {
        if bytes > 0 {
            let rest = self.pending.split_off(bytes);
            parts.push(part(std::mem::replace(&mut self.pending, rest)));
        }
    }
}

/// Returns the byte at which a prefix of `mark` starts that ends the text; the text's length if there is none.
fn partial_start(text: &str, mark: &str) -> usize {
    let longest = mark.len().min(text.len());
    let partial = (1..=longest).rev().find(|&len| mark.is_char_boundary(len) && text.ends_with(&mark[..len]));
    text.len() - partial.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses an answer in pieces of `size` characters; returns its text, and each call with its arguments.
    fn read(answer: &str, size: usize, is_opened: bool, is_complete: bool) -> (String, Vec<(String, String)>) {
        let names = if is_opened { Vec::new() } else { vec!["get".to_owned()] };
        let (mut calls, mut words, mut found) =
            (Calls::new(is_opened).or_bare(&names), String::new(), Vec::<(String, String)>::new());
        let chars: Vec<char> = answer.chars().collect();
        let mut parts: Vec<Part> =
            chars.chunks(size).flat_map(|piece| calls.push(&piece.iter().collect::<String>())).collect();
        parts.extend(calls.finish(is_complete));
        for part in parts {
            match part {
                Part::Text(text) => words += &text,
                Part::Call(name) => found.push((name, String::new())),
                Part::Arguments(text) => found.last_mut().unwrap().1 += &text,
            }
        }
        assert_eq!(calls.count(), found.len());
        (words, found)
    }

    #[test]
    fn calls_are_found_in_pieces_of_any_size() {
        let one = "{\"name\": \"a\", \"arguments\": {\"x\": \"}\\n</tool_call>\", \"y\": {}}}\n</tool_call>";
        let two = "{\"name\": \"b-2\", \"arguments\": {}}\n</tool_call>";
        let (first, second) = (
            ("a".to_owned(), "{\"x\": \"}\\n</tool_call>\", \"y\": {}}".to_owned()),
            ("b-2".to_owned(), "{}".to_owned()),
        );
        for size in 1..9 {
            let answer = format!("Let me see. é <tool\n\n<tool_call>\n{one}\n<tool_call>\n{two}");
            assert_eq!(
                read(&answer, size, false, true),
                ("Let me see. é <tool".into(), vec![first.clone(), second.clone()])
            );
            assert_eq!(
                read(&format!("{one}\n<tool_call>\n{two}"), size, true, true).1,
                [first.clone(), second.clone()]
            );
            for words in ["", "plain", "ends in <tool_ca", "line\n\n", "{\"name\": \"a\"}"] {
                assert_eq!(read(words, size, false, true), (words.into(), Vec::new()), "{size}");
            }
        }
    }

    #[test]
    fn a_call_without_marks_is_the_whole_answer() {
        let call = r#"{"name": "get", "arguments": {"x": "}"}}"#;
        let other = |call: &str| call.replace("get", "put");
        for size in [1, 2, 3, 7, 1000] {
            for good in
                [call.to_owned(), format!("\n{call}\n"), format!("```json\n{call}\n```"), format!("```\n{call}\n```\n")]
            {
                let found = read(&good, size, false, true);
                assert_eq!(found, (String::new(), vec![("get".into(), r#"{"x":"}"}"#.into())]), "{good}");
            }
            for text in [
                format!("Here: {call}"),
                format!("{call} is it"),
                format!("{call}{call}"),
                format!("```json\n{call}\n``` is it"),
                other(call),
                r#"{"name": "get", "arguments": "x"}"#.into(),
                r#"{"name": "get", "arguments": {}, "mood": 1}"#.into(),
                r#"{"name": "get"}"#.into(),
                "{ \"name".into(),
                "```json\n{\"a\": 1}\n```".into(),
                "```rust\nfn x() {}\n```".into(),
            ] {
                assert_eq!(read(&text, size, false, true), (text.clone(), Vec::new()), "{size}");
            }
            let marked = format!("{{}}\n<tool_call>\n{call}\n</tool_call>");
            assert_eq!(read(&marked, size, false, true).0, "{}");
        }
        // text that cannot become a call is not held back
        let mut calls = Calls::new(false).or_bare(&["get".into()]);
        assert_eq!(calls.push("{\"name"), []);
        assert_eq!(calls.push("d\": "), [Part::Text("{\"named\":".into())]);
    }

    #[test]
    fn a_truncated_call_is_returned_as_far_as_it_goes() {
        let cut = "<tool_call>\n{\"name\": \"a\", \"arguments\": {\"x\": {\"y\": 1}";
        assert_eq!(read(cut, 3, false, false).1, [("a".into(), "{\"x\": {\"y\": 1}".into())]);
        assert_eq!(read("words <tool_call>\n{\"na", 2, false, false), ("words".into(), Vec::new()));
    }
}
