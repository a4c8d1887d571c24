//! JSON-RPC 2.0 messages in the protocol's subset: an id is a string or an integer, parameters are an object.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Map, Value, json};

/// The error code for a client with too many calls in progress.
pub const TOO_MANY: ErrorCode = ErrorCode(-32000);
/// The error code for a call stopped on request, if the transport requires an answer.
pub const STOPPED: ErrorCode = ErrorCode(-32800);

/// Most bytes of a string id.
const MAX_ID_BYTES: usize = 1024;

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Expects an answer.
    Request {
        /// A string or an integer.
        id: Value,
        /// Its method.
        method: String,
        /// Its parameters.
        params: Map<String, Value>,
    },
    /// Expects no answer.
    Notification {
        /// Its method.
        method: String,
        /// Its parameters.
        params: Map<String, Value>,
    },
    /// An answer. The server sends clients no requests, so it is ignored.
    Response,
}

/// A refused message: the id of the error response, and the error.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The message's id, or null if it has no valid one.
    pub id: Value,
    /// The error.
    pub error: Box<ErrorData>,
}

impl Refusal {
    /// A refusal of the message with this id.
    pub fn new(id: Value, code: ErrorCode, why: impl Into<String>) -> Self {
        Self { id, error: Box::new(ErrorData::new(code, why.into(), None)) }
    }

    /// The error response to send.
    pub fn answer(&self) -> Value {
        failure(&self.id, &self.error)
    }
}

/// Parses bytes as JSON.
///
/// # Errors
/// If they are not JSON, or nested too deeply.
pub fn parse(bytes: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(bytes)
        .map_err(|why| Refusal::new(Value::Null, ErrorCode::PARSE_ERROR, format!("this is not a JSON message: {why}")))
}

/// Converts a JSON value to a message.
///
/// # Errors
/// If it is not a valid message.
pub fn read(value: Value) -> Result<Message, Refusal> {
    let invalid = |id: Value, why: &str| Refusal::new(id, ErrorCode::INVALID_REQUEST, why);
    let Value::Object(mut object) = value else { return Err(invalid(Value::Null, "a message is a JSON object")) };
    let id = match object.remove("id") {
        None => None,
        Some(id) if is_id(&id) => Some(id),
        Some(_) => {
            return Err(invalid(Value::Null, "an id is a whole number, or a text of at most 1024 bytes"));
        }
    };
    let or_null = |id: &Option<Value>| id.clone().unwrap_or_default();
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid(or_null(&id), "a message has `\"jsonrpc\": \"2.0\"`"));
    }
    let method = match object.remove("method") {
        Some(Value::String(method)) => method,
        None if object.contains_key("result") || object.contains_key("error") => return Ok(Message::Response),
        _ => return Err(invalid(or_null(&id), "a message has a `method`, which is a text")),
    };
    let params = match object.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        // a notification has no answer, so its error is not reported
        Some(_) if id.is_none() => return Ok(Message::Notification { method, params: Map::new() }),
        Some(_) => {
            return Err(Refusal::new(or_null(&id), ErrorCode::INVALID_PARAMS, "`params` is an object"));
        }
    };
    Ok(match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    })
}

/// True if the value is a valid id.
pub fn is_id(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= MAX_ID_BYTES,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        _ => false,
    }
}

/// The response to a request that succeeded.
pub fn success(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The response to a request that failed.
pub fn failure(id: &Value, error: &ErrorData) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

/// A notification.
pub fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (i32, Value) {
        let refusal = parse(text.as_bytes()).and_then(read).unwrap_err();
        (refusal.error.code.0, refusal.id)
    }

    #[test]
    fn requests_notifications_and_responses_are_distinguished() {
        let of = |value: Value| read(value).unwrap();
        assert_eq!(
            of(json!({"jsonrpc": "2.0", "id": "a", "method": "ping"})),
            Message::Request { id: json!("a"), method: "ping".into(), params: Map::new() }
        );
        assert_eq!(
            of(json!({"jsonrpc": "2.0", "method": "x", "params": [1]})),
            Message::Notification { method: "x".into(), params: Map::new() }
        );
        assert_eq!(of(json!({"jsonrpc": "2.0", "id": 1, "result": {}})), Message::Response);
        assert_eq!(of(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}})), Message::Response);
    }

    #[test]
    fn invalid_messages_are_refused_with_their_error_codes() {
        for text in ["", "{", "nonsense", "\u{0}", "{\"a\": 1e999}", &"[".repeat(100_000)] {
            assert_eq!(refused(text), (-32700, Value::Null), "{}", &text[..text.len().min(20)]);
        }
        for text in [
            "1",
            "\"x\"",
            "null",
            "{}",
            r#"{"jsonrpc": "2.0"}"#,
            r#"{"jsonrpc": "2.0", "method": 3}"#,
            r#"{"jsonrpc": "1.0", "method": "ping"}"#,
            r#"{"method": "ping"}"#,
        ] {
            assert_eq!(refused(text), (-32600, Value::Null), "{text}");
        }
        for id in
            ["null", "true", "[1]", "{}", "1.5", "1e3", "99999999999999999999999", &format!("{:?}", "x".repeat(2000))]
        {
            let text = format!(r#"{{"jsonrpc": "2.0", "id": {id}, "method": "ping"}}"#);
            assert_eq!(refused(&text), (-32600, Value::Null), "{id}");
        }
        for id in ["1", "-3", "18446744073709551615", "\"\"", "\"1\""] {
            let text = format!(r#"{{"jsonrpc": "2.0", "id": {id}, "method": "ping", "params": 3}}"#);
            assert_eq!(refused(&text), (-32602, serde_json::from_str(id).unwrap()), "{id}");
        }
    }
}
