//! How a verb ends: exit codes, and errors as a person reads them.

use caro_model::ModelError;
use std::fmt::Display;

/// What a verb returns.
pub type Outcome = Result<Exit, Failure>;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: a command, or whatever else was asked for.
    Success,
    /// 1: no command, refused, or a check that found something.
    No,
    /// 2: used wrongly, or something inside went wrong.
    Usage,
    /// 3: an agent went in circles, or what it did does not bear out that it is done.
    Stuck,
    /// 4: a limit ended an agent before it was done.
    Limit,
    /// The child's own code, with `-x`.
    Child(u8),
    /// 124: the time was up, as `timeout(1)` says it.
    Timeout,
    /// 130: Ctrl-C, as shells say it.
    Interrupted,
}

impl Exit {
    /// The number the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::Stuck => 3,
            Self::Limit => 4,
            Self::Child(code) => code,
            Self::Timeout => 124,
            Self::Interrupted => 130,
        }
    }
}

/// An error for a person: what happened and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code it ends in.
    pub exit: Exit,
    /// What happened, in one line without `error:`. Empty if nothing is to be printed.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with an exit code of its own.
    pub fn new(exit: Exit, message: impl Display) -> Self {
        Self { exit, message: message.to_string(), hint: None }
    }

    /// The user asked for something that cannot be (2).
    pub fn usage(message: impl Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Something inside or on this machine went wrong (2).
    pub fn internal(message: impl Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// There is no command, or it may not be run (1).
    pub fn no(message: impl Display) -> Self {
        Self::new(Exit::No, message)
    }

    /// Ends without a word.
    pub fn silent(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// What a program is given, as `error`, in the document in the place of the answer it waits for.
    pub fn error(&self) -> serde_json::Value {
        serde_json::json!({ "message": self.message, "hint": self.hint.as_deref().unwrap_or_default() })
    }

    /// Adds what to do next; an empty hint adds nothing.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into()).filter(|h| !h.is_empty());
        self
    }
}

/// Failing to write output: a reader that went away ends the program silently and well, as `| head` expects.
impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Self {
        match e.kind() {
            std::io::ErrorKind::BrokenPipe => Self::silent(Exit::Success),
            _ => Self::internal(e),
        }
    }
}

/// A model that failed.
impl From<ModelError> for Failure {
    fn from(e: ModelError) -> Self {
        let hint = e.hint();
        Self::internal(e).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_pipe_is_silent_success_and_other_io_errors_are_not() {
        let gone: Failure = std::io::Error::from(std::io::ErrorKind::BrokenPipe).into();
        assert_eq!(gone, Failure::silent(Exit::Success));
        let full: Failure = std::io::Error::from(std::io::ErrorKind::StorageFull).into();
        assert_eq!(full.exit.code(), 2);
        assert!(!full.message.is_empty());
    }

    #[test]
    fn an_empty_hint_is_none() {
        assert_eq!(Failure::no("x").hint("").hint, None);
        assert_eq!(Failure::no("x").hint("y").hint.as_deref(), Some("y"));
    }
}
