//! The kinds of things that a command does.

/// One thing that a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Nothing to a path: the operand is none.
    None,
    /// Reads a file or folder.
    Read,
    /// Makes something new.
    Create,
    /// Writes over what may be there.
    Overwrite,
    /// Writes at the end of a file.
    Append,
    /// Deletes.
    Delete,
    /// Moves away or renames.
    Move,
    /// Changes who may do what.
    Mode,
    /// Changes the owner.
    Owner,
    /// Gets something from the network.
    Fetch,
    /// Sends something over the network.
    Send,
    /// Asks for another user's rights.
    Privilege,
    /// Ends or hinders processes.
    Kill,
    /// Changes the state of the system: services, mounts, users, firewall, power.
    System,
    /// Installs, removes or updates software.
    Package,
    /// Changes a repository of a version control system.
    Repository,
    /// Adds to a repository of a version control system, or moves to another place in it: what was there is kept.
    Record,
    /// Starts a service, a container or an editor that is named: what runs already goes on.
    Start,
    /// Does what the files of the project in this folder say: builds, checks, tests.
    Build,
    /// Runs a program that stands in the command in full and only computes and prints.
    Compute,
    /// Runs code that is not in the text.
    Run,
    /// Not known: the program is in no table.
    Unknown,
}
