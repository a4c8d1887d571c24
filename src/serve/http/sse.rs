//! Streams of server-sent events: an event has a name, a document, and optionally a cursor to resume from.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;

/// Interval of keep-alive comments in a silent stream: writing one detects a client that has disconnected.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Most events waiting for a slow reader.
const MAX_AHEAD: usize = 16;

/// The sending end of a stream.
#[derive(Debug, Clone)]
pub struct Events(mpsc::Sender<Bytes>);

/// The client has disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disconnected;

impl Events {
    /// Sends an event; waits for a slow reader.
    ///
    /// # Errors
    /// If the client has disconnected.
    pub async fn send(&self, name: &str, cursor: Option<&str>, data: &Value) -> Result<(), Disconnected> {
        self.0.send(encode(name, cursor, data)).await.map_err(|_| Disconnected)
    }

    /// Sends an event without a name: a document, or a marker such as `[DONE]`, in one line.
    ///
    /// # Errors
    /// If the client has disconnected.
    pub async fn send_data(&self, data: &str) -> Result<(), Disconnected> {
        self.0.send(Bytes::from(format!("data: {data}\n\n"))).await.map_err(|_| Disconnected)
    }

    /// Sends an event without waiting; it is dropped if the reader is too slow.
    pub fn try_send(&self, name: &str, data: &Value) {
        // used for stages only, which a client can do without
        let _ = self.0.try_send(encode(name, None, data));
    }

    /// Waits until the client has disconnected.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Creates a stream, and the response that carries it.
pub fn stream() -> (Events, Response) {
    let (send, receive) = mpsc::channel(MAX_AHEAD);
    let pieces = futures::stream::unfold(receive, |mut receive| async {
        let piece = match tokio::time::timeout(KEEP_ALIVE_INTERVAL, receive.recv()).await {
            Ok(piece) => piece?,
            Err(_) => Bytes::from_static(b": alive\n\n"),
        };
        Some((Ok::<_, std::convert::Infallible>(piece), receive))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    (Events(send), response)
}

/// True if the client accepts a stream.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|value| value.contains("text/event-stream"))
}

/// Encodes an event. Names and cursors come from this program, and JSON contains no line break, so no field needs
/// escaping.
fn encode(name: &str, cursor: Option<&str>, data: &Value) -> Bytes {
    let id = cursor.map(|cursor| format!("id: {cursor}\n")).unwrap_or_default();
    Bytes::from(format!("event: {name}\n{id}data: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_cannot_add_lines_to_its_event() {
        let data = json!({"text": "a\n\nevent: forged\ndata: x\r\n"});
        let text = String::from_utf8(encode("stage", Some("run_1-2"), &data).to_vec()).unwrap();
        assert!(text.starts_with("event: stage\nid: run_1-2\ndata: {") && text.ends_with("}\n\n"));
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[tokio::test]
    async fn a_sender_is_told_of_a_dropped_response() {
        let (events, response) = stream();
        events.send("a", None, &Value::Null).await.unwrap();
        drop(response);
        events.closed().await;
        assert_eq!(events.send("b", None, &Value::Null).await, Err(Disconnected));
    }
}
