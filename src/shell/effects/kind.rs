//! The kinds of effects.

/// A kind of effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// No effect; the operand is not a path.
    None,
    /// Reads a file or folder.
    Read,
    /// Creates something new.
    Create,
    /// Overwrites a file that may exist.
    Overwrite,
    /// Appends to a file.
    Append,
    /// Deletes.
    Delete,
    /// Moves away or renames.
    Move,
    /// Changes permissions.
    Mode,
    /// Changes the owner.
    Owner,
    /// Gets something from the network.
    Fetch,
    /// Sends something over the network.
    Send,
    /// Acquires the rights of another user.
    Privilege,
    /// Ends or disturbs processes.
    Kill,
    /// Changes the state of the system: services, mounts, users, firewall, power.
    System,
    /// Installs, removes or updates software.
    Package,
    /// Changes a repository of a version control system.
    Repository,
    /// Adds to a repository of a version control system, or moves to another revision; earlier content is preserved.
    Record,
    /// Starts a named service, a container or an editor; running processes are not affected.
    Start,
    /// Runs the project in this folder: builds, checks, tests.
    Build,
    /// Runs a program that is entirely in the command and only computes and prints.
    Compute,
    /// Runs code that is not in the text.
    Run,
    /// Unknown: the program is not in the table.
    Unknown,
}

impl Kind {
    /// True if it reaches another machine.
    pub(super) fn is_network(self) -> bool {
        matches!(self, Self::Fetch | Self::Send)
    }
}
