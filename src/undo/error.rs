//! The errors of saving and restoring files.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The reason files cannot be saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The disk is full.
    #[error("no room on the disk to keep it: {0}")]
    Full(String),
    /// The copies would exceed the limit.
    #[error("it would take {needed} bytes, and {most} may be kept")]
    TooLarge {
        /// The bytes that would be saved.
        needed: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// The command touches too many files.
    #[error("it touches more than {} files", super::MAX_FILES)]
    TooMany,
    /// A path cannot be read.
    #[error("{} cannot be read: {why}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// The command would delete the folder of undo.
    #[error("it would delete {}, where undo keeps things", .0.display())]
    Itself(PathBuf),
    /// The folder of undo cannot be used.
    #[error("{}: {why}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        why: io::Error,
    },
    /// There is no such entry.
    #[error("there is no entry {0}")]
    Unknown(u64),
    /// There is nothing to undo.
    #[error("there is nothing to undo")]
    Nothing,
    /// The entry was undone already, by the second one.
    #[error("{0} is undone already, by {1}")]
    Already(u64, u64),
    /// Another process uses the entry.
    #[error("{0} is still running, or being undone")]
    Busy(u64),
    /// These files have changed since the command.
    #[error("{} of its files changed since", .0.len())]
    Changed(Vec<PathBuf>),
    /// A record is damaged.
    #[error("the record in {} is damaged: {why}", path.display())]
    Damaged {
        /// Its folder.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl UndoError {
    pub(super) fn unreadable(path: &Path, why: io::Error) -> Self {
        Self::Unreadable { path: path.to_path_buf(), why }
    }

    /// Converts an error of writing to a folder of undo.
    pub(super) fn writing(path: &Path, why: io::Error) -> Self {
        match why.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full(why.to_string()),
            _ => Self::Folder { path: path.to_path_buf(), why },
        }
    }

    /// Returns the next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Full(_) => "free some room (`caro undo --clear` gives back what undo holds), or run it without undo",
            Self::TooLarge { .. } => "`undo_copies` in the configuration allows more, as in: undo_copies = \"4G\"",
            Self::TooMany => "run it in parts, or without undo",
            Self::Unreadable { .. } => "run caro as a user who may read it, or run the command without undo",
            Self::Itself(_) => "leave that folder out, or run it without undo",
            Self::Folder { .. } => "check that the data folder is there and yours to write",
            Self::Unknown(_) | Self::Nothing => "`caro undo --list` shows what there is",
            Self::Already(..) => "`caro undo ID` of that one takes it back",
            Self::Busy(_) => "wait for it to end",
            Self::Changed(_) => {
                "`--force` puts them back all the same; what is there now is kept, and `caro undo` of that brings it back"
            }
            Self::Damaged { .. } => "`caro undo --clear ID` removes it",
        }
    }
}
