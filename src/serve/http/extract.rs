//! Extracts the parameters of a request's path and query. What cannot be read is a [`Problem`], as everywhere.

use super::Problem;
use axum::extract::{FromRequestParts, Path as AxumPath, Query as AxumQuery};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// The advice for a path or a query that cannot be read.
const DESCRIBED: &str = "GET /openapi.json describes it";

/// The parameters of a path.
#[derive(Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match AxumPath::from_request_parts(parts, state).await {
            Ok(AxumPath(parameters)) => Ok(Self(parameters)),
            Err(why) => {
                Err(Problem::bad_request(format!("the path cannot be read: {}", why.body_text())).detail(DESCRIBED))
            }
        }
    }
}

/// The parameters of a query.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match AxumQuery::from_request_parts(parts, state).await {
            Ok(AxumQuery(parameters)) => Ok(Self(parameters)),
            Err(why) => {
                Err(Problem::bad_request(format!("the query cannot be read: {}", why.body_text())).detail(DESCRIBED))
            }
        }
    }
}
