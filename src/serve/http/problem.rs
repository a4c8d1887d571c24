//! Errors as routes tell them: `{"error": CODE, "message": WORDS, "detail": WHAT TO DO | null}`; those of OpenAI's protocol in
//! its own form.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::fmt::Display;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    status: StatusCode,
    error: &'static str,
    message: String,
    detail: Option<String>,
    /// For the protocol that tells these. An error is handed through many functions: it is to be small.
    cause: Option<Box<Cause>>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// The field of the body that is wrong, and what is wrong with it in one word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Cause {
    param: Option<String>,
    code: Option<&'static str>,
}

impl Problem {
    fn new(status: StatusCode, error: &'static str, message: impl Display) -> Self {
        Self { status, error, message: message.to_string(), detail: None, cause: None, headers: Vec::new() }
    }

    /// 400: it cannot be read.
    pub fn bad_request(message: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// 401: without the token.
    pub fn unauthorized() -> Self {
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "a token is needed");
        problem.detail = Some("send `Authorization: Bearer TOKEN`; `caro serve token` prints it".into());
        problem.with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"caro\""))
    }

    /// 403: from where nobody may ask.
    pub fn forbidden(message: impl Display) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// 404: not there.
    pub fn not_found(message: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// 405: another method.
    pub fn method(message: impl Display) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }

    /// 408: the body did not come in time.
    pub fn slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", "the body of the request did not come in time")
    }

    /// 409: it goes against how things stand.
    pub fn conflict(message: impl Display) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    /// 413: too large.
    pub fn too_large(most: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("a body has at most {most} bytes"))
    }

    /// 422: it can be read, and is not what is wanted.
    pub fn unfit(message: impl Display) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unprocessable", message)
    }

    /// 429: too many at once, or in a short time. `seconds` are to be waited.
    pub fn busy(message: impl Display, seconds: u64) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", message);
        problem.detail(format!("try again in {seconds} s")).with(header::RETRY_AFTER, seconds.into())
    }

    /// 500: something inside went wrong.
    pub fn internal(message: impl Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// 503: the model is not there yet.
    pub fn starting() -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "starting", "the model is being loaded");
        problem.detail("GET /ready tells when it is").with(header::RETRY_AFTER, 2.into())
    }

    /// 503: the server ends.
    pub fn draining() -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", "the server is ending");
        problem.detail("what is under way is still answered").with(header::RETRY_AFTER, 10.into())
    }

    /// 503: it was stopped on the way.
    pub fn stopped() -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopped", "it was stopped before it was done");
        problem.detail("a run that was stopped is gone on with by `caro resume`")
    }

    /// 504: it took too long.
    pub fn timeout(seconds: f64) -> Self {
        let problem =
            Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout", format!("there was no answer within {seconds} s"));
        problem.detail("`serve.timeout` is how long an answer may take")
    }

    /// Adds what to do next; an empty one adds nothing.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into()).filter(|text| !text.is_empty());
        self
    }

    /// Adds the field of the body that is wrong.
    #[must_use]
    pub fn param(mut self, name: impl Into<String>) -> Self {
        self.cause.get_or_insert_default().param = Some(name.into());
        self
    }

    /// Adds the word that another protocol has for it.
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

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The reason, and what to do next.
    pub fn said(&self) -> (&str, Option<&str>) {
        (&self.message, self.detail.as_deref())
    }

    /// The document, as an event of a stream has it too.
    pub fn document(&self) -> serde_json::Value {
        json!({"error": self.error, "message": self.message, "detail": self.detail})
    }

    /// The same in the form of OpenAI's protocol, whose clients go by the status and show the message.
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
        // where the route speaks another protocol, the guard says it again in that one
        response.extensions_mut().insert(self);
        response
    }
}
