//! The exit codes of verbs, and the errors shown to the user.

use caro_model::ModelError;
use std::fmt::Display;

/// The result of a verb.
pub type Outcome = Result<Exit, Failure>;

/// The reason the process ends, with its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: a command, or the result that was asked for.
    Success,
    /// 1: no command, refused, or a check that found something.
    No,
    /// 2: a usage error or an internal error.
    Usage,
    /// 3: an agent went in circles, or its work does not show that the task is done.
    Stuck,
    /// 4: a limit ended an agent before it was done.
    Limit,
    /// The child's own code, with `-x`.
    Child(u8),
    /// 124: a timeout, as in `timeout(1)`.
    Timeout,
    /// 130: Ctrl-C, as in shells.
    Interrupted,
}

impl Exit {
    /// The number returned to the shell.
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

/// An error shown to the user: what happened and what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code of the process.
    pub exit: Exit,
    /// The message, in one line without `error:`. Empty if nothing is to be printed.
    pub message: String,
    /// The hint on what to do next.
    pub hint: Option<String>,
}

impl Failure {
    /// Creates a failure with this exit code.
    pub fn new(exit: Exit, message: impl Display) -> Self {
        Self { exit, message: message.to_string(), hint: None }
    }

    /// Creates a usage error (2).
    pub fn usage(message: impl Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Creates an internal error, or one of this machine (2).
    pub fn internal(message: impl Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Creates the failure of a request without a command, or with one that may not be run (1).
    pub fn no(message: impl Display) -> Self {
        Self::new(Exit::No, message)
    }

    /// Creates a failure that prints nothing.
    pub fn silent(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// The `error` of the JSON document that is printed in place of the answer.
    pub fn error(&self) -> serde_json::Value {
        serde_json::json!({ "message": self.message, "hint": self.hint.as_deref().unwrap_or_default() })
    }

    /// Adds a hint on what to do next; an empty one adds nothing.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into()).filter(|h| !h.is_empty());
        self
    }
}

/// Converts an output error. A closed pipe ends the program silently and with success, as `| head` expects.
impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Self {
        match e.kind() {
            std::io::ErrorKind::BrokenPipe => Self::silent(Exit::Success),
            _ => Self::internal(e),
        }
    }
}

/// Converts an error of a model, with its hint.
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
