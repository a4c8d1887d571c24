//! Finds the calls in what a model writes, as it comes: words, then calls whose form the grammar of [`tools`](super::tools)
//! holds.

use caro_model::tools::{CALL, CALL_END};

/// The beginning of a call, up to its name and up to its arguments.
const NAME: &str = "{\"name\": \"";
const ARGUMENTS: &str = "\", \"arguments\": ";

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Words.
    Text(String),
    /// A call of a function of this name begins.
    Call(String),
    /// The next piece of its arguments, which together are a JSON document.
    Arguments(String),
}

/// Where in the answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Words,
    /// In front of the arguments of a call.
    Head,
    Arguments,
    /// Behind a call.
    Behind,
}

/// An answer as it comes.
#[derive(Debug)]
pub struct Calls {
    state: State,
    /// Text that may still be either.
    held: String,
    /// Calls that have begun.
    count: usize,
}

impl Calls {
    /// One that begins with words, or with a call that is opened already.
    pub fn new(is_opened: bool) -> Self {
        Self { state: if is_opened { State::Head } else { State::Words }, held: String::new(), count: 0 }
    }

    /// Calls that have begun.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes the next piece of the answer.
    pub fn push(&mut self, piece: &str) -> Vec<Part> {
        self.held.push_str(piece);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// Takes the end of the answer, which is whole or was cut off.
    pub fn finish(&mut self, is_whole: bool) -> Vec<Part> {
        let rest = std::mem::take(&mut self.held);
        match self.state {
            State::Words if !rest.is_empty() => vec![Part::Text(rest)],
            // of a whole one only the call's own brace is left
            State::Arguments if !is_whole && !rest.is_empty() => vec![Part::Arguments(rest)],
            _ => Vec::new(),
        }
    }

    /// Moves on by one state; false where more text is needed.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.state {
            State::Words => {
                if let Some((words, rest)) = self.held.split_once(CALL) {
                    // the line end in front of a call belongs to neither
                    let (words, rest) = (words.trim_end().to_owned(), rest.to_owned());
                    self.enter(State::Head, rest);
                    if !words.is_empty() {
                        parts.push(Part::Text(words));
                    }
                    return true;
                }
                let certain = self.held[..begins(&self.held, CALL)].trim_end().len();
                self.release(certain, parts, Part::Text);
                false
            }
            State::Head => {
                let Some((name, rest)) = self.held.split_once(ARGUMENTS) else { return false };
                let name = name.trim_start().trim_start_matches(NAME).to_owned();
                let rest = rest.to_owned();
                self.enter(State::Arguments, rest);
                self.count += 1;
                parts.push(Part::Call(name));
                true
            }
            State::Arguments => {
                let end = format!("}}\n{CALL_END}");
                if let Some((arguments, rest)) = self.held.split_once(&end) {
                    let (arguments, rest) = (arguments.to_owned(), rest.to_owned());
                    self.enter(State::Behind, rest);
                    if !arguments.is_empty() {
                        parts.push(Part::Arguments(arguments));
                    }
                    return true;
                }
                let certain = begins(&self.held, &end);
                self.release(certain, parts, Part::Arguments);
                false
            }
            State::Behind => {
                let Some((_, rest)) = self.held.split_once(CALL) else { return false };
                let rest = rest.to_owned();
                self.enter(State::Head, rest);
                true
            }
        }
    }

    fn enter(&mut self, state: State, rest: String) {
        self.state = state;
        self.held = rest;
    }

    /// Lets go of the first bytes of what is held.
    fn release(&mut self, bytes: usize, parts: &mut Vec<Part>, part: fn(String) -> Part) {
        if bytes > 0 {
            let rest = self.held.split_off(bytes);
            parts.push(part(std::mem::replace(&mut self.held, rest)));
        }
    }
}

/// Where in the text a beginning of `mark` stands at its end; the text's length if none does.
fn begins(text: &str, mark: &str) -> usize {
    let longest = mark.len().min(text.len());
    let held = (1..=longest).rev().find(|&len| mark.is_char_boundary(len) && text.ends_with(&mark[..len]));
    text.len() - held.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of an answer that comes in pieces of so many characters: words, and each call with its arguments.
    fn read(answer: &str, size: usize, is_opened: bool, is_whole: bool) -> (String, Vec<(String, String)>) {
        let (mut calls, mut words, mut found) = (Calls::new(is_opened), String::new(), Vec::<(String, String)>::new());
        let chars: Vec<char> = answer.chars().collect();
        let mut parts: Vec<Part> =
            chars.chunks(size).flat_map(|piece| calls.push(&piece.iter().collect::<String>())).collect();
        parts.extend(calls.finish(is_whole));
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
    fn calls_are_found_however_they_come() {
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
    fn what_was_cut_off_is_told_as_far_as_it_came() {
        let cut = "<tool_call>\n{\"name\": \"a\", \"arguments\": {\"x\": {\"y\": 1}";
        assert_eq!(read(cut, 3, false, false).1, [("a".into(), "{\"x\": {\"y\": 1}".into())]);
        assert_eq!(read("words <tool_call>\n{\"na", 2, false, false), ("words".into(), Vec::new()));
    }
}
