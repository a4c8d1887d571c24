//! A route: its path, who may call it, what a call costs, and its handler.

use super::Server;
use axum::routing::MethodRouter;
use std::sync::Arc;

/// The clients that may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody who reaches the server: it tells nothing of the person and computes nothing.
    Open,
    /// Those with the token.
    Guarded,
}

/// The cost of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Next to nothing.
    Light,
    /// One answer of the model: it waits for a place.
    Answer,
    /// A run of an agent, which may wait for a person: it waits for a place of another kind.
    Run,
}

/// One route.
#[derive(Clone, Copy)]
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path, with parameters as `{name}`.
    pub path: &'static str,
    /// The clients that may call it.
    pub access: Access,
    /// The cost of a call.
    pub load: Load,
    /// Its purpose, in a line.
    pub summary: &'static str,
    /// Its handler.
    pub handler: fn() -> MethodRouter<Arc<Server>>,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}
