//! The person's settings of the server, read from text: each function says what its setting must be where it is
//! something else.

use std::time::Duration;

/// Requests and seconds where the rate is limited and no number is given.
const RATE: Rate = Rate { requests: 100, seconds: 60 };

/// The most seconds that an answer may be allowed.
const LONGEST: f64 = 86_400.0;

/// The settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The address to listen at: an IP address, or a name for one.
    pub host: String,
    /// The port; 0 for one that is free.
    pub port: u16,
    /// How long an answer may take; nothing for any time.
    pub timeout: Option<Duration>,
    /// Origins of web pages that may ask, beside our own page.
    pub cors_origins: Vec<String>,
    /// How often one client may ask.
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

/// So many requests in so many seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The requests.
    pub requests: u32,
    /// The seconds.
    pub seconds: u32,
}

/// Reads an address.
///
/// # Errors
/// In words, what it must be.
pub fn host(text: &str) -> Result<String, String> {
    let name = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if is_address || !name.is_empty() && name.len() < 254 && name.chars().all(fits) {
        return Ok(name.to_owned());
    }
    Err("an address of this machine, as in 127.0.0.1, ::1 or localhost".into())
}

/// Reads a port.
///
/// # Errors
/// In words, what it must be.
pub fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "a port from 0 to 65535 (0 takes one that is free)".into())
}

/// Reads a time; nothing for any time.
///
/// # Errors
/// In words, what it must be.
pub fn timeout(text: &str) -> Result<Option<Duration>, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds <= 0.0 => Ok(None),
        Ok(seconds) if seconds <= LONGEST => Ok(Some(Duration::from_secs_f64(seconds))),
        _ => Err(format!("seconds up to {LONGEST}; 0 or less for any time")),
    }
}

/// Reads origins, between commas.
///
/// # Errors
/// In words, what each must be.
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

/// Reads a rate: `off`, `on`, `N` a minute, `N/SECONDS`.
///
/// # Errors
/// In words, what it must be.
pub fn rate_limit(text: &str) -> Result<Option<Rate>, String> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| (1..=1_000_000).contains(number));
    let read = match (text, text.split_once('/')) {
        ("off", _) => return Ok(None),
        ("on", _) => Some(RATE),
        (_, Some((requests, seconds))) => {
            number(requests).zip(number(seconds)).map(|(requests, seconds)| Rate { requests, seconds })
        }
        (requests, None) => number(requests).map(|requests| Rate { requests, ..RATE }),
    };
    read.map(Some).ok_or_else(|| "off, on, requests a minute, or requests/seconds as in 100/60".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_read_or_told_what_it_must_be() {
        assert_eq!(host("::1"), Ok("::1".into()));
        assert_eq!(host("[::1]"), Ok("::1".into()));
        assert_eq!(port("8000"), Ok(8000));
        assert_eq!(timeout("2.5"), Ok(Some(Duration::from_millis(2500))));
        assert_eq!((timeout("0"), timeout("-1")), (Ok(None), Ok(None)));
        assert_eq!(origins("none"), Ok(vec![]));
        assert_eq!(origins("https://A.org, http://b:3"), Ok(vec!["https://a.org".into(), "http://b:3".into()]));
        assert_eq!((rate_limit("off"), rate_limit("on")), (Ok(None), Ok(Some(RATE))));
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
