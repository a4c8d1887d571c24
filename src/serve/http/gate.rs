//! The guard before every route looks, in this order, at whether a request was meant for this server (`Host`: a
//! page whose name was made to point here has another one), whether a page of somebody else sends it (`Origin`), whether the
//! server still takes requests, how often the client asks, and the token. Nothing is computed and no body is read before.

use super::body::Holding;
use super::listen::Peer;
use super::routes::{self, Access};
use super::settings::{Rate, Settings};
use super::{Problem, Server, openai};
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use caro_base::id;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The header that tells one request from another.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The most characters of one that a client chooses.
const LONGEST_ID: usize = 64;
/// Clients whose rate is remembered.
const CLIENTS: usize = 4096;
/// The methods and headers of pages of other origins, where they may ask.
const METHODS: &str = "GET, POST, DELETE, OPTIONS";
const HEADERS: &str = "authorization, content-type, last-event-id, x-request-id, x-caro-client, mcp-session-id, \
                       mcp-protocol-version, mcp-method, mcp-name";
/// The headers of a response that they may see.
const EXPOSED: &str = "x-request-id, retry-after, x-ratelimit-limit, x-ratelimit-remaining, mcp-session-id";

/// The rules that requests are held against.
#[derive(Debug)]
pub struct Gate {
    /// Where it is bound; nothing for a Unix socket, which no web page reaches.
    bound: Option<SocketAddr>,
    host: String,
    origins: Vec<String>,
    rate: Option<Limiter>,
}

impl Gate {
    /// The gate of a server that listens there.
    pub fn new(settings: &Settings, bound: Option<SocketAddr>) -> Self {
        Self {
            bound,
            host: settings.host.to_ascii_lowercase(),
            origins: settings.cors_origins.clone(),
            rate: settings.rate_limit.map(Limiter::new),
        }
    }

    /// True for the name of a host that is ours: what loops back, the address or name that we are bound to, and for a
    /// server that is bound to an address of the network any address: only a name can be made to point elsewhere.
    fn is_ours(&self, host: &str) -> bool {
        let Some(bound) = self.bound else { return true };
        let host = host.to_ascii_lowercase();
        let name = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&host);
        if name == "localhost" || name == self.host {
            return true;
        }
        name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip == bound.ip() || !bound.ip().is_loopback())
    }

    /// Checks for whom the request is meant.
    fn host(&self, request: &Request) -> Result<(), Problem> {
        let wrong =
            || Problem::forbidden("the request was meant for another host").detail("ask 127.0.0.1 or localhost");
        let mut named = request.headers().get_all(header::HOST).iter();
        let (host, second) = (named.next(), named.next());
        if second.is_some() {
            return Err(Problem::bad_request("the request has two hosts"));
        }
        if self.bound.is_none() {
            return Ok(());
        }
        let host = host.and_then(|host| host.to_str().ok()?.parse::<Authority>().ok()).ok_or_else(wrong)?;
        let in_line = request.uri().host();
        let all_ours = std::iter::once(host.host()).chain(in_line).all(|host| self.is_ours(host));
        if all_ours && !host.as_str().contains('@') { Ok(()) } else { Err(wrong()) }
    }

    /// Checks which page sends it; the origin, if it is one that the person allowed.
    fn origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Problem> {
        let foreign = |_: ()| {
            Problem::forbidden("a page of another origin may not ask")
                .detail("`serve.cors_origins` names the origins that may")
        };
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(None) };
        let text = origin.to_str().map_err(|_| foreign(()))?.to_ascii_lowercase();
        if self.origins.contains(&text) {
            return Ok(Some(origin.clone()));
        }
        if self.is_own(&text) { Ok(None) } else { Err(foreign(())) }
    }

    /// True for the origin of our own page.
    fn is_own(&self, origin: &str) -> bool {
        let Some(bound) = self.bound else { return false };
        let authority = origin.strip_prefix("http://").and_then(|rest| rest.parse::<Authority>().ok());
        authority.is_some_and(|found| found.port_u16().unwrap_or(80) == bound.port() && self.is_ours(found.host()))
    }
}

/// Counts the requests of each client in windows of time.
#[derive(Debug)]
struct Limiter {
    rate: Rate,
    clients: Mutex<HashMap<String, (Instant, u32)>>,
}

/// The requests that are left to a client, and the time to its next window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Left {
    requests: Option<u32>,
    seconds: u64,
}

impl Limiter {
    fn new(rate: Rate) -> Self {
        Self { rate, clients: Mutex::default() }
    }

    /// Counts a request.
    fn count(&self, client: &str, now: Instant) -> Left {
        let window = Duration::from_secs(self.rate.seconds.into());
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS && !clients.contains_key(client) {
            clients.retain(|_, (begun, _)| now.duration_since(*begun) < window);
            if clients.len() >= CLIENTS {
                clients.clear();
            }
        }
        let (begun, used) = clients.entry(client.to_owned()).or_insert((now, 0));
        if now.duration_since(*begun) >= window {
            (*begun, *used) = (now, 0);
        }
        let seconds = window.saturating_sub(now.duration_since(*begun)).as_secs() + 1;
        let requests = self.rate.requests.checked_sub(*used + 1);
        *used = used.saturating_add(u32::from(requests.is_some()));
        Left { requests, seconds }
    }
}

/// Looks at a request, has it answered, and tells of it.
pub async fn guard(State(server): State<Arc<Server>>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let active = server.metrics.enter();
    let id = request_id(request.headers());
    if let Ok(value) = HeaderValue::from_str(&id) {
        request.headers_mut().insert(REQUEST_ID, value);
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut extra = HeaderMap::new();
    let admitted = admit(&server, &request, &mut extra);
    let mut response = match admitted {
        Ok(Admitted::Preflight) => StatusCode::NO_CONTENT.into_response(),
        Ok(Admitted::Passes) => server.in_time(next.run(request)).await.unwrap_or_else(IntoResponse::into_response),
        Err(problem) => problem.into_response(),
    };
    if openai::speaks(&path) {
        response = openai::translated(response);
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
    let route = routes::of_path(&path).map_or("", |route| route.path);
    server.metrics.answered(&method, route, status);
    // neither what was asked for nor the query, which may hold anything
    let shown = if route.is_empty() { "(no route)" } else { route };
    let method = if is_known(&method) { method.as_str() } else { "(other)" };
    server.log(&format!("{method} {shown} {} {} ms {id}", status.as_u16(), started.elapsed().as_millis()));
    let (head, body) = response.into_parts();
    Response::from_parts(head, Holding::body(body, active))
}

fn is_known(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::POST, Method::DELETE, Method::OPTIONS, Method::PUT, Method::PATCH]
        .contains(method)
}

/// The way of an admitted request.
enum Admitted {
    /// It is answered by its route.
    Passes,
    /// A browser only asks whether it may ask.
    Preflight,
}

fn admit(server: &Server, request: &Request, extra: &mut HeaderMap) -> Result<Admitted, Problem> {
    let gate = &server.gate;
    gate.host(request)?;
    let allowed = gate.origin(request.headers())?;
    if let Some(origin) = &allowed {
        extra.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        extra.insert(header::VARY, HeaderValue::from_static("origin"));
        extra.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
    let asks = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if request.method() == Method::OPTIONS && asks && allowed.is_some() {
        extra.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        extra.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
        extra.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        return Ok(Admitted::Preflight);
    }
    if routes::access(request.method().as_str(), request.uri().path()) == Access::Open {
        return Ok(Admitted::Passes);
    }
    if !server.phase().admits() {
        return Err(Problem::draining());
    }
    if let Some(limiter) = &gate.rate {
        // by where it comes from: a name is whatever the client likes
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
    let opens = bearer(request.headers()).is_some_and(|given| server.parts.token.opens(given));
    if opens { Ok(Admitted::Passes) } else { Err(Problem::unauthorized()) }
}

/// The token that a request has.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

/// The request's own id, if it is short and plain, or a new one.
fn request_id(headers: &HeaderMap) -> String {
    let plain = |id: &&str| {
        (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    let own = headers.get(&REQUEST_ID).and_then(|id| id.to_str().ok()).filter(plain);
    own.map_or_else(|| id::fresh("req"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn gate(bound: &str, host: &str) -> Gate {
        let settings =
            Settings { host: host.into(), cors_origins: vec!["https://pal.org".into()], ..Settings::default() };
        Gate::new(&settings, Some(bound.parse().unwrap()))
    }

    fn asked(uri: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn a_name_that_was_made_to_point_here_is_no_host_of_ours() {
        let local = gate("127.0.0.1:8000", "127.0.0.1");
        for ours in ["127.0.0.1:8000", "localhost:8000", "LOCALHOST", "[::1]:8000", "127.0.0.9"] {
            assert!(local.host(&asked("/", &[("host", ours)])).is_ok(), "{ours}");
        }
        for foreign in [
            "evil.org",
            "evil.org:8000",
            "127.0.0.1.evil.org",
            "localhost.evil.org",
            "10.0.0.1",
            "",
            "a b",
            "x@localhost",
        ] {
            assert!(local.host(&asked("/", &[("host", foreign)])).is_err(), "{foreign}");
        }
        assert!(local.host(&asked("/", &[])).is_err());
        assert!(local.host(&asked("/", &[("host", "localhost"), ("host", "evil.org")])).is_err());
        assert!(local.host(&asked("http://evil.org/", &[("host", "localhost")])).is_err());
        let open = gate("0.0.0.0:8000", "0.0.0.0");
        assert!(open.host(&asked("/", &[("host", "192.168.0.7:8000")])).is_ok());
        assert!(open.host(&asked("/", &[("host", "evil.org")])).is_err());
        assert!(gate("10.0.0.1:80", "box.lan").host(&asked("/", &[("host", "box.lan")])).is_ok());
    }

    #[test]
    fn a_page_of_another_origin_may_not_ask_unless_the_person_allowed_it() {
        let gate = gate("127.0.0.1:8000", "127.0.0.1");
        let of = |origin: &str| gate.origin(asked("/", &[("origin", origin)]).headers()).map(|o| o.is_some());
        for own in ["http://127.0.0.1:8000", "http://localhost:8000"] {
            assert_eq!(of(own), Ok(false), "{own}");
        }
        assert_eq!(of("https://pal.org"), Ok(true));
        for foreign in [
            "http://localhost:3000",
            "http://127.0.0.1",
            "https://127.0.0.1:8000",
            "http://evil.org:8000",
            "null",
            "https://pal.org.evil.org",
            "http://pal.org",
            "file://",
        ] {
            assert!(of(foreign).is_err(), "{foreign}");
        }
        assert_eq!(gate.origin(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn a_rate_is_held_for_each_client_and_forgotten_with_its_window() {
        let limiter = Limiter::new(Rate { requests: 2, seconds: 10 });
        let begun = Instant::now();
        let left = |client: &str, seconds: u64| limiter.count(client, begun + Duration::from_secs(seconds)).requests;
        assert_eq!([left("a", 0), left("a", 1), left("a", 9)], [Some(1), Some(0), None]);
        assert_eq!(left("b", 9), Some(1));
        assert_eq!(left("a", 10), Some(1));
        for client in 0..3 * CLIENTS {
            left(&client.to_string(), 11);
        }
        assert!(limiter.clients.lock().unwrap().len() <= CLIENTS);
    }

    #[test]
    fn a_token_stands_behind_its_scheme() {
        let of = |value: &str| bearer(asked("/", &[("authorization", value)]).headers()).map(<[u8]>::to_vec);
        assert_eq!(of("Bearer abc"), Some(b"abc".to_vec()));
        assert_eq!(of("bearer abc"), Some(b"abc".to_vec()));
        for none in ["abc", "Basic abc", "Bearer", "", "Bearerabc"] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn an_id_is_the_clients_own_where_it_is_plain() {
        let of = |id: &str| request_id(asked("/", &[("x-request-id", id)]).headers());
        assert_eq!(of("abc-1.2_3"), "abc-1.2_3");
        for odd in ["", "a b", "a\"b", &"x".repeat(65)] {
            assert!(of(odd).starts_with("req_"), "{odd}");
        }
    }
}
