//! `POST /v1/chat/completions`: answers a conversation with text or function calls.

use super::super::commands::CancelOnDrop;
use super::super::{Problem, Server};
use super::answer::{Form, Head, Order, answer, finish_reason, logprobs, problem};
use super::calls::{Calls, Part};
use super::fields::{Body, Fields, invalid, unsupported};
use super::options::Options;
use super::tools::Tools;
use super::{check_model, messages};
use axum::extract::State;
use axum::response::Response;
use caro_base::id;
use caro_model::{Completion, Finish, Shape};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The fields that are not supported, with the advice for each.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("audio", "this model writes text alone"),
    ("web_search_options", "this server asks nobody else: search with a tool of yours"),
    ("prediction", "leave it out"),
];

/// Answers a conversation.
///
/// # Errors
/// Names the field that is invalid or not supported; also if there is no such model, or it gives no answer.
pub async fn completions(State(server): State<Arc<Server>>, body: Body) -> Result<Response, Problem> {
    let engine = server.engine()?;
    let fields = body.fields();
    check_model(&engine, fields.text("model")?)?;
    fields.refuse(REFUSED)?;
    if fields.list("modalities")?.iter().any(|modality| modality != "text") {
        return Err(unsupported("modalities", "this model writes text alone"));
    }
    let options = Options::read(&fields)?;
    let tools = Tools::read(&fields)?;
    let prompt = messages::prompt(&fields, &tools)?;
    let text = format(&fields, &options)?;
    // a document that the client asked for is no call
    let is_free = matches!(text, Shape::Text { .. });
    let shape = match tools.shape(&text).map_err(problem)? {
        Some(shape) => {
            options.refuse_stop("an answer with `tools` ends by itself")?;
            shape
        }
        None => text,
    };
    let cancel = CancelOnDrop::default();
    let requests = options.requests(&prompt, &shape, engine.model.limits().context, &cancel.0);
    let offered: Vec<String> = tools.offered().into_iter().map(str::to_owned).collect();
    let form = ChatForm {
        head: Head::new("chatcmpl", &*engine.model),
        tools: (!offered.is_empty()).then(|| tools.must_call()),
        bare: if is_free && !tools.must_call() { offered } else { Vec::new() },
        logprobs: fields.flag("logprobs")?,
        started: BTreeMap::new(),
    };
    let Options { choices, stream, include_usage, .. } = options;
    let order = Order { model: engine.model.clone(), requests, choices, cancel, stream, include_usage, form };
    answer(server, order).await
}

/// Reads the form of the answer's text.
fn format(fields: &Fields<'_>, options: &Options) -> Result<Shape, Problem> {
    let free = Shape::Text { stop: options.stop.clone() };
    let Some(format) = fields.object("response_format")? else { return Ok(free) };
    let schema = match format.required_text("type")? {
        "text" => return Ok(free),
        "json_object" => json!({"type": "object"}),
        "json_schema" => {
            let described = format.required_object("json_schema")?;
            match described.get("schema") {
                Some(schema @ Value::Object(_)) => schema.clone(),
                Some(_) => return Err(invalid(&described.name("schema"), "a JSON schema")),
                None => return Err(described.missing("schema")),
            }
        }
        _ => return Err(invalid("response_format.type", "text, json_object or json_schema")),
    };
    options.refuse_stop("a JSON document ends by itself")?;
    Ok(Shape::Json(schema))
}

/// The form of chat completions.
struct ChatForm {
    head: Head,
    /// `None` without tools; true if the prompt already opens a call.
    tools: Option<bool>,
    /// The functions whose call may be the whole answer, without marks.
    bare: Vec<String>,
    /// True to include the log probability of each token.
    logprobs: bool,
    /// The parsers of choices that have started.
    started: BTreeMap<usize, Calls>,
}

impl ChatForm {
    fn chunk(&self, choice: usize, delta: Value, finish: Option<&str>) -> Value {
        let choice = json!({"index": choice, "delta": delta, "logprobs": null, "finish_reason": finish});
        self.head.document("chat.completion.chunk", vec![choice])
    }

    /// Returns the parts of a choice's next piece, or of its end.
    fn parts(&mut self, choice: usize, piece: Result<&str, &Completion>) -> Vec<Part> {
        let Some(is_opened) = self.tools else {
            return piece.map_or_else(|_| Vec::new(), |text| vec![Part::Text(text.into())]);
        };
        let calls = self.started.entry(choice).or_insert_with(|| Calls::new(is_opened).or_bare(&self.bare));
        match piece {
            Ok(text) => calls.push(text),
            Err(completion) => calls.finish(completion.finish == Finish::Stop),
        }
    }

    /// Returns the chunks for parts of a choice.
    fn chunks(&mut self, choice: usize, is_first: bool, parts: Vec<Part>, calls_before: usize) -> Vec<Value> {
        let mut chunks = Vec::new();
        if is_first {
            chunks.push(self.chunk(choice, json!({"role": "assistant", "content": ""}), None));
        }
        let mut calls = calls_before;
        for part in parts {
            let delta = match part {
                Part::Text(text) => json!({"content": text}),
                Part::Call(name) => {
                    calls += 1;
                    json!({"tool_calls": [{
                        "index": calls - 1,
                        "id": id::fresh("call"),
                        "type": "function",
                        "function": {"name": name, "arguments": ""},
                    }]})
                }
                Part::Arguments(text) => {
                    json!({"tool_calls": [{"index": calls.saturating_sub(1), "function": {"arguments": text}}]})
                }
            };
            chunks.push(self.chunk(choice, delta, None));
        }
        chunks
    }

    /// The number of calls of a choice that have started.
    fn calls(&self, choice: usize) -> usize {
        self.started.get(&choice).map_or(0, Calls::count)
    }

    /// Returns the chunks for a choice's next piece, or its end.
    fn next_chunks(&mut self, choice: usize, piece: Result<&str, &Completion>) -> Vec<Value> {
        let is_first = !self.started.contains_key(&choice);
        let before = self.calls(choice);
        let parts = self.parts(choice, piece);
        // without tools `parts` adds no entry, which marks the choice as started
        self.started.entry(choice).or_insert_with(|| Calls::new(false));
        self.chunks(choice, is_first, parts, before)
    }
}

impl Form for ChatForm {
    fn piece(&mut self, choice: usize, text: &str) -> Vec<Value> {
        self.next_chunks(choice, Ok(text))
    }

    fn end(&mut self, choice: usize, completion: &Completion) -> Vec<Value> {
        let mut chunks = self.next_chunks(choice, Err(completion));
        let reason = chat_finish_reason(completion, self.calls(choice));
        let mut last = self.chunk(choice, json!({}), Some(reason));
        if self.logprobs {
            last["choices"][0]["logprobs"] = logprobs(completion);
        }
        chunks.push(last);
        chunks
    }

    fn empty(&self) -> Value {
        self.head.document("chat.completion.chunk", Vec::new())
    }

    fn complete(&mut self, completions: &[Completion]) -> Value {
        let mut choices = Vec::new();
        for (index, completion) in completions.iter().enumerate() {
            let mut parts = self.parts(index, Ok(&completion.text));
            parts.extend(self.parts(index, Err(completion)));
            let (mut text, mut calls) = (String::new(), Vec::<(String, String)>::new());
            for part in parts {
                match (part, calls.last_mut()) {
                    (Part::Text(piece), _) => text.push_str(&piece),
                    (Part::Call(name), _) => calls.push((name, String::new())),
                    (Part::Arguments(piece), Some((_, arguments))) => arguments.push_str(&piece),
                    (Part::Arguments(_), None) => {}
                }
            }
            let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
            let mut message = json!({"role": "assistant", "content": content, "refusal": null});
            let reason = chat_finish_reason(completion, calls.len());
            if !calls.is_empty() {
                let call = |(name, arguments)| json!({"id": id::fresh("call"), "type": "function", "function": {"name": name, "arguments": arguments}});
                message["tool_calls"] = calls.into_iter().map(call).collect();
            }
            let logprobs = self.logprobs.then(|| logprobs(completion));
            choices.push(json!({"index": index, "message": message, "logprobs": logprobs, "finish_reason": reason}));
        }
        self.head.document("chat.completion", choices)
    }
}

/// Returns the reason that a choice ended: `tool_calls` if it ended with calls.
fn chat_finish_reason(completion: &Completion, calls: usize) -> &'static str {
    match finish_reason(completion) {
        "stop" if calls > 0 => "tool_calls",
        reason => reason,
    }
}
