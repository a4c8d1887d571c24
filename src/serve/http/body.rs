//! Bodies: those of requests within their limits of size and time, those of responses with what they hold.

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

/// The most bytes of a body.
pub const LARGEST: usize = 1 << 20;

/// How long a body may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads a body whole. One that says that it is too long is refused before any of it is read.
///
/// # Errors
/// If it is too long, or does not come.
pub async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let said = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|length| length > LARGEST as u64) {
        return Err(Problem::too_large(LARGEST));
    }
    match tokio::time::timeout(PATIENCE, axum::body::to_bytes(body, LARGEST)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_long(&error) => Err(Problem::too_large(LARGEST)),
        Ok(Err(error)) => Err(Problem::bad_request(format!("the body cannot be read: {error}"))),
        Err(_) => Err(Problem::slow()),
    }
}

/// True if it was the limit that ended it.
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

/// The JSON document that a body is.
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

/// Reads it: what is no JSON object is 400, one with other fields than those that are wanted 422.
fn document<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let hint = "GET /openapi.json describes it";
    match serde_json::from_slice(bytes) {
        Ok(document) => Ok(document),
        Err(error) if error.is_data() => {
            Err(Problem::unfit(format!("the document does not fit: {error}")).detail(hint))
        }
        Err(error) => Err(Problem::bad_request(format!("the body is no JSON document: {error}")).detail(hint)),
    }
}

/// A body that holds something until it has ended, or nobody wants it any more.
pub struct Holding<T> {
    inner: Body,
    held: Option<T>,
}

impl<T: Send + Unpin + 'static> Holding<T> {
    /// Has the body hold it.
    pub fn body(inner: Body, held: T) -> Body {
        Body::new(Self { inner, held: Some(held) })
    }
}

impl<T: Unpin> HttpBody for Holding<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.held = None;
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
    async fn a_body_is_read_up_to_its_limit_whatever_it_says_of_itself() {
        let of = |bytes: usize| Request::new(Body::from(vec![b'x'; bytes]));
        assert_eq!(status(of(LARGEST)).await, StatusCode::OK);
        assert_eq!(status(of(LARGEST + 1)).await, StatusCode::PAYLOAD_TOO_LARGE);
        let mut said = Request::new(Body::empty());
        said.headers_mut().insert(CONTENT_LENGTH, (1_u64 << 30).into());
        assert_eq!(status(said).await, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn what_is_no_json_is_told_apart_from_what_does_not_fit() {
        assert!(document::<Wanted>(br#"{"name": "x"}"#).is_ok());
        for bad in [&b""[..], b"{", b"\xff", b"{\"name\": \"x\"} y"] {
            assert_eq!(document::<Wanted>(bad).unwrap_err().status(), StatusCode::BAD_REQUEST, "{bad:?}");
        }
        for unfit in [&b"{}"[..], b"[]", b"{\"name\": 1}", b"{\"name\": \"x\", \"mood\": 1}"] {
            assert_eq!(document::<Wanted>(unfit).unwrap_err().status(), StatusCode::UNPROCESSABLE_ENTITY, "{unfit:?}");
        }
    }

    #[tokio::test]
    async fn what_a_body_holds_is_let_go_at_its_end_or_when_nobody_wants_it() {
        let held = Arc::new(());
        let body = Holding::body(Body::from("x"), held.clone());
        assert_eq!(Arc::strong_count(&held), 2);
        axum::body::to_bytes(body, 9).await.unwrap();
        assert_eq!(Arc::strong_count(&held), 1);
        drop(Holding::body(Body::from("x"), held.clone()));
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
