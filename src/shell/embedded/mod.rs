//! The languages that commands hold in an argument, as far as they write files, run programs and lose data: `awk`, `sed`,
//! SQL, and the names that scripting languages call. What they compute is no matter here.

mod awk;
pub(super) mod code;
pub(super) mod pure;
mod sed;
pub(super) mod sql;
pub(super) mod texts;

/// What a program in an argument does besides reading and printing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// It writes to this file; `None` if the name is computed.
    Write(Option<String>),
    /// It hands this command to a shell; `None` if the command is computed.
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
    /// What a program in it does.
    pub fn acts(self, text: &str) -> Vec<Act> {
        match self {
            Self::Awk => awk::acts(text),
            Self::Sed => sed::acts(text),
        }
    }
}
