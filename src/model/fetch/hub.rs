//! Downloads from the hub: one `HEAD` for size and checksum, then ranged `GET`s into the partial.
//!
//! Uses `ureq` and not `hf-hub`'s own download, which (0.4.3, read in source) waits without end for a silent server,
//! cannot be cancelled, appends to its part file even if the server ignored the range, and keeps its own copy.
//! `hf-hub` only finds files that other tools of the hub already fetched. Protocol:
//! <https://huggingface.co/docs/hub/api>.

use super::error::{SourceError, Stop};
use super::net::{self, Client, Patience};
use super::partial::Partial;
use super::settings::HubSettings;
use super::{Cx, FetchError, check_space};
use crate::catalog::{CardFile, Hub};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::Response;

/// Bytes between two marks of the partial; at most this much is lost when the process is killed.
const MARK_INTERVAL: u64 = 16 << 20;

/// Most consecutive connections without a new byte before the download fails.
const MAX_IDLE_CONNECTIONS: u32 = 3;

/// The hub's description of a file, read before it is fetched.
#[derive(Debug, Default)]
struct Announced {
    /// The SHA-256, which Git LFS uses as the file's name; small files have none.
    sha256: Option<String>,
    version: String,
    size: Option<u64>,
}

/// Returns the file's path in the cache folder of the hub's own tools, if they have fetched it.
pub(super) fn cached(settings: &HubSettings, hub: &Hub, name: &str) -> Option<PathBuf> {
    let cache = hf_hub::Cache::new(settings.cache.clone()?);
    let repo = hf_hub::Repo::with_revision(hub.repo.clone(), hf_hub::RepoType::Model, hub.revision.clone());
    cache.repo(repo).get(name)
}

/// Asks the hub for the SHA-256 of the file; `None` if it does not answer or reports none.
pub(super) fn sum(settings: &HubSettings, hub: &Hub, file: &CardFile, cx: &Cx<'_>) -> Option<String> {
    Link { settings, cx }.head(&address(settings, hub, file)).ok()?.sha256
}

fn address(settings: &HubSettings, hub: &Hub, file: &CardFile) -> String {
    format!("{}/{}/resolve/{}/{}", settings.endpoint, hub.repo, hub.revision, file.name)
}

/// Fetches the file into the partial of `target`. Returns the partial, and the SHA-256 that the hub announced.
pub(super) fn fetch(
    settings: &HubSettings,
    hub: &Hub,
    file: &CardFile,
    target: &Path,
    cx: &Cx<'_>,
) -> Result<(Partial, Option<String>), Stop> {
    let url = address(settings, hub, file);
    let link = Link { settings, cx };
    let announced = link.head(&url)?;
    if let (Some(want), Some(got)) = (&file.sha256, &announced.sha256)
        && want != got
    {
        return Err(SourceError::Changed(format!("SHA-256 {got}")).into());
    }
    if let (Some(want), Some(got)) = (file.bytes, announced.size)
        && want != got
    {
        return Err(SourceError::Changed(format!("{got} bytes, not {want}")).into());
    }
    let identity = file.sha256.clone().or_else(|| announced.sha256.clone());
    let identity = identity.unwrap_or_else(|| format!("hub:{}", announced.version));
    let mut partial = Partial::open(target, &identity, cx)?;
    let total = file.bytes.or(announced.size);
    if let Some(total) = total {
        check_space(target, total.saturating_sub(partial.len()))?;
    }
    cx.progress.start(&format!("downloading {} from the hub", file.name), total);
    let result = link.transfer(&url, &mut partial, total);
    cx.progress.finish();
    result.map(|()| (partial, announced.sha256))
}

/// The settings and context of the requests to the hub.
struct Link<'a> {
    settings: &'a HubSettings,
    cx: &'a Cx<'a>,
}

impl Link<'_> {
    fn client(&self, url: &str, read: Duration) -> Result<Client, Stop> {
        let patience = Patience { connect: self.settings.connect, read };
        let client = Client::new(patience, self.settings.authorities.as_deref(), self.cx.cancel);
        client.map_err(|e| self.network_error(url, net::no_thread(&e)))
    }

    /// Asks for the description of a file. The hub answers with a redirect whose headers have it.
    fn head(&self, url: &str) -> Result<Announced, Stop> {
        let client = self.client(url, self.settings.connect)?;
        let (response, described) = self.follow(&client, "HEAD", url, None)?;
        // only the hub's own answer has the description; the ETag of the storage behind it is of another kind
        let described = described.unwrap_or(response);
        let header =
            |name: &str| described.header(name).map(|v| v.trim_start_matches("W/").trim_matches('"').to_string());
        let version = header("x-linked-etag").or_else(|| header("etag")).unwrap_or_default();
        let is_sum = version.len() == 64 && version.bytes().all(|b| b.is_ascii_hexdigit());
        let direct = (described.status() < 300).then(|| header("content-length")).flatten();
        Ok(Announced {
            sha256: is_sum.then(|| version.to_ascii_lowercase()),
            size: header("x-linked-size").or(direct).and_then(|v| v.parse().ok()),
            version,
        })
    }

    /// Sends a request and follows its redirects. Also returns the redirect that describes the file, if there was one.
    fn follow(
        &self,
        client: &Client,
        method: &str,
        url: &str,
        from: Option<u64>,
    ) -> Result<(Response, Option<Response>), Stop> {
        let mut described = None;
        let mut at = url.to_string();
        for _ in 0..8 {
            // sizes and ranges must be those of the uncompressed file
            let mut request = client.request(method, &at).set("Accept-Encoding", "identity");
            if let (Some(token), true) = (&self.settings.token, host(&at) == host(url)) {
                request = request.set("Authorization", &format!("Bearer {token}"));
            }
            if let Some(from) = from {
                request = request.set("Range", &format!("bytes={from}-"));
            }
            let response = match request.call() {
                Ok(response) => response,
                Err(ureq::Error::Status(416, response)) => return Ok((response, described)),
                Err(ureq::Error::Status(status, _)) => return Err(SourceError::Status { url: at, status }.into()),
                Err(ureq::Error::Transport(error)) => return Err(self.network_error(&at, net::reason(&error))),
            };
            if !matches!(response.status(), 301 | 302 | 303 | 307 | 308) {
                return Ok((response, described));
            }
            let Some(location) = response.header("location").map(str::to_string) else {
                return Err(self.network_error(&at, "a redirect to nowhere".into()));
            };
            let next = absolute(&at, &location);
            if at.starts_with("https://") && !next.starts_with("https://") {
                return Err(self.network_error(&at, "a redirect to an unencrypted address".into()));
            }
            if described.is_none() && response.header("x-linked-etag").is_some() {
                // a large file: its description is complete, without a request to the storage
                if method == "HEAD" {
                    return Ok((response, None));
                }
                described = Some(response);
            }
            at = next;
        }
        Err(self.network_error(url, "too many redirects".into()))
    }

    /// Downloads the rest of the file, with a new connection whenever one ends early.
    fn transfer(&self, url: &str, partial: &mut Partial, mut total: Option<u64>) -> Result<(), Stop> {
        let mut idle = 0;
        loop {
            if total.is_some_and(|t| partial.len() == t) {
                return Ok(partial.mark()?);
            }
            let before = partial.len();
            let end = self.stream(url, partial, &mut total);
            partial.mark()?;
            match end {
                Ok(true) => return Ok(()),
                Err(fatal @ Stop::Fatal(_)) => return Err(fatal),
                Err(Stop::Source(error @ (SourceError::Status { .. } | SourceError::Changed(_)))) => {
                    return Err(error.into());
                }
                Ok(false) | Err(_) if partial.len() > before => idle = 0,
                Err(Stop::Source(error @ SourceError::Stalled { .. })) => return Err(error.into()),
                end => {
                    idle += 1;
                    if idle >= MAX_IDLE_CONNECTIONS {
                        let got = partial.len();
                        end?;
                        let all = total.map_or("more".into(), |t| t.to_string());
                        return Err(self.network_error(url, format!("the connection ends after {got} of {all} bytes")));
                    }
                }
            }
            self.pause(Duration::from_millis(300) * (idle + 1))?;
        }
    }

    /// Downloads over one connection. Returns true if the file is complete.
    fn stream(&self, url: &str, partial: &mut Partial, total: &mut Option<u64>) -> Result<bool, Stop> {
        let client = self.client(url, self.settings.stall)?;
        let from = partial.len();
        let (response, _) = self.follow(&client, "GET", url, (from > 0).then_some(from))?;
        let length = response.header("content-length").and_then(|v| v.parse::<u64>().ok());
        match response.status() {
            206 => {
                let range = response.header("content-range").and_then(content_range);
                let Some((start, all)) = range.filter(|(start, _)| *start == from) else {
                    return Err(SourceError::Changed("it answers another range than was asked for".into()).into());
                };
                debug_assert_eq!(start, from);
                *total = total.or(all);
            }
            // the server does not support ranges: start over
            200 => {
                let identity = partial.identity().to_string();
                partial.restart(&identity)?;
                *total = total.or(length);
            }
            // no byte follows, and the size is unknown: the file is complete
            416 if total.is_none() => return Ok(true),
            416 => return Err(SourceError::Changed(format!("it has fewer than {from} bytes")).into()),
            status => return Err(SourceError::Status { url: url.into(), status }.into()),
        }
        let mut reader = response.into_reader();
        let mut buffer = vec![0; 1 << 18];
        let mut marked = partial.len();
        loop {
            let n = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) if self.cx.cancel.is_cancelled() => return Err(FetchError::Cancelled.into()),
                Err(e) if net::is_silence(&e) => {
                    return Err(SourceError::Stalled { seconds: self.settings.stall.as_secs() }.into());
                }
                Err(e) => return Err(self.network_error(url, e.to_string())),
            };
            if total.is_some_and(|t| partial.len() + n as u64 > t) {
                partial.restart("")?;
                return Err(SourceError::Changed("it sends more bytes than it announced".into()).into());
            }
            partial.write(&buffer[..n])?;
            self.cx.progress.advance(partial.len());
            if partial.len() - marked >= MARK_INTERVAL {
                partial.mark()?;
                marked = partial.len();
            }
            if self.cx.cancel.is_cancelled() {
                partial.mark()?;
                return Err(FetchError::Cancelled.into());
            }
        }
        // if the size is unknown, the end of the answer is the end of the file
        Ok(total.is_none_or(|t| t == partial.len()))
    }

    fn network_error(&self, url: &str, reason: String) -> Stop {
        if self.cx.cancel.is_cancelled() {
            return FetchError::Cancelled.into();
        }
        SourceError::Network { url: url.into(), reason }.into()
    }

    fn pause(&self, time: Duration) -> Result<(), Stop> {
        let until = std::time::Instant::now() + time;
        while std::time::Instant::now() < until {
            if self.cx.cancel.is_cancelled() {
                return Err(FetchError::Cancelled.into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Returns the scheme, host and port of an address.
fn host(url: &str) -> &str {
    let after = url.find("://").map_or(0, |i| i + 3);
    let end = url[after..].find(['/', '?', '#']).map_or(url.len(), |i| after + i);
    &url[..end]
}

/// Resolves a `Location` header against the address that sent it.
fn absolute(from: &str, location: &str) -> String {
    if location.contains("://") {
        location.into()
    } else if let Some(rest) = location.strip_prefix("//") {
        let scheme = from.find("://").map_or("https", |i| &from[..i]);
        format!("{scheme}://{rest}")
    } else if location.starts_with('/') {
        format!("{}{location}", host(from))
    } else {
        let folder = from.rfind('/').map_or(from, |i| &from[..i]);
        format!("{folder}/{location}")
    }
}

/// Parses the first byte and the total of `bytes 5-9/10`; the total may be `*`.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, total.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_redirects_are_resolved() {
        let from = "https://h:1/a/b?x=/y";
        assert_eq!(absolute(from, "http://g/c"), "http://g/c");
        assert_eq!(absolute(from, "//g/c"), "https://g/c");
        assert_eq!(absolute(from, "/c"), "https://h:1/c");
        assert_eq!(absolute("https://h/a/b", "c"), "https://h/a/c");
        assert_eq!(host("http://h:80?x"), "http://h:80");
    }

    #[test]
    fn ranges_are_parsed_or_refused() {
        assert_eq!(content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(content_range("bytes 0-0/*"), Some((0, None)));
        for wrong in ["", "bytes", "bytes */10", "5-9/10", "bytes 5-9"] {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }
}
