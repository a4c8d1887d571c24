//! Bodies: reads those of requests within limits of size and time, and ties a guard to those of responses.

use super::{Problem, Server};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use serde::de::DeserializeOwned;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Most bytes of a request's body.
pub const MAX_BODY: usize = 1 << 20;

/// Most time for a body to arrive.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a body completely. If its `Content-Length` is above the limit, it is refused before any of it is read.
///
/// # Errors
/// If it is too long, or does not arrive in time.
pub async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(Problem::too_large(MAX_BODY));
    }
    match tokio::time::timeout(READ_TIMEOUT, axum::body::to_bytes(body, MAX_BODY)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_long(&error) => Err(Problem::too_large(MAX_BODY)),
        Ok(Err(error)) => Err(Problem::bad_request(format!("the body cannot be read: {error}"))),
        Err(_) => Err(Problem::body_timeout()),
    }
}

/// True if the error is that the body exceeds its limit.
fn is_too_long(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The JSON document of a body.
#[derive(Debug)]
pub struct Document<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<Server>> for Document<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<Server>) -> Result<Self, Problem> {
        let (head, body) = request.into_parts();
        let bytes = read(&head.headers, body).await?;
        document(&bytes).map(Self)
    }
}

/// Parses a document. Invalid JSON is a problem of status 400; JSON that is no object, or has missing, unknown or wrong
/// fields, of status 422.
fn document<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let hint = "GET /openapi.json describes it";
    // a list would be read as the fields in order
    let is_object = bytes.trim_ascii_start().starts_with(b"{");
    if !is_object && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
        return Err(Problem::unprocessable("the document must be a JSON object").detail(hint));
    }
    match serde_json::from_slice(bytes) {
        Ok(document) => Ok(document),
        Err(error) if error.is_data() => {
            Err(Problem::unprocessable(format!("the document does not fit: {error}")).detail(hint))
        }
        Err(error) => Err(Problem::bad_request(format!("the body is not a JSON document: {error}")).detail(hint)),
    }
}

/// A body that owns a guard, dropped once the body has ended or is itself dropped.
pub struct GuardedBody<T> {
    inner: Body,
    guard: Option<T>,
}

impl<T: Send + Unpin + 'static> GuardedBody<T> {
    /// Ties a guard to a body.
    pub fn wrap(inner: Body, guard: T) -> Body {
        Body::new(Self { inner, guard: Some(guard) })
    }
}

impl<T: Unpin> HttpBody for GuardedBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.guard = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        #[allow(dead_code)]
        name: String,
    }

    async fn status(request: Request) -> StatusCode {
        let (head, body) = request.into_parts();
        read(&head.headers, body).await.map_or_else(|problem| problem.status(), |_| StatusCode::OK)
    }

    #[tokio::test]
    async fn a_body_above_the_limit_is_refused_by_size_or_declared_length() {
        let of = |bytes: usize| Request::new(Body::from(vec![b'x'; bytes]));
        assert_eq!(status(of(MAX_BODY)).await, StatusCode::OK);
        assert_eq!(status(of(MAX_BODY + 1)).await, StatusCode::PAYLOAD_TOO_LARGE);
        let mut declared = Request::new(Body::empty());
        declared.headers_mut().insert(CONTENT_LENGTH, (1_u64 << 30).into());
        assert_eq!(status(declared).await, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn invalid_json_and_unexpected_fields_have_different_statuses() {
        assert!(document::<Wanted>(br#"{"name": "x"}"#).is_ok());
        for bad in [&b""[..], b"{", b"\xff", b"{\"name\": \"x\"} y"] {
            assert_eq!(document::<Wanted>(bad).unwrap_err().status(), StatusCode::BAD_REQUEST, "{bad:?}");
        }
        for other in [&b"{}"[..], b"{\"name\": 1}", b"{\"name\": \"x\", \"mood\": 1}"] {
            assert_eq!(document::<Wanted>(other).unwrap_err().status(), StatusCode::UNPROCESSABLE_ENTITY, "{other:?}");
        }
    }

    #[test]
    fn a_document_is_an_object() {
        for other in [&b"[]"[..], b"[\"x\"]", b" [\"x\"]", b"\"x\"", b"1", b"null", b"true"] {
            let problem = document::<Wanted>(other).unwrap_err();
            let message = problem.message_and_detail().0;
            assert_eq!(
                (problem.status(), message),
                (StatusCode::UNPROCESSABLE_ENTITY, "the document must be a JSON object")
            );
        }
        assert!(document::<Wanted>(b"\n {\"name\": \"x\"}").is_ok());
        assert_eq!(document::<Wanted>(b"[\"x\"").unwrap_err().status(), StatusCode::BAD_REQUEST);
    }

    #[tokio::test]
    async fn the_guard_is_dropped_at_the_end_of_its_body_or_with_it() {
        let guard = Arc::new(());
        let body = GuardedBody::wrap(Body::from("x"), guard.clone());
        assert_eq!(Arc::strong_count(&guard), 2);
        axum::body::to_bytes(body, 9).await.unwrap();
        assert_eq!(Arc::strong_count(&guard), 1);
        drop(GuardedBody::wrap(Body::from("x"), guard.clone()));
        assert_eq!(Arc::strong_count(&guard), 1);
    }
}
