//! The older HTTP+SSE transport: a GET opens an event stream whose first event names the address that messages are
//! posted to; the answers arrive on the stream. The stream is the session: when it ends, the server is gone.
//!
//! Source: Model Context Protocol, "Transports", revision 2024-11-05.

use super::http::{Error, Events, Headers, Http, client_error};
use super::metered::OutputMeter;
use futures::StreamExt;
use futures::stream;
use http::Uri;
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::sync::Arc;

/// Most events read before the one that names the address.
const MAX_EVENTS_BEFORE_ENDPOINT: usize = 100;

/// A connection to a server.
pub(super) struct SseTransport {
    http: Http,
    /// The address that messages are posted to.
    endpoint: Arc<str>,
    headers: Headers,
    events: Events,
    meter: Arc<OutputMeter>,
}

impl SseTransport {
    /// Opens the stream and waits for the address that messages are posted to.
    ///
    /// # Errors
    /// If the stream cannot be opened or names no address, or the address has another origin: the user's headers,
    /// which may hold secrets, are not meant for that one.
    pub(super) async fn open(http: Http, url: &str, headers: Headers, meter: Arc<OutputMeter>) -> Result<Self, Error> {
        let mut events = http.listen(url.into(), headers.clone()).await?;
        for _ in 0..MAX_EVENTS_BEFORE_ENDPOINT {
            let event = match events.next().await {
                Some(Ok(event)) => event,
                Some(Err(error)) => return Err(client_error(error.to_string())),
                None => break,
            };
            if event.event.as_deref() == Some("endpoint") {
                let endpoint = event.data.unwrap_or_default();
                let endpoint = resolve(url, endpoint.trim()).map_err(client_error)?.into();
                return Ok(Self { http, endpoint, headers, events, meter });
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
            self.meter.add(data.len());
            if self.meter.is_flood() {
                return None;
            }
            if !matches!(event.event.as_deref(), None | Some("message")) {
                continue;
            }
            // data that is not a message is skipped, as on the other transports
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

/// Resolves the address for messages against the stream's own `base`. The result must have the same origin.
fn resolve(base: &str, endpoint: &str) -> Result<String, String> {
    let parsed = |text: &str| text.parse::<Uri>().map_err(|e| format!("`{text}` is not an address: {e}"));
    let own = parsed(base)?;
    let (Some(scheme), Some(authority)) = (own.scheme_str(), own.authority()) else {
        return Err(format!("`{base}` is not an http:// or https:// address"));
    };
    let path = own.path();
    let whole = if endpoint.is_empty() {
        return Err("its event `endpoint` is empty".into());
    } else if endpoint.contains("://") {
        endpoint.to_owned()
    } else if endpoint.starts_with("//") {
        format!("{scheme}:{endpoint}")
    } else if endpoint.starts_with('/') {
        format!("{scheme}://{authority}{endpoint}")
    } else if endpoint.starts_with('?') {
        format!("{scheme}://{authority}{path}{endpoint}")
    } else {
        let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
        format!("{scheme}://{authority}{folder}{endpoint}")
    };
    let target = parsed(&whole)?;
    if origin(&own) != origin(&target) {
        return Err(format!("its messages would go to another host ({whole})"));
    }
    Ok(whole)
}

/// Returns the scheme, host and port.
fn origin(uri: &Uri) -> (String, String, u16) {
    let scheme = uri.scheme_str().unwrap_or_default().to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    (scheme, uri.host().unwrap_or_default().to_ascii_lowercase(), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_resolved_against_the_stream_and_must_have_its_origin() {
        let of = |endpoint: &str| resolve("https://host.example/a/sse?x=1", endpoint);
        for (endpoint, whole) in [
            ("/messages?session=7", "https://host.example/messages?session=7"),
            ("messages/", "https://host.example/a/messages/"),
            ("?session=7", "https://host.example/a/sse?session=7"),
            ("https://HOST.example:443/m", "https://HOST.example:443/m"),
            ("//host.example/m", "https://host.example/m"),
        ] {
            assert_eq!(of(endpoint).as_deref(), Ok(whole), "{endpoint}");
        }
        for endpoint in [
            "",
            "https://other.example/m",
            "//other.example/m",
            "http://host.example/m",
            "https://host.example:8/m",
            "/a b",
        ] {
            assert!(of(endpoint).is_err(), "{endpoint}: {:?}", of(endpoint));
        }
    }
}
