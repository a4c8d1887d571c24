//! The routes of OpenAI's protocol, for the many programs that use it: chat and completions with the loaded model,
//! and embeddings with the embedding model of the catalogue. (`GET /v1/models` is in [`models`](super::models).)
//!
//! - [`fields`]: reads the body field by field, with errors that name the field. [`options`]: the fields shared by
//!   chat and completions.
//! - [`chat`], [`completions`], [`embeddings`]: the routes. [`messages`]: converts a conversation to a prompt.
//!   [`tools`]: the functions that the model may call; [`calls`] finds the calls in its output, [`bare`] one without
//!   marks.
//! - [`answer`]: asks the model, choice by choice, and sends the answer complete or as a stream.
//!
//! No tool is run, no file read and no model fetched: only the loaded models answer.

pub mod answer;
pub mod bare;
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

/// True for a path of OpenAI's protocol.
pub fn is_openai_path(path: &str) -> bool {
    PATHS.contains(&path) || path.strip_prefix("/v1/models/").is_some_and(|id| !id.is_empty())
}

/// Converts an error response to OpenAI's form; returns any other response as it is.
pub fn to_openai_form(mut response: Response) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let (head, _) = response.into_parts();
    let mut converted = (head.status, Json(problem.openai())).into_response();
    // the content type stays the same: JSON
    converted.headers_mut().extend(head.headers);
    if head.status == StatusCode::GATEWAY_TIMEOUT {
        // clients retry by default, which would take the same time again
        converted.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    converted
}

/// Checks that a request names the loaded model, by its id or another of its names, or no model.
///
/// # Errors
/// If it names another model.
pub fn check_model(engine: &Engine, name: Option<&str>) -> Result<(), Problem> {
    let own = engine.model.id();
    match name {
        Some(name) if name != own && !engine.names.iter().any(|alias| alias == name) => {
            Err(model_not_found(name, &format!("this server has {own}")))
        }
        _ => Ok(()),
    }
}

/// The error for an unknown model.
fn model_not_found(name: &str, detail: &str) -> Problem {
    let name: String = name.chars().take(100).collect();
    Problem::not_found(format!("there is no model `{name}` here")).detail(detail).param("model").code("model_not_found")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper names each refused field where it is refused: at both routes, in a chat, or at `/v1/completions`.
    #[test]
    fn the_paper_says_where_each_field_is_refused() {
        let paper = include_str!("../../README.md");
        let row = paper.lines().find(|line| line.contains("| refused by name where they ask for something |")).unwrap();
        let (both, rest) = row.split_once("; in a chat ").unwrap();
        let (chat, completions) = rest.split_once("; at `/v1/completions` ").unwrap();
        for (part, fields) in [(both, options::REFUSED), (chat, chat::REFUSED), (completions, completions::REFUSED)] {
            for (field, _) in fields {
                // the penalties are named together, and the values of `logprobs` in a row of their own
                let is_named =
                    part.contains(&format!("`{field}`")) || field.ends_with("_penalty") || *field == "logprobs";
                assert!(is_named, "src/serve/README.md: {field} is not in {part:?}");
            }
        }
        for (field, _) in completions::REFUSED {
            assert!(!both.contains(&format!("`{field}`")), "{field} is refused at one route alone");
        }
    }

    #[test]
    fn each_path_has_a_route() {
        for path in PATHS {
            assert_eq!(super::super::routes::of_path(path).map(|route| route.path), Some(path));
            assert!(is_openai_path(path));
        }
        assert!(is_openai_path("/v1/models/x"));
        for other in ["/v1/command", "/v1/models/", "/v1/chat", "/run"] {
            assert!(!is_openai_path(other), "{other}");
        }
    }

    #[tokio::test]
    async fn a_converted_problem_keeps_its_status_and_headers() {
        let response = to_openai_form(Problem::busy("too many", 3).into_response());
        assert_eq!(
            (response.status(), &response.headers()["retry-after"]),
            (StatusCode::TOO_MANY_REQUESTS, &"3".parse().unwrap())
        );
        let bytes = axum::body::to_bytes(response.into_body(), 999).await.unwrap();
        let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(document["error"]["type"], "rate_limit_error", "{document}");
        assert_eq!(document["error"]["message"], "too many: try again in 3 s");
        let plain = to_openai_form("fine".into_response());
        assert_eq!(axum::body::to_bytes(plain.into_body(), 9).await.unwrap(), "fine");
    }
}
