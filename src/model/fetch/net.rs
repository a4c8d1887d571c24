//! HTTP for the places that may open sockets, with the three things `ureq` alone does not do: a blocked call can be
//! interrupted at once, a network that swallows packets is noticed within seconds, and hosts that `NO_PROXY` excepts are
//! reached without the proxy.

use crate::Cancel;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::Builder;
use std::time::Duration;
use ureq::rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::CertificateDer, pki_types::pem::PemObject};
use ureq::{ReadWrite, Request, TlsConnector};

/// How long to wait for what.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For the name to resolve, and then for a connection.
    pub connect: Duration,
    /// For the next byte.
    pub read: Duration,
}

/// A client whose calls end when `cancel` is pulled. It follows no redirect.
#[derive(Debug)]
pub struct Client {
    plain: ureq::Agent,
    tls: ureq::Agent,
    /// The same without a proxy, for the hosts in `excepted`.
    direct: ureq::Agent,
    excepted: String,
    over: Arc<AtomicBool>,
}

impl Client {
    /// A client for one exchange or a few. `authorities` adds certificate authorities (PEM) to the built-in ones.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn new(patience: Patience, authorities: Option<&Path>, cancel: &Cancel) -> io::Result<Self> {
        let sockets = Sockets::default();
        let over = Arc::new(AtomicBool::new(false));
        let agent = |tls: Option<Arc<ClientConfig>>, proxy: bool| {
            ureq::AgentBuilder::new()
                .timeout_connect(patience.connect)
                .timeout_read(patience.read)
                .timeout_write(patience.read)
                .redirects(0)
                .max_idle_connections(0)
                .user_agent(concat!("caro/", env!("CARGO_PKG_VERSION")))
                .resolver(move |host: &str| resolve(host, patience.connect))
                .try_proxy_from_env(proxy)
                .tls_connector(Arc::new(Door { tls, sockets: sockets.clone() }))
                .build()
        };
        let tls = Some(tls_config(authorities));
        let client = Self {
            // Plain HTTP is for servers of one's own, which no proxy reaches.
            plain: agent(None, false),
            tls: agent(tls.clone(), true),
            direct: agent(tls, false),
            excepted: ["no_proxy", "NO_PROXY"].iter().find_map(|name| std::env::var(name).ok()).unwrap_or_default(),
            over: over.clone(),
        };
        let cancel = cancel.clone();
        Builder::new().name("http".into()).spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if cancel.is_cancelled() {
                    return sockets.shut();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        })?;
        Ok(client)
    }

    /// A request to an `http://` or `https://` address.
    pub fn request(&self, method: &str, url: &str) -> Request {
        match url.strip_prefix("http://") {
            // `ureq` shows us the socket of a TLS connection only. So a plain one passes for TLS, through a door that
            // leaves it as it is; the port has to be written out then.
            Some(rest) => self.plain.request(method, &format!("https://{}", with_port(rest))),
            None if excepts(&self.excepted, url) => self.direct.request(method, url),
            None => self.tls.request(method, url),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// The address without its scheme, with `:80` where it names no port.
fn with_port(rest: &str) -> String {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let named = host.rsplit_once(':').is_some_and(|(_, p)| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
    if named { rest.into() } else { format!("{}:80{path}", host.trim_end_matches(':')) }
}

/// True if a list as in `NO_PROXY` has the host of an address: by its name, by the end of its name (with or without a dot
/// before it), by its number, or by `*` for all.
fn excepts(list: &str, url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let place = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = place.rsplit('@').next().unwrap_or_default();
    let host = match place.strip_prefix('[') {
        Some(number) => number.split(']').next(),
        None => place.split(':').next(),
    };
    let host = host.unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let is_number = host.parse::<std::net::IpAddr>().is_ok();
    list.split([',', ' ']).map(|entry| entry.trim_matches(['[', ']']).to_ascii_lowercase()).any(|entry| {
        let name = entry.trim_start_matches('*').trim_start_matches('.');
        let below = || host.strip_suffix(name).is_some_and(|before| before.ends_with('.'));
        entry == "*" || !name.is_empty() && (host == name || !is_number && below())
    })
}

/// Certificates: Mozilla's, as compiled in, and those the user adds.
fn tls_config(authorities: Option<&Path>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(certificates) = authorities.and_then(|path| CertificateDer::pem_file_iter(path).ok()) {
        roots.add_parsable_certificates(certificates.flatten());
    }
    let builder = ClientConfig::builder_with_provider(ring::default_provider().into());
    // Only fails without any cipher suite of these versions, and `ring` has them.
    let builder = builder.with_safe_default_protocol_versions().unwrap_or_else(|_| ClientConfig::builder());
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Resolves a name within the limit, which the system's own resolver does not know.
fn resolve(host: &str, limit: Duration) -> io::Result<Vec<SocketAddr>> {
    let host = host.to_string();
    let (done, wait) = mpsc::channel();
    Builder::new().name("resolve".into()).spawn(move || {
        let _ = done.send(host.to_socket_addrs().map(Vec::from_iter));
    })?;
    let timed_out = |_| io::Error::new(io::ErrorKind::TimedOut, "its name does not resolve in time");
    wait.recv_timeout(limit).map_err(timed_out)?
}

/// Sees every connection before a byte goes over it.
struct Door {
    tls: Option<Arc<ClientConfig>>,
    sockets: Sockets,
}

impl TlsConnector for Door {
    fn connect(&self, host: &str, io: Box<dyn ReadWrite>) -> Result<Box<dyn ReadWrite>, ureq::Error> {
        if let Some(socket) = io.socket() {
            self.sockets.add(socket);
        }
        match &self.tls {
            Some(config) => config.connect(host, io),
            None => Ok(io),
        }
    }
}

/// The open sockets of a client, or `None` once it was interrupted.
#[derive(Clone)]
struct Sockets(Arc<Mutex<Option<Vec<TcpStream>>>>);

impl Default for Sockets {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some(Vec::new()))))
    }
}

impl Sockets {
    fn add(&self, socket: &TcpStream) {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(open) => open.extend(socket.try_clone().ok()),
            None => drop(socket.shutdown(Shutdown::Both)),
        }
    }

    fn shut(&self) {
        for socket in self.0.lock().unwrap_or_else(PoisonError::into_inner).take().into_iter().flatten() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Why nothing was tried, in words for people.
pub fn no_thread(error: &io::Error) -> String {
    format!("the system gives no thread: {error}")
}

/// What went wrong on the way, in words for people.
pub fn reason(error: &ureq::Transport) -> String {
    use std::error::Error;
    let mut text = error.message().map_or_else(|| error.kind().to_string(), str::to_string);
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// True if a read ended because nothing came in time.
pub fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_excepted_by_its_name_its_end_or_its_number() {
        for (list, url) in [
            ("localhost", "https://localhost:8443/v1"),
            ("a,LocalHost , b", "https://user:pw@LOCALHOST?x"),
            ("example.com", "https://hub.example.com"),
            (".example.com", "https://hub.example.com./a"),
            ("*.example.com", "https://hub.example.com#x"),
            (".example.com", "https://example.com/"),
            ("10.0.0.7", "https://10.0.0.7:1/"),
            ("::1", "https://[::1]:8443/"),
            ("[::1]", "https://[::1]/"),
            ("*", "https://anything"),
        ] {
            assert!(excepts(list, url), "{list} {url}");
        }
        for (list, url) in [
            ("", "https://h"),
            (",", "https://h"),
            ("example.com", "https://badexample.com"),
            ("hub.example.com", "https://example.com"),
            ("0.0.7", "https://10.0.0.7"),
            ("localhost", "https://h/localhost"),
        ] {
            assert!(!excepts(list, url), "{list} {url}");
        }
    }

    #[test]
    fn a_plain_address_gets_its_port() {
        let all = ["h", "h/", "h/a:9/b", "h:8080/v1", "[::1]/x", "[::1]:9/x", "h:/x"].map(with_port);
        assert_eq!(all, ["h:80", "h:80/", "h:80/a:9/b", "h:8080/v1", "[::1]:80/x", "[::1]:9/x", "h:80/x"]);
    }
}
