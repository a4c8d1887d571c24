//! An HTTP client with three features that `ureq` lacks: a blocked call can be interrupted at once, resolving a name
//! has a timeout, and hosts that `NO_PROXY` excepts are reached without the proxy.

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

/// The timeouts of a client.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Timeout of resolving the name, and again of connecting.
    pub connect: Duration,
    /// Timeout of each read and write.
    pub read: Duration,
}

/// A client whose calls end when they are cancelled. It follows no redirects.
#[derive(Debug)]
pub struct Client {
    plain: ureq::Agent,
    tls: ureq::Agent,
    /// As `tls`, without a proxy, for the hosts in `no_proxy`.
    direct: ureq::Agent,
    no_proxy: String,
    dropped: Arc<AtomicBool>,
}

impl Client {
    /// Returns a client for one exchange or a few. `authorities` adds certificate authorities (PEM) to the built-in
    /// ones.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn new(patience: Patience, authorities: Option<&Path>, cancel: &Cancel) -> io::Result<Self> {
        let sockets = Sockets::default();
        let dropped = Arc::new(AtomicBool::new(false));
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
                .tls_connector(Arc::new(Connector { tls, sockets: sockets.clone() }))
                .build()
        };
        let tls = Some(tls_config(authorities));
        let client = Self {
            // plain HTTP is for local servers, which a proxy does not reach
            plain: agent(None, false),
            tls: agent(tls.clone(), true),
            direct: agent(tls, false),
            no_proxy: ["no_proxy", "NO_PROXY"].iter().find_map(|name| std::env::var(name).ok()).unwrap_or_default(),
            dropped: dropped.clone(),
        };
        let cancel = cancel.clone();
        Builder::new().name("http".into()).spawn(move || {
            while !dropped.load(Ordering::Relaxed) {
                if cancel.is_cancelled() {
                    return sockets.shut_down();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        })?;
        Ok(client)
    }

    /// Starts a request to an `http://` or `https://` address.
    pub fn request(&self, method: &str, url: &str) -> Request {
        match url.strip_prefix("http://") {
            // `ureq` exposes only the sockets of TLS connections. So a plain request is made as `https`, through a
            // connector that does not encrypt, with an explicit port.
            Some(rest) => self.plain.request(method, &format!("https://{}", with_port(rest))),
            None if excepts(&self.no_proxy, url) => self.direct.request(method, url),
            None => self.tls.request(method, url),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}

/// Adds `:80` to an address without a scheme if it names no port.
fn with_port(rest: &str) -> String {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let has_port = host.rsplit_once(':').is_some_and(|(_, p)| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
    if has_port { rest.into() } else { format!("{}:80{path}", host.trim_end_matches(':')) }
}

/// True if a list in the form of `NO_PROXY` has the host of an address: by its name, by a parent domain (with or
/// without a leading dot), by its IP address, or by `*` for all.
fn excepts(list: &str, url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split(']').next(),
        None => authority.split(':').next(),
    };
    let host = host.unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let is_ip = host.parse::<std::net::IpAddr>().is_ok();
    list.split([',', ' ']).map(|entry| entry.trim_matches(['[', ']']).to_ascii_lowercase()).any(|entry| {
        let name = entry.trim_start_matches('*').trim_start_matches('.');
        let is_subdomain = || host.strip_suffix(name).is_some_and(|before| before.ends_with('.'));
        entry == "*" || !name.is_empty() && (host == name || !is_ip && is_subdomain())
    })
}

/// Returns a configuration with Mozilla's root certificates, as compiled in, and those that the user adds.
fn tls_config(authorities: Option<&Path>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(certificates) = authorities.and_then(|path| CertificateDer::pem_file_iter(path).ok()) {
        roots.add_parsable_certificates(certificates.flatten());
    }
    let builder = ClientConfig::builder_with_provider(ring::default_provider().into());
    // fails only without a cipher suite of these versions, and `ring` has some
    let builder = builder.with_safe_default_protocol_versions().unwrap_or_else(|_| ClientConfig::builder());
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Resolves a name with a timeout, which the system's resolver does not have.
fn resolve(host: &str, timeout: Duration) -> io::Result<Vec<SocketAddr>> {
    let host = host.to_string();
    let (done, wait) = mpsc::channel();
    Builder::new().name("resolve".into()).spawn(move || {
        let _ = done.send(host.to_socket_addrs().map(Vec::from_iter));
    })?;
    let timed_out = |_| io::Error::new(io::ErrorKind::TimedOut, "its name does not resolve in time");
    wait.recv_timeout(timeout).map_err(timed_out)?
}

/// Registers the socket of every connection before a byte is sent over it.
struct Connector {
    tls: Option<Arc<ClientConfig>>,
    sockets: Sockets,
}

impl TlsConnector for Connector {
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

/// The open sockets of a client; `None` once it was interrupted.
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

    fn shut_down(&self) {
        for socket in self.0.lock().unwrap_or_else(PoisonError::into_inner).take().into_iter().flatten() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Returns the message for a thread that could not be started.
pub fn no_thread(error: &io::Error) -> String {
    format!("the system gives no thread: {error}")
}

/// Returns the message of a transport error with its causes.
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

/// True if a read timed out.
pub fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_matches_a_name_a_parent_domain_or_an_ip_address() {
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
    fn a_missing_port_is_added() {
        let all = ["h", "h/", "h/a:9/b", "h:8080/v1", "[::1]/x", "[::1]:9/x", "h:/x"].map(with_port);
        assert_eq!(all, ["h:80", "h:80/", "h:80/a:9/b", "h:8080/v1", "[::1]:80/x", "[::1]:9/x", "h:80/x"]);
    }
}
