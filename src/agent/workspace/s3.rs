//! Connects to buckets of S3 and compatible servers with the client that fetches models, to avoid a second HTTP client
//! and a second TLS implementation.

use super::place::{Kind, PlaceError};
use super::remote::Remote;
use caro_model::Cancel;
use caro_model::fetch::net::{self, Client, Patience};
use http::request::Parts;
use http_body_util::BodyExt;
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use std::io::Read;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Timeouts of the connection and of each read.
const PATIENCE: Patience = Patience { connect: Duration::from_secs(10), read: Duration::from_secs(30) };
/// Most retries of a failed request.
const MAX_RETRIES: usize = 3;
/// Time within which a request is retried.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);
/// Most bytes of a response.
const MAX_BODY: u64 = 256 << 20;

/// Opens the bucket with the address `https://HOST[:PORT]/BUCKET[/FOLDER]`.
///
/// # Errors
/// If the address names no bucket.
pub fn open(kind: Kind, url: &str, key: (&str, &str), authorities: Option<PathBuf>) -> Result<Remote, PlaceError> {
    // the message shows the address, so it must not contain a password
    let wrong = || PlaceError::Url(if url.contains('@') { "it has a user in it".into() } else { url.to_owned() });
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let (host, path) = rest.split_once('/').ok_or_else(wrong)?;
    let mut names = path.split('/').filter(|name| !name.is_empty()).map(str::to_owned);
    let bucket = names.next().ok_or_else(wrong)?;
    if !["http", "https"].contains(&scheme) || host.is_empty() || url.contains(['@', '?', '#']) {
        return Err(wrong());
    }
    let store = AmazonS3Builder::new()
        .with_endpoint(format!("{scheme}://{host}"))
        .with_allow_http(scheme == "http")
        .with_region(region(kind, host))
        .with_bucket_name(&bucket)
        .with_access_key_id(key.0)
        .with_secret_access_key(key.1)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_retry(RetryConfig {
            max_retries: MAX_RETRIES,
            retry_timeout: RETRY_TIMEOUT,
            backoff: BackoffConfig::default(),
        })
        .with_http_connector(Fetcher { authorities })
        .build()
        .map_err(|e| PlaceError::Url(e.to_string()))?;
    Ok(Remote::new(Arc::new(store), format!("{scheme}://{host}/{bucket}"), names.collect()))
}

/// Returns the region that requests are signed for. Source: AWS, "Amazon Simple Storage Service endpoints and quotas"
/// (`s3.REGION.amazonaws.com`); Cloudflare, "R2, S3 API compatibility" (`auto`).
fn region(kind: Kind, host: &str) -> String {
    let named = host.strip_prefix("s3.").and_then(|rest| rest.strip_suffix(".amazonaws.com"));
    match (kind, named) {
        (Kind::R2, _) => "auto".to_owned(),
        (_, Some(region)) => region.to_owned(),
        // compatible servers, and Amazon's oldest region
        _ => "us-east-1".to_owned(),
    }
}

/// The HTTP client of the store.
#[derive(Debug, Clone)]
struct Fetcher {
    authorities: Option<PathBuf>,
}

impl HttpConnector for Fetcher {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for Fetcher {
    /// Sends a request. It blocks, so it must be called on a separate thread.
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            self.exchange(&parts, &body.collect().await?.to_bytes())
        })
    }
}

impl Fetcher {
    /// Sends a request and reads the whole response.
    fn exchange(&self, parts: &Parts, body: &[u8]) -> Result<HttpResponse, HttpError> {
        let failed = |kind, why: String| HttpError::new_boxed(kind, why.into());
        let client = Client::new(PATIENCE, self.authorities.as_deref(), &Cancel::default());
        let client = client.map_err(|e| failed(HttpErrorKind::Unknown, net::no_thread(&e)))?;
        let mut request = client.request(parts.method.as_str(), &parts.uri.to_string());
        // the client sets these two itself
        for (name, value) in parts.headers.iter().filter(|(name, _)| *name != "host" && *name != "content-length") {
            let value = value.to_str().map_err(|e| HttpError::new(HttpErrorKind::Unknown, e))?;
            request = request.set(name.as_str(), value);
        }
        let sent = if ["PUT", "POST"].contains(&parts.method.as_str()) {
            request.send_bytes(body)
        } else {
            ureq::Request::call(request)
        };
        let answer = match sent {
            Ok(answer) | Err(ureq::Error::Status(_, answer)) => answer,
            Err(ureq::Error::Transport(error)) => return Err(failed(HttpErrorKind::Connect, net::reason(&error))),
        };
        let mut response = http::Response::builder().status(answer.status());
        for name in answer.headers_names() {
            for value in answer.all(&name) {
                response = response.header(&name, value);
            }
        }
        let mut body = Vec::new();
        let read = answer.into_reader().take(MAX_BODY + 1).read_to_end(&mut body);
        read.map_err(|e| HttpError::new(HttpErrorKind::Interrupted, e))?;
        if body.len() as u64 > MAX_BODY {
            return Err(failed(HttpErrorKind::Decode, format!("the answer has more than {MAX_BODY} bytes")));
        }
        response.body(HttpResponseBody::from(body)).map_err(|e| HttpError::new(HttpErrorKind::Decode, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_is_in_the_address() {
        for (kind, host, expected) in [
            (Kind::S3, "s3.eu-central-1.amazonaws.com", "eu-central-1"),
            (Kind::S3, "s3.amazonaws.com", "us-east-1"),
            (Kind::S3, "localhost:9000", "us-east-1"),
            (Kind::R2, "id.r2.cloudflarestorage.com", "auto"),
        ] {
            assert_eq!(region(kind, host), expected, "{host}");
        }
    }
}
