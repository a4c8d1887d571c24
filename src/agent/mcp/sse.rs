//! HTTP+SSE, the older transport: a GET opens a stream of events, whose first one names the address that messages are sent
//! to; the answers come over the stream. The stream is the session: where it ends, the server is gone.
//!
//! Source: Model Context Protocol, "Transports", revision 2024-11-05.

use super::http::{Error, Events, Headers, Http, client_error};
use super::metered::Heard;
use futures::StreamExt;
use futures::stream;
use http::Uri;
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::sync::Arc;

/// Events before the one that names the address.
const MOST_BEFORE: usize = 100;

/// A connection with a server.
pub(super) struct SseTransport {
    http: Http,
    /// The address that messages are sent to.
    endpoint: Arc<str>,
    headers: Headers,
    events: Events,
    heard: Arc<Heard>,
}

impl SseTransport {
    /// Opens the stream and waits for the address of messages.
    ///
    /// # Errors
    /// If there is no such stream, or the address is on another host: the person's headers are not for that one.
    pub(super) async fn open(http: Http, url: &str, headers: Headers, heard: Arc<Heard>) -> Result<Self, Error> {
        let mut events = http.listen(url.into(), headers.clone()).await?;
        for _ in 0..MOST_BEFORE {
            let event = match events.next().await {
                Some(Ok(event)) => event,
                Some(Err(error)) => return Err(client_error(error.to_string())),
                None => break,
            };
            if event.event.as_deref() == Some("endpoint") {
                let named = event.data.unwrap_or_default();
                let endpoint = resolve(url, named.trim()).map_err(client_error)?.into();
                return Ok(Self { http, endpoint, headers, events, heard });
            }
        }
        Err(client_error("its stream names no address for messages (no event `endpoint`)"))
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (http, endpoint, headers) = (self.http.clone(), self.endpoint.clone(), self.headers.clone());
        async move { http.post(endpoint, headers, serde_json::to_string(&item)?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = self.events.next().await?.ok()?;
            let data = event.data.unwrap_or_default();
            self.heard.hear(data.len());
            if self.heard.is_flood() {
                return None;
            }
            if !matches!(event.event.as_deref(), None | Some("message")) {
                continue;
            }
            // what is no message is passed over, as on the other transports
            if let Ok(message) = serde_json::from_str(&data) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.events = stream::empty().boxed();
        Ok(())
    }
}

/// The address of messages, which a server may give in full or from its own: on the same host, by the same protocol.
fn resolve(base: &str, named: &str) -> Result<String, String> {
    let parsed = |text: &str| text.parse::<Uri>().map_err(|e| format!("`{text}` is no address: {e}"));
    let own = parsed(base)?;
    let (Some(scheme), Some(authority)) = (own.scheme_str(), own.authority()) else {
        return Err(format!("`{base}` is no http:// or https:// address"));
    };
    let path = own.path();
    let whole = if named.is_empty() {
        return Err("its event `endpoint` is empty".into());
    } else if named.contains("://") {
        named.to_owned()
    } else if named.starts_with("//") {
        format!("{scheme}:{named}")
    } else if named.starts_with('/') {
        format!("{scheme}://{authority}{named}")
    } else if named.starts_with('?') {
        format!("{scheme}://{authority}{path}{named}")
    } else {
        let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
        format!("{scheme}://{authority}{folder}{named}")
    };
    let target = parsed(&whole)?;
    if origin(&own) != origin(&target) {
        return Err(format!("its messages would go to another host ({whole})"));
    }
    Ok(whole)
}

/// Protocol, host and port.
fn origin(uri: &Uri) -> (String, String, u16) {
    let scheme = uri.scheme_str().unwrap_or_default().to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    (scheme, uri.host().unwrap_or_default().to_ascii_lowercase(), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_messages_is_meant_from_the_streams() {
        let of = |named: &str| resolve("https://host.example/a/sse?x=1", named);
        for (named, whole) in [
            ("/messages?session=7", "https://host.example/messages?session=7"),
            ("messages/", "https://host.example/a/messages/"),
            ("?session=7", "https://host.example/a/sse?session=7"),
            ("https://HOST.example:443/m", "https://HOST.example:443/m"),
            ("//host.example/m", "https://host.example/m"),
        ] {
            assert_eq!(of(named).as_deref(), Ok(whole), "{named}");
        }
        for named in [
            "",
            "https://other.example/m",
            "//other.example/m",
            "http://host.example/m",
            "https://host.example:8/m",
            "/a b",
        ] {
            assert!(of(named).is_err(), "{named}: {:?}", of(named));
        }
    }
}
