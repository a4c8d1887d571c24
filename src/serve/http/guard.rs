//! The guard before every route. It checks, in this order: that the request is for this server (`Host`), that no
//! foreign web page sends it (`Origin`), that the server still accepts requests, the token, and the client's rate.
//! Only then is anything computed or the body read.

use super::body::GuardedBody;
use super::lifecycle::Phase;
use super::peer::Peer;
use super::route::Access;
use super::settings::Rate;
use super::{Problem, Server, openai, routes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use caro_base::id;
use std::sync::Arc;
use std::time::Instant;

/// The header with the id of a request.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Most characters of a request id from a client.
const MAX_ID: usize = 64;
/// The status in the log for a client that left before its answer. Source: nginx, which has made it a convention.
const CLIENT_LEFT: u16 = 499;
/// The methods allowed to pages of other origins.
const METHODS: &str = "GET, POST, DELETE, OPTIONS";
/// The response headers that they may read.
const EXPOSED: &str = "x-request-id, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, \
                       mcp-session-id";

/// Checks a request, has its route answer it, and counts and logs it.
pub async fn guard(State(server): State<Arc<Server>>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let active = server.metrics.enter();
    let id = request_id(request.headers());
    if let Ok(value) = HeaderValue::from_str(&id) {
        request.headers_mut().insert(REQUEST_ID, value);
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut entry = LogEntry::new(&server, &method, &path, &id, started);
    let mut extra = HeaderMap::new();
    let admitted = admit(&server, &request, &mut extra);
    let mut response = match admitted {
        Ok(Admitted::Preflight) => StatusCode::NO_CONTENT.into_response(),
        Ok(Admitted::Pass) => {
            server.within_timeout(next.run(request)).await.unwrap_or_else(IntoResponse::into_response)
        }
        Err(problem) => problem.into_response(),
    };
    if openai::is_openai_path(&path) {
        response = openai::to_openai_form(response);
    }
    let headers = response.headers_mut();
    headers.extend(extra);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    if !server.phase().admits() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let status = response.status();
    server.metrics.count_answer(routes::metrics_key(&method, &path), status);
    entry.status = status.as_u16();
    drop(entry);
    let (head, body) = response.into_parts();
    Response::from_parts(head, GuardedBody::wrap(body, active))
}

/// A line of the request log, written when it is dropped: also for a client that leaves before its answer.
struct LogEntry<'a> {
    server: &'a Server,
    method: &'a str,
    route: &'static str,
    id: &'a str,
    started: Instant,
    status: u16,
}

impl<'a> LogEntry<'a> {
    fn new(server: &'a Server, method: &'a Method, path: &str, id: &'a str, started: Instant) -> Self {
        // the pattern of the route instead of the path and query, which may contain private data
        let route = routes::of_path(path).map_or("(no route)", |route| route.path);
        let method = if is_known(method) { method.as_str() } else { "(other)" };
        Self { server, method, route, id, started, status: CLIENT_LEFT }
    }
}

impl Drop for LogEntry<'_> {
    fn drop(&mut self) {
        let Self { server, method, route, id, started, status } = self;
        server.log(&format!("{method} {route} {status} {} ms {id}", started.elapsed().as_millis()));
    }
}

fn is_known(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::POST, Method::DELETE, Method::OPTIONS, Method::PUT, Method::PATCH]
        .contains(method)
}

/// The result for an admitted request.
enum Admitted {
    /// Its route answers it.
    Pass,
    /// It is a browser's preflight request for access from another origin.
    Preflight,
}

fn admit(server: &Server, request: &Request, extra: &mut HeaderMap) -> Result<Admitted, Problem> {
    let gate = &server.gate;
    gate.host(request)?;
    let allowed = gate.origin(request.headers())?;
    if let Some(origin) = &allowed {
        extra.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        extra.insert(header::VARY, HeaderValue::from_static("origin, access-control-request-headers"));
        extra.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
    let is_preflight = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if request.method() == Method::OPTIONS && is_preflight && allowed.is_some() {
        extra.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        // a client may send headers of its own, as OpenAI's does
        if let Some(headers) = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            extra.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, headers.clone());
        }
        extra.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        return Ok(Admitted::Preflight);
    }
    let (method, path) = (request.method().as_str(), request.uri().path());
    if routes::access(method, path) == Access::Open {
        return Ok(Admitted::Pass);
    }
    // a run in progress may need an answer to end
    let phase = server.phase();
    let is_awaited = phase == Phase::Draining && routes::is_answer_to_run(method, path);
    if !phase.admits() && !is_awaited {
        return Err(Problem::draining());
    }
    let is_authorized = bearer(request.headers()).is_some_and(|given| server.parts.token.is_equal(given));
    if let Some(limiters) = &gate.rate {
        // without the token nothing is taken from the rate of the clients that have it
        let limiter = if is_authorized { &limiters.authorized } else { &limiters.refused };
        // counted by the peer, since a client can choose any name in `x-caro-client`
        let peer = request.extensions().get::<Peer>().map(Peer::client).unwrap_or_default();
        let left = limiter.count(&peer, Instant::now());
        extra.insert("x-ratelimit-limit", limiter.rate.requests.into());
        extra.insert("x-ratelimit-remaining", left.requests.unwrap_or(0).into());
        extra.insert("x-ratelimit-reset", left.seconds.into());
        if left.requests.is_none() {
            let Rate { requests, seconds } = limiter.rate;
            return Err(Problem::busy(format!("{requests} requests in {seconds} s are the most"), left.seconds));
        }
    }
    if is_authorized { Ok(Admitted::Pass) } else { Err(Problem::unauthorized()) }
}

/// Returns the token of a request.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

/// Returns the client's id of the request, if it is short and plain, or a new one.
fn request_id(headers: &HeaderMap) -> String {
    let is_plain = |id: &&str| {
        (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    let own = headers.get(&REQUEST_ID).and_then(|id| id.to_str().ok()).filter(is_plain);
    own.map_or_else(|| id::fresh("req"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::{Parts, Settings, Token};
    use super::*;
    use std::sync::Mutex;
    use std::time::Duration;
    use tower::ServiceExt;

    #[tokio::test]
    async fn a_request_is_logged_once_though_its_client_leaves() {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = lines.clone();
        let parts = Parts {
            agent: "a".into(),
            settings: Settings::default(),
            token: Token::random().unwrap(),
            offer: crate::mcp::tools::Offer { agent: false },
            log: Some(Arc::new(move |line: &str| log.lock().unwrap().push(line.to_owned()))),
        };
        let server = Server::new(parts, None);
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            "late"
        };
        let app = axum::Router::new()
            .route("/health", axum::routing::get(slow))
            .layer(axum::middleware::from_fn_with_state(server, guard));
        let ask = || {
            let request = Request::builder().uri("/health").header("x-request-id", "r1");
            app.clone().oneshot(request.body(axum::body::Body::empty()).unwrap())
        };
        let leaves = tokio::time::timeout(Duration::from_millis(20), ask()).await;
        assert!(leaves.is_err());
        assert_eq!(ask().await.unwrap().status(), StatusCode::OK);
        let lines = lines.lock().unwrap();
        let status = |line: &String| line.split(' ').nth(2).map(str::to_owned);
        assert_eq!(lines.iter().filter_map(status).collect::<Vec<_>>(), ["499", "200"], "{lines:?}");
        assert!(lines.iter().all(|line| line.starts_with("GET /health ") && line.ends_with(" r1")), "{lines:?}");
    }

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())])
    }

    #[test]
    fn a_token_follows_the_bearer_scheme() {
        let of = |value: &str| bearer(&headers("authorization", value)).map(<[u8]>::to_vec);
        assert_eq!(of("Bearer abc"), Some(b"abc".to_vec()));
        assert_eq!(of("bearer abc"), Some(b"abc".to_vec()));
        for none in ["abc", "Basic abc", "Bearer", "", "Bearerabc"] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn a_plain_id_of_the_client_is_used() {
        let of = |id: &str| request_id(&headers("x-request-id", id));
        assert_eq!(of("abc-1.2_3"), "abc-1.2_3");
        for odd in ["", "a b", "a\"b", &"x".repeat(65)] {
            assert!(of(odd).starts_with("req_"), "{odd}");
        }
    }
}
