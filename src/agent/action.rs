//! Builds the grammar of what the model may write in a step, and parses what it wrote.
//!
//! A step is one short thought, followed by one to [`ActionSet::batch`] calls or by an action that ends the run:
//!
//! ```text
//! Thought: the biggest files come first in a listing by size
//! Action: list {"path": "logs"}
//! ```
//!
//! The engine checks every token against the grammar, so a tool that is not admitted, or an argument that is not in its
//! schema, cannot be written.

use super::tool::{Args, Provider, ToolSpec};
use caro_model::Shape;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Most characters of a thought: about forty tokens.
const MAX_THOUGHT: usize = 180;

/// The actions that are open to the model in its next step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionSet {
    /// The tools it may call, in the order in which they are shown.
    pub tools: Vec<String>,
    /// True if it may answer.
    pub answer: bool,
    /// True if it may end with `cannot`. False once only the answer is left to write, and until a server that the task
    /// names has been asked.
    #[serde(default = "default_true")]
    pub cannot: bool,
    /// The most calls in one step.
    pub batch: usize,
    /// The only value that an argument `path` may have; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

fn default_true() -> bool {
    true
}

impl ActionSet {
    /// The set of the last step, in which the model may only end the run.
    pub fn last() -> Self {
        Self { tools: Vec::new(), answer: true, cannot: true, batch: 1, path: None }
    }

    /// Removes every action that is not in `outer`.
    pub fn keep_within(&mut self, outer: &Self) {
        self.tools.retain(|tool| outer.tools.contains(tool));
        self.answer &= outer.answer;
        self.cannot &= outer.cannot;
        self.batch = self.batch.min(outer.batch);
        if outer.path.is_some() {
            self.path.clone_from(&outer.path);
        }
    }

    /// Returns the names of all actions, including `answer` and `cannot`.
    pub fn names(&self) -> Vec<&str> {
        let answer = self.answer.then_some("answer");
        let cannot = self.cannot.then_some("cannot");
        self.tools.iter().map(String::as_str).chain(answer).chain(cannot).collect()
    }
}

/// Builds the grammar of one step. Tools of the set that have no spec are left out.
pub fn shape(set: &ActionSet, specs: &[ToolSpec]) -> Shape {
    let text = |name: &str| schema(&json!({ name: {"type": "string"} }), &[name]);
    let mut rules = String::new();
    let mut calls = Vec::new();
    let quoted = |name: &str| Value::from(format!("{name} ")).to_string();
    for (i, spec) in set.tools.iter().filter_map(|t| specs.iter().find(|s| s.name == *t)).enumerate() {
        calls.push(format!("{} args_{i}", quoted(spec.shown())));
        let mut parameters = spec.parameters.clone();
        if let (Some(path), Some(schema)) = (&set.path, parameters.pointer_mut("/properties/path")) {
            *schema = json!({ "type": "string", "enum": [path] });
        }
        rules.push_str(&format!("args_{i}: %json {}\n", compact(parameters)));
    }
    let mut ends = Vec::new();
    if set.answer {
        ends.push(format!("{} answer", quoted("answer")));
        rules.push_str(&format!("answer: %json {}\n", text("text")));
    }
    // without any call or end the grammar would be empty
    if set.cannot || ends.is_empty() && calls.is_empty() {
        ends.push(format!("{} cannot", quoted("cannot")));
        rules.push_str(&format!("cannot: %json {}\n", text("reason")));
    }
    let more = set.batch.saturating_sub(1);
    let mut grammar = String::from("start: \"Thought: \" thought \"\\nAction: \" step\n");
    grammar.push_str(&format!("thought: /[^\\n]{{1,{MAX_THOUGHT}}}/\n"));
    match calls.is_empty() {
        true => grammar.push_str("step: end\n"),
        false => {
            let repeat = if more > 0 { format!(" (\"\\nAction: \" call){{0,{more}}}") } else { String::new() };
            let or_end = if ends.is_empty() { "" } else { "end | " };
            grammar.push_str(&format!("step: {or_end}call{repeat}\ncall: {}\n", calls.join(" | ")));
        }
    }
    if !ends.is_empty() {
        grammar.push_str(&format!("end: {}\n", ends.join(" | ")));
    }
    grammar.push_str(&rules);
    Shape::Lark(grammar)
}

fn schema(properties: &Value, required: &[&str]) -> Value {
    compact(json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}))
}

/// Fixes the spacing of a schema to what models usually write: forced spacing costs no decoding, and a small model
/// cannot get stuck in white space.
fn compact(mut schema: Value) -> Value {
    if let Value::Object(map) = &mut schema {
        map.entry("x-guidance")
            .or_insert_with(|| json!({"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": false}));
    }
    schema
}

/// One step of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The reason, in the model's own words.
    pub thought: String,
    /// The actions.
    pub choice: Choice,
}

/// The actions of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Calls tools.
    Calls(Vec<(String, Args)>),
    /// Ends with an answer.
    Answer(String),
    /// Ends without an answer, for this reason.
    Cannot(String),
}

/// Parses what the model wrote.
///
/// # Errors
/// A message for the model. A complete text under the grammar always parses; one that was cut off, or written without
/// the grammar, may not.
pub fn read(text: &str) -> Result<Decision, String> {
    let mut thought = String::new();
    let mut calls = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if let Some(rest) = line.strip_prefix("Thought:") {
            thought = rest.trim().to_owned();
        } else if let Some(rest) = line.strip_prefix("Action:") {
            let (name, args) = rest.trim().split_once(' ').ok_or("the action has no arguments")?;
            let args: Args = serde_json::from_str(args)
                .map_err(|e| format!("the arguments of `{name}` are no whole JSON object ({e}): write less at once"))?;
            calls.push((name.to_owned(), args));
        } else {
            return Err(format!("`{}` is neither a thought nor an action", line.chars().take(40).collect::<String>()));
        }
    }
    let text_of = |args: &Args, name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let choice = match calls.as_slice() {
        [] => return Err("there is no action".into()),
        [(name, args), ..] if name == "answer" => Choice::Answer(text_of(args, "text")),
        [(name, args), ..] if name == "cannot" => Choice::Cannot(text_of(args, "reason")),
        // an end that follows calls was written before their results: it is dropped
        _ => {
            calls.retain(|(name, _)| !super::tool::RESERVED.contains(&name.as_str()));
            Choice::Calls(calls)
        }
    };
    Ok(Decision { thought, choice })
}

/// The number used in the examples of prompts. Real text hardly ever has it, so an output that does was copied from an
/// example.
pub const EXAMPLE: &str = "8317";

/// Lists tools for a prompt, one per line, each with its arguments or a worked example.
pub fn list(specs: &[ToolSpec]) -> String {
    let mut lines = String::new();
    for spec in specs {
        let name = spec.shown();
        lines.push_str(&format!("- {name}: {}", spec.description));
        if spec.example.is_object() {
            lines.push_str(&format!(" Example: Action: {name} {}", one_line(&spec.example)));
            // the examples of built-in tools show all that matters; those of servers may not
            let more = arguments(spec, |name| spec.example.get(name).is_none());
            if matches!(spec.provider, Provider::Mcp(_)) && !more.is_empty() {
                lines.push_str(&format!(" More arguments: {more}"));
            }
        } else {
            lines.push_str(&format!(" Arguments: {}", arguments(spec, |_| true)));
        }
        lines.push('\n');
    }
    lines
}

/// Lists tools for a prompt, followed by the two actions that end the run.
pub fn describe(specs: &[ToolSpec]) -> String {
    let mut lines = list(specs);
    lines.push_str(
        "- answer: ends with the answer for the user. Example: Action: answer {\"text\": \"There are 8317 files.\"}\n",
    );
    lines.push_str(
        "- cannot: ends, if the task cannot be done. Example: Action: cannot {\"reason\": \"There is no such file.\"}",
    );
    lines
}

/// Writes JSON on one line with the spacing of the grammar.
pub fn one_line(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(k, v)| format!("{}: {}", Value::from(k.as_str()), one_line(v))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Lists those arguments of a tool for whose name `wanted` is true.
fn arguments(spec: &ToolSpec, wanted: impl Fn(&str) -> bool) -> String {
    let required: Vec<&str> = spec
        .parameters
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = spec.parameters.get("properties").and_then(Value::as_object);
    let parts = properties.into_iter().flatten().filter(|(name, _)| wanted(name)).map(|(name, schema)| {
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
        let optional = if required.contains(&name.as_str()) { "" } else { ", optional" };
        format!("\"{name}\" ({kind}{optional})")
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_model::scripted::Scripted;
    use caro_model::{Cancel, Flow, Model, Prompt, Request, Role, Sampling};

    fn specs() -> Vec<ToolSpec> {
        let read = ToolSpec::new(
            "read",
            "shows a file.",
            json!({"path": {"type": "string"}, "from": {"type": "integer"}}),
            &["path"],
        );
        let list = ToolSpec::new("list", "lists.", json!({"path": {"type": "string"}}), &["path"]);
        vec![read, list]
    }

    fn set(tools: &[&str], answer: bool, batch: usize) -> ActionSet {
        ActionSet { tools: tools.iter().map(|t| t.to_string()).collect(), answer, cannot: true, batch, path: None }
    }

    /// True if a model held to the grammar can write this.
    fn may_write(set: &ActionSet, text: &str) -> bool {
        let script = json!({"rules": [{"reply": text}]}).to_string();
        let model: Scripted = script.parse().unwrap();
        let mut prompt = Prompt::default();
        prompt.push(Role::User, "x");
        let shape = shape(set, &specs());
        let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 1000, cancel: Cancel::new() };
        match model.generate(&request, &mut |_| Flow::Continue) {
            Ok(_) => true,
            Err(caro_model::ModelError::Script(_)) => false,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn only_admitted_actions_can_be_written() {
        let read = "Thought: look\nAction: read {\"path\": \"a\\nb\"}";
        let part = "Thought: look\nAction: read {\"path\": \"a\", \"from\": 5}";
        let two = "Thought: both\nAction: read {\"path\": \"a\"}\nAction: list {\"path\": \".\"}";
        let answer = "Thought: done\nAction: answer {\"text\": \"it is 5\"}";
        let cannot = "Thought: no\nAction: cannot {\"reason\": \"there is none\"}";
        let all = set(&["read", "list"], true, 3);
        for text in [read, part, two, answer, cannot] {
            assert!(may_write(&all, text), "{text}");
        }
        assert!(!may_write(&set(&["list"], true, 3), read));
        assert!(!may_write(&set(&["read", "list"], true, 1), two));
        assert!(!may_write(&set(&["read", "list"], false, 1), answer));
        assert!(may_write(&set(&["read", "list"], false, 1), cannot));
        let only = ActionSet { cannot: false, ..set(&["read"], false, 1) };
        assert!(may_write(&only, read) && !may_write(&only, cannot) && !may_write(&only, answer));
        let last = ActionSet::last();
        assert!(may_write(&last, answer) && may_write(&last, cannot) && !may_write(&last, read));
        for text in [
            "Action: read {\"path\": \"a\"}",
            "Thought: x\nAction: read {\"pth\": \"a\"}",
            "Thought: x\nAction: read {\"path\": 1}",
            "Thought: x\nAction: rm {\"path\": \"a\"}",
            "Thought: x\nAction: read {\"path\": \"a\"} and more",
            "Thought: a\nb\nAction: read {\"path\": \"a\"}",
        ] {
            assert!(!may_write(&all, text), "{text}");
        }
        let long = "x".repeat(MAX_THOUGHT + 1);
        assert!(!may_write(&all, &format!("Thought: {long}\nAction: list {{\"path\": \".\"}}")));
    }

    #[test]
    fn a_step_is_parsed_and_a_broken_one_is_refused() {
        let decision = read("Thought: both\nAction: read {\"path\": \"a\"}\nAction: list {\"path\": \".\"}").unwrap();
        let Choice::Calls(calls) = decision.choice else { panic!() };
        assert_eq!(calls.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(), ["read", "list"]);
        assert_eq!(decision.thought, "both");
        let end = |text| read(text).unwrap().choice;
        assert_eq!(end("Thought: x\nAction: answer {\"text\": \"5\"}"), Choice::Answer("5".into()));
        assert_eq!(end("Thought: x\nAction: cannot {\"reason\": \"no\"}"), Choice::Cannot("no".into()));
        for (cut, why) in [
            ("Thought: x\nAction: write {\"text\": \"lo", "write less"),
            ("Thought: x", "no action"),
            ("Thought: x\nAction: read", "no arguments"),
            ("Sure!", "neither"),
        ] {
            assert!(read(cut).unwrap_err().contains(why), "{cut}");
        }
    }

    #[test]
    fn the_prompt_lists_every_action_of_the_grammar() {
        let text = describe(&specs());
        for name in set(&["read", "list"], true, 1).names() {
            assert!(text.contains(&format!("- {name}: ")), "{name} in {text}");
        }
        assert!(text.contains("\"path\" (string), \"from\" (integer, optional)"), "{text}");
        assert_eq!(one_line(&json!({"a": [1, "x"], "b": {}})), r#"{"a": [1, "x"], "b": {}}"#);
        let mut read = specs().remove(0);
        read.example = json!({"path": "a.txt"});
        let line = |read: &ToolSpec| list(std::slice::from_ref(read));
        assert_eq!(line(&read), "- read: shows a file. Example: Action: read {\"path\": \"a.txt\"}\n");
        read.provider = Provider::Mcp("archive".into());
        assert!(line(&read).ends_with("a.txt\"} More arguments: \"from\" (integer, optional)\n"), "{}", line(&read));
    }
}
