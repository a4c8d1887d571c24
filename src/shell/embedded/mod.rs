//! Languages inside of arguments: finds the files that `awk`, `sed`, SQL and scripting languages write, the programs
//! they run and the data they lose. What they compute is ignored.

mod awk;
pub(super) mod code;
pub(super) mod pure;
mod sed;
pub(super) mod sql;
pub(super) mod texts;

/// A side effect of a program in an argument, besides reading and printing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SideEffect {
    /// Writes to this file; `None` if the name is computed.
    Write(Option<String>),
    /// Passes this command to a shell; `None` if the command is computed.
    Run(Option<String>),
}

/// The language of a program's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    /// `awk`.
    Awk,
    /// `sed`.
    Sed,
}

impl Language {
    /// Returns the side effects of a program.
    pub fn side_effects(self, text: &str) -> Vec<SideEffect> {
        match self {
            Self::Awk => awk::side_effects(text),
            Self::Sed => sed::side_effects(text),
        }
    }
}
