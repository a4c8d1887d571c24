//! The rules for requests: the host that they name (which differs if DNS rebinding made another name resolve to this
//! machine), the origin of the page that sends them, and the rate limit.

use super::Problem;
use super::settings::{Rate, Settings};
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, header};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most clients whose requests are counted at once.
const MAX_CLIENTS: usize = 4096;

/// The rules for requests.
#[derive(Debug)]
pub struct Gate {
    /// The address of the server; `None` for a Unix socket, which no web page can reach.
    bound: Option<SocketAddr>,
    host: String,
    origins: Vec<String>,
    pub(super) rate: Option<Limiters>,
}

impl Gate {
    /// Creates the rules of a server that listens at this address.
    pub fn new(settings: &Settings, bound: Option<SocketAddr>) -> Self {
        Self {
            bound,
            host: settings.host.to_ascii_lowercase(),
            origins: settings.cors_origins.clone(),
            rate: settings.rate_limit.map(Limiters::new),
        }
    }

    /// True if `host` names this server: a loopback address, or the address or name that it is bound to. If it is
    /// bound to a network address, any address is accepted, since only names can be rebound.
    fn is_ours(&self, host: &str) -> bool {
        let Some(bound) = self.bound else { return true };
        let host = host.to_ascii_lowercase();
        let name = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&host);
        if name == "localhost" || name == self.host {
            return true;
        }
        name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip == bound.ip() || !bound.ip().is_loopback())
    }

    /// Says by which names the server can be asked.
    fn hosts(&self) -> String {
        match self.bound.map(|bound| bound.ip()) {
            Some(ip) if ip.is_unspecified() => {
                "ask an address of this machine, as in 192.168.0.7; on the machine itself also localhost".into()
            }
            Some(ip) if !ip.is_loopback() => {
                format!("ask {}", if self.host.is_empty() { ip.to_string() } else { self.host.clone() })
            }
            _ => "ask 127.0.0.1 or localhost".into(),
        }
    }

    /// Checks that a request names this server.
    pub fn host(&self, request: &Request) -> Result<(), Problem> {
        let wrong_host = || Problem::forbidden("the request was meant for another host").detail(self.hosts());
        let mut named = request.headers().get_all(header::HOST).iter();
        let (host, second) = (named.next(), named.next());
        if second.is_some() {
            return Err(Problem::bad_request("the request has two hosts"));
        }
        if self.bound.is_none() {
            return Ok(());
        }
        let host = host.and_then(|host| host.to_str().ok()?.parse::<Authority>().ok()).ok_or_else(wrong_host)?;
        // the request line may name a host too
        let in_line = request.uri().host();
        let all_ours = std::iter::once(host.host()).chain(in_line).all(|host| self.is_ours(host));
        if all_ours && !host.as_str().contains('@') { Ok(()) } else { Err(wrong_host()) }
    }

    /// Checks the origin of the page that sends a request. Returns it if it is one that the user allowed.
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
        if self.is_own(&text, headers) { Ok(None) } else { Err(foreign(())) }
    }

    /// True for the origin of the server's own page: the host that the request names, which [`Gate::host`] has checked.
    fn is_own(&self, origin: &str, headers: &HeaderMap) -> bool {
        let parsed = |text: &str| {
            let authority = text.parse::<Authority>().ok()?;
            Some((authority.host().to_ascii_lowercase(), authority.port_u16().unwrap_or(80)))
        };
        let asked = headers.get(header::HOST).and_then(|host| parsed(host.to_str().ok()?));
        self.bound.is_some() && asked.is_some() && origin.strip_prefix("http://").and_then(parsed) == asked
    }
}

/// The limits of a client's requests.
#[derive(Debug)]
pub(super) struct Limiters {
    /// Counts requests with the token.
    pub authorized: Limiter,
    /// Counts requests without it, so that they take nothing from the others of the same address.
    pub refused: Limiter,
}

impl Limiters {
    fn new(rate: Rate) -> Self {
        Self { authorized: Limiter::new(rate), refused: Limiter::new(rate) }
    }
}

/// Counts the requests of each client in fixed time windows.
#[derive(Debug)]
pub(super) struct Limiter {
    pub rate: Rate,
    clients: Mutex<HashMap<String, (Instant, u32)>>,
}

/// The rest of a client's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    /// The number of requests left after this one; `None` if this one exceeds the limit.
    pub requests: Option<u32>,
    /// Seconds to the next window.
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
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(client) {
            clients.retain(|_, (start, _)| now.duration_since(*start) < window);
            if clients.len() >= MAX_CLIENTS {
                clients.clear();
            }
        }
        let (start, used) = clients.entry(client.to_owned()).or_insert((now, 0));
        if now.duration_since(*start) >= window {
            (*start, *used) = (now, 0);
        }
        let seconds = window.saturating_sub(now.duration_since(*start)).as_secs() + 1;
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

    fn request(uri: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn hosts_other_than_this_server_are_refused() {
        let local = gate("127.0.0.1:8000", "127.0.0.1");
        for ours in ["127.0.0.1:8000", "localhost:8000", "LOCALHOST", "[::1]:8000", "127.0.0.9"] {
            assert!(local.host(&request("/", &[("host", ours)])).is_ok(), "{ours}");
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
            assert!(local.host(&request("/", &[("host", foreign)])).is_err(), "{foreign}");
        }
        assert!(local.host(&request("/", &[])).is_err());
        assert!(local.host(&request("/", &[("host", "localhost"), ("host", "evil.org")])).is_err());
        assert!(local.host(&request("http://evil.org/", &[("host", "localhost")])).is_err());
        let open = gate("0.0.0.0:8000", "0.0.0.0");
        assert!(open.host(&request("/", &[("host", "192.168.0.7:8000")])).is_ok());
        assert!(open.host(&request("/", &[("host", "evil.org")])).is_err());
        let named = gate("10.0.0.1:80", "box.lan");
        assert!(named.host(&request("/", &[("host", "box.lan")])).is_ok());
        for (gate, advice) in [(&local, "127.0.0.1"), (&open, "an address of this machine"), (&named, "ask box.lan")] {
            let problem = gate.host(&request("/", &[("host", "evil.org")])).unwrap_err();
            assert!(problem.message_and_detail().1.unwrap().contains(advice), "{problem:?}");
        }
    }

    #[test]
    fn other_origins_are_refused_unless_allowed_by_the_user() {
        let gate = gate("127.0.0.1:8000", "127.0.0.1");
        let from = |host: &str, origin: &str| {
            gate.origin(request("/", &[("host", host), ("origin", origin)]).headers()).map(|origin| origin.is_some())
        };
        let of = |origin: &str| from("127.0.0.1:8000", origin);
        for (host, own) in [
            ("127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("localhost:8000", "http://LOCALHOST:8000"),
            ("[::1]:8000", "http://[::1]:8000"),
            ("localhost", "http://localhost:80"),
        ] {
            assert_eq!(from(host, own), Ok(false), "{own}");
        }
        // a page of another machine or program is foreign, even if its host is an address
        let open = self::gate("0.0.0.0:8000", "0.0.0.0");
        let foreign = request("/", &[("host", "192.168.0.7:8000"), ("origin", "http://192.168.0.66:8000")]);
        assert!(open.origin(foreign.headers()).is_err());
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
    fn the_rate_is_limited_per_client_and_window() {
        let limiter = Limiter::new(Rate { requests: 2, seconds: 10 });
        let start = Instant::now();
        let left = |client: &str, seconds: u64| limiter.count(client, start + Duration::from_secs(seconds)).requests;
        assert_eq!([left("a", 0), left("a", 1), left("a", 9)], [Some(1), Some(0), None]);
        assert_eq!(left("b", 9), Some(1));
        assert_eq!(left("a", 10), Some(1));
        for client in 0..3 * MAX_CLIENTS {
            left(&client.to_string(), 11);
        }
        assert!(limiter.clients.lock().unwrap().len() <= MAX_CLIENTS);
    }
}
