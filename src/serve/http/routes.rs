//! The table of all routes: the router is built from it, the guard reads from it which routes need no token, and the
//! OpenAPI document lists it. A path that is not in the table needs the token.

use super::openai::{chat, completions, embeddings};
use super::route::{Access, Load, Route};
use super::{Server, command, events, health, mcp, models, openapi, runs, sessions};
use axum::http::Method;
use axum::routing::{MethodRouter, delete, get, post};
use std::sync::Arc;

const fn route(
    method: &'static str,
    path: &'static str,
    access: Access,
    load: Load,
    summary: &'static str,
    handler: fn() -> MethodRouter<Arc<Server>>,
) -> Route {
    Route { method, path, access, load, summary, handler }
}

use Access::{Guarded, Open};
use Load::{Answer, Light, Run, Store};

/// The route that answers what a run asks.
const APPROVE: &str = "/runs/{id}/approve";

/// Every route.
pub const ROUTES: &[Route] = &[
    route("GET", "/health", Open, Light, "Whether the server is up", || get(health::health)),
    route("GET", "/ready", Open, Light, "Whether it can answer: the model is loaded", || get(health::ready)),
    route("GET", "/", Open, Light, "A page to ask with", || get(openapi::start)),
    route("GET", "/docs", Open, Light, "This interface, as a page", || get(openapi::docs)),
    route("GET", "/openapi.json", Open, Light, "This interface, as a document", || {
        get(|| async { openapi::document(ROUTES) })
    }),
    route("GET", "/prometheus", Open, Light, "Counters of requests, for Prometheus", || get(health::prometheus)),
    route("GET", "/metrics", Guarded, Store, "Counters of requests and the cost of runs", || get(health::metrics)),
    route("POST", "/v1/command", Guarded, Answer, "A command for a request", || post(command::command)),
    route("POST", "/v1/check", Guarded, Answer, "What is wrong with a command, and its risk", || post(command::check)),
    route("POST", "/v1/explain", Guarded, Answer, "What a command does, from the manuals", || post(command::explain)),
    route("POST", "/run", Guarded, Run, "A run of the agent, as it happens", || post(runs::run)),
    route("POST", "/run/sync", Guarded, Run, "A run of the agent, once it is over", || post(runs::run_sync)),
    route("POST", APPROVE, Guarded, Store, "Answers what a run asks", || post(runs::approve)),
    route("GET", "/events/{session}", Guarded, Store, "The events of a session, followed", || get(events::follow)),
    route("GET", "/events/{session}/list", Guarded, Store, "The events of a session", || get(events::list)),
    route("GET", "/events/{session}/trace", Guarded, Store, "The steps of a session", || get(events::trace)),
    route("GET", "/sessions", Guarded, Store, "The sessions, the latest first", || get(sessions::list)),
    route("GET", "/sessions/{id}/history", Guarded, Store, "What was said in a session", || get(sessions::history)),
    route("DELETE", "/sessions/{id}", Guarded, Store, "Forgets a session", || delete(sessions::delete)),
    route("GET", "/tools", Guarded, Store, "The tools that runs have", || get(sessions::tools)),
    route("GET", "/background/tasks", Guarded, Store, "Tasks that begin by themselves", || {
        get(sessions::background_tasks)
    }),
    route("GET", "/background/runs", Guarded, Store, "Their runs", || get(sessions::background_runs)),
    route("GET", "/v1/models", Guarded, Light, "The model that answers, as OpenAI lists models", || get(models::list)),
    route("GET", "/v1/models/{id}", Guarded, Light, "The same by its name", || get(models::one)),
    route("POST", "/v1/chat/completions", Guarded, Answer, "The next message of a conversation", || {
        post(chat::completions)
    }),
    route("POST", "/v1/completions", Guarded, Answer, "A text that goes on", || post(completions::completions)),
    route("POST", "/v1/embeddings", Guarded, Answer, "Texts as vectors", || post(embeddings::embeddings)),
    // its tool calls wait in the queues
    route("POST", "/mcp", Guarded, Light, "The Model Context Protocol: a message", || post(mcp::post)),
    route("DELETE", "/mcp", Guarded, Light, "Ends a session of that protocol", || delete(mcp::delete)),
];

/// Returns the first route with this path, of any method.
pub fn of_path(path: &str) -> Option<&'static Route> {
    ROUTES.iter().find(|route| path_matches(route.path, path))
}

/// Returns the method and path that an answer is counted by. All requests without a route share one key.
pub fn metrics_key(method: &Method, path: &str) -> (&'static str, &'static str) {
    let Some(route) = of_path(path) else { return ("*", "none") };
    let is_exact = |one: &&Route| one.path == route.path && one.method == method.as_str();
    ROUTES.iter().find(is_exact).map_or(("*", route.path), |route| (route.method, route.path))
}

/// Returns the access rule of a path. An unknown path needs the token, so that a client without it cannot find out
/// which routes exist.
pub fn access(method: &str, path: &str) -> Access {
    let method = if method == "HEAD" { "GET" } else { method };
    let is_called = |route: &&Route| route.method == method && path_matches(route.path, path);
    ROUTES.iter().find(is_called).map_or(Guarded, |route| route.access)
}

/// True for an answer to what a run in progress asks.
pub fn is_answer_to_run(method: &str, path: &str) -> bool {
    method == "POST" && path_matches(APPROVE, path)
}

/// True if a path matches a pattern.
fn path_matches(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut found) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(name), Some(part)) if name.starts_with('{') && !part.is_empty() => {}
            (Some(name), Some(part)) if name == part => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_routes_are_open() {
        let open: Vec<&str> = ROUTES.iter().filter(|r| r.access == Open).map(|r| r.path).collect();
        let known = ["/health", "/ready", "/docs", "/openapi.json", "/prometheus", "/"];
        assert!(open.iter().all(|path| known.contains(path)), "{open:?}");
        assert!(ROUTES.iter().filter(|r| r.access == Open).all(|r| r.method == "GET" && r.load == Light));
    }

    #[test]
    fn an_unknown_path_needs_the_token() {
        assert_eq!(access("GET", "/health"), Open);
        assert_eq!(access("HEAD", "/health"), Open);
        for (method, path) in [
            ("POST", "/health"),
            ("GET", "/health/"),
            ("GET", "//health"),
            ("GET", "/nothing"),
            ("GET", "/v1/models/x"),
            ("GET", "/health/../v1/models"),
        ] {
            assert_eq!(access(method, path), Guarded, "{method} {path}");
        }
    }

    #[test]
    fn text_of_a_client_creates_no_counter() {
        for path in ["", "/evil\"} 1", "/x"] {
            assert_eq!(metrics_key(&Method::GET, path), ("*", "none"), "{path}");
        }
        assert_eq!(metrics_key(&Method::GET, "/health"), ("GET", "/health"));
        assert_eq!(metrics_key(&Method::DELETE, "/sessions/any"), ("DELETE", "/sessions/{id}"));
        assert_eq!(metrics_key(&Method::from_bytes(b"EVIL").unwrap(), "/health"), ("*", "/health"));
    }

    #[test]
    fn a_parameter_is_one_part_of_a_path() {
        assert!(path_matches("/v1/models/{id}", "/v1/models/a"));
        for other in ["/v1/models/", "/v1/models/a/b", "/v1/models"] {
            assert!(!path_matches("/v1/models/{id}", other), "{other}");
        }
    }
}
