//! The verdict on a command: may it be run without a second thought?

use super::Script;
use std::ops::Range;

/// How dangerous a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Reads and prints.
    Safe,
    /// Changes something that can be made good again, or leaves this machine.
    Caution,
    /// Destroys, opens up or hands over something.
    Danger,
}

/// The verdict, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Risk {
    /// The strictest of the reasons' levels.
    pub level: Level,
    /// Why, strictest first.
    pub reasons: Vec<Reason>,
}

/// One reason of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Reason {
    /// How dangerous this is.
    pub level: Level,
    /// `delete`, `overwrite`, `permission`, `device`, `privilege`, `network-to-shell` ...
    pub effect: String,
    /// The piece of the command that does it.
    pub token: String,
    /// Where that piece stands, in bytes.
    pub span: Option<Range<usize>>,
    /// One sentence for a person.
    pub why: String,
}

/// Judges a parsed command.
pub fn assess(script: &Script) -> Risk {
    let _ = script;
    todo!()
}
