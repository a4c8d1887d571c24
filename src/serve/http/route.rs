//! A route: its path, its access rule, the cost of a call, and its handler.

use super::Server;
use axum::routing::MethodRouter;
use std::sync::Arc;

/// The clients that may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// All clients: such a route reveals nothing about the user and computes nothing.
    Open,
    /// Clients with the token.
    Guarded,
}

/// The cost of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Almost nothing; not queued.
    Light,
    /// A look into the store, or a change of it, which may wait for another process; not queued, but not on a thread
    /// of the runtime.
    Store,
    /// One answer of the model; waits in the queue of answers.
    Answer,
    /// A run of an agent, which may wait for a user; waits in the queue of runs.
    Run,
}

/// One route.
#[derive(Clone, Copy)]
pub struct Route {
    /// The HTTP method.
    pub method: &'static str,
    /// The path, with parameters as `{name}`.
    pub path: &'static str,
    /// The clients that may call it.
    pub access: Access,
    /// The cost of a call.
    pub load: Load,
    /// Its purpose, in one line.
    pub summary: &'static str,
    /// Creates its handler.
    pub handler: fn() -> MethodRouter<Arc<Server>>,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}
