//! `POST /v1/chat/completions`.

use super::super::commands::CancelOnDrop;
use super::super::{Problem, Server};
use super::answer::{Form, Head, Order, answer, logprobs, problem, reason};
use super::calls::{Calls, Part};
use super::fields::{Body, Fields, unsupported, wrong};
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

/// The fields of a conversation that nothing here honours.
const REFUSED: &[(&str, &str)] = &[
    ("audio", "this model writes text alone"),
    ("web_search_options", "this server asks nobody else: search with a tool of yours"),
    ("prediction", "leave it out"),
];

/// Answers a conversation.
///
/// # Errors
/// With the field that is wrong or not supported; if there is no such model, or it gives no answer.
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
    let shape = match tools.shape(&text).map_err(problem)? {
        Some(shape) => {
            options.without_stop("an answer with `tools` ends by itself")?;
            shape
        }
        None => text,
    };
    let cancel = CancelOnDrop::default();
    let requests = options.requests(&prompt, &shape, engine.model.limits().context, &cancel.0);
    let has_tools = !tools.offered().is_empty();
    let form = Chat {
        head: Head::new("chatcmpl", &*engine.model),
        tools: has_tools.then(|| tools.must_call()),
        logprobs: fields.flag("logprobs")?,
        under_way: BTreeMap::new(),
    };
    let Options { choices, stream, include_usage, .. } = options;
    let order = Order { model: engine.model.clone(), requests, choices, cancel, stream, include_usage, form };
    answer(server, order).await
}

/// The form of the answer's words.
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
                Some(_) => return Err(wrong(&described.name("schema"), "a JSON schema")),
                None => return Err(described.missing("schema")),
            }
        }
        _ => return Err(wrong("response_format.type", "text, json_object or json_schema")),
    };
    options.without_stop("a JSON document ends by itself")?;
    Ok(Shape::Json(schema))
}

/// The answer as chat completions have it.
struct Chat {
    head: Head,
    /// Where there are tools: true if the answer is a call from its beginning.
    tools: Option<bool>,
    /// True to tell how likely each token was.
    logprobs: bool,
    /// Choices that have begun.
    under_way: BTreeMap<usize, Calls>,
}

impl Chat {
    fn chunk(&self, choice: usize, delta: Value, finish: Option<&str>) -> Value {
        let choice = json!({"index": choice, "delta": delta, "logprobs": null, "finish_reason": finish});
        self.head.document("chat.completion.chunk", vec![choice])
    }

    /// The parts of a choice's next piece, or of its end.
    fn parts(&mut self, choice: usize, piece: Result<&str, &Completion>) -> Vec<Part> {
        let Some(is_opened) = self.tools else {
            return piece.map_or_else(|_| Vec::new(), |text| vec![Part::Text(text.into())]);
        };
        let calls = self.under_way.entry(choice).or_insert_with(|| Calls::new(is_opened));
        match piece {
            Ok(text) => calls.push(text),
            Err(completion) => calls.finish(completion.finish == Finish::Stop),
        }
    }

    /// The chunks for parts of a choice.
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

    /// Calls of a choice that have begun.
    fn calls(&self, choice: usize) -> usize {
        self.under_way.get(&choice).map_or(0, Calls::count)
    }

    fn told(&mut self, choice: usize, piece: Result<&str, &Completion>) -> Vec<Value> {
        let is_first = !self.under_way.contains_key(&choice);
        let before = self.calls(choice);
        let parts = self.parts(choice, piece);
        // without tools there is nothing to look for, and the choice has begun all the same
        self.under_way.entry(choice).or_insert_with(|| Calls::new(false));
        self.chunks(choice, is_first, parts, before)
    }
}

impl Form for Chat {
    fn piece(&mut self, choice: usize, text: &str) -> Vec<Value> {
        self.told(choice, Ok(text))
    }

    fn end(&mut self, choice: usize, completion: &Completion) -> Vec<Value> {
        let mut chunks = self.told(choice, Err(completion));
        let reason = finish(completion, self.calls(choice));
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

    fn whole(&mut self, completions: &[Completion]) -> Value {
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
            let reason = finish(completion, calls.len());
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

fn finish(completion: &Completion, calls: usize) -> &'static str {
    match reason(completion) {
        "stop" if calls > 0 => "tool_calls",
        reason => reason,
    }
}
