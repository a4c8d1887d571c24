//! The wire format of Anthropic's `/v1/messages`: builds requests and parses the server-sent events of answers.
//!
//! Format: the Claude API reference, "Messages", version 2023-06-01.

use super::wire::{Chunk, Level, error_in, start_of};
use crate::{Request, Role, Shape};
use serde_json::{Value, json};

/// The version of the format.
pub(super) const VERSION: &str = "2023-06-01";

/// Builds the body of a request. `objection` is the last answer and what was wrong with it. Each lower level omits
/// fields that newer models no longer accept: first the temperature, then the schema and the prefill.
pub(super) fn body(model: &str, request: &Request, level: Level, objection: Option<(&str, &str)>) -> Value {
    let mut system = Vec::new();
    let mut messages: Vec<Value> = Vec::new();
    for turn in request.prompt.messages.iter().filter(|turn| !turn.text.trim().is_empty()) {
        match turn.role {
            Role::System => system.push(turn.text.as_str()),
            Role::User => messages.push(json!({"role": "user", "content": turn.text})),
            Role::Assistant => messages.push(json!({"role": "assistant", "content": turn.text})),
        }
    }
    // the API refuses a prefill that ends in white space
    let prefill = request.prompt.prefill.trim_end();
    if let Some((answer, wrong)) = objection {
        if !answer.trim().is_empty() {
            messages.push(json!({"role": "assistant", "content": answer.trim_end()}));
        }
        messages.push(json!({"role": "user", "content": super::wire::objected(wrong)}));
    } else if !prefill.is_empty() && level <= Level::Schema {
        messages.push(json!({"role": "assistant", "content": prefill}));
    }
    let mut body = json!({
        "model": model,
        "messages": messages,
        "max_tokens": request.max_tokens.max(1),
        "stream": true,
    });
    if !system.is_empty() {
        body["system"] = system.join("\n\n").into();
    }
    if level == Level::Full {
        body["temperature"] = json!(request.sampling.temperature.clamp(0.0, 1.0));
    }
    match &request.shape {
        Shape::Text { stop } => {
            // the API refuses stop sequences of white space alone; the answer is cut at those by the caller
            let stop: Vec<&String> = stop.iter().filter(|stop| !stop.trim().is_empty()).collect();
            if !stop.is_empty() {
                body["stop_sequences"] = json!(stop);
            }
        }
        Shape::Json(schema) if level <= Level::Schema => {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        }
        // not expressible in this format: the answer is checked afterwards
        Shape::Json(_) | Shape::Choice(_) | Shape::Lark(_) => {}
    }
    body
}

/// Parses one event, or the whole answer of a server that does not stream.
///
/// # Errors
/// In words, if it is an error message or unknown.
pub(super) fn chunk(text: &str) -> Result<Chunk, String> {
    let value: Value = serde_json::from_str(text).map_err(|_| format!("no JSON but: {}", start_of(text)))?;
    if let Some(error) = error_in(&value) {
        return Err(error);
    }
    let of = |name: &str| value.get(name).unwrap_or(&Value::Null);
    let mut chunk = Chunk::default();
    let (stop, used) = match value["type"].as_str() {
        Some("message_start") => (&Value::Null, &of("message")["usage"]),
        Some("content_block_delta") => {
            chunk.text = of("delta")["text"].as_str().unwrap_or_default().into();
            return Ok(chunk);
        }
        Some("message_delta") => (&of("delta")["stop_reason"], of("usage")),
        Some("message_stop") => {
            chunk.is_last = true;
            return Ok(chunk);
        }
        Some("message") => {
            let parts = of("content").as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
            chunk.text = parts.collect();
            (of("stop_reason"), of("usage"))
        }
        // a ping, the beginning or end of a block, or an event of a later version
        Some(_) => return Ok(chunk),
        None => return Err(format!("no answer but: {}", start_of(text))),
    };
    let count = |name: &str| used[name].as_u64().map_or(0, |count| count as usize);
    let cached = count("cache_read_input_tokens");
    let prompt = count("input_tokens") + cached + count("cache_creation_input_tokens");
    chunk.usage = used.is_object().then(|| (prompt, cached, count("output_tokens")));
    chunk.finish = match stop.as_str() {
        Some("max_tokens" | "model_context_window_exceeded") => Some("length".into()),
        Some("refusal") => return Err("the model refuses to answer this (stop reason: refusal)".into()),
        other => other.map(str::to_owned),
    };
    Ok(chunk)
}

#[cfg(test)]
mod tests {
    use super::super::wire::tests::request;
    use super::*;

    #[test]
    fn the_system_text_is_a_field_and_each_level_sends_less() {
        let schema = json!({"type": "object"});
        let at = |level| body("m", &request(Shape::Json(schema.clone())), level, None);
        let full = at(Level::Full);
        assert_eq!(full["system"], "s");
        assert_eq!(full["messages"], json!([{"role": "user", "content": "u"}]));
        assert_eq!((&full["max_tokens"], &full["temperature"]), (&json!(7), &json!(0.0)));
        assert_eq!(full["output_config"]["format"]["schema"], schema);
        assert!(full.get("top_p").is_none(), "one of the two is the most");
        assert!(at(Level::Schema).get("temperature").is_none() && at(Level::Schema).get("output_config").is_some());
        assert!(at(Level::Plain).get("output_config").is_none());
    }

    #[test]
    fn stop_strings_prefill_and_objections_are_sent() {
        let mut r = request(Shape::Text { stop: vec!["\n".into(), "END".into()] });
        assert_eq!(body("m", &r, Level::Full, None)["stop_sequences"], json!(["END"]));
        r.prompt.prefill = "ls ".into();
        assert_eq!(body("m", &r, Level::Full, None)["messages"][1], json!({"role": "assistant", "content": "ls"}));
        assert_eq!(body("m", &r, Level::Plain, None)["messages"].as_array().unwrap().len(), 1);
        let again = body("m", &r, Level::Full, Some(("x", "it is none of: a, b")));
        assert_eq!(again["messages"].as_array().unwrap().len(), 3);
        assert!(again["messages"][2]["content"].as_str().unwrap().contains("none of: a, b"));
    }

    #[test]
    fn events_are_parsed_and_unknown_ones_ignored() {
        let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}}}"#;
        assert_eq!(chunk(start).unwrap().usage, Some((13, 4, 1)));
        let text = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"é"}}"#;
        assert_eq!(chunk(text).unwrap().text, "é");
        let thinking = r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#;
        assert_eq!(chunk(thinking).unwrap(), Chunk::default());
        let end = r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":5}}"#;
        let end = chunk(end).unwrap();
        assert_eq!((end.finish.as_deref(), end.usage), (Some("length"), Some((0, 0, 5))));
        assert!(chunk(r#"{"type":"message_stop"}"#).unwrap().is_last);
        for silent in [r#"{"type":"ping"}"#, r#"{"type":"content_block_stop","index":0}"#, r#"{"type":"new"}"#] {
            assert_eq!(chunk(silent).unwrap(), Chunk::default(), "{silent}");
        }
        let whole = r#"{"type":"message","content":[{"type":"text","text":"l"},{"type":"text","text":"s"}],"stop_reason":"end_turn"}"#;
        assert_eq!(chunk(whole).unwrap().text, "ls");
    }

    #[test]
    fn anything_but_an_answer_is_an_error_with_the_reason() {
        for (text, why) in [
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded"),
            (r#"{"type":"message_delta","delta":{"stop_reason":"refusal"}}"#, "refuses"),
            ("<html>", "no JSON but: <html>"),
            ("{}", "no answer but: {}"),
            ("[]", "no answer but: []"),
        ] {
            let error = chunk(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
