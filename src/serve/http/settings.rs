//! The user's settings of the server, parsed from text. For an invalid value, each function returns a description of
//! the valid ones.

use std::time::Duration;

/// The default rate limit.
const DEFAULT_RATE: Rate = Rate { requests: 100, seconds: 60 };

/// Most seconds that the setting allows for an answer.
const MAX_TIMEOUT: f64 = 86_400.0;

/// The settings of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The address to listen at: an IP address, or a host name.
    pub host: String,
    /// The port; 0 for any free one.
    pub port: u16,
    /// Most time for an answer; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Origins of web pages that may send requests, besides the server's own page.
    pub cors_origins: Vec<String>,
    /// The rate limit of one client.
    pub rate_limit: Option<Rate>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".into(),
            port: 8000,
            timeout: Some(Duration::from_secs(300)),
            cors_origins: Vec::new(),
            rate_limit: None,
        }
    }
}

/// A number of requests within a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The requests.
    pub requests: u32,
    /// The seconds.
    pub seconds: u32,
}

/// Parses an address.
///
/// # Errors
/// A description of the valid values.
pub fn host(text: &str) -> Result<String, String> {
    let name = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if is_address || !name.is_empty() && name.len() < 254 && name.chars().all(fits) {
        return Ok(name.to_owned());
    }
    Err("an address of this machine, as in 127.0.0.1, ::1 or localhost".into())
}

/// Parses a port.
///
/// # Errors
/// A description of the valid values.
pub fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "a port from 0 to 65535 (0 takes one that is free)".into())
}

/// Parses a number of seconds; `None` for no limit.
///
/// # Errors
/// A description of the valid values.
pub fn timeout(text: &str) -> Result<Option<Duration>, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds <= 0.0 => Ok(None),
        Ok(seconds) if seconds <= MAX_TIMEOUT => Ok(Some(Duration::from_secs_f64(seconds))),
        _ => Err(format!("seconds up to {MAX_TIMEOUT}; 0 or less for any time")),
    }
}

/// Parses origins separated by commas.
///
/// # Errors
/// A description of the valid values.
pub fn origins(text: &str) -> Result<Vec<String>, String> {
    let all = text.split(',').map(str::trim).filter(|origin| !origin.is_empty() && *origin != "none");
    all.map(|origin| {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let is_origin = rest.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', '@', '?', '#', ' ']));
        is_origin.then(|| origin.to_ascii_lowercase()).ok_or_else(|| {
            "origins between commas, as in https://example.org, without a path and without `*`".to_owned()
        })
    })
    .collect()
}

/// Parses a rate: `off`, `on`, `N` (per minute) or `N/SECONDS`.
///
/// # Errors
/// A description of the valid values.
pub fn rate_limit(text: &str) -> Result<Option<Rate>, String> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| (1..=1_000_000).contains(number));
    let rate = match (text, text.split_once('/')) {
        ("off", _) => return Ok(None),
        ("on", _) => Some(DEFAULT_RATE),
        (_, Some((requests, seconds))) => {
            number(requests).zip(number(seconds)).map(|(requests, seconds)| Rate { requests, seconds })
        }
        (requests, None) => number(requests).map(|requests| Rate { requests, ..DEFAULT_RATE }),
    };
    rate.map(Some).ok_or_else(|| "off, on, requests a minute, or requests/seconds as in 100/60".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed_or_refused() {
        assert_eq!(host("::1"), Ok("::1".into()));
        assert_eq!(host("[::1]"), Ok("::1".into()));
        assert_eq!(port("8000"), Ok(8000));
        assert_eq!(timeout("2.5"), Ok(Some(Duration::from_millis(2500))));
        assert_eq!((timeout("0"), timeout("-1")), (Ok(None), Ok(None)));
        assert_eq!(origins("none"), Ok(vec![]));
        assert_eq!(origins("https://A.org, http://b:3"), Ok(vec!["https://a.org".into(), "http://b:3".into()]));
        assert_eq!((rate_limit("off"), rate_limit("on")), (Ok(None), Ok(Some(DEFAULT_RATE))));
        assert_eq!(rate_limit("9/2"), Ok(Some(Rate { requests: 9, seconds: 2 })));
        assert_eq!(rate_limit("9"), Ok(Some(Rate { requests: 9, seconds: 60 })));
        for wrong in ["", "a b", "http://x", "x/y", "\u{e9}"] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "x", "-1", "65536", "80 "] {
            assert!(port(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "soon", "nan", "inf", "1e9"] {
            assert!(timeout(wrong).is_err(), "{wrong}");
        }
        for wrong in ["*", "example.org", "https://*.org", "https://a/b", "null", "https://"] {
            assert!(origins(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "0", "1/0", "x/y", "1/2/3", "-1"] {
            assert!(rate_limit(wrong).is_err(), "{wrong}");
        }
    }
}
