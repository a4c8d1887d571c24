//! Why something cannot be kept or put back.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why something cannot be kept or put back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// There is no room for it.
    #[error("no room on the disk to keep it: {0}")]
    Full(String),
    /// The copies would take more than they may.
    #[error("it would take {needed} bytes, and {most} may be kept")]
    TooLarge {
        /// Bytes that would be copied.
        needed: u64,
        /// Bytes that may be.
        most: u64,
    },
    /// There is more of it than is looked at.
    #[error("it touches more than {} files", super::MOST)]
    TooMany,
    /// Something could not be read.
    #[error("{} cannot be read: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The system's word.
        why: io::Error,
    },
    /// The command would delete what undo keeps.
    #[error("it would delete {}, where undo keeps things", .0.display())]
    Itself(PathBuf),
    /// The folder of undo cannot be used.
    #[error("{}: {why}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// The system's word.
        why: io::Error,
    },
    /// There is no such entry.
    #[error("there is no entry {0}")]
    Unknown(u64),
    /// There is nothing that could be undone.
    #[error("there is nothing to undo")]
    Nothing,
    /// It was undone already.
    #[error("{0} is undone already, by {1}")]
    Already(u64, u64),
    /// Another process is at it.
    #[error("{0} is still running, or being undone")]
    Busy(u64),
    /// Files are not as the command left them.
    #[error("{} of its files changed since", .0.len())]
    Changed(Vec<PathBuf>),
    /// A record is damaged.
    #[error("the record in {} is damaged: {why}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// The fault in it.
        why: String,
    },
}

impl UndoError {
    pub(super) fn unreadable(path: &Path, why: io::Error) -> Self {
        Self::Unreadable { path: path.to_path_buf(), why }
    }

    /// The system's error for our own folder.
    pub(super) fn writing(path: &Path, why: io::Error) -> Self {
        match why.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full(why.to_string()),
            _ => Self::Folder { path: path.to_path_buf(), why },
        }
    }

    /// The next thing to do.
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
