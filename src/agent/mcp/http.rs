//! Streamable HTTP: what the protocol sends over an address, with the client that models are fetched with. Each exchange
//! blocks a thread of its own; giving it up closes its socket.
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

/// The longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest silence on the stream that a server speaks on unasked; it is opened again then.
const SILENCE: Duration = Duration::from_secs(3600);
/// The longest body that is no stream, and the longest event, bytes.
const MAX_BODY: usize = 4 << 20;
/// What is read of an answer that says no, bytes.
const MAX_REFUSAL: u64 = 64 << 10;
/// Events of one answer; a server that sends more never ceases.
const MAX_EVENTS: usize = 10_000;

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct HttpError(String);

pub(super) type Error = StreamableHttpError<HttpError>;
pub(super) type Headers = HashMap<HeaderName, HeaderValue>;
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

pub(super) fn client_error(reason: impl Into<String>) -> Error {
    StreamableHttpError::Client(HttpError(reason.into()))
}

/// Speaks with servers.
#[derive(Clone)]
pub struct Http {
    /// The longest silence while an answer is waited for.
    pub silence: Duration,
    /// Certificate authorities beside the built-in ones, as a PEM file.
    pub authorities: Option<PathBuf>,
}

/// Gives an exchange up when it is dropped.
struct Given(Cancel);

impl Drop for Given {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// One request.
struct Ask {
    method: &'static str,
    uri: Arc<str>,
    accept: &'static str,
    session: Option<Arc<str>>,
    last_event: Option<String>,
    auth: Option<String>,
    headers: Headers,
    body: Option<String>,
    silence: Duration,
    authorities: Option<PathBuf>,
}

/// The answer, its body not yet read. The client is kept with it: it holds the sockets.
struct Answer {
    status: u16,
    response: ureq::Response,
    client: Client,
}

impl Ask {
    fn send(self, cancel: &Cancel) -> Result<Answer, Error> {
        let patience = Patience { connect: CONNECT, read: self.silence };
        let client = Client::new(patience, self.authorities.as_deref(), cancel);
        let client = client.map_err(|e| client_error(net::no_thread(&e)))?;
        let mut request = client.request(self.method, &self.uri);
        // the person's own first: the protocol's have the last word
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
            Ok(response) | Err(ureq::Error::Status(_, response)) => {
                Ok(Answer { status: response.status(), response, client })
            }
            Err(ureq::Error::Transport(error)) => Err(client_error(net::reason(&error))),
        }
    }
}

impl Answer {
    fn session(&self) -> Option<String> {
        self.response.header("Mcp-Session-Id").map(str::to_owned)
    }

    fn is(&self, kind: &str) -> bool {
        self.response.content_type().eq_ignore_ascii_case(kind)
    }

    /// What the server says about a status that is no success.
    fn refusal(self) -> Error {
        let challenge = self.response.header("WWW-Authenticate").map(str::to_owned);
        let to = self.response.header("Location").map(|l| format!(" (it has moved to {l})")).unwrap_or_default();
        let status = self.status;
        if let (401, Some(header)) = (status, challenge) {
            return StreamableHttpError::AuthRequired(AuthRequiredError::new(header));
        }
        let mut text = String::new();
        // what can be read of it is enough
        let _ = self.response.into_reader().take(MAX_REFUSAL).read_to_string(&mut text);
        let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
        StreamableHttpError::UnexpectedServerResponse(format!("HTTP status {status}{to}: {text}").into())
    }

    /// The whole body.
    fn body(self) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        self.response
            .into_reader()
            .take(MAX_BODY as u64 + 1)
            .read_to_end(&mut body)
            .map_err(|e| client_error(e.to_string()))?;
        if body.len() > MAX_BODY {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: MAX_BODY });
        }
        Ok(body)
    }

    /// The stream of at most so many events that was asked for; or why there is none.
    async fn stream(self, given: Given, most: usize) -> Result<Events, Error> {
        match self.status {
            200..300 if self.is("text/event-stream") => Ok(self.events(given, most)),
            200..300 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            _ => Err(tokio::task::spawn_blocking(move || self.refusal()).await?),
        }
    }

    /// The body as a stream of at most so many events, read on a thread of its own. Dropping the stream closes the socket.
    fn events(self, given: Given, most: usize) -> Events {
        let (say, hear) = tokio::sync::mpsc::channel(16);
        let Self { response, client, .. } = self;
        let work = move || {
            let mut reader = BufReader::new(response.into_reader());
            for _ in 0..most {
                let event = match event(&mut reader) {
                    Ok(Some(event)) => Ok(event),
                    Ok(None) => break,
                    Err(error) => Err(SseError::Body(error.into())),
                };
                let over = event.is_err();
                if say.blocking_send(event).is_err() || over {
                    break;
                }
            }
            drop(client);
        };
        // without a thread the stream ends at once
        let _ = std::thread::Builder::new().name("mcp-events".into()).spawn(work);
        stream::unfold((hear, given), |(mut hear, given)| async move {
            let event = hear.recv().await?;
            Some((event, (hear, given)))
        })
        .boxed()
    }
}

/// The next event of a stream; `None` at its end. An event is the lines up to an empty one.
///
/// Source: HTML Living Standard, "Server-sent events", 9.2.6.
fn event(reader: &mut impl BufRead) -> std::io::Result<Option<Sse>> {
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
        // an event that the end of the stream cuts off does not count
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
            // a comment, or a field that nobody knows
            _ => continue,
        }
        any = true;
    }
}

impl Http {
    fn ask(&self, method: &'static str, uri: Arc<str>, auth: Option<String>, headers: Headers) -> Ask {
        Ask {
            method,
            uri,
            accept: "application/json, text/event-stream",
            session: None,
            last_event: None,
            auth,
            headers,
            body: None,
            silence: self.silence,
            authorities: self.authorities.clone(),
        }
    }

    /// Opens a stream of events that has no end.
    pub(super) async fn listen(&self, uri: Arc<str>, headers: Headers) -> Result<Events, Error> {
        let ask = Ask { accept: "text/event-stream", silence: SILENCE, ..self.ask("GET", uri, None, headers) };
        let (answer, given) = exchange(ask).await?;
        answer.stream(given, usize::MAX).await
    }

    /// Sends a message whose answer comes another way.
    pub(super) async fn post(&self, uri: Arc<str>, headers: Headers, body: String) -> Result<(), Error> {
        let ask = Ask { body: Some(body), ..self.ask("POST", uri, None, headers) };
        let (answer, _given) = exchange(ask).await?;
        if (200..300).contains(&answer.status) {
            return Ok(());
        }
        Err(tokio::task::spawn_blocking(move || answer.refusal()).await?)
    }
}

/// Sends a request on a thread where it may block. What comes back gives the exchange up when it is dropped.
async fn exchange(ask: Ask) -> Result<(Answer, Given), Error> {
    let cancel = Cancel::new();
    let given = Given(cancel.clone());
    let answer = tokio::task::spawn_blocking(move || ask.send(&cancel)).await??;
    Ok((answer, given))
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
        let ask = Ask { session: session_id, body, ..self.ask("POST", uri, auth_header, custom_headers) };
        let (answer, given) = exchange(ask).await?;
        let session = answer.session();
        match answer.status {
            202 | 204 => return Ok(StreamableHttpPostResponse::Accepted),
            404 if had_session => return Err(StreamableHttpError::SessionExpired),
            200..300 if answer.is("text/event-stream") => {
                return Ok(StreamableHttpPostResponse::Sse(answer.events(given, MAX_EVENTS), session));
            }
            200..300 if !wants_answer => return Ok(StreamableHttpPostResponse::Accepted),
            // an error of the protocol may come with a status that says so too
            _ if answer.is("application/json") && !matches!(answer.status, 401 | 403) => {}
            200..300 => {
                let kind = answer.response.content_type().to_owned();
                return Err(StreamableHttpError::UnexpectedContentType(Some(kind)));
            }
            _ => return Err(tokio::task::spawn_blocking(move || answer.refusal()).await?),
        }
        let status = answer.status;
        let body = tokio::task::spawn_blocking(move || answer.body()).await??;
        drop(given);
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
        let ask = Ask { session: Some(session_id), ..self.ask("DELETE", uri, auth_header, custom_headers) };
        // a server may keep its sessions (405): nothing is lost by it
        exchange(ask).await.map(|_| ())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let ask = Ask {
            session: session_id,
            last_event: last_event_id,
            accept: "text/event-stream",
            silence: SILENCE,
            ..self.ask("GET", uri, auth_header, custom_headers)
        };
        let (answer, given) = exchange(ask).await?;
        if answer.status == 405 {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        answer.stream(given, MAX_EVENTS).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_the_standard_says() {
        let text = ": hello\n\ndata: {\"a\":\ndata: 1}\r\nid: 7\nevent: message\nretry: 50\nnonsense\n\ndata:x\n\ndata: cut off";
        let mut reader = BufReader::new(text.as_bytes());
        let first = event(&mut reader).unwrap().unwrap();
        assert_eq!(first.data.as_deref(), Some("{\"a\":\n1}"));
        assert_eq!((first.id.as_deref(), first.event.as_deref(), first.retry), (Some("7"), Some("message"), Some(50)));
        assert_eq!(event(&mut reader).unwrap().unwrap().data.as_deref(), Some("x"));
        assert!(event(&mut reader).unwrap().is_none(), "what the end cuts off does not count");
        let flood = [b"data: ".as_slice(), &vec![b'x'; MAX_BODY + 5]].concat();
        assert!(event(&mut BufReader::new(&flood[..])).unwrap_err().to_string().contains("more than"));
    }
}
