//! Streams of server-sent events: an event is a name, a document, and where it has one a cursor to go on from.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;

/// Between two signs of life of a stream that has nothing to say: whoever has gone is noticed by then.
const ALIVE: Duration = Duration::from_secs(15);
/// Events that wait for a reader that is slower than they come.
const AHEAD: usize = 16;

/// The end of a stream that events are put in at.
#[derive(Debug, Clone)]
pub struct Events(mpsc::Sender<Bytes>);

/// The reader is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

impl Events {
    /// Sends one; waits for a slow reader.
    ///
    /// # Errors
    /// If nobody reads any more.
    pub async fn send(&self, name: &str, cursor: Option<&str>, data: &Value) -> Result<(), Gone> {
        self.0.send(written(name, cursor, data)).await.map_err(|_| Gone)
    }

    /// Sends one that has no name: a document, or a word of the protocol in one line.
    ///
    /// # Errors
    /// If nobody reads any more.
    pub async fn data(&self, data: &str) -> Result<(), Gone> {
        self.0.send(Bytes::from(format!("data: {data}\n\n"))).await.map_err(|_| Gone)
    }

    /// The same as [`Events::send`] from where nobody may wait: it is left out for a reader that is too slow.
    pub fn offer(&self, name: &str, data: &Value) {
        // a stage that was not seen is no answer that is lost
        let _ = self.0.try_send(written(name, None, data));
    }

    /// Waits until nobody reads any more.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// A stream, and the response that it is read from.
pub fn stream() -> (Events, Response) {
    let (send, receive) = mpsc::channel(AHEAD);
    let pieces = futures::stream::unfold(receive, |mut receive| async {
        let piece = match tokio::time::timeout(ALIVE, receive.recv()).await {
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

/// True if the client wants a stream.
pub fn wanted(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|value| value.contains("text/event-stream"))
}

/// An event as it is written. Neither name nor cursor is anything but our own; JSON has no line break in it.
fn written(name: &str, cursor: Option<&str>, data: &Value) -> Bytes {
    let id = cursor.map(|cursor| format!("id: {cursor}\n")).unwrap_or_default();
    Bytes::from(format!("event: {name}\n{id}data: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_is_one_whatever_is_in_its_document() {
        let data = json!({"text": "a\n\nevent: forged\ndata: x\r\n"});
        let text = String::from_utf8(written("stage", Some("run_1-2"), &data).to_vec()).unwrap();
        assert!(text.starts_with("event: stage\nid: run_1-2\ndata: {") && text.ends_with("}\n\n"));
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[tokio::test]
    async fn whoever_writes_learns_that_nobody_reads() {
        let (events, response) = stream();
        events.send("a", None, &Value::Null).await.unwrap();
        drop(response);
        events.closed().await;
        assert_eq!(events.send("b", None, &Value::Null).await, Err(Gone));
    }
}
