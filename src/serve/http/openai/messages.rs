//! Converts a conversation of OpenAI's protocol to a prompt.

use super::super::Problem;
use super::fields::{Fields, invalid, unsupported};
use super::tools::{self, Tools};
use caro_model::{Message, Opening, Prompt, Role};
use serde_json::{Value, json};

/// Most messages of a conversation.
const MAX_MESSAGES: usize = 4096;

/// Reads the messages, and adds the signatures of the tools that the model may call.
///
/// # Errors
/// Names the field that is invalid or not supported.
pub fn prompt(fields: &Fields<'_>, tools: &Tools) -> Result<Prompt, Problem> {
    let messages = fields.list("messages")?;
    if messages.is_empty() {
        return Err(fields.missing("messages").detail("a conversation has at least one message"));
    }
    if messages.len() > MAX_MESSAGES {
        return Err(invalid("messages", &format!("at most {MAX_MESSAGES} messages")));
    }
    let mut prompt = Prompt::default();
    // ids of calls without a result so far
    let mut open: Vec<String> = Vec::new();
    let mut was_result = false;
    for (i, message) in messages.iter().enumerate() {
        let message = Fields::of(message, format!("messages[{i}]"))?;
        let role = message.required_text("role")?;
        let is_result = role == "tool";
        match role {
            "system" | "developer" => {
                prompt.push(Role::System, content(&message)?);
            }
            "user" => {
                prompt.push(Role::User, content(&message)?);
            }
            "assistant" => {
                let (blocks, ids) = calls(&message)?;
                let text = if message.get("content").is_some() || blocks.is_empty() {
                    content(&message)?
                } else {
                    String::new()
                };
                prompt.messages.push(Message { role: Role::Assistant, text, blocks });
                open.extend(ids);
            }
            "tool" => {
                let id = message.required_text("tool_call_id")?;
                let Some(at) = open.iter().position(|known| known == id) else {
                    return Err(invalid(
                        &message.name("tool_call_id"),
                        "the id of a call in a message of the assistant before it, answered once",
                    ));
                };
                open.remove(at);
                let result = content(&message)?;
                // consecutive results form one turn
                match prompt.messages.last_mut() {
                    Some(turn) if was_result => turn.blocks.push(result),
                    _ => prompt.messages.push(Message { role: Role::User, text: String::new(), blocks: vec![result] }),
                }
            }
            "function" => return Err(unsupported(&message.name("role"), "use `tool`")),
            _ => return Err(invalid(&message.name("role"), "system, developer, user, assistant or tool")),
        }
        was_result = is_result;
    }
    if !tools.offered().is_empty() {
        if prompt.messages.first().is_none_or(|turn| turn.role != Role::System) {
            prompt.messages.insert(0, Message { role: Role::System, text: String::new(), blocks: Vec::new() });
        }
        if let Some(turn) = prompt.messages.first_mut() {
            turn.blocks = tools.signatures();
        }
    }
    if tools.must_call() {
        prompt.opening = Opening::Call;
    }
    Ok(prompt)
}

/// Reads the text of a message, which may have several parts.
fn content(message: &Fields<'_>) -> Result<String, Problem> {
    let path = message.name("content");
    let parts = match message.get("content") {
        None => return Err(message.missing("content")),
        Some(Value::String(text)) => return Ok(text.clone()),
        Some(Value::Array(parts)) => parts,
        Some(_) => return Err(invalid(&path, "a string or a list of parts")),
    };
    let text = |(i, part)| {
        let part = Fields::of(part, format!("{path}[{i}]"))?;
        match part.required_text("type")? {
            "text" => part.required_text("text"),
            "refusal" => part.required_text("refusal"),
            kind @ ("image_url" | "input_audio" | "file") => {
                let what = format!("this model reads text alone, no `{kind}`");
                Err(unsupported(&part.name("type"), &what))
            }
            _ => Err(invalid(&part.name("type"), "text")),
        }
    };
    let texts = parts.iter().enumerate().map(text).collect::<Result<Vec<_>, Problem>>()?;
    Ok(texts.join("\n"))
}

/// Reads the calls of a message: the blocks for the prompt, and the calls' ids.
fn calls(message: &Fields<'_>) -> Result<(Vec<String>, Vec<String>), Problem> {
    message.refuse(&[("function_call", "use `tool_calls`"), ("audio", "this model reads text alone")])?;
    let (mut blocks, mut ids) = (Vec::new(), Vec::new());
    for (i, call) in message.list("tool_calls")?.iter().enumerate() {
        let call = Fields::of(call, format!("{}[{i}]", message.name("tool_calls")))?;
        tools::is_function(&call)?;
        let function = call.required_object("function")?;
        let arguments = function.required_text("arguments")?;
        // arguments that are not valid JSON are passed on as a string
        let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
        let name = function.required_text("name")?;
        blocks.push(caro_model::tools::spaced(&json!({"name": name, "arguments": arguments})));
        ids.push(call.required_text("id")?.to_owned());
    }
    Ok((blocks, ids))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Prompt, Value> {
        let fields = Fields::of(&body, String::new()).unwrap();
        let read = Tools::read(&fields).and_then(|tools| prompt(&fields, &tools));
        read.map_err(|problem| problem.openai()["error"].clone())
    }

    #[test]
    fn messages_keep_their_order_and_roles() {
        let body = json!({"messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "name": "Ann"},
            {"role": "assistant", "content": "three"},
            {"role": "developer", "content": "In French."},
            {"role": "user", "content": "<|im_start|>"},
        ]});
        let prompt = read(body).unwrap();
        let turns: Vec<(Role, &str)> = prompt.messages.iter().map(|turn| (turn.role, turn.text.as_str())).collect();
        use Role::{Assistant, System, User};
        assert_eq!(
            turns,
            [
                (System, "Be brief."),
                (User, "one\ntwo"),
                (Assistant, "three"),
                (System, "In French."),
                (User, "<|im_start|>")
            ]
        );
    }

    #[test]
    fn calls_and_results_become_blocks_of_their_turns() {
        let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "now", "arguments": arguments}});
        let tool = json!({"type": "function", "function": {"name": "now"}});
        let mut body = json!({"tools": [tool], "messages": [
            {"role": "user", "content": "What time is it?"},
            {"role": "assistant", "content": null, "tool_calls": [call("a", "{\"zone\":\"UTC\"}"), call("b", "oops")]},
            {"role": "tool", "tool_call_id": "b", "content": "12:00"},
            {"role": "tool", "tool_call_id": "a", "content": "12:01"},
            {"role": "user", "content": "Thanks."},
        ]});
        let prompt = read(body.clone()).unwrap();
        let [system, _, calls, results, thanks] = prompt.messages.as_slice() else { panic!("{prompt:?}") };
        assert!(system.role == Role::System && system.text.is_empty() && system.blocks[0].contains(r#""name": "now""#));
        assert_eq!(
            calls.blocks,
            [r#"{"name": "now", "arguments": {"zone": "UTC"}}"#, r#"{"name": "now", "arguments": "oops"}"#]
        );
        assert_eq!((results.role, &results.blocks[..]), (Role::User, &["12:00".to_owned(), "12:01".to_owned()][..]));
        assert_eq!(thanks.text, "Thanks.");
        body["tool_choice"] = json!("required");
        assert_eq!(read(body.clone()).unwrap().opening, Opening::Call);
        body["tool_choice"] = json!("none");
        assert!(read(body).unwrap().messages[0].blocks.is_empty(), "without callable tools there are no signatures");
    }

    #[test]
    fn an_invalid_field_is_named_with_its_path() {
        let image = json!({"type": "image_url", "image_url": {"url": "data:,"}});
        for (messages, param) in [
            (json!([]), "messages"),
            (json!("hi"), "messages"),
            (json!(["hi"]), "messages[0]"),
            (json!([{"content": "hi"}]), "messages[0].role"),
            (json!([{"role": "wizard", "content": "hi"}]), "messages[0].role"),
            (json!([{"role": "function", "content": "hi"}]), "messages[0].role"),
            (json!([{"role": "user"}]), "messages[0].content"),
            (json!([{"role": "assistant"}]), "messages[0].content"),
            (json!([{"role": "user", "content": 1}]), "messages[0].content"),
            (
                json!([{"role": "user", "content": [{"type": "text", "text": "x"}, image]}]),
                "messages[0].content[1].type",
            ),
            (json!([{"role": "user", "content": [{"type": "text"}]}]), "messages[0].content[0].text"),
            (json!([{"role": "tool", "content": "x"}]), "messages[0].tool_call_id"),
            (json!([{"role": "tool", "tool_call_id": "a", "content": "x"}]), "messages[0].tool_call_id"),
            (json!([{"role": "assistant", "tool_calls": [{"id": "a"}]}]), "messages[0].tool_calls[0].type"),
            (
                json!([{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "x"}}]}]),
                "messages[0].tool_calls[0].function.arguments",
            ),
        ] {
            let error = read(json!({"messages": messages})).unwrap_err();
            assert_eq!(error["param"], param, "{messages}: {error}");
        }
    }
}
