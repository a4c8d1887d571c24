//! The answers where there is no route.

use super::Problem;

/// There is no such route.
pub async fn nothing() -> Problem {
    Problem::not_found("there is no such route").detail("GET /openapi.json lists what there is")
}

/// There is one, of another method.
pub async fn wrong_method() -> Problem {
    Problem::method("this route has another method").detail("GET /openapi.json lists what there is")
}
