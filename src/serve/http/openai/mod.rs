//! The doors that OpenAI's protocol has, for the many programs that speak it: chat and completions on the model that answers
//! here, vectors of texts on the embedding model of the catalogue. (`GET /v1/models` is in [`models`](super::models).)
//!
//! - [`fields`]: the body, field by field; a wrong one is named. [`options`]: the fields that both doors to the model share.
//! - [`chat`], [`completions`], [`embeddings`]: the routes. [`messages`]: a conversation as a prompt. [`tools`]: functions that
//!   the model may call; [`calls`] finds the calls in what it writes.
//! - [`answer`]: asks the model, choice by choice, and tells it whole or as it comes.
//!
//! Nothing here runs a tool, reads a file or fetches a model: a request is answered by what is loaded.

pub mod answer;
pub mod calls;
pub mod chat;
pub mod completions;
pub mod embeddings;
pub mod fields;
pub mod messages;
pub mod options;
pub mod tools;

use super::{Engine, Problem};
use axum::Json;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// The routes whose errors have OpenAI's form.
const PATHS: [&str; 4] = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/models"];

/// True for a path of this protocol.
pub fn speaks(path: &str) -> bool {
    PATHS.contains(&path) || path.strip_prefix("/v1/models/").is_some_and(|id| !id.is_empty())
}

/// A response whose problem, if it is one, is said in OpenAI's form.
pub fn translated(mut response: Response) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let (head, _) = response.into_parts();
    let mut translated = (head.status, Json(problem.openai())).into_response();
    // the kind of its body is the same: JSON
    translated.headers_mut().extend(head.headers);
    if head.status == StatusCode::GATEWAY_TIMEOUT {
        // its clients ask again by themselves, which would take as long again
        translated.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    translated
}

/// Checks that a request asks for the model that is here, by its id or by another name of it.
///
/// # Errors
/// If it has another one.
pub fn check_model(engine: &Engine, name: Option<&str>) -> Result<(), Problem> {
    let own = engine.model.id();
    match name {
        Some(name) if name != own && !engine.names.iter().any(|alias| alias == name) => {
            Err(no_model(name, &format!("this server has {own}")))
        }
        _ => Ok(()),
    }
}

/// There is no model of that name.
fn no_model(name: &str, what_there_is: &str) -> Problem {
    let shown: String = name.chars().take(100).collect();
    Problem::not_found(format!("there is no model `{shown}` here"))
        .detail(what_there_is)
        .param("model")
        .code("model_not_found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_routes_are_in_the_table() {
        for path in PATHS {
            assert_eq!(super::super::routes::of_path(path).map(|route| route.path), Some(path));
            assert!(speaks(path));
        }
        assert!(speaks("/v1/models/x"));
        for other in ["/v1/command", "/v1/models/", "/v1/chat", "/run"] {
            assert!(!speaks(other), "{other}");
        }
    }

    #[tokio::test]
    async fn a_problem_is_said_again_with_its_status_and_headers() {
        let response = translated(Problem::busy("too many", 3).into_response());
        assert_eq!(
            (response.status(), &response.headers()["retry-after"]),
            (StatusCode::TOO_MANY_REQUESTS, &"3".parse().unwrap())
        );
        let bytes = axum::body::to_bytes(response.into_body(), 999).await.unwrap();
        let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(document["error"]["type"], "rate_limit_error", "{document}");
        assert_eq!(document["error"]["message"], "too many: try again in 3 s");
        let plain = translated("fine".into_response());
        assert_eq!(axum::body::to_bytes(plain.into_body(), 9).await.unwrap(), "fine");
    }
}
