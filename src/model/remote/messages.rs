//! The wire format of Anthropic's `/v1/messages`: what is sent, and what comes back as server-sent events.
//!
//! Format: the Claude API reference, "Messages", version 2023-06-01.

use super::wire::{Chunk, Level, error_in, start_of};
use crate::{Request, Role, Shape};
use serde_json::{Value, json};

/// The address of Anthropic's own servers.
pub(super) const ADDRESS: &str = "https://api.anthropic.com";
/// The version of the format.
pub(super) const VERSION: &str = "2023-06-01";

/// The body of a request. `objection` is what was wrong with the last answer. What newer models do not take any more goes
/// level by level: a temperature, then a schema and the beginning of the answer.
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
    // the format wants none that ends in blanks
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
            // one of blanks alone is refused; it is cut off here
            let stop: Vec<&String> = stop.iter().filter(|stop| !stop.trim().is_empty()).collect();
            if !stop.is_empty() {
                body["stop_sequences"] = json!(stop);
            }
        }
        Shape::Json(schema) if level <= Level::Schema => {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        }
        // a shape that the format does not know: held against the answer afterwards
        Shape::Json(_) | Shape::Choice(_) | Shape::Lark(_) => {}
    }
    body
}

/// Reads one event, or a whole answer that is no stream.
///
/// # Errors
/// In words, if it is an error message or nothing known.
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
        // a sign of life, a block that begins or ends, and what later versions may add
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
    fn the_system_has_a_place_of_its_own_and_each_level_asks_for_less() {
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
    fn stop_strings_prefill_and_objections_are_sent_as_the_format_takes_them() {
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
    fn events_are_read_and_unknown_ones_passed_over() {
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
    fn what_is_no_answer_says_what_it_is() {
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
