//! A program's man page, and its answers about itself.

use super::index::Kind;
use caro_exec::Status;

/// The result of asking for a man page.
#[derive(Debug, Default)]
pub(super) enum Page {
    /// The page, as plain text.
    Text(String),
    /// There is no page.
    #[default]
    None,
    /// Timeout; there may be a page.
    TimedOut,
}

impl Page {
    /// Returns the text of the page, if there is one.
    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

/// The output of a program that was asked about itself.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// The way in which it ended; `None` if it could not be started.
    pub(super) status: Option<Status>,
    /// Standard output, or standard error if that is empty.
    pub(super) text: Option<String>,
    /// True if the text is complete.
    pub(super) complete: bool,
}

impl Answer {
    /// Returns a description of the problem; `None` if it exited.
    pub(super) fn problem(&self) -> Option<&'static str> {
        match self.status {
            None => Some("could not be started"),
            Some(Status::TimedOut) => Some("did not answer within a second"),
            Some(Status::Flooded) => Some("writes without end"),
            Some(Status::Signaled(_)) => Some("crashed when asked for help"),
            Some(Status::Exited(_)) => None,
        }
    }
}

/// Returns the kind of an answer to `--help`; some programs show their man page.
pub(super) fn kind_of(help: &str) -> Kind {
    if help.contains("\nNAME\n") && help.contains("\nSYNOPSIS\n") { Kind::Page } else { Kind::Help }
}
