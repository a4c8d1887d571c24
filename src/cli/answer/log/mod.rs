//! The log of requests, if the settings ask for one.
//!
//! - [`mod@file`]: the file. [`last`]: the last answer of a terminal, in a file of the same form. Lines typed into
//!   `caro chat` are stored by [`history`](crate::term::history).

pub mod file;
pub mod last;

use super::ask::Place;
use crate::Cx;
use file::{Entry, Log};
use std::time::{SystemTime, UNIX_EPOCH};

/// The time, in seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs())
}

/// Adds a request with its command to the log. A failure is only a warning.
pub fn add(request: &str, command: &str, ran: Option<i32>, place: &Place, cx: &Cx) {
    let Some(log) = Log::of(&cx.dirs) else { return };
    let entry = Entry {
        at: now(),
        request: request.into(),
        command: command.into(),
        target: place.target.name().into(),
        shell: place.dialect.name().into(),
        folder: place.cwd.to_string_lossy().into_owned(),
        ran: ran.is_some(),
        status: ran,
    };
    if let Err(e) = log.add(&entry) {
        cx.ui.warn(&format!("the request could not be kept in {}: {e}", log.file().display()));
    }
}
