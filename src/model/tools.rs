//! Formats tools in a conversation as the catalog's models were trained on: a system message lists the function
//! signatures, a message of the model ends in calls, a message of the user has their results.
//!
//! A mark such as `<tool_call>` is one token if the vocabulary has it, and plain characters otherwise. Only this module
//! creates marks: a block that spells one is data, and stays plain characters.

use super::{Message, Opening, Prompt, Role};
use serde::Serialize;
use serde_json::Value;
use std::io;

/// The mark before a call.
pub const CALL: &str = "<tool_call>";
/// The mark after a call.
pub const CALL_END: &str = "</tool_call>";
/// The marks around a result.
const RESULT: &str = "<tool_response>";
const RESULT_END: &str = "</tool_response>";

/// The text around signatures. Source: the chat template in the files of Qwen2.5 and Qwen3, with which they were
/// trained; they follow other words less reliably.
const BEFORE: &str = "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with \
                      function signatures within <tools></tools> XML tags:\n<tools>";
const BETWEEN: &str =
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within ";
const FORM: &str = "\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n";

/// A part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Data: always plain characters.
    Text(&'a str),
    /// A mark: one token if the vocabulary has it.
    Mark(&'static str),
}

impl Message {
    /// Returns the text and the blocks after it, with their marks.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        use Piece::{Mark, Text};
        let mut pieces = vec![Text(&self.text)];
        if self.blocks.is_empty() {
            return pieces;
        }
        if self.role == Role::System {
            if !self.text.is_empty() {
                pieces.push(Text("\n\n"));
            }
            pieces.push(Text(BEFORE));
            pieces.extend(self.blocks.iter().flat_map(|block| [Text("\n"), Text(block)]));
            pieces.extend([Text(BETWEEN), Mark(CALL), Mark(CALL_END), Text(" XML tags:\n")]);
            pieces.extend([Mark(CALL), Text(FORM), Mark(CALL_END)]);
            return pieces;
        }
        let (open, close) = if self.role == Role::Assistant { (CALL, CALL_END) } else { (RESULT, RESULT_END) };
        for (i, block) in self.blocks.iter().enumerate() {
            if i > 0 || !self.text.is_empty() {
                pieces.push(Text("\n"));
            }
            pieces.extend([Mark(open), Text("\n"), Text(block), Text("\n"), Mark(close)]);
        }
        pieces
    }

    /// Returns [`Message::pieces`] as one text, for models without marks.
    pub fn whole(&self) -> String {
        joined(&self.pieces())
    }
}

impl Prompt {
    /// Returns the beginning of the model's own message.
    pub fn opened(&self) -> Vec<Piece<'_>> {
        match self.opening {
            Opening::Call => vec![Piece::Text(&self.prefill), Piece::Mark(CALL), Piece::Text("\n")],
            Opening::Message | Opening::Raw => vec![Piece::Text(&self.prefill)],
        }
    }

    /// Returns [`Prompt::opened`] as one text.
    pub fn opened_whole(&self) -> String {
        joined(&self.opened())
    }
}

fn joined(pieces: &[Piece<'_>]) -> String {
    let text = |piece: &Piece<'_>| match *piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Mark(mark) => mark.to_owned(),
    };
    pieces.iter().map(text).collect()
}

/// Serializes a document with the spacing of the models' training texts, `{"a": 1, "b": [2, 3]}`.
pub fn spaced(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        // writing to memory does not fail
        Err(_) => value.to_string(),
    }
}

struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn turn(role: Role, text: &str, blocks: &[&str]) -> Message {
        Message { role, text: text.into(), blocks: blocks.iter().map(|block| (*block).into()).collect() }
    }

    #[test]
    fn blocks_are_formatted_by_role() {
        let call = r#"{"name": "now", "arguments": {}}"#;
        let calls = turn(Role::Assistant, "", &[call, call]);
        let one = format!("<tool_call>\n{call}\n</tool_call>");
        assert_eq!(calls.whole(), format!("{one}\n{one}"));
        assert_eq!(turn(Role::Assistant, "I look.", &[call]).whole(), format!("I look.\n{one}"));
        assert_eq!(turn(Role::User, "", &["12:00"]).whole(), "<tool_response>\n12:00\n</tool_response>");
        let system = turn(Role::System, "Be brief.", &[r#"{"type": "function"}"#]).whole();
        assert!(system.starts_with("Be brief.\n\n# Tools\n"), "{system}");
        assert!(system.contains("<tools>\n{\"type\": \"function\"}\n</tools>"), "{system}");
        assert!(system.ends_with("\n</tool_call>"), "{system}");
        assert_eq!(turn(Role::System, "Be brief.", &[]).whole(), "Be brief.");
    }

    #[test]
    fn a_mark_inside_a_block_stays_text() {
        let result = turn(Role::User, "", &["</tool_response><tool_call>"]);
        let marks = result.pieces().iter().filter(|piece| matches!(piece, Piece::Mark(_))).count();
        assert_eq!(marks, 2, "its own two");
    }

    #[test]
    fn documents_have_the_spacing_of_training_texts() {
        let value = json!({"b": [1, {"c": "x,y:z"}], "a": {}});
        assert_eq!(spaced(&value), r#"{"b": [1, {"c": "x,y:z"}], "a": {}}"#);
    }
}
