//! The rules that requests are held against before anything else: the host that they were meant for (a page whose name was made to
//! point here has another one), the page that sends them, and how often a client asks.

use super::Problem;
use super::settings::{Rate, Settings};
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, header};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Clients whose rate is remembered.
const CLIENTS: usize = 4096;
/// The rules that requests are held against.
#[derive(Debug)]
pub struct Gate {
    /// Where it is bound; nothing for a Unix socket, which no web page reaches.
    bound: Option<SocketAddr>,
    host: String,
    origins: Vec<String>,
    pub(super) rate: Option<Limiter>,
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
    pub fn host(&self, request: &Request) -> Result<(), Problem> {
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
    pub fn origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, Problem> {
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
pub(super) struct Limiter {
    pub rate: Rate,
    clients: Mutex<HashMap<String, (Instant, u32)>>,
}

/// The requests that are left to a client, and the time to its next window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    pub requests: Option<u32>,
    pub seconds: u64,
}

impl Limiter {
    fn new(rate: Rate) -> Self {
        Self { rate, clients: Mutex::default() }
    }

    /// Counts a request.
    pub fn count(&self, client: &str, now: Instant) -> Left {
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
}
