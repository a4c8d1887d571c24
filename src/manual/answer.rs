//! The page of a program's manual, and what the program answers when it is asked about itself.

use super::index::Kind;
use caro_exec::Status;

/// The outcome of asking for a man page.
#[derive(Debug, Default)]
pub(super) enum Page {
    /// It, as plain text.
    Text(String),
    /// There is none.
    #[default]
    None,
    /// It did not come in time: there may be one.
    Late,
}

impl Page {
    /// The page, if it is here.
    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

/// The words of a program that was asked about itself.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// How it ended; `None` if it could not be started.
    pub(super) status: Option<Status>,
    /// Its words: standard output, or the standard error of one that has nothing else to say.
    pub(super) text: Option<String>,
    /// False if the text was cut.
    pub(super) whole: bool,
}

impl Answer {
    /// The problem in words; `None` if it ended by itself.
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

/// The kind of text that an answer to `--help` is: some programs open their man page.
pub(super) fn kind_of(help: &str) -> Kind {
    if help.contains("\nNAME\n") && help.contains("\nSYNOPSIS\n") { Kind::Page } else { Kind::Help }
}
