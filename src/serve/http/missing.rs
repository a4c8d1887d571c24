//! Answers requests that match no route.

use super::Problem;

/// The answer for an unknown path.
pub async fn no_route() -> Problem {
    Problem::not_found("there is no such route").detail("GET /openapi.json lists what there is")
}

/// The answer for a known path with another method.
pub async fn wrong_method() -> Problem {
    Problem::method_not_allowed("this route has another method").detail("GET /openapi.json lists what there is")
}
