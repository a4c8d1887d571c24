//! The errors of routes: `{"error": CODE, "message": REASON, "detail": WHAT TO DO | null}`; on routes of OpenAI's
//! protocol, in its own form.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::fmt::Display;

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    error: &'static str,
    message: String,
    detail: Option<String>,
    /// For OpenAI's form only. Boxed, to keep the error type small.
    cause: Option<Box<Cause>>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// The invalid field of the body, and the error code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Cause {
    param: Option<String>,
    code: Option<&'static str>,
}

impl Problem {
    fn new(status: StatusCode, error: &'static str, message: impl Display) -> Self {
        Self { status, error, message: message.to_string(), detail: None, cause: None, headers: Vec::new() }
    }

    /// 400: the request cannot be parsed.
    pub fn bad_request(message: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// 401: the token is missing or wrong.
    pub fn unauthorized() -> Self {
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "a token is needed");
        problem.detail = Some("send `Authorization: Bearer TOKEN`; `caro serve token` prints it".into());
        problem.with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"caro\""))
    }

    /// 403: such requests are not allowed.
    pub fn forbidden(message: impl Display) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 404: it does not exist.
    pub fn not_found(message: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 405: the route has another method.
    pub fn method_not_allowed(message: impl Display) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }

    /// 408: the body did not arrive in time.
    pub fn body_timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", "the body of the request did not come in time")
    }

    /// 409: it conflicts with the current state.
    pub fn conflict(message: impl Display) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// 413: the body has more than `most` bytes.
    pub fn too_large(most: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("a body has at most {most} bytes"))
    }

    /// 422: it can be parsed, but is not valid.
    pub fn unprocessable(message: impl Display) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unprocessable", message)
    }

    /// 429: too many requests at once, or in a short time. The client should retry after `seconds`.
    pub fn busy(message: impl Display, seconds: u64) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", message);
        problem.detail(format!("try again in {seconds} s")).with(header::RETRY_AFTER, seconds.into())
    }

    /// 500: an internal error.
    pub fn internal(message: impl Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// 503: the model is still being loaded.
    pub fn starting() -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "starting", "the model is being loaded");
        problem.detail("GET /ready tells when it is").with(header::RETRY_AFTER, 2.into())
    }

    /// 503: the server is ending.
    pub fn draining() -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", "the server is ending");
        problem.detail("what is under way is still answered").with(header::RETRY_AFTER, 10.into())
    }

    /// 503: the request was stopped before it was done.
    pub fn stopped() -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopped", "it was stopped before it was done");
        problem.detail("a run that was stopped is gone on with by `caro resume`")
    }

    /// 504: the answer took more than `seconds`.
    pub fn timeout(seconds: f64) -> Self {
        let problem =
            Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout", format!("there was no answer within {seconds} s"));
        problem.detail("`serve.timeout` is how long an answer may take")
    }

    /// Sets what to do next; an empty text sets nothing.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into()).filter(|text| !text.is_empty());
        self
    }

    /// Sets the invalid field of the body.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>) -> Self {
        self.cause.get_or_insert_default().param = Some(name.into());
        self
    }

    /// Sets the error code of OpenAI's form.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.cause.get_or_insert_default().code = Some(code);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the message, and what to do next.
    pub fn message_and_detail(&self) -> (&str, Option<&str>) {
        (&self.message, self.detail.as_deref())
    }

    /// The body of the response, and of an `error` event of a stream.
    pub fn document(&self) -> serde_json::Value {
        json!({"error": self.error, "message": self.message, "detail": self.detail})
    }

    /// The body in OpenAI's form, whose clients read the status and show the message.
    pub fn openai(&self) -> serde_json::Value {
        let kind = match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        let message =
            self.detail.as_ref().map_or_else(|| self.message.clone(), |todo| format!("{}: {todo}", self.message));
        let Cause { param, code } = self.cause.as_deref().cloned().unwrap_or_default();
        json!({"error": {"message": message, "type": kind, "param": param, "code": code.unwrap_or(self.error)}})
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.document())).into_response();
        response.headers_mut().extend(self.headers.clone());
        // on a route of OpenAI's protocol, the guard takes it from here and replaces the body
        response.extensions_mut().insert(self);
        response
    }
}
