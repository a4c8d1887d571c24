//! The errors of the harness.

use crate::skill::SkillError;
use crate::store::StoreError;
use crate::tool::RegistryError;
use caro_documents::LibraryError;
use caro_policy::InputError;

/// The reason why there is no run, or why stored runs cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// The text is no task.
    #[error("{0}")]
    Unclear(&'static str),
    /// The text must not be given to a model.
    #[error("the task cannot be taken: {0}")]
    Input(#[from] InputError),
    /// The name of the session is invalid.
    #[error("a session's name has 1 to 200 characters, none of them a control character")]
    Session,
    /// The name of the session has a prefix that is reserved for the hidden sessions of runs and helpers.
    #[error("`{0}` is not a name for a session: runs and helpers are named so")]
    NamedAsRun(String),
    /// Two tools have one name.
    #[error(transparent)]
    Tools(#[from] RegistryError),
    /// A skill that was asked for cannot be used.
    #[error(transparent)]
    Skill(#[from] SkillError),
    /// Runs cannot be stored or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Notes or conversations cannot be stored or read.
    #[error(transparent)]
    Memory(#[from] LibraryError),
    /// The files of a session cannot be stored or read.
    #[error("the workspace: {0}")]
    Workspace(#[from] std::io::Error),
    /// No thread can be started.
    #[error("no thread can be begun: {0}")]
    Thread(std::io::Error),
    /// The channel of messages cannot be read or written.
    #[error("the channel: {0}")]
    Channel(std::io::Error),
    /// The run was stopped, and can be resumed.
    #[error("the run {0} was stopped")]
    Stopped(String),
}

impl HarnessError {
    /// Advice to the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unclear(_) => "say what is to be done, and with what",
            Self::Input(error) => error.hint(),
            Self::Session | Self::NamedAsRun(_) => "give it another name, or none for a new session",
            Self::Thread(_) => "end some of the processes of this user, and try again",
            Self::Tools(error) => error.hint(),
            Self::Skill(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Memory(error) => error.hint(),
            Self::Workspace(_) => "check that its folder can be written",
            Self::Channel(_) => "check that its files can be read and written; nothing that came in is lost",
            Self::Stopped(_) => "`caro resume RUN` goes on with it",
        }
    }
}
