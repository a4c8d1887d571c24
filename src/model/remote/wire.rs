//! The wire format of `/v1/chat/completions`: builds requests and parses the server-sent events of answers.
//!
//! Format: the OpenAI API reference, "Create chat completion", and its variants in llama.cpp, llama-cpp-python, vLLM
//! and Ollama.

use crate::{Opening, Request, Role, Shape, Token};
use serde_json::{Value, json};

/// The extent to which a server supports the protocol. Each refusal lowers it by one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Log-probabilities, usage in a stream, JSON schemas in OpenAI's form.
    Full,
    /// Log-probabilities, JSON schemas in the form of llama-cpp-python; no usage in a stream.
    Schema,
    /// No log-probabilities and no schemas either.
    Plain,
}

impl Level {
    const ALL: [Self; 3] = [Self::Full, Self::Schema, Self::Plain];

    pub(super) fn from_index(index: u8) -> Self {
        Self::ALL.get(usize::from(index)).copied().unwrap_or(Self::Plain)
    }

    pub(super) fn index(self) -> u8 {
        self as u8
    }

    pub(super) fn below(self) -> Option<Self> {
        Self::ALL.get(self as usize + 1).copied()
    }
}

/// Builds the body of a request. `objection` is the last answer and what was wrong with it.
pub(super) fn body(model: &str, request: &Request, level: Level, objection: Option<(&str, &str)>) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    for turn in &request.prompt.messages {
        let role = match turn.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        messages.push(json!({ "role": role, "content": turn.whole() }));
    }
    if let Some((answer, wrong)) = objection {
        messages.push(json!({ "role": "assistant", "content": answer }));
        messages.push(json!({ "role": "user", "content": objected(wrong) }));
    } else if request.prompt.opening == Opening::Call || !request.prompt.prefill.is_empty() {
        // There is no field for a prefill. Many servers continue an assistant message that ends the conversation.
        messages.push(json!({ "role": "assistant", "content": request.prompt.opened_whole() }));
    }
    let mut body = json!({
        "model": model,
        "messages": messages,
        "max_tokens": request.max_tokens,
        "temperature": request.sampling.temperature,
        "top_p": request.sampling.top_p,
        "seed": request.sampling.seed,
        "stream": true,
    });
    if level <= Level::Schema {
        body["logprobs"] = json!(true);
        body["top_logprobs"] = json!(2);
    }
    if level == Level::Full {
        body["stream_options"] = json!({ "include_usage": true });
    }
    match &request.shape {
        Shape::Text { stop } => {
            // OpenAI takes at most four; the answer is cut at the others by the caller.
            let stop: Vec<&String> = stop.iter().filter(|s| !s.is_empty()).take(4).collect();
            if !stop.is_empty() {
                body["stop"] = json!(stop);
            }
        }
        Shape::Json(schema) if level == Level::Full => {
            body["response_format"] =
                json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema, "strict": true } });
        }
        Shape::Json(schema) if level == Level::Schema => {
            body["response_format"] = json!({ "type": "json_object", "schema": schema });
        }
        // Not expressible in the protocol, or a server without schemas: the answer is checked afterwards.
        Shape::Json(_) | Shape::Choice(_) | Shape::Lark(_) => {}
    }
    body
}

/// Returns the message to a model whose answer does not have the requested shape.
pub(super) fn objected(wrong: &str) -> String {
    format!("That is not allowed: {wrong}. Answer again, with nothing else.")
}

/// One parsed event of the stream.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Chunk {
    /// Text, maybe empty.
    pub(super) text: String,
    /// Its tokens, if the server reports them.
    pub(super) tokens: Vec<Token>,
    /// The reason why the answer ended: `stop`, `length` ...
    pub(super) finish: Option<String>,
    /// Tokens of the prompt, cached tokens among them, and tokens of the completion.
    pub(super) usage: Option<(usize, usize, usize)>,
    /// True for the last event of the stream.
    pub(super) is_last: bool,
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
    let mut chunk = Chunk::default();
    if let Some(usage) = value.get("usage").filter(|u| u.is_object()) {
        let count = |v: Option<&Value>| v.and_then(Value::as_u64).map_or(0, |n| n as usize);
        let cached = usage.get("prompt_tokens_details").and_then(|d| d.get("cached_tokens"));
        chunk.usage = Some((count(usage.get("prompt_tokens")), count(cached), count(usage.get("completion_tokens"))));
    }
    let Some(choices) = value.get("choices").and_then(Value::as_array) else {
        return if chunk.usage.is_some() { Ok(chunk) } else { Err(format!("no answer but: {}", start_of(text))) };
    };
    let Some(choice) = choices.first() else { return Ok(chunk) };
    let message = choice.get("delta").or_else(|| choice.get("message"));
    let content = message.and_then(|m| m.get("content")).or_else(|| choice.get("text"));
    chunk.text = content.and_then(Value::as_str).unwrap_or_default().into();
    chunk.finish = choice.get("finish_reason").and_then(Value::as_str).map(str::to_string);
    chunk.tokens = choice.get("logprobs").map(tokens).unwrap_or_default();
    Ok(chunk)
}

/// Extracts the text of a server's error message.
pub(super) fn error_text(body: &str) -> String {
    let parsed = serde_json::from_str(body).ok();
    parsed.as_ref().and_then(error_in).unwrap_or_else(|| start_of(body))
}

pub(super) fn error_in(value: &Value) -> Option<String> {
    // OpenAI, Ollama, FastAPI, in this order.
    let error = value.get("error").or_else(|| value.get("detail")).filter(|e| !e.is_null())?;
    let text = error.as_str().or_else(|| error.get("message").and_then(Value::as_str));
    Some(text.map_or_else(|| start_of(&error.to_string()), start_of))
}

/// Parses the tokens of a `logprobs` object, in OpenAI's form or the older one with parallel lists.
fn tokens(logprobs: &Value) -> Vec<Token> {
    let float = |v: Option<&Value>| v.and_then(Value::as_f64).map(|n| n as f32);
    if let Some(content) = logprobs.get("content").and_then(Value::as_array) {
        let token = |t: &Value| {
            let text = t.get("token").and_then(Value::as_str).unwrap_or_default();
            let bytes = t.get("bytes").and_then(Value::as_array);
            let bytes = bytes.map(|b| b.iter().filter_map(|n| u8::try_from(n.as_u64()?).ok()).collect());
            let others = t.get("top_logprobs").and_then(Value::as_array).into_iter().flatten();
            let others = others.filter(|o| o.get("token").and_then(Value::as_str) != Some(text));
            Token {
                bytes: bytes.unwrap_or_else(|| text.into()),
                logprob: float(t.get("logprob")),
                runner_up: others.filter_map(|o| float(o.get("logprob"))).reduce(f32::max),
            }
        };
        return content.iter().map(token).collect();
    }
    let list = |key: &str| logprobs.get(key).and_then(Value::as_array);
    let (Some(texts), Some(values)) = (list("tokens"), list("token_logprobs")) else { return Vec::new() };
    let token = |(i, text): (usize, &Value)| {
        let text = text.as_str().unwrap_or_default();
        let top = list("top_logprobs").and_then(|t| t.get(i)).and_then(Value::as_object);
        let others = top.into_iter().flatten().filter(|(other, _)| *other != text);
        Token {
            bytes: text.into(),
            logprob: float(values.get(i)),
            runner_up: others.filter_map(|(_, v)| float(Some(v))).reduce(f32::max),
        }
    };
    texts.iter().enumerate().map(token).collect()
}

/// Returns the first 300 characters of a server's text on one line, without control characters.
pub(super) fn start_of(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).take(300).collect();
    if line.is_empty() { "nothing".into() } else { line }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{Cancel, Prompt, Sampling};

    /// Returns a request with a system message and a user message.
    pub(in crate::remote) fn request(shape: Shape) -> Request {
        let mut prompt = Prompt::system("s");
        prompt.push(Role::User, "u");
        Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 7, cancel: Cancel::new() }
    }

    #[test]
    fn each_level_sends_less() {
        let schema = json!({"type": "object"});
        let at = |level| body("m", &request(Shape::Json(schema.clone())), level, None);
        let full = at(Level::Full);
        assert_eq!(full["messages"], json!([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]));
        assert_eq!(full["response_format"]["json_schema"]["schema"], schema);
        assert_eq!((&full["max_tokens"], &full["top_logprobs"]), (&json!(7), &json!(2)));
        assert_eq!(at(Level::Schema)["response_format"]["schema"], schema);
        assert!(at(Level::Schema).get("stream_options").is_none());
        assert!(at(Level::Plain).get("logprobs").is_none());
        assert!(at(Level::Plain).get("response_format").is_none());
        assert_eq!(Level::from_index(Level::Schema.index()).below(), Some(Level::Plain));
    }

    #[test]
    fn stop_strings_and_prefill_and_objections_are_sent() {
        let mut r = request(Shape::Text { stop: "abcde".chars().map(String::from).collect() });
        assert_eq!(body("m", &r, Level::Full, None)["stop"], json!(["a", "b", "c", "d"]));
        r.prompt.prefill = "ls ".into();
        assert_eq!(body("m", &r, Level::Full, None)["messages"][2], json!({"role": "assistant", "content": "ls "}));
        let again = body("m", &r, Level::Full, Some(("x", "it is none of: a, b")));
        assert_eq!(again["messages"].as_array().unwrap().len(), 4);
        assert!(again["messages"][3]["content"].as_str().unwrap().contains("none of: a, b"));
    }

    #[test]
    fn both_forms_of_log_probabilities_are_parsed() {
        let new = r#"{"choices":[{"delta":{"content":"é"},"logprobs":{"content":[{"token":"é","bytes":[195,169],"logprob":-0.1,
            "top_logprobs":[{"token":"é","logprob":-0.1},{"token":"e","logprob":-2.5}]}]},"finish_reason":null}]}"#;
        let old = r#"{"choices":[{"delta":{"content":"é"},"logprobs":{"tokens":["é"],"token_logprobs":[-0.1],
            "top_logprobs":[{"é":-0.1,"e":-2.5}]}}]}"#;
        for text in [new, old] {
            let chunk = chunk(text).unwrap();
            let token = Token { bytes: "é".into(), logprob: Some(-0.1), runner_up: Some(-2.5) };
            assert_eq!((chunk.text.as_str(), chunk.tokens), ("é", vec![token]));
        }
    }

    #[test]
    fn the_last_event_may_hold_usage_only() {
        let text = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8}}}"#;
        assert_eq!(chunk(text).unwrap().usage, Some((9, 8, 2)));
    }

    #[test]
    fn error_messages_of_all_servers_are_parsed() {
        for (text, why) in [
            (r#"{"error":{"message":"no such model","code":404}}"#, "no such model"),
            (r#"{"error":"model 'x' not found"}"#, "model 'x' not found"),
            (r#"{"detail":[{"msg":"bad"}]}"#, "bad"),
            ("<html>\n<h1>502</h1>", "no JSON but: <html> <h1>502</h1>"),
            ("{}", "no answer but: {}"),
            ("", "nothing"),
        ] {
            let error = chunk(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
