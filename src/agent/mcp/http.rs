//! The streamable HTTP transport, over the HTTP client that also fetches models. Each exchange blocks a thread of its
//! own; cancelling it closes the socket.
//!
//! Source: Model Context Protocol, "Transports", revision 2025-06-18.

use caro_model::Cancel;
use caro_model::fetch::net::{self, Client, Patience};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Most time to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most time without data on the stream of the server's own messages; after it the stream is opened again.
const STREAM_READ_TIMEOUT: Duration = Duration::from_secs(3600);
/// Longest body that is not a stream, and longest event, bytes.
const MAX_BODY: usize = 4 << 20;
/// Most bytes read of the body of an error response.
const MAX_ERROR_BODY: u64 = 64 << 10;
/// Most events read of one response.
const MAX_EVENTS: usize = 10_000;

/// The reason why an exchange failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HttpError(String);

pub(super) type Error = StreamableHttpError<HttpError>;
pub(super) type Headers = HashMap<HeaderName, HeaderValue>;
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

pub(super) fn client_error(reason: impl Into<String>) -> Error {
    StreamableHttpError::Client(HttpError(reason.into()))
}

/// The HTTP client of the MCP transports.
#[derive(Clone)]
pub struct Http {
    /// Most time without data while waiting for a response.
    pub read_timeout: Duration,
    /// Certificate authorities in addition to the built-in ones, as a PEM file.
    pub authorities: Option<PathBuf>,
}

/// Cancels an exchange when it is dropped.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// One HTTP request.
struct HttpRequest {
    method: &'static str,
    uri: Arc<str>,
    accept: &'static str,
    session: Option<Arc<str>>,
    last_event: Option<String>,
    auth: Option<String>,
    headers: Headers,
    body: Option<String>,
    read_timeout: Duration,
    authorities: Option<PathBuf>,
}

/// A response whose body is not read yet. It keeps the client, which holds the sockets.
struct HttpResponse {
    status: u16,
    inner: ureq::Response,
    client: Client,
}

impl HttpRequest {
    fn send(self, cancel: &Cancel) -> Result<HttpResponse, Error> {
        let patience = Patience { connect: CONNECT_TIMEOUT, read: self.read_timeout };
        let client = Client::new(patience, self.authorities.as_deref(), cancel);
        let client = client.map_err(|e| client_error(net::no_thread(&e)))?;
        let mut request = client.request(self.method, &self.uri);
        // the configured headers first: those of the protocol override them
        for (name, value) in &self.headers {
            let value = value.to_str().map_err(|_| client_error(format!("the header {name} is not plain text")))?;
            request = request.set(name.as_str(), value);
        }
        request = request.set("Accept", self.accept);
        if let Some(session) = &self.session {
            request = request.set("Mcp-Session-Id", session);
        }
        if let Some(id) = &self.last_event {
            request = request.set("Last-Event-ID", id);
        }
        if let Some(token) = &self.auth {
            request = request.set("Authorization", &format!("Bearer {token}"));
        }
        let sent = match self.body {
            Some(body) => request.set("Content-Type", "application/json").send_string(&body),
            None => ureq::Request::call(request),
        };
        match sent {
            Ok(inner) | Err(ureq::Error::Status(_, inner)) => {
                Ok(HttpResponse { status: inner.status(), inner, client })
            }
            Err(ureq::Error::Transport(error)) => Err(client_error(net::reason(&error))),
        }
    }
}

impl HttpResponse {
    fn session(&self) -> Option<String> {
        self.inner.header("Mcp-Session-Id").map(str::to_owned)
    }

    fn has_content_type(&self, kind: &str) -> bool {
        self.inner.content_type().eq_ignore_ascii_case(kind)
    }

    /// Converts a response without success status to an error with the server's message.
    fn into_error(self) -> Error {
        let challenge = self.inner.header("WWW-Authenticate").map(str::to_owned);
        let to = self.inner.header("Location").map(|l| format!(" (it has moved to {l})")).unwrap_or_default();
        let status = self.status;
        if let (401, Some(header)) = (status, challenge) {
            return StreamableHttpError::AuthRequired(AuthRequiredError::new(header));
        }
        let mut text = String::new();
        // a partial message is enough
        let _ = self.inner.into_reader().take(MAX_ERROR_BODY).read_to_string(&mut text);
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
        StreamableHttpError::UnexpectedServerResponse(format!("HTTP status {status}{to}: {text}").into())
    }

    /// Reads the whole body.
    fn body(self) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        self.inner
            .into_reader()
            .take(MAX_BODY as u64 + 1)
            .read_to_end(&mut body)
            .map_err(|e| client_error(e.to_string()))?;
        if body.len() > MAX_BODY {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: MAX_BODY });
        }
        Ok(body)
    }

    /// Returns the response as a stream of at most `most` events, or an error if it is none.
    async fn stream(self, guard: CancelOnDrop, most: usize) -> Result<Events, Error> {
        match self.status {
            200..300 if self.has_content_type("text/event-stream") => Ok(self.events(guard, most)),
            200..300 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            _ => Err(tokio::task::spawn_blocking(move || self.into_error()).await?),
        }
    }

    /// Returns the body as a stream of at most `most` events, read on a thread of its own. Dropping the stream closes
    /// the socket.
    fn events(self, guard: CancelOnDrop, most: usize) -> Events {
        let (sender, receiver) = tokio::sync::mpsc::channel(16);
        let Self { inner, client, .. } = self;
        let work = move || {
            let mut reader = BufReader::new(inner.into_reader());
            for _ in 0..most {
                let event = match read_event(&mut reader) {
                    Ok(Some(event)) => Ok(event),
                    Ok(None) => break,
                    Err(error) => Err(SseError::Body(error.into())),
                };
                let failed = event.is_err();
                if sender.blocking_send(event).is_err() || failed {
                    break;
                }
            }
            drop(client);
        };
        // without a thread the stream ends at once
        let _ = std::thread::Builder::new().name("mcp-events".into()).spawn(work);
        stream::unfold((receiver, guard), |(mut receiver, guard)| async move {
            let event = receiver.recv().await?;
            Some((event, (receiver, guard)))
        })
        .boxed()
    }
}

/// Reads the next event of a stream; `None` at its end. An event ends at an empty line.
///
/// Source: HTML Living Standard, "Server-sent events", 9.2.6.
fn read_event(reader: &mut impl BufRead) -> std::io::Result<Option<Sse>> {
    let mut sse = Sse::default();
    let (mut data, mut any) = (String::new(), false);
    let mut size = 0;
    loop {
        let mut line = Vec::new();
        let read = reader.take((MAX_BODY - size) as u64 + 1).read_until(b'\n', &mut line)?;
        size += read;
        if size > MAX_BODY {
            return Err(std::io::Error::other(format!("an event has more than {MAX_BODY} bytes")));
        }
        // an event cut off by the end of the stream is dropped
        if read == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            if !any {
                size = 0;
                continue;
            }
            sse.data = (!data.is_empty()).then(|| data.trim_end_matches('\n').to_owned());
            return Ok(Some(sse));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            "event" => sse.event = Some(value.to_owned()),
            "id" => sse.id = Some(value.to_owned()),
            "retry" => sse.retry = value.parse().ok(),
            // a comment, or an unknown field
            _ => continue,
        }
        any = true;
    }
}

impl Http {
    fn request(&self, method: &'static str, uri: Arc<str>, auth: Option<String>, headers: Headers) -> HttpRequest {
        HttpRequest {
            method,
            uri,
            accept: "application/json, text/event-stream",
            session: None,
            last_event: None,
            auth,
            headers,
            body: None,
            read_timeout: self.read_timeout,
            authorities: self.authorities.clone(),
        }
    }

    /// Opens a stream of events without an event limit.
    pub(super) async fn listen(&self, uri: Arc<str>, headers: Headers) -> Result<Events, Error> {
        let request = HttpRequest {
            accept: "text/event-stream",
            read_timeout: STREAM_READ_TIMEOUT,
            ..self.request("GET", uri, None, headers)
        };
        let (response, guard) = exchange(request).await?;
        response.stream(guard, usize::MAX).await
    }

    /// Sends a message whose answer arrives on another stream.
    pub(super) async fn post(&self, uri: Arc<str>, headers: Headers, body: String) -> Result<(), Error> {
        let request = HttpRequest { body: Some(body), ..self.request("POST", uri, None, headers) };
        let (response, _guard) = exchange(request).await?;
        if (200..300).contains(&response.status) {
            return Ok(());
        }
        Err(tokio::task::spawn_blocking(move || response.into_error()).await?)
    }
}

/// Sends a request on a thread that may block. Dropping the returned guard cancels the exchange.
async fn exchange(request: HttpRequest) -> Result<(HttpResponse, CancelOnDrop), Error> {
    let cancel = Cancel::new();
    let guard = CancelOnDrop(cancel.clone());
    let response = tokio::task::spawn_blocking(move || request.send(&cancel)).await??;
    Ok((response, guard))
}

impl StreamableHttpClient for Http {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let had_session = session_id.is_some();
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        let body = Some(serde_json::to_string(&message)?);
        let request =
            HttpRequest { session: session_id, body, ..self.request("POST", uri, auth_header, custom_headers) };
        let (response, guard) = exchange(request).await?;
        let session = response.session();
        match response.status {
            202 | 204 => return Ok(StreamableHttpPostResponse::Accepted),
            404 if had_session => return Err(StreamableHttpError::SessionExpired),
            200..300 if response.has_content_type("text/event-stream") => {
                return Ok(StreamableHttpPostResponse::Sse(response.events(guard, MAX_EVENTS), session));
            }
            200..300 if !wants_answer => return Ok(StreamableHttpPostResponse::Accepted),
            // an error message of the protocol may come with an HTTP error status
            _ if response.has_content_type("application/json") && !matches!(response.status, 401 | 403) => {}
            200..300 => {
                let kind = response.inner.content_type().to_owned();
                return Err(StreamableHttpError::UnexpectedContentType(Some(kind)));
            }
            _ => return Err(tokio::task::spawn_blocking(move || response.into_error()).await?),
        }
        let status = response.status;
        let body = tokio::task::spawn_blocking(move || response.body()).await??;
        drop(guard);
        let start = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(message) if status < 300 || matches!(message, ServerJsonRpcMessage::Error(_)) => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            _ => Err(StreamableHttpError::UnexpectedServerResponse(
                format!("HTTP status {status} and no message of the protocol: {start}").into(),
            )),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Error> {
        let request =
            HttpRequest { session: Some(session_id), ..self.request("DELETE", uri, auth_header, custom_headers) };
        // the status is ignored: a server may refuse to end sessions (405)
        exchange(request).await.map(|_| ())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let request = HttpRequest {
            session: session_id,
            last_event: last_event_id,
            accept: "text/event-stream",
            read_timeout: STREAM_READ_TIMEOUT,
            ..self.request("GET", uri, auth_header, custom_headers)
        };
        let (response, guard) = exchange(request).await?;
        if response.status == 405 {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        response.stream(guard, MAX_EVENTS).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_parsed_as_the_standard_requires() {
        let text = ": hello\n\ndata: {\"a\":\ndata: 1}\r\nid: 7\nevent: message\nretry: 50\nnonsense\n\ndata:x\n\ndata: cut off";
        let mut reader = BufReader::new(text.as_bytes());
        let first = read_event(&mut reader).unwrap().unwrap();
        assert_eq!(first.data.as_deref(), Some("{\"a\":\n1}"));
        assert_eq!((first.id.as_deref(), first.event.as_deref(), first.retry), (Some("7"), Some("message"), Some(50)));
        assert_eq!(read_event(&mut reader).unwrap().unwrap().data.as_deref(), Some("x"));
        assert!(read_event(&mut reader).unwrap().is_none(), "what the end cuts off does not count");
        let flood = [b"data: ".as_slice(), &vec![b'x'; MAX_BODY + 5]].concat();
        assert!(read_event(&mut BufReader::new(&flood[..])).unwrap_err().to_string().contains("more than"));
    }
}
